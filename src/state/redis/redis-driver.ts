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
  sentinelUser?: string;
  sentinelPassword?: string;
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
  const { tls, hosts, database, cluster, sentinel } = address;
  const socket = { connectTimeout, reconnectStrategy, ...(tls && { tls }) };
  const node = {
    ...loginOf(address.username, address.password),
    socket,
    disableOfflineQueue: true,
    commandsQueueMaxLength: maxQueued,
  };
  const onDatabase = { ...node, ...(database !== undefined && { database }) };
  if (sentinel !== undefined) {
    const client = createSentinel({
      name: sentinel,
      sentinelRootNodes: [...hosts],
      commandOptions,
      nodeClientOptions: onDatabase,
      sentinelClientOptions: { ...loginOf(address.sentinelUser, address.sentinelPassword), socket },
    });
    return driverOf(client.on('error', onError), (_, args) => client.sendCommand(false, [...args]));
  }
  if (cluster) {
    const rootNodes = hosts.map(({ host, port }) => ({ ...node, socket: { ...socket, host, port } }));
    const client = createCluster({ rootNodes, defaults: node, commandOptions });
    return driverOf(client.on('error', onError), (key, args) => client.sendCommand(key, false, [...args]));
  }
  const client = createClient({ ...onDatabase, commandOptions, socket: { ...socket, ...hosts[0] } });
  return driverOf(client.on('error', onError), (_, args) => client.sendCommand(args));
}

const loginOf = (username: string | undefined, password: string | undefined) => ({
  ...(username && { username }),
  ...(password && { password }),
});

const driverOf = (client: Omit<RedisDriver, 'send'>, send: RedisDriver['send']): RedisDriver => ({
  connect: () => client.connect(),
  send,
  subscribe: (channel, listener) => client.subscribe(channel, listener),
  destroy: () => client.destroy(),
});
