import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from '../../api/errors.ts';
import type { RemoteStore, StateLog, Store, StoreDriver } from '../storage.ts';

/**
 * How long the store may leave everybody without an answer, in milliseconds, and how long a call waits while others get
 * answers.
 */
const silentMs = 900;
const busyMs = 5000;
/** How often it is tried whether the store is back, and how many attempts fail before a new connection is made. */
const attemptEvery = 250;
const attemptsPerStore = 8;
/** Different problems logged while the store is away. */
const maxProblems = 20;
/** How old the comparison of clocks may be, in milliseconds. */
const comparedMs = 60_000;

const probeKey = 'ad-library:2:probe';
const probe = { version: 'probe', body: Buffer.from('1'), ttlMs: 1 };

/**
 * A store that may be away: a call that fails or gets no answer marks it as down. From then on calls are refused at once,
 * until a write succeeds.
 */
export class GuardedStore implements Omit<RemoteStore, 'connect' | 'refuses'> {
  readonly #driver: StoreDriver;
  readonly #log: StateLog;
  readonly #problems = new Set<string>();
  #store: RemoteStore | undefined;
  onUp = () => {};
  #isUp = false;
  #isClosed = false;
  #isFullReported = false;
  #reaching: Promise<void> | undefined;
  #answeredAt = 0;
  /** By how much the clock of the store is ahead of the monotonic one, and when they were compared. */
  #ahead: number;
  #comparedAt = Number.NEGATIVE_INFINITY;

  /** @param now the time of this process, which counts until the store tells its own */
  constructor(driver: StoreDriver, log: StateLog, now: () => number) {
    this.#driver = driver;
    this.#log = log;
    this.#ahead = now() - performance.now();
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
    return Math.round(performance.now() + this.#ahead);
  }

  /** Connects in the background; resolves when the store answers, or after `ms` milliseconds. */
  async open(ms: number): Promise<void> {
    this.#reaching ??= this.#reach();
    const patience = new AbortController();
    const waited = wait(ms, undefined, { signal: patience.signal }).catch(() => {});
    await Promise.race([this.#reaching, waited]);
    patience.abort();
    if (this.#isUp) return;
    const problem = [...this.#problems].join('; ');
    this.#log.warn('the shared state cannot be reached yet', { hosts: this.#driver.hosts, problem });
  }

  read: Store['read'] = (...args) => this.#withTime((store) => store.read(...args));
  swap: Store['swap'] = (...args) => this.#withTime((store) => store.swap(...args));
  items: Store['items'] = (...args) => this.#guard((store) => store.items(...args));
  putItems: Store['putItems'] = (...args) => this.#guard((store) => store.putItems(...args));
  itemsSince: Store['itemsSince'] = (...args) => this.#guard((store) => store.itemsSince(...args));

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isUp = false;
    await this.#store?.close();
  }

  async #withTime<Reply extends { now: number }>(ask: (store: RemoteStore) => Promise<Reply>): Promise<Reply> {
    const began = performance.now();
    const reply = await this.#guard(ask);
    if (began - this.#comparedAt > comparedMs) {
      this.#comparedAt = performance.now();
      this.#ahead = reply.now - (began + this.#comparedAt) / 2;
    }
    return reply;
  }

  async #guard<Reply>(ask: (store: RemoteStore) => Promise<Reply>): Promise<Reply> {
    const store = this.#store;
    if (!this.#isUp || store === undefined) throw stateUnavailable();
    try {
      return await this.#withPatience(ask(store));
    } catch (error) {
      // An error of the store itself concerns one call, unless the store says that it takes no calls now.
      if (store.refuses(error)) this.#report('warn', 'the shared state refused a call', error);
      else this.#markDown(error);
      throw stateUnavailable(error);
    }
  }

  /** Rejects if no call gets an answer for a while. While other calls get answers, the store is only busy. */
  #withPatience<Reply>(reply: Promise<Reply>): Promise<Reply> {
    const began = performance.now();
    return new Promise((resolve, reject) => {
      let stop = () => {};
      const look = (ms: number) => {
        stop = later(ms, () => {
          const now = performance.now();
          const remainingMs = silentMs - (now - Math.max(began, this.#answeredAt));
          if (remainingMs > 0 && now - began < busyMs) look(remainingMs);
          else reject(new Error(`no answer within ${silentMs} ms`));
        });
      };
      look(silentMs);
      const settle = (value: Reply) => {
        this.#answeredAt = performance.now();
        resolve(value);
      };
      void reply.then(settle, reject).finally(() => stop());
    });
  }

  #markDown(error: unknown): void {
    if (this.#isClosed) return;
    if (this.#isUp) this.#problems.clear();
    this.#report(this.#isUp ? 'warn' : 'info', 'the shared state cannot be reached', error);
    this.#isUp = false;
    this.#reaching ??= this.#reach();
  }

  /** Logs a problem, but not again and again. */
  #report(level: 'warn' | 'info', message: string, error: unknown): void {
    const { message: problem } = error as Error;
    if (this.#problems.has(problem) || this.#problems.size >= maxProblems) return;
    this.#problems.add(problem);
    this.#log[level](message, { hosts: this.#driver.hosts, problem });
  }

  async #reach(): Promise<void> {
    for (let attempt = 1; !this.#isClosed && !this.#isUp; attempt++) {
      try {
        await this.#attempt();
      } catch (error) {
        this.#report('info', 'the shared state cannot be reached', error);
        if (attempt % attemptsPerStore === 0) {
          // The connection may be lost without notice, or may lead to a machine that is no longer the store.
          this.#store?.close().catch(() => {});
          this.#store = undefined;
        }
        await wait(attemptEvery, undefined, { ref: false });
      }
    }
    this.#reaching = undefined;
  }

  async #attempt(): Promise<void> {
    const store = this.#store ?? this.#openStore();
    await this.#withPatience(store.connect());
    await this.#withPatience(store.swap(probeKey, '', probe));
    if (this.#isClosed) return;
    this.#problems.clear();
    this.#isUp = true;
    this.#log.info('the shared state can be reached', { hosts: this.#driver.hosts });
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
export const stateUnavailable = (cause?: unknown): AdLibraryError =>
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
function later(ms: number, callback: () => void): () => void {
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
