import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as z from 'zod';
import { parseJson } from '../../api/json.ts';
import { withLock } from '../../lock.ts';
import { parsedLine } from '../record-lines.ts';
import { makeFolder, unless } from './folder.ts';

/** A reader that follows an account file. */
export interface LineReader {
  take(line: Buffer): void;
  /** Forgets all lines, because another file took the place of the file. Its lines follow. */
  startOver(): void;
  /** Lines that stand for all lines that the reader took. */
  lines(): Iterable<string>;
  /** Lines that the reader could not take. */
  others(): readonly Buffer[];
}

const Head = z.object({ kind: z.literal('account'), format: z.number(), id: z.string(), baseUrl: z.string() });
const format = 1;
const maxHeadBytes = 4096;
const chunkBytes = 256 * 1024;
/** An answer has 8 MB at most. */
const maxLineBytes = 64 * 1024 * 1024;
// Windows has neither flag. Without it, opening a pipe would wait for a writer.
const noLinks = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * The file of one account: a line of JSON for each event, in the order in which they came. Any number of processes
 * append to it, one at a time, each after it has read the lines of the others. Appended lines are on the disk before
 * the call returns. A line that was cut off, because its process was killed or the disk was full, was never
 * acknowledged.
 */
export class AccountFile {
  readonly path: string;
  readonly #baseUrl: string;
  readonly #reader: LineReader;
  /** The id of the file that was read. A file that takes its place has another id. */
  #id = '';
  /** The position behind the lines that were read. */
  #end = 0;

  constructor(path: string, baseUrl: string, reader: LineReader) {
    this.path = path;
    this.#baseUrl = baseUrl;
    this.#reader = reader;
  }

  get bytes(): number {
    return this.#end;
  }

  /** Reads what others have appended. */
  async follow(): Promise<void> {
    const file = await this.#open(constants.O_RDONLY);
    if (file === undefined) return this.#startOver('');
    await closing(file, () => this.#read(file));
  }

  /**
   * Appends lines behind those of others, which are read first.
   * @param linesOf runs once nobody else can write any more; again, if the file turns out to be another one
   * @param isReadBack compares what then is in the file
   */
  async append(linesOf: () => readonly string[], isReadBack = false): Promise<void> {
    await this.#locked(async () => {
      // A process that was suspended and lost the lock may find another file here.
      for (let isThere = false; !isThere; isThere = (await this.#idAtPath()) === this.#id) {
        const file = (await this.#open(constants.O_RDWR | constants.O_APPEND | constants.O_CREAT)) as FileHandle;
        await closing(file, async () => {
          await this.#readToEnd(file);
          const start = this.#end;
          const bytes = Buffer.from(
            linesOf()
              .map((line) => `${line}\n`)
              .join(''),
          );
          await file.appendFile(bytes);
          await file.datasync();
          if (isReadBack && !(await rangeOf(file, start, start + bytes.length)).equals(bytes))
            throw new Error(`${this.path} does not hold what was written`);
          const { size } = await file.stat();
          if (size === start + bytes.length) this.#end = size;
        });
      }
    });
  }

  /** Writes the file anew, with lines that stand for all its lines. */
  async compact(): Promise<void> {
    await this.#locked(async () => {
      const file = await this.#open(constants.O_RDWR | constants.O_APPEND);
      if (file === undefined) return;
      const id = randomUUID();
      let end = 0;
      const writeTo = async (next: FileHandle) => {
        const write = async (bytes: Uint8Array) => {
          await next.writeFile(bytes);
          end += bytes.length;
        };
        await this.#readToEnd(file);
        await write(Buffer.from(`${this.#head(id)}\n`));
        for (const line of this.#reader.others()) await write(Buffer.concat([line, Buffer.from('\n')]));
        let lines = '';
        for (const line of this.#reader.lines()) {
          lines += `${line}\n`;
          if (lines.length < chunkBytes) continue;
          await write(Buffer.from(lines));
          lines = '';
        }
        await write(Buffer.from(lines));
        if ((await file.stat()).size !== this.#end) throw new Error(`${this.path} changed while it was written anew`);
      };
      await closing(file, () => replaceFile(this.path, writeTo));
      this.#id = id;
      this.#end = end;
    });
  }

  async #locked(work: () => Promise<void>): Promise<void> {
    await (this.#end === 0 ? ownFolder : makeFolder)(dirname(this.path));
    await withLock(`${this.path}.lock`, work);
  }

  async #open(flags: number): Promise<FileHandle | undefined> {
    const file = await open(this.path, flags | noLinks, 0o600).catch(unless('ENOENT'));
    if (file === undefined || (await file.stat()).isFile()) return file;
    await file.close();
    throw new Error(`${this.path} is not a file`);
  }

  /** Reads to the end under the lock: nobody is still writing the last line. */
  async #readToEnd(file: FileHandle): Promise<void> {
    await this.#read(file);
    const { size } = await file.stat();
    if (size > this.#end) {
      const isWhole = parseJson(String(await rangeOf(file, this.#end, size))) !== undefined;
      if (isWhole) await file.appendFile('\n');
      else await file.truncate(this.#end);
      if (isWhole) await this.#read(file);
    }
    if (this.#end > 0) return;
    const id = randomUUID();
    await file.appendFile(`${this.#head(id)}\n`);
    await syncFolder(this.path);
    await this.#read(file);
  }

  async #read(file: FileHandle): Promise<void> {
    const { size } = await file.stat();
    const id = size === 0 ? '' : await idOf(file, this.path);
    if (id !== this.#id || size < this.#end) this.#startOver(id);
    let rest: Buffer = Buffer.alloc(0);
    // Lines that are appended meanwhile may take the place of a line that was cut off.
    for (let position = this.#end; position < size; ) {
      const chunk = await rangeOf(file, position, Math.min(size, position + chunkBytes));
      if (chunk.length === 0) return;
      position += chunk.length;
      rest = Buffer.concat([rest, chunk]);
      for (let feed = rest.indexOf(10); feed !== -1; feed = rest.indexOf(10)) {
        const [start, line] = [this.#end, rest.subarray(0, feed)];
        this.#end += feed + 1;
        rest = rest.subarray(feed + 1);
        const isHead = start === 0 && id !== damaged;
        if (feed > 0 && !isHead) this.#reader.take(line);
      }
      if (rest.length > maxLineBytes) throw new Error(`${this.path} has a line of more than ${maxLineBytes} bytes`);
    }
  }

  #startOver(id: string): void {
    if (this.#id !== '') this.#reader.startOver();
    this.#id = id;
    this.#end = 0;
  }

  async #idAtPath(): Promise<string | undefined> {
    const file = await this.#open(constants.O_RDONLY);
    return file && closing(file, () => idOf(file, this.path));
  }

  #head(id: string): string {
    return JSON.stringify({ kind: 'account', format, id, baseUrl: this.#baseUrl });
  }
}

const damaged = 'damaged';

/** The identity of a file, which differs for a file that takes its place. */
async function idOf(file: FileHandle, path: string): Promise<string> {
  const [line = ''] = String(await rangeOf(file, 0, maxHeadBytes)).split('\n');
  const head = headIn(line);
  if (head !== undefined && head.format !== format)
    throw new Error(`${path} was written by another version of this program`);
  return head?.id ?? damaged;
}

/** What a file says of itself in its first line. */
export const headIn = (line: string) => parsedLine(Head, line);

async function rangeOf(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start);
  let length = 0;
  for (let bytesRead = -1; bytesRead !== 0 && length < bytes.length; length += bytesRead)
    ({ bytesRead } = await file.read(bytes, length, bytes.length - length, start + length));
  return bytes.subarray(0, length);
}

/** Writes a file anew. All of it is on the disk before it has its name. */
export async function replaceFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const part = `${path}.part`;
  try {
    const file = await open(part, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | noLinks, 0o600);
    await closing(file, async () => {
      await write(file);
      await file.sync();
    });
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  await syncFolder(path);
}

async function closing<Result>(file: FileHandle, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    await file.close();
  }
}

/** A mode for the owner alone. */
export async function ownFolder(path: string): Promise<void> {
  await makeFolder(path);
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
