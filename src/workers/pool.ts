import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** A plural noun for error messages, e.g. "pictures" in "Too many pictures are waiting." */
  workName: string;
  /**
   * The maximum number of calls that may wait for a worker, for all tenants (API keys) together. The default is 256.
   */
  maxWaitingCalls?: number;
  worker: WorkerSource;
  /** Creates the `workerData` of a new worker thread. `PooledWorker` adds the `stop` property to this object. */
  createWorkerData?: () => object;
  /**
   * The maximum number of workers that compute at the same time. Workers that `reserveWorker` has reserved do not
   * count. One tenant (API key) uses at most one worker.
   */
  maxWorkers: number;
  /** How long an idle worker stays alive, in milliseconds. */
  idleMs: number;
}

/** Thrown if a worker does not reply to a request in time. */
export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerTimeoutError';
}

/** Thrown if a worker crashes or is terminated before it replies to a request. */
export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDiedError';
}

/**
 * A pool of worker threads that tenants (API keys) share fairly. The `loadedData` of a worker says, for example,
 * which dataset the worker has loaded. `takeIdleWorker` selects a worker by its `loadedData`.
 */
export class WorkerPool<Request, Reply, LoadedData = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, LoadedData>>();
  /** The workers that `reserveWorker` has reserved for long work. These workers do not count toward `maxWorkers`. */
  readonly #reservedWorkers = new Set<PooledWorker<Request, Reply, LoadedData>>();
  /**
   * The idle workers, each with the timer that will terminate the worker. The worker that has been idle for the longest
   * time comes first.
   */
  readonly #idleWorkers = new Map<PooledWorker<Request, Reply, LoadedData>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...otherOptions } = options;
    this.#options = options;
    this.#slots = new Semaphore({ maxRunningCalls: maxWorkers, maxRunningCallsPerKey: 1, ...otherOptions });
  }

  /**
   * Waits until the tenant (API key) may use a worker, then calls `runWork`.
   * @throws AdLibraryError `busy` if too many calls are waiting
   */
  runInSlot<Result>(
    tenantId: string,
    signal: AbortSignal | undefined,
    runWork: () => Promise<Result>,
  ): Promise<Result> {
    return this.#slots.runInSlot(tenantId, signal, runWork);
  }

  /**
   * Removes the first idle worker for whose data `isSuitableData` returns true, and returns the worker. Returns
   * undefined if there is no such worker.
   */
  takeIdleWorker(
    isSuitableData: (loadedData: LoadedData) => boolean = () => true,
  ): PooledWorker<Request, Reply, LoadedData> | undefined {
    const [worker] = [...this.#idleWorkers.keys()].filter(({ loadedData }) => isSuitableData(loadedData));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a new worker. If the pool already has `maxWorkers` workers, terminates idle workers first. */
  startWorker(loadedData: LoadedData): PooledWorker<Request, Reply, LoadedData> {
    const { worker: workerSource, createWorkerData } = this.#options;
    // Create the data first. If creating the data fails, the idle workers keep running.
    const workerData = createWorkerData?.();
    for (const idleWorker of this.#idleWorkers.keys())
      if (this.#workers.size >= this.#options.maxWorkers) void idleWorker.terminate();
    const worker = new PooledWorker<Request, Reply, LoadedData>(
      loadedData,
      { source: workerSource, workerData },
      () => {
        this.#removeFromIdle(worker);
        this.#workers.delete(worker);
        this.#reservedWorkers.delete(worker);
      },
    );
    this.#workers.add(worker);
    return worker;
  }

  /**
   * Makes a worker available to `takeIdleWorker`. The pool terminates the worker if no caller takes it within `idleMs`.
   */
  returnToIdle(worker: PooledWorker<Request, Reply, LoadedData>): void {
    if (!worker.isAlive || this.#reservedWorkers.has(worker)) return;
    this.#idleWorkers.set(worker, setTimeout(() => void worker.terminate(), this.#options.idleMs).unref());
  }

  /**
   * Reserves a worker for long work, e.g. an export that continues after `runInSlot` has ended. The pool may start
   * another worker to replace the reserved worker.
   */
  reserveWorker(worker: PooledWorker<Request, Reply, LoadedData>): void {
    this.#workers.delete(worker);
    this.#reservedWorkers.add(worker);
  }

  /**
   * Returns a reserved worker to the pool. Terminates the worker if the pool already has `maxWorkers` other workers.
   */
  returnReservedWorker(worker: PooledWorker<Request, Reply, LoadedData>): void {
    this.#reservedWorkers.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.terminate();
    this.#workers.add(worker);
    this.returnToIdle(worker);
  }

  /** Terminates all workers, including reserved workers. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#reservedWorkers].map((worker) => worker.terminate()));
  }

  #removeFromIdle(worker: PooledWorker<Request, Reply, LoadedData>): void {
    clearTimeout(this.#idleWorkers.get(worker));
    this.#idleWorkers.delete(worker);
  }
}

interface RequestOptions {
  /** The time limit of the request, in milliseconds. A worker that exceeds this limit is terminated. */
  timeoutMs: number;
  /**
   * A signal that cancels the request. When it aborts, the `stop` flag of the worker is set, and the worker should stop
   * working on the request.
   */
  signal?: AbortSignal | undefined;
  /**
   * How long a worker may take to reply after its `stop` flag was set, in milliseconds. After this time, the worker is
   * terminated.
   */
  graceMs?: number;
}

/** How long a new worker may take to load its code, in milliseconds. */
const startTimeoutMs = 20_000;

/**
 * A worker thread that handles one request at a time. The thread sends a message when it is ready. The `stop` property
 * of its `workerData` is the buffer of a shared `Int32Array`. If the first element of this array is 1, the thread
 * should stop working on the current request.
 */
export class PooledWorker<Request, Reply, LoadedData> {
  loadedData: LoadedData;
  readonly #thread: Worker;
  readonly #stopFlag = new Int32Array(new SharedArrayBuffer(4));
  readonly #readyPromise: Promise<Reply>;
  readonly #onEnd: () => void;
  #pendingReply: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;
  #endReason: Error | undefined;

  constructor(
    loadedData: LoadedData,
    { source, workerData }: { source: WorkerSource; workerData?: object | undefined },
    onEnd: () => void,
  ) {
    this.loadedData = loadedData;
    this.#onEnd = onEnd;
    this.#thread = startWorker(source, { ...workerData, stop: this.#stopFlag.buffer });
    this.#thread.on('message', (reply) => this.#pendingReply?.resolve(reply));
    this.#thread.on('error', (cause) => this.terminate(new WorkerDiedError('The worker failed.', { cause })));
    this.#thread.on('exit', () => this.terminate());
    // Let the process exit while this thread is running. Call `unref` after adding the listeners, because adding a
    // listener undoes `unref`.
    this.#thread.unref();
    this.#readyPromise = this.#waitForReply(startTimeoutMs);
    this.#readyPromise.catch(() => {});
  }

  /** True until the thread ends or is told to end. */
  get isAlive(): boolean {
    return this.#endReason === undefined;
  }

  /**
   * Sends a request to the worker thread and returns the reply.
   * @throws WorkerTimeoutError if the worker does not reply in time
   * @throws WorkerDiedError if the worker fails or is terminated
   * @throws the reason of the signal, if the signal aborts
   */
  async sendRequest(request: Request, { timeoutMs, signal, graceMs = 0 }: RequestOptions): Promise<Reply> {
    signal?.throwIfAborted();
    await this.#readyPromise;
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

  /** Terminates the thread and rejects the pending request with `error`. */
  async terminate(error: Error = new WorkerDiedError('The worker was ended.')): Promise<void> {
    if (!this.#endReason) this.#onEnd();
    this.#endReason ??= error;
    this.#pendingReply?.reject(error);
    await this.#thread.terminate();
  }

  /** Waits for the next message of the thread. Terminates the thread if it sends no message within `timeoutMs`. */
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
