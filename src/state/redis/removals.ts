import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Redis } from './open-redis.ts';
import { type RedisCommands, unlessReply } from './redis-connection.ts';

/** For how much longer than answers it is known what was removed, in milliseconds: the time of a call. */
const maxCallMs = 600_000;
/** Removals that wait for Redis to come back. */
const maxPending = 10_000;

/** What was removed of the kept answers, for all replicas: a removal changes the stamp of a group, or of a tenant. */
export class Removals {
  readonly #redis: Redis;
  /** How long a stamp is kept, in milliseconds. */
  readonly #keptMs: string;
  readonly #pending = new LRUCache<string, true>({ max: maxPending });

  /** @param ttl how long answers are kept, in milliseconds */
  constructor(redis: Redis, ttl: number) {
    this.#redis = redis;
    this.#keptMs = String(ttl + maxCallMs);
    redis.connection.onUp(async (commands) => {
      const removals = [...this.#pending.keys()].map((key) => this.#send(key, commands));
      await Promise.all(removals.map((removal) => removal.catch(unlessReply)));
    });
  }

  /** Differs before and after a removal of the group, or of all. */
  async stamp(tenantId: string, group?: string): Promise<string> {
    return this.#stamp(tenantId, group, (key) => ['GET', key]);
  }

  /** The same for a call that begins: its answer must not outlive the stamp that it is kept with. */
  async prolongedStamp(tenantId: string, group?: string): Promise<string> {
    return this.#stamp(tenantId, group, (key) => ['GETEX', key, 'PX', this.#keptMs]);
  }

  /** Removes the answers of a group, or all of a tenant. */
  async add(tenantId: string, group?: string): Promise<void> {
    const { connection, keyOf } = this.#redis;
    const key = keyOf(tenantId, 'removed', ...(group === undefined ? [] : [group]));
    await this.#send(key, connection).catch(() => this.#pending.set(key, true));
  }

  async #stamp(tenantId: string, group = '', commandOf: (key: string) => string[]): Promise<string> {
    const { connection, keyOf } = this.#redis;
    const keys = [keyOf(tenantId, 'removed'), keyOf(tenantId, 'removed', group)];
    // They leave in one packet.
    return (await Promise.all(keys.map((key) => connection.send(key, commandOf(key))))).map(String).join(' ');
  }

  async #send(key: string, commands: RedisCommands): Promise<void> {
    await commands.send(key, ['SET', key, randomUUID(), 'PX', this.#keptMs]);
    this.#pending.delete(key);
  }
}
