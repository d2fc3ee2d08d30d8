import { AdLibraryError } from '../../api/errors.ts';

interface Waiting {
  tenantId: string;
  start(): void;
}

/** Who may run a statement now: so many tenants at once, each one at a time, the rest in the order they came. */
export class Turns {
  readonly #maxRunning: number;
  readonly #maxWaiting: number;
  readonly #running = new Set<string>();
  readonly #waiting: Waiting[] = [];

  constructor({ maxRunning, maxWaiting }: { maxRunning: number; maxWaiting: number }) {
    this.#maxRunning = maxRunning;
    this.#maxWaiting = maxWaiting;
  }

  isRunning(tenantId: string): boolean {
    return this.#running.has(tenantId);
  }

  /** Resolves, when it is the tenant's turn, to what ends it. */
  async take(tenantId: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (!this.#mayRun(tenantId)) await this.#wait(tenantId, signal);
    else this.#running.add(tenantId);
    return () => {
      this.#running.delete(tenantId);
      this.#startNext();
    };
  }

  #mayRun = (tenantId: string): boolean => this.#running.size < this.#maxRunning && !this.#running.has(tenantId);

  #wait(tenantId: string, signal?: AbortSignal): Promise<void> {
    const own = this.#waiting.filter((waiting) => waiting.tenantId === tenantId).length;
    // Half of the places at most for one tenant, so that it cannot keep the others out.
    if (this.#waiting.length >= this.#maxWaiting || own >= this.#maxWaiting / 2) {
      const problem = 'Too many statements are waiting. Send them one after the other.';
      throw new AdLibraryError({ kind: 'busy', problem, sent: false, transient: true });
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        reject(signal?.reason);
      };
      const start = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      const waiting = { tenantId, start };
      this.#waiting.push(waiting);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  #startNext(): void {
    for (const waiting of [...this.#waiting]) {
      if (!this.#mayRun(waiting.tenantId)) continue;
      this.#running.add(waiting.tenantId);
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.start();
    }
  }
}
