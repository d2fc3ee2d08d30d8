import { dayMs } from '../../views/durations.ts';
import type { ItemLimits, Store } from '../storage.ts';
import type { CircuitBreakerStore } from './circuit-breaker-store.ts';
import type { DocumentAccess } from './documents.ts';
import type { Encryption } from './encryption.ts';
import type { LeaseTracker } from './leases.ts';
import type { WriteQueue } from './write-queue.ts';

/**
 * How long the store remembers sign-in connections and removed groups of cached responses, in milliseconds. This time
 * is longer than the lifetime of any cached response, so that removed responses are never found again.
 */
export const longTermTtlMs = 30 * dayMs;

/**
 * A store and the helpers for using the store: encryption, cached documents, leases (reservations for calls), and a
 * queue that retries failed writes.
 */
export interface StoreAccess {
  store: Store & Pick<CircuitBreakerStore, 'now' | 'isUp' | 'isNearlyFull'>;
  encryption: Encryption;
  documents: DocumentAccess;
  leases: LeaseTracker;
  queue: Pick<WriteQueue, 'write'>;
  /**
   * Returns the store key for a document or collection of a tenant (API key). All keys of a tenant contain the same
   * hash tag, so that Redis Cluster stores them on one node.
   */
  buildKey(tenantId: string, kind: string, ...nameParts: readonly string[]): string;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/**
 * Returns the limits for a collection. While the store is nearly full, divides `maxBytes` by eight, so that the store
 * evicts old items.
 */
export const reduceLimitsIfNearlyFull = (
  store: Pick<CircuitBreakerStore, 'isNearlyFull'>,
  limits: ItemLimits,
): ItemLimits => (store.isNearlyFull() ? { ...limits, maxBytes: limits.maxBytes / 8 } : limits);
