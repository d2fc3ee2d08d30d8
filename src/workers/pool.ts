import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** The plural noun of the work, for the message of an overloaded pool: "Too many pictures are waiting." */
  workName: string;
  /** The largest number of waiting calls of all tenants. By default 256. */
  maxWaiting?: number;
  worker: WorkerSource;
  /** The data that each worker starts with. The pool adds `stop`; see `PooledWorker`. */
  workerData?: object;
  /**
   * The largest number of workers that compute at the same time, each for another tenant. Workers that are checked out
   * do not count.
   */
  maxWorkers: number;
  /** How long an idle worker lives, in milliseconds. */
  idleMs: number;
}

/** The error of a request that a worker did not answer in time. */
export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerTimeoutError';
}

/** The error of a request whose worker has failed or was terminated. */
export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDiedError';
}

/**
 * A pool of worker threads. A semaphore shares the workers fairly between tenants. Each worker has `data` that the user
 * of the pool chooses, for example the dataset that the worker has loaded. `takeIdleWorker` finds a worker by this data.
 */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  /** Workers that are in use for longer than one slot. */
  readonly #checkedOut = new Set<PooledWorker<Request, Reply, Data>>();
  /** Idle workers with the timers that end them. The worker that has been idle for the longest time comes first. */
  readonly #idle = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...named } = options;
    this.#options = options;
    this.#slots = new Semaphore({ maxRunning: maxWorkers, maxRunningPerKey: 1, ...named });
  }

  /**
   * Waits for a free slot of the tenant, then runs `work`.
   * @throws AdLibraryError `busy` if too many calls are waiting
   */
  runInSlot<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#slots.run(tenantId, signal, work);
  }

  /** Takes the first idle worker whose data matches; undefined if there is none. */
  takeIdleWorker(matches: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idle.keys()].filter(({ data }) => matches(data));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a worker. Terminates idle workers first if the pool would otherwise exceed `maxWorkers`. */
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

  /** Makes a worker available for `takeIdleWorker`, and terminates it after `idleMs`. */
  returnToIdle(worker: PooledWorker<Request, Reply, Data>): void {
    if (!worker.isAlive || this.#checkedOut.has(worker)) return;
    this.#idle.set(worker, setTimeout(() => void worker.terminate(), this.#options.idleMs).unref());
  }

  /** Reserves a worker for longer than one slot. The pool may start another worker meanwhile. */
  checkOut(worker: PooledWorker<Request, Reply, Data>): void {
    this.#workers.delete(worker);
    this.#checkedOut.add(worker);
  }

  /** Takes a checked-out worker back. Terminates the worker if the pool has `maxWorkers` others by now. */
  checkIn(worker: PooledWorker<Request, Reply, Data>): void {
    this.#checkedOut.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.terminate();
    this.#workers.add(worker);
    this.returnToIdle(worker);
  }

  /** Terminates all workers. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#checkedOut].map((worker) => worker.terminate()));
  }

  #removeFromIdle(worker: PooledWorker<Request, Reply, Data>): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
  }
}

interface RequestOptions {
  /** The time limit, in milliseconds. A worker that exceeds it is terminated. */
  ms: number;
  /** Cancels the request by setting `stop`. */
  signal?: AbortSignal | undefined;
  /** How long a worker may take to answer after `stop` was set, in milliseconds. Afterwards it is terminated. */
  graceMs?: number;
}

/** The time limit for loading a worker, in milliseconds. */
const startTimeoutMs = 20_000;

/**
 * A worker thread that answers one request after the other. The thread sends one message when it is ready. Its
 * `workerData` contains `stop`, the buffer of a shared `Int32Array`. The first element is 1 if the thread should stop
 * working on the current request.
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
    // This call must follow the listeners, because adding a listener keeps the process alive.
    this.#thread.unref();
    this.#ready = this.#waitForReply(startTimeoutMs);
    this.#ready.catch(() => {});
  }

  /** False after the thread has ended or has been told to end. */
  get isAlive(): boolean {
    return this.#endReason === undefined;
  }

  /**
   * Sends a request and returns the reply.
   * @throws WorkerTimeoutError; WorkerDiedError; the reason of the signal if it aborts
   */
  async sendRequest(request: Request, { ms, signal, graceMs = 0 }: RequestOptions): Promise<Reply> {
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
      return await this.#waitForReply(ms + graceMs);
    } finally {
      clearTimeout(graceTimer);
      signal?.removeEventListener('abort', abort);
      signal?.throwIfAborted();
    }
  }

  /** Terminates the thread. A pending request fails with the error. */
  async terminate(error: Error = new WorkerDiedError('The worker was ended.')): Promise<void> {
    if (!this.#endReason) this.#onEnd();
    this.#endReason ??= error;
    this.#pendingReply?.reject(error);
    await this.#thread.terminate();
  }

  /** Waits for the next message of the thread, and terminates the thread if none arrives in time. */
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
