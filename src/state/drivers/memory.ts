import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import type { CreditLedger, FullWindow } from '../../credits/ledger.ts';
import { cursorsOver } from '../cursors.ts';
import {
  type AnswerCache,
  type CachedAnswer,
  type Claim,
  type Item,
  type ItemsPart,
  partLimits,
  type Seen,
  type State,
  type Store,
} from '../ports.ts';
import { type DocumentChange, Documents, type Known } from '../store/documents.ts';
import { storeLedger } from '../store/ledger.ts';
import { atOnce, type LocalShared } from '../store/retries.ts';
import { noSeal } from '../store/seal.ts';
import { memoryOf, TenantCache, type TenantCacheOptions } from '../tenant-cache.ts';
import { type Turns, turnsOver } from '../turns.ts';

interface MemoryDocumentsOptions {
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** The most documents that may be lost: the oldest give way to new ones. */
  maxOthers: number;
  /** The most documents that may not be lost: further ones are refused. */
  maxLasting: number;
}

interface StoredDocument extends Known<unknown> {
  ends: number;
}

/** Documents with a lifetime of a day or longer may not be lost. */
const lastsFrom = 86_400_000;

/** Documents of one process, changed in place. */
class MemoryDocuments implements Pick<Documents, 'known' | 'update' | 'changed'> {
  readonly #options: MemoryDocumentsOptions;
  readonly #lasting = new Map<string, StoredDocument>();
  readonly #others: LRUCache<string, StoredDocument>;
  readonly #waiting = new Map<string, (() => void)[]>();
  #versions = 0;

  constructor(options: MemoryDocumentsOptions) {
    this.#options = options;
    this.#others = new LRUCache({ max: options.maxOthers });
  }

  known<Doc>(key: string): Known<Doc> & { ageMs: number } {
    const now = this.#options.now();
    const found = this.#lasting.get(key) ?? this.#others.get(key);
    const { version, doc } = found && now < found.ends ? found : { version: '', doc: undefined };
    return { version, doc: doc as Doc | undefined, now, ageMs: 0 };
  }

  async update<Doc, Result>(key: string, change: DocumentChange<Doc, Result>): Promise<Result> {
    const { doc, now, version } = this.known<Doc>(key);
    const { next, ttlMs = 0, result } = change(doc, now, version);
    if (next === undefined) return result;
    const isLasting = next !== null && ttlMs >= lastsFrom;
    if (isLasting && !this.#lasting.has(key)) this.#makeRoom(now);
    for (const kept of [this.#lasting, this.#others]) kept.delete(key);
    const written = { version: String(++this.#versions), doc: next, now, ends: now + ttlMs };
    if (next !== null) (isLasting ? this.#lasting : this.#others).set(key, written);
    for (const wake of this.#waiting.get(key) ?? []) wake();
    this.#waiting.delete(key);
    return result;
  }

  async changed(key: string, version: string, signal: AbortSignal): Promise<void> {
    if (this.known(key).version !== version) return;
    const woken = new Promise<void>((wake) => {
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), wake]);
    });
    await raceAbort(woken, signal);
  }

  #makeRoom(now: number): void {
    const isFull = () => this.#lasting.size >= this.#options.maxLasting;
    if (isFull()) for (const [key, { ends }] of this.#lasting) if (ends <= now) this.#lasting.delete(key);
    if (isFull()) throw full();
  }
}

export const memoryTurns = (): Turns =>
  turnsOver({ documents: new MemoryDocuments({ now: () => 0, maxOthers: 10_000, maxLasting: 0 }) });

interface MemoryLedgerOptions {
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** Remembered tenants who spent nothing. Bounded, because anybody can invent keys. */
  maxUnverified?: number;
  /** Remembered tenants who spent something. Nobody can invent such tenants without paying the service. */
  maxPaying?: number;
}

/**
 * The ledger of one process. Tenants who spent something or have a call in progress stay; the others only displace each
 * other. When there is no room for another paying tenant, paid calls of new tenants are refused before they are sent.
 */
export function memoryCreditLedger(options: MemoryLedgerOptions): CreditLedger {
  const { now, maxUnverified = 10_000, maxPaying = 200_000 } = options;
  return storeLedger({
    documents: new MemoryDocuments({ now, maxOthers: maxUnverified, maxLasting: maxPaying }),
    keyOf: (tenantId) => tenantId,
  });
}

const full = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'This server cannot track the spending of any more keys.',
    sent: false,
  });

export interface MemoryStateOptions {
  /** How long answers are cached, in milliseconds. */
  ttl: number;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
}

/** Bytes of answers, for all tenants together. */
const maxAnswerBytes = 128 * 1024 * 1024;

const maxWindows = 10_000;
/** Bytes of the state of cursors, for all tenants together. */
const maxCursorBytes = 16 * 1024 * 1024;

export function memoryState({ ttl, now, elapsed }: MemoryStateOptions): State {
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now: elapsed }),
    answers: memoryAnswers({ maxBytes: maxAnswerBytes, ttl, now }),
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: cursorsOver(inMemory(now, { maxBytes: maxCursorBytes })),
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups that were forgotten and are remembered, for reads that began before. */
const maxForgotten = 10_000;

export function memoryAnswers(options: TenantCacheOptions) {
  const cache = new TenantCache<CachedAnswer>(options);
  const forgotten = new LRUCache<string, number>({ max: maxForgotten });
  let forgettings = 0;
  const get = (tenantId: string, name: string) => cache.get(tenantId, name);
  const put = (tenantId: string, name: string, value: CachedAnswer) => {
    cache.set(tenantId, name, { value, bytes: memoryOf(value.answer.raw) + answerBytes });
  };
  const forget = (tenantId: string, name: string) => cache.remove(tenantId, name);
  const port: AnswerCache = {
    nameOf: async (tenantId, { group, fingerprint }) =>
      group === undefined ? fingerprint : `${group} ${forgotten.get(`${tenantId} ${group}`) ?? 0} ${fingerprint}`,
    get: async (tenantId, name) => get(tenantId, name),
    claim: async ({ tenantId }, name, { after = Number.NEGATIVE_INFINITY }) => {
      if (name === undefined) return unnamedClaim;
      const found = get(tenantId, name);
      if (found && cameAfter(found, after, options.now())) return { kind: 'found', found };
      return {
        ...unnamedClaim,
        put: async (answer) => put(tenantId, name, answer),
        forget: async () => forget(tenantId, name),
      };
    },
    forgetGroup: async (tenantId, group) => {
      forgotten.set(`${tenantId} ${group}`, ++forgettings);
      cache.drop(tenantId, `${group} `);
    },
  };
  return { ...port, put, forget };
}

/** Whether an answer came after a time; one from the future came before a clock was set back. */
export const cameAfter = ({ at }: CachedAnswer, time: number, now: number): boolean =>
  at > time && (at <= now || time === Number.NEGATIVE_INFINITY);

/** Of a call whose answer is not cached. */
const unnamedClaim: Extract<Claim, { kind: 'granted' }> = {
  kind: 'granted',
  put: async () => {},
  forget: async () => {},
  end: async () => {},
};

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

interface MemoryStoreOptions {
  /** The most bytes of all that ends: beyond that, what was written longest ago goes. By default there is no limit. */
  maxBytes?: number;
  onChange?: (record: StoreRecord) => void;
}

/** Documents that are remembered beside their text, so that labels are not parsed anew for every statement. */
const maxRemembered = 32 * 1024 * 1024;

/** What the domain needs of a store, where no other process shares it. @param now in milliseconds since the epoch */
export function inMemory(now: () => number, options: MemoryStoreOptions = {}): LocalShared & { store: MemoryStore } {
  const store = new MemoryStore(now, options);
  const documents = new Documents({ store, seal: noSeal, elapsed: now, wait: async () => {}, maxRemembered });
  return { store, seal: noSeal, documents, retries: atOnce, keyOf: (...parts) => parts.join(' ') };
}

/** The overhead of a document or a collection. */
const entryBytes = 1000;

/** The store of one process. */
export class MemoryStore implements Store {
  readonly #now: () => number;
  readonly #options: MemoryStoreOptions;
  /** Documents and collections, those that were written longest ago first. */
  readonly #entries = new Map<string, DocumentRecord | Collection>();
  /** Bytes of all entries, and of those that end. */
  bytes = 0;
  #endingBytes = 0;
  /** The last number that any collection gave. */
  #seq = 0;

  /** @param now in milliseconds since the epoch */
  constructor(now: () => number, options: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#options = options;
  }

  async connect(): Promise<void> {}

  async read(key: string, known?: string): Promise<Seen> {
    const now = this.#now();
    const found = this.#document(key);
    if (found === undefined) return { now };
    const { version, body } = found;
    return { now, found: { version, body: version === known ? undefined : body } };
  }

  async swap(...[key, expected, { version, body, ttlMs }]: Parameters<Store['swap']>) {
    const now = this.#now();
    const found = this.#document(key);
    if ((found?.version ?? '') !== expected)
      return { now, found: found && { version: found.version, body: found.body }, isDone: false };
    if (!body && !found) return { now, isDone: true };
    this.#change({ key, version: body ? version : '', ends: now + ttlMs, body: body ?? Buffer.alloc(0) });
    return { now, isDone: true };
  }

  async items(name: string, ids: readonly string[]): Promise<Map<string, Item>> {
    const items = this.#collection(name)?.items;
    return new Map(ids.flatMap((id) => (items?.has(id) ? [[id, items.get(id) as Item] as const] : [])));
  }

  async putItems(...[name, changes, { ttlMs, maxBytes }]: Parameters<Store['putItems']>): Promise<Set<string>> {
    const now = this.#now();
    const { items, ...about } =
      this.#collection(name) ?? emptyCollection(name, Math.max(Math.ceil(now * 1000), this.#seq));
    const [refused, put] = [new Set<string>(), new Map<string, Item>()];
    let { seq, bytes, floor } = about;
    for (const change of changes) {
      const before = put.get(change.id) ?? items.get(change.id);
      if ((before?.seq ?? 0) !== change.seq) refused.add(change.id);
      else {
        put.delete(change.id);
        put.set(change.id, { seq: ++seq, body: change.body });
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

  isTight(): boolean {
    return false;
  }

  refuses(): boolean {
    return false;
  }

  async close(): Promise<void> {}

  apply(record: StoreRecord): void {
    const { maxBytes = Number.POSITIVE_INFINITY } = this.#options;
    if ('key' in record) this.#put(`document ${record.key}`, record.version === '' ? undefined : record);
    else {
      const name = `collection ${record.name}`;
      this.#put(name, collectionOf(record, this.#entries.get(name) as Collection | undefined));
      this.#seq = Math.max(this.#seq, record.seq);
    }
    for (const [name, { ends }] of this.#entries) {
      if (this.#endingBytes <= maxBytes) return;
      if (ends !== Number.POSITIVE_INFINITY) this.#put(name, undefined);
    }
  }

  /** What makes an equal store, in parts. */
  *records(): Generator<StoreRecord> {
    for (const entry of this.#entries.values()) {
      if (entry.ends <= this.#now()) continue;
      if ('key' in entry) yield entry;
      else for (const items of partsOf([...entry.items])) yield { ...entry, items };
    }
  }

  removeEnded(): void {
    const now = this.#now();
    for (const [name, { ends }] of this.#entries) if (ends <= now) this.#put(name, undefined);
  }

  #change(record: StoreRecord): void {
    this.apply(record);
    this.#options.onChange?.(record);
  }

  #put(name: string, next: DocumentRecord | Collection | undefined): void {
    const before = this.#entries.get(name);
    this.#entries.delete(name);
    if (next) this.#entries.set(name, next);
    for (const [entry, sign] of [
      [before, -1],
      [next, 1],
    ] as const) {
      if (entry === undefined) continue;
      const bytes = entryBytes + ('key' in entry ? entry.body.length : entry.bytes);
      this.bytes += sign * bytes;
      if (entry.ends !== Number.POSITIVE_INFINITY) this.#endingBytes += sign * bytes;
    }
  }

  #document = (key: string) => this.#alive(`document ${key}`) as DocumentRecord | undefined;
  #collection = (name: string) => this.#alive(`collection ${name}`) as Collection | undefined;

  #alive(name: string): DocumentRecord | Collection | undefined {
    const found = this.#entries.get(name);
    if (found === undefined || found.ends > this.#now()) return found;
    this.#put(name, undefined);
    return undefined;
  }
}

const emptyCollection = (name: string, seq: number): Collection => ({
  ...{ name, epoch: randomUUID(), seq, items: new Map(), bytes: 0, floor: 0, gone: {}, ends: 0 },
});

/** The collection with what a record changes in it. */
function collectionOf(record: CollectionRecord, before: Collection | undefined): Collection {
  const known = before?.epoch === record.epoch ? before : emptyCollection(record.name, 0);
  const { items } = known;
  let { bytes } = known;
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
