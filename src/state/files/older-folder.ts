import { readdir, readFile, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { DatasetRecord } from '../dataset.ts';
import { parsedLine, recordOfLine } from '../record-lines.ts';
import { unless } from './file-lock.ts';

const markFile = 'dataset.json';
const Mark = z.object({ format: z.number(), baseUrl: z.string().catch('') });
const format = 1;
const segment = /^\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.jsonl$/;
const unfinished = /^\d{15}-[\da-f-]{36}\.jsonl\.tmp$/;

/** The first line of a segment that took the place of others. */
const mergedStart = '{"kind":"merged"';

interface OlderRecords {
  baseUrl: string | undefined;
  /** In the order in which they came. */
  records: DatasetRecord[];
  /** Files whose lines are all among the records, and those of which some are not. */
  whole: string[];
  damaged: string[];
}

/** A dataset as earlier versions wrote it: a folder of files that nobody changes, of which each holds some records. */
export class OlderFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Nothing of it, and all of it is damaged, where a version wrote it that is not known here. */
  async read(): Promise<OlderRecords> {
    const text = await readFile(join(this.path, markFile), 'utf8').catch(unless('ENOENT', 'ENOTDIR'));
    const mark = text === undefined ? undefined : parsedLine(Mark, text);
    const found: OlderRecords = { baseUrl: mark?.baseUrl, records: [], whole: [], damaged: [] };
    if (mark && mark.format !== format) return { ...found, damaged: [this.path] };
    // No links, and no pipe, which would be waited for.
    const entries = await readdir(this.path, { withFileTypes: true }).catch(unless('ENOENT', 'ENOTDIR'));
    const names = entries?.filter((entry) => entry.isFile() && segment.test(entry.name)).map(({ name }) => name) ?? [];
    for (const path of names.sort().map((name) => join(this.path, name))) {
      // One that is gone, another process has moved into the new file.
      const content = await readFile(path, 'utf8').catch(({ code }) => (code === 'ENOENT' ? undefined : 'unreadable'));
      if (content === undefined) continue;
      const lines = content.split('\n').filter((line) => line !== '' && !line.startsWith(mergedStart));
      const records = lines.flatMap((line) => recordOfLine(line) ?? []);
      (records.length < lines.length ? found.damaged : found.whole).push(path);
      for (const record of records) found.records.push(record);
    }
    const orderOf = (record: DatasetRecord) => (record.kind === 'gathering' ? (record.step ?? 0) : record.order);
    found.records.sort((left, right) => orderOf(left) - orderOf(right));
    return found;
  }

  /**
   * Removes files of it, and the folder when they were the last ones; without them, all. Files of other programs stay.
   * @returns whether anything stayed
   */
  async remove(paths?: readonly string[]): Promise<boolean> {
    for (const path of paths ?? []) await rm(path, { force: true });
    const names = (await readdir(this.path).catch(unless('ENOENT'))) ?? [];
    if (paths && names.some((name) => segment.test(name))) return true;
    for (const name of names)
      if (name === markFile || segment.test(name) || unfinished.test(name)) await rm(join(this.path, name));
    const left = await readdir(this.path).catch(unless('ENOENT'));
    if (left?.length === 0) await rmdir(this.path).catch(unless('ENOENT', 'ENOTEMPTY', 'EEXIST'));
    return left !== undefined && left.length > 0;
  }
}
