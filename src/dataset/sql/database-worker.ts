import type { Worker } from 'node:worker_threads';
import { startWorker } from '../../workers/start-worker.ts';
import type { StatementLimits } from './limits.ts';
import type { Reply, WorkerRequest, WorkerSetup } from './messages.ts';
import { SqlFailure } from './problem.ts';

export interface WorkerOptions {
  limits: StatementLimits;
  /** How long after a statement's time the worker may still take to answer; then it is ended. */
  graceMs: number;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** The worker ended before it answered. */
export class WorkerDied extends Error {
  override readonly name = 'WorkerDied';
}

/** One worker with the tables of one tenant: a request is answered before the next is sent. */
export class DatabaseWorker {
  readonly #worker: Worker;
  readonly #stop = new SharedArrayBuffer(4);
  readonly #options: WorkerOptions;
  #waiting: Waiting | undefined;
  #ended: Error | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#worker = startWorker<Reply>(source, {
      workerData: { limits: options.limits, stop: this.#stop } satisfies WorkerSetup,
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      onMessage: (reply) => this.#settle(({ resolve }) => resolve(reply)),
      onEnd: (cause) => this.#end(new WorkerDied('The worker ended.', { cause })),
    });
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves once the engine is loaded. */
  async ready(): Promise<void> {
    if (this.#ended) throw this.#ended;
    await this.#reply(OPENING_MS);
  }

  /** A signal stops the statement; the worker lives on where the statement stops in time. */
  async ask(request: WorkerRequest, signal?: AbortSignal): Promise<Reply> {
    signal?.throwIfAborted();
    if (this.#ended) throw this.#ended;
    const { limits, graceMs } = this.#options;
    const flag = new Int32Array(this.#stop);
    Atomics.store(flag, 0, 0);
    let endSoon: NodeJS.Timeout | undefined;
    const abort = () => {
      Atomics.store(flag, 0, 1);
      endSoon = setTimeout(() => this.terminate(), graceMs);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      this.#worker.postMessage(request);
      const filling = request.type === 'load' || request.type === 'seal';
      const reply = await this.#reply(filling ? OPENING_MS : limits.statementMs + graceMs);
      if (reply.type === 'failed') throw new SqlFailure(reply.problem);
      return reply;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(endSoon);
      signal?.removeEventListener('abort', abort);
    }
  }

  async terminate(): Promise<void> {
    this.#end(new WorkerDied('The worker was ended.'));
    await this.#worker.terminate();
  }

  #reply(withinMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#settle(({ reject: refuse }) => refuse(new SqlFailure({ reason: 'slow' })));
        void this.terminate();
      }, withinMs);
      this.#waiting = {
        resolve(reply) {
          clearTimeout(late);
          resolve(reply);
        },
        reject(error) {
          clearTimeout(late);
          reject(error);
        },
      };
    });
  }

  #settle(how: (waiting: Waiting) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) how(waiting);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#settle(({ reject }) => reject(error));
  }
}

const source = { from: import.meta.url, source: './worker.ts', built: './sql-worker.js' };

/** Loading the engine, or a part of the tables. */
const OPENING_MS = 20_000;
