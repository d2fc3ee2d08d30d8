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

/** Dates in the data are relative to the day of `now`. */
export type DemoOptions = Pick<LibraryOptions, 'now' | 'baseUrls' | 'onError' | 'pagesPath'>;

/**
 * By default, V8 optimizes the main loop of SQLite after a few dozen steps. The function is so large that this takes up
 * to half a second of processor time in a thread of its own. With the largest budget, a demo answers its first calls
 * before.
 */
const tieringBudget = '--wasm-tiering-budget=2147483647';

/**
 * Opens a library with fictional data that nobody can change for good, and a key for it. The same day gives the same
 * data, and the key is always the same.
 * @throws Error when no folder for temporary files can be written
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const { database, advertisers: made } = await readDemoData();
  const today = options.now() - (options.now() % dayMs);
  const demo = { readPicture: demoPicture, records: demoRecords(made, today), dateOrigin: today };
  setFlagsFromString(tieringBudget);
  const file = await temporaryFile(database);
  const random = createDeterministicRandom('opened library');
  // The open database needs no name. Windows deletes only files that are closed.
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
 * The records of the demo, which the database does not hold itself. An advertiser is made when one of its ads is read.
 */
function demoRecords(made: DemoData['advertisers'], today: number): ExternalRecords {
  const pages = new Map<number, DemoAdvertiser>();
  function pageAt(index: number): DemoAdvertiser | undefined {
    const [advertiser, start] = [advertisers[index], made[index]];
    if (advertiser === undefined || start === undefined) return undefined;
    const page = pages.get(index) ?? makeAdvertiser(advertiser, createSeededRandom(start.seed), today);
    pages.set(index, page);
    return page;
  }
  function numbersById(): Map<string, number> {
    const last = made.length - 1;
    const count = (made[last]?.firstAdNumber ?? 1) - 1 + (pageAt(last)?.ads.length ?? 0);
    return new Map(Array.from({ length: count }, (_, at) => [demoAdId(at + 1), at + 1]));
  }
  let numbers: Map<string, number> | undefined;
  return {
    findRowNumber(kind, id) {
      if (kind === 'pages') return undefined;
      numbers ??= numbersById();
      return numbers.get(id);
    },
    readJson(kind, number) {
      if (kind === 'pages') return JSON.stringify(pageAt(number - 1)?.page);
      const index = made.findLastIndex(({ firstAdNumber: firstAd }) => firstAd <= number);
      const ad = pageAt(index)?.ads[number - (made[index]?.firstAdNumber ?? 0)];
      return ad && JSON.stringify(ad).replaceAll(ad.id, demoAdId(number));
    },
  };
}

const demoAdId = (number: number): string => uuidFromName(`ads ${number - 1}`);

/** Writes a file in a new folder of its own. */
async function temporaryFile(content: Uint8Array) {
  const folder = await temporaryFolder();
  const path = join(folder, 'demo.db');
  await writeFile(path, content);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * In a container whose file system is read-only, memory that is mounted as a folder takes the place of the usual
 * folder.
 */
async function temporaryFolder(): Promise<string> {
  let failure: unknown;
  for (const place of [tmpdir(), '/dev/shm', '/tmp']) {
    try {
      return await mkdtemp(join(place, 'ad-library-demo-'));
    } catch (error) {
      failure ??= error;
    }
  }
  throw new Error(`The demo needs a folder for temporary files: ${String(failure)}`);
}

/** A picture that the demo's ads name; undefined if there is none. The build puts the folder beside the code. */
async function demoPicture(name: string): Promise<Picture | undefined> {
  if (!/^[\w-]+\.webp$/.test(name)) return undefined;
  const bytes = await readFile(new URL(`pictures/${name}`, import.meta.url)).catch(() => undefined);
  return bytes && { bytes, type: 'image/webp' };
}
