import type { CreditLedger } from '../credits/ledger.ts';
import { MemoryStore, type MemoryStoreOptions } from './drivers/memory.ts';
import { type NamedLocks, openNamedLocks } from './named-locks.ts';
import type { StoreAccess } from './store/access.ts';
import { DocumentAccess } from './store/documents.ts';
import { noEncryption } from './store/encryption.ts';
import { LeaseTracker } from './store/leases.ts';
import { openLedger } from './store/ledger.ts';
import { noQueue } from './store/write-queue.ts';

const MB = 1024 * 1024;
const maxLockBytes = 16 * MB;

/** Opens named locks in memory, for a process that shares no data with other processes. */
export const openMemoryLocks = (): NamedLocks => openNamedLocks(openMemoryStore(() => 0, { maxBytes: maxLockBytes }));

interface MemoryLedgerOptions {
  /** Returns the time of a monotonic clock, in milliseconds. */
  monotonicNow: () => number;
  /**
   * The memory limit, in bytes, for accounts that have spent nothing. This limit keeps requests with made-up API keys
   * from filling the memory.
   */
  maxBytes?: number;
  /**
   * The memory limit, in bytes, for accounts that have spent credits. Requests with made-up API keys do not count
   * against this limit, because the service charges only real keys.
   */
  maxLongLivedBytes?: number;
}

/**
 * Creates a credit ledger in the memory of this process. The ledger never evicts accounts that have spent credits or
 * have a call in progress. When such accounts fill the memory, paid calls with new API keys are rejected before they
 * are sent.
 */
export function createMemoryLedger(options: MemoryLedgerOptions): CreditLedger {
  const { monotonicNow, maxBytes = 16 * MB, maxLongLivedBytes = 256 * MB } = options;
  return openLedger(openMemoryStore(monotonicNow, { maxBytes, maxLongLivedBytes }));
}

/**
 * The memory limit, in bytes, for the cache of parsed documents. Without this cache, each SQL statement would have to
 * parse all labels again.
 */
const maxParsedBytes = 32 * MB;

/**
 * Opens a store in the memory of this process.
 * @param now returns the time of the store's clock, in milliseconds; used only for the age and expiry of entries
 */
export function openMemoryStore(now: () => number, options: MemoryStoreOptions = {}): StoreAccess {
  const store = new MemoryStore(now, options);
  return {
    store,
    encryption: noEncryption,
    leases: new LeaseTracker(),
    queue: noQueue,
    documents: new DocumentAccess({
      store,
      encryption: noEncryption,
      getProcessTime: now,
      maxCachedBytes: maxParsedBytes,
    }),
    buildKey: (...parts) => parts.join(' '),
    warn: () => {},
  };
}
