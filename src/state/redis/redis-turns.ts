import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { NamedTurns, tooBusy } from '../memory-state.ts';
import type { Turns } from '../state.ts';
import type { Redis } from './open-redis.ts';
import { script } from './redis-commands.ts';

/** How long the turn of a replica that died is kept free for it, in milliseconds, and how often a live one renews it. */
const LEASE_MS = 10_000;
const RENEW_MS = 3000;
/** How often one looks whether a turn is free. */
const LOOK_MS = 200;

/** KEYS: the turn. ARGV: whose it is, lifetime. Returns 1 if it is theirs from now on. */
const takeScript = script(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`);

/** KEYS: the turn. ARGV: whose it is. */
const endScript = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);

/** Turns over all replicas. The turn of one that dies is free after ten seconds. */
export class RedisTurns implements Turns {
  readonly #redis: Pick<Redis, 'connection' | 'keyOf'>;
  /** Of this replica: what it left behind while Redis could not be reached, it can take again. */
  readonly #holder = randomUUID();
  /** Within this process, so that only one of its calls has to look. */
  readonly #own = new NamedTurns();

  constructor(redis: Pick<Redis, 'connection' | 'keyOf'>) {
    this.#redis = redis;
  }

  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const endOwn = await this.#own.take(name, signal);
    try {
      const end = await this.#lease(this.#redis.keyOf(name, 'turn'), signal);
      return () => void end().finally(endOwn);
    } catch (error) {
      endOwn();
      throw error;
    }
  }

  async #lease(key: string, signal: AbortSignal): Promise<() => Promise<void>> {
    const take = async () =>
      (await this.#redis.connection.run(takeScript, [key], [this.#holder, String(LEASE_MS)])) === 1;
    while (!(await take()))
      await wait(LOOK_MS + randomInt(LOOK_MS), undefined, { signal }).catch(() => {
        throw tooBusy();
      });
    // What fails is tried again; after ten seconds the turn is free.
    const renewal = setInterval(() => void take().catch(() => {}), RENEW_MS).unref();
    return async () => {
      clearInterval(renewal);
      await this.#redis.connection.run(endScript, [key], [this.#holder]).catch(() => {});
    };
  }
}
