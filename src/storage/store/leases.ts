import { randomUUID } from 'node:crypto';

/**
 * The process that holds a lease (a reservation for one of its calls). `at` is the time when it took the lease, in
 * milliseconds since 1970 by the store's clock.
 */
export interface LeaseHolder {
  owner: string;
  at: number;
}

interface LeasesOptions {
  /** Identifies this process among all processes that use the store. Default: a random id. */
  owner?: string;
  /**
   * Returns true if a process has ended, or if the call has ended for which the process took a lease (a reservation).
   * @param ageMs the age of the lease
   */
  hasEnded?(owner: string, ageMs: number): boolean;
}

/**
 * Tracks the leases of this process. A lease is a reservation that a call makes in the store: of credits, of the right
 * to send a request, or of a slot. The process knows which of its own leases are open, even if it could not write the
 * end of a lease to the store.
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
   * Registers a lease (a reservation) of this process as open. Call this before writing the lease to the store, because
   * the write may succeed although it reports a failure.
   */
  open(id: string): void {
    this.#openIds.add(id);
  }

  /** Marks a lease (a reservation) of this process as ended, even if the store still contains it. */
  close(id: string): void {
    this.#openIds.delete(id);
  }

  /**
   * Returns true if this process took the lease (the reservation) and has ended it, even if the store still contains
   * it.
   */
  isClosed(id: string, { owner }: LeaseHolder): boolean {
    return owner === this.owner && !this.#openIds.has(id);
  }

  /**
   * Returns true if another process took the lease (the reservation) and will never end it, because the process or its
   * call has ended.
   */
  isAbandoned({ owner, at }: LeaseHolder, now: number): boolean {
    return owner !== this.owner && this.#hasEnded(owner, Math.abs(now - at));
  }
}
