import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../../api/errors.ts';
import { type Item, type ItemsPart, partLimits, type Seen, type Store } from '../storage.ts';

/** What a change leaves in a store. Applied in the same order, records make an equal store elsewhere. */
export type StoreRecord = DocumentRecord | CollectionRecord;

interface DocumentRecord {
  key: string;
  /** Empty if the document was removed. */
  version: string;
  ends: number;
  body: Buffer;
}

interface CollectionRecord extends Omit<ItemsPart, 'isLast'> {
  name: string;
  seq: number;
  ends: number;
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
const entryBytes = 1000;
/** What lives longer must not be lost: spending, labels. */
const lastsAboveMs = 86_400_000;

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
  #endingBytes = 0;
  #lastingBytes = 0;
  #seq = 0;

  constructor(now: () => number, options: MemoryStoreOptions = {}) {
    this.now = now;
    this.#options = { maxBytes: Infinity, maxLastingBytes: Infinity, onChange: () => {}, ...options };
  }

  get bytes(): number {
    return this.#endingBytes + this.#lastingBytes;
  }

  async read(key: string, cachedVersion?: string): Promise<Seen> {
    const now = this.now();
    const found = this.#document(key);
    if (found === undefined) return { now };
    const { version, body } = found;
    return { now, found: { version, body: version === cachedVersion ? undefined : body } };
  }

  async swap(...[key, expected, { version, body, ttlMs }]: Parameters<Store['swap']>) {
    const now = this.now();
    const found = this.#document(key);
    if ((found?.version ?? '') !== expected)
      return { now, found: found && { version: found.version, body: found.body }, isDone: false };
    if (!body && !found) return { now, isDone: true };
    if (body && ttlMs > lastsAboveMs && !this.#entries.get(`document ${key}`)?.isLasting) this.#assertRoom();
    this.#change({ key, version: body ? version : '', ends: now + ttlMs, body: body ?? Buffer.alloc(0) });
    return { now, isDone: true };
  }

  async items(name: string, ids: readonly string[]): Promise<Map<string, Item>> {
    const items = this.#collection(name)?.items;
    return new Map(ids.flatMap((id) => (items?.has(id) ? [[id, items.get(id) as Item] as const] : [])));
  }

  async putItems(...[name, changes, { ttlMs, maxBytes }]: Parameters<Store['putItems']>): Promise<Set<string>> {
    const now = this.now();
    const { items, ...about } =
      this.#collection(name) ?? emptyCollection(name, Math.max(Math.ceil(now * 1000), this.#seq));
    const [refused, put] = [new Set<string>(), new Map<string, Item>()];
    let { seq, bytes, floor } = about;
    for (const change of changes) {
      const before = put.get(change.id) ?? items.get(change.id);
      if ((before?.seq ?? 0) !== change.seq) refused.add(change.id);
      else {
        put.delete(change.id);
        seq = Math.max(seq + 1, Math.ceil(now * 1000));
        put.set(change.id, { seq, body: change.body });
        bytes += change.body.length - (before?.body.length ?? 0);
      }
    }
    const gone = { ...about.gone };
    const inOrder = function* () {
      for (const [id, item] of items) if (!put.has(id)) yield [id, item] as const;
      yield* put;
    };
    for (const [id, item] of inOrder()) {
      if (bytes <= maxBytes) break;
      bytes -= item.body.length;
      floor = item.seq;
      gone[id.slice(0, 1)] = (gone[id.slice(0, 1)] ?? 0) + 1;
    }
    const written = [...put].map(([id, item]) => ({ id, ...item }));
    this.#change({ name, epoch: about.epoch, seq, floor, gone, ends: now + ttlMs, items: written });
    return refused;
  }

  async itemsSince(name: string, after: number): Promise<ItemsPart | undefined> {
    const collection = this.#collection(name);
    if (collection === undefined) return undefined;
    const { epoch, floor, gone, seq } = collection;
    const [items = []] = partsOf(collection.items, after);
    return { epoch, items, floor, gone: { ...gone }, isLast: (items.at(-1)?.seq ?? seq) === seq };
  }

  isNearlyFull(): boolean {
    return this.#lastingBytes >= this.#options.maxLastingBytes;
  }

  apply(record: StoreRecord): void {
    if ('key' in record) this.#put(`document ${record.key}`, record.version === '' ? undefined : record);
    else {
      const name = `collection ${record.name}`;
      this.#put(name, collectionOf(record, this.#entries.get(name)?.record as Collection | undefined));
      this.#seq = Math.max(this.#seq, record.seq);
    }
    for (const [name, { isLasting }] of this.#entries) {
      if (this.#endingBytes <= this.#options.maxBytes) return;
      if (!isLasting) this.#put(name, undefined);
    }
  }

  /** What makes an equal store, in parts. */
  *records(): Generator<StoreRecord> {
    for (const { record } of this.#entries.values()) {
      if (record.ends <= this.now()) continue;
      if ('key' in record) yield record;
      else for (const items of partsOf([...record.items])) yield { ...record, items };
    }
  }

  removeEnded(): void {
    const now = this.now();
    for (const [name, { record }] of this.#entries) if (record.ends <= now) this.#put(name, undefined);
  }

  #assertRoom(): void {
    if (this.isNearlyFull()) this.removeEnded();
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
    const bytes = entryBytes + ('key' in record ? record.body.length : record.bytes);
    const entry = { record, bytes, isLasting: record.ends - this.now() > lastsAboveMs };
    this.#count(entry, 1);
    this.#entries.set(name, entry);
  }

  #count({ bytes, isLasting }: Entry, sign: 1 | -1): void {
    if (isLasting) this.#lastingBytes += sign * bytes;
    else this.#endingBytes += sign * bytes;
  }

  #document = (key: string) => this.#unended(`document ${key}`) as DocumentRecord | undefined;
  #collection = (name: string) => this.#unended(`collection ${name}`) as Collection | undefined;

  #unended(name: string): DocumentRecord | Collection | undefined {
    const { record } = this.#entries.get(name) ?? {};
    if (record === undefined || record.ends > this.now()) return record;
    this.#put(name, undefined);
    return undefined;
  }
}

const emptyCollection = (name: string, seq: number): Collection => ({
  name,
  epoch: randomUUID(),
  seq,
  items: new Map(),
  bytes: 0,
  floor: 0,
  gone: {},
  ends: 0,
});

function collectionOf(record: CollectionRecord, before: Collection | undefined): Collection {
  const collection = before?.epoch === record.epoch ? before : emptyCollection(record.name, 0);
  const { items } = collection;
  let { bytes } = collection;
  const remove = (id: string) => {
    bytes -= items.get(id)?.body.length ?? 0;
    items.delete(id);
  };
  for (const { id, seq, body } of record.items) {
    remove(id);
    items.set(id, { seq, body });
    bytes += body.length;
  }
  for (const [id, { seq }] of items) {
    if (seq > record.floor) break;
    remove(id);
  }
  return { ...record, items, bytes };
}

/** Items after a number in parts, of which there is at least one. */
function* partsOf(items: Iterable<[string, Item]>, after = 0): Generator<ItemsPart['items']> {
  let [part, bytes]: [ItemsPart['items'], number] = [[], 0];
  let isFirst = true;
  for (const [id, item] of items) {
    if (item.seq <= after) continue;
    part.push({ id, ...item });
    bytes += item.body.length;
    if (part.length < partLimits.items && bytes < partLimits.bytes) continue;
    yield part;
    [part, bytes, isFirst] = [[], 0, false];
  }
  if (part.length > 0 || isFirst) yield part;
}
