import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** Plural noun for the error message of an overloaded pool, e.g. "pictures" in "Too many pictures are waiting." */
  workName: string;
  /** The largest number of waiting calls of all tenants together. Default: 256. */
  maxWaiting?: number;
  worker: WorkerSource;
  /** The data that is passed to each new worker. `PooledWorker` adds the property `stop`. */
  workerData?: object;
  /**
   * The largest number of workers that compute at the same time. One tenant uses at most one of them. Workers that
   * `reserveWorker` has reserved do not count.
   */
  maxWorkers: number;
  /** How long an idle worker stays alive, in milliseconds. */
  idleMs: number;
}

/** Thrown when a worker does not reply within the time limit of a request. */
export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerTimeoutError';
}

/** Thrown when the worker fails or is terminated while a request is pending. */
export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDiedError';
}

/**
 * A pool of worker threads that tenants share fairly. The owner of the pool attaches `data` to each worker, e.g. which
 * dataset the worker has loaded. `takeIdleWorker` selects a worker by its data.
 */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  /** Workers that are reserved across several slots; see `reserveWorker`. */
  readonly #checkedOut = new Set<PooledWorker<Request, Reply, Data>>();
  /** Idle workers, each with the timer that terminates it. The worker that has been idle longest comes first. */
  readonly #idle = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...named } = options;
    this.#options = options;
    this.#slots = new Semaphore({ maxRunning: maxWorkers, maxRunningPerKey: 1, ...named });
  }

  /**
   * Waits until the tenant may use a worker, then runs `work`.
   * @throws AdLibraryError `busy` if too many calls are waiting
   */
  runInSlot<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#slots.run(tenantId, signal, work);
  }

  /** Returns an idle worker whose data matches and marks it as busy. Returns undefined if there is none. */
  takeIdleWorker(matches: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idle.keys()].filter(({ data }) => matches(data));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a worker. Terminates idle workers if the pool already has `maxWorkers`. */
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
   * Reserves a worker for work that continues after the current slot, e.g. a long export. Meanwhile, the pool may start
   * another worker for the slot.
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
  /** When this signal aborts, the worker is asked to stop by setting its `stop` flag. */
  signal?: AbortSignal | undefined;
  /**
   * How long a worker may take to reply after its `stop` flag was set, in milliseconds. After that, the worker is
   * terminated.
   */
  graceMs?: number;
}

/** How long a worker may take to load, in milliseconds. */
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
    // Call `unref` after the listeners are added, because each added listener refs the thread and so keeps the process
    // alive.
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
