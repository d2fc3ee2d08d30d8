import type { Worker } from 'node:worker_threads';
import { Semaphore } from './semaphore.ts';
import { startWorker, type WorkerSource } from './start-worker.ts';

interface PoolOptions {
  /** The name of the work, for the message that too much of it waits. */
  name: string;
  maxWaiting?: number;
  worker: WorkerSource;
  /** What a worker is started with; `stop` is added to it, see PooledWorker. */
  workerData?: object;
  /** The most that compute at once, each for another tenant, and the most that are kept besides those that are lent. */
  maxWorkers: number;
  idleMs: number;
}

export class WorkerLate extends Error {
  override readonly name = 'WorkerLate';
}

export class WorkerDied extends Error {
  override readonly name = 'WorkerDied';
}

/** With turns between tenants. The user of the pool decides what a worker holds, and finds it again by that. */
export class WorkerPool<Request, Reply, Data = undefined> {
  readonly #options: PoolOptions;
  readonly #turns: Semaphore;
  readonly #workers = new Set<PooledWorker<Request, Reply, Data>>();
  readonly #lent = new Set<PooledWorker<Request, Reply, Data>>();
  /** Idle workers, the one unused for longest first. */
  readonly #idle = new Map<PooledWorker<Request, Reply, Data>, NodeJS.Timeout>();

  constructor(options: PoolOptions) {
    const { maxWorkers, ...named } = options;
    this.#options = options;
    this.#turns = new Semaphore({ maxRunning: maxWorkers, perKey: 1, ...named });
  }

  /** Does work when it is the tenant's turn. @throws AdLibraryError `busy` where too many wait */
  inTurn<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.run(tenantId, signal, work);
  }

  takeIdle(fits: (data: Data) => boolean = () => true): PooledWorker<Request, Reply, Data> | undefined {
    const [worker] = [...this.#idle.keys()].filter(({ data }) => fits(data));
    if (worker) this.#wake(worker);
    return worker;
  }

  /** Starts a worker. If there would be too many, it replaces an idle one. */
  start(data: Data): PooledWorker<Request, Reply, Data> {
    for (const unused of this.#idle.keys()) if (this.#workers.size >= this.#options.maxWorkers) void unused.end();
    const { worker: source, workerData } = this.#options;
    const worker = new PooledWorker<Request, Reply, Data>(data, { source, workerData }, () => {
      this.#wake(worker);
      this.#workers.delete(worker);
      this.#lent.delete(worker);
    });
    this.#workers.add(worker);
    return worker;
  }

  rest(worker: PooledWorker<Request, Reply, Data>): void {
    if (!worker.isAlive || this.#lent.has(worker)) return;
    this.#idle.set(worker, setTimeout(() => void worker.end(), this.#options.idleMs).unref());
  }

  /** Takes a worker out for longer than a turn: another may be started in its place. */
  lend(worker: PooledWorker<Request, Reply, Data>): void {
    this.#workers.delete(worker);
    this.#lent.add(worker);
  }

  takeBack(worker: PooledWorker<Request, Reply, Data>): void {
    this.#lent.delete(worker);
    if (!worker.isAlive) return;
    if (this.#workers.size >= this.#options.maxWorkers) return void worker.end();
    this.#workers.add(worker);
    this.rest(worker);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers, ...this.#lent].map((worker) => worker.end()));
  }

  #wake(worker: PooledWorker<Request, Reply, Data>): void {
    clearTimeout(this.#idle.get(worker));
    this.#idle.delete(worker);
  }
}

interface AskOptions {
  /** How long the worker may take; then it is ended. */
  ms: number;
  /** Sets `stop`. The worker stays alive if it answers within the grace. */
  signal?: AbortSignal | undefined;
  graceMs?: number;
}

/** How long loading a worker may take, in milliseconds. */
const startMs = 20_000;

/**
 * One thread, which reports once that it is ready. Each request is answered before the next is sent. Its `workerData`
 * has `stop`, a shared whole number: not 0 when the current request is to stop.
 */
export class PooledWorker<Request, Reply, Data> {
  data: Data;
  readonly #thread: Worker;
  readonly #stop = new Int32Array(new SharedArrayBuffer(4));
  readonly #ready: Promise<Reply>;
  readonly #onEnd: () => void;
  #waiting: { resolve(reply: Reply): void; reject(error: Error): void } | undefined;
  #ended: Error | undefined;

  constructor(
    data: Data,
    { source, workerData }: { source: WorkerSource; workerData?: object | undefined },
    onEnd: () => void,
  ) {
    this.data = data;
    this.#onEnd = onEnd;
    this.#thread = startWorker(source, { ...workerData, stop: this.#stop.buffer });
    this.#thread.on('message', (reply) => this.#waiting?.resolve(reply));
    this.#thread.on('error', (cause) => this.end(new WorkerDied('The worker failed.', { cause })));
    this.#thread.on('exit', () => this.end());
    // Only now, because a listener keeps the process alive.
    this.#thread.unref();
    this.#ready = this.#answer(startMs);
    this.#ready.catch(() => {});
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** @throws WorkerLate, WorkerDied, or the signal's reason when that aborts */
  async ask(request: Request, { ms, signal, graceMs = 0 }: AskOptions): Promise<Reply> {
    signal?.throwIfAborted();
    await this.#ready;
    if (this.#ended) throw this.#ended;
    Atomics.store(this.#stop, 0, 0);
    let endSoon: NodeJS.Timeout | undefined;
    const abort = () => {
      Atomics.store(this.#stop, 0, 1);
      endSoon = setTimeout(() => this.end(), graceMs);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      this.#thread.postMessage(request);
      return await this.#answer(ms + graceMs);
    } finally {
      clearTimeout(endSoon);
      signal?.removeEventListener('abort', abort);
      signal?.throwIfAborted();
    }
  }

  async end(error: Error = new WorkerDied('The worker was ended.')): Promise<void> {
    if (!this.#ended) this.#onEnd();
    this.#ended ??= error;
    this.#waiting?.reject(error);
    await this.#thread.terminate();
  }

  async #answer(withinMs: number): Promise<Reply> {
    const late = setTimeout(() => this.end(new WorkerLate('The worker took too long.')), withinMs);
    try {
      return await new Promise<Reply>((resolve, reject) => {
        this.#waiting = { resolve, reject };
      });
    } finally {
      clearTimeout(late);
      this.#waiting = undefined;
    }
  }
}
