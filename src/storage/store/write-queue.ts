import { AdLibraryError } from '../../api/errors.ts';
import type { Store } from '../storage.ts';

interface QueuedWrite {
  write: () => Promise<unknown>;
  onGiveUp: (error: unknown) => void;
  bytes: number;
}

interface WriteOptions {
  bytes?: number;
  /** Runs if a later attempt cannot succeed, or if the queue has no room for the write. */
  onGiveUp?(error: unknown): void;
}

/** The size of most waiting writes, and the share of the queue that is reserved for them: settlements, ends of leases. */
const smallBytes = 1000;
const smallWriteShare = 0.25;

/** The first delay before an attempt that nothing else causes, in milliseconds. It doubles with each failed attempt. */
const minDelayMs = 2000;

interface WriteQueueOptions {
  /** Bytes of all waiting writes. */
  maxBytes: number;
  /** The longest delay, in milliseconds. */
  maxDelayMs?: number;
  /** Calls back after a delay, in milliseconds. By default a timer that does not keep the process alive. */
  runAfter?(delayMs: number, run: () => void): void;
}

const runInBackground = (delayMs: number, run: () => void): void => void setTimeout(run, delayMs).unref();

/**
 * Write-behind: a write that the store refuses for the moment waits in bounded memory and is attempted again until it
 * succeeds: after a delay, when the owner of the queue runs it, and at the uses that `runQueueAfterWrites` and
 * `runQueueBefore` arrange.
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
  /** By `performance.now()`. */
  #pausedUntil = 0;

  constructor({ maxBytes, maxDelayMs = 60_000, runAfter = runInBackground }: WriteQueueOptions) {
    this.#maxBytes = maxBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#runAfter = runAfter;
  }

  /**
   * Writes now, or later if the store is unavailable or busy. Never rejects. The work may run again although it
   * succeeded, so a repetition must change nothing.
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
   * Attempts the waiting writes until one fails. The smallest come first, because a write that is too large for the
   * store would delay all others.
   */
  run(): Promise<void> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * Resolves when the waiting writes have been attempted. A run that has waited for a lock without success is followed by a pause of the
   * same length: the wait takes seconds, and otherwise every call would take as long.
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
      const began = performance.now();
      try {
        await write.write();
      } catch (error) {
        if (isTemporary(error)) {
          if (isBusy(error)) this.#pausedUntil = 2 * performance.now() - began;
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
 * Returns the methods of what is built above a store. Each runs the queue first, so that it sees the writes that waited.
 * The writes in the queue use the store directly: if a single use of the store ran the queue, a change of a document
 * would wait for a write of the same document, which waits for the change.
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

/** The queue of a store that is never unavailable: a write that fails is given up. */
export const noQueue: Pick<WriteQueue, 'write'> = {
  write: async (work, { onGiveUp = () => {} } = {}) => void (await work().catch(onGiveUp)),
};

const isBusy = (error: unknown) => error instanceof AdLibraryError && error.failure.kind === 'busy';

const isTemporary = (error: unknown) =>
  isBusy(error) || (error instanceof AdLibraryError && error.failure.kind === 'unavailable');
