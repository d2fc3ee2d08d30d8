import { RedisConnection } from './redis-connection.ts';
import type { StateAddress } from './redis-driver.ts';
import { createSeal, type Seal } from './seal.ts';
import type { StateLog } from './state-log.ts';

/** What everything kept in Redis is built on. */
export interface Redis {
  connection: RedisConnection;
  seal: Seal;
  /** The name of a key. All keys of a tenant share a hash tag, so that one script may use several. */
  keyOf(tenantId: string, kind: string, ...parts: readonly string[]): string;
  /** The name of a channel for all replicas. */
  channelOf(kind: string): string;
}

export interface RedisOptions {
  address: StateAddress;
  secret: string;
  /** The service: what is known of one says nothing about another. */
  baseUrl: string;
  log: StateLog;
}

/** How long a start waits for Redis, in milliseconds. */
const startMs = 1000;

/** Connects to Redis; if it cannot be reached, goes on trying. */
export async function openRedis({ address, secret, baseUrl, log }: RedisOptions): Promise<Redis> {
  const connection = new RedisConnection(address, log);
  const seal = createSeal({ secret, warn: log.warn });
  await connection.open(startMs);
  return {
    connection,
    seal,
    keyOf: (tenantId, kind, ...parts) => {
      const tag = seal.name('tenant', baseUrl, tenantId);
      return ['ad-library', `{${tag}}`, kind, ...(parts.length > 0 ? [seal.name(kind, ...parts)] : [])].join(':');
    },
    channelOf: (kind) => `ad-library:${seal.name('channel', baseUrl)}:${kind}`,
  };
}
