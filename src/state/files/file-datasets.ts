import { hash } from 'node:crypto';
import { join } from 'node:path';
import { AdLibraryError, type ErrorKind } from '../../api/call.ts';
import type { Dataset, DatasetCaller, Datasets } from '../dataset.ts';
import { MemoryDatasets, type MemoryDatasetsOptions } from '../memory-datasets.ts';
import { FileDataset, type FileDatasetOptions } from './file-dataset.ts';
import { SegmentFolder } from './segment-folder.ts';

export interface FileDatasetsOptions {
  /** The folder for all datasets. */
  folder: string;
  baseUrl: string;
  now: () => number;
  elapsed: () => number;
  /** The account of a key; undefined if the service does not say. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn: FileDatasetOptions['warn'];
  limits?: MemoryDatasetsOptions;
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

const ASK_AGAIN_MS = 30_000;

/** Failures that are answers: the service does not say whose key it is. After any other it may say so later. */
const finalAnswers: readonly ErrorKind[] = ['forbidden', 'not_found', 'invalid_request', 'unexpected_response'];

/** Where the datasets lie in the folder that a person chose. */
export const datasetsFolder = (files: string): string => join(files, 'datasets');

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
    this.#memory = new MemoryDatasets({ now: options.now, ...options.limits });
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
    const { folder, baseUrl, now, elapsed, userIdOf, warn } = this.#options;
    const userId = await userIdOf(requested.caller).catch((error: unknown) => {
      requested.failure = failureOf(error);
    });
    if (userId === undefined) {
      requested.until = elapsed() + ASK_AGAIN_MS;
      warn('the dataset is not kept in files: the service did not say whose key this is', {});
      return;
    }
    const name = hash('sha256', `${baseUrl}\n${userId}`).slice(0, 32);
    const path = join(datasetsFolder(folder), name);
    const { tenantId } = requested.caller;
    return new FileDataset({ memory: this.#memory, tenantId, folder: new SegmentFolder({ path, baseUrl, now }), warn });
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
