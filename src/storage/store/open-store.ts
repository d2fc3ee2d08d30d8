import type { StateOptions } from '../call-state.ts';
import { openCursors } from '../cursors.ts';
import type { DatasetStore } from '../dataset.ts';
import { openStoredExports } from '../exports.ts';
import { openSharedKeyRecords } from '../keys.ts';
import { openNamedLocks } from '../named-locks.ts';
import { createUseOnce } from '../single-use.ts';
import type { StorageLogger, StoreDriver } from '../storage.ts';
import type { StoreAccess } from './access.ts';
import { CircuitBreakerStore } from './circuit-breaker-store.ts';
import { SharedDatasetStore } from './datasets.ts';
import { DocumentAccess } from './documents.ts';
import { createEncryption } from './encryption.ts';
import { LeaseTracker } from './leases.ts';
import { openLedger, openReachedUsageLimitStore } from './ledger.ts';
import { openStoredResponseCache } from './response-cache.ts';
import { WriteQueue } from './write-queue.ts';

const MB = 1024 * 1024;
/** How long the server waits at startup for the store to become reachable, in milliseconds. */
const startTimeoutMs = 1000;
/**
 * The limits of the queue of failed writes: its memory in bytes, and the maximum delay before a retry in milliseconds.
 */
const queueLimits = { maxBytes: 96 * MB, maxDelayMs: 2000 };
/**
 * How long a lease (a reservation for one call) stays valid after the last moment at which its call can end, in
 * milliseconds. During this time, the process records the result of the call.
 */
const leaseMarginMs = 10_000;

interface StoreStateOptions {
  driver: StoreDriver;
  secret: string;
  /**
   * The base URL of the API. Servers for different APIs can share a store, because the store keeps the data of each API
   * separate.
   */
  baseUrl: string;
  /** The time limit of a tool call, in milliseconds. A reservation that is much older counts as abandoned. */
  callTimeoutMs: number;
  log: StorageLogger;
  /** Returns the time of this process, which is used until the store's time is known. */
  now(): number;
}

/** The state that all replicas of this server share, in Redis or PostgreSQL. */
export type ReplicaState = Awaited<ReturnType<typeof openStoreState>>;

/**
 * Opens the state that replicas share. If a replica dies, its leases (reservations for calls) end soon after the time
 * limit of the calls. Its named locks end one time limit later.
 */
export async function openStoreState({ driver, secret, baseUrl, callTimeoutMs, log, now }: StoreStateOptions) {
  const encryption = createEncryption({ secret, warn: log.warn });
  const store = new CircuitBreakerStore(driver, log, now);
  const documents = new DocumentAccess({ store, encryption });
  const leases = new LeaseTracker({ hasEnded: (_, ageMs) => ageMs > callTimeoutMs + leaseMarginMs });
  // A tool call may send its last request just before its time limit, and this request has the same time limit of its
  // own. The tool call keeps its lock until the request has ended, which takes up to twice the time limit.
  const lockLeases = new LeaseTracker({ hasEnded: (_, ageMs) => ageMs > 2 * callTimeoutMs + leaseMarginMs });
  const buildKey: StoreAccess['buildKey'] = (tenantId, kind, ...parts) => {
    const tag = encryption.hashName('tenant', baseUrl, tenantId);
    return ['ad-library:2', `{${tag}}`, kind, ...(parts.length > 0 ? [encryption.hashName(kind, ...parts)] : [])].join(
      ':',
    );
  };
  const queue = new WriteQueue(queueLimits);
  const access: StoreAccess = { store, encryption, documents, leases, queue, buildKey, warn: log.warn };
  store.onReachable = () => void queue.retryWrites();
  await store.open(startTimeoutMs);
  return {
    ...openSharedKeyRecords(access),
    now: () => store.now(),
    isUp: () => store.isUp(),
    state: (options: StateOptions) => ({
      ledger: openLedger(access, { isShared: true }),
      responseCache: openStoredResponseCache(access, options),
      reachedUsageLimits: openReachedUsageLimitStore(access, options.monotonicNow),
      openCursors: openCursors(access),
      useOnce: createUseOnce(access),
      datasets: new SharedDatasetStore(access) as DatasetStore,
      exports: openStoredExports(access, options.now),
      locks: openNamedLocks({ ...access, leases: lockLeases }),
    }),
    close: () => {
      void queue.close().finally(() => store.close());
    },
  };
}
