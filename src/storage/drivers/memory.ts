import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../../api/errors.ts';
import { chunkLimits, type Item, type ItemsChunk, type ReadResult, type Store } from '../storage.ts';

/** What a change leaves in a store. Applied in the same order, records make an equal store elsewhere. */
export type StoreRecord = DocumentRecord | CollectionRecord;

export interface DocumentRecord {
  key: string;
  /** Empty if the document was removed. */
  version: string;
  expiresAt: number;
  body: Buffer;
}

export interface CollectionRecord extends Omit<ItemsChunk, 'isLast'> {
  name: string;
  lastSequenceNumber: number;
  expiresAt: number;
}

interface Collection extends Omit<CollectionRecord, 'items'> {
  /** Those that changed first come first. */
  items: Map<string, Item>;
  bytes: number;
}

export interface MemoryStoreOptions {
  /**
   * Bytes of what ends within a day: beyond that, what was written longest ago is evicted. And of what lives longer: then
   * the store is nearly full, and takes no new document. By default there are no limits.
   */
  maxBytes?: number;
  maxLastingBytes?: number;
  onChange?: (record: StoreRecord) => void;
}

/** The overhead of a document or a collection. */
const entryOverheadBytes = 1000;
/** What lives longer must not be lost: spending, labels. */
const maxTemporaryTtlMs = 86_400_000;

interface Entry {
  record: DocumentRecord | Collection;
  bytes: number;
  isLasting: boolean;
}

export class MemoryStore implements Store {
  readonly now: () => number;
  readonly isUp = () => true;
  readonly #options: Required<MemoryStoreOptions>;
  /** Documents and collections, those that were written longest ago first. */
  readonly #entries = new Map<string, Entry>();
  /** Bytes of entries that end within a day, and of the others. */
  #temporaryBytes = 0;
  #lastingBytes = 0;
  #lastSequenceNumber = 0;

  constructor(now: () => number, options: MemoryStoreOptions = {}) {
    this.now = now;
    this.#options = { maxBytes: Infinity, maxLastingBytes: Infinity, onChange: () => {}, ...options };
  }

  get bytes(): number {
    return this.#temporaryBytes + this.#lastingBytes;
  }

  async readDocument(key: string, cachedVersion?: string): Promise<ReadResult> {
    const now = this.now();
    const document = this.#findDocument(key);
    if (document === undefined) return { now };
    const { version, body } = document;
    return { now, document: { version, body: version === cachedVersion ? undefined : body } };
  }

  async swapDocument(...[key, expected, { version, body, ttlMs }]: Parameters<Store['swapDocument']>) {
    const now = this.now();
    const document = this.#findDocument(key);
    if ((document?.version ?? '') !== expected)
      return { now, document: document && { version: document.version, body: document.body }, isDone: false };
    if (!body && !document) return { now, isDone: true };
    if (body && ttlMs > maxTemporaryTtlMs && !this.#entries.get(`document ${key}`)?.isLasting) this.#assertNotFull();
    this.#change({ key, version: body ? version : '', expiresAt: now + ttlMs, body: body ?? Buffer.alloc(0) });
    return { now, isDone: true };
  }

  async readItems(name: string, ids: readonly string[]): Promise<Map<string, Item>> {
    const items = this.#findCollection(name)?.items;
    return new Map(ids.flatMap((id) => (items?.has(id) ? [[id, items.get(id) as Item] as const] : [])));
  }

  async putItems(...[name, changes, { ttlMs, maxBytes }]: Parameters<Store['putItems']>): Promise<Set<string>> {
    const now = this.now();
    const { items, ...about } =
      this.#findCollection(name) ?? createCollection(name, Math.max(Math.ceil(now * 1000), this.#lastSequenceNumber));
    const [refused, put] = [new Set<string>(), new Map<string, Item>()];
    let { lastSequenceNumber: seq, bytes, evictedThrough: floor } = about;
    for (const change of changes) {
      const before = put.get(change.id) ?? items.get(change.id);
      if ((before?.sequenceNumber ?? 0) !== change.expectedSequenceNumber) refused.add(change.id);
      else {
        put.delete(change.id);
        seq = Math.max(seq + 1, Math.ceil(now * 1000));
        put.set(change.id, { sequenceNumber: seq, body: change.body });
        bytes += change.body.length - (before?.body.length ?? 0);
      }
    }
    const gone = { ...about.evictedCounts };
    const inOrder = function* () {
      for (const [id, item] of items) if (!put.has(id)) yield [id, item] as const;
      yield* put;
    };
    for (const [id, item] of inOrder()) {
      if (bytes <= maxBytes) break;
      bytes -= item.body.length;
      floor = item.sequenceNumber;
      gone[id.slice(0, 1)] = (gone[id.slice(0, 1)] ?? 0) + 1;
    }
    const written = [...put].map(([id, item]) => ({ id, ...item }));
    this.#change({
      name,
      generation: about.generation,
      lastSequenceNumber: seq,
      evictedThrough: floor,
      evictedCounts: gone,
      expiresAt: now + ttlMs,
      items: written,
    });
    return refused;
  }

  async readItemsSince(name: string, after: number): Promise<ItemsChunk | undefined> {
    const collection = this.#findCollection(name);
    if (collection === undefined) return undefined;
    const { generation: epoch, evictedThrough: floor, evictedCounts: gone, lastSequenceNumber: seq } = collection;
    const [items = []] = splitIntoChunks(collection.items, after);
    return {
      generation: epoch,
      items,
      evictedThrough: floor,
      evictedCounts: { ...gone },
      isLast: (items.at(-1)?.sequenceNumber ?? seq) === seq,
    };
  }

  isNearlyFull(): boolean {
    return this.#lastingBytes >= this.#options.maxLastingBytes;
  }

  apply(record: StoreRecord): void {
    if ('key' in record) this.#put(`document ${record.key}`, record.version === '' ? undefined : record);
    else {
      const name = `collection ${record.name}`;
      this.#put(name, applyToCollection(record, this.#entries.get(name)?.record as Collection | undefined));
      this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, record.lastSequenceNumber);
    }
    for (const [name, { isLasting }] of this.#entries) {
      if (this.#temporaryBytes <= this.#options.maxBytes) return;
      if (!isLasting) this.#put(name, undefined);
    }
  }

  /** What makes an equal store, in parts. */
  *records(): Generator<StoreRecord> {
    for (const { record } of this.#entries.values()) {
      if (record.expiresAt <= this.now()) continue;
      if ('key' in record) yield record;
      else for (const items of splitIntoChunks([...record.items])) yield { ...record, items };
    }
  }

  removeExpired(): void {
    const now = this.now();
    for (const [name, { record }] of this.#entries) if (record.expiresAt <= now) this.#put(name, undefined);
  }

  #assertNotFull(): void {
    if (this.isNearlyFull()) this.removeExpired();
    if (!this.isNearlyFull()) return;
    const problem = 'This server cannot track the spending of any more keys.';
    throw new AdLibraryError({ kind: 'busy', problem, storage: 'full' });
  }

  #change(record: StoreRecord): void {
    this.apply(record);
    this.#options.onChange(record);
  }

  #put(name: string, record: DocumentRecord | Collection | undefined): void {
    const before = this.#entries.get(name);
    if (before) this.#count(before, -1);
    this.#entries.delete(name);
    if (record === undefined) return;
    const bytes = entryOverheadBytes + ('key' in record ? record.body.length : record.bytes);
    const entry = { record, bytes, isLasting: record.expiresAt - this.now() > maxTemporaryTtlMs };
    this.#count(entry, 1);
    this.#entries.set(name, entry);
  }

  #count({ bytes, isLasting }: Entry, sign: 1 | -1): void {
    if (isLasting) this.#lastingBytes += sign * bytes;
    else this.#temporaryBytes += sign * bytes;
  }

  #findDocument = (key: string) => this.#findUnexpired(`document ${key}`) as DocumentRecord | undefined;
  #findCollection = (name: string) => this.#findUnexpired(`collection ${name}`) as Collection | undefined;

  #findUnexpired(name: string): DocumentRecord | Collection | undefined {
    const { record } = this.#entries.get(name) ?? {};
    if (record === undefined || record.expiresAt > this.now()) return record;
    this.#put(name, undefined);
    return undefined;
  }
}

const createCollection = (name: string, seq: number): Collection => ({
  name,
  generation: randomUUID(),
  lastSequenceNumber: seq,
  items: new Map(),
  bytes: 0,
  evictedThrough: 0,
  evictedCounts: {},
  expiresAt: 0,
});

function applyToCollection(record: CollectionRecord, before: Collection | undefined): Collection {
  const collection = before?.generation === record.generation ? before : createCollection(record.name, 0);
  const { items } = collection;
  let { bytes } = collection;
  const remove = (id: string) => {
    bytes -= items.get(id)?.body.length ?? 0;
    items.delete(id);
  };
  for (const { id, sequenceNumber: seq, body } of record.items) {
    remove(id);
    items.set(id, { sequenceNumber: seq, body });
    bytes += body.length;
  }
  for (const [id, { sequenceNumber: seq }] of items) {
    if (seq > record.evictedThrough) break;
    remove(id);
  }
  return { ...record, items, bytes };
}

/** Items after a number in parts, of which there is at least one. */
function* splitIntoChunks(items: Iterable<[string, Item]>, after = 0): Generator<ItemsChunk['items']> {
  let [part, bytes]: [ItemsChunk['items'], number] = [[], 0];
  let isFirst = true;
  for (const [id, item] of items) {
    if (item.sequenceNumber <= after) continue;
    part.push({ id, ...item });
    bytes += item.body.length;
    if (part.length < chunkLimits.items && bytes < chunkLimits.bytes) continue;
    yield part;
    [part, bytes, isFirst] = [[], 0, false];
  }
  if (part.length > 0 || isFirst) yield part;
}
