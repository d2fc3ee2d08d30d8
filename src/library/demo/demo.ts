import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { dayMs } from '../../views/durations.ts';
import type { ExternalRecords } from '../database/records.ts';
import type { Picture } from '../import/stored-pictures.ts';
import { uuidFromName } from '../service/request.ts';
import { type Library, type LibraryOptions, openLibrary } from '../service/service.ts';
import { readDemoData } from './demo-data.ts';
import { demoKey } from './demo-key.ts';
import { createDeterministicRandom } from './deterministic-random.ts';
import { advertisers, createSeededRandom, type DemoAdvertiser, makeAdvertiser } from './market/market.ts';
import type { DemoData } from './packed-demo-data.ts';

/** Options of a demo library. The dates of its data are relative to the day of `now`. */
export type DemoOptions = Pick<LibraryOptions, 'now' | 'baseUrls' | 'onError' | 'pagesPath'>;

/**
 * The V8 flag that postpones the optimization of WebAssembly. By default, V8 optimizes the main loop of SQLite after a
 * few dozen steps. The function is so large that this takes up to half a second of processor time in another thread.
 * With the largest budget, the demo answers its first calls before V8 begins to optimize.
 */
const tieringBudgetFlag = '--wasm-tiering-budget=2147483647';

/**
 * Opens a library with fictional data, and returns the library with its API key. Changes to the library are lost when
 * the library is closed. The data are the same on the same day, and the key is always the same.
 * @throws Error if no folder for temporary files can be written
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const { database, advertisers: advertiserSeeds } = await readDemoData();
  const today = options.now() - (options.now() % dayMs);
  const records = createDemoRecords(advertiserSeeds, today);
  const demo = { readPicture: readDemoPicture, records, dateOrigin: today };
  setFlagsFromString(tieringBudgetFlag);
  const file = await writeTemporaryFile(database);
  const random = createDeterministicRandom('opened library');
  // SQLite keeps the open file without its name, so the file is deleted at once. Windows cannot delete an open file, so
  // `close` deletes the file there.
  const { context, ...library } = await openLibrary({ ...options, database: file.path, demo, random }).finally(() =>
    file.remove().catch(() => {}),
  );
  context.database.run('UPDATE keys SET createdAt = ?', [options.now()]);
  return {
    apiKey: demoKey,
    library: {
      ...library,
      close() {
        library.close();
        file.remove().catch(() => {});
      },
    },
  };
}

/**
 * Creates the records that the database of the demo does not contain. An advertiser is made with all its ads when one
 * of its ads is read for the first time.
 * @param today the start of the day in Unix milliseconds
 */
function createDemoRecords(advertiserSeeds: DemoData['advertisers'], today: number): ExternalRecords {
  const madeAdvertisers = new Map<number, DemoAdvertiser>();
  function getAdvertiser(index: number): DemoAdvertiser | undefined {
    const [advertiser, start] = [advertisers[index], advertiserSeeds[index]];
    if (advertiser === undefined || start === undefined) return undefined;
    const madeAdvertiser =
      madeAdvertisers.get(index) ?? makeAdvertiser(advertiser, createSeededRandom(start.seed), today);
    madeAdvertisers.set(index, madeAdvertiser);
    return madeAdvertiser;
  }
  function createRowNumbers(): Map<string, number> {
    const lastIndex = advertiserSeeds.length - 1;
    const lastAds = getAdvertiser(lastIndex)?.ads ?? [];
    const adCount = (advertiserSeeds[lastIndex]?.firstAdNumber ?? 1) - 1 + lastAds.length;
    return new Map(Array.from({ length: adCount }, (_, index) => [createDemoAdId(index + 1), index + 1]));
  }
  let rowNumberById: Map<string, number> | undefined;
  return {
    findRowNumber(itemType, id) {
      if (itemType === 'pages') return undefined;
      rowNumberById ??= createRowNumbers();
      return rowNumberById.get(id);
    },
    readJson(itemType, rowNumber) {
      if (itemType === 'pages') return JSON.stringify(getAdvertiser(rowNumber - 1)?.page);
      const index = advertiserSeeds.findLastIndex(({ firstAdNumber }) => firstAdNumber <= rowNumber);
      const ad = getAdvertiser(index)?.ads[rowNumber - (advertiserSeeds[index]?.firstAdNumber ?? 0)];
      return ad && JSON.stringify(ad).replaceAll(ad.id, createDemoAdId(rowNumber));
    },
  };
}

const createDemoAdId = (rowNumber: number): string => uuidFromName(`ads ${rowNumber - 1}`);

/** Writes a file in a new temporary folder. `remove` deletes the folder. */
async function writeTemporaryFile(content: Uint8Array) {
  const folder = await createTemporaryFolder();
  const path = join(folder, 'demo.db');
  await writeFile(path, content);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * Creates a temporary folder. In a container with a read-only file system, the usual folder for temporary files cannot
 * be written, but `/dev/shm` is memory that is mounted as a folder.
 */
async function createTemporaryFolder(): Promise<string> {
  let firstError: unknown;
  for (const parentFolder of [tmpdir(), '/dev/shm', '/tmp']) {
    try {
      return await mkdtemp(join(parentFolder, 'ad-library-demo-'));
    } catch (error) {
      firstError ??= error;
    }
  }
  throw new Error(`The demo cannot write to a folder for temporary files: ${String(firstError)}`);
}

/**
 * Reads a picture of an ad or of an advertiser. Returns undefined if there is no picture with this name. The build puts
 * the folder of the pictures beside the code.
 */
async function readDemoPicture(name: string): Promise<Picture | undefined> {
  if (!/^[\w-]+\.webp$/.test(name)) return undefined;
  const bytes = await readFile(new URL(`pictures/${name}`, import.meta.url)).catch(() => undefined);
  return bytes && { bytes, type: 'image/webp' };
}
