import { LRUCache } from 'lru-cache';
import { AdLibraryError } from '../api/errors.ts';

interface SemaphoreOptions {
  /** The number of slots, i.e. the maximum number of calls that run at the same time, for all keys together. */
  maxRunningCalls: number;
  /** The maximum number of calls of one key that run at the same time. By default, one key may use all slots. */
  maxRunningCallsPerKey?: number;
  /**
   * The maximum number of waiting calls, for all keys together. The default is 256, i.e. four calls for each of 64
   * keys.
   */
  maxWaitingCalls?: number;
  /** A plural noun for error messages, e.g. "pictures" in "Too many pictures are waiting." */
  workName: string;
  /** Returns the current time of a monotonic clock, in milliseconds. */
  monotonicNow?: () => number;
}

/**
 * The maximum number of keys for which the semaphore remembers when they last got a slot. All other keys count as
 * having waited longest.
 */
const maxRememberedKeys = 1000;

interface WaitingCall {
  start(): void;
  refuse(): void;
}

/**
 * A counting semaphore that shares its slots fairly between keys, such as API keys or IP addresses. A free slot goes to
 * the waiting key that uses the fewest slots. If several keys use equally few slots, the slot goes to the key that last
 * got a slot the longest time ago. Calls with the same key get slots in the order in which they arrived.
 *
 * If too many calls are waiting, the newest call of the key with the most waiting calls is rejected. The only waiting
 * call of a key is never rejected. The first call of a key therefore gets a place in the queue, unless every place
 * belongs to a different key.
 */
export class Semaphore {
  readonly #options: Required<SemaphoreOptions>;
  #runningCount = 0;
  readonly #runningCountsByKey = new Map<string, number>();
  readonly #waitingCallsByKey = new Map<string, WaitingCall[]>();
  /**
   * For each key, the sequence number of the last slot that the key got. The lower the number, the longer ago the key
   * got a slot.
   */
  readonly #lastSlotSequenceNumbers = new LRUCache<string, number>({ max: maxRememberedKeys });
  #grantedSlotCount = 0;
  /**
   * The moving average of the time for which a call uses a slot, in milliseconds. Error messages use this average to
   * estimate the waiting time.
   */
  #averageSlotMs = 1000;

  constructor(options: SemaphoreOptions) {
    this.#options = {
      maxRunningCallsPerKey: options.maxRunningCalls,
      maxWaitingCalls: 256,
      monotonicNow: () => performance.now(),
      ...options,
    };
  }

  /** The number of slots that all keys together are using. */
  get runningCount(): number {
    return this.#runningCount;
  }

  /** The number of calls that are waiting for a slot, for all keys together. */
  get waitingCount(): number {
    return [...this.#waitingCallsByKey.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /**
   * Waits for a free slot. Resolves to a function that releases the slot.
   * @throws AdLibraryError `busy` if too many calls are waiting, or if the signal times out before a slot is free
   * @throws the reason of the signal, if the signal aborts for another reason
   */
  async acquire(key: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const release = this.tryAcquire(key);
    if (release) return release;
    await this.#waitForSlot(key, signal);
    return this.#createRelease(key);
  }

  /**
   * Takes a slot if one is free, without waiting. Returns the function that releases the slot, or undefined if no slot
   * is free for this key.
   */
  tryAcquire(key: string): (() => void) | undefined {
    if (!this.#canRun(key)) return undefined;
    this.#occupySlot(key);
    return this.#createRelease(key);
  }

  /**
   * Waits for a free slot, calls `runWork`, and releases the slot.
   * @throws the errors of `acquire` and of `runWork`
   */
  async runInSlot<Result>(
    key: string,
    signal: AbortSignal | undefined,
    runWork: () => Promise<Result>,
  ): Promise<Result> {
    const release = await this.acquire(key, signal);
    try {
      return await runWork();
    } finally {
      release();
    }
  }

  #countRunning = (key: string): number => this.#runningCountsByKey.get(key) ?? 0;
  #countWaiting = (key: string): number => this.#waitingCallsByKey.get(key)?.length ?? 0;

  #canRun(key: string): boolean {
    return (
      this.#runningCount < this.#options.maxRunningCalls &&
      this.#countRunning(key) < this.#options.maxRunningCallsPerKey
    );
  }

  #occupySlot(key: string): void {
    this.#runningCount++;
    this.#runningCountsByKey.set(key, this.#countRunning(key) + 1);
    this.#lastSlotSequenceNumbers.set(key, ++this.#grantedSlotCount);
  }

  /** Creates the function that releases a slot. Only its first call has an effect. */
  #createRelease(key: string): () => void {
    const { monotonicNow } = this.#options;
    const acquiredAt = monotonicNow();
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#averageSlotMs += (monotonicNow() - acquiredAt - this.#averageSlotMs) / 16;
      this.#runningCount--;
      const remainingRunningCount = this.#countRunning(key) - 1;
      if (remainingRunningCount > 0) this.#runningCountsByKey.set(key, remainingRunningCount);
      else this.#runningCountsByKey.delete(key);
      this.#startNextCalls();
    };
  }

  #waitForSlot(key: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.waitingCount >= this.#options.maxWaitingCalls) {
      const longestQueueKey = [...this.#waitingCallsByKey.keys()].reduce(
        (left, right) => (this.#countWaiting(right) > this.#countWaiting(left) ? right : left),
        key,
      );
      if (longestQueueKey === key || this.#countWaiting(longestQueueKey) === 1) throw this.#createBusyError(key);
      this.#waitingCallsByKey.get(longestQueueKey)?.at(-1)?.refuse();
    }
    return new Promise((resolve, reject) => {
      const leaveQueue = (settle: () => void) => () => {
        signal?.removeEventListener('abort', abort);
        const otherCalls = this.#waitingCallsByKey.get(key)?.filter((otherCall) => otherCall !== waitingCall) ?? [];
        if (otherCalls.length > 0) this.#waitingCallsByKey.set(key, otherCalls);
        else this.#waitingCallsByKey.delete(key);
        settle();
      };
      const waitingCall = { start: leaveQueue(resolve), refuse: leaveQueue(() => reject(this.#createBusyError(key))) };
      const abort = leaveQueue(() =>
        reject(signal?.reason?.name === 'TimeoutError' ? this.#createBusyError(key) : signal?.reason),
      );
      this.#waitingCallsByKey.set(key, [...(this.#waitingCallsByKey.get(key) ?? []), waitingCall]);
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  #startNextCalls(): void {
    for (;;) {
      const [nextKey] = [...this.#waitingCallsByKey.keys()]
        .filter((key) => this.#canRun(key))
        .sort(
          (left, right) =>
            this.#countRunning(left) - this.#countRunning(right) ||
            (this.#lastSlotSequenceNumbers.peek(left) ?? 0) - (this.#lastSlotSequenceNumbers.peek(right) ?? 0),
        );
      if (nextKey === undefined) return;
      this.#occupySlot(nextKey);
      this.#waitingCallsByKey.get(nextKey)?.[0]?.start();
    }
  }

  #createBusyError(key: string): AdLibraryError {
    const { maxRunningCalls, maxRunningCallsPerKey, workName } = this.#options;
    const roundsAhead = Math.max(
      this.#countWaiting(key) / maxRunningCallsPerKey,
      this.waitingCount / maxRunningCalls,
      1,
    );
    const seconds = Math.min(60, Math.max(1, Math.ceil((this.#averageSlotMs / 1000) * roundsAhead)));
    const problem = `Too many ${workName} are waiting. A place should be free in about ${seconds} s.`;
    const details = { retryAfterSeconds: seconds };
    return new AdLibraryError({ kind: 'busy', problem, wasSent: false, details });
  }
}
