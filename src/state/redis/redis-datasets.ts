import { LRUCache } from 'lru-cache';
import type { Dataset, DatasetCaller, Datasets } from '../dataset.ts';
import type { DatasetRecord } from '../dataset-record.ts';
import { fairLevel } from '../fair-store.ts';
import { recordsOf } from '../memory-dataset.ts';
import { DatasetCopy } from './dataset-copy.ts';
import { DATASET_TTL, DatasetLog } from './dataset-log.ts';
import { Holdings } from './holdings.ts';
import type { RedisConnection } from './redis-connection.ts';
import type { Seal } from './seal.ts';
import { type SealedRecords, sealedRecords } from './sealed-records.ts';
import { UnsentParts } from './unsent-parts.ts';

export interface RedisDatasetsOptions {
  connection: RedisConnection;
  seal: Seal;
  baseUrl: string;
  warn(message: string, fields: Record<string, unknown>): void;
  limits?: RedisDatasetsLimits;
}

export interface RedisDatasetsLimits {
  /** Of Redis, for all tenants together and for one. */
  maxBytes?: number;
  maxBytesEach?: number;
  /** Of the memory of this process, likewise. */
  maxMemory?: number;
  maxMemoryEach?: number;
}

const MB = 1024 * 1024;
/** So much is freed beyond what is necessary. */
const SLACK = 0.05;
/** A gathering should not displace its own first ads. */
const USABLE = 0.8;

/** The parts of one dataset. */
interface Opened {
  name: string;
  log: DatasetLog;
  records: SealedRecords;
}

/**
 * The datasets of all tenants, which all replicas share. Whoever adds to one need not have read it; whoever reads one
 * keeps a copy and fetches only what is new. If Redis cannot be reached, a dataset is `unavailable` and never empty.
 */
export class RedisDatasets implements Datasets {
  readonly #options: RedisDatasetsOptions;
  readonly #limits: Required<RedisDatasetsLimits>;
  readonly #copies: LRUCache<string, DatasetCopy>;
  readonly #holdings: Holdings;
  readonly #unsent = new UnsentParts();
  readonly #background = new Set<Promise<void>>();
  #isMakingRoom = false;
  #copied = 0;

  constructor(options: RedisDatasetsOptions) {
    const { maxBytes = 1024 * MB, maxBytesEach = 64 * MB, maxMemory = 256 * MB, maxMemoryEach = 128 * MB } =
      options.limits ?? {};
    this.#options = options;
    this.#limits = { maxBytes, maxBytesEach: Math.min(maxBytes, maxBytesEach), maxMemory, maxMemoryEach };
    this.#copies = new LRUCache({ maxSize: maxMemory, sizeCalculation: ({ bytes }) => bytes });
    this.#holdings = new Holdings(options.connection, 'datasets', DATASET_TTL);
  }

  async of({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const opened = this.#open(this.#nameOf(tenantId));
    const synced = () => this.#synced(opened);
    return {
      addItems: (batch) => this.#add(opened, recordsOf(batch)),
      saveGathering: (step) => this.#add(opened, [{ ...step, kind: 'gathering' }]),
      item: async (type, id) => (await synced()).item(type, id),
      contents: async () => (await synced()).contents(),
      maxAds: async () => (await synced()).adsIn(USABLE * this.#limits.maxMemoryEach),
    };
  }

  async forget(tenantId: string): Promise<void> {
    const { name, log } = this.#open(this.#nameOf(tenantId));
    this.#unsent.take(name);
    try {
      await log.clear();
      await this.#holdings.set({ name, bytes: 0 });
    } catch (error) {
      // The caller reads that the key was rejected, which matters more; the next rejection tries again.
      this.#options.warn('the dataset of a rejected key was not cleared', { error: String(error) });
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#background);
    for (const name of this.#unsent.names()) await this.#send(this.#open(name)).catch(() => {});
    this.#copies.clear();
  }

  #nameOf(tenantId: string): string {
    const { seal, baseUrl } = this.#options;
    return seal.name('dataset', baseUrl, tenantId);
  }

  #open(name: string): Opened {
    const { connection, seal } = this.#options;
    return { name, log: new DatasetLog(connection, name), records: sealedRecords(seal, `dataset ${name}`) };
  }

  async #synced(opened: Opened) {
    const { name } = opened;
    if (this.#unsent.has(name)) await this.#send(opened);
    const copy = this.#copyOf(opened);
    const dataset = await copy.synced();
    this.#keep(name, copy);
    return dataset;
  }

  #copyOf({ name, log, records }: Opened): DatasetCopy {
    const known = this.#copies.get(name);
    if (known !== undefined) return known;
    const newName = () => `r${++this.#copied}`;
    const copy = new DatasetCopy({ log, records, maxBytes: this.#limits.maxMemoryEach, newName });
    this.#keep(name, copy);
    return copy;
  }

  /** With the size that it has now. */
  #keep(name: string, copy: DatasetCopy): void {
    this.#copies.delete(name);
    this.#copies.set(name, copy);
  }

  /** What cannot be sent now is sent later: it was paid for. */
  async #add(opened: Opened, records: readonly DatasetRecord[]): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of opened.records.write(records)) parts.push(part);
    await this.#send(opened, parts);
  }

  async #send(opened: Opened, added: readonly Buffer[] = []): Promise<void> {
    const { name, log } = opened;
    const parts = [...this.#unsent.take(name), ...added];
    if (parts.length === 0) return;
    const { bytes, isLong } = await log.append(parts).catch((error: unknown) => {
      const lost = parts.filter((part) => !this.#unsent.add(name, part));
      if (lost.length > 0) this.#options.warn('answers are lost to the dataset: too much waits for the shared state', {});
      throw error;
    });
    const { maxBytesEach, maxBytes } = this.#limits;
    const total = await this.#holdings.set({ name, bytes });
    if (isLong || bytes > maxBytesEach) this.#later(() => this.#merge(opened, maxBytesEach));
    if (total > maxBytes && !this.#isMakingRoom) this.#later(() => this.#makeRoom(total));
  }

  async #merge(opened: Opened, maxBytes: number): Promise<number> {
    const bytes = await this.#copyOf(opened).merge(maxBytes);
    if (bytes === undefined) return 0;
    return this.#holdings.set({ name: opened.name, bytes });
  }

  /** Whoever holds most gives up what came longest ago. */
  async #makeRoom(sum: number): Promise<void> {
    this.#isMakingRoom = true;
    let total = sum;
    try {
      const wanted = (1 - SLACK) * this.#limits.maxBytes;
      const largest = await this.#holdings.largest();
      const others = largest.reduce((rest, { bytes }) => rest - bytes, total);
      const level = fairLevel(
        largest.map(({ bytes }) => bytes),
        wanted - others,
      );
      for (const { name, bytes } of largest) {
        if (total <= wanted || bytes <= level) return;
        total = (await this.#merge(this.#open(name), level)) || total;
      }
    } finally {
      this.#isMakingRoom = false;
    }
  }

  /** No caller waits for it. */
  #later(work: () => Promise<unknown>): void {
    const done = work()
      .catch((error: unknown) => this.#options.warn('a dataset was not merged', { error: String(error) }))
      .then(() => void this.#background.delete(done));
    this.#background.add(done);
  }
}
