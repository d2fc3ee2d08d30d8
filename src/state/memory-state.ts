import { LRUCache } from 'lru-cache';
import { AdLibraryError, type AnswerName, raceAbort } from '../api/call.ts';
import type { CreditLedger, FullWindow } from '../credits/ledger.ts';
import {
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  MemoryDataset,
  type OrderedBatch,
  recordsOf,
} from './dataset.ts';
import { MemoryRecords } from './own-records.ts';
import type { AnswerCache, CachedAnswer, CursorState, RejectedKeys, State } from './state.ts';
import type { DocumentChange, Documents, Known } from './store/documents.ts';
import { storeLedger } from './store/store-ledger.ts';
import { type Turns, turnsOver } from './turns.ts';

interface TenantCacheOptions {
  /** Bytes for all tenants together. */
  maxBytes: number;
  /** Bytes for one tenant; by default half of `maxBytes`. */
  maxBytesEach?: number;
  /** How long an entry lives, in milliseconds. */
  ttl: number;
  /** A clock that only goes on. */
  now: () => number;
}

interface Entry<Value> {
  value: Value;
  bytes: number;
  until: number;
}

/** The overhead of an entry: its place in the cache, the entry, its name. Then the overhead of a tenant's cache. */
const entryBytes = 1024;
const tenantBytes = 4096;

/**
 * Bounded memory for each tenant, and for all: a tenant's own entries give way to its next ones, and where all are too
 * many, those of the tenant who used theirs longest ago.
 */
export class TenantCache<Value> {
  readonly #options: TenantCacheOptions;
  readonly #tenants: LRUCache<string, LRUCache<string, Entry<Value>>>;

  constructor(options: TenantCacheOptions) {
    this.#options = options;
    this.#tenants = new LRUCache({
      maxSize: options.maxBytes,
      sizeCalculation: ({ calculatedSize }) => tenantBytes + calculatedSize,
    });
  }

  get bytes(): number {
    return this.#tenants.calculatedSize;
  }

  get(tenantId: string, name: string): Value | undefined {
    const entry = this.#tenants.get(tenantId)?.get(name);
    if (entry === undefined || this.#isAlive(entry)) return entry?.value;
    this.remove(tenantId, name);
    return undefined;
  }

  /** A tenant's values that have not expired, the most recently used first. */
  values(tenantId: string): Value[] {
    const entries = [...(this.#tenants.get(tenantId)?.values() ?? [])];
    return entries.filter((entry) => this.#isAlive(entry)).map(({ value }) => value);
  }

  /**
   * @param bytes the caller's estimate; a value larger than a tenant's share is not stored
   */
  set(tenantId: string, name: string, { value, bytes }: { value: Value; bytes: number }): void {
    const { maxBytes, maxBytesEach = maxBytes / 2, ttl, now } = this.#options;
    const sizeCalculation = (entry: Entry<Value>) => entry.bytes;
    const own = this.#tenants.get(tenantId) ?? new LRUCache({ maxSize: Math.floor(maxBytesEach), sizeCalculation });
    own.set(name, { value, bytes: bytes + 2 * name.length + entryBytes, until: now() + ttl });
    this.#resized(tenantId, own);
  }

  remove(tenantId: string, name: string): void {
    const own = this.#tenants.get(tenantId);
    if (own?.delete(name)) this.#resized(tenantId, own);
  }

  /** Removes a tenant's entries whose names begin with `start`. */
  drop(tenantId: string, start: string): void {
    const own = this.#tenants.get(tenantId);
    if (own === undefined) return;
    for (const name of [...own.keys()]) if (name.startsWith(start)) own.delete(name);
    this.#resized(tenantId, own);
  }

  #isAlive({ until }: Entry<Value>): boolean {
    return until > this.#options.now();
  }

  /** Updates the size of a tenant's cache. The size of an entry is measured when the entry is set. */
  #resized(tenantId: string, own: LRUCache<string, Entry<Value>>): void {
    this.#tenants.delete(tenantId);
    if (own.size > 0) this.#tenants.set(tenantId, own);
  }
}

/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const perValue = 24;
const perContainer = 64;
const perKey = 80;
const perCharacter = 2;

/** The most memory that JSON takes once it is parsed, in bytes: `{}` takes twenty bytes for each character. */
export function memoryOf(json: unknown): number {
  let bytes = 0;
  // No recursion: an answer may be nested as deep as it is long.
  const containers: object[] = [];
  const count = (value: unknown) => {
    bytes += perValue;
    if (typeof value === 'string') bytes += perCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  count(json);
  for (let next = containers.pop(); next !== undefined; next = containers.pop()) {
    bytes += perContainer;
    if (Array.isArray(next)) next.forEach(count);
    else {
      for (const key in next) {
        bytes += perKey + perCharacter * key.length;
        count(next[key as keyof typeof next]);
      }
    }
  }
  return bytes;
}

interface MemoryDocumentsOptions {
  /** A clock that only goes on. */
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
  /** A clock that only goes on. */
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
  /** A clock that only goes on. */
  now: () => number;
}

export interface MemoryDatasetsOptions {
  /** For all tenants together. */
  maxBytes?: number;
  maxBytesEach?: number;
}

const MB = 1024 * 1024;
/** The share that the largest tenant keeps when there is no more room for all. */
const partLeft = 0.75;
/** Characters of answers that were not taken apart, of all tenants together. */
const maxUnread = 16 * MB;
/**
 * How long answers may pile up before the oldest are parsed, in milliseconds, so that the next call does not wait for
 * the last one.
 */
const pauseMs = 10;
const typicalAnswer = 100_000;
const answerOverhead = 1000;

interface UnreadAnswer {
  batch: OrderedBatch;
  size: number;
}

/** Whether an answer is equal to the one before it, character for character. */
const saysTheSame = (before: OrderedBatch, batch: OrderedBatch): boolean =>
  batch.text !== undefined &&
  batch.text === before.text &&
  batch.type === before.type &&
  batch.listedBy === before.listedBy &&
  batch.order > before.order &&
  batch.at >= before.at;

/**
 * The datasets of all tenants in the memory of this process: when there is no more room, the largest tenant loses what
 * came longest ago. Answers are parsed when somebody reads the tenant's dataset, so that no caller waits for that. If
 * too many answers are unread, those of the tenant that has not read for longest are parsed between other work.
 */
export class MemoryDatasets implements Datasets {
  readonly #own = new MemoryRecords();
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #nothing: MemoryDataset;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number | undefined;
  /** Unread answers by tenant, the oldest first. */
  readonly #unread = new Map<string, UnreadAnswer[]>();
  #unreadSize = 0;
  #makingRoom: NodeJS.Timeout | undefined;
  #bytes = 0;
  /** The highest number of all answers. */
  #order = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach }: MemoryDatasetsOptions = {}) {
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = maxBytesEach;
    this.#nothing = new MemoryDataset(maxBytesEach);
  }

  get bytes(): number {
    for (const tenantId of this.#unread.keys()) this.#takeApart(tenantId);
    return this.#bytes;
  }

  async of({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const known = () => this.#datasetOf(tenantId) ?? this.#nothing;
    return {
      own: this.#own.of(tenantId),
      addItems: async (batch) => this.#push(tenantId, { ...batch, order: batch.order ?? ++this.#order }),
      saveGathering: async (step) => {
        this.#datasetOf(tenantId);
        this.#apply(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      order: async () => ++this.#order,
      item: async (type, id) => known().item(type, id),
      contents: async () => {
        const own = this.#own.table(tenantId);
        return known().contents(new Map(own.of('label')), own.version);
      },
      maxAds: async () => known().maxAds(this.#roomOf(tenantId)),
    };
  }

  async close(): Promise<void> {
    this.#unread.clear();
    this.#datasets.clear();
  }

  #push(tenantId: string, batch: OrderedBatch): void {
    const own = this.#unread.get(tenantId) ?? [];
    this.#unread.set(tenantId, own);
    const last = own.at(-1);
    if (last && saysTheSame(last.batch, batch)) {
      const { at, order, first = { at, order } } = last.batch;
      last.batch = { ...last.batch, at: batch.at, order: batch.order, requestId: batch.requestId, first };
      return;
    }
    const size = answerOverhead + (batch.text?.length ?? typicalAnswer);
    own.push({ batch, size });
    this.#unreadSize += size;
    if (this.#unreadSize > maxUnread) this.#makingRoom ??= setTimeout(() => this.#makeRoom(), pauseMs).unref();
  }

  /** Parses enough answers at once, however many have come: one at a time, a busy server would never be done. */
  #makeRoom(): void {
    this.#makingRoom = undefined;
    for (const tenantId of this.#unread.keys()) this.#takeApart(tenantId, maxUnread);
  }

  /**
   * @param maxSize the size that unread answers may keep
   */
  #takeApart(tenantId: string, maxSize = 0): void {
    const own = this.#unread.get(tenantId) ?? [];
    while (own.length > 0 && this.#unreadSize > maxSize) {
      const [{ batch, size }] = own.splice(0, 1) as [UnreadAnswer];
      this.#unreadSize -= size;
      this.#apply(tenantId, recordsOf(batch));
    }
    if (own.length === 0) this.#unread.delete(tenantId);
  }

  #datasetOf(tenantId: string): MemoryDataset | undefined {
    this.#takeApart(tenantId);
    return this.#datasets.get(tenantId);
  }

  /** Changes a tenant's dataset, and makes room if it has grown. */
  #apply(tenantId: string, records: readonly DatasetRecord[]): void {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset(this.#maxBytesEach);
    this.#resize(tenantId, dataset, () => {
      for (const record of records) dataset.apply(record);
      this.#order = Math.max(this.#order, dataset.order);
      dataset.fit();
    });
    while (this.#bytes > this.#maxBytes) {
      const byBytes = [...this.#datasets].reduce((one, other) => (other[1].bytes > one[1].bytes ? other : one));
      this.#resize(...byBytes, () => byBytes[1].shrinkTo(partLeft * byBytes[1].bytes));
    }
  }

  #resize(tenantId: string, dataset: MemoryDataset, change: () => void): void {
    if (this.#datasets.has(tenantId)) this.#bytes -= dataset.bytes;
    change();
    if (dataset.isEmpty) this.#datasets.delete(tenantId);
    else this.#datasets.set(tenantId, dataset);
    if (!dataset.isEmpty) this.#bytes += dataset.bytes;
  }

  /** The room of a tenant if all others keep what they have, but at least a fair share. */
  #roomOf(tenantId: string): number {
    const own = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (own === 0 ? 1 : 0);
    return Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - own));
  }
}

/** Bytes of answers and of cursors, for all tenants together. */
const maxBytes = { answers: 128 * 1024 * 1024, cursors: 32 * 1024 * 1024 };

const maxWindows = 10_000;

/** How long a cursor may be used without its filters, in milliseconds: a day. */
const cursorTtl = 86_400_000;

export function memoryState({ ttl, now }: MemoryStateOptions): State {
  const windows = new LRUCache<string, FullWindow>({ max: maxWindows });
  return {
    ledger: memoryCreditLedger({ now }),
    answers: memoryAnswers({ maxBytes: maxBytes.answers, ttl, now }),
    windows: {
      get: async (tenantId) => windows.get(tenantId),
      set: async (tenantId, window) => void windows.set(tenantId, window),
    },
    cursorsOf: memoryCursors(now),
    rejectedKeys: memoryRejectedKeys(),
  };
}

export function memoryCursors(now: () => number): State['cursorsOf'] {
  const cursors = new TenantCache<CursorState>({ maxBytes: maxBytes.cursors, ttl: cursorTtl, now });
  return (tenantId) => ({
    remember: async (cursor, value) =>
      cursors.set(tenantId, cursor, { value, bytes: 2 * JSON.stringify(value).length }),
    recall: async (cursor) => cursors.get(tenantId, cursor),
  });
}

/** The most accepted keys for which later rejections are remembered. */
const maxAccepted = 200_000;

function memoryRejectedKeys(): RejectedKeys {
  const isRejected = new LRUCache<string, boolean>({ maxSize: maxAccepted, sizeCalculation: () => 1 });
  return {
    has: async (tenantId) => isRejected.get(tenantId) === true,
    add: async (tenantId) => {
      if (isRejected.has(tenantId)) isRejected.set(tenantId, true);
    },
    answered: (tenantId, isNamed) => void isRejected.set(tenantId, isRejected.get(tenantId) === true && !isNamed),
  };
}

/** The overhead of an answer: its receipt, and what its schema made of it. */
const answerBytes = 3 * 1024;

/** Groups whose last removal is remembered, for reads that began before it. */
const maxDropped = 10_000;

export function memoryAnswers(options: TenantCacheOptions): AnswerCache {
  const cache = new TenantCache<CachedAnswer>(options);
  const dropped = new LRUCache<string, object>({ max: maxDropped });
  const nameOf = ({ group = '', fingerprint }: AnswerName) => group + fingerprint;
  const get = (tenantId: string, name: AnswerName) => cache.get(tenantId, nameOf(name));
  return {
    get: async (tenantId, name) => get(tenantId, name),
    begin: async (tenantId, name) => {
      const group = `${tenantId} ${name.group}`;
      const before = dropped.get(group);
      return {
        cached: get(tenantId, name),
        store: async (value) => {
          if (dropped.get(group) !== before) return;
          cache.set(tenantId, nameOf(name), { value, bytes: memoryOf(value.answer.raw) + answerBytes });
        },
      };
    },
    remove: async (tenantId, name, { order = Infinity }) => {
      if ((get(tenantId, name)?.answer.order ?? 0) <= order) cache.remove(tenantId, nameOf(name));
    },
    invalidate: async (tenantId, group) => {
      dropped.set(`${tenantId} ${group}`, {});
      cache.drop(tenantId, group);
    },
  };
}
