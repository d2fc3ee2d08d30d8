/**
 * What processes share: documents that are replaced by compare-and-swap, and collections of items in the order of their
 * last change. Names and bodies are opaque, everything expires, and all times are by the clock of the store. A call that
 * fails may still have been carried out.
 */
export interface Store {
  /** @param cachedVersion a version whose body is not needed */
  readDocument(key: string, cachedVersion?: string): Promise<ReadResult>;
  /**
   * Replaces or removes a document only if its version is still the expected one (`''` for none): compare-and-swap.
   * Otherwise returns the document that is there.
   */
  swapDocument(key: string, expected: string, next: NextDocument): Promise<SwapResult>;
  readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /** Writes each item whose number is still the one that was read. Returns the ids of the others. */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /** Items that changed after `after`, in the order in which they changed: some at a time, at least one. */
  readItemsSince(name: string, after: number): Promise<ItemsChunk | undefined>;
}

/** A store that is a server: it may be away, full or closed. */
export interface RemoteStore extends Store {
  /**
   * Connects and creates missing tables. The other methods may be used once it has succeeded; until then, and after the
   * store was away, it may be called again. Rejects if the store cannot be reached.
   */
  connect(): Promise<void>;
  /** Whether the store is nearly full, so that only necessary things should be written. */
  isNearlyFull(): boolean;
  /** Whether the store itself refused a call, for a reason that concerns no other call. */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

export interface ReadResult {
  /** In milliseconds since the epoch, by the clock of the store. */
  now: number;
  /** The document, without its body if its version is the cached one. */
  document?: { version: string; body?: Buffer | undefined } | undefined;
}

export interface SwapResult extends ReadResult {
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
  sequenceNumber: number;
  body: Buffer;
}

export interface ItemChange {
  id: string;
  /** The number as it was read; 0 if there was no item. */
  expectedSequenceNumber: number;
  body: Buffer;
}

/** The most bytes of the whole collection. Beyond that, the items that changed longest ago are evicted. */
export interface ItemLimits {
  ttlMs: number;
  maxBytes: number;
}

export interface ItemsChunk {
  /** Differs after the collection was removed or lost. */
  generation: string;
  items: (Item & { id: string })[];
  /** Items that did not change after this number were evicted: how many, by the first letter of their ids. */
  evictedThrough: number;
  evictedCounts: Record<string, number>;
  isLast: boolean;
}

/** Items and bytes of one part of a collection: it ends with the item that reaches either. */
export const chunkLimits = { items: 1000, bytes: 1024 * 1024 };

/** Opens a store that is a server. */
export interface StoreDriver {
  /** The address of the store without a password. */
  hostAndPort: string;
  open(onError: (error: Error) => void): RemoteStore;
}

/** Logs what an operator should know. No text contains the password of the store. */
export interface StorageLog {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
}
