import { AdLibraryError } from '../../api/call.ts';

interface Waiting {
  work: () => Promise<unknown>;
  giveUp: (error: unknown) => void;
  bytes: number;
}

/** What the store has to hear of although it does not answer: tried again until it does, in bounded memory. */
export class Retries {
  readonly #waiting = new Set<Waiting>();
  readonly #maxBytes: number;
  #bytes = 0;
  #running: Promise<void> | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Does it now, or whenever it works. Work that was done although it seemed to fail is done again: it has to mind.
   * @param giveUp runs if it is in vain to try again, or there is no room for that
   */
  async do(work: () => Promise<unknown>, { bytes = 1000, giveUp = (_: unknown) => {} } = {}): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isAway(error) || this.#bytes + bytes > this.#maxBytes) return giveUp(error);
      this.#bytes += bytes;
      this.#waiting.add({ work, giveUp, bytes });
    }
  }

  /** Tries all that waits, the first to come first, until something fails. */
  run(): Promise<void> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runAll(): Promise<void> {
    for (const one of this.#waiting) {
      try {
        await one.work();
      } catch (error) {
        if (isAway(error)) return;
        one.giveUp(error);
      }
      this.#waiting.delete(one);
      this.#bytes -= one.bytes;
    }
  }
}

const isAway = (error: unknown) => error instanceof AdLibraryError && error.failure.kind === 'unavailable';
