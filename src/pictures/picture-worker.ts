import type { Worker } from 'node:worker_threads';
import { startWorker } from '../workers/start-worker.ts';
import type { DrawReply, DrawRequest } from './messages.ts';

/** Undefined where the picture cannot be decoded; `slow` and `ended` where the thread gave no answer. */
type DrawResult = DrawReply | 'slow' | 'ended';

const source = { from: import.meta.url, source: './worker.ts', built: './picture-worker.js' };

/** Loading the thread. */
const startMs = 20_000;

/** One thread that decodes and draws: a request is answered before the next is sent. */
export class PictureWorker {
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
