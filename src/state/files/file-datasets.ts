import { hash } from 'node:crypto';
import { lstat, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AdLibraryError, type ErrorKind } from '../../api/call.ts';
import type { Dataset, DatasetCaller, DatasetRecord, Datasets, GatheringStep, ItemBatch } from '../dataset.ts';
import { MemoryDataset, recordsOf } from '../dataset.ts';
import { MemoryDatasets } from '../memory-state.ts';
import {
  type OwnRecords,
  type RecordChange,
  type RecordKind,
  type RecordStep,
  type RecordsById,
  RecordTable,
  recordStep,
} from '../own-records.ts';
import { isOfSomeKind, lineOf, recordOfLine, recordStepOf } from '../record-lines.ts';
import { AccountFile, headIn } from './account-file.ts';
import { locked, unless } from './file-lock.ts';
import { OlderFolder } from './older-folder.ts';

type Warn = (message: string, fields: Record<string, unknown>) => void;

export interface FileDatasetsOptions {
  /** The folder that a person chose. */
  folder: string;
  baseUrl: string;
  now: () => number;
  elapsed: () => number;
  /** The account of a key; undefined if the service does not say. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn: Warn;
  /** Of memory, for one account. */
  maxBytes?: number;
}

interface KnownCaller {
  caller: DatasetCaller;
  /** Undefined if the account is not known. */
  dataset: Promise<FileDataset | undefined>;
  /** Why the service did not say whose key it is. */
  failure?: AdLibraryError | undefined;
  /** When to ask again, if the account is not known. */
  until: number;
}

const askAgainMs = 30_000;

/** Failures that are answers: the service does not say whose key it is. After any other it may say so later. */
const finalAnswers: readonly ErrorKind[] = ['forbidden', 'not_found', 'invalid_request', 'unexpected_response'];

/** Where the files of accounts lie, and where earlier versions kept their datasets. */
const accountsFolder = (files: string): string => join(files, 'accounts');
const olderFolder = (files: string): string => join(files, 'datasets');

/**
 * Datasets that survive the process, one for each address and account, so that a new key of the same account finds it.
 * While the account is not known, what was paid for is in memory; while the service fails to say it, nobody reads that
 * as if it were all.
 */
export class FileDatasets implements Datasets {
  readonly #options: FileDatasetsOptions;
  readonly #memory: MemoryDatasets;
  readonly #known = new Map<string, KnownCaller>();

  constructor(options: FileDatasetsOptions) {
    this.#options = options;
    this.#memory = new MemoryDatasets({
      now: options.now,
      ...(options.maxBytes && { maxBytesEach: options.maxBytes }),
    });
  }

  async of(caller: DatasetCaller, { toAdd } = { toAdd: false }): Promise<Dataset> {
    const known = this.#knownOrNew(caller, toAdd);
    const dataset = await known.dataset;
    if (known.failure && !toAdd) throw known.failure;
    await dataset?.sync();
    return dataset ?? this.#memory.of(caller);
  }

  /** What is only in memory, because the account was not known, is written if it is known now. */
  async close(): Promise<void> {
    for (const { caller, failure, dataset } of [...this.#known.values()]) {
      const isOnlyHere = failure !== undefined && this.#memory.has(caller.tenantId);
      if (isOnlyHere) await this.of(caller).catch(() => {});
      await (await dataset)?.close();
    }
    await this.#memory.close();
  }

  /** After a failure, whoever reads asks again; whoever adds waits a while, since it would take time each time. */
  #knownOrNew(caller: DatasetCaller, toAdd: boolean): KnownCaller {
    const known = this.#known.get(caller.tenantId);
    if (known && this.#options.elapsed() < known.until && (toAdd || !known.failure)) return known;
    const requested: KnownCaller = { caller, dataset: Promise.resolve(undefined), until: Number.POSITIVE_INFINITY };
    requested.dataset = this.#open(requested);
    this.#known.set(caller.tenantId, requested);
    return requested;
  }

  async #open(requested: KnownCaller): Promise<FileDataset | undefined> {
    const { folder, baseUrl, elapsed, userIdOf, warn } = this.#options;
    const userId = await userIdOf(requested.caller).catch((error: unknown) => {
      requested.failure = failureOf(error);
    });
    if (userId === undefined) {
      requested.until = elapsed() + askAgainMs;
      warn('the dataset is not kept in files: the service did not say whose key this is', {});
      return;
    }
    const name = hash('sha256', `${baseUrl}\n${userId}`).slice(0, 32);
    const { tenantId } = requested.caller;
    const older = new OlderFolder(join(olderFolder(folder), name));
    const path = join(accountsFolder(folder), `${name}.jsonl`);
    return new FileDataset({ ...this.#options, ...this.#memory.take(tenantId), path, older });
  }
}

/** What a reader is shown; undefined if the service has answered. */
function failureOf(error: unknown): AdLibraryError | undefined {
  const kind = error instanceof AdLibraryError ? error.failure.kind : undefined;
  if (kind === 'unauthorized') return error as AdLibraryError;
  if (kind !== undefined && finalAnswers.includes(kind)) return;
  const problem = 'The service did not say whose key this is (whoami), so what is kept in files cannot be read now.';
  return new AdLibraryError({ kind: 'unavailable', problem, sent: false }, { cause: error });
}

interface FileDatasetOptions extends Pick<FileDatasetsOptions, 'baseUrl' | 'now' | 'warn' | 'maxBytes'> {
  /** What came before it was known whose it is. */
  records: readonly DatasetRecord[];
  own: RecordTable;
  path: string;
  older: OlderFolder;
}

/** Records that wait for a disk that takes nothing; the oldest of more are only in memory. */
const maxWaiting = 10_000;
/** Older records that are appended at once. */
const olderAtOnce = 1000;
/** The file may have so many bytes more than twice what is kept before it is written anew. */
const slackBytes = 1024 * 1024;

/** A dataset in a file, as this process has read it. */
class FileDataset implements Dataset {
  readonly #options: FileDatasetOptions;
  readonly #file: AccountFile;
  /** What is not in the file yet. */
  #waiting: AnyRecord[];
  #dataset: MemoryDataset;
  #own = new RecordTable();
  /** The highest place of all. */
  #order = 0;
  /** What an earlier version wrote, and is not in the file yet. */
  #olderLeft: { lines: string[]; whole: string[] } | undefined;
  #isDamageKnown = false;
  #compactAbove = 0;
  #isFailing = false;
  #turn: Promise<void> = Promise.resolve();

  constructor(options: FileDatasetOptions) {
    const { records, own, path, baseUrl, maxBytes } = options;
    this.#options = options;
    this.#waiting = [...records, ...own.steps()];
    this.#dataset = new MemoryDataset(maxBytes);
    this.#file = new AccountFile(path, baseUrl, {
      take: (line) => this.#take(line),
      startOver: () => {
        this.#dataset = new MemoryDataset(maxBytes);
        this.#own = new RecordTable();
      },
      lines: () => linesOf(this.#dataset.records(), this.#own.steps()),
    });
  }

  readonly own: OwnRecords = {
    isLasting: true,
    read: async (kind) => {
      await this.#turn;
      return new Map(this.#own.of(kind));
    },
    update: (kind, change) => this.#update(kind, change),
  };

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

  /** Not while another one reads the file anew. */
  async #whole(): Promise<MemoryDataset> {
    await this.#turn;
    return this.#dataset;
  }

  /** Reads what other processes brought, and writes what could not be written before. */
  sync(): Promise<void> {
    return this.#inTurn(() => (this.#waiting.length > 0 ? this.#write() : this.#file.follow()));
  }

  /** Ends when everything is written, if it can be. */
  close(): Promise<void> {
    return this.#waiting.length > 0 ? this.sync() : this.#turn;
  }

  async #add(records: readonly DatasetRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#inTurn(() => {
      this.#waiting = [...this.#waiting, ...records].slice(-maxWaiting);
      return this.#write();
    });
  }

  /** What a person does by hand is not kept for later where it cannot be written: the call fails. */
  async #update<Result>(kind: RecordKind, change: (records: RecordsById) => RecordChange<Result>): Promise<Result> {
    const outcome: { change?: RecordChange<Result>; failure?: unknown } = {};
    await this.#inTurn(async () => {
      let step: RecordStep | undefined;
      try {
        await this.#file.append(() => {
          outcome.change = change(this.#own.of(kind));
          step = recordStep(kind, this.#own.of(kind), outcome.change);
          return step ? [lineOf(step)] : [];
        });
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

  async #write(): Promise<void> {
    try {
      await this.#file.append(() => this.#waiting.map(lineOf));
    } finally {
      // In memory they are behind what others had appended, as they are in the file.
      this.#apply(this.#waiting);
    }
    this.#waiting = [];
  }

  /** One thing after the other. What fails is tried again next time; until then memory has it. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const { warn } = this.#options;
    const failed = (error: unknown) => {
      if (!this.#isFailing)
        warn('the dataset could not be kept in files', { file: this.#file.path, error: String(error) });
      this.#isFailing = true;
    };
    const whole = async () => {
      await work();
      await this.#takeOlder();
      await this.#compact();
      this.#isFailing = false;
    };
    this.#turn = this.#turn.then(whole).catch(failed);
    return this.#turn;
  }

  #take(line: string): boolean {
    const record = recordOfLine(line) ?? recordStepOf(line);
    if (record) this.#apply([record]);
    else if (!isOfSomeKind(line) && !this.#isDamageKnown) {
      this.#isDamageKnown = true;
      this.#options.warn('skipped damaged lines of a file', { file: this.#file.path });
    }
    return record !== undefined;
  }

  /** Returns those that changed something. */
  #apply(records: readonly AnyRecord[]): AnyRecord[] {
    for (const record of records) if (record.kind === 'own') this.#own.apply(record);
    const changing = records.filter((record) => record.kind !== 'own' && this.#dataset.apply(record));
    this.#dataset.fit();
    return changing;
  }

  /** What an earlier version wrote is removed once it is in the file; what is damaged stays where it is. */
  async #takeOlder(): Promise<void> {
    const { older, warn } = this.#options;
    if (this.#olderLeft === undefined) {
      const { records, whole, damaged } = await older.read();
      for (const file of damaged) warn('skipped damaged lines of a file', { file });
      this.#olderLeft = { lines: this.#apply(records).map(lineOf), whole };
    }
    const { lines, whole } = this.#olderLeft;
    while (lines.length > 0) {
      await this.#file.append(() => lines.slice(0, olderAtOnce), true);
      lines.splice(0, olderAtOnce);
    }
    if (whole.length > 0) await older.remove(whole);
    whole.length = 0;
  }

  /** Writes the file anew when most of its lines are superseded. */
  async #compact(): Promise<void> {
    const kept = this.#dataset.bytes + this.#own.bytes;
    if (this.#file.bytes <= Math.max(this.#compactAbove, 2 * kept + slackBytes)) return;
    // Not at once again, if the disk is full.
    this.#compactAbove = 2 * this.#file.bytes;
    await this.#file.compact();
    this.#compactAbove = 2 * this.#file.bytes;
  }
}

type AnyRecord = DatasetRecord | RecordStep;

function* linesOf(...all: Iterable<AnyRecord>[]): Generator<string> {
  for (const records of all) for (const record of records) yield lineOf(record);
}

/** What is kept of one account. */
export interface KeptAccount {
  path: string;
  baseUrl: string | undefined;
  ads: number;
  pages: number;
  gatherings: number;
  labels: number;
  watches: number;
  /** Records of other kinds. */
  others: number;
  bytes: number;
}

/** What a folder keeps, in files and as earlier versions wrote it. */
export async function keptAccounts(files: string): Promise<KeptAccount[]> {
  const kept = [];
  for (const path of await pathsIn(accountsFolder(files), /^[\da-f]{32}\.jsonl$/)) {
    const lines = String(await readFile(path))
      .split('\n')
      .filter((line) => line !== '');
    const [head] = lines;
    const about = head === undefined ? undefined : headIn(head);
    const records = lines.slice(about ? 1 : 0).map((line) => recordOfLine(line) ?? recordStepOf(line));
    kept.push(countedAs(path, about?.baseUrl, records, (await stat(path)).size));
  }
  for (const path of await pathsIn(olderFolder(files), /^[\da-f]{32}(\.removed-[\da-f-]{36})?$/)) {
    const older = new OlderFolder(path);
    let bytes = 0;
    for (const name of await readdir(path)) bytes += (await lstat(join(path, name))).size;
    kept.push(countedAs(path, await older.baseUrl(), (await older.read()).records, bytes));
  }
  return kept;
}

function countedAs(
  path: string,
  baseUrl: string | undefined,
  records: readonly (AnyRecord | undefined)[],
  bytes: number,
): KeptAccount {
  const [dataset, own] = [new MemoryDataset(), new RecordTable()];
  let others = 0;
  for (const record of records)
    if (record?.kind === 'own') own.apply(record);
    else if (record) dataset.apply(record);
    else others++;
  const { ads, pages, gatherings } = dataset.contents();
  return {
    path,
    baseUrl: baseUrl && URL.canParse(baseUrl) ? new URL(baseUrl).href : undefined,
    ...{ ads: ads.length, pages: pages.length, gatherings: gatherings.length },
    ...{ labels: own.of('label').size, watches: own.of('watch').size, others, bytes },
  };
}

/** Deletes what is kept of an account. A server that uses it starts anew. Returns whether files of others stayed. */
export async function removeAccount(path: string): Promise<boolean> {
  if (!path.endsWith('.jsonl')) return new OlderFolder(path).remove();
  await locked(path, async () => {
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
