import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import * as z from 'zod';

/** What a folder says of itself. */
export interface FolderMark {
  format: number;
  /** Another one after the folder was cleared. */
  generation: string;
  baseUrl: string;
}

const MARK_FILE = 'dataset.json';
const FORMAT = 1;
const SEGMENT = /^\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.jsonl$/;
const UNFINISHED = /^\d{15}-[\da-f-]{36}\.jsonl\.tmp$/;
const MAX_NAMES = 20_000;
/** Segments are written with about a quarter of it at most. */
const MAX_SEGMENT_BYTES = 64 * 1024 * 1024;
/** A process that has not finished a segment by then, in milliseconds, never will. */
const UNFINISHED_MS = 3_600_000;
const onlyForOwner = { folder: 0o700, file: 0o600 };

export interface SegmentFolderOptions {
  path: string;
  baseUrl: string;
  now: () => number;
}

/**
 * A folder of segments: files of JSON Lines that appear whole and are never changed, so that any number of processes may
 * add some, and one that is killed leaves none half written.
 */
export class SegmentFolder {
  readonly path: string;
  readonly #options: SegmentFolderOptions;
  #lastTime = 0;

  constructor(options: SegmentFolderOptions) {
    this.path = options.path;
    this.#options = options;
  }

  /** Creates the folder if it is not there. Returns its generation. */
  async open(): Promise<string> {
    await mkdir(this.path, { recursive: true, mode: onlyForOwner.folder });
    const found = await lstat(this.path);
    if (!found.isDirectory()) throw new Error(`${this.path} is not a folder`);
    if (process.getuid && found.uid !== process.getuid()) throw new Error(`${this.path} belongs to another user`);
    await chmod(this.path, onlyForOwner.folder);
    const mark: FolderMark = { format: FORMAT, generation: randomUUID(), baseUrl: this.#options.baseUrl };
    const file = join(this.path, MARK_FILE);
    await writeFile(file, `${JSON.stringify(mark)}\n`, { flag: 'wx', mode: onlyForOwner.file }).catch(unless('EEXIST'));
    return (await this.generation()) ?? '';
  }

  /** Undefined if the folder is not there. */
  async generation(): Promise<string | undefined> {
    const mark = await this.mark();
    if (mark !== undefined && mark.format !== FORMAT)
      throw new Error(`${this.path} was written by another version of this program`);
    return mark?.generation;
  }

  /** Undefined if there is none. */
  async mark(): Promise<FolderMark | undefined> {
    const read = () => readFile(join(this.path, MARK_FILE), 'utf8').catch(unless('ENOENT'));
    let text = await read();
    if (text === '') {
      // Another process is about to write it.
      await setTimeout(50);
      text = await read();
    }
    return text === undefined ? undefined : markOf(text);
  }

  /** The names of all segments, the earliest first. Anything else is left alone, links too. */
  async names(): Promise<string[]> {
    const entries = await readdir(this.path, { withFileTypes: true }).catch(unless('ENOENT'));
    const segments = (entries ?? []).filter((entry) => entry.isFile() && SEGMENT.test(entry.name));
    return segments
      .map(({ name }) => name)
      .sort()
      .slice(-MAX_NAMES);
  }

  /** The lines of a segment; undefined if it is gone, because another process has merged it. */
  async read(name: string): Promise<string[] | undefined> {
    const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
    const file = await open(join(this.path, name), flags).catch(unless('ENOENT'));
    if (file === undefined) return;
    try {
      const { size } = await file.stat();
      if (size > MAX_SEGMENT_BYTES) throw new Error(`it has ${size} bytes`);
      const text = await file.readFile('utf8');
      return text.split('\n').filter((line) => line !== '');
    } finally {
      await file.close();
    }
  }

  /** Writes a segment. Returns its name. */
  async write(lines: readonly string[]): Promise<string> {
    this.#lastTime = Math.max(this.#options.now(), this.#lastTime + 1);
    const name = `${String(this.#lastTime).padStart(15, '0')}-${randomUUID()}.jsonl`;
    const path = join(this.path, name);
    const file = await open(`${path}.tmp`, 'wx', onlyForOwner.file);
    try {
      await file.writeFile(`${lines.join('\n')}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${path}.tmp`, path);
    return name;
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(join(this.path, name), { force: true });
  }

  /** Removes what processes that were killed left behind. */
  async removeUnfinished(): Promise<void> {
    const names = await readdir(this.path);
    for (const name of names.filter((one) => UNFINISHED.test(one))) {
      const found = await stat(join(this.path, name)).catch(unless('ENOENT'));
      if (found && this.#options.now() - found.mtimeMs > UNFINISHED_MS) await this.remove([name]);
    }
  }
}

/** Whether this program wrote a file of that name. */
export const isOurs = (name: string): boolean => name === MARK_FILE || SEGMENT.test(name) || UNFINISHED.test(name);

const Mark = z.object({ format: z.number(), generation: z.string(), baseUrl: z.string().catch('') });

/** A damaged mark is one that never changes. */
function markOf(text: string): FolderMark {
  try {
    return Mark.parse(JSON.parse(text));
  } catch {
    return { format: FORMAT, generation: '', baseUrl: '' };
  }
}

/** A handler for one error that is expected. */
export const unless =
  (code: string) =>
  (error: NodeJS.ErrnoException): undefined => {
    if (error.code !== code) throw error;
  };
