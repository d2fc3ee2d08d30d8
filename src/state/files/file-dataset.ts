import { setImmediate } from 'node:timers/promises';
import type { Dataset, GatheringStep, ItemBatch } from '../dataset.ts';
import type { DatasetRecord } from '../dataset-record.ts';
import { type MemoryDatasets, recordsOf } from '../memory-datasets.ts';
import { lineOf, recordOfLine } from '../record-lines.ts';
import { mergedLine, mergedSegments } from './merged-line.ts';
import type { SegmentFolder } from './segment-folder.ts';

export interface FileDatasetOptions {
  /** Holds what was read. */
  memory: MemoryDatasets;
  tenantId: string;
  folder: SegmentFolder;
  warn(message: string, fields: Record<string, unknown>): void;
}

/** So many segments are merged into one. */
const MAX_SEGMENTS = 64;
/** Characters of a merged segment. */
const MERGED_CHARS = 8 * 1024 * 1024;
/** Names of segments that are remembered. */
const MAX_KNOWN = 20_000;
/** Lines read before others get their turn. */
const LINES_AT_ONCE = 100;
/** Each listing shows what was merged during the last one. */
const MAX_LISTINGS = 20;

/**
 * A dataset that lies in a folder and is read into memory. Every process adds segments of its own and reads those of the
 * others; since a record may come twice and in any order, none of them has to know what the others do.
 */
export class FileDataset implements Dataset {
  readonly #options: FileDatasetOptions;
  /** Segments that are in memory, and those of them that nobody can read in full. */
  #read = new Set<string>();
  /** All that were read in full, also those that are gone. */
  readonly #known = new Set<string>();
  readonly #damaged = new Set<string>();
  #generation: string | undefined;
  /** Whether memory holds what the folder lacks. */
  #behind: boolean;
  #lastError = '';
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: FileDatasetOptions) {
    this.#options = options;
    this.#behind = options.memory.has(options.tenantId);
  }

  async addItems(batch: ItemBatch): Promise<void> {
    await this.#add(recordsOf({ ...batch, order: batch.order ?? (await this.order()) }));
  }

  async saveGathering(step: GatheringStep): Promise<void> {
    await this.#add([{ ...step, kind: 'gathering' }]);
  }

  async order(): Promise<number> {
    await this.sync();
    return this.#options.memory.nextOrder();
  }

  item: Dataset['item'] = async (type, id) => (await this.#memory()).item(type, id);
  contents = async () => (await this.#memory()).contents();
  maxAds = async () => (await this.#memory()).maxAds();

  #memory(): Promise<Dataset> {
    const { memory, tenantId } = this.#options;
    return memory.of({ tenantId });
  }

  /** Reads what other processes brought, and writes what could not be written before. */
  sync(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#readOthers();
      if (this.#behind || this.#read.size - this.#damaged.size > MAX_SEGMENTS) await this.#merge();
    });
  }

  /** Ends when everything is written. */
  async close(): Promise<void> {
    await this.#turn;
  }

  async #add(records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    const { folder } = this.#options;
    this.#apply(records);
    await this.#inTurn(async () => {
      const wasBehind = this.#behind;
      this.#behind = true;
      const isCleared = await this.#startOver();
      if (isCleared) this.#apply(records);
      if (wasBehind && !isCleared) return this.#merge();
      this.#took(await folder.write(records.map(lineOf)));
      this.#behind = false;
    });
  }

  /** One thing after the other. What fails is tried again next time; until then memory has it. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const { folder, warn } = this.#options;
    const failed = (error: unknown) => {
      if (String(error) !== this.#lastError)
        warn('the dataset could not be kept in files', { folder: folder.path, error: String(error) });
      this.#lastError = String(error);
    };
    const done = this.#turn.then(work).then(() => {
      this.#lastError = '';
    }, failed);
    this.#turn = done;
    return done;
  }

  /** Forgets everything if the folder was cleared since. */
  async #startOver(): Promise<boolean> {
    const { memory, tenantId, folder } = this.#options;
    const known = this.#generation;
    if (known !== undefined && (await folder.generation()) === known) return false;
    this.#generation = await folder.open();
    if (known === undefined) return false;
    memory.forget(tenantId);
    for (const names of [this.#read, this.#known, this.#damaged]) names.clear();
    return true;
  }

  #apply(records: readonly DatasetRecord[]): void {
    const { memory, tenantId } = this.#options;
    memory.apply(tenantId, records);
  }

  async #readOthers(): Promise<void> {
    const { folder } = this.#options;
    if (await this.#startOver()) this.#behind = false;
    for (let listing = 0; listing < MAX_LISTINGS; listing++) {
      const names = await folder.names();
      const unread = names.filter((name) => !this.#read.has(name));
      if (unread.length === 0) {
        this.#read = new Set(names);
        return;
      }
      for (const name of unread) await this.#readOne(name);
    }
  }

  async #readOne(name: string): Promise<void> {
    const { folder, warn } = this.#options;
    try {
      const lines = await folder.read(name);
      if (lines === undefined) return;
      this.#read.add(name);
      const segments = mergedSegments(lines[0]);
      if (segments?.length && segments.every((one) => this.#known.has(one))) return this.#took(name);
      for (let start = segments ? 1 : 0; start < lines.length; start += LINES_AT_ONCE) {
        const records = lines.slice(start, start + LINES_AT_ONCE).map(recordOfLine);
        const whole = records.filter((record) => record !== undefined);
        if (whole.length < records.length && !this.#damaged.has(name)) {
          this.#damaged.add(name);
          warn('skipped damaged lines of a file', { file: name });
        }
        this.#apply(whole);
        await setImmediate();
      }
      if (!this.#damaged.has(name)) this.#took(name);
    } catch (error) {
      this.#read.add(name);
      this.#damaged.add(name);
      warn('skipped a file that cannot be read', { file: name, error: String(error) });
    }
  }

  #took(name: string): void {
    if (this.#known.size > MAX_KNOWN) this.#known.clear();
    this.#read.add(name);
    this.#known.add(name);
  }

  /** Writes everything anew, and then removes what was read. Damaged segments stay for whoever wants to look. */
  async #merge(): Promise<void> {
    const { memory, tenantId, folder } = this.#options;
    const merged = [...this.#read].filter((name) => !this.#damaged.has(name));
    // Whoever has read these need not read the new one, unless more is in it.
    const head = mergedLine(this.#behind ? [] : merged);
    let lines = [head];
    let chars = 0;
    for (const record of memory.records(tenantId)) {
      const line = lineOf(record);
      lines.push(line);
      chars += line.length;
      if (chars < MERGED_CHARS) continue;
      this.#took(await folder.write(lines));
      lines = [head];
      chars = 0;
    }
    if (lines.length > 1) this.#took(await folder.write(lines));
    this.#behind = false;
    await folder.remove(merged);
    for (const name of merged) this.#read.delete(name);
    await folder.removeUnfinished();
  }
}
