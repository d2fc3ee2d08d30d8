import type { CreditLedger } from '../credits/ledger.ts';
import { MemoryStore, type MemoryStoreOptions } from './drivers/memory.ts';
import { openSlots, type Slots } from './slots.ts';
import type { StoreAccess } from './store/access.ts';
import { Documents } from './store/documents.ts';
import { noEncryption } from './store/encryption.ts';
import { Leases } from './store/leases.ts';
import { openLedger } from './store/ledger.ts';
import { noQueue } from './store/write-queue.ts';

const MB = 1024 * 1024;
const maxSlotBytes = 16 * MB;

/** Opens slots (named locks for tool calls) in memory, for a process that shares no store with other processes. */
export const openMemorySlots = (): Slots => openSlots(openMemoryStore(() => 0, { maxBytes: maxSlotBytes }));

interface MemoryLedgerOptions {
  /** Returns the current time by a clock of this process, in milliseconds. */
  now: () => number;
  /**
   * The memory limit for accounts without spending, in bytes. Without it, requests with made-up API keys could fill the
   * memory.
   */
  maxBytes?: number;
  /**
   * The memory limit for accounts with spending, in bytes. Made-up keys cannot fill it, because the service charges
   * only real ones.
   */
  maxLastingBytes?: number;
}

/**
 * Creates a ledger in the memory of this process. Accounts that have spent credits or have a call in progress are never
 * evicted. When the memory for such accounts is full, the ledger rejects paid calls with new API keys before they are
 * sent.
 */
export function createMemoryLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxBytes = 16 * MB, maxLastingBytes = 256 * MB } = options;
  return openLedger(openMemoryStore(now, { maxBytes, maxLastingBytes }));
}

/**
 * The memory limit for documents that are cached in parsed form, in bytes. Without this cache, each SQL statement would
 * parse all labels again.
 */
const maxParsedBytes = 32 * MB;

/**
 * Opens a store in the memory of this process.
 * @param now the store's clock in milliseconds, which is used only for ages and expiry
 */
export function openMemoryStore(now: () => number, options: MemoryStoreOptions = {}): StoreAccess {
  const store = new MemoryStore(now, options);
  return {
    store,
    encryption: noEncryption,
    leases: new Leases(),
    queue: noQueue,
    documents: new Documents({ store, encryption: noEncryption, processNow: now, maxCachedBytes: maxParsedBytes }),
    buildKey: (...parts) => parts.join(' '),
    warn: () => {},
  };
}
