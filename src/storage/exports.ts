import { randomBytes, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { checkOwnFolder, ignoring, makeFolder, reasonOf } from './drivers/file.ts';
import { inMemory } from './in-memory.ts';
import { limitsWithRoom, type StoreAccess } from './store/access.ts';
import { sealedItems } from './store/seal.ts';

export interface ExportedFile {
  /** The address under which a host reads it as a resource. */
  uri: string;
  /** The name of the file, without folders: `ads.csv`, `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  at: number;
  path?: string | undefined;
  /** How long it stays, as a person reads it. */
  stays?: string;
  /** How long it can be read as a resource and by its link, in milliseconds. */
  ttlMs: number;
  /** The address of its link, without the origin. */
  linkPath?: string;
  /** Why the file is in no folder, where it should be in one. */
  problem?: string | undefined;
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
  /** By default an hour. */
  ttlMs?: number;
  /**
   * Writes the file in parts. Each part is taken before the next is made. Where a folder cannot take the file, it is
   * written again to the next.
   * @param maxBytes a larger file must be refused
   */
  write(append: (bytes: Uint8Array) => Promise<void>, maxBytes: number): Promise<unknown>;
}

export interface Exports {
  create(file: NewFile): Promise<ExportedFile>;
  /** The files, the newest first. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

export interface ExportStore {
  /**
   * Opens the files of a tenant.
   * @param since when the call began, in milliseconds since the epoch; by default now. A file whose key was rejected
   * since then gets no link
   */
  forTenant(tenantId: string, since?: number): Exports;
  links?: FileLinks;
}

/** Files by their links, which need no key. */
export interface FileLinks {
  /** Undefined if there never was a file of that name. */
  find(link: string, name: string): Promise<{ tenantId: string; file: ExportedFile } | 'ended' | undefined>;
  /**
   * Ends the links of a tenant whose key the service rejected.
   * @param hasCalls whether calls of the key may be in progress, whose files get no link either. Nothing is stored for
   * a key that somebody made up
   */
  end(tenantId: string, hasCalls: boolean): Promise<void>;
}

const MB = 1024 * 1024;
/** One file, in a store and in a folder. */
const maxExportBytes = 16 * MB;
const maxFolderBytes = 1024 * MB;
/** How long a file can be read, in milliseconds: an hour, and a report a day. */
export const exportTtl = 3_600_000;
export const reportTtl = 24 * exportTtl;
/** How long it is known that a link has ended, in milliseconds. */
const linkTtl = 2 * reportTtl;
/** Files of one name: `ads.csv`, `ads-2.csv` … */
const maxOfOneName = 10_000;

export const exportsFolder = (files: string): string => join(files, 'exports');

/** Where a person finds files: in a folder that was chosen, or where people look for them. */
export type ExportTarget = { folder: string } | { home: string | undefined; temporary: string };

interface ExportFolder {
  path: string;
  stays: string;
  /** Makes the folder, if it is safe to write there. Returns the most bytes of one file. */
  open(): Promise<number>;
}

function foldersOf(target: ExportTarget): ExportFolder[] {
  const lasting = (path: string, make: (path: string) => Promise<unknown>): ExportFolder => ({
    path,
    stays: 'until somebody deletes it',
    open: () => make(path).then(() => maxFolderBytes),
  });
  if ('folder' in target) return [lasting(target.folder, makeFolder)];
  // No folder above it is made: a home without downloads does not belong to a person.
  const downloads = target.home === undefined ? [] : [lasting(join(target.home, 'Downloads', 'Ad Library'), makeOne)];
  return [...downloads, temporaryFolder(target.temporary)];
}

/** Anybody may write beside it, so what was planted there under its name is refused. */
function temporaryFolder(temporary: string): ExportFolder {
  const path = ownTemporary(temporary);
  return {
    path,
    stays: `for ${temporaryDays} days`,
    open: async () => {
      await makeOne(path);
      await checkOwnFolder(path);
      const bytes = (await filesIn(path)).reduce((sum, { size }) => sum + size, 0);
      if (bytes + maxExportBytes > maxFolderBytes) throw new Error('it holds 1 GB');
      return maxFolderBytes - bytes;
    },
  };
}

const temporaryDays = 7;
const ownTemporary = (temporary: string) => join(temporary, `ad-library-${process.getuid?.() ?? 0}`);

const makeOne = (path: string) => mkdir(path, { mode: 0o700 }).catch(ignoring('EEXIST'));

/** Another process may remove old ones at the same time. */
async function filesIn(folder: string) {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const found = await Promise.all(
    paths.map(async (path) => ({ path, stats: await lstat(path).catch(ignoring('ENOENT')) })),
  );
  return found.flatMap(({ path, stats }) =>
    stats?.isFile() ? [{ path, size: stats.size, changedAt: stats.mtimeMs }] : [],
  );
}

export async function removeOldExports(temporary: string, now: number): Promise<void> {
  const folder = ownTemporary(temporary);
  await checkOwnFolder(folder);
  for (const { path, changedAt } of await filesIn(folder))
    if (changedAt < now - temporaryDays * dayMs) await rm(path, { force: true });
}

/**
 * Files in folders of a person, which only their owner can read. No file is overwritten, and only a file that failed is
 * removed. The last ones can be read as resources. What no folder takes is in memory, unless the folder was chosen.
 */
export function folderExports(target: ExportTarget, now: () => number): ExportStore {
  const folders = foldersOf(target);
  const memory = memoryExports(now).forTenant('own');
  let files: ExportedFile[] = [];
  let count = 0;
  const list = async () => files.filter(({ at, ttlMs }) => Math.abs(now() - at) < ttlMs);
  const exports: Exports = {
    create: async (newFile) => {
      const written = await writeToFirst(folders, newFile);
      if ('problem' in written && 'folder' in target) throw invalidRequest(`${written.problem}. Tell the user.`);
      if ('problem' in written) return { ...(await memory.create(newFile)), ...written };
      const { path, bytes } = written;
      const { mimeType, ttlMs = exportTtl } = newFile;
      const [at, name] = [now(), basename(path)];
      const discard = async () => {
        files = files.filter((other) => other !== file);
        await rm(path, { force: true });
      };
      const uri = uriOf(`${at.toString(36)}-${++count}`, name);
      const about = { uri, name, mimeType, at, ttlMs };
      const file = { ...written, ...about, content: () => readWritten(path, bytes), discard };
      files = [file, ...(await list())].slice(0, maxExports);
      return file;
    },
    list: async () => [...(await list()), ...(await memory.list())],
    find: async (uri) => (await list()).find((file) => file.uri === uri) ?? memory.find(uri),
  };
  return { forTenant: () => exports };
}

async function writeToFirst(folders: readonly ExportFolder[], newFile: NewFile) {
  let problem = '';
  for (const { path: folder, stays, open } of folders) {
    let isOpen = false;
    try {
      const maxBytes = await open();
      isOpen = true;
      return { stays, ...(await writeNew(folder, newFile, maxBytes)) };
    } catch (error) {
      // An error that is not of the file system does not concern this folder.
      if (isOpen && (error as NodeJS.ErrnoException).syscall === undefined) throw error;
      problem = `No file can be written in ${folder}: ${reasonOf(error)}`;
    }
  }
  return { problem };
}

const uriOf = (id: string, name: string) => `ad-library://exports/${id}/${encodeURIComponent(name)}`;

type Named = Pick<NewFile, 'name' | 'besideEnding'>;

/** A file gets its name only when all of it is written. */
async function writeNew(folder: string, { write, ...named }: NewFile, maxBytes: number) {
  const part = join(folder, `${named.name}.${randomUUID()}.part`);
  let path: string | undefined;
  let bytes = 0;
  try {
    const handle = await open(part, 'wx', 0o600);
    const append = async (more: Uint8Array) => {
      await handle.writeFile(more);
      bytes += more.length;
    };
    try {
      await write(append, maxBytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    path = await newName(folder, named);
    await rename(part, path);
    return { path, bytes };
  } catch (error) {
    for (const file of [part, path]) if (file) await rm(file, { force: true });
    throw error;
  }
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

/** Bytes of the files of one tenant, and of all tenants where they are in memory. */
const maxBytesEach = 64 * MB;
const maxExports = 50;
const exportPartBytes = 256 * 1024;

/** When the service rejected a key last, in milliseconds since the epoch. */
interface Rejection {
  at: number;
}

interface WrittenFile extends Pick<ExportedFile, 'uri' | 'name' | 'mimeType' | 'bytes' | 'at' | 'ttlMs'> {
  id: string;
  parts: number;
  /** 0 for a file that gave way to others. */
  ends: number;
  link: string;
  isLinkEnded?: true;
}

/** Exported files of this process. One tenant has half of the room. */
export function memoryExports(now: () => number): ExportStore {
  let count = 0;
  const source = inMemory(now, { maxBytes: maxBytesEach });
  return exportsOver(source, now, {
    maxBytes: maxBytesEach / 2,
    newId: () => String(++count),
    stays: 'while this server runs',
  });
}

const randomId = () => randomBytes(9).toString('base64url');

export function exportsOver(
  source: StoreAccess,
  clock: () => number,
  { maxBytes = maxBytesEach, newId = randomId, stays }: { maxBytes?: number; newId?(): string; stays?: string } = {},
): ExportStore {
  const { store, documents, queue, keyOf } = source;
  const linkKey = (link: string) => keyOf(`link ${link}`, 'link');
  const gone = () =>
    new AdLibraryError({ kind: 'not_found', problem: 'This file is no longer stored. Export it again.', sent: false });
  const forTenant = (tenantId: string, since = clock()) => {
    const rejection = keyOf(tenantId, 'rejected');
    const list = keyOf(tenantId, 'exports');
    const items = sealedItems(source, keyOf(tenantId, 'exported'));
    const partOf = (id: string, part: number) => `${id}:${part}`;
    const fileOf = ({ id, parts, ends: _, link, isLinkEnded, ...about }: WrittenFile): ExportedFile => ({
      ...about,
      ...(!isLinkEnded && { linkPath: `/files/${link}/${encodeURIComponent(about.name)}` }),
      ...(stays && { stays }),
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
    const endLinks = (isEnded: (file: WrittenFile) => boolean = () => true) =>
      documents.update<WrittenFile[], void>(list, (doc) => ({
        ...(doc && { next: doc.map((file) => (isEnded(file) ? { ...file, isLinkEnded: true } : file)) }),
        ttlMs: linkTtl,
        result: undefined,
      }));
    return {
      create: async ({ name: fileName, mimeType, ttlMs = exportTtl, write }: NewFile) => {
        const at = clock();
        const id = `${at.toString(36)}-${newId()}`;
        let [bytes, parts] = [0, 0];
        await write(async (some) => {
          for (let start = 0; start < some.length; start += exportPartBytes) {
            const partId = partOf(id, parts++);
            const body = items.close(partId, deflateRawSync(some.subarray(start, start + exportPartBytes)));
            await items.put(partId, body, limitsWithRoom(store, { ttlMs: reportTtl, maxBytes }));
          }
          bytes += some.length;
        }, maxExportBytes);
        const uri = uriOf(id, fileName);
        const link = randomBytes(16).toString('base64url');
        await documents.write<Linked>(linkKey(link), () => ({ tenantId, name: fileName }), linkTtl);
        const about = { id, uri, name: fileName, mimeType, bytes, at, parts, ttlMs, link };
        const update = await documents.update(list, (doc: WrittenFile[] = [], now) => {
          const made = { ...about, ends: now + ttlMs };
          const all = [made, ...doc];
          const alive = all.filter(({ ends }) => ends > now).slice(0, maxExports);
          const ended = all.filter((file) => !alive.includes(file)).map((file) => ({ ...file, ends: 0 }));
          const next = [...alive, ...ended.slice(0, maxExports)];
          return { next, ttlMs: linkTtl, result: { file: fileOf(made), forgotten: ended.slice(maxExports) } };
        });
        for (const { link } of update.forgotten) await documents.write(linkKey(link), () => null);
        const { doc: last } = await documents.read<Rejection>(rejection);
        if (last === undefined || last.at < since) return update.file;
        await endLinks((file) => file.id === id);
        const { linkPath: _, ...withoutLink } = update.file;
        return withoutLink;
      },
      list: async () => (await files()).map(fileOf),
      find: async (uri: string) => (await files()).filter((file) => file.uri === uri).map(fileOf)[0],
      openLink: async (link: string) =>
        (await files()).filter((file) => file.link === link && !file.isLinkEnded).map(fileOf)[0],
      /** Ends all links. A file that is being written finds the rejection after its link has been stored. */
      reject: async (at: number | undefined) => {
        if (at !== undefined) await documents.write<Rejection>(rejection, () => ({ at }), linkTtl);
        await endLinks();
      },
    };
  };
  return {
    forTenant,
    links: {
      find: async (link, name) => {
        const { doc } = await documents.read<Linked>(linkKey(link));
        if (doc === undefined || doc.name !== name) return undefined;
        const file = await forTenant(doc.tenantId).openLink(link);
        return file ? { tenantId: doc.tenantId, file } : 'ended';
      },
      end: (tenantId, hasCalls) => {
        const at = hasCalls ? clock() : undefined;
        return queue.write(() => forTenant(tenantId).reject(at));
      },
    },
  };
}

interface Linked {
  tenantId: string;
  name: string;
}
