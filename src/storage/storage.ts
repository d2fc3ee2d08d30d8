/**
 * The interface of a storage backend. A store contains documents, which are replaced by compare-and-swap, and
 * collections of items, which are ordered by their last change. The store does not interpret names and bodies. All data
 * expires. All times are by the store's clock. A call that fails may still have changed the store.
 */
export interface Store {
  /**
   * Reads a document.
   * @param cachedVersion the version that the caller has cached; if it is current, the result has no body
   */
  readDocument(key: string, cachedVersion?: string): Promise<ReadResult>;
  /**
   * Replaces or removes a document if its current version is `expected` (compare-and-swap). Otherwise changes nothing
   * and returns the current document.
   * @param expected the expected version; `''` if the document must not exist
   */
  swapDocument(key: string, expected: string, next: NextDocument): Promise<SwapResult>;
  /** Reads items of a collection by id. The result has no entry for ids without an item. */
  readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /**
   * Writes each item whose sequence number is still the expected one, then evicts the oldest items above the limits.
   * Returns the ids of the items that were not written because another process had changed them.
   */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /**
   * Reads items that changed after a sequence number, in the order of their last change. Returns one chunk, which
   * contains at least one item if there is any. Returns undefined if the collection does not exist.
   */
  readItemsSince(name: string, after: number): Promise<ItemsChunk | undefined>;
}

/** A store on a server. The server may be unreachable, full or closed. */
export interface RemoteStore extends Store {
  /**
   * Connects to the server and creates missing tables. Must succeed once before other methods are called. May be called
   * again after a failure or after the server was unreachable.
   * @throws Error if the server cannot be reached
   */
  connect(): Promise<void>;
  /** Returns true if the store is nearly full. Callers should then write only essential data, such as spending. */
  isNearlyFull(): boolean;
  /**
   * Returns true if the store itself rejected a single call. Unlike a lost connection, such an error says nothing about
   * other calls.
   */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

/** The result of reading a document: the document, and the time of the store. */
export interface ReadResult {
  /** The current time of the store, in milliseconds since 1970. */
  now: number;
  /** The document, or undefined if it does not exist. The body is omitted if the caller already has this version. */
  document?: { version: string; body?: Buffer | undefined } | undefined;
}

/** The result of a compare-and-swap. If `isDone` is false, `document` is the current document. */
export interface SwapResult extends ReadResult {
  isDone: boolean;
}

/** The version, body and lifetime that a document gets when it is replaced. */
interface NextDocument {
  /** The new version: a text that was never used as the version of any document before. */
  version: string;
  /** The new content of the document. If undefined, the document is removed. */
  body: Buffer | undefined;
  ttlMs: number;
}

/** An item of a collection, e.g. one stored ad. */
export interface Item {
  /**
   * The sequence number of the item's last change. It is higher than the number of every earlier change in the
   * collection, including changes that were removed or lost. To guarantee this, it is at least the store's time in
   * microseconds.
   */
  sequenceNumber: number;
  body: Buffer;
}

/** A change that replaces the body of one item of a collection, or adds the item. */
export interface ItemChange {
  id: string;
  /** The sequence number that the item had when it was read, or 0 if there was no item. */
  expectedSequenceNumber: number;
  body: Buffer;
}

/** The limits of a collection. Each write sets them again, in place of the limits of the previous write. */
export interface ItemLimits {
  /** The lifetime of the whole collection after this write, in milliseconds. */
  ttlMs: number;
  /**
   * The maximum size of the collection in bytes. Above it, the items that were changed longest ago are evicted first.
   */
  maxBytes: number;
}

/** A chunk of consecutive items of a collection, together with the state of the collection. */
export interface ItemsChunk {
  /** A random id of the collection. It changes if the collection is removed or lost and then created again. */
  generation: string;
  items: (Item & { id: string })[];
  /** The sequence number of the newest evicted item. All items up to this number have been evicted. */
  evictedThrough: number;
  /** The number of items evicted since the collection was created, by the first character of their ids. */
  evictedCounts: Record<string, number>;
  /** True if this is the last chunk, i.e. if the collection has no later items. */
  isLast: boolean;
}

/** The maximum number of items and bytes per chunk. The item that reaches one of them is the last one in its chunk. */
export const chunkLimits = { items: 1000, bytes: 1024 * 1024 };

/** A driver that opens stores on one kind of server, e.g. Redis or PostgreSQL. */
export interface StoreDriver {
  /** The host and port of the store's server, for log messages. */
  hostAndPort: string;
  /**
   * Opens a store on the server.
   * @param onError called with connection errors that do not belong to any call
   */
  open(onError: (error: Error) => void): RemoteStore;
  /**
   * Called after a failed attempt to connect.
   * @returns a likely cause that the error does not mention, and what to change; undefined if there is no such cause
   */
  explainFailure?(): Promise<string | undefined>;
}

/** The log methods that the storage code uses. Messages never contain the password of the store. */
export interface StorageLog {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
}
