import { randomInt } from 'node:crypto';
import { createClient, createCluster, createSentinel, RESP_TYPES, type RedisArgument } from '@redis/client';

/** Where the shared state is; hosts of a cluster, or Sentinels, where there are several. */
export interface StateAddress {
  tls: boolean;
  hosts: readonly { host: string; port: number }[];
  username?: string;
  password?: string;
  database?: number;
  cluster?: true;
  sentinel?: string;
}

/** The part of the client that is the same for a server, a cluster and Sentinel. */
export interface RedisDriver {
  connect(): Promise<unknown>;
  /** @param key decides which node of a cluster is asked; undefined for any */
  send(key: string | undefined, args: readonly RedisArgument[]): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): void;
}

/** How long a connection may take, in milliseconds. */
const connectTimeout = 1000;
/** The longest wait between two attempts to reconnect, in milliseconds. */
const maxWait = 400;
/** Commands that wait for their answer. */
const maxQueued = 20_000;

const reconnectStrategy = (retries: number) => Math.min(maxWait, 50 * 2 ** Math.min(retries, 10)) + randomInt(50);
const commandOptions = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };

/** @param onError receives every fault of a connection; without it, one would end the process */
export function openDriver(address: StateAddress, onError: (error: Error) => void): RedisDriver {
  const { tls, hosts, username, password, database, cluster, sentinel } = address;
  const socket = { connectTimeout, reconnectStrategy, ...(tls && { tls }) };
  const login = { ...(username && { username }), ...(password && { password }) };
  const node = { ...login, socket, disableOfflineQueue: true, commandsQueueMaxLength: maxQueued };
  if (sentinel !== undefined) {
    const options = { name: sentinel, sentinelRootNodes: [...hosts], commandOptions };
    const nodeClientOptions = { ...node, ...(database !== undefined && { database }) };
    const client = createSentinel({ ...options, nodeClientOptions, sentinelClientOptions: { socket } });
    client.on('error', onError);
    return {
      connect: () => client.connect(),
      send: (_, args) => client.sendCommand(false, [...args]),
      subscribe: (channel, listener) => client.subscribe(channel, listener),
      destroy: () => client.destroy(),
    };
  }
  if (cluster) {
    const rootNodes = hosts.map(({ host, port }) => ({ ...node, socket: { ...socket, host, port } }));
    const client = createCluster({ rootNodes, defaults: node, commandOptions });
    client.on('error', onError);
    return {
      connect: () => client.connect(),
      send: (key, args) => client.sendCommand(key, false, [...args]),
      subscribe: (channel, listener) => client.subscribe(channel, listener),
      destroy: () => client.destroy(),
    };
  }
  const [first] = hosts;
  const options = { ...node, ...(database !== undefined && { database }), commandOptions };
  const client = createClient({ ...options, socket: { ...socket, ...first } });
  client.on('error', onError);
  return {
    connect: () => client.connect(),
    send: (_, args) => client.sendCommand(args),
    subscribe: (channel, listener) => client.subscribe(channel, listener),
    destroy: () => client.destroy(),
  };
}
