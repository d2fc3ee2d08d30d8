import { randomUUID } from 'node:crypto';
import type { Documents } from './documents.ts';

/** How often a process says that it is alive, and after how long without that it has died, in milliseconds. */
export const beatMs = 2000;
const deadMs = 7500;

/** Processes, and when they said so last. */
type Alive = Record<string, number>;

/** Which processes are alive: what a dead one held is free, and what it may have spent counts. */
export class Presence {
  readonly id = randomUUID();
  readonly #documents: Documents;
  readonly #key: string;
  /** The last beat by the clock of the store, and who was alive. */
  #beatAt = Number.NEGATIVE_INFINITY;
  #alive: Alive = {};
  #beating: Promise<void> | undefined;
  /** Since when this process itself has said so without a gap. */
  #regularSince = 0;

  constructor(documents: Documents, key: string) {
    this.#documents = documents;
    this.#key = key;
  }

  /** One at a time. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beat(): Promise<void> {
    const { now, alive } = await this.#documents.update<Alive, { now: number; alive: Alive }>(
      this.#key,
      (doc = {}, now) => {
        const alive = Object.fromEntries(Object.entries(doc).filter(([, at]) => now - at < deadMs));
        alive[this.id] = now;
        return { next: alive, ttlMs: 10 * deadMs, result: { now, alive } };
      },
    );
    if (now - this.#beatAt > 2.5 * beatMs) this.#regularSince = now;
    this.#beatAt = now;
    this.#alive = alive;
  }

  /**
   * Whether a process has died that was alive at that time, by the clock of the store. Where this process could not
   * say that it is alive, others may not have been able to either.
   */
  isDead(owner: string, aliveAt: number): boolean {
    const isJudged = this.#beatAt - Math.max(aliveAt, this.#regularSince) > deadMs;
    return isJudged && owner !== this.id && !(owner in this.#alive);
  }
}
