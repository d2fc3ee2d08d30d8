/**
 * What processes share, as small as it can be: documents that are replaced whole if nobody was faster, and collections
 * of items in the order of their last change. Names and bodies are opaque, everything expires, and all times are by the
 * clock of the store. A call that fails may still have been carried out.
 */
export interface Store {
  /** Makes what the store needs, and rejects if it cannot be reached. Other calls come after it. */
  connect(): Promise<void>;
  /** @param known a version whose body is not needed */
  read(key: string, known?: string): Promise<Seen>;
  /**
   * Replaces or removes a document whose version is still that one (`''` for none). Otherwise returns the document that
   * is there.
   */
  swap(key: string, expected: string, next: NextDocument): Promise<Swapped>;
  /** The items of these ids that exist. */
  items(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /** Writes each item that is still as it was read. Returns the ids of the others, for which somebody was faster. */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /** Items that changed after `after`, in the order in which they changed: some at a time, at least one. */
  itemsSince(name: string, after: number): Promise<ItemsPart | undefined>;
  /** Whether the store is nearly full, so that only necessary things should be written. */
  isTight(): boolean;
  /** Whether the store itself refused a call, for a reason that concerns no other call. */
  refuses(error: unknown): boolean;
  close(): Promise<void>;
}

export interface Seen {
  /** In milliseconds since the epoch, by the clock of the store. */
  now: number;
  /** The document, without its body if its version was known. */
  found?: { version: string; body?: Buffer | undefined } | undefined;
}

export interface Swapped extends Seen {
  isDone: boolean;
}

export interface NextDocument {
  /** A version that was never used before. */
  version: string;
  /** Undefined removes the document. */
  body: Buffer | undefined;
  ttlMs: number;
}

export interface Item {
  /**
   * A number higher than that of every earlier change of the collection, even of a removed collection of the same name.
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
