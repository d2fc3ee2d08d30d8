import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { AdLibraryError } from '../../api/errors.ts';
import { parseJson } from '../../api/json.ts';
import { LockHeldError, withLock } from '../../lock.ts';
import type { Store } from '../storage.ts';
import { type CollectionRecord, type DocumentRecord, MemoryStore, type StoreChange } from './memory.ts';

interface FileStoreOptions {
  path: string;
  /** The base URL of the API from which the data comes. The `files` command shows this URL for each file. */
  baseUrl: string;
  /** Returns the time of this process's clock, in milliseconds since 1970. */
  now: () => number;
  /** The memory limit, in bytes, for data that expires within a day. Other data has no limit. */
  maxBytes?: number;
}

/**
 * The first line of a store's file, as JSON. Each file has a different id, so that a process can detect that another
 * file has replaced the file at the same path.
 */
interface FileHeader {
  format: number;
  id: string;
  baseUrl: string;
}
const fileFormatVersion = 1;
const maxHeaderBytes = 4096;

const chunkBytes = 1024 * 1024;
/** The maximum length of a line, in bytes. No line reaches this length, because an API response has at most 8 MB. */
const maxLineBytes = 64 * 1024 * 1024;
/**
 * A file is compacted (rewritten without outdated lines) only if its outdated lines have at least this size, in bytes.
 * A line is outdated if a later line replaces it.
 */
const minOutdatedBytes = 1024 * 1024;
/**
 * The longest lifetime, in milliseconds, with which data in a file expires. Data with a longer lifetime never expires,
 * because a wrong clock could otherwise delete the user's data. Users can delete the file themselves.
 */
const maxTtlMs = 86_400_000;
// `O_NOFOLLOW` refuses symbolic links. `O_NONBLOCK` prevents the process from waiting for a writer if the path is a
// named pipe. Windows has neither flag.
const safeOpenFlags = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface StoreJob {
  isWrite: boolean;
  work(memory: MemoryStore): Promise<unknown>;
  resolve(reply: never): void;
  reject(error: unknown): void;
}

/**
 * A store in a file. The file is a log of all changes, and each process applies these changes to a store in memory.
 *
 * Any number of processes can append to the file, one at a time. Before a process appends, it reads the lines that
 * other processes have appended. A write returns only when the change is on disk. If a process is killed or the disk is
 * full, the last line may be incomplete. The write of this line has not returned, so the next process may remove the
 * line.
 */
export class FileStore implements Store {
  readonly #options: FileStoreOptions;
  #memory: MemoryStore;
  #changes: StoreChange[] = [];
  /** The id of the file that was read last, and the position after its last complete line, in bytes. */
  #fileId = '';
  #endPosition = 0;
  /**
   * The inode, size and modification time of the file when it was last read. If they are unchanged, the file need not
   * be read again.
   */
  #fileStamp = '';
  #compactAboveBytes = 0;
  #jobs: StoreJob[] = [];
  #isRunning = false;

  constructor(options: FileStoreOptions) {
    this.#options = options;
    this.#memory = this.#createEmptyMemory();
  }

  readDocument: Store['readDocument'] = (...args) => this.#enqueue(false, (memory) => memory.readDocument(...args));
  readItems: Store['readItems'] = (...args) => this.#enqueue(false, (memory) => memory.readItems(...args));
  readItemsSince: Store['readItemsSince'] = (...args) =>
    this.#enqueue(false, (memory) => memory.readItemsSince(...args));
  swapDocument: Store['swapDocument'] = (key, expectedVersion, { ttlMs, ...next }) =>
    // A swap that expects no document (its `expectedVersion` is `''`) and has no new body changes nothing. Such a swap
    // counts as a read, because reads do not lock the file.
    this.#enqueue(expectedVersion !== '' || next.body !== undefined, (memory) =>
      memory.swapDocument(key, expectedVersion, { ...next, ttlMs: toStoredTtlMs(ttlMs) }),
    );
  putItems: Store['putItems'] = (name, changes, { ttlMs, maxBytes }) =>
    this.#enqueue(true, (memory) => memory.putItems(name, changes, { ttlMs: toStoredTtlMs(ttlMs), maxBytes }));

  #createEmptyMemory(): MemoryStore {
    const { now, maxBytes } = this.#options;
    const onChange = (record: StoreChange) => void this.#changes.push(record);
    return new MemoryStore(now, { onChange, ...(maxBytes !== undefined && { maxBytes }) });
  }

  #enqueue<Reply>(isWrite: boolean, work: (memory: MemoryStore) => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ isWrite, work, resolve, reject });
      if (!this.#isRunning) void this.#runJobs();
    });
  }

  /**
   * Runs all jobs in order. Combines consecutive writes into one append, so that the file is synced to disk only once.
   * Also combines consecutive reads.
   */
  async #runJobs(): Promise<void> {
    this.#isRunning = true;
    for (let [firstJob] = this.#jobs; firstJob !== undefined; [firstJob] = this.#jobs) {
      const { isWrite } = firstJob;
      const endIndex = this.#jobs.findIndex((job) => job.isWrite !== isWrite);
      const jobs = this.#jobs.splice(0, endIndex === -1 ? this.#jobs.length : endIndex);
      try {
        const replies = await (isWrite
          ? this.#write(jobs)
          : this.#readIfChanged().then(() => this.#runAgainstMemory(jobs)));
        for (const [index, job] of jobs.entries()) job.resolve(replies[index] as never);
      } catch (cause) {
        const verb = isWrite ? 'written' : 'read';
        const problem = `${this.#options.path} cannot be ${verb}: ${explainFileError(cause).replace(/\.$/, '')}.`;
        const isLocked = cause instanceof LockHeldError;
        const failure = isLocked ? ({ kind: 'busy', storage: 'lock' } as const) : unavailableFailure;
        const error = new AdLibraryError({ ...failure, problem }, { cause });
        for (const job of jobs) job.reject(error);
      }
    }
    this.#isRunning = false;
  }

  async #runAgainstMemory(jobs: readonly StoreJob[]): Promise<unknown[]> {
    const replies = [];
    for (const { work } of jobs) replies.push(await work(this.#memory));
    return replies;
  }

  /**
   * Reads the lines that other processes have appended. Does nothing if the file has not changed since the last read.
   */
  async #readIfChanged(): Promise<void> {
    const stats = await lstat(this.#options.path, { bigint: true }).catch(ignoreErrorCodes('ENOENT'));
    const fileStamp = stats ? formatStamp(stats) : '';
    if (fileStamp === this.#fileStamp && fileStamp !== '') return;
    const file = stats && (await this.#open(constants.O_RDONLY));
    if (file === undefined) return this.#reset('');
    await withClosing(file, () => this.#readAppended(file));
    this.#fileStamp = fileStamp;
  }

  async #write(jobs: readonly StoreJob[]): Promise<unknown[]> {
    const { path, baseUrl } = this.#options;
    if (this.#endPosition === 0) {
      await createPrivateFolder(dirname(path));
      await securePrivateFolder(dirname(path));
    }
    return withLock(getLockPath(path), async () => {
      const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
      const file = (await this.#open(flags)) as FileHandle;
      return withClosing(file, async () => {
        await this.#readAppended(file);
        await file.truncate(this.#endPosition);
        if (this.#endPosition === 0) {
          this.#fileId = randomUUID();
          await this.#append(file, formatHeader(this.#fileId, baseUrl));
          await syncFolder(path);
        }
        const replies = await this.#runAgainstMemory(jobs);
        const lines = this.#changes.map(serializeRecord).join('');
        this.#changes = [];
        if (lines !== '') await this.#append(file, lines);
        this.#fileStamp = formatStamp(await file.stat({ bigint: true }));
        await this.#compact();
        return replies;
      }).catch((error) => {
        // Read the whole file again. The write failed, so the store in memory may contain changes that the file does
        // not.
        this.#reset('');
        throw error;
      });
    });
  }

  async #append(file: FileHandle, lines: string): Promise<void> {
    const bytes = Buffer.from(lines);
    await file.appendFile(bytes);
    await file.datasync();
    this.#endPosition += bytes.length;
  }

  /**
   * Rewrites the file without its outdated lines, which later lines have replaced. Does nothing if the outdated lines
   * take little space.
   */
  async #compact(): Promise<void> {
    if (this.#endPosition <= Math.max(minOutdatedBytes, this.#compactAboveBytes)) return;
    this.#memory.removeExpired();
    // Compact the file only if it is more than three times as large as its content. The factor is high, because base64
    // makes lines a third longer than their content.
    if (this.#endPosition <= 3 * this.#memory.bytes + minOutdatedBytes) return;
    // If compacting fails, e.g. because the disk is full, try again only when the file has grown to twice its size.
    this.#compactAboveBytes = 2 * this.#endPosition;
    const { path, baseUrl } = this.#options;
    const [id, tempFile] = [randomUUID(), `${path}.part`];
    let newEndPosition = 0;
    try {
      const file = await open(
        tempFile,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | safeOpenFlags,
        0o600,
      );
      const append = async (line: string) => {
        const bytes = Buffer.from(line);
        await file.writeFile(bytes);
        newEndPosition += bytes.length;
      };
      // Sync the temporary file to disk before renaming it. Otherwise, a crash could leave an incomplete file under the
      // final name.
      await withClosing(file, async () => {
        await append(formatHeader(id, baseUrl));
        for (const record of this.#memory.listRecords()) await append(serializeRecord(record));
        await file.sync();
      });
      await rename(tempFile, path);
      await syncFolder(path);
      [this.#fileId, this.#endPosition, this.#fileStamp, this.#compactAboveBytes] = [id, newEndPosition, '', 0];
    } catch {
      await rm(tempFile, { force: true }).catch(() => {});
    }
  }

  async #open(flags: number): Promise<FileHandle | undefined> {
    const file = await open(this.#options.path, flags | safeOpenFlags, 0o600).catch(ignoreErrorCodes('ENOENT'));
    if (file === undefined || (await file.stat()).isFile()) return file;
    await file.close();
    throw new Error('it is not a file');
  }

  async #readAppended(file: FileHandle): Promise<void> {
    const { size } = await file.stat();
    const id = await readFileId(file);
    if (id !== this.#fileId || size < this.#endPosition) this.#reset(id);
    const start = this.#endPosition;
    let lineNumber = 0;
    for await (const line of readLines(file, start, size)) {
      lineNumber++;
      const isHeader = this.#endPosition === 0;
      const record = isHeader ? undefined : parseRecord(line);
      if (record) this.#memory.applyRecord(record);
      else if (!isHeader) {
        if (start === 0)
          throw new Error(`line ${lineNumber} is damaged. Remove that line to keep the rest of the data`);
        // Either the line is damaged, or an older copy has replaced the file. Read the whole file again.
        this.#reset(id);
        return this.#readAppended(file);
      }
      this.#endPosition += line.length + 1;
    }
  }

  #reset(id: string): void {
    this.#memory = this.#createEmptyMemory();
    this.#changes = [];
    this.#fileId = id;
    this.#endPosition = 0;
    this.#fileStamp = '';
  }
}

const unavailableFailure = { kind: 'unavailable', storage: 'data' } as const;

const getLockPath = (path: string): string => `${path}.lock`;

const toStoredTtlMs = (ttlMs: number): number => (ttlMs > maxTtlMs ? Number.POSITIVE_INFINITY : ttlMs);

const formatStamp = ({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): string =>
  `${ino} ${size} ${mtimeNs}`;

const formatHeader = (id: string, baseUrl: string): string =>
  `${JSON.stringify({ format: fileFormatVersion, id, baseUrl })}\n`;

/**
 * Reads the id from the first line of a file. Returns an empty string if this line is incomplete.
 * @throws Error if the line is damaged, or if another version of this server with a different file format wrote it
 */
async function readFileId(file: FileHandle): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(maxHeaderBytes), 0, maxHeaderBytes, 0);
  const lineEndIndex = buffer.indexOf(10);
  if (lineEndIndex === -1 && bytesRead < maxHeaderBytes) return '';
  const header = parseHeader(buffer.toString('utf8', 0, lineEndIndex));
  if (header === undefined) throw new Error('line 1 is damaged');
  if (header.format === fileFormatVersion) return header.id;
  throw new Error(`another version of this program wrote it (format ${header.format} instead of ${fileFormatVersion})`);
}

function parseHeader(line: string): FileHeader | undefined {
  const header = parseJson(line) as Partial<FileHeader> | undefined;
  return typeof header?.id === 'string' && typeof header.baseUrl === 'string' ? (header as FileHeader) : undefined;
}

/**
 * Reads the base URL of the API from the first line of a file. The data in the file comes from this API. Returns
 * undefined if the line is damaged.
 */
export async function readBaseUrl(path: string): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | safeOpenFlags);
  return withClosing(file, async () => {
    for await (const line of readLines(file, 0, Math.min((await file.stat()).size, maxHeaderBytes)))
      return parseHeader(String(line))?.baseUrl;
  });
}

/** Deletes the file of a store. A running process that uses this file continues with an empty store. */
export async function deleteStoreFile(path: string): Promise<void> {
  await withLock(getLockPath(path), async () => {
    for (const file of [path, `${path}.part`]) await rm(file, { force: true });
  });
}

/**
 * Yields the complete lines between two byte positions of a file, without line feeds. Skips an incomplete last line.
 */
async function* readLines(file: FileHandle, startPosition: number, endPosition: number): AsyncGenerator<Buffer> {
  let lineParts: Buffer[] = [];
  let lineLength = 0;
  for (let position = startPosition; position < endPosition; ) {
    const size = Math.min(chunkBytes, endPosition - position);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(size), 0, size, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    const chunk = buffer.subarray(0, bytesRead);
    let lineStart = 0;
    for (let lineFeedIndex = chunk.indexOf(10); lineFeedIndex !== -1; lineFeedIndex = chunk.indexOf(10, lineStart)) {
      lineParts.push(chunk.subarray(lineStart, lineFeedIndex));
      yield lineParts.length === 1 ? (lineParts[0] as Buffer) : Buffer.concat(lineParts);
      [lineParts, lineLength, lineStart] = [[], 0, lineFeedIndex + 1];
    }
    lineParts.push(chunk.subarray(lineStart));
    lineLength += chunk.length - lineStart;
    if (lineLength > maxLineBytes) throw new Error(`it has a line of more than ${maxLineBytes} bytes`);
  }
}

/**
 * Serializes a record as one line: a checksum, metadata as JSON, a tab, and all bodies in base64. The metadata of a
 * collection contains the length of each body. An infinite `expiresAt` becomes null.
 */
function serializeRecord(record: StoreChange): string {
  const bodies = 'key' in record ? [record.body] : record.items.map(({ body }) => body);
  const metadata = 'key' in record ? getDocumentMetadata(record) : getCollectionMetadata(record);
  const lineText = `${JSON.stringify(metadata)}\t${Buffer.concat(bodies).toString('base64')}`;
  return `${computeChecksum(lineText)} ${lineText}\n`;
}

/**
 * Returns the fields of a document that the file contains as JSON. These field names must not change, because existing
 * files contain them.
 */
const getDocumentMetadata = ({ body: _, ...metadata }: DocumentRecord) => metadata;

/**
 * Returns the fields of a collection that the file contains as JSON. These field names must not change, because
 * existing files contain them.
 */
const getCollectionMetadata = (record: CollectionRecord) => ({
  ...record,
  items: record.items.map(({ id, sequenceNumber, body }) => [id, sequenceNumber, body.length]),
});

const computeChecksum = (text: string | Buffer): string => crc32(text).toString(16).padStart(8, '0');

/**
 * Parses a line that `serializeRecord` wrote. Returns undefined if the checksum of the line is wrong, because the line
 * is then damaged.
 */
function parseRecord(line: Buffer): StoreChange | undefined {
  if (line.toString('latin1', 0, 8) !== computeChecksum(line.subarray(9))) return;
  const tabIndex = line.indexOf(9);
  const metadata = JSON.parse(line.toString('utf8', 9, tabIndex));
  const body = Buffer.from(line.toString('latin1', tabIndex + 1), 'base64');
  const expiresAt = metadata.expiresAt ?? Number.POSITIVE_INFINITY;
  if ('key' in metadata) return { key: metadata.key, version: metadata.version, expiresAt, body };
  let start = 0;
  const items = metadata.items.map(([id, sequenceNumber, length]: [string, number, number]) => {
    start += length;
    return { id, sequenceNumber, body: body.subarray(start - length, start) };
  });
  const { name, generation, lastSequenceNumber, lastEvictedSequenceNumber, evictedCounts } = metadata;
  return {
    name,
    generation,
    lastSequenceNumber,
    lastEvictedSequenceNumber,
    evictedCounts,
    expiresAt,
    items,
  };
}

/** Runs `work` and then closes the file, even if `work` throws an error. */
async function withClosing<Result>(file: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await file.close();
  }
}

/**
 * Makes an existing folder accessible only to the current user (mode `0o700`).
 * @throws Error if the path is not a folder or is a symbolic link, or if the folder belongs to another user
 */
export async function securePrivateFolder(path: string): Promise<void> {
  const stats = await lstat(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder`);
  if (process.getuid && stats.uid !== process.getuid()) throw new Error(`${path} belongs to another user`);
  await chmod(path, 0o700);
}

/**
 * Syncs the folder of a file to disk, so that the file's name survives a crash of the machine. Does nothing on Windows,
 * where folders cannot be synced.
 */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), constants.O_RDONLY).catch(() => undefined);
  await folder?.sync().catch(() => {});
  await folder?.close();
}

/**
 * Creates a folder that only the current user can access, and its missing parents. Does not use `mkdir` with
 * `recursive`, because that call never returns on file systems such as `/proc`.
 */
export async function createPrivateFolder(path: string): Promise<void> {
  const folderExists = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (await folderExists()) return;
  if (dirname(path) !== path) await createPrivateFolder(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await folderExists())) throw error;
  });
}

/** Returns an error handler that ignores errors with the given codes, e.g. `ENOENT`, and rethrows all other errors. */
export const ignoreErrorCodes =
  (...codes: readonly string[]) =>
  (error: NodeJS.ErrnoException): undefined => {
    if (!codes.includes(error.code ?? '')) throw error;
  };

const reasonsByCode: Record<string, string> = {
  EEXIST: 'a file is in the way',
  ENOTDIR: 'a file is in the way',
  ELOOP: 'a link is in the way',
  EACCES: 'this server may not write there',
  EPERM: 'this server may not write there',
  EROFS: 'this server may not write there',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk is full',
  EFBIG: 'this server may not write such a large file',
};

/** Explains a file system error in words, e.g. `the disk is full`. */
export const explainFileError = (error: unknown): string => {
  // Use `cause` if it is set. An error from the lock file stores the original file system error there.
  const { code = '', message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return reasonsByCode[code] ?? (message || code);
};
