import {
  createItemRecords,
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type DatasetStore,
  MemoryDataset,
  type ResponseBatch,
} from './dataset.ts';
import { openMemoryStore } from './in-memory.ts';
import { openUserRecords, readContentRecords } from './user-records.ts';

const MB = 1024 * 1024;
/**
 * When the datasets of all tenants (API keys) together exceed the memory limit, the largest dataset shrinks to this
 * fraction of its size.
 */
const shrinkFactor = 0.75;
/**
 * The maximum total length of the API responses that wait to be parsed, in characters. The limit applies to all tenants
 * (API keys) together.
 */
const maxUnparsedChars = 16 * MB;
/**
 * The delay before the server parses waiting API responses in the background, in milliseconds. Without the delay, the
 * next call would have to wait until parsing is complete.
 */
const parseDelayMs = 10;
/**
 * Used to estimate the size of the waiting API responses, in characters. `assumedResponseChars` is the assumed length
 * of a response whose text is not stored. `responseOverheadChars` is added to the length of every response.
 */
const assumedResponseChars = 100_000;
const responseOverheadChars = 1000;

interface UnparsedResponse {
  batch: ResponseBatch;
  chars: number;
}

/**
 * The memory limit for the labels, watches and reports of all tenants (API keys) together, in bytes. At this limit, the
 * server refuses new records.
 */
const maxRecordBytes = 64 * MB;

/**
 * Returns true if an API response is newer than the previous response but has the same text. Such a response need not
 * be parsed again.
 */
const isRepeatedResponse = (previousBatch: ResponseBatch, batch: ResponseBatch): boolean =>
  batch.text !== undefined &&
  batch.text === previousBatch.text &&
  batch.type === previousBatch.type &&
  batch.listedBy === previousBatch.listedBy &&
  batch.sequenceNumber > previousBatch.sequenceNumber &&
  batch.at >= previousBatch.at;

/**
 * The datasets (stored ads) of all tenants (API keys), in the memory of this process. When the datasets exceed the
 * memory limit, the oldest items of the largest dataset are evicted.
 *
 * An API response is parsed only when a tool reads the dataset, so that paid calls do not wait for parsing. If too many
 * responses are waiting, they are parsed in the background, starting with the tenant that has waited longest.
 */
export class MemoryDatasetStore implements DatasetStore {
  readonly #userRecordStore = openMemoryStore(() => 0, { maxLongLivedBytes: maxRecordBytes });
  readonly #datasets = new Map<string, MemoryDataset>();
  readonly #emptyDataset: MemoryDataset;
  readonly #maxBytes: number;
  readonly #maxBytesEach: number | undefined;
  /**
   * The API responses that are waiting to be parsed, grouped by tenant id. In each group, the oldest response comes
   * first.
   */
  readonly #unparsedResponses = new Map<string, UnparsedResponse[]>();
  #unparsedChars = 0;
  #parseTimer: NodeJS.Timeout | undefined;
  #datasetBytes = 0;
  #lastSequenceNumber = 0;

  constructor({ maxBytes = 256 * MB, maxBytesEach }: { maxBytes?: number; maxBytesEach?: number } = {}) {
    this.#maxBytes = maxBytes;
    this.#maxBytesEach = maxBytesEach;
    this.#emptyDataset = new MemoryDataset(maxBytesEach);
  }

  /**
   * The memory that all datasets use, in bytes. Parses all waiting responses first, because their size in a dataset is
   * unknown until they are parsed.
   */
  get bytes(): number {
    for (const tenantId of this.#unparsedResponses.keys()) this.#parseResponses(tenantId);
    return this.#datasetBytes;
  }

  async open({ tenantId }: Pick<DatasetCaller, 'tenantId'>): Promise<Dataset> {
    const dataset = () => this.#findDataset(tenantId) ?? this.#emptyDataset;
    return {
      userRecords: openUserRecords(this.#userRecordStore, tenantId, { isPersistent: false }),
      addItems: async (batch) => this.#addResponse(tenantId, batch),
      saveGathering: async (step) => {
        this.#findDataset(tenantId);
        this.#applyRecords(tenantId, [{ ...step, kind: 'gathering' }]);
      },
      nextSequenceNumber: async () => ++this.#lastSequenceNumber,
      findItem: async (type, id) => dataset().findItem(type, id),
      readContents: async () => {
        const records = await readContentRecords(this.#userRecordStore, tenantId);
        return dataset().getContents(records);
      },
      estimateMaxAds: async () => dataset().estimateMaxAds(this.#computeAvailableBytes(tenantId)),
    };
  }

  async close(): Promise<void> {
    this.#unparsedResponses.clear();
    this.#datasets.clear();
  }

  #addResponse(tenantId: string, batch: ResponseBatch): void {
    const unparsedResponses = this.#unparsedResponses.get(tenantId) ?? [];
    this.#unparsedResponses.set(tenantId, unparsedResponses);
    const lastResponse = unparsedResponses.at(-1);
    if (lastResponse && isRepeatedResponse(lastResponse.batch, batch)) {
      const { at, sequenceNumber, firstResponse = { at, sequenceNumber } } = lastResponse.batch;
      lastResponse.batch = {
        ...lastResponse.batch,
        at: batch.at,
        sequenceNumber: batch.sequenceNumber,
        requestId: batch.requestId,
        firstResponse,
      };
      return;
    }
    const chars = responseOverheadChars + (batch.text?.length ?? assumedResponseChars);
    unparsedResponses.push({ batch, chars });
    this.#unparsedChars += chars;
    if (this.#unparsedChars > maxUnparsedChars)
      this.#parseTimer ??= setTimeout(() => this.#parseOldResponses(), parseDelayMs).unref();
  }

  /**
   * Parses waiting responses until at most `maxUnparsedChars` characters remain. On a busy server, parsing only one
   * response each time would not be enough.
   */
  #parseOldResponses(): void {
    this.#parseTimer = undefined;
    for (const tenantId of this.#unparsedResponses.keys()) this.#parseResponses(tenantId, maxUnparsedChars);
  }

  /**
   * Parses the waiting responses of a tenant, the oldest first. Stops when the responses of all tenants together have
   * at most `maxChars` characters.
   */
  #parseResponses(tenantId: string, maxChars = 0): void {
    const unparsedResponses = this.#unparsedResponses.get(tenantId) ?? [];
    while (unparsedResponses.length > 0 && this.#unparsedChars > maxChars) {
      const [{ batch, chars }] = unparsedResponses.splice(0, 1) as [UnparsedResponse];
      this.#unparsedChars -= chars;
      this.#applyRecords(tenantId, createItemRecords(batch));
    }
    if (unparsedResponses.length === 0) this.#unparsedResponses.delete(tenantId);
  }

  #findDataset(tenantId: string): MemoryDataset | undefined {
    this.#parseResponses(tenantId);
    return this.#datasets.get(tenantId);
  }

  #applyRecords(tenantId: string, records: readonly DatasetRecord[]): void {
    const dataset = this.#datasets.get(tenantId) ?? new MemoryDataset(this.#maxBytesEach);
    this.#resize(tenantId, dataset, () => {
      for (const record of records) dataset.applyRecord(record);
      this.#lastSequenceNumber = Math.max(this.#lastSequenceNumber, dataset.highestSequenceNumber);
      dataset.shrinkIfTooLarge();
    });
    while (this.#datasetBytes > this.#maxBytes) {
      const largest = [...this.#datasets].reduce((left, right) => (right[1].bytes > left[1].bytes ? right : left));
      this.#resize(...largest, () => largest[1].shrinkTo(shrinkFactor * largest[1].bytes));
    }
  }

  #resize(tenantId: string, dataset: MemoryDataset, change: () => void): void {
    if (this.#datasets.has(tenantId)) this.#datasetBytes -= dataset.bytes;
    change();
    if (dataset.isEmpty) this.#datasets.delete(tenantId);
    else this.#datasets.set(tenantId, dataset);
    if (!dataset.isEmpty) this.#datasetBytes += dataset.bytes;
  }

  /**
   * Returns the number of bytes that the dataset of a tenant may use without shrinking the datasets of other tenants.
   * The result is at least an equal share of the memory limit.
   */
  #computeAvailableBytes(tenantId: string): number {
    const datasetBytes = this.#datasets.get(tenantId)?.bytes ?? 0;
    const tenantCount = this.#datasets.size + (datasetBytes === 0 ? 1 : 0);
    return Math.max(this.#maxBytes / tenantCount, this.#maxBytes - (this.#datasetBytes - datasetBytes));
  }
}
