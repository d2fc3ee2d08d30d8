import { setTimeout as delay } from 'node:timers/promises';
import { AdLibraryError } from '../../api/errors.ts';
import type { RemoteStore, StorageLogger, Store, StoreDriver } from '../storage.ts';

/**
 * The time limits for calls to the store, in milliseconds. A call fails if the store does not reply to any call for
 * `maxSilenceMs`. If the store replies to other calls, it is only busy, so a call may take up to `maxBusyMs`.
 */
const maxSilenceMs = 900;
const maxBusyMs = 5000;
/**
 * The delay between two attempts to reach the store, in milliseconds, and the number of failed attempts after which a
 * new connection is opened.
 */
const attemptIntervalMs = 250;
const attemptsPerConnection = 8;
/** The maximum number of different problems that are logged during one outage of the store. */
const maxLoggedProblems = 20;
/** The interval at which the store's clock is compared with the clock of this process, in milliseconds. */
const clockComparisonIntervalMs = 60_000;

const probeKey = 'ad-library:2:probe';
const probeDocument = { version: 'probe', body: Buffer.from('1'), ttlMs: 1 };

/**
 * A circuit breaker for a store on a server that may be unreachable. After a call fails or times out, the store counts
 * as down, and all calls fail immediately. The circuit breaker tests the store in the background. After a successful
 * test write, the store counts as up again.
 */
export class CircuitBreakerStore implements Omit<RemoteStore, 'connect' | 'isRefusal'> {
  readonly #driver: StoreDriver;
  readonly #log: StorageLogger;
  readonly #loggedProblems = new Set<string>();
  #store: RemoteStore | undefined;
  /** Called whenever the store becomes reachable, e.g. to retry failed writes. */
  onReachable = () => {};
  #isUp = false;
  #isClosed = false;
  #isFullReported = false;
  #pendingConnection: Promise<void> | undefined;
  #lastReplyAt = 0;
  /**
   * The time of the store minus the monotonic clock of this process, in milliseconds, and the time at which the two
   * clocks were last compared.
   */
  #clockOffsetMs: number;
  #clockComparedAt = Number.NEGATIVE_INFINITY;

  /**
   * Creates the circuit breaker without connecting to the server. Call `open` to connect.
   * @param now returns the time of this process, which is used until the store's time is known
   */
  constructor(driver: StoreDriver, log: StorageLogger, now: () => number) {
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
      this.#log.warn('the shared state is nearly full: less data is stored for each key');
    this.#isFullReported = isNearlyFull;
    return isNearlyFull;
  }

  /**
   * Returns the store's time in milliseconds since 1970. The time is estimated from the local clock, without a call to
   * the store.
   */
  now(): number {
    return Math.round(performance.now() + this.#clockOffsetMs);
  }

  /**
   * Starts connecting to the store in the background. Resolves when the store is reachable, or when `maxWaitMs` have
   * passed.
   */
  async open(maxWaitMs: number): Promise<void> {
    this.#pendingConnection ??= this.#connectRepeatedly();
    const timeoutController = new AbortController();
    const timeout = delay(maxWaitMs, undefined, { signal: timeoutController.signal }).catch(() => {});
    await Promise.race([this.#pendingConnection, timeout]);
    timeoutController.abort();
    if (this.#isUp) return;
    const problem = [...this.#loggedProblems].join('; ');
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
    callStore: (store: RemoteStore) => Promise<Reply>,
  ): Promise<Reply> {
    const startedAt = performance.now();
    const reply = await this.#call(callStore);
    if (startedAt - this.#clockComparedAt > clockComparisonIntervalMs) this.#compareClocks(startedAt, reply);
    return reply;
  }

  /** Computes the difference between the two clocks from a reply that has just arrived. */
  #compareClocks(startedAt: number, { now: storeTime }: { now: number }): void {
    this.#clockComparedAt = performance.now();
    this.#clockOffsetMs = storeTime - (startedAt + this.#clockComparedAt) / 2;
  }

  async #call<Reply>(callStore: (store: RemoteStore) => Promise<Reply>): Promise<Reply> {
    const store = this.#store;
    if (!this.#isUp || store === undefined) throw createUnavailableError();
    try {
      return await this.#withTimeout(callStore(store));
    } catch (error) {
      // If the store itself refused the call, only this call has failed. Any other error means that the store is
      // unreachable.
      if (store.isRefusal(error)) this.#logOnce('warn', 'the shared state refused a call', error);
      else this.#markDown(error);
      throw createUnavailableError(error);
    }
  }

  /**
   * Waits for a reply from the store. Rejects if the store does not reply to any call for `maxSilenceMs`, or to this
   * call for `maxBusyMs`.
   */
  #withTimeout<Reply>(pendingReply: Promise<Reply>): Promise<Reply> {
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      let cancelCheck = () => {};
      const checkAfterDelay = (delayMs: number) => {
        cancelCheck = scheduleAfterReplies(delayMs, () => {
          const now = performance.now();
          const remainingMs = maxSilenceMs - (now - Math.max(startedAt, this.#lastReplyAt));
          if (remainingMs > 0 && now - startedAt < maxBusyMs) checkAfterDelay(remainingMs);
          else reject(new Error(`no answer within ${remainingMs > 0 ? maxBusyMs : maxSilenceMs} ms`));
        });
      };
      checkAfterDelay(maxSilenceMs);
      const settle = (value: Reply) => {
        this.#lastReplyAt = performance.now();
        resolve(value);
      };
      void pendingReply.then(settle, reject).finally(() => cancelCheck());
    });
  }

  #markDown(error: unknown): void {
    if (this.#isClosed) return;
    if (this.#isUp) this.#loggedProblems.clear();
    this.#logOnce(this.#isUp ? 'warn' : 'info', 'the shared state cannot be reached', error);
    this.#isUp = false;
    this.#pendingConnection ??= this.#connectRepeatedly();
  }

  /** Logs a problem at most once per outage of the store. */
  #logOnce(level: 'warn' | 'info', message: string, error: unknown): void {
    const { message: problem } = error as Error;
    if (this.#loggedProblems.has(problem) || this.#loggedProblems.size >= maxLoggedProblems) return;
    this.#loggedProblems.add(problem);
    this.#log[level](message, { hosts: this.#driver.hostAndPort, problem });
  }

  async #connectRepeatedly(): Promise<void> {
    for (let attempt = 1; !this.#isClosed && !this.#isUp; attempt++) {
      try {
        await this.#connectOnce();
      } catch (error) {
        this.#logOnce('info', 'the shared state cannot be reached', error);
        if (attempt === 1) void this.#logCause();
        if (attempt % attemptsPerConnection === 0) {
          // Open a new connection. The old connection may be broken without an error, or may lead to a server that is
          // no longer the primary.
          this.#store?.close().catch(() => {});
          this.#store = undefined;
        }
        await delay(attemptIntervalMs, undefined, { ref: false });
      }
    }
    this.#pendingConnection = undefined;
  }

  /** Logs why the connection failed, if the driver finds a cause that the error does not mention. */
  async #logCause(): Promise<void> {
    const failureCause = await this.#driver.explainFailure?.();
    if (failureCause !== undefined && !this.#isClosed && !this.#isUp)
      this.#logOnce('warn', 'the shared state cannot be reached', new Error(failureCause));
  }

  async #connectOnce(): Promise<void> {
    const store = this.#store ?? this.#openStore();
    await this.#withTimeout(store.connect());
    const startedAt = performance.now();
    this.#compareClocks(startedAt, await this.#withTimeout(store.swapDocument(probeKey, '', probeDocument)));
    if (this.#isClosed) return;
    this.#loggedProblems.clear();
    this.#isUp = true;
    this.#log.info('the shared state can be reached', { hosts: this.#driver.hostAndPort });
    this.onReachable();
  }

  #openStore(): RemoteStore {
    const store = this.#driver.open((error) => {
      if (this.#store === store) this.#markDown(error);
    });
    this.#store = store;
    return store;
  }
}

/** Creates the error for a tool call that needs the shared state while the store is unreachable. */
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
 * Calls `callback` after a delay, unless the returned function is called first. In an event-loop turn, Node runs timers
 * before it processes replies. The two `setImmediate` calls ensure that replies that have already arrived are processed
 * first.
 */
function scheduleAfterReplies(delayMs: number, callback: () => void): () => void {
  let isStopped = false;
  const runCallback = () => {
    if (!isStopped) callback();
  };
  const timer = setTimeout(() => setImmediate(() => setImmediate(runCallback)), delayMs);
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
