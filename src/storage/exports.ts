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

/** An exported file or report. */
export interface ExportedFile {
  /** The URI under which an MCP host reads the file as a resource. */
  uri: string;
  /** The name of the file, without folders: `ads.csv`, `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  /** When the file was created, in milliseconds since 1970. */
  at: number;
  /** The path of the file, if it is in a folder. */
  path?: string | undefined;
  /** How long the file exists, in words for a person. */
  lifetimeText?: string;
  /** How long the file can be read as a resource and by its link, in milliseconds. */
  ttlMs: number;
  /** The path of the link to the file, without the origin. */
  linkPath?: string;
  /** Why the file could not be written to a folder, if it should have been. */
  problem?: string | undefined;
  /** Reads the file. @throws AdLibraryError `not_found` if the file no longer exists or has changed */
  content(): Promise<Uint8Array>;
  /** Deletes the file, for a caller that could not write its companion file. */
  discard?(): Promise<void>;
}

/** A file to create. */
interface NewFile {
  name: string;
  /**
   * The ending of the name of a companion file, which describes the exported file. A number is added to the name until both
   * names are free.
   */
  companionEnding?: string;
  mimeType: string;
  /** The lifetime of the resource and the link, in milliseconds; by default an hour. */
  ttlMs?: number;
  /**
   * Writes the content in pieces. It must await each `append` before the next. If a folder does not accept the file,
   * `write` runs again for the next folder.
   * @param maxBytes the largest size; `write` must throw an error for a larger file
   */
  write(append: (bytes: Uint8Array) => Promise<void>, maxBytes: number): Promise<unknown>;
}

/** The exported files of one tenant. */
export interface Exports {
  create(file: NewFile): Promise<ExportedFile>;
  /** Returns the files that can still be read, the newest first. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

/** The exported files of all tenants. */
export interface ExportStore {
  /**
   * Opens the files of a tenant.
   * @param since when the call began, in milliseconds since 1970; by default now. A new file gets no link if the key was
   * rejected after this time
   */
  forTenant(tenantId: string, since?: number): Exports;
  /** The links; undefined if files are in a folder and have no links. */
  links?: FileLinks;
}

/** Reads files by their links, which need no key. */
export interface FileLinks {
  /** Finds a file by its link. Returns undefined if the link or the name is wrong. */
  find(link: string, name: string): Promise<{ tenantId: string; file: ExportedFile } | 'ended' | undefined>;
  /**
   * Disables the links of a tenant whose key the service has rejected.
   * @param hasCalls whether calls of the key may be in progress. The time of the rejection is then stored, so that their
   * files get no links either. For an invented key, nothing should be stored
   */
  end(tenantId: string, hasCalls: boolean): Promise<void>;
}

const MB = 1024 * 1024;
/** The largest size of one file in a store, and in a folder. */
const maxExportBytes = 16 * MB;
const maxFolderBytes = 1024 * MB;
/** How long an exported file can be read (an hour), and how long a report can be read (a day), in milliseconds. */
export const exportTtlMs = 3_600_000;
/** @see exportTtlMs */
export const reportTtlMs = 24 * exportTtlMs;
/** How long the store remembers that a link has ended, in milliseconds. */
const linkTtlMs = 2 * reportTtlMs;
/** The largest number of files with the same name: `ads.csv`, `ads-2.csv` and so on. */
const maxSameName = 10_000;

/** Returns the folder for exports inside `AD_LIBRARY_FILES`. */
export const getExportsFolder = (files: string): string => join(files, 'exports');

/** Where files are written: to a folder that the person has chosen, or to the downloads folder or a temporary folder. */
export type ExportTarget = { folder: string } | { home: string | undefined; temporary: string };

interface ExportFolder {
  path: string;
  lifetimeText: string;
  /** Creates the folder if necessary. Returns the largest size of one file. @throws Error if writing there is not safe */
  open(): Promise<number>;
}

function listExportFolders(target: ExportTarget): ExportFolder[] {
  const createPermanentFolder = (path: string, make: (path: string) => Promise<unknown>): ExportFolder => ({
    path,
    lifetimeText: 'until somebody deletes it',
    open: () => make(path).then(() => maxFolderBytes),
  });
  if ('folder' in target) return [createPermanentFolder(target.folder, createPrivateFolder)];
  // Missing parent folders are not created. A home directory without a downloads folder does not belong to a person.
  const downloads =
    target.home === undefined
      ? []
      : [createPermanentFolder(join(target.home, 'Downloads', 'Ad Library'), createFolder)];
  return [...downloads, createTemporaryFolder(target.temporary)];
}

/** Anybody can create files in the temporary directory, so a folder of another user with the same name is refused. */
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

/** Lists the files of a folder. Another process may delete old files at the same time, so a missing file is ignored. */
async function listFiles(folder: string) {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const entries = await Promise.all(
    paths.map(async (path) => ({ path, stats: await lstat(path).catch(ignoreErrorCodes('ENOENT')) })),
  );
  return entries.flatMap(({ path, stats }) =>
    stats?.isFile() ? [{ path, size: stats.size, changedAt: stats.mtimeMs }] : [],
  );
}

/** Deletes expired exports from the temporary folder. */
export async function removeOldExports(temporary: string, now: number): Promise<void> {
  const folder = getTemporaryPath(temporary);
  await securePrivateFolder(folder);
  for (const { path, changedAt } of await listFiles(folder))
    if (changedAt < now - temporaryDays * dayMs) await rm(path, { force: true });
}

/**
 * Opens exports in folders of a person. Only the owner can read the files. No file is overwritten, and only incomplete
 * files are deleted. The last files can also be read as resources. If no folder accepts a file, the file is stored in
 * memory, unless the person has chosen the folder.
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
      const description = { uri, name, mimeType, at, ttlMs };
      const file = { ...written, ...description, content: () => readUnchangedFile(path, bytes), discard };
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
      // Only errors of the file system concern the folder. All others come from the caller's `write`.
      if (isOpen && (error as NodeJS.ErrnoException).syscall === undefined) throw error;
      problem = `No file can be written in ${folder}: ${explainFileError(error)}`;
    }
  }
  return { problem };
}

const formatUri = (id: string, name: string) => `ad-library://exports/${id}/${encodeURIComponent(name)}`;

type Named = Pick<NewFile, 'name' | 'companionEnding'>;

/** Writes a file to a folder. The file gets its name only when it is complete. */
async function writeNewFile(folder: string, { write, ...named }: NewFile, maxBytes: number) {
  const tempFile = join(folder, `${named.name}.${randomUUID()}.part`);
  let path: string | undefined;
  let bytes = 0;
  try {
    const handle = await open(tempFile, 'wx', 0o600);
    const append = async (bytesToAppend: Uint8Array) => {
      await handle.writeFile(bytesToAppend);
      bytes += bytesToAppend.length;
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

/** Creates an empty file with a free name, so that no file is overwritten and no symbolic link is followed. */
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

/** Reads a file that this process has written. @throws AdLibraryError `not_found` if another file has replaced it since */
async function readUnchangedFile(path: string, bytes: number): Promise<Uint8Array> {
  // These flags refuse symbolic links, and avoid waiting for a writer if the path is a pipe. Windows has neither of them.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const handle = await open(path, flags).catch(() => undefined);
  try {
    const stats = await handle?.stat();
    if (handle && stats?.isFile() && stats.size === bytes) return await handle.readFile();
  } finally {
    await handle?.close();
  }
  const problem = `${path} is no longer the file that was written. Export it again.`;
  throw new AdLibraryError({ kind: 'not_found', problem, sent: false });
}

/** The memory limit for the files of one tenant in a store, and for the files of all tenants in memory. */
const maxTenantBytes = 64 * MB;
const maxExports = 50;
const exportChunkBytes = 256 * 1024;

/** The last time at which the service rejected a key, in milliseconds since 1970. */
interface Rejection {
  at: number;
}

/** A file as it is stored in the list of a tenant. The content is in chunks, which are items of a collection. */
interface StoredFileEntry extends Pick<ExportedFile, 'uri' | 'name' | 'mimeType' | 'bytes' | 'at' | 'ttlMs'> {
  id: string;
  parts: number;
  /** When the file expires, by the clock of the store; 0 for a file that newer files have displaced. */
  expiresAt: number;
  link: string;
  isLinkEnded?: true;
}

/** Opens exports in the memory of this process. One tenant may use half of the memory. */
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

/** Opens exports in a store. */
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
    const createExportedFile = ({
      id,
      parts,
      expiresAt: _,
      link,
      isLinkEnded,
      ...about
    }: StoredFileEntry): ExportedFile => ({
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
      const { doc = [], now } = await documents.read<StoredFileEntry[]>(list);
      return doc.filter(({ expiresAt }) => expiresAt > now);
    };
    const disableLinks = (isEnded: (file: StoredFileEntry) => boolean = () => true) =>
      documents.update<StoredFileEntry[], void>(list, (doc) => ({
        ...(doc && { next: doc.map((file) => (isEnded(file) ? { ...file, isLinkEnded: true } : file)) }),
        ttlMs: linkTtlMs,
        result: undefined,
      }));
    return {
      create: async ({ name: fileName, mimeType, ttlMs = exportTtlMs, write }: NewFile) => {
        const at = clock();
        const id = `${at.toString(36)}-${newId()}`;
        let [bytes, parts] = [0, 0];
        await write(async (piece) => {
          for (let start = 0; start < piece.length; start += exportChunkBytes) {
            const partId = chunkIdOf(id, parts++);
            const body = items.encrypt(partId, deflateRawSync(piece.subarray(start, start + exportChunkBytes)));
            await items.put(partId, body, reduceIfNearlyFull(store, { ttlMs: reportTtlMs, maxBytes }));
          }
          bytes += piece.length;
        }, maxExportBytes);
        const uri = formatUri(id, fileName);
        const link = randomBytes(16).toString('base64url');
        await documents.write<LinkDocument>(linkKey(link), () => ({ tenantId, name: fileName }), linkTtlMs);
        const description = { id, uri, name: fileName, mimeType, bytes, at, parts, ttlMs, link };
        const update = await documents.update(list, (doc: StoredFileEntry[] = [], now) => {
          const newFile = { ...description, expiresAt: now + ttlMs };
          const allFiles = [newFile, ...doc];
          const currentFiles = allFiles.filter(({ expiresAt }) => expiresAt > now).slice(0, maxExports);
          const expiredFiles = allFiles
            .filter((file) => !currentFiles.includes(file))
            .map((file) => ({ ...file, expiresAt: 0 }));
          const next = [...currentFiles, ...expiredFiles.slice(0, maxExports)];
          return {
            next,
            ttlMs: linkTtlMs,
            result: { file: createExportedFile(newFile), forgotten: expiredFiles.slice(maxExports) },
          };
        });
        for (const { link } of update.forgotten) await documents.write(linkKey(link), () => null);
        const { doc: lastRejection } = await documents.read<Rejection>(rejection);
        if (lastRejection === undefined || lastRejection.at < since) return update.file;
        await disableLinks((file) => file.id === id);
        const { linkPath: _, ...withoutLink } = update.file;
        return withoutLink;
      },
      list: async () => (await readFiles()).map(createExportedFile),
      find: async (uri: string) => (await readFiles()).filter((file) => file.uri === uri).map(createExportedFile)[0],
      openLink: async (link: string) =>
        (await readFiles()).filter((file) => file.link === link && !file.isLinkEnded).map(createExportedFile)[0],
      /** Disables all links. A call that is writing a file reads the rejection after it has stored the link of the file. */
      reject: async (at: number | undefined) => {
        if (at !== undefined) await documents.write<Rejection>(rejection, () => ({ at }), linkTtlMs);
        await disableLinks();
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

/** The file that a link leads to. */
interface LinkDocument {
  tenantId: string;
  name: string;
}
