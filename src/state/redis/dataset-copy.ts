import { isDeepStrictEqual } from 'node:util';
import type { DatasetContents } from '../dataset.ts';
import type { DatasetRecord } from '../dataset-record.ts';
import { MemoryDataset } from '../memory-datasets.ts';
import { beginning, type DatasetLog } from './dataset-log.ts';
import type { SealedRecords } from './sealed-records.ts';

export interface DatasetCopyOptions {
  log: DatasetLog;
  records: SealedRecords;
  /** Of memory. */
  maxBytes: number;
  /** A new name for each dataset in memory. */
  newName(): string;
}

/** So much is freed beyond what is necessary. */
const SLACK = 0.05;

/**
 * What this replica has read of a dataset. Only what Redis has is in it, so that all replicas see the same; since a
 * record may come twice and in any order, nobody has to wait for anybody.
 */
export class DatasetCopy {
  readonly #options: DatasetCopyOptions;
  #dataset: MemoryDataset;
  #position = beginning;
  /** What was let go, as Redis has it. */
  #letGo: DatasetContents['letGo'];
  /** Something was let go that Redis still has. */
  #isShrunk = false;
  #turn: Promise<unknown> = Promise.resolve();
  #next: Promise<MemoryDataset> | undefined;

  constructor(options: DatasetCopyOptions) {
    this.#options = options;
    this.#dataset = new MemoryDataset(options.newName());
    this.#letGo = this.#dataset.letGo;
  }

  /** Its estimated memory. */
  get bytes(): number {
    return this.#dataset.bytes;
  }

  /** The dataset with all that replicas had added when this was called. Callers that wait read it once for all. */
  synced(): Promise<MemoryDataset> {
    this.#next ??= this.#inTurn(async () => {
      this.#next = undefined;
      await this.#follow();
      return this.#dataset;
    });
    return this.#next;
  }

  /**
   * Writes everything anew in fewer parts. What came longest ago is let go if there is more.
   * @returns the bytes of the dataset in Redis; undefined if another replica was faster
   */
  merge(maxBytesInRedis: number): Promise<number | undefined> {
    return this.#inTurn(async () => {
      await this.#follow();
      // Without what came twice it may be small enough.
      const merged = await this.#merge(maxBytesInRedis);
      const share = maxBytesInRedis / (merged?.baseBytes ?? 0);
      if (share >= 1) return merged?.bytes;
      this.#shrinkTo((1 - SLACK) * share * this.#dataset.bytes);
      return (await this.#merge(maxBytesInRedis))?.bytes;
    });
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #follow(): Promise<void> {
    const { log, records, maxBytes } = this.#options;
    for (let isDone = false; !isDone; ) {
      const read = await log.read(this.#position);
      if (read === undefined || read === 'lost') {
        isDone = !(await this.#restore()) && read === undefined;
        continue;
      }
      if (read.startsOver) this.#startOver(read.letGo);
      for (const part of read.parts) for await (const some of records.read(part)) this.#apply(some);
      this.#position = read.position;
      isDone = read.isDone;
    }
    if (this.#dataset.bytes > maxBytes) this.#shrinkTo((1 - SLACK) * maxBytes);
    if (this.#isShrunk) await this.#merge();
  }

  /** Memory stays bounded while more is read. */
  #apply(records: readonly DatasetRecord[]): void {
    for (const record of records) this.#dataset.apply(record);
    const { maxBytes } = this.#options;
    if (this.#dataset.bytes > (1 + SLACK) * maxBytes) this.#shrinkTo(maxBytes);
  }

  #shrinkTo(bytes: number): void {
    this.#dataset.shrinkTo(bytes);
    this.#isShrunk = true;
  }

  /** Redis has lost what was read before, because it was started anew: it gets it back. False if there was nothing. */
  async #restore(): Promise<boolean> {
    const { log, records } = this.#options;
    const isEmpty = this.#dataset.isEmpty;
    for await (const part of records.write(this.#dataset.records())) await log.append([part]);
    this.#startOver();
    return !isEmpty;
  }

  #startOver(letGo?: DatasetContents['letGo']): void {
    this.#dataset = new MemoryDataset(this.#options.newName(), letGo);
    this.#letGo = this.#dataset.letGo;
    this.#position = beginning;
    this.#isShrunk = false;
  }

  async #merge(maxBytes = Number.MAX_SAFE_INTEGER) {
    const { log, records } = this.#options;
    // A merge would remove what this version does not know.
    if (records.hasUnknown()) return;
    const { letGo } = this.#dataset;
    const dropped = !isDeepStrictEqual(letGo, this.#letGo);
    const merged = await log.merge(this.#position, records.write(this.#dataset.records()), {
      letGo,
      dropped,
      maxBytes,
    });
    if (merged === undefined) return;
    this.#position = merged.position;
    this.#letGo = letGo;
    this.#isShrunk = false;
    return merged;
  }
}
