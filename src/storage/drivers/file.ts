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
  /** The service that the file is about. */
  baseUrl: string;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** The most bytes of what ends within a day. */
  maxBytes?: number;
}

/** What a file says of itself in its first line. The id differs for each file that takes the place of another. */
interface Header {
  format: number;
  id: string;
  baseUrl: string;
}
const format = 1;
const maxHeaderBytes = 4096;

const chunkBytes = 1024 * 1024;
/** An answer has 8 MB at most. */
const maxLineBytes = 64 * 1024 * 1024;
/** How many bytes beyond those of a file without superseded lines it may have before it is written anew. */
const slackBytes = 1024 * 1024;
/** What would live longer has no expiry and stays until a person deletes it, because clocks can be wrong. */
const maxTtlMs = 86_400_000;
// Windows has neither flag. Without it, opening a pipe would wait for a writer.
const safeOpenFlags = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

interface Job {
  isWrite: boolean;
  work(memory: MemoryStore): Promise<unknown>;
  resolve(reply: never): void;
  reject(error: unknown): void;
}

/**
 * The store in a file: a log of all changes over a store in memory. Any number of processes append to it, one at a time,
 * each after it has read what others appended. A change is on the disk before the call returns. Half a line was never
 * acknowledged, because its process was killed or the disk was full: the next process that appends removes it.
 */
export class FileStore implements Store {
  readonly #options: FileStoreOptions;
  #memory: MemoryStore;
  #changes: StoreRecord[] = [];
  /** The id of the file that was read, and the position behind the lines that were read. */
  #fileId = '';
  #endPosition = 0;
  /** Of the file as it was last seen: while it is equal, there is nothing new. */
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
    // What is not there need not be removed.
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

  /** One job after the other. Writes that wait together are one append. */
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
        const done = isWrite ? 'written' : 'read';
        const problem = `${this.#options.path} cannot be ${done}: ${explainFileError(cause).replace(/\.$/, '')}.`;
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

  /** Reads what others have appended. */
  async #readIfChanged(): Promise<void> {
    const found = await lstat(this.#options.path, { bigint: true }).catch(ignoreErrorCodes('ENOENT'));
    const stamp = found ? formatStamp(found) : '';
    if (stamp === this.#fileStamp && stamp !== '') return;
    const file = found && (await this.#open(constants.O_RDONLY));
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
        // What is in memory may not be in the file.
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

  /** Writes the file anew when most of its lines are superseded. */
  async #compact(): Promise<void> {
    if (this.#endPosition <= Math.max(slackBytes, this.#compactAboveBytes)) return;
    this.#memory.removeExpired();
    // A line has a third more bytes than what is in it.
    if (this.#endPosition <= 3 * this.#memory.bytes + slackBytes) return;
    // Not at once again, if the disk is full.
    this.#compactAboveBytes = 2 * this.#endPosition;
    const { path, baseUrl } = this.#options;
    const [id, part] = [randomUUID(), `${path}.part`];
    let end = 0;
    try {
      const file = await open(part, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | safeOpenFlags, 0o600);
      const append = async (line: string) => {
        const bytes = Buffer.from(line);
        await file.writeFile(bytes);
        end += bytes.length;
      };
      // All of it is on the disk before it has its name.
      await withClosing(file, async () => {
        await append(formatHeader(id, baseUrl));
        for (const record of this.#memory.records()) await append(serializeRecord(record));
        await file.sync();
      });
      await rename(part, path);
      await syncFolder(path);
      [this.#fileId, this.#endPosition, this.#fileStamp, this.#compactAboveBytes] = [id, end, '', 0];
    } catch {
      await rm(part, { force: true }).catch(() => {});
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
        // Perhaps an older copy took the place of the file.
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

/** Empty for a file without a whole first line. */
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

export async function readBaseUrl(path: string): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | safeOpenFlags);
  return withClosing(file, async () => {
    for await (const line of readLines(file, 0, Math.min((await file.stat()).size, maxHeaderBytes)))
      return parseHeader(String(line))?.baseUrl;
  });
}

/** Deletes a file. A process that uses it continues with an empty one. */
export async function deleteStoreFile(path: string): Promise<void> {
  await withLock(lockPathOf(path), async () => {
    for (const file of [path, `${path}.part`]) await rm(file, { force: true });
  });
}

/** The lines of a part of a file, without the line feed. Half a line at its end is left out. */
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

/** A checksum, the record with the lengths of its bodies, and the bodies in one. JSON has no infinity: it is null. */
function serializeRecord(record: StoreRecord): string {
  const bodies = 'key' in record ? [record.body] : record.items.map(({ body }) => body);
  const head = 'key' in record ? documentHead(record) : collectionHead(record);
  const text = `${JSON.stringify(head)}\t${Buffer.concat(bodies).toString('base64')}`;
  return `${computeChecksum(text)} ${text}\n`;
}

const documentHead = ({ key, version, expiresAt }: DocumentRecord) => ({ key, version, ends: expiresAt });

const collectionHead = (record: CollectionRecord) => ({
  name: record.name,
  epoch: record.generation,
  seq: record.lastSequenceNumber,
  floor: record.evictedThrough,
  gone: record.evictedCounts,
  ends: record.expiresAt,
  items: record.items.map(({ id, sequenceNumber, body }) => [id, sequenceNumber, body.length]),
});

const computeChecksum = (text: string | Buffer): string => crc32(text).toString(16).padStart(8, '0');

/** Undefined if the line is damaged. */
function parseRecord(line: Buffer): StoreRecord | undefined {
  if (line.toString('latin1', 0, 8) !== computeChecksum(line.subarray(9))) return;
  const tab = line.indexOf(9);
  const head = JSON.parse(line.toString('utf8', 9, tab));
  const body = Buffer.from(line.toString('latin1', tab + 1), 'base64');
  const expiresAt = head.ends ?? Number.POSITIVE_INFINITY;
  if ('key' in head) return { key: head.key, version: head.version, expiresAt, body };
  let start = 0;
  const items = head.items.map(([id, sequenceNumber, length]: [string, number, number]) => {
    start += length;
    return { id, sequenceNumber, body: body.subarray(start - length, start) };
  });
  const { name, epoch: generation, seq: lastSequenceNumber, floor: evictedThrough, gone: evictedCounts } = head;
  return { name, generation, lastSequenceNumber, evictedThrough, evictedCounts, expiresAt, items };
}

async function withClosing<Result>(file: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await file.close();
  }
}

/** Rejects a link, and a folder of somebody else. Closes the folder for all others. */
export async function securePrivateFolder(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a folder`);
  if (process.getuid && found.uid !== process.getuid()) throw new Error(`${path} belongs to another user`);
  await chmod(path, 0o700);
}

/** Writes a folder to disk, so that a file has its name after a crash of the machine. Windows cannot do this. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), constants.O_RDONLY).catch(() => undefined);
  await folder?.sync().catch(() => {});
  await folder?.close();
}

/**
 * Makes a folder for this user alone, with the folders above it. One level after the other: `recursive` never ends where
 * a file system refuses folders by saying that there is none above, as `/proc` does.
 */
export async function createPrivateFolder(path: string): Promise<void> {
  const isThere = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (await isThere()) return;
  if (dirname(path) !== path) await createPrivateFolder(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await isThere())) throw error;
  });
}

/** A handler that ignores errors with one of these codes, and throws all others. */
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

export const explainFileError = (error: unknown): string => {
  // The error of a lock that cannot be made explains itself.
  const { code = '', message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  return reasonsByCode[code] ?? (message || code);
};
