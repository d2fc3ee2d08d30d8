import { raceAbort } from '../api/abort.ts';
import { Turns } from '../workers/turns.ts';
import type { DrawRequest } from './messages.ts';
import { PictureWorker } from './picture-worker.ts';

export interface WorkerLimits {
  maxWorkers: number;
  /** For one picture or one sheet, in milliseconds. */
  drawMs: number;
  /** How long a worker without work is kept. */
  idleMs: number;
}

export type Drawn = { jpeg: Uint8Array } | { failed: 'damaged' | 'slow' | 'ended' };

/** A few threads that decode pictures and draw sheets for all tenants, for each one at a time. */
export class PictureWorkers {
  readonly #limits: WorkerLimits;
  readonly #turns: Turns;
  readonly #idle = new Map<PictureWorker, NodeJS.Timeout>();
  readonly #all = new Set<PictureWorker>();

  constructor(limits: WorkerLimits) {
    this.#limits = limits;
    this.#turns = new Turns({ maxRunning: limits.maxWorkers, perTenant: 1, maxWaiting: 1000, of: 'pictures' });
  }

  /** @param isHeavy ends the thread afterwards, because WebAssembly never gives back the memory it took */
  async draw(
    request: DrawRequest,
    { tenantId, signal, isHeavy = false }: { tenantId: string; signal: AbortSignal; isHeavy?: boolean },
  ): Promise<Drawn> {
    const end = await this.#turns.take(tenantId, signal);
    // Whoever leaves leaves the thread to finish: its turn ends with it.
    return raceAbort(this.#draw(request, isHeavy).finally(end), signal);
  }

  close(): void {
    for (const worker of this.#all) worker.end();
  }

  async #draw(request: DrawRequest, isHeavy: boolean): Promise<Drawn> {
    const worker = this.#take();
    const reply = await worker.ask(request, this.#limits.drawMs);
    if (isHeavy) worker.end();
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
