/** How long a lease holds that is not renewed, in milliseconds: the death of a replica is noticed after that. */
export const leaseMs = 8000;
const renewEvery = 2000;

/** Renews what this process holds in Redis, for as long as it holds anything. */
export class Renewals {
  readonly #renew: () => Promise<unknown>;
  #timer: NodeJS.Timeout | undefined;

  constructor(renew: () => Promise<unknown>) {
    this.#renew = renew;
  }

  start(): void {
    // What fails now is tried again two seconds later.
    this.#timer ??= setInterval(() => void this.#renew().catch(() => {}), renewEvery).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
