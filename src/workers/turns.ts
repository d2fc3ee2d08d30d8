import { LRUCache } from 'lru-cache';
import { AdLibraryError } from '../api/call.ts';

interface Waiting {
  tenantId: string;
  start(): void;
}

export interface TurnLimits {
  /** The most turns at once, for all tenants together and for one. */
  maxRunning: number;
  perTenant: number;
  /** Half of the places at most for one tenant, so that it cannot keep the others out. */
  maxWaiting: number;
  /** The name of the work, for the message that too much of it waits. */
  of: string;
}

/** The most tenants whose last turn is remembered. The last turn of any other tenant began before all of these. */
const maxRemembered = 1000;

/**
 * Whose turn it is: among those who wait, the tenant with the fewest turns running comes first, then the one whose last
 * turn began longest ago, then who came first.
 */
export class TenantTurns {
  readonly #limits: TurnLimits;
  readonly #running = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  /** The number of the last turn of each tenant. */
  readonly #began = new LRUCache<string, number>({ max: maxRemembered });
  #count = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Resolves when it is the tenant's turn, to a function that ends the turn. */
  async take(tenantId: string, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#mayRun(tenantId)) this.#run(tenantId);
    else await this.#wait(tenantId, signal);
    return () => {
      const left = this.#runningOf(tenantId) - 1;
      if (left > 0) this.#running.set(tenantId, left);
      else this.#running.delete(tenantId);
      this.#startNext();
    };
  }

  #runningOf = (tenantId: string): number => this.#running.get(tenantId) ?? 0;

  #mayRun(tenantId: string): boolean {
    const inAll = [...this.#running.values()].reduce((sum, running) => sum + running, 0);
    return inAll < this.#limits.maxRunning && this.#runningOf(tenantId) < this.#limits.perTenant;
  }

  #run(tenantId: string): void {
    this.#running.set(tenantId, this.#runningOf(tenantId) + 1);
    this.#began.set(tenantId, ++this.#count);
  }

  #wait(tenantId: string, signal?: AbortSignal): Promise<void> {
    const { maxWaiting, of } = this.#limits;
    const own = this.#waiting.filter((waiting) => waiting.tenantId === tenantId).length;
    if (this.#waiting.length >= maxWaiting || own >= maxWaiting / 2) {
      const problem = `Too many ${of} are waiting. Send them one after the other.`;
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
    for (;;) {
      const [next] = this.#waiting
        .filter(({ tenantId }) => this.#mayRun(tenantId))
        .sort(
          ({ tenantId: one }, { tenantId: other }) =>
            this.#runningOf(one) - this.#runningOf(other) || this.#beganAt(one) - this.#beganAt(other),
        );
      if (next === undefined) return;
      this.#run(next.tenantId);
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.start();
    }
  }

  #beganAt = (tenantId: string): number => this.#began.peek(tenantId) ?? 0;
}
