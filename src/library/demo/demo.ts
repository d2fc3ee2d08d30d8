import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { OtherRecords } from '../database/records.ts';
import type { Picture } from '../import/pictures.ts';
import { uuidOf } from '../service/request.ts';
import { type Library, type LibraryOptions, openLibrary } from '../service/service.ts';
import { readDemoData } from './demo-data.ts';
import { demoKey } from './demo-key.ts';
import type { DemoData } from './packed-demo-data.ts';
import { repeatable } from './repeatable.ts';

/** Dates in the data are relative to the day of `now`. */
export type DemoOptions = Pick<LibraryOptions, 'now' | 'bases' | 'onError' | 'pagesPath'>;

/**
 * By default, V8 optimizes the main loop of SQLite after a few dozen steps. The function is so large that this takes up to
 * half a second of processor time in a thread of its own. With the largest budget, a demo answers its first calls before.
 */
const tieringBudget = '--wasm-tiering-budget=2147483647';

/**
 * Opens a library with fictional data that nobody can change for good, and a key for it. The same day gives the same data,
 * and the key is always the same.
 * @throws Error when no folder for temporary files can be written
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const { database, records } = await readDemoData();
  const today = options.now() - (options.now() % dayMs);
  const demo = { picture: demoPicture, records: demoRecords(records, today), dateOrigin: today };
  setFlagsFromString(tieringBudget);
  const file = await temporaryFile(database);
  const random = repeatable('opened library');
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

/** The records of the demo, which the database does not hold itself. */
function demoRecords(texts: DemoData['records'], today: number): OtherRecords {
  const lines = { ads: linesOf(texts.ads), pages: linesOf(texts.pages) };
  const dateOf = (days: string) => new Date(today + Number(days) * dayMs).toISOString();
  let numbers: Map<string, number> | undefined;
  return {
    find(kind, id) {
      if (kind === 'pages') return undefined;
      numbers ??= new Map(lines.ads.map((_, at) => [demoAdId(at + 1), at + 1]));
      return numbers.get(id);
    },
    json: (kind, number) =>
      lines[kind][number - 1]
        ?.toString()
        .replace(/\{(-?\d+)\}/g, (_, days) => dateOf(days))
        .replaceAll('{id}', demoAdId(number)),
  };
}

const demoAdId = (number: number): string => uuidOf(`ads ${number - 1}`);

/** Writes a file in a new folder of its own. */
async function temporaryFile(content: Uint8Array) {
  const folder = await temporaryFolder();
  const path = join(folder, 'demo.db');
  await writeFile(path, content);
  return { path, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** In a container whose file system is read-only, memory that is mounted as a folder takes the place of the usual folder. */
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

function linesOf(text: Uint8Array): Buffer[] {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const lines: Buffer[] = [];
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = bytes.indexOf('\n', start);
    lines.push(bytes.subarray(start, end < 0 ? undefined : end));
  }
  return lines;
}

const dayMs = 86_400_000;

/** A picture that the demo's ads name; undefined if there is none. The build puts the folder beside the code. */
async function demoPicture(name: string): Promise<Picture | undefined> {
  if (!/^[\w-]+\.webp$/.test(name)) return undefined;
  const bytes = await readFile(new URL(`pictures/${name}`, import.meta.url)).catch(() => undefined);
  return bytes && { bytes, type: 'image/webp' };
}
