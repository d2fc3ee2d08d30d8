import type { CreditLedger } from '../credits/ledger.ts';
import { MemoryStore, type MemoryStoreOptions } from './drivers/memory.ts';
import type { StoreAccess } from './store/access.ts';
import { Documents } from './store/documents.ts';
import { Leases } from './store/leases.ts';
import { storeLedger } from './store/ledger.ts';
import { noSeal } from './store/seal.ts';
import { noQueue } from './store/write-queue.ts';
import { type Turns, turnsOver } from './turns.ts';

const MB = 1024 * 1024;
const maxTurnBytes = 16 * MB;

/** The turns of one process, which end with it and not by a clock. */
export const memoryTurns = (): Turns => turnsOver(inMemory(() => 0, { maxBytes: maxTurnBytes }));

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
export function memoryCreditLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxBytes = 16 * MB, maxLastingBytes = 256 * MB } = options;
  return storeLedger(inMemory(now, { maxBytes, maxLastingBytes }));
}

/** Bytes of documents that are remembered beside their text, so that labels are not parsed anew for every statement. */
const maxRemembered = 32 * MB;

/** What the domain needs of a store, where no other process shares it. @param now in milliseconds since the epoch */
export function inMemory(now: () => number, options: MemoryStoreOptions = {}): StoreAccess {
  const store = new MemoryStore(now, options);
  return {
    store,
    seal: noSeal,
    leases: new Leases(),
    queue: noQueue,
    documents: new Documents({ store, seal: noSeal, elapsed: now, maxRemembered }),
    keyOf: (...parts) => parts.join(' '),
    warn: () => {},
  };
}
