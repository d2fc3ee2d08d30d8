import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { AdLibraryError } from '../../api/errors.ts';
import { parseJson } from '../../api/json.ts';
import { LockHeldError, withLock } from '../../lock.ts';
import type { Store } from '../storage.ts';
import { type CollectionRecord, type DocumentRecord, MemoryStore, type StoreRecord } from './memory.ts';

interface FileStoreOptions {
  path: string;
  /** The URL of the service whose data the file contains. */
  baseUrl: string;
  /** The time of this process, in milliseconds since 1970. */
  now: () => number;
  /** The memory limit for data that expires within a day. */
  maxBytes?: number;
}

/** The first line of a file, as JSON. Each file has another id, also a file that replaces another file at the same path. */
interface Header {
  format: number;
  id: string;
  baseUrl: string;
}
const format = 1;
const maxHeaderBytes = 4096;

const chunkBytes = 1024 * 1024;
/** The longest line of a file. An answer of the service has at most 8 MB. */
const maxLineBytes = 64 * 1024 * 1024;
/** A file is compacted when its superseded lines take at least this many bytes. */
const slackBytes = 1024 * 1024;
/** Data with a longer lifetime never expires in a file, because clocks can be wrong. A person can delete the file. */
const maxTtlMs = 86_400_000;
// These flags refuse symbolic links, and avoid waiting for a writer if the path is a pipe. Windows has neither of them.
const safeOpenFlags = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface Job {
  isWrite: boolean;
  work(memory: MemoryStore): Promise<unknown>;
  resolve(reply: never): void;
  reject(error: unknown): void;
}

/**
 * A store in a file. The file is a log of all changes, and each process applies the changes to a store in its memory.
 *
 * Any number of processes append to the file, one at a time. Each process first reads the lines that others have appended.
 * A change is on the disk before the call returns. An incomplete last line comes from a process that was killed or from a
 * full disk. The change in this line was never confirmed to a caller, so the next process that appends removes the line.
 */
export class FileStore implements Store {
  readonly #options: FileStoreOptions;
  #memory: MemoryStore;
  #changes: StoreRecord[] = [];
  /** The id of the file that was read, and the position after the last line that was read. */
  #fileId = '';
  #endPosition = 0;
  /** The inode, size and change time of the file after the last read. While they are equal, the file has not changed. */
  #fileStamp = '';
  #compactAboveBytes = 0;
  #jobs: Job[] = [];
  #isRunning = false;

  constructor(options: FileStoreOptions) {
    this.#options = options;
    this.#memory = this.#emptyMemory();
  }

  readDocument: Store['readDocument'] = (...args) => this.#enqueue(false, (memory) => memory.readDocument(...args));
  readItems: Store['readItems'] = (...args) => this.#enqueue(false, (memory) => memory.readItems(...args));
  readItemsSince: Store['readItemsSince'] = (...args) =>
    this.#enqueue(false, (memory) => memory.readItemsSince(...args));
  swapDocument: Store['swapDocument'] = (key, expected, { ttlMs, ...next }) =>
    // Removing a document that should not exist needs no write.
    this.#enqueue(expected !== '' || next.body !== undefined, (memory) =>
      memory.swapDocument(key, expected, { ...next, ttlMs: toStoredTtlMs(ttlMs) }),
    );
  putItems: Store['putItems'] = (name, changes, { ttlMs, maxBytes }) =>
    this.#enqueue(true, (memory) => memory.putItems(name, changes, { ttlMs: toStoredTtlMs(ttlMs), maxBytes }));

  #emptyMemory(): MemoryStore {
    const { now, maxBytes } = this.#options;
    const onChange = (record: StoreRecord) => void this.#changes.push(record);
    return new MemoryStore(now, { onChange, ...(maxBytes !== undefined && { maxBytes }) });
  }

  #enqueue<Reply>(isWrite: boolean, work: (memory: MemoryStore) => Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ isWrite, work, resolve, reject });
      if (!this.#isRunning) void this.#runJobs();
    });
  }

  /** Runs all jobs in order. Consecutive writes become one append, and consecutive reads share one read of the file. */
  async #runJobs(): Promise<void> {
    this.#isRunning = true;
    for (let [first] = this.#jobs; first !== undefined; [first] = this.#jobs) {
      const { isWrite } = first;
      const end = this.#jobs.findIndex((job) => job.isWrite !== isWrite);
      const jobs = this.#jobs.splice(0, end === -1 ? this.#jobs.length : end);
      try {
        const replies = await (isWrite
          ? this.#write(jobs)
          : this.#readIfChanged().then(() => this.#runAgainstMemory(jobs)));
        for (const [at, job] of jobs.entries()) job.resolve(replies[at] as never);
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

  async #runAgainstMemory(jobs: readonly Job[]): Promise<unknown[]> {
    const replies = [];
    for (const { work } of jobs) replies.push(await work(this.#memory));
    return replies;
  }

  /** Reads the lines that other processes have appended, if the file has changed. */
  async #readIfChanged(): Promise<void> {
    const stats = await lstat(this.#options.path, { bigint: true }).catch(ignoreErrorCodes('ENOENT'));
    const stamp = stats ? formatStamp(stats) : '';
    if (stamp === this.#fileStamp && stamp !== '') return;
    const file = stats && (await this.#open(constants.O_RDONLY));
    if (file === undefined) return this.#reset('');
    await withClosing(file, () => this.#readAppended(file));
    this.#fileStamp = stamp;
  }

  async #write(jobs: readonly Job[]): Promise<unknown[]> {
    const { path, baseUrl } = this.#options;
    if (this.#endPosition === 0) {
      await createPrivateFolder(dirname(path));
      await securePrivateFolder(dirname(path));
    }
    return withLock(lockPathOf(path), async () => {
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
        // Some changes in memory may be missing in the file, so the file is read again from its start.
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

  /** Replaces the file by a shorter one if most of its lines are superseded. */
  async #compact(): Promise<void> {
    if (this.#endPosition <= Math.max(slackBytes, this.#compactAboveBytes)) return;
    this.#memory.removeExpired();
    // Base64 makes a line a third larger than its content.
    if (this.#endPosition <= 3 * this.#memory.bytes + slackBytes) return;
    // If compacting fails, for example because the disk is full, it is attempted again when the file has doubled.
    this.#compactAboveBytes = 2 * this.#endPosition;
    const { path, baseUrl } = this.#options;
    const [id, tempFile] = [randomUUID(), `${path}.part`];
    let end = 0;
    try {
      const file = await open(
        tempFile,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | safeOpenFlags,
        0o600,
      );
      const append = async (line: string) => {
        const bytes = Buffer.from(line);
        await file.writeFile(bytes);
        end += bytes.length;
      };
      // The whole file is written to the disk before it gets its name.
      await withClosing(file, async () => {
        await append(formatHeader(id, baseUrl));
        for (const record of this.#memory.records()) await append(serializeRecord(record));
        await file.sync();
      });
      await rename(tempFile, path);
      await syncFolder(path);
      [this.#fileId, this.#endPosition, this.#fileStamp, this.#compactAboveBytes] = [id, end, '', 0];
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
    let number = 0;
    for await (const line of readLines(file, start, size)) {
      number++;
      const isHead = this.#endPosition === 0;
      const record = isHead ? undefined : parseRecord(line);
      if (record) this.#memory.apply(record);
      else if (!isHead) {
        if (start === 0) throw new Error(`line ${number} is damaged. Remove that line to lose only what it holds`);
        // An older copy may have replaced the file, so everything is read again.
        this.#reset(id);
        return this.#readAppended(file);
      }
      this.#endPosition += line.length + 1;
    }
  }

  #reset(id: string): void {
    this.#memory = this.#emptyMemory();
    this.#changes = [];
    this.#fileId = id;
    this.#endPosition = 0;
    this.#fileStamp = '';
  }
}

const unavailableFailure = { kind: 'unavailable', storage: 'data' } as const;

const lockPathOf = (path: string): string => `${path}.lock`;

const toStoredTtlMs = (ttlMs: number): number => (ttlMs > maxTtlMs ? Number.POSITIVE_INFINITY : ttlMs);

const formatStamp = ({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): string =>
  `${ino} ${size} ${mtimeNs}`;

const formatHeader = (id: string, baseUrl: string): string => `${JSON.stringify({ format, id, baseUrl })}\n`;

/**
 * Returns the id of a file; an empty text if the file has no complete first line.
 * @throws Error if the first line is damaged, or if another version of this program wrote the file
 */
async function readFileId(file: FileHandle): Promise<string> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(maxHeaderBytes), 0, maxHeaderBytes, 0);
  const end = buffer.indexOf(10);
  if (end === -1 && bytesRead < maxHeaderBytes) return '';
  const head = parseHeader(buffer.toString('utf8', 0, end));
  if (head === undefined) throw new Error('line 1 is damaged');
  if (head.format === format) return head.id;
  throw new Error(`another version of this program made it (format ${head.format}, not ${format})`);
}

function parseHeader(line: string): Header | undefined {
  const head = parseJson(line) as Partial<Header> | undefined;
  return typeof head?.id === 'string' && typeof head.baseUrl === 'string' ? (head as Header) : undefined;
}

/** Returns the URL of the service whose data a file contains; undefined if the first line is damaged. */
export async function readBaseUrl(path: string): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | safeOpenFlags);
  return withClosing(file, async () => {
    for await (const line of readLines(file, 0, Math.min((await file.stat()).size, maxHeaderBytes)))
      return parseHeader(String(line))?.baseUrl;
  });
}

/** Deletes the file of a store. A process that uses the file continues with an empty file. */
export async function deleteStoreFile(path: string): Promise<void> {
  await withLock(lockPathOf(path), async () => {
    for (const file of [path, `${path}.part`]) await rm(file, { force: true });
  });
}

/** Yields the complete lines of a range of a file, without the line feeds. An incomplete line at the end is left out. */
async function* readLines(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for (let position = start; position < end; ) {
    const size = Math.min(chunkBytes, end - position);
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(size), 0, size, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    const chunk = buffer.subarray(0, bytesRead);
    let at = 0;
    for (let feed = chunk.indexOf(10); feed !== -1; feed = chunk.indexOf(10, at)) {
      parts.push(chunk.subarray(at, feed));
      yield parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      [parts, length, at] = [[], 0, feed + 1];
    }
    parts.push(chunk.subarray(at));
    length += chunk.length - at;
    if (length > maxLineBytes) throw new Error(`it has a line of more than ${maxLineBytes} bytes`);
  }
}

/**
 * Formats a record as a line: a checksum, the metadata as JSON, a tab, and all bodies together in base64. The metadata
 * contains the length of each body. JSON writes an infinite expiry as null.
 */
function serializeRecord(record: StoreRecord): string {
  const bodies = 'key' in record ? [record.body] : record.items.map(({ body }) => body);
  const head = 'key' in record ? documentHead(record) : collectionHead(record);
  const text = `${JSON.stringify(head)}\t${Buffer.concat(bodies).toString('base64')}`;
  return `${computeChecksum(text)} ${text}\n`;
}

/** Returns the metadata of a document. The names of the fields are part of the file format. */
const documentHead = ({ body: _, ...head }: DocumentRecord) => head;

/** Returns the metadata of a collection. The names of the fields are part of the file format. */
const collectionHead = (record: CollectionRecord) => ({
  ...record,
  items: record.items.map(({ id, sequenceNumber, body }) => [id, sequenceNumber, body.length]),
});

const computeChecksum = (text: string | Buffer): string => crc32(text).toString(16).padStart(8, '0');

/** Parses a line; undefined if the line is damaged. */
function parseRecord(line: Buffer): StoreRecord | undefined {
  if (line.toString('latin1', 0, 8) !== computeChecksum(line.subarray(9))) return;
  const tab = line.indexOf(9);
  const head = JSON.parse(line.toString('utf8', 9, tab));
  const body = Buffer.from(line.toString('latin1', tab + 1), 'base64');
  const expiresAt = head.expiresAt ?? Number.POSITIVE_INFINITY;
  if ('key' in head) return { key: head.key, version: head.version, expiresAt, body };
  let start = 0;
  const items = head.items.map(([id, sequenceNumber, length]: [string, number, number]) => {
    start += length;
    return { id, sequenceNumber, body: body.subarray(start - length, start) };
  });
  const { name, generation, lastSequenceNumber, evictedThrough, evictedCounts } = head;
  return { name, generation, lastSequenceNumber, evictedThrough, evictedCounts, expiresAt, items };
}

/** Runs `work` and closes the file afterwards. */
async function withClosing<Result>(file: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await file.close();
  }
}

/**
 * Makes an existing folder accessible only to this user.
 * @throws Error if the path is a link or no folder, or if the folder belongs to another user
 */
export async function securePrivateFolder(path: string): Promise<void> {
  const stats = await lstat(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder`);
  if (process.getuid && stats.uid !== process.getuid()) throw new Error(`${path} belongs to another user`);
  await chmod(path, 0o700);
}

/**
 * Writes the folder of a file to the disk, so that the name of the file survives a crash of the machine. Does nothing on
 * Windows, which cannot do this.
 */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), constants.O_RDONLY).catch(() => undefined);
  await folder?.sync().catch(() => {});
  await folder?.close();
}

/**
 * Creates a folder that only this user can access, and its missing parent folders. The levels are created one after the
 * other, because the option `recursive` of `mkdir` never returns on file systems that answer ENOENT, such as `/proc`.
 */
export async function createPrivateFolder(path: string): Promise<void> {
  const exists = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (await exists()) return;
  if (dirname(path) !== path) await createPrivateFolder(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await exists())) throw error;
  });
}

/** Returns an error handler that ignores errors with these codes and throws all others. */
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

/** Returns the reason of a file system error in words. */
export const explainFileError = (error: unknown): string => {
  // An error about a lock file has the error of the file system as its cause.
  const { code = '', message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return reasonsByCode[code] ?? (message || code);
};
