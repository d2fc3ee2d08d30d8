import { LRUCache } from 'lru-cache';
import { AdLibraryError } from '../api/errors.ts';

interface SemaphoreOptions {
  /** The most turns at once, for all keys together and for one. */
  maxRunning: number;
  perKey?: number;
  /** How many may wait, all keys together. By default 64 keys with four each. */
  maxWaiting?: number;
  /** The name of the work, for the message that too much of it waits. */
  name: string;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** The most keys whose last turn is remembered. The last turn of any other key began before all of these. */
const maxRemembered = 1000;

interface Waiter {
  start(): void;
  refuse(): void;
}

/**
 * A counting semaphore with turns between keys: tenants, or addresses. Among those who wait, the key with the fewest
 * turns running comes first, then the one whose last turn began longest ago; of one key, who came first.
 *
 * Where too many wait, the newest of the key with the most waiting is refused, never the first of a key. So a key with
 * nothing waiting gets a place, unless every place is held by another key.
 */
export class Semaphore {
  readonly #options: Required<SemaphoreOptions>;
  readonly #running = new Map<string, number>();
  readonly #waiting = new Map<string, Waiter[]>();
  /** The number of the last turn of each key. */
  readonly #began = new LRUCache<string, number>({ max: maxRemembered });
  #turns = 0;
  /** How long recent turns took, in milliseconds, as a moving average. */
  #usualMs = 1000;

  constructor(options: SemaphoreOptions) {
    this.#options = { perKey: options.maxRunning, maxWaiting: 256, now: () => performance.now(), ...options };
  }

  get running(): number {
    return [...this.#running.values()].reduce((sum, running) => sum + running, 0);
  }

  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Resolves when it is the key's turn, to a function that ends the turn.
   * @throws AdLibraryError `busy` where too many wait, or where the signal's time was over before there was a turn; the
   * signal's reason if it aborts for another
   */
  async acquire(key: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#mayRun(key)) this.#begin(key);
    else await this.#wait(key, signal);
    const { now } = this.#options;
    const began = now();
    let hasEnded = false;
    return () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#usualMs += (now() - began - this.#usualMs) / 16;
      const others = this.#runningOf(key) - 1;
      if (others > 0) this.#running.set(key, others);
      else this.#running.delete(key);
      this.#startNext();
    };
  }

  async run<Result>(key: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    const end = await this.acquire(key, signal);
    try {
      return await work();
    } finally {
      end();
    }
  }

  #runningOf = (key: string): number => this.#running.get(key) ?? 0;
  #waitingOf = (key: string): number => this.#waiting.get(key)?.length ?? 0;

  #mayRun(key: string): boolean {
    return this.running < this.#options.maxRunning && this.#runningOf(key) < this.#options.perKey;
  }

  #begin(key: string): void {
    this.#running.set(key, this.#runningOf(key) + 1);
    this.#began.set(key, ++this.#turns);
  }

  #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.waiting >= this.#options.maxWaiting) {
      const longest = [...this.#waiting.keys()].reduce(
        (one, other) => (this.#waitingOf(other) > this.#waitingOf(one) ? other : one),
        key,
      );
      if (longest === key || this.#waitingOf(longest) === 1) throw this.#busy(key);
      this.#waiting.get(longest)?.at(-1)?.refuse();
    }
    return new Promise((resolve, reject) => {
      const leave = (settle: () => void) => () => {
        signal?.removeEventListener('abort', abort);
        const others = this.#waiting.get(key)?.filter((other) => other !== waiter) ?? [];
        if (others.length > 0) this.#waiting.set(key, others);
        else this.#waiting.delete(key);
        settle();
      };
      const waiter = { start: leave(resolve), refuse: leave(() => reject(this.#busy(key))) };
      const abort = leave(() => reject(signal?.reason?.name === 'TimeoutError' ? this.#busy(key) : signal?.reason));
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), waiter]);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #startNext(): void {
    for (;;) {
      const [next] = [...this.#waiting.keys()]
        .filter((key) => this.#mayRun(key))
        .sort(
          (one, other) =>
            this.#runningOf(one) - this.#runningOf(other) ||
            (this.#began.peek(one) ?? 0) - (this.#began.peek(other) ?? 0),
        );
      if (next === undefined) return;
      this.#begin(next);
      this.#waiting.get(next)?.[0]?.start();
    }
  }

  #busy(key: string): AdLibraryError {
    const { maxRunning, perKey, name } = this.#options;
    const ahead = Math.max(this.#waitingOf(key) / perKey, this.waiting / maxRunning, 1);
    const seconds = Math.min(60, Math.max(1, Math.ceil((this.#usualMs / 1000) * ahead)));
    const problem = `Too many ${name} are waiting. There should be room for one more in about ${seconds} s.`;
    const details = { retryAfterSeconds: seconds };
    return new AdLibraryError({ kind: 'busy', problem, sent: false, details });
  }
}
