import { randomBytes, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { makeFolder, reasonOf } from './drivers/file.ts';
import { roomIn, type Shared } from './store/retries.ts';
import { sealedItems } from './store/seal.ts';
import { TenantCache } from './tenant-cache.ts';

export interface ExportedFile {
  /** The address under which a host reads it as a resource. */
  uri: string;
  /** The name of the file, without folders: `ads.csv`, `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  /** In milliseconds since the epoch. */
  at: number;
  /** The path on this machine, if the file is in a folder. */
  path?: string | undefined;
  content(): Promise<Uint8Array>;
  /** Removes the file, for a caller that could not write the note beside it. */
  discard?(): Promise<void>;
}

interface NewFile {
  name: string;
  /**
   * The ending of the name of the note beside the file: where files are numbered, the name of the note must be free,
   * too.
   */
  besideEnding?: string;
  mimeType: string;
  /** Writes the file in parts. Each part is taken before the next is made. */
  write(take: (bytes: Uint8Array) => Promise<void>): Promise<unknown>;
}

/** The files that one tenant exported, and that are not too old. */
export interface Exports {
  /** A larger file is refused. */
  maxBytes: number;
  create(file: NewFile): Promise<ExportedFile>;
  /** The files, the newest first. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

export interface ExportStore {
  of(tenantId: string): Exports;
}

const MB = 1024 * 1024;
/** Files of all tenants together in memory, and one file in memory and in a folder. */
const maxBytesInAll = 64 * MB;
export const maxExportBytes = 16 * MB;
const maxFolderBytes = 1024 * MB;
/** How long a file can be read, in milliseconds: an hour. */
export const exportTtl = 3_600_000;
/**
 * The bytes for which a file in a folder counts: so the last fifty can be read as resources. Older files stay in the
 * folder.
 */
const listedBytes = Math.floor(maxBytesInAll / 2 / 51);
/** Files of one name: `ads.csv`, `ads-2.csv` … */
const maxOfOneName = 10_000;

interface ProcessExportsOptions {
  /** Where one person keeps files; undefined for memory. */
  folder?: string;
  /** In milliseconds since the epoch. */
  now: () => number;
}

export const exportsFolder = (files: string): string => join(files, 'exports');

/**
 * The files of this process: in memory, or in a folder that only its owner can read. In the folder, no file is
 * overwritten, and only a file that failed is removed.
 */
export function processExports({ folder, now }: ProcessExportsOptions): ExportStore {
  const files = new TenantCache<ExportedFile>({ maxBytes: maxBytesInAll, ttl: exportTtl, now });
  let count = 0;
  return {
    of: (tenantId) => ({
      maxBytes: folder === undefined ? maxExportBytes : maxFolderBytes,
      create: async ({ mimeType, ...newFile }) => {
        const written = await (folder === undefined ? inMemory(newFile) : inFolder(folder, newFile));
        const at = now();
        const uri = `ad-library://exports/${at.toString(36)}-${++count}/${encodeURIComponent(written.name)}`;
        const discard = async () => {
          files.remove(tenantId, uri);
          if (written.path !== undefined) await rm(written.path, { force: true });
        };
        const file = { uri, mimeType, at, ...written, discard };
        files.set(tenantId, uri, { value: file, bytes: folder === undefined ? written.bytes : listedBytes });
        return file;
      },
      list: async () => files.values(tenantId),
      // In memory, what is used least goes first; in a folder the last files can be read.
      find: async (uri) =>
        folder === undefined ? files.get(tenantId, uri) : files.values(tenantId).find((file) => file.uri === uri),
    }),
  };
}

type Written = Pick<ExportedFile, 'name' | 'bytes' | 'path' | 'content'>;

async function inMemory({ name, write }: Omit<NewFile, 'mimeType'>): Promise<Written> {
  const parts: Uint8Array[] = [];
  await write(async (bytes) => void parts.push(bytes));
  const whole = Buffer.concat(parts);
  return { name, bytes: whole.length, content: async () => whole };
}

async function inFolder(folder: string, newFile: Omit<NewFile, 'mimeType'>): Promise<Written> {
  const { path, bytes } = await writeNew(folder, newFile).catch((error) => {
    throw cannotWrite(folder, error);
  });
  return { name: basename(path), bytes, path, content: () => readWritten(path, bytes) };
}

type Named = Pick<NewFile, 'name' | 'besideEnding'>;

/** A file gets its name only when all of it is written. */
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

/** Reads the file that was written, and no other file that was put in its place since. */
async function readWritten(path: string, bytes: number): Promise<Uint8Array> {
  // Windows has neither flag. Without it, opening a pipe would wait for a writer.
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

/** An error that is not of the file system does not concern this folder. */
function cannotWrite(folder: string, error: NodeJS.ErrnoException): Error {
  if (error.syscall === undefined) return error;
  return invalidRequest(`No file can be written in ${folder}: ${reasonOf(error)}. Tell the user.`);
}

const exportLimits = { ttlMs: exportTtl, maxBytes: 64 * MB };
const maxExports = 50;
const exportPartBytes = 256 * 1024;

interface WrittenFile extends Pick<ExportedFile, 'uri' | 'name' | 'mimeType' | 'bytes' | 'at'> {
  id: string;
  parts: number;
  ends: number;
}

/** Exported files, which every replica lists and reads, whichever replica made them. */
export function sharedExports(shared: Shared, clock: () => number): ExportStore {
  const { store, documents, keyOf } = shared;
  const gone = () =>
    new AdLibraryError({ kind: 'not_found', problem: 'This file is no longer stored. Export it again.', sent: false });
  return {
    of: (tenantId) => {
      const list = keyOf(tenantId, 'exports');
      const items = sealedItems(shared, keyOf(tenantId, 'exported'));
      const partOf = (id: string, part: number) => `${id}:${part}`;
      const fileOf = ({ id, parts, ends: _, ...about }: WrittenFile): ExportedFile => ({
        ...about,
        content: async () => {
          const content: Buffer[] = [];
          for (let part = 0; part < parts; part++) {
            const opened = await items.get(partOf(id, part));
            if (opened === undefined) throw gone();
            content.push(inflateRawSync(opened, { maxOutputLength: exportPartBytes }));
          }
          return Buffer.concat(content);
        },
      });
      const files = async () => {
        const { doc = [], now } = await documents.read<WrittenFile[]>(list);
        return doc.filter(({ ends }) => ends > now);
      };
      return {
        maxBytes: maxExportBytes,
        create: async ({ name: fileName, mimeType, write }) => {
          const at = clock();
          const id = `${at.toString(36)}-${randomBytes(9).toString('base64url')}`;
          let [bytes, parts] = [0, 0];
          await write(async (some) => {
            for (let start = 0; start < some.length; start += exportPartBytes) {
              const partId = partOf(id, parts++);
              const body = items.close(partId, deflateRawSync(some.subarray(start, start + exportPartBytes)));
              await items.put(partId, body, roomIn(store, exportLimits));
            }
            bytes += some.length;
          });
          const uri = `ad-library://exports/${id}/${encodeURIComponent(fileName)}`;
          const about = { id, uri, name: fileName, mimeType, bytes, at, parts };
          return documents.update<WrittenFile[], ExportedFile>(list, (doc = [], now) => {
            const made = { ...about, ends: now + exportTtl };
            const next = [made, ...doc.filter(({ ends }) => ends > now)].slice(0, maxExports);
            return { next, ttlMs: exportTtl, result: fileOf(made) };
          });
        },
        list: async () => (await files()).map(fileOf),
        find: async (uri) => (await files()).filter((file) => file.uri === uri).map(fileOf)[0],
      };
    },
  };
}
