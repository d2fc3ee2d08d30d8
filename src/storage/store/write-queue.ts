import { AdLibraryError } from '../../api/errors.ts';
import type { Store } from '../storage.ts';

interface QueuedWrite {
  write: () => Promise<unknown>;
  onGiveUp: (error: unknown) => void;
  bytes: number;
}

interface WriteOptions {
  bytes?: number;
  /** Receives the error if the write cannot succeed later either, or if the queue is full. */
  onGiveUp?(error: unknown): void;
}

/**
 * The assumed size of a small write, in bytes, and the share of the queue that is reserved for small writes. Most writes are
 * small, such as settlements and ends of leases.
 */
const smallBytes = 1000;
const smallWriteShare = 0.25;

/** The delay before the first repeated attempt, in milliseconds. The delay doubles with each failed attempt. */
const minDelayMs = 2000;

interface WriteQueueOptions {
  /** The memory limit for all waiting writes. */
  maxBytes: number;
  /** The longest delay, in milliseconds. */
  maxDelayMs?: number;
  /** Calls `run` after a delay. By default, a timer that does not keep the process alive. */
  runAfter?(delayMs: number, run: () => void): void;
}

const runInBackground = (delayMs: number, run: () => void): void => void setTimeout(run, delayMs).unref();

/**
 * A queue of writes that have failed temporarily. The writes wait in limited memory and are attempted again until they
 * succeed. The queue runs after a delay, when its owner calls `run`, and as `runQueueAfterWrites` and `runQueueBefore`
 * arrange.
 */
export class WriteQueue {
  readonly #waiting = new Set<QueuedWrite>();
  readonly #maxBytes: number;
  readonly #maxDelayMs: number;
  readonly #runAfter: (delayMs: number, run: () => void) => void;
  #bytes = 0;
  #running: Promise<void> | undefined;
  #isScheduled = false;
  #delayMs = minDelayMs;
  /** When the pause after a busy run ends, by `performance.now()`. */
  #pausedUntil = 0;

  constructor({ maxBytes, maxDelayMs = 60_000, runAfter = runInBackground }: WriteQueueOptions) {
    this.#maxBytes = maxBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#runAfter = runAfter;
  }

  /**
   * Runs a write now, and later again if the store is unavailable or busy. Never rejects. The write may run again although it
   * has succeeded, so a repetition must change nothing.
   */
  async write(work: () => Promise<unknown>, options: WriteOptions = {}): Promise<void> {
    const { bytes = smallBytes, onGiveUp = () => {} } = options;
    try {
      await work();
    } catch (error) {
      const maxBytes = bytes > smallBytes ? (1 - smallWriteShare) * this.#maxBytes : this.#maxBytes;
      if (!isTemporary(error) || this.#bytes + bytes > maxBytes) return onGiveUp(error);
      this.#bytes += bytes;
      this.#waiting.add({ write: work, onGiveUp, bytes });
      this.#runLater();
    }
  }

  /**
   * Attempts the waiting writes until one of them fails. The smallest writes come first, because a write that is too large
   * for the store would otherwise block all others.
   */
  run(): Promise<void> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * Resolves when the waiting writes have been attempted. If a run has waited for a lock without success, the queue pauses
   * for the same time. Otherwise every call would wait for the lock for several seconds.
   */
  async runIfDue(): Promise<void> {
    if (this.#waiting.size > 0 && (this.#running || performance.now() >= this.#pausedUntil)) await this.run();
  }

  /** Runs the queue in the background after a write has succeeded. */
  onWritten(): void {
    if (this.#waiting.size > 0 && !this.#running) void this.run();
  }

  async #runAll(): Promise<void> {
    for (const write of [...this.#waiting].sort((left, right) => left.bytes - right.bytes)) {
      const startedAt = performance.now();
      try {
        await write.write();
      } catch (error) {
        if (isTemporary(error)) {
          if (isBusy(error)) this.#pausedUntil = 2 * performance.now() - startedAt;
          this.#delayMs = Math.min(2 * this.#delayMs, this.#maxDelayMs);
          this.#runLater();
          return;
        }
        write.onGiveUp(error);
      }
      this.#waiting.delete(write);
      this.#bytes -= write.bytes;
    }
    this.#delayMs = minDelayMs;
  }

  #runLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#runAfter(this.#delayMs, () => {
      this.#isScheduled = false;
      if (this.#waiting.size > 0) void this.run();
    });
  }
}

/** Attempts the waiting writes in the background whenever a write of the store has succeeded. */
export function runQueueAfterWrites(store: Store, queue: WriteQueue): Store {
  const runAfter = async <Reply>(writing: Promise<Reply>): Promise<Reply> => {
    const reply = await writing;
    queue.onWritten();
    return reply;
  };
  return {
    ...store,
    swapDocument: (...args) => runAfter(store.swapDocument(...args)),
    putItems: (...args) => runAfter(store.putItems(...args)),
  };
}

/**
 * Wraps the methods of an object that uses a store. Each method runs the queue first, so that the method sees the waiting
 * writes. The store itself must not run the queue before a read or write: a change of a document would wait for the queue,
 * and a write in the queue would wait for the change of the same document.
 */
export function runQueueBefore<Methods extends object>(queue: WriteQueue, methods: Methods): Methods {
  const entries = Object.entries(methods).map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      await queue.runIfDue();
      return method(...args);
    },
  ]);
  return Object.fromEntries(entries) as Methods;
}

/** The queue of a store that is always available. A write that fails is not attempted again. */
export const noQueue: Pick<WriteQueue, 'write'> = {
  write: async (work, { onGiveUp = () => {} } = {}) => void (await work().catch(onGiveUp)),
};

const isBusy = (error: unknown) => error instanceof AdLibraryError && error.failure.kind === 'busy';

const isTemporary = (error: unknown) =>
  isBusy(error) || (error instanceof AdLibraryError && error.failure.kind === 'unavailable');
