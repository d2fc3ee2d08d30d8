import type { Worker } from 'node:worker_threads';
import { raceAbort } from '../api/call.ts';
import { startWorker } from '../workers/start-worker.ts';
import { Turns } from '../workers/turns.ts';
import type { DrawReply, DrawRequest } from './sheet.ts';

export interface WorkerLimits {
  maxWorkers: number;
  /** For one picture or one sheet, in milliseconds. */
  drawMs: number;
  /** How long a worker without work is kept. */
  idleMs: number;
}

interface DrawOptions {
  tenantId: string;
  signal: AbortSignal;
  /** Ends the thread afterwards, because WebAssembly never gives back the memory it took. */
  isHeavy?: boolean;
}

export type Drawn = { jpeg: Uint8Array } | { failed: 'damaged' | 'slow' | 'ended' };

const queue = { maxWaiting: 1000, of: 'pictures' };

/** A few threads that decode pictures and draw sheets for all tenants, for each one at a time. */
export class PictureWorkers {
  readonly #limits: WorkerLimits;
  readonly #turns: Turns;
  /** One large picture at a time: it takes hundreds of megabytes. */
  readonly #heavyTurns = new Turns({ maxRunning: 1, perTenant: 1, ...queue });
  readonly #idle = new Map<PictureWorker, NodeJS.Timeout>();
  readonly #all = new Set<PictureWorker>();

  constructor(limits: WorkerLimits) {
    this.#limits = limits;
    this.#turns = new Turns({ maxRunning: limits.maxWorkers, perTenant: 1, ...queue });
  }

  async draw(request: DrawRequest, options: DrawOptions): Promise<Drawn> {
    const { tenantId, signal, isHeavy = false } = options;
    const endHeavy = isHeavy ? await this.#heavyTurns.take(tenantId, signal) : () => {};
    const end = await this.#turns.take(tenantId, signal).catch((error) => {
      endHeavy();
      throw error;
    });
    const drawn = this.#draw(request, isHeavy).finally(() => {
      end();
      endHeavy();
    });
    // An abort does not stop the thread; its slot is freed when it ends.
    return raceAbort(drawn, signal);
  }

  close(): void {
    for (const worker of this.#all) worker.end();
  }

  async #draw(request: DrawRequest, isHeavy: boolean): Promise<Drawn> {
    const worker = this.#take();
    const reply = await worker.ask(request, this.#limits.drawMs);
    // What a picture that cannot be decoded leaves behind is not known.
    if (isHeavy || reply === undefined) worker.end();
    if (worker.alive) this.#idle.set(worker, setTimeout(() => this.#drop(worker), this.#limits.idleMs).unref());
    else this.#drop(worker);
    if (reply === undefined) return { failed: 'damaged' };
    return typeof reply === 'string' ? { failed: reply } : { jpeg: reply };
  }

  #take(): PictureWorker {
    for (const [worker, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(worker);
      if (worker.alive) return worker;
      this.#drop(worker);
    }
    const worker = new PictureWorker();
    this.#all.add(worker);
    return worker;
  }

  #drop(worker: PictureWorker): void {
    this.#idle.delete(worker);
    this.#all.delete(worker);
    worker.end();
  }
}

/** Undefined where the picture cannot be decoded; `slow` and `ended` where the thread gave no answer. */
type DrawResult = DrawReply | 'slow' | 'ended';

const source = { from: import.meta.url, source: './worker.ts', built: './picture-worker.js' };

/** Loading the thread. */
const startMs = 20_000;

/** One thread that decodes and draws: a request is answered before the next is sent. */
class PictureWorker {
  readonly #worker: Worker;
  readonly #started: Promise<DrawResult>;
  #settle: ((result: DrawResult) => void) | undefined;
  alive = true;

  constructor() {
    this.#worker = startWorker<DrawReply>(source, {
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      onMessage: (reply) => this.#settle?.(reply),
      onEnd: () => this.end(),
    });
    this.#started = this.#nextResult(startMs);
  }

  /** A thread that takes longer than it may is ended. */
  async ask(request: DrawRequest, maxMs: number): Promise<DrawResult> {
    await this.#started;
    if (!this.alive) return 'ended';
    this.#worker.postMessage(request);
    return this.#nextResult(maxMs);
  }

  end(): void {
    this.alive = false;
    this.#settle?.('ended');
    void this.#worker.terminate();
  }

  #nextResult(maxMs: number): Promise<DrawResult> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve('slow');
        this.end();
      }, maxMs);
      this.#settle = (result) => {
        clearTimeout(timer);
        resolve(result);
      };
    });
  }
}
