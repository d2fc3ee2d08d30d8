import { AdLibraryError } from '../../api/errors.ts';
import type { ItemLimits, Store } from '../ports.ts';
import type { Documents } from './documents.ts';
import type { GuardedStore } from './guarded-store.ts';
import type { Presence } from './presence.ts';
import type { Seal } from './seal.ts';

/** How long tombstones and rejected keys are remembered: longer than anything else lives. */
export const markTtlMs = 30 * 86_400_000;

export interface Shared {
  store: Store & Pick<GuardedStore, 'now' | 'isUp' | 'isNearlyFull'>;
  seal: Seal;
  documents: Documents;
  presence: Pick<Presence, 'id' | 'isDead' | 'epoch' | 'confirm'>;
  retries: Pick<Retries, 'do'>;
  /** The name of a document or collection. All of a tenant have the same hash tag. */
  keyOf(tenantId: string, kind: string, ...parts: readonly string[]): string;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** The room of each key when all keys together take nearly all the room: an eighth. */
export const limitsWithRoom = (store: Pick<GuardedStore, 'isNearlyFull'>, limits: ItemLimits): ItemLimits =>
  store.isNearlyFull() ? { ...limits, maxBytes: limits.maxBytes / 8 } : limits;

interface Waiting {
  work: () => Promise<unknown>;
  giveUp: (error: unknown) => void;
  bytes: number;
}

interface RetryOptions {
  bytes?: number;
  /** Runs if a later attempt cannot succeed, or if there is no room to wait for one. */
  giveUp?(error: unknown): void;
}

/** The size of most waiting work, and the share of the room that is reserved for it: settlements and rejected keys. */
const smallBytes = 1000;
const partForSmall = 0.25;

/**
 * Write-behind: work that must reach the store while the store does not answer is tried again until it succeeds, in
 * bounded memory.
 */
export class Retries {
  readonly #waiting = new Set<Waiting>();
  readonly #maxBytes: number;
  #bytes = 0;
  #running: Promise<void> | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Does the work now, or when the store answers again. Work may run again although it succeeded, so it must tolerate
   * that.
   */
  async do(work: () => Promise<unknown>, options: RetryOptions = {}): Promise<void> {
    const { bytes = smallBytes, giveUp = () => {} } = options;
    try {
      await work();
    } catch (error) {
      const room = bytes > smallBytes ? (1 - partForSmall) * this.#maxBytes : this.#maxBytes;
      if (!isUnavailable(error) || this.#bytes + bytes > room) return giveUp(error);
      this.#bytes += bytes;
      this.#waiting.add({ work, giveUp, bytes });
    }
  }

  /**
   * Tries waiting work until some of it fails: the smallest first, because what is too large for the store would hold up
   * all else.
   */
  run(): Promise<void> {
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #runAll(): Promise<void> {
    for (const one of [...this.#waiting].sort((left, right) => left.bytes - right.bytes)) {
      try {
        await one.work();
      } catch (error) {
        if (isUnavailable(error)) return;
        one.giveUp(error);
      }
      this.#waiting.delete(one);
      this.#bytes -= one.bytes;
    }
  }
}

export const withoutRetries: Pick<Retries, 'do'> = {
  do: async (work, { giveUp = () => {} } = {}) => void (await work().catch(giveUp)),
};

const isUnavailable = (error: unknown) =>
  error instanceof AdLibraryError && ['unavailable', 'busy'].includes(error.failure.kind);
