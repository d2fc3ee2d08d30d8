import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { dayMs } from '../../views/durations.ts';
import {
  createRecords,
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  MemoryDataset,
  normalizeAdId,
} from '../dataset.ts';
import type { Item, ItemChange, Store } from '../storage.ts';
import { openUserRecords, readContentRecords } from '../user-records.ts';
import { reduceIfNearlyFull, type StoreAccess } from './access.ts';
import type { Encryption } from './encryption.ts';

const MB = 1024 * 1024;
/** How long a dataset lives after the last answer that added to it, in milliseconds, and how many bytes it may take. */
const limits = { ttlMs: 30 * dayMs, maxBytes: 64 * MB };
/** Bytes of the memory of this process, for all copies together and for one. */
const localCopyLimits: { maxBytes: number; maxBytesEach?: number } = { maxBytes: 256 * MB };
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
  #lastSequenceNumber = 0;
  /** Whether there is no room for items that wait for the store, which is logged once. */
  #hasWarnedOfLoss = false;

  readonly #codec: RecordCodec;
  readonly #maxBytesEach: number | undefined;

  constructor(access: StoreAccess, { maxBytes, maxBytesEach } = localCopyLimits) {
    this.#access = access;
    this.#codec = new RecordCodec(access.encryption);
    this.#maxBytesEach = maxBytesEach;
    this.#copies = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ dataset }) => dataset.bytes });
  }

  get bytes(): number {
    return this.#copies.calculatedSize;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const name = this.#access.keyOf(tenantId, 'dataset');
    const synced = () => this.#sync(name);
    const nextSequenceNumber = () => this.#nextSequenceNumber(this.#access.keyOf(tenantId, 'order'));
    return {
      userRecords: openUserRecords(this.#access, tenantId),
      nextSequenceNumber,
      addItems: async (batch) =>
        this.#addRecords(name, createRecords({ ...batch, order: batch.order ?? (await nextSequenceNumber()) })),
      saveGathering: (step) => this.#addRecords(name, [{ ...step, kind: 'gathering' }]),
      findItem: async (type, id) => (await synced()).item(type, id),
      readContents: async () => {
        const [dataset, records] = await Promise.all([synced(), readContentRecords(this.#access, tenantId)]);
        return dataset.contents(records);
      },
      estimateMaxAds: async () => (await synced()).maxAds(),
    };
  }

  async close(): Promise<void> {
    this.#copies.clear();
  }

  /** The next number. While the store is away, it follows from what this replica knows. */
  async #nextSequenceNumber(key: string): Promise<number> {
    const { documents, store } = this.#access;
    const lastOrder = this.#lastSequenceNumber;
    const next = documents.update<{ order: number }, number>(key, (doc, now) => {
      const order = Math.max((doc?.order ?? 0) + 1, lastOrder + 1, Math.floor(now));
      return { next: { order }, ttlMs: limits.ttlMs, result: order };
    });
    const order = await next.catch(() => Math.max(this.#lastSequenceNumber + 1, store.now()));
    this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, order);
    return order;
  }

  async #sync(name: string): Promise<MemoryDataset> {
    const before = this.#copies.get(name);
    const copy = before ?? new DatasetCopy(name, this.#access.store, this.#codec, this.#maxBytesEach);
    this.#copies.set(name, copy);
    const dataset = await copy.sync();
    this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, dataset.order);
    // With the size that it has now.
    this.#copies.delete(name);
    this.#copies.set(name, copy);
    return dataset;
  }

  /** Items that cannot be added now are added later, because they were paid for. */
  async #addRecords(name: string, records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { queue, warn } = this.#access;
    let failure: unknown;
    const work = async () => {
      await this.#writeRecords(name, records).catch((error) => {
        failure = error;
        throw error;
      });
      this.#hasWarnedOfLoss = false;
    };
    const onGiveUp = (error: unknown) => {
      if (!this.#hasWarnedOfLoss) warn('answers are lost to a dataset', { error: String(error) });
      this.#hasWarnedOfLoss = true;
    };
    await queue.write(work, { bytes: estimateBytes(records), onGiveUp });
    if (failure !== undefined) throw failure;
  }

  async #writeRecords(name: string, records: readonly DatasetRecord[]): Promise<void> {
    const { store } = this.#access;
    const copy = this.#copies.peek(name);
    const byId = new Map<string, DatasetRecord[]>();
    for (const record of records) {
      const id = createItemId(record, (...parts) => this.#access.encryption.hashName(name, ...parts));
      byId.set(id, [...(byId.get(id) ?? []), record]);
    }
    // An item that the copy does not know is new, unless another process was faster.
    const isKnown = (id: string) => copy === undefined || copy.hasItem(id);
    for (let ids = [...byId.keys()], toRead = ids.filter(isKnown); ids.length > 0; toRead = ids) {
      const found = toRead.length > 0 ? await store.readItems(name, toRead) : new Map<string, Item>();
      const changes = ids.flatMap((id): ItemChange[] => {
        const before = found.get(id);
        const one = new MemoryDataset();
        if (before) for (const record of this.#codec.decode(name, id, before.body)) one.apply(record);
        const isChanged = (byId.get(id) ?? []).map((record) => one.apply(record)).includes(true);
        return isChanged
          ? [
              {
                id,
                expectedSequenceNumber: before?.sequenceNumber ?? 0,
                body: this.#codec.encode(name, id, [...one.records()]),
              },
            ]
          : [];
      });
      ids = changes.length === 0 ? [] : [...(await store.putItems(name, changes, reduceIfNearlyFull(store, limits)))];
    }
  }
}

const estimateBytes = (records: readonly DatasetRecord[]): number =>
  records.reduce((sum, one) => sum + 1000 + (one.kind === 'gathering' ? 0 : one.json.length), 0);

/**
 * The id of an item. Its first letter is the kind under which evicted items are counted; gatherings count by their
 * first steps.
 */
function createItemId(record: DatasetRecord, nameOf: (...parts: string[]) => string): string {
  if (record.kind !== 'gathering')
    return `${record.kind[0]}${nameOf(record.kind, record.kind === 'ads' ? normalizeAdId(record.id) : record.id)}`;
  // Two processes may have made different steps of the same number.
  const content = createHash('sha256').update(JSON.stringify(record)).digest('base64url');
  return `${(record.step ?? 0) > 1 ? 's' : 'g'}${nameOf(record.kind, record.id, content)}`;
}

/** Options of zlib. For ads, this level takes two thirds of the time of the default, and 3% more room. */
const deflate = { level: 3, chunkSize: 4096 };

/** Bytes of what this process sealed and has not read yet. */
const maxWrittenBytes = 16 * MB;

/** Items as they are written: what is known of one ad or page, or one step of a gathering. */
class RecordCodec {
  readonly #encryption: Encryption;
  /** What this process sealed, until its copy reads it: to open that takes as long as to write it. */
  readonly #written = new LRUCache<string, { body: Buffer; records: readonly DatasetRecord[] }>({
    maxSize: maxWrittenBytes,
    sizeCalculation: ({ body, records }) => body.length + estimateBytes(records),
  });

  constructor(encryption: Encryption) {
    this.#encryption = encryption;
  }

  /** Compressed synchronously: a thread for each of thousands of small texts takes four times as long. */
  encode(name: string, id: string, records: readonly DatasetRecord[]): Buffer {
    const key = `${name} ${id}`;
    const body = this.#encryption.encrypt(key, deflateRawSync(serializeRecords(records), deflate));
    this.#written.set(key, { body, records });
    return body;
  }

  /** Items that are damaged are left out. */
  decode(name: string, id: string, body: Buffer): readonly DatasetRecord[] {
    const key = `${name} ${id}`;
    const unread = this.#written.get(key);
    this.#written.delete(key);
    if (unread?.body.equals(body)) return unread.records;
    const opened = this.#encryption.decrypt(key, body);
    if (opened === undefined) return [];
    try {
      return parseRecords(inflateRawSync(opened, { maxOutputLength: maxItemBytes }));
    } catch {
      return [];
    }
  }
}

/** Behind the head of an ad or a page, before its object: no JSON contains a tab, so neither is written anew. */
const [tab, lineFeed] = [Buffer.from('\t'), Buffer.from('\n')];

const serializeRecords = (records: readonly DatasetRecord[]): Buffer =>
  Buffer.concat(
    records.flatMap((record) => {
      if (record.kind === 'gathering') return [Buffer.from(JSON.stringify(record)), lineFeed];
      const { json, ...head } = record;
      return [Buffer.from(JSON.stringify(head)), tab, json, lineFeed];
    }),
  );

/** What this program has sealed is not checked again: another form needs another version in the names of keys. */
function parseRecords(bytes: Buffer): DatasetRecord[] {
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

interface CopiedItem {
  sequenceNumber: number;
  record: Pick<DatasetRecord, 'kind' | 'id'> | undefined;
}

class DatasetCopy {
  readonly #name: string;
  readonly #store: Pick<Store, 'readItemsSince'>;
  readonly #sealed: RecordCodec;
  readonly #maxBytes: number | undefined;
  dataset: MemoryDataset;
  #generation = '';
  #sequenceNumber = 0;
  /** Items in the order in which they changed. */
  #items = new Map<string, CopiedItem>();
  #nextSync: Promise<MemoryDataset> | undefined;
  #lastSync: Promise<unknown> = Promise.resolve();

  constructor(name: string, store: Pick<Store, 'readItemsSince'>, sealed: RecordCodec, maxBytes: number | undefined) {
    this.#name = name;
    this.#store = store;
    this.#sealed = sealed;
    this.#maxBytes = maxBytes;
    this.dataset = new MemoryDataset(maxBytes);
  }

  hasItem(id: string): boolean {
    return this.#items.has(id);
  }

  /** The dataset with all that replicas had added when this was called. Callers that wait read it once for all. */
  sync(): Promise<MemoryDataset> {
    this.#nextSync ??= this.#lastSync.then(async () => {
      this.#nextSync = undefined;
      const followed = this.#readChanges();
      this.#lastSync = followed.catch(() => {});
      await followed;
      return this.dataset;
    });
    this.#lastSync = this.#nextSync.catch(() => {});
    return this.#nextSync;
  }

  async #readChanges(): Promise<void> {
    for (let isLast = false; !isLast; ) {
      const part = await this.#store.readItemsSince(this.#name, this.#sequenceNumber);
      if (this.#generation !== '' && part?.generation !== this.#generation) {
        this.#startOver();
        continue;
      }
      if (part === undefined) return;
      this.#generation = part.generation;
      for (const { id, sequenceNumber, body } of part.items) {
        const records = this.#sealed.decode(this.#name, id, body);
        for (const record of records) this.dataset.apply(record);
        this.#items.delete(id);
        this.#items.set(id, { sequenceNumber, record: records[0] && { kind: records[0].kind, id: records[0].id } });
        this.#sequenceNumber = sequenceNumber;
      }
      this.#removeEvicted(part.evictedThrough);
      const { a: ads = 0, p: pages = 0, g: gatherings = 0 } = part.evictedCounts;
      this.dataset.evictedFromStore = { ads, pages, gatherings };
      this.dataset.shrinkIfTooLarge();
      isLast = part.isLast;
      await setImmediate();
    }
  }

  #removeEvicted(evictedThrough: number): void {
    for (const [id, { sequenceNumber, record }] of this.#items) {
      if (sequenceNumber > evictedThrough) return;
      this.#items.delete(id);
      if (record) this.dataset.remove(record.kind, record.id);
    }
  }

  #startOver(): void {
    this.dataset = new MemoryDataset(this.#maxBytes);
    this.#items = new Map();
    this.#generation = '';
    this.#sequenceNumber = 0;
  }
}
