import type { Answer, AnswerName, Call } from '../api/call.ts';
import type { CreditLedger, FullWindows } from '../credits/ledger.ts';

/** What is known of calls, for all tenants: in this process, in a folder, or shared by all replicas. */
export interface CallState {
  ledger: CreditLedger;
  answers: AnswerCache;
  windows: FullWindows;
  cursorsOf(tenantId: string): CursorMemory;
}

export interface StateOptions {
  /** How long answers are cached, in milliseconds. */
  ttl: number;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
}

export interface CachedAnswer {
  answer: Answer;
  /** When the service sent the answer, in milliseconds since the epoch. */
  at: number;
}

/**
 * Caches paid answers, separately for each tenant, for a limited time and in limited memory, and lets one process at a
 * time send a call. Never rejects, except where the signal of a call aborts.
 */
export interface AnswerCache {
  /**
   * The name of an answer, which differs before and after its group was forgotten. Undefined if that is not known now:
   * then the answer is neither found nor put.
   */
  nameOf(tenantId: string, answer: AnswerName): Promise<string | undefined>;
  get(tenantId: string, name: string): Promise<CachedAnswer | undefined>;
  /** Resolves when no other process sends the same call. */
  claim(call: Call, name: string | undefined, request: ClaimRequest): Promise<Claim>;
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

export interface ClaimRequest {
  /** Only an answer that came later serves in place of the call, in milliseconds since the epoch; by default any. */
  after?: number | undefined;
  /** Receives the id of a claim whose process has died. */
  onLost(id: string): Promise<void>;
}

export type Claim =
  /** This process sends the call. Each of the three ends the claim; `end` after another one does nothing. */
  | { kind: 'granted'; put(answer: CachedAnswer): Promise<void>; forget(): Promise<void>; end(): Promise<void> }
  | { kind: 'found'; found: CachedAnswer }
  | { kind: 'lost' };

/** Keys that the service accepted lately. What is stored for a key is served only while it is one of them. */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** What is remembered about a cursor, for callers who leave the filters out. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, if it is too long to be part of this server's cursor. */
  serviceCursor?: string | undefined;
}

/**
 * What processes share: documents that are replaced by compare-and-swap, and collections of items in the order of their
 * last change. Names and bodies are opaque, everything expires, and all times are by the clock of the store. A call that
 * fails may still have been carried out.
 */
export interface Store {
  /** @param cachedVersion a version whose body is not needed */
  read(key: string, cachedVersion?: string): Promise<Seen>;
  /**
   * Replaces or removes a document only if its version is still the expected one (`''` for none): compare-and-swap.
   * Otherwise returns the document that is there.
   */
  swap(key: string, expected: string, next: NextDocument): Promise<Swapped>;
  items(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /** Writes each item whose number is still the one that was read. Returns the ids of the others. */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /** Items that changed after `after`, in the order in which they changed: some at a time, at least one. */
  itemsSince(name: string, after: number): Promise<ItemsPart | undefined>;
}

/** A store that is a server: it may be away, full or closed. */
export interface RemoteStore extends Store {
  /** Creates missing tables. Call once, before any other method. Rejects if the store cannot be reached. */
  connect(): Promise<void>;
  /** Whether the store is nearly full, so that only necessary things should be written. */
  isNearlyFull(): boolean;
  /** Whether the store itself refused a call, for a reason that concerns no other call. */
  refuses(error: unknown): boolean;
  close(): Promise<void>;
}

export interface Seen {
  /** In milliseconds since the epoch, by the clock of the store. */
  now: number;
  /** The document, without its body if its version is the cached one. */
  found?: { version: string; body?: Buffer | undefined } | undefined;
}

export interface Swapped extends Seen {
  isDone: boolean;
}

interface NextDocument {
  /** A version that was never used before. */
  version: string;
  /** Undefined removes the document. */
  body: Buffer | undefined;
  ttlMs: number;
}

export interface Item {
  /**
   * Higher than the number of every earlier change of the collection, even of one that was removed, or that the store
   * lost: at least the time of the store in microseconds.
   */
  seq: number;
  body: Buffer;
}

export interface ItemChange {
  id: string;
  /** The number as it was read; 0 if there was no item. */
  seq: number;
  body: Buffer;
}

/** The most bytes of the whole collection. Beyond that, the items that changed longest ago are evicted. */
export interface ItemLimits {
  ttlMs: number;
  maxBytes: number;
}

export interface ItemsPart {
  /** Differs after the collection was removed or lost. */
  epoch: string;
  items: (Item & { id: string })[];
  /** Items that did not change after this number were evicted: how many, by the first letter of their ids. */
  floor: number;
  gone: Record<string, number>;
  isLast: boolean;
}

/** Items and bytes of one part of a collection: it ends with the item that reaches either. */
export const partLimits = { items: 1000, bytes: 1024 * 1024 };
