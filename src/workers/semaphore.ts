import { LRUCache } from 'lru-cache';
import { AdLibraryError } from '../api/errors.ts';

interface SemaphoreOptions {
  /** The most turns at once, for all keys together and for one. */
  maxRunning: number;
  maxRunningPerKey?: number;
  /** How many may wait, all keys together. By default 64 keys with four each. */
  maxWaiting?: number;
  /** The name of the work, for the message that too much of it waits. */
  workName: string;
  /** A monotonic clock, in milliseconds. */
  now?: () => number;
}

/** The most keys whose last turn is remembered. The last turn of any other key began before all of these. */
const maxRememberedKeys = 1000;

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
  readonly #lastSlotNumbers = new LRUCache<string, number>({ max: maxRememberedKeys });
  #slotCount = 0;
  /** How long recent turns took, in milliseconds, as a moving average. */
  #typicalSlotMs = 1000;

  constructor(options: SemaphoreOptions) {
    this.#options = { maxRunningPerKey: options.maxRunning, maxWaiting: 256, now: () => performance.now(), ...options };
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
    if (this.#canRun(key)) this.#begin(key);
    else await this.#wait(key, signal);
    const { now } = this.#options;
    const acquiredAt = now();
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#typicalSlotMs += (now() - acquiredAt - this.#typicalSlotMs) / 16;
      const remaining = this.#countRunning(key) - 1;
      if (remaining > 0) this.#running.set(key, remaining);
      else this.#running.delete(key);
      this.#startNext();
    };
  }

  async run<Result>(key: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    const release = await this.acquire(key, signal);
    try {
      return await work();
    } finally {
      release();
    }
  }

  #countRunning = (key: string): number => this.#running.get(key) ?? 0;
  #countWaiting = (key: string): number => this.#waiting.get(key)?.length ?? 0;

  #canRun(key: string): boolean {
    return this.running < this.#options.maxRunning && this.#countRunning(key) < this.#options.maxRunningPerKey;
  }

  #begin(key: string): void {
    this.#running.set(key, this.#countRunning(key) + 1);
    this.#lastSlotNumbers.set(key, ++this.#slotCount);
  }

  #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.waiting >= this.#options.maxWaiting) {
      const longestKey = [...this.#waiting.keys()].reduce(
        (one, other) => (this.#countWaiting(other) > this.#countWaiting(one) ? other : one),
        key,
      );
      if (longestKey === key || this.#countWaiting(longestKey) === 1) throw this.#createBusyError(key);
      this.#waiting.get(longestKey)?.at(-1)?.refuse();
    }
    return new Promise((resolve, reject) => {
      const leaveQueue = (settle: () => void) => () => {
        signal?.removeEventListener('abort', abort);
        const others = this.#waiting.get(key)?.filter((other) => other !== waiter) ?? [];
        if (others.length > 0) this.#waiting.set(key, others);
        else this.#waiting.delete(key);
        settle();
      };
      const waiter = { start: leaveQueue(resolve), refuse: leaveQueue(() => reject(this.#createBusyError(key))) };
      const abort = leaveQueue(() =>
        reject(signal?.reason?.name === 'TimeoutError' ? this.#createBusyError(key) : signal?.reason),
      );
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), waiter]);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #startNext(): void {
    for (;;) {
      const [nextKey] = [...this.#waiting.keys()]
        .filter((key) => this.#canRun(key))
        .sort(
          (one, other) =>
            this.#countRunning(one) - this.#countRunning(other) ||
            (this.#lastSlotNumbers.peek(one) ?? 0) - (this.#lastSlotNumbers.peek(other) ?? 0),
        );
      if (nextKey === undefined) return;
      this.#begin(nextKey);
      this.#waiting.get(nextKey)?.[0]?.start();
    }
  }

  #createBusyError(key: string): AdLibraryError {
    const { maxRunning, maxRunningPerKey, workName } = this.#options;
    const roundsAhead = Math.max(this.#countWaiting(key) / maxRunningPerKey, this.waiting / maxRunning, 1);
    const seconds = Math.min(60, Math.max(1, Math.ceil((this.#typicalSlotMs / 1000) * roundsAhead)));
    const problem = `Too many ${workName} are waiting. There should be room for one more in about ${seconds} s.`;
    const details = { retryAfterSeconds: seconds };
    return new AdLibraryError({ kind: 'busy', problem, sent: false, details });
  }
}
