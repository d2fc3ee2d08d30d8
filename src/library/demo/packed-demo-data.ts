import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompressSync, brotliDecompress, constants } from 'node:zlib';

/** The data of a demo library, which the build generates. */
export interface DemoData {
  /**
   * The database file of the library. It contains the data that searches need, without indexes and without the JSON of
   * ads and pages. Dates are relative to 1 January 1970, and the id of an ad is its row number.
   */
  database: Uint8Array;
  /**
   * For each advertiser, the row number of its first ad, and the seed of the random numbers from which all its ads can
   * be generated again.
   */
  advertisers: { seed: number; firstAdNumber: number }[];
}

const fileNames = { database: 'demo.db.br', advertisers: 'demo-advertisers.json' };

/**
 * Packs the demo data into files, which the build stores next to the code. Returns the content of each file by file
 * name.
 */
export function packDemoData({ database, advertisers }: DemoData): Record<string, Uint8Array> {
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  return {
    [fileNames.database]: brotliCompressSync(database, { params }),
    [fileNames.advertisers]: Buffer.from(JSON.stringify(advertisers)),
  };
}

/**
 * The size of the chunks in which the database is unpacked. The whole database fits into one chunk, because many small
 * chunks take twice as long.
 */
const unpackedChunkBytes = 2 ** 21;

/**
 * Reads the packed demo data.
 * @param folder the folder of the packed files; by default, the folder of the built code
 */
export async function readDemoData(folder = new URL('.', import.meta.url)): Promise<DemoData> {
  const [packedDatabase, advertisers] = await Promise.all([
    readFile(new URL(fileNames.database, folder)),
    readFile(new URL(fileNames.advertisers, folder), 'utf8'),
  ]);
  const database = await promisify(brotliDecompress)(packedDatabase, { chunkSize: unpackedChunkBytes });
  return { database, advertisers: JSON.parse(advertisers) };
}
