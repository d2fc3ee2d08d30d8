import { createHash } from 'node:crypto';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { dayMs } from '../../views/durations.ts';
import {
  createItemRecords,
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type DatasetStore,
  MemoryDataset,
  normalizeAdId,
} from '../dataset.ts';
import type { Item, ItemChange, Store } from '../storage.ts';
import { openUserRecords, readContentRecords } from '../user-records.ts';
import { reduceLimitsIfNearlyFull, type StoreAccess } from './access.ts';
import type { Encryption } from './encryption.ts';

const MB = 1024 * 1024;
/**
 * The limits of a dataset, which contains the stored ads of one API key: its lifetime after the last change, and its
 * maximum size in the store.
 */
const datasetLimits = { ttlMs: 30 * dayMs, maxBytes: 64 * MB };
/**
 * The memory limits for the local copies of datasets in this process, in bytes: for all copies together, and for each
 * copy.
 */
const localCopyLimits: { maxBytes: number; maxBytesEach?: number } = { maxBytes: 256 * MB };
/** The maximum size of a decompressed item, in bytes. This limit suffices, because an API response has at most 8 MB. */
const maxItemBytes = 64 * MB;

/**
 * The datasets (stored ads) of all tenants (API keys), in a store that replicas share. Each ad, each advertiser page
 * and each step of a `gather_ads` run is an item of a collection.
 *
 * To change an item, a replica reads it, merges the versions, and writes the merged item. If another replica has
 * changed the item meanwhile, the write fails and the replica tries again. To read a dataset, a replica keeps a local
 * copy and requests only the changes since its last read.
 */
export class SharedDatasetStore implements DatasetStore {
  readonly #access: StoreAccess;
  readonly #datasetCopies: LRUCache<string, DatasetCopy>;
  #lastSequenceNumber = 0;
  /**
   * True if a warning about lost responses has been logged and no write has succeeded since. While this is true, the
   * warning is not repeated.
   */
  #hasWarnedOfLoss = false;

  readonly #codec: RecordCodec;
  readonly #maxBytesEach: number | undefined;

  constructor(access: StoreAccess, { maxBytes, maxBytesEach } = localCopyLimits) {
    this.#access = access;
    this.#codec = new RecordCodec(access.encryption);
    this.#maxBytesEach = maxBytesEach;
    this.#datasetCopies = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ dataset }) => dataset.bytes });
  }

  get bytes(): number {
    return this.#datasetCopies.calculatedSize;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const name = this.#access.buildKey(tenantId, 'dataset');
    const readSynced = () => this.#sync(name);
    return {
      userRecords: openUserRecords(this.#access, tenantId),
      nextSequenceNumber: () => this.#nextSequenceNumber(this.#access.buildKey(tenantId, 'order')),
      addItems: (batch) => this.#addRecords(name, createItemRecords(batch)),
      saveGathering: (step) => this.#addRecords(name, [{ ...step, kind: 'gathering' }]),
      findItem: async (type, id) => (await readSynced()).findItem(type, id),
      readContents: async () => {
        const [dataset, records] = await Promise.all([readSynced(), readContentRecords(this.#access, tenantId)]);
        return dataset.getContents(records);
      },
      estimateMaxAds: async () => (await readSynced()).estimateMaxAds(),
    };
  }

  async close(): Promise<void> {
    this.#datasetCopies.clear();
  }

  /**
   * Returns the sequence number for the next API response. If the store is unreachable, continues from the highest
   * number that this process knows.
   */
  async #nextSequenceNumber(counterKey: string): Promise<number> {
    const { documents, store } = this.#access;
    const lastSequenceNumber = this.#lastSequenceNumber;
    const pendingSequenceNumber = documents.update<{ sequenceNumber: number }, number>(counterKey, (doc, now) => {
      const sequenceNumber = Math.max((doc?.sequenceNumber ?? 0) + 1, lastSequenceNumber + 1, Math.floor(now));
      return { next: { sequenceNumber }, ttlMs: datasetLimits.ttlMs, result: sequenceNumber };
    });
    const sequenceNumber = await pendingSequenceNumber.catch(() => Math.max(this.#lastSequenceNumber + 1, store.now()));
    this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, sequenceNumber);
    return sequenceNumber;
  }

  async #sync(collectionName: string): Promise<MemoryDataset> {
    const cachedCopy = this.#datasetCopies.get(collectionName);
    const copy = cachedCopy ?? new DatasetCopy(collectionName, this.#access.store, this.#codec, this.#maxBytesEach);
    this.#datasetCopies.set(collectionName, copy);
    const dataset = await copy.sync();
    this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, dataset.highestSequenceNumber);
    // Add the copy to the cache again, because its size has changed. The cache measures an entry only when the entry is
    // added.
    this.#datasetCopies.delete(collectionName);
    this.#datasetCopies.set(collectionName, copy);
    return dataset;
  }

  /**
   * Adds records to a dataset. If the store is unreachable, the write is retried later, because the user has paid for
   * the records.
   */
  async #addRecords(collectionName: string, records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { queue, warn } = this.#access;
    let writeFailure: unknown;
    const work = async () => {
      await this.#writeRecords(collectionName, records).catch((error) => {
        writeFailure = error;
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
    if (writeFailure !== undefined) throw writeFailure;
  }

  async #writeRecords(collectionName: string, records: readonly DatasetRecord[]): Promise<void> {
    const { store } = this.#access;
    const copy = this.#datasetCopies.peek(collectionName);
    const recordsById = new Map<string, DatasetRecord[]>();
    for (const record of records) {
      const id = createItemId(record, (...parts) => this.#access.encryption.hashName(collectionName, ...parts));
      recordsById.set(id, [...(recordsById.get(id) ?? []), record]);
    }
    // Do not read an item that is missing from the local copy, because it is probably new. If another process has added
    // the item, the store refuses the write, and the next iteration reads the item.
    const shouldReadItem = (id: string) => copy === undefined || copy.hasItem(id);
    for (
      let idsToWrite = [...recordsById.keys()], idsToRead = idsToWrite.filter(shouldReadItem);
      idsToWrite.length > 0;
      idsToRead = idsToWrite
    ) {
      const storedItems =
        idsToRead.length > 0 ? await store.readItems(collectionName, idsToRead) : new Map<string, Item>();
      const changes = idsToWrite.flatMap((id): ItemChange[] => {
        const storedItem = storedItems.get(id);
        const mergedDataset = new MemoryDataset();
        if (storedItem)
          for (const record of this.#codec.decode(collectionName, id, storedItem.body))
            mergedDataset.applyRecord(record);
        const isChanged = (recordsById.get(id) ?? []).map((record) => mergedDataset.applyRecord(record)).includes(true);
        return isChanged
          ? [
              {
                id,
                expectedSequenceNumber: storedItem?.sequenceNumber ?? 0,
                body: this.#codec.encode(collectionName, id, [...mergedDataset.listRecords()]),
              },
            ]
          : [];
      });
      idsToWrite =
        changes.length === 0
          ? []
          : [...(await store.putItems(collectionName, changes, reduceLimitsIfNearlyFull(store, datasetLimits)))];
    }
  }
}

const estimateBytes = (records: readonly DatasetRecord[]): number =>
  records.reduce((sum, record) => sum + 1000 + (record.kind === 'gathering' ? 0 : record.json.length), 0);

/**
 * Returns the id of an item in the store. Its first letter is `a` for an ad, `p` for an advertiser page, and `g` or `s`
 * for the first or a later step of a gathering (all ads that match a search). The store counts evicted items by this
 * letter, so the count for `g` is the number of evicted gatherings.
 */
function createItemId(record: DatasetRecord, hashName: (...parts: string[]) => string): string {
  if (record.kind !== 'gathering')
    return `${record.kind[0]}${hashName(record.kind, record.kind === 'ads' ? normalizeAdId(record.id) : record.id)}`;
  // Two processes may store different steps of a gathering with the same step number. Their ids differ, because each id
  // contains a hash of the content.
  const contentHash = createHash('sha256').update(JSON.stringify(record)).digest('base64url');
  return `${(record.stepNumber ?? 0) > 1 ? 's' : 'g'}${hashName(record.kind, record.id, contentHash)}`;
}

/**
 * The zlib options for compressing ads. Compared with the default level, level 3 takes two thirds of the time, and the
 * output is 3 % larger.
 */
const deflateOptions = { level: 3, chunkSize: 4096 };

/** The memory limit for items that this process has written but not yet read back into its local copy, in bytes. */
const maxWrittenBytes = 16 * MB;

/**
 * Compresses and encrypts the items of a dataset for the store, and decodes them again. An item contains all versions
 * of an ad or page, or one step of a `gather_ads` run.
 */
class RecordCodec {
  readonly #encryption: Encryption;
  /**
   * The items that this process has written, with their records. When the local copy of a dataset reads such an item
   * from the store, the item need not be decoded. Decoding takes as long as encoding.
   */
  readonly #writtenItems = new LRUCache<string, { body: Buffer; records: readonly DatasetRecord[] }>({
    maxSize: maxWrittenBytes,
    sizeCalculation: ({ body, records }) => body.length + estimateBytes(records),
  });

  constructor(encryption: Encryption) {
    this.#encryption = encryption;
  }

  /**
   * Compresses and encrypts an item. The compression is synchronous, because passing thousands of small texts to other
   * threads takes four times as long.
   */
  encode(collectionName: string, id: string, records: readonly DatasetRecord[]): Buffer {
    const storageKey = `${collectionName} ${id}`;
    const body = this.#encryption.encrypt(storageKey, deflateRawSync(serializeRecords(records), deflateOptions));
    this.#writtenItems.set(storageKey, { body, records });
    return body;
  }

  /** Decrypts, decompresses and parses an item. Returns an empty array if the item is damaged. */
  decode(collectionName: string, id: string, body: Buffer): readonly DatasetRecord[] {
    const storageKey = `${collectionName} ${id}`;
    const writtenItem = this.#writtenItems.get(storageKey);
    this.#writtenItems.delete(storageKey);
    if (writtenItem?.body.equals(body)) return writtenItem.records;
    const decryptedBytes = this.#encryption.decrypt(storageKey, body);
    if (decryptedBytes === undefined) return [];
    try {
      return parseRecords(inflateRawSync(decryptedBytes, { maxOutputLength: maxItemBytes }));
    } catch {
      return [];
    }
  }
}

/**
 * A tab separates the metadata of an ad from its JSON text, and a line feed ends each record. The JSON text contains
 * neither character, so it can be stored unchanged.
 */
const [tab, lineFeed] = [Buffer.from('\t'), Buffer.from('\n')];

const serializeRecords = (records: readonly DatasetRecord[]): Buffer =>
  Buffer.concat(
    records.flatMap((record) => {
      if (record.kind === 'gathering') return [Buffer.from(JSON.stringify(record)), lineFeed];
      const { json, ...metadata } = record;
      return [Buffer.from(JSON.stringify(metadata)), tab, json, lineFeed];
    }),
  );

/**
 * Parses the records of a decrypted item. Does not validate the records, because only a server with the same secret can
 * have written them. If you change the record format, also change the version in the store keys.
 */
function parseRecords(itemBytes: Buffer): DatasetRecord[] {
  const records: DatasetRecord[] = [];
  for (let lineStart = 0, lineEnd = 0; lineStart < itemBytes.length; lineStart = lineEnd + 1) {
    lineEnd = itemBytes.indexOf(lineFeed, lineStart);
    const line = itemBytes.subarray(lineStart, lineEnd);
    const tabIndex = line.indexOf(tab);
    const record = JSON.parse(line.toString('utf8', 0, tabIndex === -1 ? line.length : tabIndex));
    // Copy the JSON bytes, because a view of the buffer would keep the whole buffer in memory.
    records.push(tabIndex === -1 ? record : { ...record, json: new Uint8Array(line.subarray(tabIndex + 1)) });
  }
  return records;
}

/** An item in the local copy of a dataset. `record` is undefined if the item was damaged. */
interface CopiedItem {
  sequenceNumber: number;
  record: Pick<DatasetRecord, 'kind' | 'id'> | undefined;
}

/** A copy of a dataset from the shared store, in the memory of this process. */
class DatasetCopy {
  readonly #name: string;
  readonly #store: Pick<Store, 'readItemsSince'>;
  readonly #codec: RecordCodec;
  readonly #maxBytes: number | undefined;
  dataset: MemoryDataset;
  #generation = '';
  #sequenceNumber = 0;
  /** The items of this copy by id, in the order of their last change. */
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
   * Reads the changes since the last call. Then returns the dataset with everything that any replica added before this
   * call. Calls that arrive during a read share the next read.
   */
  sync(): Promise<MemoryDataset> {
    this.#nextSync ??= this.#lastSync.then(async () => {
      this.#nextSync = undefined;
      const pendingRead = this.#readChanges();
      this.#lastSync = pendingRead.catch(() => {});
      await pendingRead;
      return this.dataset;
    });
    this.#lastSync = this.#nextSync.catch(() => {});
    return this.#nextSync;
  }

  async #readChanges(): Promise<void> {
    for (let isLastChunk = false; !isLastChunk; ) {
      const chunk = await this.#store.readItemsSince(this.#name, this.#sequenceNumber);
      if (this.#generation !== '' && chunk?.generation !== this.#generation) {
        this.#startOver();
        continue;
      }
      if (chunk === undefined) return;
      this.#generation = chunk.generation;
      for (const { id, sequenceNumber, body } of chunk.items) {
        const records = this.#codec.decode(this.#name, id, body);
        for (const record of records) this.dataset.applyRecord(record);
        this.#items.delete(id);
        this.#items.set(id, { sequenceNumber, record: records[0] && { kind: records[0].kind, id: records[0].id } });
        this.#sequenceNumber = sequenceNumber;
      }
      this.#removeEvicted(chunk.lastEvictedSequenceNumber);
      const { a: ads = 0, p: pages = 0, g: gatherings = 0 } = chunk.evictedCounts;
      this.dataset.evictedCountsInStore = { ads, pages, gatherings };
      this.dataset.shrinkIfTooLarge();
      isLastChunk = chunk.isLastChunk;
      await yieldToEventLoop();
    }
  }

  #removeEvicted(lastEvictedSequenceNumber: number): void {
    for (const [id, { sequenceNumber, record }] of this.#items) {
      if (sequenceNumber > lastEvictedSequenceNumber) return;
      this.#items.delete(id);
      if (record) this.dataset.removeItem(record.kind, record.id);
    }
  }

  #startOver(): void {
    this.dataset = new MemoryDataset(this.#maxBytes);
    this.#items = new Map();
    this.#generation = '';
    this.#sequenceNumber = 0;
  }
}
