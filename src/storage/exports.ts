import { randomBytes, randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { AdLibraryError } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';
import { sumNumbers } from '../views/numbers.ts';
import { createPrivateFolder, explainFileError, ignoreErrorCodes, securePrivateFolder } from './drivers/file.ts';
import { openMemoryStore } from './in-memory.ts';
import { reduceLimitsIfNearlyFull, type StoreAccess } from './store/access.ts';
import { openEncryptedItems } from './store/encryption.ts';

/** An exported file or report, as tool results and resource lists show it. */
export interface ExportedFile {
  /** The resource URI under which an MCP client can read the file. */
  uri: string;
  /** The file name without a folder, e.g. `ads.csv` or `ads-2.csv`. */
  name: string;
  mimeType: string;
  bytes: number;
  /** The time at which the file was created, in milliseconds since 1970. */
  createdAt: number;
  /** The path of the file on this machine. Set only if the file was written to a folder. */
  path?: string | undefined;
  /** The lifetime of the file in words, e.g. `for 7 days`. */
  lifetimeText?: string;
  /** How long clients can read the file as an MCP resource or download it through its link, in milliseconds. */
  ttlMs: number;
  /** The path of the download link, e.g. `/files/Zm9v/ads.csv`. The caller must prepend the origin of the server. */
  linkPath?: string;
  /**
   * The reason why the file could not be written to any folder and is therefore stored in memory. Not set for other
   * files.
   */
  problem?: string | undefined;
  /**
   * Returns the content of the file.
   * @throws AdLibraryError `not_found` if the file no longer exists or was changed
   */
  readContent(): Promise<Uint8Array>;
  /**
   * Deletes the file. Called if the companion file could not be written. A companion file describes how the data was
   * collected.
   */
  discard?(): Promise<void>;
}

/** A file to be exported. */
interface NewFile {
  name: string;
  /**
   * The suffix of the name of the companion file, which describes how the data was collected. For example, the suffix
   * `-methods.md` gives `ads-methods.md` for `ads.csv`. If either name is taken, both files get the same number.
   */
  companionSuffix?: string;
  mimeType: string;
  /** How long clients can read the file, in milliseconds. Default: one hour. */
  ttlMs?: number;
  /**
   * Passes the content to `append` in chunks, and awaits each call of `append` before the next call. `write` is called
   * again if the first folder does not accept the file.
   * @param maxBytes the maximum size; `write` must throw an error if the file would be larger
   */
  write(append: (bytes: Uint8Array) => Promise<void>, maxBytes: number): Promise<unknown>;
}

/** Creates, lists and finds the exported files of a single tenant (API key). */
export interface TenantExports {
  create(file: NewFile): Promise<ExportedFile>;
  /** Returns the files that have not expired, sorted from the newest to the oldest. */
  list(): Promise<ExportedFile[]>;
  find(uri: string): Promise<ExportedFile | undefined>;
}

/**
 * Stores the exported files of all tenants (API keys) in a folder, in memory, or in a store that several replicas
 * share.
 */
export interface ExportStore {
  /**
   * Opens the exported files of one tenant (API key).
   * @param callStartedAt the start of the tool call, in milliseconds since 1970; default: now. If the service has
   * rejected the API key since then, the files that this call creates get no download link.
   */
  forTenant(tenantId: string, callStartedAt?: number): TenantExports;
  /**
   * Finds and disables the download links of the files. Undefined if the files are in a folder, where the user opens
   * them directly.
   */
  links?: FileLinks;
}

/** Finds exported files by their download links, and disables these links. A link works without an API key. */
export interface FileLinks {
  /**
   * Finds a file by its download link and file name. Returns `ended` if the link is no longer valid, and undefined if
   * the link or the file name is wrong.
   */
  find(link: string, fileName: string): Promise<{ tenantId: string; file: ExportedFile } | 'ended' | undefined>;
  /**
   * Disables all download links of a tenant, because the service has rejected the tenant's API key.
   * @param mayHaveCalls true if calls with this key may be in progress. The time of the rejection is then stored, so
   * that files of these calls get no links. Pass false for keys that were never accepted, so that made-up keys cannot
   * fill the store.
   */
  disable(tenantId: string, mayHaveCalls: boolean): Promise<void>;
}

const MB = 1024 * 1024;
/**
 * The maximum size of an exported file, in bytes: `maxExportBytes` in memory or in a shared store, and `maxFolderBytes`
 * in a folder.
 */
const maxExportBytes = 16 * MB;
const maxFolderBytes = 1024 * MB;
/** How long clients can read an exported file, in milliseconds. */
export const exportTtlMs = 3_600_000;
/**
 * How long clients can read a report, in milliseconds. Reports are for people, so they are available longer than
 * exports.
 */
export const reportTtlMs = 24 * exportTtlMs;
/**
 * How long the store remembers a download link, in milliseconds. This time is longer than the lifetime of any file, so
 * that an expired link leads to an explanation instead of a 404 error.
 */
const linkTtlMs = 2 * reportTtlMs;
/** The maximum number of files in a folder whose names differ only in a number, e.g. `ads.csv` and `ads-2.csv`. */
const maxNumberedNames = 10_000;

/** Returns the path of the folder for exports, which is in the folder that the `AD_LIBRARY_FILES` setting names. */
export const getExportsFolder = (filesFolder: string): string => join(filesFolder, 'exports');

/**
 * Where exported files are written. Either the user has chosen a `folder`, or files go to the downloads folder in
 * `homeFolder`. Without a downloads folder, files are written to a folder in `temporaryFolder`.
 */
export type ExportTarget = { folder: string } | { homeFolder: string | undefined; temporaryFolder: string };

interface ExportFolder {
  path: string;
  lifetimeText: string;
  /**
   * Creates the folder if it does not exist. Returns the maximum size of a file in this folder, in bytes.
   * @throws Error if it is not safe to write to the folder
   */
  prepareFolder(): Promise<number>;
}

function listExportFolders(exportTarget: ExportTarget): ExportFolder[] {
  const describePermanentFolder = (
    path: string,
    createIfMissing: (path: string) => Promise<unknown>,
  ): ExportFolder => ({
    path,
    lifetimeText: 'until somebody deletes it',
    prepareFolder: () => createIfMissing(path).then(() => maxFolderBytes),
  });
  if ('folder' in exportTarget) return [describePermanentFolder(exportTarget.folder, createPrivateFolder)];
  // Use the downloads folder only if it exists. A home directory without a downloads folder probably belongs to a
  // service account and not to a person.
  const downloadsFolders =
    exportTarget.homeFolder === undefined
      ? []
      : [describePermanentFolder(join(exportTarget.homeFolder, 'Downloads', 'Ad Library'), createFolder)];
  return [...downloadsFolders, describeTemporaryFolder(exportTarget.temporaryFolder)];
}

/**
 * Describes the folder for exports in the system's temporary directory. All users can write to this directory, so
 * `prepareFolder` refuses the folder if another user owns it.
 */
function describeTemporaryFolder(temporaryFolder: string): ExportFolder {
  const path = getTemporaryPath(temporaryFolder);
  return {
    path,
    lifetimeText: `for ${temporaryDays} days`,
    prepareFolder: async () => {
      await createFolder(path);
      await securePrivateFolder(path);
      const bytes = (await listFiles(path)).reduce((sum, { size }) => sum + size, 0);
      if (bytes + maxExportBytes > maxFolderBytes) throw new Error('it already contains about 1 GB of files');
      return maxFolderBytes - bytes;
    },
  };
}

const temporaryDays = 7;
const getTemporaryPath = (temporaryFolder: string) => join(temporaryFolder, `ad-library-${process.getuid?.() ?? 0}`);

const createFolder = (path: string) => mkdir(path, { mode: 0o700 }).catch(ignoreErrorCodes('EEXIST'));

/** Lists the files in a folder. Skips files that another process deletes while this function runs. */
async function listFiles(folder: string) {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  const folderEntries = await Promise.all(
    paths.map(async (path) => ({ path, stats: await lstat(path).catch(ignoreErrorCodes('ENOENT')) })),
  );
  return folderEntries.flatMap(({ path, stats }) =>
    stats?.isFile() ? [{ path, size: stats.size, changedAt: stats.mtimeMs }] : [],
  );
}

/** Deletes exports that are older than `temporaryDays` from the temporary folder, because nothing else deletes them. */
export async function removeOldExports(temporaryFolder: string, now: number): Promise<void> {
  const folder = getTemporaryPath(temporaryFolder);
  await securePrivateFolder(folder);
  for (const { path, changedAt } of await listFiles(folder))
    if (changedAt < now - temporaryDays * dayMs) await rm(path, { force: true });
}

/**
 * Opens an export store that writes files to a folder of the user.
 *
 * - Only the owner of the folder can read the files.
 * - Existing files are never overwritten. Only incomplete files are deleted.
 * - Clients can also read the most recent files as MCP resources.
 * - If no folder accepts a file, it is stored in memory. If the user has chosen the folder, the export fails instead.
 */
export function openFolderExports(exportTarget: ExportTarget, now: () => number): ExportStore {
  const folders = listExportFolders(exportTarget);
  const memoryExports = openMemoryExports(now).forTenant('own');
  let recentFiles: ExportedFile[] = [];
  let fileCount = 0;
  const list = async () => recentFiles.filter(({ createdAt, ttlMs }) => Math.abs(now() - createdAt) < ttlMs);
  const exports: TenantExports = {
    create: async (newFile) => {
      const writtenFile = await writeToFirstFolder(folders, newFile);
      if ('problem' in writtenFile && 'folder' in exportTarget)
        throw new AdLibraryError({ kind: 'unavailable', storage: 'folder', problem: `${writtenFile.problem}.` });
      if ('problem' in writtenFile) return { ...(await memoryExports.create(newFile)), ...writtenFile };
      const { path, bytes } = writtenFile;
      const { mimeType, ttlMs = exportTtlMs } = newFile;
      const [nowMs, name] = [now(), basename(path)];
      const discard = async () => {
        recentFiles = recentFiles.filter((listedFile) => listedFile !== file);
        await rm(path, { force: true });
      };
      const uri = formatUri(`${nowMs.toString(36)}-${++fileCount}`, name);
      const description = { uri, name, mimeType, createdAt: nowMs, ttlMs };
      const file = { ...writtenFile, ...description, readContent: () => readUnchangedFile(path, bytes), discard };
      recentFiles = [file, ...(await list())].slice(0, maxExportedFiles);
      return file;
    },
    list: async () => [...(await list()), ...(await memoryExports.list())],
    find: async (uri) => (await list()).find((file) => file.uri === uri) ?? memoryExports.find(uri),
  };
  return { forTenant: () => exports };
}

async function writeToFirstFolder(folders: readonly ExportFolder[], newFile: NewFile) {
  let problem = '';
  for (const { path: folder, lifetimeText, prepareFolder } of folders) {
    let isFolderReady = false;
    try {
      const maxBytes = await prepareFolder();
      isFolderReady = true;
      return { lifetimeText, ...(await writeNewFile(folder, newFile, maxBytes)) };
    } catch (error) {
      // Try the next folder only if `prepareFolder` or the file system failed, because this folder then cannot be used.
      // Rethrow errors that `write` itself throws.
      if (isFolderReady && (error as NodeJS.ErrnoException).syscall === undefined) throw error;
      problem = `No file can be written in ${folder}: ${explainFileError(error)}`;
    }
  }
  return { problem };
}

const formatUri = (id: string, name: string) => `ad-library://exports/${id}/${encodeURIComponent(name)}`;

type FileNames = Pick<NewFile, 'name' | 'companionSuffix'>;

/**
 * Writes a file to a folder under a temporary name, and renames the file when it is complete, so that no program reads
 * an incomplete file.
 */
async function writeNewFile(folder: string, { write, ...fileNames }: NewFile, maxBytes: number) {
  const tempFile = join(folder, `${fileNames.name}.${randomUUID()}.part`);
  let path: string | undefined;
  let bytes = 0;
  try {
    const fileHandle = await open(tempFile, 'wx', 0o600);
    const append = async (bytesToAppend: Uint8Array) => {
      await fileHandle.writeFile(bytesToAppend);
      bytes += bytesToAppend.length;
    };
    try {
      await write(append, maxBytes);
      await fileHandle.sync();
    } finally {
      await fileHandle.close();
    }
    path = await reserveFileName(folder, fileNames);
    await rename(tempFile, path);
    return { path, bytes };
  } catch (error) {
    for (const file of [tempFile, path]) if (file) await rm(file, { force: true });
    throw error;
  }
}

/**
 * Creates an empty file under a name that is not taken, e.g. `ads-2.csv`, and returns the path of this file. The flag
 * `wx` ensures that no file is overwritten and no symbolic link is followed.
 */
async function reserveFileName(folder: string, { name, companionSuffix }: FileNames): Promise<string> {
  const extension = extname(name);
  const stem = name.slice(0, -extension.length);
  for (let number = 1; ; number++) {
    const numberedPath = join(folder, number === 1 ? stem : `${stem}-${number}`);
    const path = `${numberedPath}${extension}`;
    try {
      if (companionSuffix && existsSync(`${numberedPath}${companionSuffix}`) && number < maxNumberedNames) continue;
      await (await open(path, 'wx', 0o600)).close();
      return path;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number >= maxNumberedNames) throw error;
    }
  }
}

/**
 * Reads a file that this process has written.
 * @throws AdLibraryError `not_found` if the file no longer exists or has a different size
 */
async function readUnchangedFile(path: string, bytes: number): Promise<Uint8Array> {
  // `O_NOFOLLOW` refuses symbolic links. `O_NONBLOCK` prevents the process from waiting for a writer if the path is a
  // named pipe. Windows has neither flag.
  const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const fileHandle = await open(path, flags).catch(() => undefined);
  try {
    const stats = await fileHandle?.stat();
    if (fileHandle && stats?.isFile() && stats.size === bytes) return await fileHandle.readFile();
  } finally {
    await fileHandle?.close();
  }
  const problem = `${path} is no longer the file that was written. Export it again.`;
  throw new AdLibraryError({ kind: 'not_found', problem, wasSent: false });
}

/**
 * The memory limit for exported files in bytes, the maximum number of files of a tenant (API key), and the size of the
 * chunks in which files are stored. In a shared store, the memory limit applies to each tenant. In the memory of a
 * single process, it applies to all tenants together.
 */
const maxTenantBytes = 64 * MB;
const maxExportedFiles = 50;
const exportChunkBytes = 256 * 1024;

/**
 * A record that the service has rejected an API key. `rejectedAt` is the time of the rejection, in milliseconds since
 * 1970.
 */
interface KeyRejection {
  rejectedAt: number;
}

/**
 * An exported file in the list of a tenant's files. The content of the file is stored separately, in `chunkCount`
 * chunks.
 */
interface StoredFileEntry extends Pick<ExportedFile, 'uri' | 'name' | 'mimeType' | 'bytes' | 'createdAt' | 'ttlMs'> {
  id: string;
  chunkCount: number;
  /**
   * The time at which the file expires, in milliseconds by the store's clock. It is 0 if the file was removed from the
   * list because of newer files.
   */
  expiresAt: number;
  link: string;
  isLinkEnded?: true;
}

/**
 * Opens an export store in the memory of this process. A single tenant (API key) may use at most half of this memory.
 */
export function openMemoryExports(now: () => number): ExportStore {
  let fileCount = 0;
  const storeAccess = openMemoryStore(now, { maxBytes: maxTenantBytes });
  return openStoredExports(storeAccess, now, {
    maxBytes: maxTenantBytes / 2,
    createId: () => String(++fileCount),
    lifetimeText: 'while this server runs',
  });
}

const createRandomId = () => randomBytes(9).toString('base64url');

/**
 * Opens an export store that writes encrypted files to a `Store`, e.g. Redis, so that all replicas of this server can
 * serve the files.
 */
export function openStoredExports(
  access: StoreAccess,
  getTime: () => number,
  {
    maxBytes = maxTenantBytes,
    createId = createRandomId,
    lifetimeText,
  }: { maxBytes?: number; createId?(): string; lifetimeText?: string } = {},
): ExportStore {
  const { store, documents, queue, buildKey } = access;
  const getLinkKey = (link: string) => buildKey(`link ${link}`, 'link');
  const createGoneError = () =>
    new AdLibraryError({
      kind: 'not_found',
      problem: 'This file is no longer stored. Export it again.',
      wasSent: false,
    });
  const createEvictedError = () =>
    new AdLibraryError({
      kind: 'busy',
      problem: 'Other exports at the same time took the space of this file. Export it again.',
      wasSent: false,
    });
  const createNoSpaceError = () =>
    new AdLibraryError({
      kind: 'busy',
      problem: 'The shared state of this server is nearly full and has no space for a file of this size.',
      storage: 'full',
    });
  const forTenant = (tenantId: string, callStartedAt = getTime()) => {
    const rejectionKey = buildKey(tenantId, 'rejected');
    const listKey = buildKey(tenantId, 'exports');
    const items = openEncryptedItems(access, buildKey(tenantId, 'exported'));
    const getChunkId = (id: string, part: number) => `${id}:${part}`;
    const createExportedFile = ({
      id,
      chunkCount,
      expiresAt: _,
      link,
      isLinkEnded,
      ...description
    }: StoredFileEntry): ExportedFile => ({
      ...description,
      ...(!isLinkEnded && { linkPath: `/files/${link}/${encodeURIComponent(description.name)}` }),
      ...(lifetimeText && { lifetimeText }),
      readContent: async () => {
        const content: Buffer[] = [];
        for (let part = 0; part < chunkCount; part++) {
          const chunk = await items.getItem(getChunkId(id, part));
          if (chunk === undefined) throw createGoneError();
          content.push(inflateRawSync(chunk, { maxOutputLength: exportChunkBytes }));
        }
        return Buffer.concat(content);
      },
    });
    const readFiles = async () => {
      const { doc = [], readAt } = await documents.read<StoredFileEntry[]>(listKey);
      return doc.filter(({ expiresAt }) => expiresAt > readAt);
    };
    const disableLinks = (shouldDisable: (file: StoredFileEntry) => boolean = () => true) =>
      documents.update<StoredFileEntry[], void>(listKey, (doc) => ({
        ...(doc && { next: doc.map((file) => (shouldDisable(file) ? { ...file, isLinkEnded: true } : file)) }),
        ttlMs: linkTtlMs,
        result: undefined,
      }));
    return {
      create: async ({ name: fileName, mimeType, ttlMs = exportTtlMs, write }: NewFile) => {
        const nowMs = getTime();
        const id = `${nowMs.toString(36)}-${createId()}`;
        let bytes = 0;
        const chunks: Buffer[] = [];
        await write(async (bytesToWrite) => {
          for (let start = 0; start < bytesToWrite.length; start += exportChunkBytes) {
            const content = deflateRawSync(bytesToWrite.subarray(start, start + exportChunkBytes));
            chunks.push(items.encrypt(getChunkId(id, chunks.length), content));
          }
          bytes += bytesToWrite.length;
        }, maxExportBytes);
        // Write nothing unless the whole file fits, because each written chunk may evict other files of the tenant.
        const limits = reduceLimitsIfNearlyFull(store, { ttlMs: reportTtlMs, maxBytes });
        if (sumNumbers(chunks.map((chunk) => chunk.length)) > limits.maxBytes) throw createNoSpaceError();
        for (const [index, chunk] of chunks.entries()) await items.putItem(getChunkId(id, index), chunk, limits);
        // Another file that the tenant exported at the same time may have evicted the first chunk.
        if (chunks.length > 0 && (await items.getItem(getChunkId(id, 0))) === undefined) throw createEvictedError();
        const uri = formatUri(id, fileName);
        const link = randomBytes(16).toString('base64url');
        await documents.write<LinkDocument>(getLinkKey(link), () => ({ tenantId, name: fileName }), linkTtlMs);
        const description = {
          id,
          uri,
          name: fileName,
          mimeType,
          bytes,
          createdAt: nowMs,
          chunkCount: chunks.length,
          ttlMs,
          link,
        };
        const listUpdate = await documents.update(listKey, (doc: StoredFileEntry[] = [], now) => {
          const newFile = { ...description, expiresAt: now + ttlMs };
          const allFiles = [newFile, ...doc];
          const currentFiles = allFiles.filter(({ expiresAt }) => expiresAt > now).slice(0, maxExportedFiles);
          const expiredFiles = allFiles
            .filter((file) => !currentFiles.includes(file))
            .map((file) => ({ ...file, expiresAt: 0 }));
          const next = [...currentFiles, ...expiredFiles.slice(0, maxExportedFiles)];
          return {
            next,
            ttlMs: linkTtlMs,
            result: { file: createExportedFile(newFile), droppedFiles: expiredFiles.slice(maxExportedFiles) },
          };
        });
        for (const { link } of listUpdate.droppedFiles) await documents.write(getLinkKey(link), () => null);
        const { doc: lastRejection } = await documents.read<KeyRejection>(rejectionKey);
        if (lastRejection === undefined || lastRejection.rejectedAt < callStartedAt) return listUpdate.file;
        await disableLinks((file) => file.id === id);
        const { linkPath: _, ...withoutLink } = listUpdate.file;
        return withoutLink;
      },
      list: async () => (await readFiles()).map(createExportedFile),
      find: async (uri: string) => (await readFiles()).filter((file) => file.uri === uri).map(createExportedFile)[0],
      openLink: async (link: string) =>
        (await readFiles()).filter((file) => file.link === link && !file.isLinkEnded).map(createExportedFile)[0],
      /**
       * Disables all download links of a rejected API key. If `rejectedAt` is set, stores this time under
       * `rejectionKey`, so that a call that is still writing a file disables the link of this file, too.
       */
      reject: async (rejectedAt: number | undefined) => {
        if (rejectedAt !== undefined)
          await documents.write<KeyRejection>(rejectionKey, () => ({ rejectedAt }), linkTtlMs);
        await disableLinks();
      },
    };
  };
  return {
    forTenant,
    links: {
      find: async (link, name) => {
        const { doc } = await documents.read<LinkDocument>(getLinkKey(link));
        if (doc === undefined || doc.name !== name) return undefined;
        const file = await forTenant(doc.tenantId).openLink(link);
        return file ? { tenantId: doc.tenantId, file } : 'ended';
      },
      disable: (tenantId, mayHaveCalls) => {
        const rejectedAt = mayHaveCalls ? getTime() : undefined;
        return queue.write(() => forTenant(tenantId).reject(rejectedAt));
      },
    },
  };
}

/**
 * The owner and the name of the file to which a download link leads. The owner is stored because the link works without
 * an API key.
 */
interface LinkDocument {
  tenantId: string;
  name: string;
}
