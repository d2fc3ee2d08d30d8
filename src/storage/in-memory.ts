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

/** Opens slots for the calls of one process. */
export const openMemorySlots = (): Slots => openSlots(openMemoryStore(() => 0, { maxBytes: maxSlotBytes }));

interface MemoryLedgerOptions {
  /** A clock of this process, in milliseconds. */
  now: () => number;
  /** The largest memory of accounts that spent nothing. A limit is necessary, because anybody can invent keys. */
  maxBytes?: number;
  /** The largest memory of accounts that spent something. Nobody can create such accounts without paying the service. */
  maxLastingBytes?: number;
}

/**
 * Creates the ledger of one process. Accounts that spent something or have a call in progress are never evicted; other
 * accounts evict only each other. If the memory for paying accounts is full, the ledger refuses paid calls of new keys
 * before they are sent.
 */
export function createMemoryLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxBytes = 16 * MB, maxLastingBytes = 256 * MB } = options;
  return openLedger(openMemoryStore(now, { maxBytes, maxLastingBytes }));
}

/** The largest memory of parsed documents. They are cached so that not every SQL statement parses all labels again. */
const maxParsedBytes = 32 * MB;

/**
 * Opens a store in the memory of this process.
 * @param now the clock of the store, in milliseconds. The store uses it for ages and expiry only
 */
export function openMemoryStore(now: () => number, options: MemoryStoreOptions = {}): StoreAccess {
  const store = new MemoryStore(now, options);
  return {
    store,
    encryption: noEncryption,
    leases: new Leases(),
    queue: noQueue,
    documents: new Documents({ store, encryption: noEncryption, processNow: now, maxCachedBytes: maxParsedBytes }),
    keyOf: (...parts) => parts.join(' '),
    warn: () => {},
  };
}
