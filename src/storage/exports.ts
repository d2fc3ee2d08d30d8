import { randomBytes, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { createPrivateFolder, explainFileError, ignoreErrorCodes, securePrivateFolder } from './drivers/file.ts';
import { openMemoryStore } from './in-memory.ts';
import { reduceIfNearlyFull, type StoreAccess } from './store/access.ts';
import { openEncryptedItems } from './store/encryption.ts';

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
  lifetimeText?: string;
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
  companionEnding?: string;
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
export const exportTtlMs = 3_600_000;
export const reportTtlMs = 24 * exportTtlMs;
/** How long it is known that a link has ended, in milliseconds. */
const linkTtlMs = 2 * reportTtlMs;
/** Files of one name: `ads.csv`, `ads-2.csv` … */
const maxSameName = 10_000;

export const getExportsFolder = (files: string): string => join(files, 'exports');

/** Where a person finds files: in a folder that was chosen, or where people look for them. */
export type ExportTarget = { folder: string } | { home: string | undefined; temporary: string };

interface ExportFolder {
  path: string;
  lifetimeText: string;
  /** Makes the folder, if it is safe to write there. Returns the most bytes of one file. */
  open(): Promise<number>;
}

function listExportFolders(target: ExportTarget): ExportFolder[] {
  const createPermanentFolder = (path: string, make: (path: string) => Promise<unknown>): ExportFolder => ({
    path,
    lifetimeText: 'until somebody deletes it',
    open: () => make(path).then(() => maxFolderBytes),
  });
  if ('folder' in target) return [createPermanentFolder(target.folder, createPrivateFolder)];
  // No folder above it is made: a home without downloads does not belong to a person.
  const downloads =
    target.home === undefined
      ? []
      : [createPermanentFolder(join(target.home, 'Downloads', 'Ad Library'), createFolder)];
  return [...downloads, createTemporaryFolder(target.temporary)];
}

/** Anybody may write beside it, so what was planted there under its name is refused. */
function createTemporaryFolder(temporary: string): ExportFolder {
  const path = getTemporaryPath(temporary);
  return {
    path,
    lifetimeText: `for ${temporaryDays} days`,
    open: async () => {
      await createFolder(path);
      await securePrivateFolder(path);
      const bytes = (await listFiles(path)).reduce((sum, { size }) => sum + size, 0);
      if (bytes + maxExportBytes > maxFolderBytes) throw new Error('it holds 1 GB');
      return maxFolderBytes - bytes;
    },
  };
}

const temporaryDays = 7;
const getTemporaryPath = (temporary: string) => join(temporary, `ad-library-${process.getuid?.() ?? 0}`);

const createFolder = (path: string) => mkdir(path, { mode: 0o700 }).catch(ignoreErrorCodes('EEXIST'));

/** Another process may remove old ones at the same time. */
async function listFiles(folder: string) {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const found = await Promise.all(
    paths.map(async (path) => ({ path, stats: await lstat(path).catch(ignoreErrorCodes('ENOENT')) })),
  );
  return found.flatMap(({ path, stats }) =>
    stats?.isFile() ? [{ path, size: stats.size, changedAt: stats.mtimeMs }] : [],
  );
}

export async function removeOldExports(temporary: string, now: number): Promise<void> {
  const folder = getTemporaryPath(temporary);
  await securePrivateFolder(folder);
  for (const { path, changedAt } of await listFiles(folder))
    if (changedAt < now - temporaryDays * dayMs) await rm(path, { force: true });
}

/**
 * Files in folders of a person, which only their owner can read. No file is overwritten, and only a file that failed is
 * removed. The last ones can be read as resources. What no folder takes is in memory, unless the folder was chosen.
 */
export function openFolderExports(target: ExportTarget, now: () => number): ExportStore {
  const folders = listExportFolders(target);
  const memory = openMemoryExports(now).forTenant('own');
  let files: ExportedFile[] = [];
  let count = 0;
  const list = async () => files.filter(({ at, ttlMs }) => Math.abs(now() - at) < ttlMs);
  const exports: Exports = {
    create: async (newFile) => {
      const written = await writeToFirstFolder(folders, newFile);
      if ('problem' in written && 'folder' in target) throw invalidRequest(`${written.problem}. Tell the user.`);
      if ('problem' in written) return { ...(await memory.create(newFile)), ...written };
      const { path, bytes } = written;
      const { mimeType, ttlMs = exportTtlMs } = newFile;
      const [at, name] = [now(), basename(path)];
      const discard = async () => {
        files = files.filter((other) => other !== file);
        await rm(path, { force: true });
      };
      const uri = formatUri(`${at.toString(36)}-${++count}`, name);
      const about = { uri, name, mimeType, at, ttlMs };
      const file = { ...written, ...about, content: () => readUnchangedFile(path, bytes), discard };
      files = [file, ...(await list())].slice(0, maxExports);
      return file;
    },
    list: async () => [...(await list()), ...(await memory.list())],
    find: async (uri) => (await list()).find((file) => file.uri === uri) ?? memory.find(uri),
  };
  return { forTenant: () => exports };
}

async function writeToFirstFolder(folders: readonly ExportFolder[], newFile: NewFile) {
  let problem = '';
  for (const { path: folder, lifetimeText, open } of folders) {
    let isOpen = false;
    try {
      const maxBytes = await open();
      isOpen = true;
      return { lifetimeText, ...(await writeNewFile(folder, newFile, maxBytes)) };
    } catch (error) {
      // An error that is not of the file system does not concern this folder.
      if (isOpen && (error as NodeJS.ErrnoException).syscall === undefined) throw error;
      problem = `No file can be written in ${folder}: ${explainFileError(error)}`;
    }
  }
  return { problem };
}

const formatUri = (id: string, name: string) => `ad-library://exports/${id}/${encodeURIComponent(name)}`;

type Named = Pick<NewFile, 'name' | 'companionEnding'>;

/** A file gets its name only when all of it is written. */
async function writeNewFile(folder: string, { write, ...named }: NewFile, maxBytes: number) {
  const tempFile = join(folder, `${named.name}.${randomUUID()}.part`);
  let path: string | undefined;
  let bytes = 0;
  try {
    const handle = await open(tempFile, 'wx', 0o600);
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
    path = await reserveFileName(folder, named);
    await rename(tempFile, path);
    return { path, bytes };
  } catch (error) {
    for (const file of [tempFile, path]) if (file) await rm(file, { force: true });
    throw error;
  }
}

/** Takes a name that was free, so that neither a file is overwritten nor a link followed. */
async function reserveFileName(folder: string, { name, companionEnding }: Named): Promise<string> {
  const extension = extname(name);
  const stem = name.slice(0, -extension.length);
  for (let number = 1; ; number++) {
    const numbered = join(folder, number === 1 ? stem : `${stem}-${number}`);
    const path = `${numbered}${extension}`;
    try {
      if (companionEnding && existsSync(`${numbered}${companionEnding}`) && number < maxSameName) continue;
      await (await open(path, 'wx', 0o600)).close();
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number >= maxSameName) throw error;
    }
  }
}

/** Reads the file that was written, and no other file that was put in its place since. */
async function readUnchangedFile(path: string, bytes: number): Promise<Uint8Array> {
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
const maxTenantBytes = 64 * MB;
const maxExports = 50;
const exportChunkBytes = 256 * 1024;

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
export function openMemoryExports(now: () => number): ExportStore {
  let count = 0;
  const source = openMemoryStore(now, { maxBytes: maxTenantBytes });
  return openStoredExports(source, now, {
    maxBytes: maxTenantBytes / 2,
    newId: () => String(++count),
    lifetimeText: 'while this server runs',
  });
}

const randomId = () => randomBytes(9).toString('base64url');

export function openStoredExports(
  source: StoreAccess,
  clock: () => number,
  {
    maxBytes = maxTenantBytes,
    newId = randomId,
    lifetimeText,
  }: { maxBytes?: number; newId?(): string; lifetimeText?: string } = {},
): ExportStore {
  const { store, documents, queue, keyOf } = source;
  const linkKey = (link: string) => keyOf(`link ${link}`, 'link');
  const createGoneError = () =>
    new AdLibraryError({ kind: 'not_found', problem: 'This file is no longer stored. Export it again.', sent: false });
  const forTenant = (tenantId: string, since = clock()) => {
    const rejection = keyOf(tenantId, 'rejected');
    const list = keyOf(tenantId, 'exports');
    const items = openEncryptedItems(source, keyOf(tenantId, 'exported'));
    const chunkIdOf = (id: string, part: number) => `${id}:${part}`;
    const createExportedFile = ({ id, parts, ends: _, link, isLinkEnded, ...about }: WrittenFile): ExportedFile => ({
      ...about,
      ...(!isLinkEnded && { linkPath: `/files/${link}/${encodeURIComponent(about.name)}` }),
      ...(lifetimeText && { lifetimeText: lifetimeText }),
      content: async () => {
        const content: Buffer[] = [];
        for (let part = 0; part < parts; part++) {
          const opened = await items.get(chunkIdOf(id, part));
          if (opened === undefined) throw createGoneError();
          content.push(inflateRawSync(opened, { maxOutputLength: exportChunkBytes }));
        }
        return Buffer.concat(content);
      },
    });
    const readFiles = async () => {
      const { doc = [], now } = await documents.read<WrittenFile[]>(list);
      return doc.filter(({ ends }) => ends > now);
    };
    const endLinks = (isEnded: (file: WrittenFile) => boolean = () => true) =>
      documents.update<WrittenFile[], void>(list, (doc) => ({
        ...(doc && { next: doc.map((file) => (isEnded(file) ? { ...file, isLinkEnded: true } : file)) }),
        ttlMs: linkTtlMs,
        result: undefined,
      }));
    return {
      create: async ({ name: fileName, mimeType, ttlMs = exportTtlMs, write }: NewFile) => {
        const at = clock();
        const id = `${at.toString(36)}-${newId()}`;
        let [bytes, parts] = [0, 0];
        await write(async (some) => {
          for (let start = 0; start < some.length; start += exportChunkBytes) {
            const partId = chunkIdOf(id, parts++);
            const body = items.encrypt(partId, deflateRawSync(some.subarray(start, start + exportChunkBytes)));
            await items.put(partId, body, reduceIfNearlyFull(store, { ttlMs: reportTtlMs, maxBytes }));
          }
          bytes += some.length;
        }, maxExportBytes);
        const uri = formatUri(id, fileName);
        const link = randomBytes(16).toString('base64url');
        await documents.write<LinkDocument>(linkKey(link), () => ({ tenantId, name: fileName }), linkTtlMs);
        const about = { id, uri, name: fileName, mimeType, bytes, at, parts, ttlMs, link };
        const update = await documents.update(list, (doc: WrittenFile[] = [], now) => {
          const made = { ...about, ends: now + ttlMs };
          const all = [made, ...doc];
          const alive = all.filter(({ ends }) => ends > now).slice(0, maxExports);
          const ended = all.filter((file) => !alive.includes(file)).map((file) => ({ ...file, ends: 0 }));
          const next = [...alive, ...ended.slice(0, maxExports)];
          return {
            next,
            ttlMs: linkTtlMs,
            result: { file: createExportedFile(made), forgotten: ended.slice(maxExports) },
          };
        });
        for (const { link } of update.forgotten) await documents.write(linkKey(link), () => null);
        const { doc: last } = await documents.read<Rejection>(rejection);
        if (last === undefined || last.at < since) return update.file;
        await endLinks((file) => file.id === id);
        const { linkPath: _, ...withoutLink } = update.file;
        return withoutLink;
      },
      list: async () => (await readFiles()).map(createExportedFile),
      find: async (uri: string) => (await readFiles()).filter((file) => file.uri === uri).map(createExportedFile)[0],
      openLink: async (link: string) =>
        (await readFiles()).filter((file) => file.link === link && !file.isLinkEnded).map(createExportedFile)[0],
      /** Ends all links. A file that is being written finds the rejection after its link has been stored. */
      reject: async (at: number | undefined) => {
        if (at !== undefined) await documents.write<Rejection>(rejection, () => ({ at }), linkTtlMs);
        await endLinks();
      },
    };
  };
  return {
    forTenant,
    links: {
      find: async (link, name) => {
        const { doc } = await documents.read<LinkDocument>(linkKey(link));
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

interface LinkDocument {
  tenantId: string;
  name: string;
}
