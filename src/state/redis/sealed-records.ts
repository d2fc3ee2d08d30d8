import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { DatasetRecord } from '../dataset-record.ts';
import { lineOf, recordOfLine } from '../record-lines.ts';
import type { Seal } from './seal.ts';

const [compress, decompress] = [promisify(deflateRaw), promisify(inflateRaw)];

/** Characters of the lines in one part; a single line may have more. */
const PART_CHARS = 512 * 1024;
/** Bytes of the lines in a part that is read: an answer of the service has 8 MB at most. */
const MAX_PART_BYTES = 64 * 1024 * 1024;
/** Lines read or written before others get their turn. */
const LINES_AT_ONCE = 100;

/** Writes the records of one dataset as parts, and reads them. */
export interface SealedRecords {
  write(records: Iterable<DatasetRecord>): AsyncGenerator<Buffer>;
  /** What is damaged is left out. */
  read(part: Buffer): AsyncGenerator<DatasetRecord[]>;
}

/** Parts are lines of JSON, compressed and sealed for one dataset. */
export function sealedRecords(seal: Seal, dataset: string): SealedRecords {
  const partOf = async (lines: readonly string[]) => seal.close(dataset, await compress(lines.join('\n')));
  return {
    async *write(records) {
      let lines: string[] = [];
      let chars = 0;
      for (const record of records) {
        const line = lineOf(record);
        lines.push(line);
        chars += line.length;
        if (lines.length % LINES_AT_ONCE === 0) await setImmediate();
        if (chars < PART_CHARS) continue;
        yield await partOf(lines);
        lines = [];
        chars = 0;
      }
      if (lines.length > 0) yield await partOf(lines);
    },
    async *read(part) {
      const opened = seal.open(dataset, part);
      const text = opened && (await decompress(opened, { maxOutputLength: MAX_PART_BYTES }).catch(() => undefined));
      if (text === undefined) return;
      const lines = String(text).split('\n');
      for (let start = 0; start < lines.length; start += LINES_AT_ONCE) {
        yield lines.slice(start, start + LINES_AT_ONCE).flatMap((line) => recordOfLine(line) ?? []);
        await setImmediate();
      }
    },
  };
}
