import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { DatasetRecord } from '../dataset-record.ts';
import { lineFeed, linesOf, recordsIn } from '../record-lines.ts';
import type { Seal } from '../store/seal.ts';

const [compress, decompress] = [promisify(deflateRaw), promisify(inflateRaw)];

/** Bytes of the records in one part; a single record may have more. */
const PART_BYTES = 512 * 1024;
/** Bytes of a part that is read: an answer of the service has 8 MB at most. */
const MAX_PART_BYTES = 64 * 1024 * 1024;
/** Records read or written before others get their turn. */
const RECORDS_AT_ONCE = 200;

/** Writes the records of one dataset as parts, and reads them. */
export interface SealedRecords {
  write(records: Iterable<DatasetRecord>): AsyncGenerator<Buffer>;
  /** What is damaged is left out. */
  read(part: Buffer): AsyncGenerator<DatasetRecord[]>;
  /** Whether there were records that another version of this program may be able to read. */
  hasUnknown(): boolean;
}

/** Parts are lines of JSON, compressed and sealed for one dataset. */
export function sealedRecords(seal: Seal, dataset: string): SealedRecords {
  let hasUnknown = false;
  const partOf = async (lines: readonly Uint8Array[]) => seal.close(dataset, await compress(Buffer.concat(lines)));
  return {
    hasUnknown: () => hasUnknown,
    async *write(records) {
      let lines: Uint8Array[] = [];
      let bytes = 0;
      let count = 0;
      for (const record of records) {
        for (const line of linesOf(record)) {
          lines.push(line, lineFeed);
          bytes += line.length + 1;
        }
        if (++count % RECORDS_AT_ONCE === 0) await setImmediate();
        if (bytes < PART_BYTES) continue;
        yield await partOf(lines);
        lines = [];
        bytes = 0;
      }
      if (lines.length > 0) yield await partOf(lines);
    },
    async *read(part) {
      const opened = seal.open(dataset, part);
      const lines = opened && (await decompress(opened, { maxOutputLength: MAX_PART_BYTES }).catch(() => undefined));
      let records: DatasetRecord[] = [];
      for (const record of recordsIn(lines ?? Buffer.of())) {
        if (record === undefined) hasUnknown = true;
        else records.push(record);
        if (records.length < RECORDS_AT_ONCE) continue;
        yield records;
        records = [];
        await setImmediate();
      }
      yield records;
    },
  };
}
