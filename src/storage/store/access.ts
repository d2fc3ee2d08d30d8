import { dayMs } from '../../views/durations.ts';
import type { ItemLimits, Store } from '../storage.ts';
import type { Documents } from './documents.ts';
import type { Encryption } from './encryption.ts';
import type { GuardedStore } from './guarded-store.ts';
import type { Leases } from './leases.ts';
import type { WriteQueue } from './write-queue.ts';

/** How long removals of groups, signed-in connections and rejected keys are remembered: longer than anything cached. */
export const markTtlMs = 30 * dayMs;

/** A store as the rules above it use it: with encryption, documents, leases, and a queue for failed writes. */
export interface StoreAccess {
  store: Store & Pick<GuardedStore, 'now' | 'isUp' | 'isNearlyFull'>;
  encryption: Encryption;
  documents: Documents;
  leases: Leases;
  queue: Pick<WriteQueue, 'write'>;
  /** Returns the name of a document or collection. All names of a tenant have the same hash tag. */
  keyOf(tenantId: string, kind: string, ...parts: readonly string[]): string;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** Limits each key to an eighth of its usual bytes while the store is nearly full. */
export const reduceIfNearlyFull = (store: Pick<GuardedStore, 'isNearlyFull'>, limits: ItemLimits): ItemLimits =>
  store.isNearlyFull() ? { ...limits, maxBytes: limits.maxBytes / 8 } : limits;
