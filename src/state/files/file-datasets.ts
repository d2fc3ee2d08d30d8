import { hash } from 'node:crypto';
import { lstat, readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { AdLibraryError, type ErrorKind } from '../../api/errors.ts';
import { withLock } from '../../lock.ts';
import {
  type Dataset,
  type DatasetCaller,
  type DatasetRecord,
  type Datasets,
  type GatheringStep,
  type ItemBatch,
  MemoryDataset,
  recordsOf,
} from '../dataset.ts';
import {
  type OwnRecords,
  type RecordChange,
  type RecordKind,
  type RecordStep,
  type RecordsById,
  RecordTable,
  recordStep,
} from '../own-records.ts';
import { isOfSomeKind, lineOf, parsedLine, recordOfLine, recordStepOf } from '../record-lines.ts';
import { AccountFile, headIn } from './account-file.ts';
import { unless } from './folder.ts';

export interface FileDatasetsOptions {
  folder: string;
  baseUrl: string;
  now: () => number;
  elapsed: () => number;
  /** The account of a key; undefined if the service does not say. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn(message: string, fields: Record<string, unknown>): void;
  /** Of memory, for one account. */
  maxBytes?: number;
}

const askAgainMs = 30_000;

/** Failures that are final: the service does not tell whose key it is. After any other failure, it may tell later. */
const finalAnswers: readonly ErrorKind[] = ['forbidden', 'not_found', 'invalid_request', 'unexpected_response'];

/** Where the files of accounts lie, and where earlier versions kept their datasets. */
const accountsFolder = (files: string): string => join(files, 'accounts');
const olderFolder = (files: string): string => join(files, 'datasets');

/** Datasets that survive the process, one for each address and account, so that a new key of the same account finds it. */
export class FileDatasets implements Datasets {
  readonly #options: FileDatasetsOptions;
  readonly #datasets = new Map<string, FileDataset>();

  constructor(options: FileDatasetsOptions) {
    this.#options = options;
  }

  async of(caller: DatasetCaller, { toAdd } = { toAdd: false }): Promise<Dataset> {
    const dataset = this.#datasets.get(caller.tenantId) ?? new FileDataset(this.#options, caller);
    this.#datasets.set(caller.tenantId, dataset);
    await dataset.open(toAdd);
    return dataset;
  }

  async close(): Promise<void> {
    for (const dataset of this.#datasets.values()) await dataset.close();
  }
}

/** The failure that a reader sees; undefined if the service has answered. */
function failureOf(error: unknown): AdLibraryError | undefined {
  const kind = error instanceof AdLibraryError ? error.failure.kind : undefined;
  if (kind === 'unauthorized') return error as AdLibraryError;
  if (kind !== undefined && finalAnswers.includes(kind)) return;
  const problem = 'The service did not say whose key this is (whoami), so what is kept in files cannot be read now.';
  return new AdLibraryError({ kind: 'unavailable', problem, sent: false }, { cause: error });
}

/** The most records that wait for a disk that takes nothing. If there are more, the oldest stay in memory only. */
const maxWaiting = 10_000;
const olderAtOnce = 1000;
/** How many bytes beyond twice the size of the dataset the file may have before it is written anew. */
const slackBytes = 1024 * 1024;

/** The files of an account, once the account is known. */
interface Files {
  account: AccountFile;
  older: OlderFolder;
}

/**
 * A dataset in a file, as this process has read it. While the account is not known, paid records are in memory. While
 * the service fails to tell the account, reading fails, because these records are not the whole dataset.
 */
class FileDataset implements Dataset {
  readonly #options: FileDatasetsOptions;
  readonly #caller: DatasetCaller;
  #files: Files | undefined;
  #asking: Promise<void> | undefined;
  /** When to ask again whose key it is, and why the service did not say. */
  #askAt = Number.NEGATIVE_INFINITY;
  #failure: AdLibraryError | undefined;
  /** Lines that the disk has not taken yet. */
  #waiting: AnyRecord[] = [];
  #dataset: MemoryDataset;
  #own = new RecordTable();
  /** Lines that are damaged, or of a kind that is not known here: they stay in the file. */
  #others: Buffer[] = [];
  /** The highest number of all answers. */
  #order = 0;
  /** Records that an earlier version wrote and that are not in the file yet. */
  #olderLeft: { lines: string[]; whole: string[] } | undefined;
  #isDamageKnown = false;
  #compactAbove = 0;
  #isFailing = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: FileDatasetsOptions, caller: DatasetCaller) {
    this.#options = options;
    this.#caller = caller;
    this.#dataset = new MemoryDataset(options.maxBytes);
  }

  get own(): OwnRecords {
    return {
      isLasting: this.#files !== undefined,
      read: async (kind) => {
        await this.#turn;
        return new Map(this.#own.of(kind));
      },
      update: (kind, change) => this.#update(kind, change),
    };
  }

  /**
   * After a failure, each read asks for the account again. An addition asks again only after a while, because each
   * question takes time.
   */
  async open(toAdd: boolean): Promise<void> {
    const isDue = this.#options.elapsed() >= this.#askAt || (!toAdd && this.#failure !== undefined);
    if (this.#files === undefined && isDue)
      this.#asking ??= this.#ask().finally(() => {
        this.#asking = undefined;
      });
    await this.#asking;
    if (this.#failure && !toAdd) throw this.#failure;
    await this.sync();
  }

  async #ask(): Promise<void> {
    const { folder, baseUrl, elapsed, userIdOf, warn } = this.#options;
    let failure: AdLibraryError | undefined;
    const userId = await userIdOf(this.#caller).catch((error: unknown) => {
      failure = failureOf(error);
    });
    this.#failure = failure;
    if (userId === undefined) {
      this.#askAt = elapsed() + askAgainMs;
      return warn('the dataset is not kept in files: the service did not say whose key this is', {});
    }
    const name = hash('sha256', `${baseUrl}\n${userId}`).slice(0, 32);
    const account = new AccountFile(join(accountsFolder(folder), `${name}.jsonl`), baseUrl, {
      take: (line) => this.#take(line),
      startOver: () => this.#startOver(),
      lines: () => this.#lines(),
      others: () => this.#others,
    });
    await this.#inTurn(() => {
      this.#waiting = [...this.#dataset.records(), ...this.#own.steps()];
      this.#startOver();
      this.#files = { account, older: new OlderFolder(join(olderFolder(folder), name)) };
    });
  }

  async addItems(batch: ItemBatch): Promise<void> {
    await this.#add(recordsOf({ ...batch, order: batch.order ?? (await this.order()) }));
  }

  async saveGathering(step: GatheringStep): Promise<void> {
    await this.#add([{ ...step, kind: 'gathering' }]);
  }

  async order(): Promise<number> {
    await this.sync();
    this.#order = Math.max(this.#order + 1, this.#dataset.order + 1, this.#options.now());
    return this.#order;
  }

  item: Dataset['item'] = async (type, id) => (await this.#whole()).item(type, id);
  contents = async () => (await this.#whole()).contents(new Map(this.#own.of('label')), this.#own.version);
  maxAds = async () => (await this.#whole()).maxAds();

  /** Not while another call reads the file anew. */
  async #whole(): Promise<MemoryDataset> {
    await this.#turn;
    return this.#dataset;
  }

  /** Reads what other processes brought, and writes what could not be written before. */
  sync(): Promise<void> {
    return this.#inTurn((files) => (this.#waiting.length > 0 ? this.#write(files) : files?.account.follow()));
  }

  /**
   * Resolves when everything is written that can be written. Records in memory are written if the account is known now.
   */
  async close(): Promise<void> {
    if (this.#failure && !this.#dataset.isEmpty) await this.open(false).catch(() => {});
    await (this.#waiting.length > 0 ? this.sync() : this.#turn);
  }

  async #add(records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#inTurn((files) => {
      this.#waiting = [...this.#waiting, ...records].slice(-maxWaiting);
      return this.#write(files);
    });
  }

  /** A change by a person that cannot be written does not wait in memory: the call fails. */
  async #update<Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>): Promise<Result> {
    const outcome: { change?: RecordChange<Result>; failure?: unknown } = {};
    await this.#inTurn(async (files) => {
      let step: RecordStep | undefined;
      const linesOf = () => {
        outcome.change = change(this.#own.of(kind));
        step = recordStep(kind, this.#own.of(kind), outcome.change);
        return step ? [lineOf(step)] : [];
      };
      try {
        await (files ? files.account.append(linesOf) : linesOf());
        if (step) this.#own.apply(step);
      } catch (error) {
        outcome.failure = error;
        if (!(error instanceof AdLibraryError)) throw error;
      }
    });
    if (outcome.failure instanceof AdLibraryError) throw outcome.failure;
    if (outcome.change && outcome.failure === undefined) return outcome.change.result;
    const problem = `The change is not kept: the file of this account cannot be written (${String(outcome.failure)}).`;
    throw new AdLibraryError({ kind: 'internal', problem, sent: false }, { cause: outcome.failure });
  }

  async #write(files: Files | undefined): Promise<void> {
    try {
      await files?.account.append(() => this.#waiting.map(lineOf));
    } finally {
      // In memory they are behind what others had appended, as they are in the file.
      this.#apply(this.#waiting);
    }
    this.#waiting = [];
  }

  /**
   * Runs one job after the other. Lines that cannot be written are tried again next time; until then, they are in
   * memory.
   */
  #inTurn(work: (files: Files | undefined) => Promise<void> | undefined | void): Promise<void> {
    const whole = async () => {
      const files = this.#files;
      await work(files);
      if (files === undefined) return;
      await this.#takeOlder(files);
      await this.#compact(files);
      this.#isFailing = false;
    };
    this.#turn = this.#turn.then(whole).catch((error: unknown) => {
      const fields = { file: this.#files?.account.path, error: String(error) };
      if (!this.#isFailing) this.#options.warn('the dataset could not be kept in files', fields);
      this.#isFailing = true;
    });
    return this.#turn;
  }

  #take(bytes: Buffer): void {
    const line = String(bytes);
    const record = recordOfLine(bytes) ?? recordStepOf(line);
    if (record) return void this.#apply([record]);
    this.#others.push(Buffer.from(bytes));
    if (isOfSomeKind(line) || this.#isDamageKnown) return;
    this.#isDamageKnown = true;
    this.#options.warn('skipped damaged lines of a file', { file: this.#files?.account.path });
  }

  #startOver(): void {
    this.#dataset = new MemoryDataset(this.#options.maxBytes);
    this.#own = new RecordTable();
    this.#others = [];
  }

  *#lines(): Generator<string> {
    for (const records of [this.#dataset.records(), this.#own.steps()]) for (const one of records) yield lineOf(one);
  }

  /** Returns the records that changed something. */
  #apply(records: readonly AnyRecord[]): AnyRecord[] {
    for (const record of records) if (record.kind === 'own') this.#own.apply(record);
    const changing = records.filter((record) => record.kind !== 'own' && this.#dataset.apply(record));
    this.#dataset.fit();
    return changing;
  }

  /** Removes the records of an earlier version once they are in the file. Damaged files stay where they are. */
  async #takeOlder({ account, older }: Files): Promise<void> {
    if (this.#olderLeft === undefined) {
      const { records, whole, damaged } = await older.read();
      for (const file of damaged) this.#options.warn('skipped damaged lines of a file', { file });
      this.#olderLeft = { lines: this.#apply(records).map(lineOf), whole };
    }
    const { lines, whole } = this.#olderLeft;
    while (lines.length > 0) {
      await account.append(() => lines.slice(0, olderAtOnce), true);
      lines.splice(0, olderAtOnce);
    }
    if (whole.length > 0) await older.remove(whole);
    whole.length = 0;
  }

  /** Writes the file anew when most of its lines are superseded. */
  async #compact({ account }: Files): Promise<void> {
    const kept = this.#dataset.bytes + this.#own.bytes;
    if (account.bytes <= Math.max(this.#compactAbove, 2 * kept + slackBytes)) return;
    // Not at once again, if the disk is full.
    this.#compactAbove = 2 * account.bytes;
    await account.compact();
    this.#compactAbove = 2 * account.bytes;
  }
}

type AnyRecord = DatasetRecord | RecordStep;

export interface StoredAccount {
  path: string;
  baseUrl: string | undefined;
  ads: number;
  pages: number;
  gatherings: number;
  labels: number;
  watches: number;
  bytes: number;
}

/** The accounts of a folder, in files and in the folders of earlier versions. */
export async function storedAccounts(files: string): Promise<StoredAccount[]> {
  const kept = [];
  for (const path of await pathsIn(accountsFolder(files), /^[\da-f]{32}\.jsonl$/)) {
    const lines = String(await readFile(path)).split('\n');
    const records = lines.flatMap((line) => recordOfLine(Buffer.from(line)) ?? recordStepOf(line) ?? []);
    kept.push(countedAs(path, headIn(lines[0] ?? '')?.baseUrl, records, (await stat(path)).size));
  }
  for (const path of await pathsIn(olderFolder(files), /^[\da-f]{32}(\.removed-[\da-f-]{36})?$/)) {
    const { baseUrl, records } = await new OlderFolder(path).read();
    let bytes = 0;
    for (const name of await readdir(path)) bytes += (await lstat(join(path, name))).size;
    kept.push(countedAs(path, baseUrl, records, bytes));
  }
  return kept;
}

function countedAs(path: string, baseUrl: string | undefined, records: AnyRecord[], bytes: number): StoredAccount {
  const [dataset, own] = [new MemoryDataset(), new RecordTable()];
  for (const record of records) record.kind === 'own' ? own.apply(record) : dataset.apply(record);
  const { ads, pages, gatherings } = dataset.contents();
  return {
    path,
    baseUrl: baseUrl && URL.canParse(baseUrl) ? new URL(baseUrl).href : undefined,
    ...{ ads: ads.length, pages: pages.length, gatherings: gatherings.length },
    ...{ labels: own.of('label').size, watches: own.of('watch').size, bytes },
  };
}

/**
 * Deletes the files of an account. A server that uses the account starts with an empty dataset. Returns whether files
 * of other programs stayed.
 */
export async function removeAccount(path: string): Promise<boolean> {
  if (!path.endsWith('.jsonl')) return new OlderFolder(path).remove();
  await withLock(`${path}.lock`, async () => {
    for (const file of [path, `${path}.part`]) await rm(file, { force: true });
  });
  return false;
}

async function pathsIn(folder: string, named: RegExp): Promise<string[]> {
  const names = (await readdir(folder).catch(unless('ENOENT'))) ?? [];
  return names
    .filter((name) => named.test(name))
    .sort()
    .map((name) => join(folder, name));
}

const markFile = 'dataset.json';
const Mark = z.object({ format: z.number(), baseUrl: z.string().catch('') });
const format = 1;
const segment = /^\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.jsonl$/;
const unfinished = /^\d{15}-[\da-f-]{36}\.jsonl\.tmp$/;

/** The first line of a segment that took the place of others. */
const mergedStart = '{"kind":"merged"';

interface OlderRecords {
  baseUrl: string | undefined;
  /** The records in the order in which they came. */
  records: DatasetRecord[];
  /** Files whose lines are all among the records, and files with other lines. */
  whole: string[];
  damaged: string[];
}

/** A dataset as earlier versions wrote it: a folder of files that nobody changes, of which each holds some records. */
class OlderFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Reads the folder. If an unknown version wrote it, there are no records, and all files count as damaged. */
  async read(): Promise<OlderRecords> {
    const text = await readFile(join(this.path, markFile), 'utf8').catch(unless('ENOENT', 'ENOTDIR'));
    const mark = text === undefined ? undefined : parsedLine(Mark, text);
    const found: OlderRecords = { baseUrl: mark?.baseUrl, records: [], whole: [], damaged: [] };
    if (mark && mark.format !== format) return { ...found, damaged: [this.path] };
    // Links and pipes are left out: opening a pipe would wait.
    const entries = await readdir(this.path, { withFileTypes: true }).catch(unless('ENOENT', 'ENOTDIR'));
    const names = entries?.filter((entry) => entry.isFile() && segment.test(entry.name)).map(({ name }) => name) ?? [];
    for (const path of names.sort().map((name) => join(this.path, name))) {
      // If a file is gone, another process has moved its records into the new file.
      const content = await readFile(path, 'utf8').catch(({ code }) => (code === 'ENOENT' ? undefined : 'unreadable'));
      if (content === undefined) continue;
      const lines = content.split('\n').filter((line) => line !== '' && !line.startsWith(mergedStart));
      const records = lines.flatMap((line) => recordOfLine(Buffer.from(line)) ?? []);
      (records.length < lines.length ? found.damaged : found.whole).push(path);
      for (const record of records) found.records.push(record);
    }
    const orderOf = (record: DatasetRecord) => (record.kind === 'gathering' ? (record.step ?? 0) : record.order);
    found.records.sort((left, right) => orderOf(left) - orderOf(right));
    return found;
  }

  /**
   * Removes these files, or all if none are given, and the folder once it is empty. Files of other programs stay.
   * @returns whether anything stayed
   */
  async remove(paths?: readonly string[]): Promise<boolean> {
    for (const path of paths ?? []) await rm(path, { force: true });
    const names = (await readdir(this.path).catch(unless('ENOENT'))) ?? [];
    if (paths && names.some((name) => segment.test(name))) return true;
    for (const name of names)
      if (name === markFile || segment.test(name) || unfinished.test(name)) await rm(join(this.path, name));
    const left = await readdir(this.path).catch(unless('ENOENT'));
    if (left?.length === 0) await rmdir(this.path).catch(unless('ENOENT', 'ENOTEMPTY', 'EEXIST'));
    return left !== undefined && left.length > 0;
  }
}
