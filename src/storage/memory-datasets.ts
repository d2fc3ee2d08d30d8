import {
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  MemoryDataset,
  type OrderedBatch,
  recordsOf,
} from './dataset.ts';
import { inMemory } from './in-memory.ts';
import { contentRecords, openUserRecords } from './user-records.ts';

const MB = 1024 * 1024;
/** The share that the largest tenant keeps when there is no more room for all. */
const partLeft = 0.75;
/** Characters of answers that are not parsed yet, of all tenants together. */
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

/** Bytes of the labels, watches and reports of all tenants together: beyond that, no more are taken. */
const maxRecordBytes = 64 * MB;

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
  readonly #records = inMemory(() => 0, { maxLastingBytes: maxRecordBytes });
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #nothing: MemoryDataset;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number | undefined;
  /** Unread answers by tenant, the oldest first. */
  readonly #unread = new Map<string, UnreadAnswer[]>();
  #unreadSize = 0;
  #makingRoom: NodeJS.Timeout | undefined;
  #bytes = 0;
  #order = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach }: { maxBytes?: number; maxBytesEach?: number } = {}) {
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = maxBytesEach;
    this.#nothing = new MemoryDataset(maxBytesEach);
  }

  get bytes(): number {
    for (const tenantId of this.#unread.keys()) this.#takeApart(tenantId);
    return this.#bytes;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const dataset = () => this.#datasetOf(tenantId) ?? this.#nothing;
    return {
      userRecords: openUserRecords(this.#records, tenantId, { isLasting: false }),
      addItems: async (batch) => this.#push(tenantId, { ...batch, order: batch.order ?? ++this.#order }),
      saveGathering: async (step) => {
        this.#datasetOf(tenantId);
        this.#apply(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      order: async () => ++this.#order,
      item: async (type, id) => dataset().item(type, id),
      contents: async () => {
        const records = await contentRecords(this.#records, tenantId);
        return dataset().contents(records);
      },
      maxAds: async () => dataset().maxAds(this.#roomOf(tenantId)),
    };
  }

  async close(): Promise<void> {
    this.#unread.clear();
    this.#datasets.clear();
  }

  #push(tenantId: string, batch: OrderedBatch): void {
    const unread = this.#unread.get(tenantId) ?? [];
    this.#unread.set(tenantId, unread);
    const last = unread.at(-1);
    if (last && saysTheSame(last.batch, batch)) {
      const { at, order, first = { at, order } } = last.batch;
      last.batch = { ...last.batch, at: batch.at, order: batch.order, requestId: batch.requestId, first };
      return;
    }
    const size = answerOverhead + (batch.text?.length ?? typicalAnswer);
    unread.push({ batch, size });
    this.#unreadSize += size;
    if (this.#unreadSize > maxUnread) this.#makingRoom ??= setTimeout(() => this.#makeRoom(), pauseMs).unref();
  }

  /** Parses enough answers at once, however many have come: one at a time, a busy server would never be done. */
  #makeRoom(): void {
    this.#makingRoom = undefined;
    for (const tenantId of this.#unread.keys()) this.#takeApart(tenantId, maxUnread);
  }

  #takeApart(tenantId: string, maxSize = 0): void {
    const unread = this.#unread.get(tenantId) ?? [];
    while (unread.length > 0 && this.#unreadSize > maxSize) {
      const [{ batch, size }] = unread.splice(0, 1) as [UnreadAnswer];
      this.#unreadSize -= size;
      this.#apply(tenantId, recordsOf(batch));
    }
    if (unread.length === 0) this.#unread.delete(tenantId);
  }

  #datasetOf(tenantId: string): MemoryDataset | undefined {
    this.#takeApart(tenantId);
    return this.#datasets.get(tenantId);
  }

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
    const bytes = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (bytes === 0 ? 1 : 0);
    return Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - bytes));
  }
}
