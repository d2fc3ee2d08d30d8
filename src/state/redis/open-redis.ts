import { createSeal, type Seal } from '../store/seal.ts';
import type { StateLog } from '../store/state-log.ts';
import { type RedisCommands, unlessReply } from './redis-commands.ts';
import { RedisConnection } from './redis-connection.ts';
import type { StateAddress } from './redis-driver.ts';

/** What everything kept in Redis is built on. */
export interface Redis {
  connection: RedisConnection;
  seal: Seal;
  /** The name of a key. All keys of a tenant share a hash tag, so that one script may use several. */
  keyOf(tenantId: string, kind: string, ...parts: readonly string[]): string;
  /** The name of a channel for all replicas. */
  channelOf(kind: string): string;
  /** The time of Redis, so that replicas agree on it. */
  now(): number;
}

export interface RedisOptions {
  address: StateAddress;
  secret: string;
  /** The service: what is known of one says nothing about another. */
  baseUrl: string;
  log: StateLog;
  /** The time of this process, which counts until Redis tells its own. */
  now(): number;
}

/** How long a start waits for Redis, in milliseconds. */
const startMs = 1000;

/** How old the comparison of clocks may be, in milliseconds. */
const comparedMs = 60_000;

/** Goes on by itself while Redis cannot be reached. */
function clockOf(connection: RedisConnection, now: () => number): () => number {
  let ahead = now() - performance.now();
  let comparedAt = Number.NEGATIVE_INFINITY;
  const compare = async (commands: RedisCommands) => {
    const began = performance.now();
    const [seconds, micros] = (await commands.send('ad-library:time', ['TIME'])) as [Buffer, Buffer];
    comparedAt = performance.now();
    ahead = Number(seconds) * 1000 + Number(micros) / 1000 - (began + comparedAt) / 2;
  };
  connection.onUp((commands) => compare(commands).catch(unlessReply));
  return () => {
    const elapsed = performance.now();
    if (elapsed - comparedAt > comparedMs) {
      comparedAt = elapsed;
      compare(connection).catch(() => {});
    }
    return Math.round(elapsed + ahead);
  };
}

/** Connects to Redis; if it cannot be reached, goes on trying. */
export async function openRedis({ address, secret, baseUrl, log, now: ownNow }: RedisOptions): Promise<Redis> {
  const connection = new RedisConnection(address, log);
  const seal = createSeal({ secret, warn: log.warn });
  const now = clockOf(connection, ownNow);
  await connection.open(startMs);
  return {
    connection,
    seal,
    now,
    keyOf: (tenantId, kind, ...parts) => {
      const tag = seal.name('tenant', baseUrl, tenantId);
      return ['ad-library', `{${tag}}`, kind, ...(parts.length > 0 ? [seal.name(kind, ...parts)] : [])].join(':');
    },
    channelOf: (kind) => `ad-library:${seal.name('channel', baseUrl)}:${kind}`,
  };
}
