import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, brotliDecompress, constants } from 'node:zlib';

/** What the build makes of the demo's market. */
export interface DemoData {
  /**
   * A library's database file with everything by which records are found, but without the records and without indexes.
   * Dates are relative to the first day of 1970, and the id of an ad is its number.
   */
  database: Uint8Array;
  /** For each advertiser of the market, the seed with which it is made again, and the number of its first ad. */
  advertisers: { seed: number; firstAdNumber: number }[];
}

const files = { database: 'demo.db.br', advertisers: 'demo-advertisers.json' };

/** Returns the files that the build puts beside the code, by their names. */
export function packDemoData({ database, advertisers }: DemoData): Record<string, Uint8Array> {
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  return {
    [files.database]: brotliCompressSync(database, { params }),
    [files.advertisers]: Buffer.from(JSON.stringify(advertisers)),
  };
}

/** Reads the files of a folder, by default the folder of the built code. */
export async function readDemoData(folder = new URL('.', import.meta.url)): Promise<DemoData> {
  const [packed, advertisers] = await Promise.all([
    readFile(new URL(files.database, folder)),
    readFile(new URL(files.advertisers, folder), 'utf8'),
  ]);
  return { database: await promisify(brotliDecompress)(packed), advertisers: JSON.parse(advertisers) };
}
