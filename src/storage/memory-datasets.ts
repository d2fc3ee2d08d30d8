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
/**
 * When all datasets (the stored ads of all tenants) together exceed the memory limit, the largest dataset shrinks to
 * this fraction of its size.
 */
const shrinkFactor = 0.75;
/** The maximum total size of unparsed API responses of all tenants, in characters. */
const maxUnparsedChars = 16 * MB;
/**
 * The delay before the oldest waiting API responses are parsed, in milliseconds. Without the delay, the next call would
 * have to wait until the last response is parsed.
 */
const parseDelayMs = 10;
/**
 * The assumed size of an API response whose text is not stored, and the memory overhead per response, in characters.
 */
const typicalAnswerChars = 100_000;
const answerOverheadChars = 1000;

interface UnparsedAnswer {
  batch: OrderedBatch;
  chars: number;
}

/** The memory limit for labels, watches and reports of all tenants. When it is reached, new records are refused. */
const maxRecordBytes = 64 * MB;

/**
 * Returns true if an API response has the same text as the previous one and arrived later. It is then not parsed again.
 */
const isRepetition = (previousBatch: OrderedBatch, batch: OrderedBatch): boolean =>
  batch.text !== undefined &&
  batch.text === previousBatch.text &&
  batch.type === previousBatch.type &&
  batch.listedBy === previousBatch.listedBy &&
  batch.order > previousBatch.order &&
  batch.at >= previousBatch.at;

/**
 * The datasets of all tenants in the memory of this process. If all datasets together exceed the memory limit, the
 * oldest items of the largest dataset are evicted.
 *
 * API responses are parsed only when a tool reads the dataset of their API key, so that paid calls do not wait for
 * parsing. If too many responses are waiting, they are parsed in the background, starting with the tenant that has not
 * read its dataset for the longest time.
 */
export class MemoryDatasets implements Datasets {
  readonly #records = openMemoryStore(() => 0, { maxLastingBytes: maxRecordBytes });
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #emptyDataset: MemoryDataset;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number | undefined;
  /** The API responses of each tenant that wait to be parsed, the oldest first. */
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

  /**
   * The memory used by all datasets, in bytes. Parses all waiting responses first, because their size is known only
   * then.
   */
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
      findItem: async (type, id) => dataset().findItem(type, id),
      readContents: async () => {
        const records = await readContentRecords(this.#records, tenantId);
        return dataset().getContents(records);
      },
      estimateMaxAds: async () => dataset().estimateMaxAds(this.#availableBytes(tenantId)),
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

  /**
   * Parses the oldest responses until at most `maxUnparsedChars` are waiting. One response per run would not be enough,
   * because new responses arrive faster on a busy server.
   */
  #parseOldAnswers(): void {
    this.#parseTimer = undefined;
    for (const tenantId of this.#unparsedAnswers.keys()) this.#parseAnswers(tenantId, maxUnparsedChars);
  }

  /** Parses the oldest responses of a tenant until all tenants together have at most `maxChars` unparsed characters. */
  #parseAnswers(tenantId: string, maxChars = 0): void {
    const unparsedAnswers = this.#unparsedAnswers.get(tenantId) ?? [];
    while (unparsedAnswers.length > 0 && this.#unparsedChars > maxChars) {
      const [{ batch, chars }] = unparsedAnswers.splice(0, 1) as [UnparsedAnswer];
      this.#unparsedChars -= chars;
      this.#applyRecords(tenantId, createRecords(batch));
    }
    if (unparsedAnswers.length === 0) this.#unparsedAnswers.delete(tenantId);
  }

  #findDataset(tenantId: string): MemoryDataset | undefined {
    this.#parseAnswers(tenantId);
    return this.#datasets.get(tenantId);
  }

  #applyRecords(tenantId: string, records: readonly DatasetRecord[]): void {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset(this.#maxBytesEach);
    this.#resize(tenantId, dataset, () => {
      for (const record of records) dataset.apply(record);
      this.#order = Math.max(this.#order, dataset.highestSequenceNumber);
      dataset.shrinkIfTooLarge();
    });
    while (this.#bytes > this.#maxBytes) {
      const largest = [...this.#datasets].reduce((left, right) => (right[1].bytes > left[1].bytes ? right : left));
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

  /**
   * Returns how much memory the dataset of one tenant may use without shrinking the datasets of other tenants. This is
   * at least an equal share of the limit.
   */
  #availableBytes(tenantId: string): number {
    const bytes = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenants = this.#datasets.size + (bytes === 0 ? 1 : 0);
    return Math.max(this.#maxBytes / tenants, this.#maxBytes - (this.#bytes - bytes));
  }
}
