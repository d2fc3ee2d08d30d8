import { randomUUID } from 'node:crypto';

/** The holder of a lease, and since when it holds the lease, in milliseconds since 1970 by the clock of the store. */
export interface LeaseHolder {
  owner: string;
  at: number;
}

interface LeasesOptions {
  /** The identity of this process among all processes that use the store. */
  owner?: string;
  /** Returns whether another process has ended, or the call that it made a lease for. @param ageMs the age of the lease */
  hasEnded?(owner: string, ageMs: number): boolean;
}

/**
 * The leases of this process. A lease is a reservation of a call in the store: of credits, of the right to send a request,
 * or of a slot. A process knows which of its own leases are open, even if it could not write the end of a lease to the store.
 */
export class Leases {
  readonly owner: string;
  readonly #hasEnded: (owner: string, ageMs: number) => boolean;
  readonly #open = new Set<string>();

  constructor({ owner = randomUUID(), hasEnded = () => false }: LeasesOptions = {}) {
    this.owner = owner;
    this.#hasEnded = hasEnded;
  }

  /** Registers a lease of this process, before the lease is written to the store. */
  open(id: string): void {
    this.#open.add(id);
  }

  /** Ends a lease of this process. */
  close(id: string): void {
    this.#open.delete(id);
  }

  /** Returns whether this process held the lease and has ended it. */
  isClosed(id: string, { owner }: LeaseHolder): boolean {
    return owner === this.owner && !this.#open.has(id);
  }

  /** Returns whether another process holds the lease and can no longer end it, because the process or its call has ended. */
  isAbandoned({ owner, at }: LeaseHolder, now: number): boolean {
    return owner !== this.owner && this.#hasEnded(owner, Math.abs(now - at));
  }
}
