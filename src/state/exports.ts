import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { AdLibraryError, invalidRequest } from '../api/call.ts';
import { makeFolder } from './files/file-lock.ts';
import { TenantCache } from './memory-state.ts';

/** A file made of a tenant's dataset. */
export interface ExportedFile {
  /** The address under which a host reads it as a resource. */
  uri: string;
  /** Without folders, as it was written: `ads.csv`, `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  /** In milliseconds since the epoch. */
  at: number;
  /** Where it lies on this machine, if it does. */
  path?: string | undefined;
  content(): Promise<Uint8Array>;
  /** Removes it, where what belongs beside it cannot be written. */
  discard?(): Promise<void>;
}

interface NewFile {
  name: string;
  /** How the name of the file ends that comes beside it: where files are numbered, that must be free, too. */
  besideEnding?: string;
  mimeType: string;
  /** Writes the file in parts; each is taken before the next is made. */
  write(take: (bytes: Uint8Array) => Promise<void>): Promise<unknown>;
}

/** The files that one tenant exported, and that are not too old. */
export interface Exports {
  /** A larger file is refused. */
  maxBytes: number;
  create(file: NewFile): Promise<ExportedFile>;
  /** The newest first. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

/** The files of all tenants. */
export interface ExportStore {
  of(tenantId: string): Exports;
}

const MB = 1024 * 1024;
/** Files of all tenants together. */
const maxBytesInAll = 64 * MB;
/** One file in memory. */
export const maxExportBytes = 16 * MB;
/** How long a file can be read, in milliseconds: an hour. */
export const exportTtl = 3_600_000;

/** The time for readers, and one that only goes on. */
interface Clocks {
  now: () => number;
  elapsed: () => number;
}

/** Gives every file of a process an address of its own. */
function uriMaker(): (name: string, at: number) => string {
  let count = 0;
  return (name, at) => `ad-library://exports/${at.toString(36)}-${++count}/${encodeURIComponent(name)}`;
}

/** Keeps files in memory. */
export class MemoryExports implements ExportStore {
  readonly #files: TenantCache<ExportedFile>;
  readonly #now: () => number;
  readonly #uriOf = uriMaker();

  constructor({ now, elapsed }: Clocks) {
    this.#files = new TenantCache({ maxBytes: maxBytesInAll, ttl: exportTtl, now: elapsed });
    this.#now = now;
  }

  of(tenantId: string): Exports {
    return {
      maxBytes: maxExportBytes,
      create: async ({ name, mimeType, write }) => {
        const parts: Uint8Array[] = [];
        await write(async (bytes) => void parts.push(bytes));
        const whole = Buffer.concat(parts);
        const at = this.#now();
        const about = { uri: this.#uriOf(name, at), name, mimeType, bytes: whole.length, at };
        const file: ExportedFile = { ...about, content: async () => whole };
        this.#files.set(tenantId, file.uri, { value: file, bytes: whole.length });
        return file;
      },
      list: async () => this.#files.values(tenantId),
      find: async (uri) => this.#files.get(tenantId, uri),
    };
  }
}

/** One file in the folder. */
const maxFolderBytes = 1024 * MB;
/** Files that can be read as resources; older ones lie in the folder all the same. */
const maxListed = 50;
/** Files of one name: `ads.csv`, `ads-2.csv` … */
const maxOfOneName = 10_000;

/** Where exports lie in the folder that a person chose. */
export const exportsFolder = (files: string): string => join(files, 'exports');

/** Writes files into a folder that only its owner can read. None is overwritten, and only what failed is removed. */
export function folderExports(folder: string, { now, elapsed }: Clocks): Exports {
  const files = new Map<string, ExportedFile & { until: number }>();
  const uriOf = uriMaker();
  const readable = () => [...files.values()].filter(({ until }) => elapsed() < until);
  return {
    maxBytes: maxFolderBytes,
    async create({ mimeType, ...newFile }) {
      const { path, bytes } = await writeNew(folder, newFile).catch((error) => {
        throw cannotWrite(folder, error);
      });
      const name = basename(path);
      const at = now();
      const uri = uriOf(name, at);
      const discard = async () => {
        files.delete(uri);
        await rm(path, { force: true });
      };
      const file = { uri, name, mimeType, bytes, at, path, content: () => readWritten(path, bytes), discard };
      files.set(uri, { ...file, until: elapsed() + exportTtl });
      for (const uri of files.keys()) if (files.size > maxListed) files.delete(uri);
      return file;
    },
    list: async () => readable().reverse(),
    find: async (uri) => readable().find((file) => file.uri === uri),
  };
}

type Named = Pick<NewFile, 'name' | 'besideEnding'>;

/** Nothing has its name before all of it is written. */
async function writeNew(folder: string, { write, ...named }: Named & Pick<NewFile, 'write'>) {
  await makeFolder(folder);
  const part = join(folder, `${named.name}.${randomUUID()}.part`);
  try {
    const bytes = await writePart(part, write);
    const path = await newName(folder, named);
    await rename(part, path).catch(async (error) => {
      await rm(path, { force: true });
      throw error;
    });
    return { path, bytes };
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function writePart(part: string, write: NewFile['write']): Promise<number> {
  const handle = await open(part, 'wx', 0o600);
  let bytes = 0;
  try {
    await write(async (more) => {
      await handle.writeFile(more);
      bytes += more.length;
    });
    await handle.sync();
  } finally {
    await handle.close();
  }
  return bytes;
}

/** Takes a name that was free, so that neither a file is overwritten nor a link followed. */
async function newName(folder: string, { name, besideEnding }: Named): Promise<string> {
  const extension = extname(name);
  const stem = name.slice(0, -extension.length);
  for (let number = 1; ; number++) {
    const numbered = join(folder, number === 1 ? stem : `${stem}-${number}`);
    const path = `${numbered}${extension}`;
    try {
      if (besideEnding && existsSync(`${numbered}${besideEnding}`) && number < maxOfOneName) continue;
      await (await open(path, 'wx', 0o600)).close();
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number >= maxOfOneName) throw error;
    }
  }
}

/** Reads the file that was written, and nothing that was put in its place since. */
async function readWritten(path: string, bytes: number): Promise<Uint8Array> {
  // Windows knows neither; a pipe would be waited for.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const handle = await open(path, flags).catch(() => undefined);
  try {
    const found = await handle?.stat();
    if (handle && found?.isFile() && found.size === bytes) return await handle.readFile();
  } finally {
    await handle?.close();
  }
  const problem = `${path} is no longer the file that was written. Export it again.`;
  throw new AdLibraryError({ kind: 'not_found', problem, sent: false });
}

const reasons: Record<string, string> = {
  EEXIST: 'a file is in the way',
  ENOTDIR: 'a file is in the way',
  EACCES: 'this server may not write there',
  EPERM: 'this server may not write there',
  EROFS: 'this server may not write there',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  EFBIG: 'this server may not write such a large file',
};

/** What fails besides the file system is not of this folder. */
function cannotWrite(folder: string, error: NodeJS.ErrnoException): Error {
  if (error.syscall === undefined) return error;
  return invalidRequest(
    `No file can be written in ${folder}: ${reasons[error.code ?? ''] ?? error.code}. Tell the user.`,
  );
}
