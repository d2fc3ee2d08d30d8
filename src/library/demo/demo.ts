import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ItemType } from '../../api/schemas.ts';
import type { Picture } from '../import/pictures.ts';
import { recordTypes } from '../search/ads-and-pages.ts';
import { findPage } from '../search/search.ts';
import { type Library, type LibraryOptions, openLibrary, type ServiceContext } from '../service/service.ts';
import { makeMarket, seededRandom } from './market.ts';

export type DemoOptions = {
  /** Unix milliseconds; dates in the data are relative to its day. */
  now: () => number;
} & Pick<LibraryOptions, 'bases' | 'onError' | 'hasPages'>;

/**
 * A library in memory with generated, fictional data, and a key with 10,000 credits. The same day gives the same data
 * and the same key.
 *
 * Opening returns at once: the data is made one advertiser per turn of the event loop, and the first request waits for
 * the rest.
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const { context, ...library } = await openLibrary({
    ...options,
    database: ':memory:',
    demoPicture,
    random: seededRandom(2),
  });
  const { key: apiKey, userId } = library.keys.create({ name: 'Demo key' });
  const stop = new AbortController();
  const filled = fill(context, userId, options.now(), stop.signal);
  // A failure reaches callers through fetch below; it must not end the process before that.
  filled.catch(() => {});
  return {
    apiKey,
    library: {
      ...library,
      async fetch(request) {
        // The description needs no data, and whoever asks for it waits a second at most.
        if (new URL(request.url).pathname !== '/openapi.json') await filled;
        return library.fetch(request);
      },
      close() {
        stop.abort();
        library.close();
      },
    },
  };
}

async function fill(context: ServiceContext, userId: string, now: number, stop: AbortSignal): Promise<void> {
  const { database, records } = context;
  await nextTurn();
  for (const { page, ads } of makeMarket(seededRandom(1), now)) {
    if (stop.aborted) return;
    database.transaction(() => {
      records.putPage(page);
      for (const ad of ads) records.putAd(ad);
    });
    await nextTurn();
  }
  if (!stop.aborted) fillCollections(context, userId);
}

/** Two collections beside the default ones, and one of a colleague. */
function fillCollections({ database, collections }: ServiceContext, userId: string): void {
  const colleague = `c0${userId.slice(2)}`;
  const best = (kind: ItemType, filters: Record<string, string>, limit: number) =>
    findPage(database, { recordType: recordTypes[kind], filters, asOf: 0 }, limit).numbers;
  const make = (owner: string, name: string, type: string, items: Partial<Record<ItemType, number[]>>) => {
    const number = collections.create({ userId: owner, billingUserId: userId }, { name, type, defaultType: null });
    for (const kind of ['ads', 'pages'] as const)
      for (const item of items[kind] ?? []) collections.add(number, kind, item);
  };
  database.transaction(() => {
    const person = "UPDATE accounts SET name = 'Demo Person', emailAddress = 'person@demo.example' WHERE userId = ?";
    database.run(person, [userId]);
    const other = "INSERT INTO accounts VALUES (?, ?, 'Demo Colleague', 'colleague@demo.example', 1)";
    database.run(other, [colleague, userId]);
    make(userId, 'Skincare that lasts', 'personal', { ads: best('ads', { query: 'serum', sort: 'daysRunning' }, 12) });
    make(userId, 'Advertisers to watch', 'personal', { pages: best('pages', { sort: 'trend' }, 8) });
    const team = { ads: best('ads', { sort: 'performancePublic' }, 60), pages: best('pages', {}, 3) };
    make(colleague, 'Team swipe file', 'team', team);
  });
}

/** A picture that the demo's ads name; undefined if there is none. The build puts the folder beside the code. */
async function demoPicture(name: string): Promise<Picture | undefined> {
  if (!/^[\w-]+\.webp$/.test(name)) return undefined;
  const bytes = await readFile(new URL(`pictures/${name}`, import.meta.url)).catch(() => undefined);
  return bytes && { bytes, type: 'image/webp' };
}
