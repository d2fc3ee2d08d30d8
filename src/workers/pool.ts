import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /**
   * A plural noun that names the work. It is part of the error message of an overloaded pool, e.g. "pictures" in "Too
   * many pictures are waiting."
   */
  workName: string;
  /** The maximum number of calls of all tenants (API keys) together that may wait for a worker. Default: 256. */
  maxWaiting?: number;
  worker: WorkerSource;
  /** The data that is passed to each new worker. `PooledWorker` adds the property `stop`. */
  workerData?: object;
  /**
   * The maximum number of workers that compute at the same time. One tenant (API key) uses at most one of them. Workers
   * that `reserveWorker` has reserved do not count.
   */
  maxWorkers: number;
  /** How long an idle worker stays alive, in milliseconds. */
  idleMs: number;
}

/** The error when a worker does not reply within the time limit of a request. */
export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerTimeoutError';
}

/** The error when the worker crashes or is terminated while a request waits for its reply. */
export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDiedError';
}

/**
 * A pool of worker threads that tenants (API keys) share fairly. The owner of the pool attaches `data` to each worker,
 * e.g. which dataset the worker has loaded. `takeIdleWorker` selects a worker by its data.
 */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  /** The workers that `reserveWorker` has reserved for long work. They do not count toward `maxWorkers`. */
  readonly #checkedOut = new Set<PooledWorker<Request, Reply, Data>>();
  /** The idle workers, each with the timer that terminates it. The worker that has been idle longest comes first. */
  readonly #idle = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...named } = options;
    this.#options = options;
    this.#slots = new Semaphore({ maxRunning: maxWorkers, maxRunningPerKey: 1, ...named });
  }

  /**
   * Waits until the tenant (API key) may use a worker, then runs `work`.
   * @throws AdLibraryError `busy` if too many calls are waiting
   */
  runInSlot<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#slots.run(tenantId, signal, work);
  }

  /**
   * Takes an idle worker for whose data `matches` returns true, and marks the worker as busy. Returns undefined if
   * there is no such worker.
   */
  takeIdleWorker(matches: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idle.keys()].filter(({ data }) => matches(data));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a new worker. If the pool already has `maxWorkers` workers, terminates idle ones first. */
  startWorker(data: Data): PooledWorker<Request, Reply, Data> {
    for (const idleWorker of this.#idle.keys())
      if (this.#workers.size >= this.#options.maxWorkers) void idleWorker.terminate();
    const { worker: source, workerData } = this.#options;
    const worker = new PooledWorker<Request, Reply, Data>(data, { source, workerData }, () => {
      this.#removeFromIdle(worker);
      this.#workers.delete(worker);
      this.#checkedOut.delete(worker);
    });
    this.#workers.add(worker);
    return worker;
  }

  /** Makes a worker available to `takeIdleWorker`, and terminates it if it stays idle for `idleMs`. */
  returnToIdle(worker: PooledWorker<Request, Reply, Data>): void {
    if (!worker.isAlive || this.#checkedOut.has(worker)) return;
    this.#idle.set(worker, setTimeout(() => void worker.terminate(), this.#options.idleMs).unref());
  }

  /**
   * Reserves a worker for long work, e.g. an export that continues after `runInSlot` has ended. During this time, the
   * pool may start another worker in its place.
   */
  reserveWorker(worker: PooledWorker<Request, Reply, Data>): void {
    this.#workers.delete(worker);
    this.#checkedOut.add(worker);
  }

  /**
   * Returns a reserved worker to the pool. Terminates the worker if the pool already has `maxWorkers` other workers.
   */
  returnReservedWorker(worker: PooledWorker<Request, Reply, Data>): void {
    this.#checkedOut.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.terminate();
    this.#workers.add(worker);
    this.returnToIdle(worker);
  }

  /** Terminates all workers, including those that are reserved. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#checkedOut].map((worker) => worker.terminate()));
  }

  #removeFromIdle(worker: PooledWorker<Request, Reply, Data>): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
  }
}

interface RequestOptions {
  /** The time limit in milliseconds. A worker that exceeds the limit is terminated. */
  timeoutMs: number;
  /**
   * When this signal aborts, the pool sets the `stop` flag of the worker. The worker should then stop working on the
   * request.
   */
  signal?: AbortSignal | undefined;
  /**
   * How long a worker may take to reply after its `stop` flag was set, in milliseconds. After that, the worker is
   * terminated.
   */
  graceMs?: number;
}

/** How long a new worker may take to load its code, in milliseconds. */
const startTimeoutMs = 20_000;

/**
 * A worker thread that handles one request at a time. The thread sends one message when it is ready. Its `workerData`
 * contains `stop`, the buffer of a shared `Int32Array`. The main thread sets the first element to 1 to ask the worker
 * to stop working on the current request.
 */
export class PooledWorker<Request, Reply, Data> {
  data: Data;
  readonly #thread: Worker;
  readonly #stopFlag = new Int32Array(new SharedArrayBuffer(4));
  readonly #ready: Promise<Reply>;
  readonly #onEnd: () => void;
  #pendingReply: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;
  #endReason: Error | undefined;

  constructor(
    data: Data,
    { source, workerData }: { source: WorkerSource; workerData?: object | undefined },
    onEnd: () => void,
  ) {
    this.data = data;
    this.#onEnd = onEnd;
    this.#thread = startWorker(source, { ...workerData, stop: this.#stopFlag.buffer });
    this.#thread.on('message', (reply) => this.#pendingReply?.resolve(reply));
    this.#thread.on('error', (cause) => this.terminate(new WorkerDiedError('The worker failed.', { cause })));
    this.#thread.on('exit', () => this.terminate());
    // `unref` lets the process exit while this thread is running. Call it after the listeners are added, because each
    // added listener undoes it.
    this.#thread.unref();
    this.#ready = this.#waitForReply(startTimeoutMs);
    this.#ready.catch(() => {});
  }

  /** False once the thread has ended or was told to end. */
  get isAlive(): boolean {
    return this.#endReason === undefined;
  }

  /**
   * Sends a request and returns the reply.
   * @throws WorkerTimeoutError if the worker does not reply in time
   * @throws WorkerDiedError if the worker fails or is terminated
   * @throws the reason of the signal, if the signal aborts
   */
  async sendRequest(request: Request, { timeoutMs, signal, graceMs = 0 }: RequestOptions): Promise<Reply> {
    signal?.throwIfAborted();
    await this.#ready;
    if (this.#endReason) throw this.#endReason;
    Atomics.store(this.#stopFlag, 0, 0);
    let graceTimer: NodeJS.Timeout | undefined;
    const abort = () => {
      Atomics.store(this.#stopFlag, 0, 1);
      graceTimer = setTimeout(() => this.terminate(), graceMs);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      this.#thread.postMessage(request);
      return await this.#waitForReply(timeoutMs + graceMs);
    } finally {
      clearTimeout(graceTimer);
      signal?.removeEventListener('abort', abort);
      signal?.throwIfAborted();
    }
  }

  /** Terminates the thread. The pending request is rejected with `error`. */
  async terminate(error: Error = new WorkerDiedError('The worker was ended.')): Promise<void> {
    if (!this.#endReason) this.#onEnd();
    this.#endReason ??= error;
    this.#pendingReply?.reject(error);
    await this.#thread.terminate();
  }

  /** Waits for the next message of the thread. Terminates the thread if no message arrives in time. */
  async #waitForReply(timeoutMs: number): Promise<Reply> {
    const timer = setTimeout(
      () => this.terminate(new WorkerTimeoutError('The worker did not reply in time.')),
      timeoutMs,
    );
    try {
      return await new Promise<Reply>((resolve, reject) => {
        this.#pendingReply = { resolve, reject };
      });
    } finally {
      clearTimeout(timer);
      this.#pendingReply = undefined;
    }
  }
}
