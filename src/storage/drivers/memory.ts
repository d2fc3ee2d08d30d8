import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../../api/errors.ts';
import { chunkLimits, type Item, type ItemsChunk, type ReadResult, type Store } from '../storage.ts';

/**
 * A change to a document or a collection of a store. A copy of a store can be built by applying all its changes, in
 * order, to an empty store.
 */
export type StoreChange = DocumentRecord | CollectionRecord;

/** A document after a change, with its new version, expiry time and content. */
export interface DocumentRecord {
  key: string;
  /** The version of the document, or `''` if the document was removed. */
  version: string;
  /** The time at which the document expires, in milliseconds by the store's clock. */
  expiresAt: number;
  body: Buffer;
}

/** A collection after a change. `items` contains only the items that have changed. */
export interface CollectionRecord extends Omit<ItemsChunk, 'isLastChunk'> {
  name: string;
  /** The highest sequence number in the collection so far. The next changed item gets a higher number. */
  lastSequenceNumber: number;
  expiresAt: number;
}

interface Collection extends Omit<CollectionRecord, 'items'> {
  /**
   * The items by id, sorted by their last change. The item whose last change is oldest comes first and is evicted
   * first.
   */
  items: Map<string, Item>;
  bytes: number;
}

/** The options for `MemoryStore`, a store in the memory of one process. */
export interface MemoryStoreOptions {
  /**
   * The memory limit, in bytes, for entries that expire within a day. If the limit is exceeded, the store evicts the
   * entries whose last write is oldest. Default: no limit.
   */
  maxBytes?: number;
  /**
   * The memory limit, in bytes, for entries that live longer than a day. At this limit, the store counts as nearly full
   * and refuses new documents that live longer than a day. Default: no limit.
   */
  maxLongLivedBytes?: number;
  /** Called after each change to the store, e.g. to write the change to a file. */
  onChange?: (record: StoreChange) => void;
}

/** The store does not search for expired entries as long as it uses less memory than this, in bytes. */
const minSweptBytes = 1024 * 1024;

/** The estimated memory, in bytes, that a document or a collection needs in addition to its content. */
const entryOverheadBytes = 1000;
/**
 * The maximum lifetime of a short-lived entry, in milliseconds. Entries that live longer, such as spending and labels,
 * are never evicted.
 */
const maxShortLivedTtlMs = 86_400_000;

interface StoreEntry {
  record: DocumentRecord | Collection;
  bytes: number;
  isLongLived: boolean;
}

/**
 * A store in the memory of this process. `FileStore` also uses a `MemoryStore`, for the data that it has read from a
 * file.
 */
export class MemoryStore implements Store {
  readonly now: () => number;
  readonly isUp = () => true;
  readonly #options: Required<MemoryStoreOptions>;
  /**
   * The documents and collections, sorted by their last write. Of the short-lived entries, the entry whose last write
   * is oldest is evicted first.
   */
  readonly #entries = new Map<string, StoreEntry>();
  /** The memory, in bytes, that short-lived entries (which expire within a day) and all other entries use. */
  #shortLivedBytes = 0;
  #longLivedBytes = 0;
  #lastSequenceNumber = 0;
  /** The size of the store, in bytes, above which the next write removes all expired entries. */
  #sweepAboveBytes = minSweptBytes;

  constructor(now: () => number, options: MemoryStoreOptions = {}) {
    this.now = now;
    this.#options = { maxBytes: Infinity, maxLongLivedBytes: Infinity, onChange: () => {}, ...options };
  }

  get bytes(): number {
    return this.#shortLivedBytes + this.#longLivedBytes;
  }

  async readDocument(key: string, cachedVersion?: string): Promise<ReadResult> {
    const now = this.now();
    const document = this.#findDocument(key);
    if (document === undefined) return { now };
    const { version, body } = document;
    return { now, document: { version, body: version === cachedVersion ? undefined : body } };
  }

  async swapDocument(...[key, expectedVersion, { version, body, ttlMs }]: Parameters<Store['swapDocument']>) {
    const now = this.now();
    const document = this.#findDocument(key);
    if ((document?.version ?? '') !== expectedVersion)
      return { now, document: document && { version: document.version, body: document.body }, isDone: false };
    if (!body && !document) return { now, isDone: true };
    if (body && ttlMs > maxShortLivedTtlMs && !this.#entries.get(`document ${key}`)?.isLongLived) this.#assertNotFull();
    this.#applyAndReport({ key, version: body ? version : '', expiresAt: now + ttlMs, body: body ?? Buffer.alloc(0) });
    return { now, isDone: true };
  }

  async readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>> {
    const items = this.#findCollection(name)?.items;
    return new Map(ids.flatMap((id) => (items?.has(id) ? [[id, items.get(id) as Item] as const] : [])));
  }

  async putItems(...[name, changes, { ttlMs, maxBytes }]: Parameters<Store['putItems']>): Promise<Set<string>> {
    const now = this.now();
    const { items, ...metadata } =
      this.#findCollection(name) ?? createCollection(name, Math.max(Math.ceil(now * 1000), this.#lastSequenceNumber));
    const [refusedIds, newItems] = [new Set<string>(), new Map<string, Item>()];
    let { lastSequenceNumber: sequenceNumber, bytes, lastEvictedSequenceNumber } = metadata;
    for (const change of changes) {
      const currentItem = newItems.get(change.id) ?? items.get(change.id);
      if ((currentItem?.sequenceNumber ?? 0) !== change.expectedSequenceNumber) refusedIds.add(change.id);
      else {
        newItems.delete(change.id);
        sequenceNumber = Math.max(sequenceNumber + 1, Math.ceil(now * 1000));
        newItems.set(change.id, { sequenceNumber, body: change.body });
        bytes += change.body.length - (currentItem?.body.length ?? 0);
      }
    }
    const evictedCounts = { ...metadata.evictedCounts };
    const listItemsInOrder = function* () {
      for (const [id, item] of items) if (!newItems.has(id)) yield [id, item] as const;
      yield* newItems;
    };
    for (const [id, item] of listItemsInOrder()) {
      if (bytes <= maxBytes) break;
      bytes -= item.body.length;
      lastEvictedSequenceNumber = item.sequenceNumber;
      evictedCounts[id.slice(0, 1)] = (evictedCounts[id.slice(0, 1)] ?? 0) + 1;
    }
    const writtenItems = [...newItems].map(([id, item]) => ({ id, ...item }));
    this.#applyAndReport({
      name,
      generation: metadata.generation,
      lastSequenceNumber: sequenceNumber,
      lastEvictedSequenceNumber,
      evictedCounts,
      expiresAt: now + ttlMs,
      items: writtenItems,
    });
    return refusedIds;
  }

  async readItemsSince(name: string, afterSequenceNumber: number): Promise<ItemsChunk | undefined> {
    const collection = this.#findCollection(name);
    if (collection === undefined) return undefined;
    const { generation, lastEvictedSequenceNumber, evictedCounts, lastSequenceNumber } = collection;
    const [items = []] = splitIntoChunks(collection.items, afterSequenceNumber);
    return {
      generation,
      items,
      lastEvictedSequenceNumber,
      evictedCounts: { ...evictedCounts },
      isLastChunk: (items.at(-1)?.sequenceNumber ?? lastSequenceNumber) === lastSequenceNumber,
    };
  }

  isNearlyFull(): boolean {
    return this.#longLivedBytes >= this.#options.maxLongLivedBytes;
  }

  /**
   * Applies a change that this or another store has reported. For example, `FileStore` applies the changes that it
   * reads from a file.
   */
  applyRecord(record: StoreChange): void {
    if ('key' in record) this.#setEntry(`document ${record.key}`, record.version === '' ? undefined : record);
    else {
      const entryName = `collection ${record.name}`;
      this.#setEntry(
        entryName,
        applyToCollection(record, this.#entries.get(entryName)?.record as Collection | undefined),
      );
      this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, record.lastSequenceNumber);
    }
    for (const [name, { isLongLived }] of this.#entries) {
      if (this.#shortLivedBytes <= this.#options.maxBytes) return;
      if (!isLongLived) this.#setEntry(name, undefined);
    }
  }

  /** Yields records from which `applyRecord` can rebuild this store. Splits a large collection into several records. */
  *listRecords(): Generator<StoreChange> {
    for (const { record } of this.#entries.values()) {
      if (record.expiresAt <= this.now()) continue;
      if ('key' in record) yield record;
      else for (const items of splitIntoChunks([...record.items])) yield { ...record, items };
    }
  }

  /** Removes all expired entries. */
  removeExpired(): void {
    const now = this.now();
    for (const [name, { record }] of this.#entries) if (record.expiresAt <= now) this.#setEntry(name, undefined);
  }

  #assertNotFull(): void {
    if (this.isNearlyFull()) this.removeExpired();
    if (!this.isNearlyFull()) return;
    const problem = 'This server cannot track the spending of any more keys.';
    throw new AdLibraryError({ kind: 'busy', problem, storage: 'full' });
  }

  #applyAndReport(record: StoreChange): void {
    this.applyRecord(record);
    this.#options.onChange(record);
    this.#removeExpiredIfGrown();
  }

  /**
   * Removes all expired entries if the store has doubled in size since the last removal. Without this method, an expired
   * entry would stay in memory until somebody reads it.
   */
  #removeExpiredIfGrown(): void {
    if (this.bytes <= this.#sweepAboveBytes) return;
    this.removeExpired();
    this.#sweepAboveBytes = Math.max(minSweptBytes, 2 * this.bytes);
  }

  #setEntry(name: string, record: DocumentRecord | Collection | undefined): void {
    const previousEntry = this.#entries.get(name);
    if (previousEntry) this.#countBytes(previousEntry, -1);
    this.#entries.delete(name);
    if (record === undefined) return;
    const bytes = entryOverheadBytes + ('key' in record ? record.body.length : record.bytes);
    const entry = { record, bytes, isLongLived: record.expiresAt - this.now() > maxShortLivedTtlMs };
    this.#countBytes(entry, 1);
    this.#entries.set(name, entry);
  }

  #countBytes({ bytes, isLongLived }: StoreEntry, sign: 1 | -1): void {
    if (isLongLived) this.#longLivedBytes += sign * bytes;
    else this.#shortLivedBytes += sign * bytes;
  }

  #findDocument = (key: string) => this.#findUnexpired(`document ${key}`) as DocumentRecord | undefined;
  #findCollection = (name: string) => this.#findUnexpired(`collection ${name}`) as Collection | undefined;

  #findUnexpired(name: string): DocumentRecord | Collection | undefined {
    const { record } = this.#entries.get(name) ?? {};
    if (record === undefined || record.expiresAt > this.now()) return record;
    this.#setEntry(name, undefined);
    return undefined;
  }
}

const createCollection = (name: string, lastSequenceNumber: number): Collection => ({
  name,
  generation: randomUUID(),
  lastSequenceNumber,
  items: new Map(),
  bytes: 0,
  lastEvictedSequenceNumber: 0,
  evictedCounts: {},
  expiresAt: 0,
});

function applyToCollection(record: CollectionRecord, previousCollection: Collection | undefined): Collection {
  const collection =
    previousCollection?.generation === record.generation ? previousCollection : createCollection(record.name, 0);
  const { items } = collection;
  let { bytes } = collection;
  const removeItem = (id: string) => {
    bytes -= items.get(id)?.body.length ?? 0;
    items.delete(id);
  };
  for (const { id, sequenceNumber: itemSequenceNumber, body } of record.items) {
    removeItem(id);
    items.set(id, { sequenceNumber: itemSequenceNumber, body });
    bytes += body.length;
  }
  for (const [id, { sequenceNumber: itemSequenceNumber }] of items) {
    if (itemSequenceNumber > record.lastEvictedSequenceNumber) break;
    removeItem(id);
  }
  return { ...record, items, bytes };
}

/**
 * Yields the items whose sequence number is higher than `afterSequenceNumber`, in chunks of limited size. Yields at
 * least one chunk, which may be empty.
 */
function* splitIntoChunks(items: Iterable<[string, Item]>, afterSequenceNumber = 0): Generator<ItemsChunk['items']> {
  let [chunk, bytes]: [ItemsChunk['items'], number] = [[], 0];
  let isFirst = true;
  for (const [id, item] of items) {
    if (item.sequenceNumber <= afterSequenceNumber) continue;
    chunk.push({ id, ...item });
    bytes += item.body.length;
    if (chunk.length < chunkLimits.maxItems && bytes < chunkLimits.maxBytes) continue;
    yield chunk;
    [chunk, bytes, isFirst] = [[], 0, false];
  }
  if (chunk.length > 0 || isFirst) yield chunk;
}
