import { mkdtemp, readFile, rmdir, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Ad } from '../../api/schemas.ts';
import { createLazyGetter } from '../../lazy-getter.ts';
import { dayMs } from '../../views/durations.ts';
import { sumNumbers } from '../../views/numbers.ts';
import type { GeneratedRecords } from '../database/records.ts';
import type { Picture } from '../import/stored-pictures.ts';
import type { LibraryOptions } from '../service/context.ts';
import { computeUuidFromName } from '../service/request.ts';
import { type Library, openLibrary } from '../service/service.ts';
import type { AdvertiserSource } from './built-demo-data.ts';
import { readDemoData } from './demo-data.ts';
import { demoKey } from './demo-key.ts';
import { createDeterministicRandom } from './deterministic-random.ts';
import {
  advertisers,
  type CampaignStart,
  createSeededRandom,
  makeCampaignAds,
  movePageDates,
  planCampaigns,
} from './market/market.ts';

/**
 * The options of a demo library. `now` returns the current time, and the dates of the demo ads are relative to the
 * current day.
 */
export type DemoOptions = Pick<LibraryOptions, 'now' | 'baseUrls' | 'onError' | 'htmlPagesPath'>;

/**
 * Opens a library with fictional data, and returns the library and its API key. The key is always the same, and the
 * data is the same for all calls on one day. Changes are lost when the library is closed.
 * @throws Error if there is no writable folder for temporary files
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const { writeDatabase, advertisers: advertiserSources } = await readDemoData();
  const todayStartMs = options.now() - (options.now() % dayMs);
  const generatedRecords = createDemoRecords(advertiserSources, todayStartMs);
  const demoOptions = { readPicture: readDemoPicture, generatedRecords, dateOriginMs: todayStartMs };
  const databaseFile = await createTemporaryFile(writeDatabase);
  const random = createDeterministicRandom('opened library');
  // Delete the file as soon as SQLite has opened it, because SQLite no longer needs its name. Windows cannot delete an
  // open file, so `close` tries again.
  const library = await openLibrary({
    ...options,
    database: databaseFile.path,
    demo: demoOptions,
    random,
  }).finally(() => databaseFile.removeFile());
  return {
    apiKey: demoKey,
    library: {
      ...library,
      close() {
        library.close();
        void databaseFile.removeFile();
      },
    },
  };
}

/**
 * Creates a source that generates the JSON of demo ads and pages, because the database does not contain this JSON.
 * Reading an ad generates all ads of its campaign. The pages are read from the demo data, because they contain sums
 * over all ads of an advertiser.
 * @param todayStartMs the start of the current day in Unix milliseconds
 */
function createDemoRecords(advertiserSources: AdvertiserSource[], todayStartMs: number): GeneratedRecords {
  const getAdReader = memoize((index: number) => {
    const [advertiser, source] = [advertisers[index], advertiserSources[index]];
    if (advertiser === undefined || source === undefined) return undefined;
    const { seed, firstAdRowNumber, adCount, campaignStarts } = source;
    const plan = planCampaigns(advertiser, createSeededRandom(seed), todayStartMs);
    const getCampaignAds = memoize((start: CampaignStart) => makeCampaignAds(plan, start, adCount));
    return (rowNumber: number): Ad | undefined => {
      const adIndex = rowNumber - firstAdRowNumber;
      const start = campaignStarts.findLast(({ firstAdIndex }) => firstAdIndex <= adIndex);
      return start && getCampaignAds(start)[adIndex - start.firstAdIndex];
    };
  });
  const getRowNumberById = createLazyGetter(() => {
    const adCount = sumNumbers(advertiserSources.map((advertiser) => advertiser.adCount));
    return new Map(Array.from({ length: adCount }, (_, index) => [createDemoAdId(index + 1), index + 1]));
  });
  return {
    findRowNumber(itemType, id) {
      return itemType === 'pages' ? undefined : getRowNumberById().get(id);
    },
    readJson(itemType, rowNumber) {
      if (itemType === 'pages') {
        const source = advertiserSources[rowNumber - 1];
        return source && JSON.stringify(movePageDates(source.page, todayStartMs));
      }
      const index = advertiserSources.findLastIndex(({ firstAdRowNumber }) => firstAdRowNumber <= rowNumber);
      const ad = getAdReader(index)?.(rowNumber);
      return ad && JSON.stringify(ad).replaceAll(ad.id, createDemoAdId(rowNumber));
    },
  };
}

/** Returns a function that caches the result of `create` for each key. A result of `undefined` is not cached. */
function memoize<Key, Value>(create: (key: Key) => Value): (key: Key) => Value {
  const values = new Map<Key, Value>();
  return (key) => {
    const value = values.get(key) ?? create(key);
    values.set(key, value);
    return value;
  };
}

const createDemoAdId = (rowNumber: number): string => computeUuidFromName(`ads ${rowNumber - 1}`);

/**
 * Creates a database file in a new temporary folder. The returned `removeFile` deletes the file and the folder. It
 * ignores errors, because Windows cannot delete an open file.
 * @param writeDatabase writes the database to a path
 */
async function createTemporaryFile(writeDatabase: (path: string) => Promise<void>) {
  const folder = await createTemporaryFolder();
  const path = join(folder, 'demo.db');
  // Delete the file and the folders one by one. `rm` could delete the folder with its contents, but the first call of
  // `rm` loads another module, which takes time.
  const removeFile = async () => {
    await unlink(path).catch(() => {});
    // SQLite creates this folder to lock an open database.
    await rmdir(`${path}.lock`).catch(() => {});
    await rmdir(folder).catch(() => {});
  };
  try {
    await writeDatabase(path);
  } catch (error) {
    await removeFile();
    throw error;
  }
  return { path, removeFile };
}

/**
 * Creates a temporary folder. Also tries `/dev/shm` (a folder in memory), because the default folder for temporary
 * files is not writable in a container with a read-only file system.
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
 * Reads a picture of a demo ad or advertiser. Returns undefined if there is no such picture. The build copies the
 * folder with the pictures next to the bundled server.
 */
async function readDemoPicture(name: string): Promise<Picture | undefined> {
  if (!/^[\w-]+\.webp$/.test(name)) return undefined;
  const bytes = await readFile(new URL(`pictures/${name}`, import.meta.url)).catch(() => undefined);
  return bytes && { bytes, mediaType: 'image/webp' };
}
