import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** A plural noun for error messages, e.g. "pictures" in "Too many pictures are waiting." */
  workName: string;
  /** The maximum number of calls that wait for a worker, of all tenants (API keys) together. Default: 256. */
  maxWaiting?: number;
  worker: WorkerSource;
  /** The data that each new worker receives. `PooledWorker` adds the property `stop`. */
  workerData?: object;
  /**
   * The maximum number of workers that compute at the same time, not counting those that `reserveWorker` has reserved.
   * One tenant (API key) uses at most one worker.
   */
  maxWorkers: number;
  /** How long an idle worker stays alive, in milliseconds. */
  idleMs: number;
}

/** The error of a request to which the worker does not reply in time. */
export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerTimeoutError';
}

/** The error of a request whose worker crashes or is terminated before it replies. */
export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDiedError';
}

/**
 * A pool of worker threads that tenants (API keys) share fairly. Each worker has `data`, e.g. which dataset it has
 * loaded. `takeIdleWorker` selects a worker by its data.
 */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  /** The workers that `reserveWorker` has reserved for long work. They do not count toward `maxWorkers`. */
  readonly #reservedWorkers = new Set<PooledWorker<Request, Reply, Data>>();
  /** The idle workers, each with the timer that will terminate it. The one that has been idle longest comes first. */
  readonly #idleWorkers = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

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

  /** Takes an idle worker whose data `matches` accepts. Returns undefined if there is none. */
  takeIdleWorker(matches: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idleWorkers.keys()].filter(({ data }) => matches(data));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a new worker. If there are already `maxWorkers` workers, terminates idle ones first. */
  startWorker(data: Data): PooledWorker<Request, Reply, Data> {
    for (const idleWorker of this.#idleWorkers.keys())
      if (this.#workers.size >= this.#options.maxWorkers) void idleWorker.terminate();
    const { worker: workerSource, workerData } = this.#options;
    const worker = new PooledWorker<Request, Reply, Data>(data, { source: workerSource, workerData }, () => {
      this.#removeFromIdle(worker);
      this.#workers.delete(worker);
      this.#reservedWorkers.delete(worker);
    });
    this.#workers.add(worker);
    return worker;
  }

  /** Makes a worker available to `takeIdleWorker`. Terminates it after `idleMs` if nobody takes it. */
  returnToIdle(worker: PooledWorker<Request, Reply, Data>): void {
    if (!worker.isAlive || this.#reservedWorkers.has(worker)) return;
    this.#idleWorkers.set(worker, setTimeout(() => void worker.terminate(), this.#options.idleMs).unref());
  }

  /**
   * Reserves a worker for long work, e.g. an export that continues after `runInSlot` has ended. The pool may start
   * another worker in its place.
   */
  reserveWorker(worker: PooledWorker<Request, Reply, Data>): void {
    this.#workers.delete(worker);
    this.#reservedWorkers.add(worker);
  }

  /** Returns a reserved worker to the pool. Terminates it if the pool already has `maxWorkers` other workers. */
  returnReservedWorker(worker: PooledWorker<Request, Reply, Data>): void {
    this.#reservedWorkers.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.terminate();
    this.#workers.add(worker);
    this.returnToIdle(worker);
  }

  /** Terminates all workers, including reserved ones. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#reservedWorkers].map((worker) => worker.terminate()));
  }

  #removeFromIdle(worker: PooledWorker<Request, Reply, Data>): void {
    clearTimeout(this.#idleWorkers.get(worker));
    this.#idleWorkers.delete(worker);
  }
}

interface RequestOptions {
  /** The time limit in milliseconds. A worker that exceeds it is terminated. */
  timeoutMs: number;
  /** When this signal aborts, the worker's `stop` flag is set. The worker should then stop working on the request. */
  signal?: AbortSignal | undefined;
  /** How long a worker may take to reply after its `stop` flag was set, in milliseconds. Then it is terminated. */
  graceMs?: number;
}

/** How long a new worker may take to load its code, in milliseconds. */
const startTimeoutMs = 20_000;

/**
 * A worker thread that handles one request at a time. It sends a message when it is ready. Its `workerData` contains
 * `stop`, the buffer of a shared `Int32Array`. If the first element is 1, the worker should stop working on the current
 * request.
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
    // Let the process exit while this thread is running. Each added listener undoes `unref`, so call it after them.
    this.#thread.unref();
    this.#ready = this.#waitForReply(startTimeoutMs);
    this.#ready.catch(() => {});
  }

  /** False after the thread has ended or was told to end. */
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

  /** Terminates the thread, and rejects the pending request with `error`. */
  async terminate(error: Error = new WorkerDiedError('The worker was ended.')): Promise<void> {
    if (!this.#endReason) this.#onEnd();
    this.#endReason ??= error;
    this.#pendingReply?.reject(error);
    await this.#thread.terminate();
  }

  /** Waits for the next message of the thread. Terminates the thread if none arrives in time. */
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
