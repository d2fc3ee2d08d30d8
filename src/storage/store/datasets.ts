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
/** The lifetime of a dataset after the last addition, and its largest size in the store. */
const limits = { ttlMs: 30 * dayMs, maxBytes: 64 * MB };
/** The memory limits of this process for local copies: for all copies together and for one copy. */
const localCopyLimits: { maxBytes: number; maxBytesEach?: number } = { maxBytes: 256 * MB };
/** The largest size of one decompressed item, in bytes. An answer of the service has at most 8 MB. */
const maxItemBytes = 64 * MB;

/**
 * The datasets of all tenants in a store that replicas share. Each ad, each page and each step of a gathering is an item
 * of a collection. To add to an item, a replica reads it, merges the versions, and writes it if it has not changed
 * meanwhile. To read a dataset, a replica keeps a local copy and asks the store for later changes.
 */
export class StoreDatasets implements Datasets {
  readonly #access: StoreAccess;
  readonly #copies: LRUCache<string, DatasetCopy>;
  #lastSequenceNumber = 0;
  /** True if the warning about lost answers was logged and no write has succeeded since. */
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
    return {
      userRecords: openUserRecords(this.#access, tenantId),
      nextSequenceNumber: () => this.#nextSequenceNumber(this.#access.keyOf(tenantId, 'order')),
      addItems: (batch) => this.#addRecords(name, createRecords(batch)),
      saveGathering: (step) => this.#addRecords(name, [{ ...step, kind: 'gathering' }]),
      findItem: async (type, id) => (await synced()).findItem(type, id),
      readContents: async () => {
        const [dataset, records] = await Promise.all([synced(), readContentRecords(this.#access, tenantId)]);
        return dataset.getContents(records);
      },
      estimateMaxAds: async () => (await synced()).estimateMaxAds(),
    };
  }

  async close(): Promise<void> {
    this.#copies.clear();
  }

  /** Returns the next sequence number. While the store is unreachable, derives it from the highest number known here. */
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
    const cachedCopy = this.#copies.get(name);
    const copy = cachedCopy ?? new DatasetCopy(name, this.#access.store, this.#codec, this.#maxBytesEach);
    this.#copies.set(name, copy);
    const dataset = await copy.sync();
    this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, dataset.highestSequenceNumber);
    // The cache measures the size of a copy only when the copy is added, so the copy is added again.
    this.#copies.delete(name);
    this.#copies.set(name, copy);
    return dataset;
  }

  /** Adds records. If the store is unreachable, the records are added later, because they were paid for. */
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
      if (!this.#hasWarnedOfLoss)
        warn('answers were lost and could not be added to the dataset', { error: String(error) });
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
    // An item that is not in the local copy is new, unless another process has added it. In that case the store refuses the
    // write, and the loop reads the item.
    const isKnown = (id: string) => copy === undefined || copy.hasItem(id);
    for (let ids = [...byId.keys()], toRead = ids.filter(isKnown); ids.length > 0; toRead = ids) {
      const storedItems = toRead.length > 0 ? await store.readItems(name, toRead) : new Map<string, Item>();
      const changes = ids.flatMap((id): ItemChange[] => {
        const storedItem = storedItems.get(id);
        const merged = new MemoryDataset();
        if (storedItem) for (const record of this.#codec.decode(name, id, storedItem.body)) merged.apply(record);
        const isChanged = (byId.get(id) ?? []).map((record) => merged.apply(record)).includes(true);
        return isChanged
          ? [
              {
                id,
                expectedSequenceNumber: storedItem?.sequenceNumber ?? 0,
                body: this.#codec.encode(name, id, [...merged.records()]),
              },
            ]
          : [];
      });
      ids = changes.length === 0 ? [] : [...(await store.putItems(name, changes, reduceIfNearlyFull(store, limits)))];
    }
  }
}

const estimateBytes = (records: readonly DatasetRecord[]): number =>
  records.reduce((sum, record) => sum + 1000 + (record.kind === 'gathering' ? 0 : record.json.length), 0);

/**
 * Returns the id of an item in the store. Its first letter tells the kind, because the store counts evicted items by first
 * letter: `a` for ads, `p` for pages, `g` for the first step of a gathering, `s` for later steps. The number of evicted
 * gatherings is the number of their first steps.
 */
function createItemId(record: DatasetRecord, nameOf: (...parts: string[]) => string): string {
  if (record.kind !== 'gathering')
    return `${record.kind[0]}${nameOf(record.kind, record.kind === 'ads' ? normalizeAdId(record.id) : record.id)}`;
  // Two processes may make different steps with the same number, so the id depends on the content.
  const content = createHash('sha256').update(JSON.stringify(record)).digest('base64url');
  return `${(record.step ?? 0) > 1 ? 's' : 'g'}${nameOf(record.kind, record.id, content)}`;
}

/** Options of zlib. For ads, this level takes two thirds of the time of the default level, and 3% more bytes. */
const deflate = { level: 3, chunkSize: 4096 };

/** The memory limit for items that this process has written and its local copy has not read yet. */
const maxWrittenBytes = 16 * MB;

/**
 * Encodes and decodes the items of datasets, compressed and encrypted. An item contains the records of one ad or page, or
 * one step of a gathering.
 */
class RecordCodec {
  readonly #encryption: Encryption;
  /** Items that this process has written, until its local copy reads them. Decoding would take as long as encoding. */
  readonly #written = new LRUCache<string, { body: Buffer; records: readonly DatasetRecord[] }>({
    maxSize: maxWrittenBytes,
    sizeCalculation: ({ body, records }) => body.length + estimateBytes(records),
  });

  constructor(encryption: Encryption) {
    this.#encryption = encryption;
  }

  /**
   * Encodes an item. Compression is synchronous, because passing thousands of small texts to other threads takes four times
   * as long.
   */
  encode(name: string, id: string, records: readonly DatasetRecord[]): Buffer {
    const key = `${name} ${id}`;
    const body = this.#encryption.encrypt(key, deflateRawSync(serializeRecords(records), deflate));
    this.#written.set(key, { body, records });
    return body;
  }

  /** Decodes an item. Returns no records if the item is damaged. */
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

/**
 * A tab separates the metadata of an ad or a page from its JSON. No JSON text contains a tab, so the JSON is stored as it
 * is and need not be serialized again.
 */
const [tab, lineFeed] = [Buffer.from('\t'), Buffer.from('\n')];

const serializeRecords = (records: readonly DatasetRecord[]): Buffer =>
  Buffer.concat(
    records.flatMap((record) => {
      if (record.kind === 'gathering') return [Buffer.from(JSON.stringify(record)), lineFeed];
      const { json, ...head } = record;
      return [Buffer.from(JSON.stringify(head)), tab, json, lineFeed];
    }),
  );

/**
 * Parses the records of an item. The form is not checked, because only this program can have encrypted the item. A new form
 * of records needs a new version in the names of keys.
 */
function parseRecords(bytes: Buffer): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineFeed, start);
    const line = bytes.subarray(start, end);
    const at = line.indexOf(tab);
    const record = JSON.parse(line.toString('utf8', 0, at === -1 ? line.length : at));
    // A copy with its own memory, because a view would keep the memory of the whole item alive.
    records.push(at === -1 ? record : { ...record, json: new Uint8Array(line.subarray(at + 1)) });
  }
  return records;
}

/** An item of the local copy. `record` is undefined if the item was damaged. */
interface CopiedItem {
  sequenceNumber: number;
  record: Pick<DatasetRecord, 'kind' | 'id'> | undefined;
}

/** The local copy of a dataset. */
class DatasetCopy {
  readonly #name: string;
  readonly #store: Pick<Store, 'readItemsSince'>;
  readonly #codec: RecordCodec;
  readonly #maxBytes: number | undefined;
  dataset: MemoryDataset;
  #generation = '';
  #sequenceNumber = 0;
  /** The items of the copy, in the order of their last change. */
  #items = new Map<string, CopiedItem>();
  #nextSync: Promise<MemoryDataset> | undefined;
  #lastSync: Promise<unknown> = Promise.resolve();

  constructor(name: string, store: Pick<Store, 'readItemsSince'>, codec: RecordCodec, maxBytes: number | undefined) {
    this.#name = name;
    this.#store = store;
    this.#codec = codec;
    this.#maxBytes = maxBytes;
    this.dataset = new MemoryDataset(maxBytes);
  }

  hasItem(id: string): boolean {
    return this.#items.has(id);
  }

  /**
   * Reads the changes since the last call, and returns the dataset. It contains everything that replicas had added before
   * the call. Callers that come while a read is in progress share the next read.
   */
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
      const chunk = await this.#store.readItemsSince(this.#name, this.#sequenceNumber);
      if (this.#generation !== '' && chunk?.generation !== this.#generation) {
        this.#startOver();
        continue;
      }
      if (chunk === undefined) return;
      this.#generation = chunk.generation;
      for (const { id, sequenceNumber, body } of chunk.items) {
        const records = this.#codec.decode(this.#name, id, body);
        for (const record of records) this.dataset.apply(record);
        this.#items.delete(id);
        this.#items.set(id, { sequenceNumber, record: records[0] && { kind: records[0].kind, id: records[0].id } });
        this.#sequenceNumber = sequenceNumber;
      }
      this.#removeEvicted(chunk.evictedThrough);
      const { a: ads = 0, p: pages = 0, g: gatherings = 0 } = chunk.evictedCounts;
      this.dataset.evictedFromStore = { ads, pages, gatherings };
      this.dataset.shrinkIfTooLarge();
      isLast = chunk.isLast;
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
