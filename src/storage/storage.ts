/**
 * A store for documents and collections. Documents are replaced by compare-and-swap. A collection contains items,
 * sorted by their last change. All documents and collections expire. All times are measured by the store's clock. A
 * call that fails may still have changed the store.
 */
export interface Store {
  /**
   * Reads a document.
   * @param cachedVersion the version that the caller has cached. If this version is current, the result has no body.
   */
  readDocument(key: string, cachedVersion?: string): Promise<ReadResult>;
  /**
   * Replaces or removes a document if its current version is `expectedVersion` (compare-and-swap). Otherwise changes
   * nothing and returns the current document.
   * @param expectedVersion the version that the caller expects, or `''` if the document must not exist
   */
  swapDocument(key: string, expectedVersion: string, nextDocument: NextDocument): Promise<SwapResult>;
  /**
   * Reads the items with the given ids from a collection. If there is no item with an id, the result has no entry for
   * this id.
   */
  readItems(collectionName: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /**
   * Writes each item that still has the expected sequence number. Then evicts the items that have not changed for the
   * longest time until the collection is within `limits`. Returns the ids of the items that were not written because
   * another process had changed them.
   */
  putItems(collectionName: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /**
   * Reads the items that changed after a sequence number, in the order of their last change. Returns one chunk of
   * items, or undefined if the collection does not exist.
   */
  readItemsSince(collectionName: string, afterSequenceNumber: number): Promise<ItemsChunk | undefined>;
}

/** A store on a server, e.g. Redis. The server may be unreachable, full or closed. */
export interface RemoteStore extends Store {
  /**
   * Connects to the server and creates missing tables. This call must succeed before other methods are called. It may
   * be repeated, e.g. after the connection was lost.
   * @throws Error if the server cannot be reached
   */
  connect(): Promise<void>;
  /** Returns true if the store is nearly full. Callers should then write only essential data, such as spending. */
  isNearlyFull(): boolean;
  /**
   * Returns true if the error means that the server itself rejected a call. Unlike a lost connection, such an error
   * affects only this call.
   */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

/** The result of reading a document. */
export interface ReadResult {
  /** The current time of the store, in milliseconds since 1970. */
  now: number;
  /**
   * The document, or undefined if it does not exist. `body` is undefined if the caller has already cached this version.
   */
  document?: { version: string; body?: Buffer | undefined } | undefined;
}

/**
 * The result of a compare-and-swap. If `isDone` is false, nothing was changed, and `document` is the current document.
 */
export interface SwapResult extends ReadResult {
  isDone: boolean;
}

/** The new version, body and lifetime of a document that is being replaced. */
interface NextDocument {
  /** The new version: a unique text, e.g. a random UUID. */
  version: string;
  /** The new content of the document. Undefined removes the document. */
  body: Buffer | undefined;
  ttlMs: number;
}

/** An item of a collection, e.g. one stored ad. */
export interface Item {
  /**
   * The sequence number of the item's last change. Each number is at least the store's time in microseconds. Later
   * changes in the collection therefore have higher numbers, even after data was lost.
   */
  sequenceNumber: number;
  body: Buffer;
}

/** A change that adds an item to a collection, or replaces the body of an item. */
export interface ItemChange {
  id: string;
  /** The sequence number that the item had when it was read, or 0 if the item did not exist. */
  expectedSequenceNumber: number;
  body: Buffer;
}

/** The limits of a collection. Each write replaces the limits of the previous write. */
export interface ItemLimits {
  /** The lifetime of the whole collection after this write, in milliseconds. */
  ttlMs: number;
  /**
   * The maximum size of the collection in bytes. If the collection becomes larger, the store evicts the items that have
   * not changed for the longest time.
   */
  maxBytes: number;
}

/** Some consecutive items of a collection, together with information about the whole collection. */
export interface ItemsChunk {
  /** A random id of the collection. A collection that is removed or lost and then created again gets a new id. */
  generation: string;
  items: (Item & { id: string })[];
  /** The sequence number of the newest evicted item. All items with this or a lower number have been evicted. */
  lastEvictedSequenceNumber: number;
  /**
   * The number of items that were evicted since the collection was created, grouped by the first character of the item
   * ids, e.g. `{ a: 12 }`.
   */
  evictedCounts: Record<string, number>;
  /** True if the collection has no items after this chunk. */
  isLastChunk: boolean;
}

/** The maximum number of items and bytes in a chunk. A chunk ends with the item that reaches one of these limits. */
export const chunkLimits = { maxItems: 1000, maxBytes: 1024 * 1024 };

/** A driver that opens stores on one kind of server, e.g. Redis or PostgreSQL. */
export interface StoreDriver {
  /** The host and port of the server for log messages, e.g. `redis.example:6379`. */
  hostAndPort: string;
  /**
   * Opens a store on the server.
   * @param onError receives connection errors that do not belong to any call
   */
  open(onError: (error: Error) => void): RemoteStore;
  /**
   * Searches for a likely cause of a failed connection that the error does not mention, e.g. missing TLS. Returns the
   * cause and a way to fix it, or undefined if no cause was found.
   */
  explainFailure?(): Promise<string | undefined>;
}

/** The log methods that the storage code uses. Messages must never contain the password for the store. */
export interface StorageLogger {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
}
