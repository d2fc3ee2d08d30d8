/**
 * What processes share, as small as it can be: documents that are replaced whole if nobody was faster, and collections
 * of items in the order of their last change. Names and bodies are opaque, whatever is written ends, and all times are
 * by the clock of the store. A call that fails may have been carried out all the same.
 */
export interface Store {
  /** Makes what the store needs, and rejects if it cannot be reached. Other calls come after it. */
  connect(): Promise<void>;
  /** @param known a version whose body is not needed */
  read(key: string, known?: string): Promise<Seen>;
  /** Replaces or removes a document whose version is still that one (`''` for none). What it finds instead, it returns. */
  swap(key: string, expected: string, next: NextDocument): Promise<Swapped>;
  /** Those of the items that there are. */
  items(name: string, ids: readonly string[]): Promise<Map<string, Item>>;
  /** Writes each item that is still as it was read. Returns the ids of the others, for which somebody was faster. */
  putItems(name: string, changes: readonly ItemChange[], limits: ItemLimits): Promise<Set<string>>;
  /** Items that changed after `after`, those that changed first coming first: some at a time, at least one. */
  itemsSince(name: string, after: number): Promise<ItemsPart | undefined>;
  /** Whether it is nearly full, so that what can be done without should not be written. */
  isTight(): boolean;
  /** Whether it is the store itself that refused a call, for a reason that concerns no other. */
  refuses(error: unknown): boolean;
  close(): Promise<void>;
}

export interface Seen {
  /** In milliseconds since the epoch, by the clock of the store. */
  now: number;
  /** Without its body if that is the version which was known. */
  found?: { version: string; body?: Buffer | undefined } | undefined;
}

export interface Swapped extends Seen {
  isDone: boolean;
}

export interface NextDocument {
  /** One that was never used before. */
  version: string;
  /** Undefined removes the document. */
  body: Buffer | undefined;
  ttlMs: number;
}

export interface Item {
  /** Higher than that of every earlier change of the collection, also of one of that name which is gone. */
  seq: number;
  body: Buffer;
}

export interface ItemChange {
  id: string;
  /** As it was read; 0 if there was none. */
  seq: number;
  body: Buffer;
}

/** Of the whole collection. Where it takes more room, the items that changed longest ago go. */
export interface ItemLimits {
  ttlMs: number;
  maxBytes: number;
}

export interface ItemsPart {
  /** Another one after the collection was removed or lost. */
  epoch: string;
  items: (Item & { id: string })[];
  /** Items that did not change after this are gone for want of room: how many, by the first letter of their ids. */
  floor: number;
  gone: Record<string, number>;
  isLast: boolean;
}

/** Items and bytes of one part of a collection: it ends with the item that reaches either. */
export const partLimits = { items: 1000, bytes: 1024 * 1024 };
