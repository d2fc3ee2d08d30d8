/** How long a lease holds that is not renewed, in milliseconds: the death of a replica is noticed after that. */
export const leaseMs = 8000;
const renewEvery = 2000;

/** Renews what this process holds in Redis, for as long as it holds anything. */
export class Renewals {
  readonly #renew: () => Promise<unknown>;
  #timer: NodeJS.Timeout | undefined;
  #isRenewing = false;

  constructor(renew: () => Promise<unknown>) {
    this.#renew = renew;
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.#renewAlone(), renewEvery).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** What fails now is tried again two seconds later. */
  async #renewAlone(): Promise<void> {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    await this.#renew().catch(() => {});
    this.#isRenewing = false;
  }
}
