import { randomUUID } from 'node:crypto';

/**
 * The process that holds a lease (a reservation for one of its calls). `takenAt` is the time at which the process took
 * the lease, by the store's clock, in milliseconds since 1970.
 */
export interface LeaseHolder {
  owner: string;
  takenAt: number;
}

interface LeasesOptions {
  /** A text that identifies this process among all processes that use the store. The default is a random id. */
  owner?: string;
  /**
   * Returns true if a process has ended, or if the call for which the process took a lease (a reservation) has ended.
   * @param ageMs the age of the lease
   */
  hasEnded?(owner: string, ageMs: number): boolean;
}

/**
 * Tracks the leases of this process. A lease is a reservation for one call, e.g. of credits, of a named lock, or of the
 * right to send a request. This object knows which leases are open, even if an ended lease is still in the store.
 */
export class LeaseTracker {
  readonly owner: string;
  readonly #hasEnded: (owner: string, ageMs: number) => boolean;
  readonly #openIds = new Set<string>();

  constructor({ owner = randomUUID(), hasEnded = () => false }: LeasesOptions = {}) {
    this.owner = owner;
    this.#hasEnded = hasEnded;
  }

  /**
   * Registers a lease (a reservation) of this process as open. Call this method before the lease is written to the
   * store, because a write may succeed although it reports a failure.
   */
  open(leaseId: string): void {
    this.#openIds.add(leaseId);
  }

  /** Marks a lease (a reservation) of this process as ended, even if the store still contains the lease. */
  close(leaseId: string): void {
    this.#openIds.delete(leaseId);
  }

  /**
   * Returns true if this process took the lease (a reservation) and has ended it. The store may still contain such a
   * lease.
   */
  isClosed(leaseId: string, { owner }: LeaseHolder): boolean {
    return owner === this.owner && !this.#openIds.has(leaseId);
  }

  /**
   * Returns true if another process took the lease (a reservation) but will never end it, because that process or its
   * call has ended.
   */
  isAbandoned({ owner, takenAt }: LeaseHolder, now: number): boolean {
    return owner !== this.owner && this.#hasEnded(owner, Math.abs(now - takenAt));
  }
}
