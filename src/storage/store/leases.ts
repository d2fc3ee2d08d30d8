import { randomUUID } from 'node:crypto';

/**
 * The process that holds a lease (a reservation for one of its calls). `at` is the store's time at which it took the
 * lease, in milliseconds since 1970.
 */
export interface LeaseHolder {
  owner: string;
  at: number;
}

interface LeasesOptions {
  /** A text that identifies this process among all processes that use the store. Default: a random id. */
  owner?: string;
  /**
   * Returns true if a process has ended, or if the call for which it took a lease (a reservation) has ended.
   * @param ageMs the age of the lease
   */
  hasEnded?(owner: string, ageMs: number): boolean;
}

/**
 * Tracks the leases of this process. A lease is a reservation for one call, e.g. of credits, of the right to send a
 * request, or of a slot. This object knows which leases are open, even if the store could not be told that a lease has
 * ended.
 */
export class Leases {
  readonly owner: string;
  readonly #hasEnded: (owner: string, ageMs: number) => boolean;
  readonly #openIds = new Set<string>();

  constructor({ owner = randomUUID(), hasEnded = () => false }: LeasesOptions = {}) {
    this.owner = owner;
    this.#hasEnded = hasEnded;
  }

  /**
   * Registers a lease (a reservation) of this process as open. Call this before the lease is written to the store,
   * because a write may succeed although it reports a failure.
   */
  open(id: string): void {
    this.#openIds.add(id);
  }

  /** Marks a lease (a reservation) of this process as ended, even if the store still contains the lease. */
  close(id: string): void {
    this.#openIds.delete(id);
  }

  /**
   * Returns true if this process took the lease (a reservation) and has ended it. The store may still contain the
   * lease.
   */
  isClosed(id: string, { owner }: LeaseHolder): boolean {
    return owner === this.owner && !this.#openIds.has(id);
  }

  /**
   * Returns true if another process took the lease (a reservation) and will never end it, because the process or its
   * call has ended.
   */
  isAbandoned({ owner, at }: LeaseHolder, now: number): boolean {
    return owner !== this.owner && this.#hasEnded(owner, Math.abs(now - at));
  }
}
