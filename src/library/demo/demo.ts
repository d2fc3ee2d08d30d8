import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import type { ItemType } from '../../api/schemas.ts';
import type { Picture } from '../import/pictures.ts';
import { recordTypes } from '../search/ads-and-pages.ts';
import { findPage } from '../search/search.ts';
import type { Random } from '../service/accounts.ts';
import { uuidOf } from '../service/request.ts';
import { type Library, type LibraryOptions, openLibrary, type ServiceContext } from '../service/service.ts';

/** Dates in the data are relative to the day of `now`. */
export type DemoOptions = Pick<LibraryOptions, 'now' | 'bases' | 'onError' | 'pagesPath'>;

/**
 * A library in memory with fictional data, and a key. The same day gives the same data and the same key. Opening returns
 * at once: the data is stored one advertiser per turn of the event loop, and the first request waits for the rest.
 */
export async function openDemoLibrary(options: DemoOptions): Promise<{ library: Library; apiKey: string }> {
  const random = repeatable('library');
  const { context, ...library } = await openLibrary({ ...options, database: ':memory:', demoPicture, random });
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
        // The description needs no data, and its readers wait a second at most.
        if (new URL(request.url).pathname !== '/filters.json') await filled;
        return library.fetch(request);
      },
      close() {
        stop.abort();
        library.close();
      },
    },
  };
}

function repeatable(name: string): Random {
  let drawn = 0;
  const next = () => `${name} ${drawn++}`;
  return {
    bytes: (count) => createHash('shake256', { outputLength: count }).update(next()).digest(),
    uuid: () => uuidOf(next()),
  };
}

const day = 86_400_000;

/** Stores the market that `scripts/demo-market` wrote, whose days and ids are filled in here. */
async function fill(context: ServiceContext, userId: string, now: number, stop: AbortSignal): Promise<void> {
  const { database, records } = context;
  const packed = await readFile(new URL('market.jsonl.br', import.meta.url));
  const market = String(await promisify(brotliDecompress)(packed));
  const today = Math.floor(now / day);
  const { uuid } = repeatable('ads');
  const filled = (line: string, id = '') =>
    line
      .replace(/\{(-?\d+)\}/g, (_, days) => new Date((today + Number(days)) * day).toISOString())
      .replaceAll('{id}', id);
  for (const advertiser of market.split('\n\n')) {
    if (stop.aborted) return;
    const [page = '', ...ads] = advertiser.split('\n');
    database.transaction(() => {
      records.putPage(JSON.parse(filled(page)));
      for (const ad of ads) records.putAd(JSON.parse(filled(ad, uuid())));
    });
    await nextTurn();
  }
  if (!stop.aborted) fillCollections(context, userId);
}

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
    const other = `INSERT INTO accounts (userId, billingUserId, name, emailAddress, isTeamMember)
      VALUES (?, ?, 'Demo Colleague', 'colleague@demo.example', 1)`;
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
