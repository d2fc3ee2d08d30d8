import {
  createRecords,
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  MemoryDataset,
  type OrderedBatch,
} from './dataset.ts';
import { openMemoryStore } from './in-memory.ts';
import { openUserRecords, readContentRecords } from './user-records.ts';

const MB = 1024 * 1024;
/** The share that the largest tenant keeps when there is no more room for all. */
const shrinkFactor = 0.75;
/** Characters of answers that are not parsed yet, of all tenants together. */
const maxUnparsedChars = 16 * MB;
/**
 * How long answers may pile up before the oldest are parsed, in milliseconds, so that the next call does not wait for
 * the last one.
 */
const parseDelayMs = 10;
const typicalAnswerChars = 100_000;
const answerOverheadChars = 1000;

interface UnparsedAnswer {
  batch: OrderedBatch;
  chars: number;
}

/** Bytes of the labels, watches and reports of all tenants together: beyond that, no more are taken. */
const maxRecordBytes = 64 * MB;

/** Whether an answer is equal to the one before it, character for character. */
const isRepetition = (previousBatch: OrderedBatch, batch: OrderedBatch): boolean =>
  batch.text !== undefined &&
  batch.text === previousBatch.text &&
  batch.type === previousBatch.type &&
  batch.listedBy === previousBatch.listedBy &&
  batch.order > previousBatch.order &&
  batch.at >= previousBatch.at;

/**
 * The datasets of all tenants in the memory of this process: when there is no more room, the largest tenant loses what
 * came longest ago. Answers are parsed when somebody reads the tenant's dataset, so that no caller waits for that. If
 * too many answers are unread, those of the tenant that has not read for longest are parsed between other work.
 */
export class MemoryDatasets implements Datasets {
  readonly #records = openMemoryStore(() => 0, { maxLastingBytes: maxRecordBytes });
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #emptyDataset: MemoryDataset;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number | undefined;
  /** Unread answers by tenant, the oldest first. */
  readonly #unparsedAnswers = new Map<string, UnparsedAnswer[]>();
  #unparsedChars = 0;
  #parseTimer: NodeJS.Timeout | undefined;
  #bytes = 0;
  #order = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach }: { maxBytes?: number; maxBytesEach?: number } = {}) {
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = maxBytesEach;
    this.#emptyDataset = new MemoryDataset(maxBytesEach);
  }

  get bytes(): number {
    for (const tenantId of this.#unparsedAnswers.keys()) this.#parseAnswers(tenantId);
    return this.#bytes;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const dataset = () => this.#findDataset(tenantId) ?? this.#emptyDataset;
    return {
      userRecords: openUserRecords(this.#records, tenantId, { isLasting: false }),
      addItems: async (batch) => this.#addAnswer(tenantId, { ...batch, order: batch.order ?? ++this.#order }),
      saveGathering: async (step) => {
        this.#findDataset(tenantId);
        this.#applyRecords(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      nextSequenceNumber: async () => ++this.#order,
      findItem: async (type, id) => dataset().item(type, id),
      readContents: async () => {
        const records = await readContentRecords(this.#records, tenantId);
        return dataset().contents(records);
      },
      estimateMaxAds: async () => dataset().maxAds(this.#availableBytes(tenantId)),
    };
  }

  async close(): Promise<void> {
    this.#unparsedAnswers.clear();
    this.#datasets.clear();
  }

  #addAnswer(tenantId: string, batch: OrderedBatch): void {
    const unparsedAnswers = this.#unparsedAnswers.get(tenantId) ?? [];
    this.#unparsedAnswers.set(tenantId, unparsedAnswers);
    const lastAnswer = unparsedAnswers.at(-1);
    if (lastAnswer && isRepetition(lastAnswer.batch, batch)) {
      const { at, order, first = { at, order } } = lastAnswer.batch;
      lastAnswer.batch = { ...lastAnswer.batch, at: batch.at, order: batch.order, requestId: batch.requestId, first };
      return;
    }
    const chars = answerOverheadChars + (batch.text?.length ?? typicalAnswerChars);
    unparsedAnswers.push({ batch, chars });
    this.#unparsedChars += chars;
    if (this.#unparsedChars > maxUnparsedChars)
      this.#parseTimer ??= setTimeout(() => this.#parseOldAnswers(), parseDelayMs).unref();
  }

  /** Parses enough answers at once, however many have come: one at a time, a busy server would never be done. */
  #parseOldAnswers(): void {
    this.#parseTimer = undefined;
    for (const tenantId of this.#unparsedAnswers.keys()) this.#parseAnswers(tenantId, maxUnparsedChars);
  }

  #parseAnswers(tenantId: string, maxChars = 0): void {
    const unread = this.#unparsedAnswers.get(tenantId) ?? [];
    while (unread.length > 0 && this.#unparsedChars > maxChars) {
      const [{ batch, chars }] = unread.splice(0, 1) as [UnparsedAnswer];
      this.#unparsedChars -= chars;
      this.#applyRecords(tenantId, createRecords(batch));
    }
    if (unread.length === 0) this.#unparsedAnswers.delete(tenantId);
  }

  #findDataset(tenantId: string): MemoryDataset | undefined {
    this.#parseAnswers(tenantId);
    return this.#datasets.get(tenantId);
  }

  #applyRecords(tenantId: string, records: readonly DatasetRecord[]): void {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset(this.#maxBytesEach);
    this.#resize(tenantId, dataset, () => {
      for (const record of records) dataset.apply(record);
      this.#order = Math.max(this.#order, dataset.order);
      dataset.shrinkIfTooLarge();
    });
    while (this.#bytes > this.#maxBytes) {
      const largest = [...this.#datasets].reduce((one, other) => (other[1].bytes > one[1].bytes ? other : one));
      this.#resize(...largest, () => largest[1].shrinkTo(shrinkFactor * largest[1].bytes));
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
  #availableBytes(tenantId: string): number {
    const bytes = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (bytes === 0 ? 1 : 0);
    return Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - bytes));
  }
}
