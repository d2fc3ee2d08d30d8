import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { dayMs } from '../../views/durations.ts';
import {
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  idKey,
  MemoryDataset,
  recordsOf,
} from '../dataset.ts';
import type { Item, ItemChange, Store } from '../storage.ts';
import { contentRecords, openUserRecords } from '../user-records.ts';
import { limitsWithRoom, type StoreAccess } from './access.ts';
import type { Seal } from './seal.ts';

const MB = 1024 * 1024;
/** How long a dataset lives after the last answer that added to it, in milliseconds, and how many bytes it may take. */
const limits = { ttlMs: 30 * dayMs, maxBytes: 64 * MB };
/** Bytes of the memory of this process, for all copies together and for one. */
const copyLimits: { maxBytes: number; maxBytesEach?: number } = { maxBytes: 256 * MB };
/** Bytes of one item: an answer of the service has 8 MB at most. */
const maxItemBytes = 64 * MB;

/**
 * The datasets of all tenants, which all replicas share. An ad or a page is an item, and so is each step of a
 * gathering. A replica that adds to an item merges it, and writes it by compare-and-swap. A replica that reads a
 * dataset keeps a copy, and asks for later changes.
 */
export class StoreDatasets implements Datasets {
  readonly #access: StoreAccess;
  readonly #copies: LRUCache<string, DatasetCopy>;
  #order = 0;
  /** Whether there is no room for items that wait for the store, which is logged once. */
  #isLosing = false;

  readonly #sealed: SealedRecords;
  readonly #maxBytesEach: number | undefined;

  constructor(access: StoreAccess, { maxBytes, maxBytesEach } = copyLimits) {
    this.#access = access;
    this.#sealed = new SealedRecords(access.seal);
    this.#maxBytesEach = maxBytesEach;
    this.#copies = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ dataset }) => dataset.bytes });
  }

  get bytes(): number {
    return this.#copies.calculatedSize;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const name = this.#access.keyOf(tenantId, 'dataset');
    const synced = () => this.#sync(name);
    const order = () => this.#nextOrder(this.#access.keyOf(tenantId, 'order'));
    return {
      userRecords: openUserRecords(this.#access, tenantId),
      order,
      addItems: async (batch) => this.#add(name, recordsOf({ ...batch, order: batch.order ?? (await order()) })),
      saveGathering: (step) => this.#add(name, [{ ...step, kind: 'gathering' }]),
      item: async (type, id) => (await synced()).item(type, id),
      contents: async () => {
        const [dataset, records] = await Promise.all([synced(), contentRecords(this.#access, tenantId)]);
        return dataset.contents(records);
      },
      maxAds: async () => (await synced()).maxAds(),
    };
  }

  async close(): Promise<void> {
    this.#copies.clear();
  }

  /** The next number. While the store is away, it follows from what this replica knows. */
  async #nextOrder(key: string): Promise<number> {
    const { documents, store } = this.#access;
    const lastOrder = this.#order;
    const next = documents.update<{ order: number }, number>(key, (doc, now) => {
      const order = Math.max((doc?.order ?? 0) + 1, lastOrder + 1, Math.floor(now));
      return { next: { order }, ttlMs: limits.ttlMs, result: order };
    });
    const order = await next.catch(() => Math.max(this.#order + 1, store.now()));
    this.#order = Math.max(this.#order, order);
    return order;
  }

  async #sync(name: string): Promise<MemoryDataset> {
    const before = this.#copies.get(name);
    const copy = before ?? new DatasetCopy(name, this.#access.store, this.#sealed, this.#maxBytesEach);
    this.#copies.set(name, copy);
    const dataset = await copy.sync();
    this.#order = Math.max(this.#order, dataset.order);
    // With the size that it has now.
    this.#copies.delete(name);
    this.#copies.set(name, copy);
    return dataset;
  }

  /** Items that cannot be added now are added later, because they were paid for. */
  async #add(name: string, records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { queue, warn } = this.#access;
    let failure: unknown;
    const work = async () => {
      await this.#write(name, records).catch((error) => {
        failure = error;
        throw error;
      });
      this.#isLosing = false;
    };
    const giveUp = (error: unknown) => {
      if (!this.#isLosing) warn('answers are lost to a dataset', { error: String(error) });
      this.#isLosing = true;
    };
    await queue.write(work, { bytes: bytesOf(records), giveUp });
    if (failure !== undefined) throw failure;
  }

  async #write(name: string, records: readonly DatasetRecord[]): Promise<void> {
    const { store } = this.#access;
    const copy = this.#copies.peek(name);
    const byId = new Map<string, DatasetRecord[]>();
    for (const record of records) {
      const id = itemIdOf(record, (...parts) => this.#access.seal.name(name, ...parts));
      byId.set(id, [...(byId.get(id) ?? []), record]);
    }
    // An item that the copy does not know is new, unless another process was faster.
    const isKnown = (id: string) => copy === undefined || copy.knows(id);
    for (let ids = [...byId.keys()], toRead = ids.filter(isKnown); ids.length > 0; toRead = ids) {
      const found = toRead.length > 0 ? await store.items(name, toRead) : new Map<string, Item>();
      const changes = ids.flatMap((id): ItemChange[] => {
        const before = found.get(id);
        const one = new MemoryDataset();
        if (before) for (const record of this.#sealed.open(name, id, before.body)) one.apply(record);
        const isChanged = (byId.get(id) ?? []).map((record) => one.apply(record)).includes(true);
        return isChanged ? [{ id, seq: before?.seq ?? 0, body: this.#sealed.close(name, id, [...one.records()]) }] : [];
      });
      ids = changes.length === 0 ? [] : [...(await store.putItems(name, changes, limitsWithRoom(store, limits)))];
    }
  }
}

const bytesOf = (records: readonly DatasetRecord[]): number =>
  records.reduce((sum, one) => sum + 1000 + (one.kind === 'gathering' ? 0 : one.json.length), 0);

/**
 * The id of an item. Its first letter is the kind under which evicted items are counted; gatherings count by their
 * first steps.
 */
function itemIdOf(record: DatasetRecord, nameOf: (...parts: string[]) => string): string {
  if (record.kind !== 'gathering')
    return `${record.kind[0]}${nameOf(record.kind, record.kind === 'ads' ? idKey(record.id) : record.id)}`;
  // Two processes may have made different steps of the same number.
  const content = createHash('sha256').update(JSON.stringify(record)).digest('base64url');
  return `${(record.step ?? 0) > 1 ? 's' : 'g'}${nameOf(record.kind, record.id, content)}`;
}

/** Options of zlib. For ads, this level takes two thirds of the time of the default, and 3% more room. */
const deflate = { level: 3, chunkSize: 4096 };

/** Bytes of what this process sealed and has not read yet. */
const maxUnreadBytes = 16 * MB;

/** Items as they are written: what is known of one ad or page, or one step of a gathering. */
class SealedRecords {
  readonly #seal: Seal;
  /** What this process sealed, until its copy reads it: to open that takes as long as to write it. */
  readonly #unread = new LRUCache<string, { body: Buffer; records: readonly DatasetRecord[] }>({
    maxSize: maxUnreadBytes,
    sizeCalculation: ({ body, records }) => body.length + bytesOf(records),
  });

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  /** Compressed synchronously: a thread for each of thousands of small texts takes four times as long. */
  close(name: string, id: string, records: readonly DatasetRecord[]): Buffer {
    const key = `${name} ${id}`;
    const body = this.#seal.close(key, deflateRawSync(bytesOfLines(records), deflate));
    this.#unread.set(key, { body, records });
    return body;
  }

  /** Items that are damaged are left out. */
  open(name: string, id: string, body: Buffer): readonly DatasetRecord[] {
    const key = `${name} ${id}`;
    const unread = this.#unread.get(key);
    this.#unread.delete(key);
    if (unread?.body.equals(body)) return unread.records;
    const opened = this.#seal.open(key, body);
    if (opened === undefined) return [];
    try {
      return recordsOfLines(inflateRawSync(opened, { maxOutputLength: maxItemBytes }));
    } catch {
      return [];
    }
  }
}

/** Behind the head of an ad or a page, before its object: no JSON contains a tab, so neither is written anew. */
const [tab, lineFeed] = [Buffer.from('\t'), Buffer.from('\n')];

const bytesOfLines = (records: readonly DatasetRecord[]): Buffer =>
  Buffer.concat(
    records.flatMap((record) => {
      if (record.kind === 'gathering') return [Buffer.from(JSON.stringify(record)), lineFeed];
      const { json, ...head } = record;
      return [Buffer.from(JSON.stringify(head)), tab, json, lineFeed];
    }),
  );

/** What this program has sealed is not checked again: another form needs another version in the names of keys. */
function recordsOfLines(bytes: Buffer): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineFeed, start);
    const line = bytes.subarray(start, end);
    const at = line.indexOf(tab);
    const record = JSON.parse(line.toString('utf8', 0, at === -1 ? line.length : at));
    // Memory of its own, so that nothing else is held with it.
    records.push(at === -1 ? record : { ...record, json: new Uint8Array(line.subarray(at + 1)) });
  }
  return records;
}

interface KnownItem {
  seq: number;
  record: Pick<DatasetRecord, 'kind' | 'id'> | undefined;
}

class DatasetCopy {
  readonly #name: string;
  readonly #store: Pick<Store, 'itemsSince'>;
  readonly #sealed: SealedRecords;
  readonly #maxBytes: number | undefined;
  dataset: MemoryDataset;
  #epoch = '';
  #seq = 0;
  /** Items in the order in which they changed. */
  #items = new Map<string, KnownItem>();
  #next: Promise<MemoryDataset> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(name: string, store: Pick<Store, 'itemsSince'>, sealed: SealedRecords, maxBytes: number | undefined) {
    this.#name = name;
    this.#store = store;
    this.#sealed = sealed;
    this.#maxBytes = maxBytes;
    this.dataset = new MemoryDataset(maxBytes);
  }

  knows(id: string): boolean {
    return this.#items.has(id);
  }

  /** The dataset with all that replicas had added when this was called. Callers that wait read it once for all. */
  sync(): Promise<MemoryDataset> {
    this.#next ??= this.#turn.then(async () => {
      this.#next = undefined;
      const followed = this.#follow();
      this.#turn = followed.catch(() => {});
      await followed;
      return this.dataset;
    });
    this.#turn = this.#next.catch(() => {});
    return this.#next;
  }

  async #follow(): Promise<void> {
    for (let isLast = false; !isLast; ) {
      const part = await this.#store.itemsSince(this.#name, this.#seq);
      if (this.#epoch !== '' && part?.epoch !== this.#epoch) {
        this.#startOver();
        continue;
      }
      if (part === undefined) return;
      this.#epoch = part.epoch;
      for (const { id, seq, body } of part.items) {
        const records = this.#sealed.open(this.#name, id, body);
        for (const record of records) this.dataset.apply(record);
        this.#items.delete(id);
        this.#items.set(id, { seq, record: records[0] && { kind: records[0].kind, id: records[0].id } });
        this.#seq = seq;
      }
      this.#dropBefore(part.floor);
      const { a: ads = 0, p: pages = 0, g: gatherings = 0 } = part.gone;
      this.dataset.evictedElsewhere = { ads, pages, gatherings };
      this.dataset.fit();
      isLast = part.isLast;
      await setImmediate();
    }
  }

  #dropBefore(floor: number): void {
    for (const [id, { seq, record }] of this.#items) {
      if (seq > floor) return;
      this.#items.delete(id);
      if (record) this.dataset.remove(record.kind, record.id);
    }
  }

  #startOver(): void {
    this.dataset = new MemoryDataset(this.#maxBytes);
    this.#items = new Map();
    this.#epoch = '';
    this.#seq = 0;
  }
}
