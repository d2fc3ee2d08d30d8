import { randomUUID } from 'node:crypto';

/** Who holds a lease, and since when, in milliseconds since the epoch by the clock of the store. */
export interface LeaseHolder {
  owner: string;
  at: number;
}

interface LeasesOptions {
  /** The name of this process among all that use the store. */
  owner?: string;
  /** Whether another process no longer has a lease of this age, in milliseconds: it has ended, or its call has. */
  hasEnded?(owner: string, ageMs: number): boolean;
}

/**
 * The leases of this process. A lease is what a call reserves in the store: credits, the right to send a request, or a
 * slot. A process knows which of its own leases are open, even if the store could not be told that one has ended.
 */
export class Leases {
  readonly owner: string;
  readonly #hasEnded: (owner: string, ageMs: number) => boolean;
  readonly #open = new Set<string>();

  constructor({ owner = randomUUID(), hasEnded = () => false }: LeasesOptions = {}) {
    this.owner = owner;
    this.#hasEnded = hasEnded;
  }

  open(id: string): void {
    this.#open.add(id);
  }

  close(id: string): void {
    this.#open.delete(id);
  }

  /** Whether this process had the lease and has ended it. */
  isClosed(id: string, { owner }: LeaseHolder): boolean {
    return owner === this.owner && !this.#open.has(id);
  }

  /** Whether another process had the lease and will not end it any more. */
  isAbandoned({ owner, at }: LeaseHolder, now: number): boolean {
    return owner !== this.owner && this.#hasEnded(owner, Math.abs(now - at));
  }
}
