import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from '../../api/errors.ts';
import type { RemoteStore, StorageLog, Store, StoreDriver } from '../storage.ts';

/**
 * How long the store may leave everybody without an answer, in milliseconds, and how long a call waits while others get
 * answers.
 */
const maxSilenceMs = 900;
const maxBusyMs = 5000;
/** How often it is tried whether the store is back, and how many attempts fail before a new connection is made. */
const attemptIntervalMs = 250;
const attemptsPerConnection = 8;
/** Different problems logged while the store is away. */
const maxProblems = 20;
/** How old the comparison of clocks may be, in milliseconds. */
const clockComparisonMs = 60_000;

const probeKey = 'ad-library:2:probe';
const probe = { version: 'probe', body: Buffer.from('1'), ttlMs: 1 };

/**
 * A store that may be away: a call that fails or gets no answer marks it as down. From then on calls are refused at once,
 * until a write succeeds.
 */
export class GuardedStore implements Omit<RemoteStore, 'connect' | 'isRefusal'> {
  readonly #driver: StoreDriver;
  readonly #log: StorageLog;
  readonly #problems = new Set<string>();
  #store: RemoteStore | undefined;
  onUp = () => {};
  #isUp = false;
  #isClosed = false;
  #isFullReported = false;
  #connecting: Promise<void> | undefined;
  #lastReplyAt = 0;
  /** By how much the clock of the store is ahead of the monotonic one, and when they were compared. */
  #clockOffsetMs: number;
  #clockComparedAt = Number.NEGATIVE_INFINITY;

  /** @param now the time of this process, which counts until the store tells its own */
  constructor(driver: StoreDriver, log: StorageLog, now: () => number) {
    this.#driver = driver;
    this.#log = log;
    this.#clockOffsetMs = now() - performance.now();
  }

  isUp(): boolean {
    return this.#isUp;
  }

  isNearlyFull(): boolean {
    const isNearlyFull = this.#store?.isNearlyFull() ?? false;
    if (isNearlyFull && !this.#isFullReported)
      this.#log.warn('the shared state is nearly full: less is kept of each key');
    this.#isFullReported = isNearlyFull;
    return isNearlyFull;
  }

  /** The time of the store, which continues while the store is away. */
  now(): number {
    return Math.round(performance.now() + this.#clockOffsetMs);
  }

  /** Connects in the background; resolves when the store answers, or after `ms` milliseconds. */
  async open(ms: number): Promise<void> {
    this.#connecting ??= this.#connectRepeatedly();
    const patience = new AbortController();
    const waited = wait(ms, undefined, { signal: patience.signal }).catch(() => {});
    await Promise.race([this.#connecting, waited]);
    patience.abort();
    if (this.#isUp) return;
    const problem = [...this.#problems].join('; ');
    this.#log.warn('the shared state cannot be reached yet', { hosts: this.#driver.hostAndPort, problem });
  }

  readDocument: Store['readDocument'] = (...args) => this.#callAndCompareClocks((store) => store.readDocument(...args));
  swapDocument: Store['swapDocument'] = (...args) => this.#callAndCompareClocks((store) => store.swapDocument(...args));
  readItems: Store['readItems'] = (...args) => this.#call((store) => store.readItems(...args));
  putItems: Store['putItems'] = (...args) => this.#call((store) => store.putItems(...args));
  readItemsSince: Store['readItemsSince'] = (...args) => this.#call((store) => store.readItemsSince(...args));

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isUp = false;
    await this.#store?.close();
  }

  async #callAndCompareClocks<Reply extends { now: number }>(
    ask: (store: RemoteStore) => Promise<Reply>,
  ): Promise<Reply> {
    const began = performance.now();
    const reply = await this.#call(ask);
    if (began - this.#clockComparedAt > clockComparisonMs) {
      this.#clockComparedAt = performance.now();
      this.#clockOffsetMs = reply.now - (began + this.#clockComparedAt) / 2;
    }
    return reply;
  }

  async #call<Reply>(ask: (store: RemoteStore) => Promise<Reply>): Promise<Reply> {
    const store = this.#store;
    if (!this.#isUp || store === undefined) throw createUnavailableError();
    try {
      return await this.#withTimeout(ask(store));
    } catch (error) {
      // An error of the store itself concerns one call, unless the store says that it takes no calls now.
      if (store.isRefusal(error)) this.#logOnce('warn', 'the shared state refused a call', error);
      else this.#markDown(error);
      throw createUnavailableError(error);
    }
  }

  /** Rejects if no call gets an answer for a while. While other calls get answers, the store is only busy. */
  #withTimeout<Reply>(reply: Promise<Reply>): Promise<Reply> {
    const began = performance.now();
    return new Promise((resolve, reject) => {
      let stop = () => {};
      const look = (ms: number) => {
        stop = scheduleAfterReplies(ms, () => {
          const now = performance.now();
          const remainingMs = maxSilenceMs - (now - Math.max(began, this.#lastReplyAt));
          if (remainingMs > 0 && now - began < maxBusyMs) look(remainingMs);
          else reject(new Error(`no answer within ${maxSilenceMs} ms`));
        });
      };
      look(maxSilenceMs);
      const settle = (value: Reply) => {
        this.#lastReplyAt = performance.now();
        resolve(value);
      };
      void reply.then(settle, reject).finally(() => stop());
    });
  }

  #markDown(error: unknown): void {
    if (this.#isClosed) return;
    if (this.#isUp) this.#problems.clear();
    this.#logOnce(this.#isUp ? 'warn' : 'info', 'the shared state cannot be reached', error);
    this.#isUp = false;
    this.#connecting ??= this.#connectRepeatedly();
  }

  /** Logs a problem, but not again and again. */
  #logOnce(level: 'warn' | 'info', message: string, error: unknown): void {
    const { message: problem } = error as Error;
    if (this.#problems.has(problem) || this.#problems.size >= maxProblems) return;
    this.#problems.add(problem);
    this.#log[level](message, { hosts: this.#driver.hostAndPort, problem });
  }

  async #connectRepeatedly(): Promise<void> {
    for (let attempt = 1; !this.#isClosed && !this.#isUp; attempt++) {
      try {
        await this.#connectOnce();
      } catch (error) {
        this.#logOnce('info', 'the shared state cannot be reached', error);
        if (attempt % attemptsPerConnection === 0) {
          // The connection may be lost without notice, or may lead to a machine that is no longer the store.
          this.#store?.close().catch(() => {});
          this.#store = undefined;
        }
        await wait(attemptIntervalMs, undefined, { ref: false });
      }
    }
    this.#connecting = undefined;
  }

  async #connectOnce(): Promise<void> {
    const store = this.#store ?? this.#openStore();
    await this.#withTimeout(store.connect());
    await this.#withTimeout(store.swapDocument(probeKey, '', probe));
    if (this.#isClosed) return;
    this.#problems.clear();
    this.#isUp = true;
    this.#log.info('the shared state can be reached', { hosts: this.#driver.hostAndPort });
    this.onUp();
  }

  #openStore(): RemoteStore {
    const store = this.#driver.open((error) => {
      if (this.#store === store) this.#markDown(error);
    });
    this.#store = store;
    return store;
  }
}

/** The error of a call that needs the shared state while it cannot be reached. */
export const createUnavailableError = (cause?: unknown): AdLibraryError =>
  new AdLibraryError(
    {
      kind: 'unavailable',
      problem: 'The state that all replicas of this server share cannot be reached at the moment.',
      storage: 'data',
    },
    { cause },
  );

/**
 * Calls back after `ms` milliseconds, unless it is stopped before. Answers that have arrived while this process was
 * busy are read first: timers come at the beginning of a turn of the event loop.
 */
function scheduleAfterReplies(ms: number, callback: () => void): () => void {
  let isStopped = false;
  const end = () => {
    if (!isStopped) callback();
  };
  const timer = setTimeout(() => setImmediate(() => setImmediate(end)), ms);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
