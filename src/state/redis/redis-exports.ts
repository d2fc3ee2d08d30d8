import { randomBytes } from 'node:crypto';
import { AdLibraryError } from '../../api/call.ts';
import {
  type ExportedFile,
  type ExportStore,
  type Exports,
  exportTtl,
  maxExportBytes,
  type NewFile,
} from '../exports.ts';
import { fairLevel } from './dataset-room.ts';
import { ExportFiles, type FileAbout } from './export-files.ts';
import { type Holding, Holdings } from './holdings.ts';
import type { Redis } from './open-redis.ts';

export interface RedisExportsOptions {
  redis: Pick<Redis, 'connection' | 'seal' | 'keyOf'>;
  now: () => number;
  /** Of Redis, for the files of all tenants. */
  maxBytes?: number;
}

/** The overhead of a file in Redis. */
const FILE_BYTES = 1024;
const ID = /^[\w-]{10,40}$/;
const scheme = 'ad-library://exports/';

/** Files in Redis, with a fair share for each tenant: each replica lists and reads those that any of them made. */
export class RedisExports implements ExportStore {
  readonly #options: RedisExportsOptions;
  readonly #holdings: Holdings;
  readonly #maxBytes: number;

  constructor(options: RedisExportsOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? 256 * 1024 * 1024;
    this.#holdings = new Holdings(options.redis, 'exports', exportTtl);
  }

  of(tenantId: string): Exports {
    const { owner, files } = this.#filesOf(tenantId);
    const found = async (id: string) => exportedFile(files, id, await files.about(id));
    return {
      maxBytes: maxExportBytes,
      create: (file) => this.#create(file, owner, files),
      list: async () => (await Promise.all((await files.ids()).map(found))).filter((file) => file !== undefined),
      find: async (uri) => {
        const [id = ''] = uri.startsWith(scheme) ? uri.slice(scheme.length).split('/') : [];
        const file = ID.test(id) ? await found(id) : undefined;
        return file?.uri === uri ? file : undefined;
      },
    };
  }

  #filesOf(tenantId: string) {
    const owner = this.#options.redis.keyOf(tenantId, 'exports');
    return { owner, files: this.#open(owner) };
  }

  #open(owner: string): ExportFiles {
    return new ExportFiles(this.#options.redis, owner, exportTtl);
  }

  async #create({ name, mimeType, write }: NewFile, owner: string, files: ExportFiles): Promise<ExportedFile> {
    const at = this.#options.now();
    const id = `${at.toString(36)}-${randomBytes(9).toString('base64url')}`;
    const writer = files.writer(id);
    const about = { uri: `${scheme}${id}/${encodeURIComponent(name)}`, name, mimeType, at };
    try {
      await write(writer.push);
      for (const extra of await writer.finish(about)) await this.#remove(owner, extra);
      const total = await this.#holdings.set({ name: `${owner}/${id}`, bytes: writer.size.sealed + FILE_BYTES });
      if (total > this.#maxBytes) await this.#makeRoom(total);
    } catch (error) {
      await files.remove(id).catch(() => {});
      throw error;
    }
    const { bytes, parts } = writer.size;
    const file = exportedFile(files, id, { ...about, bytes, parts });
    if (file === undefined) throw gone();
    return file;
  }

  async #remove(owner: string, id: string): Promise<number> {
    await this.#open(owner).remove(id);
    return this.#holdings.set({ name: `${owner}/${id}`, bytes: 0 });
  }

  /** Whoever holds most loses the oldest. */
  async #makeRoom(sum: number): Promise<void> {
    let total = sum;
    const shares = sharesOf(await this.#holdings.inDescendingOrder());
    const level = fairLevel(
      shares.map(({ bytes }) => bytes),
      this.#maxBytes,
    );
    for (const share of shares)
      for (const { name, bytes } of share.files) {
        if (total <= this.#maxBytes) return;
        if (share.bytes <= level) break;
        share.bytes -= bytes;
        const [owner = '', id = ''] = name.split('/');
        total = await this.#remove(owner, id);
      }
  }
}

/** Who holds the most first, and of their files the oldest. */
function sharesOf(files: readonly Holding[]): { bytes: number; files: Holding[] }[] {
  const shares = new Map<string, { bytes: number; files: Holding[] }>();
  for (const file of files.toSorted((left, right) => (left.name < right.name ? -1 : 1))) {
    const [owner = ''] = file.name.split('/');
    const share = shares.get(owner) ?? { bytes: 0, files: [] };
    shares.set(owner, share);
    share.bytes += file.bytes;
    share.files.push(file);
  }
  return [...shares.values()].sort((left, right) => right.bytes - left.bytes);
}

function exportedFile(files: ExportFiles, id: string, about: FileAbout | undefined): ExportedFile | undefined {
  if (about === undefined) return;
  const { uri, name, mimeType, bytes, at } = about;
  const content = async () => {
    const whole = await files.content(id, about);
    if (whole === undefined) throw gone();
    return whole;
  };
  return { uri, name, mimeType, bytes, at, content };
}

const gone = () =>
  new AdLibraryError({ kind: 'not_found', problem: 'This file is no longer kept. Export it again.', sent: false });
