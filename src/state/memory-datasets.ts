import type { Dataset, DatasetCaller, Datasets } from './dataset.ts';
import type { DatasetRecord } from './dataset-record.ts';
import { fairLevel } from './fair-store.ts';
import { MemoryDataset, type OrderedBatch, recordsOf } from './memory-dataset.ts';

export interface MemoryDatasetsOptions {
  /** For all tenants together. */
  maxBytes?: number;
  /** For one tenant. */
  maxBytesEach?: number;
  /** Where what came before is not known yet: what comes now has a place that is no lower than the time. */
  now?: () => number;
}

const MB = 1024 * 1024;

/** So much is freed beyond what is necessary, so that not every new ad has to go through all tenants. */
const SLACK = 0.05;

/** A gathering should not displace its own first ads: gatherings, pages and larger ads take room, too. */
const USABLE = 0.8;

/**
 * The datasets of all tenants in the memory of this process, with a fair share for each: when there is no more room, the
 * tenants who hold the most lose what came longest ago.
 */
export class MemoryDatasets implements Datasets {
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #queue = new BatchQueue((tenantId, batch) => this.apply(tenantId, recordsOf(batch)));
  readonly #maxBytes: number;
  readonly #maxBytesEach: number;
  readonly #now: () => number;
  #bytes = 0;
  #created = 0;
  /** The highest place of all. */
  #order = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach = 128 * MB, now = () => 0 }: MemoryDatasetsOptions = {}) {
    this.#now = now;
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = Math.min(maxBytes, maxBytesEach);
  }

  /** Bytes held, as they are counted. */
  get bytes(): number {
    this.#queue.drain();
    return this.#bytes;
  }

  async of({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const known = () => this.#datasetOf(tenantId) ?? new MemoryDataset('empty');
    return {
      addItems: async (batch) => this.#queue.push(tenantId, { ...batch, order: batch.order ?? this.nextOrder() }),
      saveGathering: async (step) => {
        this.#queue.drain();
        this.apply(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      order: async () => this.nextOrder(),
      item: async (type, id) => known().item(type, id),
      contents: async () => known().contents(),
      maxAds: async () => known().adsIn(USABLE * this.#roomOf(tenantId)),
    };
  }

  /** Removes a tenant's dataset. */
  forget(tenantId: string): void {
    const dataset = this.#datasetOf(tenantId);
    this.#bytes -= dataset?.bytes ?? 0;
    this.#datasets.delete(tenantId);
  }

  async close(): Promise<void> {
    this.#queue.drain();
    this.#datasets.clear();
    this.#bytes = 0;
  }

  /** Whether a tenant has one that is not empty. */
  has(tenantId: string): boolean {
    return this.#datasetOf(tenantId) !== undefined;
  }

  /** Everything in a tenant's dataset. */
  records(tenantId: string): Iterable<DatasetRecord> {
    return this.#datasetOf(tenantId)?.records() ?? [];
  }

  nextOrder(): number {
    this.#order = Math.max(this.#order + 1, this.#now());
    return this.#order;
  }

  /** With what was waiting to be added. */
  #datasetOf(tenantId: string): MemoryDataset | undefined {
    this.#queue.drain();
    return this.#datasets.get(tenantId);
  }

  /** Changes a tenant's dataset, and makes room if it has grown. */
  apply(tenantId: string, records: readonly DatasetRecord[]): void {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset(`${++this.#created}`);
    const before = this.#datasets.has(tenantId) ? dataset.bytes : 0;
    for (const record of records) dataset.apply(record);
    this.#order = Math.max(this.#order, dataset.order);
    if (dataset.bytes > this.#maxBytesEach) dataset.shrinkTo((1 - SLACK) * this.#maxBytesEach);
    this.#bytes += (dataset.isEmpty ? 0 : dataset.bytes) - before;
    if (dataset.isEmpty) this.#datasets.delete(tenantId);
    else this.#datasets.set(tenantId, dataset);
    if (this.#bytes > this.#maxBytes) this.#makeRoom();
  }

  #makeRoom(): void {
    const wanted = (1 - SLACK) * this.#maxBytes;
    const byBytes = [...this.#datasets].sort(([, left], [, right]) => right.bytes - left.bytes);
    const level = fairLevel(
      byBytes.map(([, { bytes }]) => bytes),
      wanted,
    );
    for (const [tenantId, dataset] of byBytes) {
      if (this.#bytes <= wanted || dataset.bytes <= level) return;
      this.#bytes -= dataset.bytes;
      dataset.shrinkTo(level);
      if (dataset.isEmpty) this.#datasets.delete(tenantId);
      else this.#bytes += dataset.bytes;
    }
  }

  /** What a tenant may hold if all others keep what they have, but at least a fair share. */
  #roomOf(tenantId: string): number {
    const own = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (own === 0 ? 1 : 0);
    return Math.min(this.#maxBytesEach, Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - own)));
  }
}

/** Items added at once: less than a millisecond of work. */
const PART = 10;
/** Items that may wait. */
const MAX_WAITING = 500;

/**
 * Answers whose items are added a few at a time between other work, so that no caller waits for it. Whoever looks at
 * the items drains the queue first.
 */
class BatchQueue {
  readonly #add: (tenantId: string, batch: OrderedBatch) => void;
  #parts: [tenantId: string, batch: OrderedBatch][] = [];
  #scheduled = false;

  constructor(add: (tenantId: string, batch: OrderedBatch) => void) {
    this.#add = add;
  }

  push(tenantId: string, batch: OrderedBatch): void {
    for (let start = 0; start < batch.items.length; start += PART)
      this.#parts.push([tenantId, { ...batch, items: batch.items.slice(start, start + PART) }]);
    if (this.#parts.length * PART > MAX_WAITING) this.drain();
    else this.#schedule();
  }

  drain(): void {
    const parts = this.#parts;
    this.#parts = [];
    for (const [tenantId, part] of parts) this.#add(tenantId, part);
  }

  #schedule(): void {
    if (this.#scheduled || this.#parts.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const part = this.#parts.shift();
      if (part) this.#add(...part);
      this.#schedule();
    });
  }
}
