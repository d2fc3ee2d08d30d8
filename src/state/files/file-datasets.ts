import { hash } from 'node:crypto';
import { join } from 'node:path';
import type { Dataset, DatasetCaller, Datasets } from '../dataset.ts';
import { MemoryDatasets, type MemoryDatasetsOptions } from '../memory-datasets.ts';
import { FileDataset, type FileDatasetOptions } from './file-dataset.ts';
import { SegmentFolder } from './segment-folder.ts';

export interface FileDatasetsOptions {
  /** The folder for all datasets. */
  folder: string;
  baseUrl: string;
  now: () => number;
  /** The account of a key; undefined if the service does not say. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn: FileDatasetOptions['warn'];
  limits?: MemoryDatasetsOptions;
}

interface KnownCaller {
  dataset: Promise<FileDataset | undefined>;
  /** When to ask again, if the account is not known. */
  until: number;
}

const ASK_AGAIN_MS = 30_000;

/** Where the datasets lie in the folder that a person chose. */
export const datasetsFolder = (files: string): string => join(files, 'datasets');

/**
 * Datasets that survive the process, one for each address and account, so that a new key of the same account finds it.
 * While the account is not known they are in memory only.
 */
export class FileDatasets implements Datasets {
  readonly #options: FileDatasetsOptions;
  readonly #memory: MemoryDatasets;
  readonly #known = new Map<string, KnownCaller>();

  constructor(options: FileDatasetsOptions) {
    this.#options = options;
    this.#memory = new MemoryDatasets(options.limits);
  }

  async of(caller: DatasetCaller): Promise<Dataset> {
    const dataset = await this.#fileDataset(caller);
    await dataset?.sync();
    return dataset ?? this.#memory.of(caller);
  }

  async forget(tenantId: string): Promise<void> {
    this.#known.delete(tenantId);
    await this.#memory.forget(tenantId);
  }

  async close(): Promise<void> {
    for (const { dataset } of this.#known.values()) await (await dataset)?.close();
    await this.#memory.close();
  }

  async #fileDataset(caller: DatasetCaller): Promise<FileDataset | undefined> {
    const { tenantId } = caller;
    const known = this.#known.get(tenantId);
    if (known && this.#options.now() < known.until) return known.dataset;
    const asked: KnownCaller = { dataset: this.#open(caller), until: Number.POSITIVE_INFINITY };
    this.#known.set(tenantId, asked);
    const dataset = await asked.dataset;
    if (dataset === undefined) asked.until = this.#options.now() + ASK_AGAIN_MS;
    return dataset;
  }

  async #open(caller: DatasetCaller): Promise<FileDataset | undefined> {
    const { folder, baseUrl, now, userIdOf, warn } = this.#options;
    const userId = await userIdOf(caller).catch(() => undefined);
    if (userId === undefined) {
      warn('the dataset is not kept in files: the service did not say whose key this is', {});
      return;
    }
    const name = hash('sha256', `${baseUrl}\n${userId}`).slice(0, 32);
    const path = join(datasetsFolder(folder), name);
    const { tenantId } = caller;
    return new FileDataset({ memory: this.#memory, tenantId, folder: new SegmentFolder({ path, baseUrl, now }), warn });
  }
}
