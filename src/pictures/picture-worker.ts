import type { Worker } from 'node:worker_threads';
import { startWorker } from '../workers/start-worker.ts';
import type { DrawReply, DrawRequest } from './messages.ts';

/** One thread that decodes and draws: a request is answered before the next is sent. */
export class PictureWorker {
  readonly #worker: Worker;
  #settle: ((reply: DrawReply | 'ended') => void) | undefined;
  alive = true;

  constructor() {
    this.#worker = startWorker(
      { from: import.meta.url, source: './worker.ts', built: './picture-worker.js' },
      { resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 } },
    );
    this.#worker.on('message', (reply: DrawReply) => this.#settle?.(reply));
    this.#worker.on('error', () => this.end());
    this.#worker.on('exit', () => this.end());
  }

  /** Resolves with `ended` if the thread dies, `slow` if it takes longer than it may, which ends it as well. */
  ask(request: DrawRequest, maxMs: number): Promise<DrawReply | 'ended' | 'slow'> {
    if (!this.alive) return Promise.resolve('ended');
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve('slow');
        this.end();
      }, maxMs);
      this.#settle = (reply) => {
        clearTimeout(timer);
        resolve(reply);
      };
      this.#worker.postMessage(request);
    });
  }

  end(): void {
    this.alive = false;
    this.#settle?.('ended');
    void this.#worker.terminate();
  }
}
