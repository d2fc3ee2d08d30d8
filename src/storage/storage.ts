/**
 * The storage interface. A store holds two kinds of data: documents, which are replaced by compare-and-swap, and
 * collections of items in the order of their last change. Names and bodies are opaque to the store. Everything expires,
 * and all times are by the clock of the store. A call that fails may still have changed the store.
 */
export interface Store {
  /**
   * Reads a document.
   * @param cachedVersion the version that the caller has already: the reply leaves out the body of this version
   */
  readDocument(key: string, cachedVersion?: string): Promise<ReadResult>;
  /**
   * Replaces or removes a document if its version is still the expected one (compare-and-swap). Otherwise changes nothing
   * and returns the current document.
   * @param expected the expected version; `''` if no document should exist
   */
  swapDocument(key: string, expected: string, next: NextDocument): Promise<SwapResult>;
  /** Reads items of a collection by their ids. Ids without an item are left out. */
  readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /**
   * Writes each item that still has the expected sequence number. Then evicts items that exceed the limits. Returns the
   * ids of the items that were not written, because they had changed.
   */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /**
   * Reads items that changed after a sequence number, in the order of their change. Returns at most one chunk of items,
   * which has at least one item if there is any. Returns undefined if the collection does not exist.
   */
  readItemsSince(name: string, after: number): Promise<ItemsChunk | undefined>;
}

/** A store on a server, which may be unreachable, full or closed. */
export interface RemoteStore extends Store {
  /**
   * Connects and creates missing tables. The other methods may be used after a first success. The caller may call
   * `connect` again: after a failure, and after the store was unreachable.
   * @throws Error if the store cannot be reached
   */
  connect(): Promise<void>;
  /** Returns whether the store is nearly full, so that callers should write only necessary data. */
  isNearlyFull(): boolean;
  /**
   * Returns whether the error is an answer of the store to one call. Such an error says nothing about other calls, unlike
   * a lost connection.
   */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

/** The reply to a read. */
export interface ReadResult {
  /** The current time of the store, in milliseconds since 1970. */
  now: number;
  /** The document, without its body if the caller has this version already. Undefined if there is no document. */
  document?: { version: string; body?: Buffer | undefined } | undefined;
}

/** The reply to a compare-and-swap. `document` is the current document if the swap was not done. */
export interface SwapResult extends ReadResult {
  isDone: boolean;
}

/** The replacement of a document. */
interface NextDocument {
  /** A version that was never used before. */
  version: string;
  /** Undefined removes the document. */
  body: Buffer | undefined;
  ttlMs: number;
}

/** An item of a collection. */
export interface Item {
  /**
   * The sequence number of the last change of the item. The number is higher than the numbers of all earlier changes of
   * the collection, including changes that were removed or that the store has lost. Therefore the number is at least the
   * time of the store in microseconds.
   */
  sequenceNumber: number;
  body: Buffer;
}

/** A new body for an item. */
export interface ItemChange {
  id: string;
  /** The sequence number that the caller has read; 0 if the caller found no item. */
  expectedSequenceNumber: number;
  body: Buffer;
}

/** The limits of a collection. */
export interface ItemLimits {
  /** The lifetime of the whole collection after this write, in milliseconds. */
  ttlMs: number;
  /** The largest size of the whole collection. The least recently changed items are evicted first. */
  maxBytes: number;
}

/** A part of the items of a collection. */
export interface ItemsChunk {
  /** An id that differs after the collection was removed or lost, and created again. */
  generation: string;
  items: (Item & { id: string })[];
  /** The sequence number of the newest evicted item. All items up to this number have been evicted. */
  evictedThrough: number;
  /** The number of evicted items by the first letter of their ids, since the collection was created. */
  evictedCounts: Record<string, number>;
  /** True if no later items exist. */
  isLast: boolean;
}

/** The size of a chunk. A chunk ends with the item that reaches the number of items or of bytes. */
export const chunkLimits = { items: 1000, bytes: 1024 * 1024 };

/** Opens a store on a server. */
export interface StoreDriver {
  /** The host and the port of the store, for log messages. */
  hostAndPort: string;
  /** @param onError receives errors of connections that belong to no call */
  open(onError: (error: Error) => void): RemoteStore;
}

/** The log of the storage layer. No message contains the password of the store. */
export interface StorageLog {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
}
