import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** The name of the work, for the message that too much of it waits. */
  workName: string;
  maxWaiting?: number;
  worker: WorkerSource;
  /** What a worker is started with; `stop` is added to it, see PooledWorker. */
  workerData?: object;
  /** The most that compute at once, each for another tenant, and the most that are kept besides those that are lent. */
  maxWorkers: number;
  idleMs: number;
}

export class WorkerTimeoutError extends Error {
  override readonly name = 'WorkerLate';
}

export class WorkerDiedError extends Error {
  override readonly name = 'WorkerDied';
}

/** With turns between tenants. The user of the pool decides what a worker holds, and finds it again by that. */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #slots: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  readonly #checkedOut = new Set<PooledWorker<Request, Reply, Data>>();
  /** Idle workers, the one unused for longest first. */
  readonly #idle = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...named } = options;
    this.#options = options;
    this.#slots = new Semaphore({ maxRunning: maxWorkers, maxRunningPerKey: 1, ...named });
  }

  /** Does work when it is the tenant's turn. @throws AdLibraryError `busy` where too many wait */
  runInSlot<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#slots.run(tenantId, signal, work);
  }

  takeIdleWorker(matches: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idle.keys()].filter(({ data }) => matches(data));
    if (worker) this.#removeFromIdle(worker);
    return worker;
  }

  /** Starts a worker. If there would be too many, it replaces an idle one. */
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

  returnToIdle(worker: PooledWorker<Request, Reply, Data>): void {
    if (!worker.isAlive || this.#checkedOut.has(worker)) return;
    this.#idle.set(worker, setTimeout(() => void worker.terminate(), this.#options.idleMs).unref());
  }

  /** Takes a worker out for longer than a turn: another may be started in its place. */
  checkOut(worker: PooledWorker<Request, Reply, Data>): void {
    this.#workers.delete(worker);
    this.#checkedOut.add(worker);
  }

  checkIn(worker: PooledWorker<Request, Reply, Data>): void {
    this.#checkedOut.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.terminate();
    this.#workers.add(worker);
    this.returnToIdle(worker);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#checkedOut].map((worker) => worker.terminate()));
  }

  #removeFromIdle(worker: PooledWorker<Request, Reply, Data>): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
  }
}

interface RequestOptions {
  /** How long the worker may take; then it is ended. */
  ms: number;
  /** Sets `stop`. The worker stays alive if it answers within the grace. */
  signal?: AbortSignal | undefined;
  graceMs?: number;
}

/** How long loading a worker may take, in milliseconds. */
const startTimeoutMs = 20_000;

/**
 * One thread, which reports once that it is ready. Each request is answered before the next is sent. Its `workerData`
 * has `stop`, a shared whole number: not 0 when the current request is to stop.
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
    // Only now, because a listener keeps the process alive.
    this.#thread.unref();
    this.#ready = this.#waitForReply(startTimeoutMs);
    this.#ready.catch(() => {});
  }

  get isAlive(): boolean {
    return this.#endReason === undefined;
  }

  /** @throws WorkerLate, WorkerDied, or the signal's reason when that aborts */
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

  async terminate(error: Error = new WorkerDiedError('The worker was ended.')): Promise<void> {
    if (!this.#endReason) this.#onEnd();
    this.#endReason ??= error;
    this.#pendingReply?.reject(error);
    await this.#thread.terminate();
  }

  async #waitForReply(timeoutMs: number): Promise<Reply> {
    const timer = setTimeout(() => this.terminate(new WorkerTimeoutError('The worker took too long.')), timeoutMs);
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
