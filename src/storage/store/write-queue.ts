import { AdLibraryError } from '../../api/errors.ts';
import type { Store } from '../storage.ts';

interface QueuedWrite {
  write: () => Promise<unknown>;
  onGiveUp: (error: unknown) => void;
  bytes: number;
}

interface WriteOptions {
  bytes?: number;
  /** Called with the error if the write is lost, either because a retry cannot help or because the queue is full. */
  onGiveUp?(error: unknown): void;
}

/**
 * The assumed size of a small write in bytes, and the fraction of the queue that is reserved for small writes. Small
 * writes matter most, because they record charges.
 */
const smallWriteBytes = 1000;
const smallWriteShare = 0.25;

/** The delay before the first retry, in milliseconds. The delay doubles after each failed attempt. */
const firstRetryDelayMs = 2000;

interface WriteQueueOptions {
  /** The memory limit for all writes that wait for a retry, in bytes. */
  maxBytes: number;
  maxDelayMs?: number;
  /** Calls `callback` after a delay. The default is a timer that does not keep the process alive. */
  runAfter?(delayMs: number, callback: () => void): void;
}

const scheduleInBackground = (delayMs: number, callback: () => void): void =>
  void setTimeout(callback, delayMs).unref();

/**
 * A queue of writes that failed temporarily. The writes wait in memory, up to a limit, and are retried until they
 * succeed. The queue retries them after a delay, and when its owner calls `retryWrites`. `wrapStoreWithRetries` and
 * `wrapWithRetryBeforeCalls` also start a retry when the store is used.
 */
export class WriteQueue {
  /** The writes that failed and will be retried. */
  readonly #pendingWrites = new Set<QueuedWrite>();
  /** The writes whose first attempt is in progress. */
  readonly #runningWrites = new Set<Promise<void>>();
  readonly #maxBytes: number;
  readonly #maxDelayMs: number;
  readonly #runAfter: (delayMs: number, callback: () => void) => void;
  #bytes = 0;
  #currentRun: Promise<void> | undefined;
  #isScheduled = false;
  #delayMs = firstRetryDelayMs;
  /**
   * The time until which the queue pauses, by `performance.now()`. During a pause, `retryWritesIfDue` retries
   * nothing. The queue pauses after a run that could not get a lock.
   */
  #pausedUntil = 0;

  constructor({ maxBytes, maxDelayMs = 60_000, runAfter = scheduleInBackground }: WriteQueueOptions) {
    this.#maxBytes = maxBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#runAfter = runAfter;
  }

  /**
   * Runs a write now, and retries the write later if the store is unavailable or busy. Never rejects. A write may be
   * retried although it has succeeded, so it must be idempotent.
   */
  write(performWrite: () => Promise<unknown>, options: WriteOptions = {}): Promise<void> {
    const runningWrite = this.#writeOrQueue(performWrite, options).finally(() => {
      this.#runningWrites.delete(runningWrite);
    });
    this.#runningWrites.add(runningWrite);
    return runningWrite;
  }

  /**
   * Waits for the writes in progress, and retries the failed writes once. Call this method before the process ends. A
   * process that ends during a write may leave the lock file of its data folder behind.
   */
  async close(): Promise<void> {
    while (this.#runningWrites.size > 0) await Promise.all(this.#runningWrites);
    await this.retryWrites();
  }

  async #writeOrQueue(performWrite: () => Promise<unknown>, options: WriteOptions): Promise<void> {
    const { bytes = smallWriteBytes, onGiveUp = () => {} } = options;
    try {
      await performWrite();
    } catch (error) {
      const maxBytes = bytes > smallWriteBytes ? (1 - smallWriteShare) * this.#maxBytes : this.#maxBytes;
      if (!isTemporary(error) || this.#bytes + bytes > maxBytes) return onGiveUp(error);
      this.#bytes += bytes;
      this.#pendingWrites.add({ write: performWrite, onGiveUp, bytes });
      this.#scheduleRetry();
    }
  }

  /**
   * Retries the pending writes, the smallest first, until one of them fails. Because of this order, a write that is too
   * large for the store does not block the others.
   */
  retryWrites(): Promise<void> {
    this.#currentRun ??= this.#retryAllWrites().finally(() => {
      this.#currentRun = undefined;
    });
    return this.#currentRun;
  }

  /**
   * Retries the pending writes, if there are any. After a run that could not get a lock, the queue pauses for as long
   * as that run took. Otherwise, every call would wait several seconds for the lock.
   */
  async retryWritesIfDue(): Promise<void> {
    if (this.#pendingWrites.size > 0 && (this.#currentRun || performance.now() >= this.#pausedUntil))
      await this.retryWrites();
  }

  /**
   * Retries the pending writes in the background. Call this method after a successful write, which shows that the store
   * is available again.
   */
  onWriteSucceeded(): void {
    if (this.#pendingWrites.size > 0 && !this.#currentRun) void this.retryWrites();
  }

  async #retryAllWrites(): Promise<void> {
    for (const write of [...this.#pendingWrites].sort((left, right) => left.bytes - right.bytes)) {
      const startedAt = performance.now();
      try {
        await write.write();
      } catch (error) {
        if (isTemporary(error)) {
          if (isBusy(error)) this.#pausedUntil = 2 * performance.now() - startedAt;
          this.#delayMs = Math.min(2 * this.#delayMs, this.#maxDelayMs);
          this.#scheduleRetry();
          return;
        }
        write.onGiveUp(error);
      }
      this.#pendingWrites.delete(write);
      this.#bytes -= write.bytes;
    }
    this.#delayMs = firstRetryDelayMs;
  }

  #scheduleRetry(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#runAfter(this.#delayMs, () => {
      this.#isScheduled = false;
      if (this.#pendingWrites.size > 0) void this.retryWrites();
    });
  }
}

/** Wraps a store so that each successful write starts a retry of the pending writes in the background. */
export function wrapStoreWithRetries(store: Store, queue: WriteQueue): Store {
  const retryWritesAfter = async <Reply>(pendingWrite: Promise<Reply>): Promise<Reply> => {
    const reply = await pendingWrite;
    queue.onWriteSucceeded();
    return reply;
  };
  return {
    ...store,
    swapDocument: (...args) => retryWritesAfter(store.swapDocument(...args)),
    putItems: (...args) => retryWritesAfter(store.putItems(...args)),
  };
}

/**
 * Wraps the methods of an object that uses a store. Each method first runs the queue, so that the method sees the
 * results of pending writes.
 *
 * Do not wrap the store itself. Otherwise, a change of a document would wait for the queue while a write in the queue
 * waits for the same document, which is a deadlock.
 */
export function wrapWithRetryBeforeCalls<Methods extends object>(queue: WriteQueue, methods: Methods): Methods {
  const wrappedMethods = Object.entries(methods).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      await queue.retryWritesIfDue();
      return method(...args);
    },
  ]);
  return Object.fromEntries(wrappedMethods) as Methods;
}

/** A queue for a store that is always available. It runs each write once and never retries it. */
export const noQueue: Pick<WriteQueue, 'write'> = {
  write: async (performWrite, { onGiveUp = () => {} } = {}) => void (await performWrite().catch(onGiveUp)),
};

const isBusy = (error: unknown) => error instanceof AdLibraryError && error.failure.kind === 'busy';

const isTemporary = (error: unknown) =>
  isBusy(error) || (error instanceof AdLibraryError && error.failure.kind === 'unavailable');
