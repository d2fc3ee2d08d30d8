import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { stateUnavailable } from '../store/state-error.ts';
import type { Redis } from './open-redis.ts';
import { type RedisCommands, unlessReply } from './redis-commands.ts';
import { Renewals } from './renewals.ts';

/** For how much longer than answers it is known what was removed, in milliseconds: the time of a call. */
const maxCallMs = 600_000;
/** Removals that wait for Redis to take them. */
const maxPending = 10_000;

/** What was removed of the kept answers, for all replicas: a removal changes the stamp of a group, or of a tenant. */
export class Removals {
  readonly #redis: Redis;
  /** How long a stamp is kept, in milliseconds. */
  readonly #keptMs: string;
  /** Each with what tells it from a later one of the same key. */
  readonly #pending = new LRUCache<string, object>({ max: maxPending });
  readonly #retries: Renewals;

  /** @param ttl how long answers are kept, in milliseconds */
  constructor(redis: Redis, ttl: number) {
    this.#redis = redis;
    this.#keptMs = String(ttl + maxCallMs);
    this.#retries = new Renewals(() => this.#sendPending(redis.connection));
    redis.connection.onUp((commands) => this.#sendPending(commands));
  }

  /** Differs before and after a removal of the group, or of all. Rejects while Redis does not know of one. */
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
    await this.#send(key, connection).catch(() => {
      this.#pending.set(key, {});
      this.#retries.start();
    });
  }

  async #stamp(tenantId: string, group = '', commandOf: (key: string) => string[]): Promise<string> {
    const { connection, keyOf } = this.#redis;
    const keys = [keyOf(tenantId, 'removed'), keyOf(tenantId, 'removed', group)];
    if (keys.some((key) => this.#pending.has(key))) throw stateUnavailable();
    // They leave in one packet.
    return (await Promise.all(keys.map((key) => connection.send(key, commandOf(key))))).map(String).join(' ');
  }

  async #send(key: string, commands: RedisCommands): Promise<void> {
    await commands.send(key, ['SET', key, randomUUID(), 'PX', this.#keptMs]);
  }

  /** What Redis refuses, because it is full, is tried again later. */
  async #sendPending(commands: RedisCommands): Promise<void> {
    const removals = [...this.#pending].map(async ([key, removal]) => {
      await this.#send(key, commands);
      if (this.#pending.get(key) === removal) this.#pending.delete(key);
    });
    await Promise.all(removals.map((removal) => removal.catch(unlessReply)));
    if (this.#pending.size === 0) this.#retries.stop();
  }
}
