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
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** Bytes of accounts that spent nothing. Bounded, because anybody can invent keys. */
  maxBytes?: number;
  /** Bytes of accounts that spent something. Nobody can invent such accounts without paying the service. */
  maxLastingBytes?: number;
}

/**
 * The ledger of one process. Accounts that spent something or have a call in progress stay; the others only displace each
 * other. When there is no room for another paying account, paid calls of new keys are refused before they are sent.
 */
export function createMemoryLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxBytes = 16 * MB, maxLastingBytes = 256 * MB } = options;
  return openLedger(openMemoryStore(now, { maxBytes, maxLastingBytes }));
}

/** Bytes of parsed documents, which are cached so that each statement does not parse all labels again. */
const maxParsedBytes = 32 * MB;

/** Opens a store in the memory of this process. @param now in milliseconds since the epoch */
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
