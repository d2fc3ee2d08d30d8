import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, brotliDecompress, constants } from 'node:zlib';
import type { ItemType } from '../../api/schemas.ts';

/** The data of the demo, whose dates are relative to a day that is not known yet. */
export interface DemoData {
  /**
   * A library's database file with everything by which records are found, but without the records and without indexes.
   * Dates are relative to the first day of 1970, and the id of an ad is its number.
   */
  database: Uint8Array;
  /**
   * The JSON of each record, a line for each, in the order of their numbers. A date is written as its distance from
   * today in days, such as `{-3}`, and the id of an ad as `{id}`.
   */
  records: Record<ItemType, Uint8Array>;
}

const files = { database: 'demo.db.br', ads: 'demo-ads.jsonl.br', pages: 'demo-pages.jsonl.br' };

/** Returns the files that the build puts beside the code, by their names. */
export function packDemoData({ database, records }: DemoData): Record<string, Uint8Array> {
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  const packed = (content: Uint8Array) => brotliCompressSync(content, { params });
  return {
    [files.database]: packed(database),
    [files.ads]: packed(records.ads),
    [files.pages]: packed(records.pages),
  };
}

/** Reads the files that the build has made. */
export async function readDemoData(): Promise<DemoData> {
  const unpacked = async (file: string) => promisify(brotliDecompress)(await readFile(new URL(file, import.meta.url)));
  const [database, ads, pages] = await Promise.all([files.database, files.ads, files.pages].map(unpacked));
  if (!database || !ads || !pages) throw new Error('A file of the demo is missing.');
  return { database, records: { ads, pages } };
}
