/**
 * A store for documents and collections. A document is replaced by compare-and-swap. A collection contains items,
 * sorted by their last change. All entries expire. All times are by the store's clock. A call that fails may still have
 * changed the store.
 */
export interface Store {
  /**
   * Reads a document.
   * @param cachedVersion the version that the caller has cached; if it is the current version, the result has no body
   */
  readDocument(key: string, cachedVersion?: string): Promise<ReadResult>;
  /**
   * Replaces or removes a document if its version is `expected` (compare-and-swap). Otherwise changes nothing and
   * returns the current document.
   * @param expected the expected version; `''` if the document must not exist
   */
  swapDocument(key: string, expected: string, next: NextDocument): Promise<SwapResult>;
  /** Reads items of a collection by id. Ids without an item have no entry in the result. */
  readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /**
   * Writes each item that still has the expected sequence number, then evicts the oldest items above the limits.
   * Returns the ids of the items that were not written, because another process had changed them.
   */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /**
   * Reads the items that changed after the sequence number `after`, in the order of their last change. Returns one
   * chunk of them, or undefined if the collection does not exist.
   */
  readItemsSince(name: string, after: number): Promise<ItemsChunk | undefined>;
}

/** A store on a server. The server may be unreachable, full or closed. */
export interface RemoteStore extends Store {
  /**
   * Connects to the server and creates missing tables. Must succeed before other methods are called. May be called
   * again, e.g. after the connection was lost.
   * @throws Error if the server cannot be reached
   */
  connect(): Promise<void>;
  /** Returns true if the store is nearly full. Callers should then write only essential data, such as spending. */
  isNearlyFull(): boolean;
  /**
   * Returns true if the server itself rejected a call. Unlike a lost connection, such an error affects only this call.
   */
  isRefusal(error: unknown): boolean;
  close(): Promise<void>;
}

/** The result of reading a document. */
export interface ReadResult {
  /** The current time of the store, in milliseconds since 1970. */
  now: number;
  /** The document, or undefined if there is none. `body` is undefined if the caller has cached this version. */
  document?: { version: string; body?: Buffer | undefined } | undefined;
}

/**
 * The result of a compare-and-swap. If `isDone` is false, nothing was changed, and `document` is the current document.
 */
export interface SwapResult extends ReadResult {
  isDone: boolean;
}

/** The version, body and lifetime that a document gets when it is replaced. */
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
   * The sequence number of the item's last change. Later changes in the collection always have higher numbers, even
   * after data was lost, because each number is at least the store's time in microseconds.
   */
  sequenceNumber: number;
  body: Buffer;
}

/** A change that adds an item to a collection, or replaces the body of an item. */
export interface ItemChange {
  id: string;
  /** The sequence number of the item when it was read, or 0 if there was no item. */
  expectedSequenceNumber: number;
  body: Buffer;
}

/** The limits of a collection. Each write replaces the limits of the previous write. */
export interface ItemLimits {
  /** The lifetime of the whole collection after this write, in milliseconds. */
  ttlMs: number;
  /**
   * The maximum size of the collection in bytes. Above this size, the items whose last change is oldest are evicted.
   */
  maxBytes: number;
}

/** Some consecutive items of a collection, together with the state of the collection. */
export interface ItemsChunk {
  /** A random id of the collection. If the collection is removed or lost and then created again, it gets a new id. */
  generation: string;
  items: (Item & { id: string })[];
  /** The sequence number of the newest evicted item. All items with this number or a lower one have been evicted. */
  evictedThrough: number;
  /**
   * The number of items that were evicted since the collection was created, by the first character of their ids, e.g.
   * `{ a: 12 }`.
   */
  evictedCounts: Record<string, number>;
  /** True if the collection has no later items. */
  isLast: boolean;
}

/** The limits of a chunk of items. A chunk ends with the item that reaches one of them. */
export const chunkLimits = { items: 1000, bytes: 1024 * 1024 };

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
   * Looks for a likely cause of a failed connection that the error does not mention, e.g. missing TLS. Returns the
   * cause and what to change, or undefined if no such cause was found.
   */
  explainFailure?(): Promise<string | undefined>;
}

/** The log methods that the storage code uses. Messages must never contain the password of the store. */
export interface StorageLog {
  error(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
}
