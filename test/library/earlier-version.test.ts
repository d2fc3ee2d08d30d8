import { expect } from 'vitest';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { linesOf, uuid } from './support/served-library.ts';

type Answer = { totalHits?: number; collection?: { name: string }; items?: { id: string }[] };

const now = () => Date.UTC(2026, 2, 15);
const ads = Array.from({ length: 450 }, (_, nr) => ({
  id: uuid(nr),
  pageId: `p${nr % 3}`,
  body: 'Ein guter Tee für jeden Tag, frisch gepflückt und schnell bei dir',
  bylines: `Payer ${nr}`,
  impressionsMax: nr,
}));

async function openAndAsk(database: string, key: string, checkLock?: () => void) {
  const library = await openLibrary({ database, now, ...(checkLock && { checkLock }) });
  const ask = async (path: string, body?: object): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const init = { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) };
    return (await library.fetch(new Request(`http://library.example/v1/${path}`, init))).json() as Promise<Answer>;
  };
  const hits = async (kind: string, filters: object) =>
    (await ask(`${kind}/search`, { limit: 1, ...filters })).totalHits;
  return { ...library, ask, hits };
}

/** A file with 450 ads of three pages and a key that has spent 7 credits, without what later versions have added. */
async function earlierVersion(database: string): Promise<{ key: string; collection: string }> {
  const { keys, close, ...library } = await openLibrary({ database, now });
  await library.import(linesOf(ads));
  const { key } = keys.create({ name: 'Old', credits: 100 });
  close();
  const { ask, context, close: closeAgain } = await openAndAsk(database, key);
  const { items = [] } = await ask('collections');
  const collection = items[0]?.id ?? '';
  await ask(`collections/${collection}/items`, { itemType: 'ads', itemId: uuid(4) });
  for (let read = 0; read < 7; read++) await ask(`ads/${uuid(read)}`);
  for (const sql of [
    'ALTER TABLE keys DROP COLUMN unmetered',
    'DROP INDEX ads_impressions',
    'ALTER TABLE ads DROP COLUMN impressions',
    'ALTER TABLE ads DROP COLUMN impressionsLow',
    "UPDATE indexed SET form = 'earlier'",
    'PRAGMA user_version = 1',
  ])
    context.database.run(sql);
  closeAgain();
  return { key, collection };
}

test('a file of an earlier version is brought up to date and loses nothing', async ({ database }) => {
  const { key, collection: id } = await earlierVersion(database);
  const { ask, hits, keys, close } = await openAndAsk(database, key);
  expect(keys.list()).toMatchObject([{ name: 'Old', unmetered: false, revokedAt: null }]);
  expect(await ask('credits')).toMatchObject({ credits: 93, usageLimit: { hourlyCredits: 7 } });
  const { collection, items = [] } = await ask(`collections/${id}/items?itemType=ads`);
  expect([collection?.name, items.map((item) => item.id)]).toEqual(['Saved ads', [uuid(4)]]);
  expect(await hits('ads', { query: 'tee' })).toBe(450);
  expect(await hits('ads', { language: 'de' })).toBe(450);
  expect(await hits('ads', { bylines: '"payer 449"' })).toBe(1);
  expect(await hits('ads', { missing: ['headline'], impressionsTo: 9 })).toBe(10);
  expect(await hits('pages', { missing: ['pageLikes'] })).toBe(3);
  expect(await ask(`ads/${uuid(449)}`)).toEqual(ads[449]);
  expect(keys.create({ accountOf: key, unmetered: true })).toMatchObject({ unmetered: true });
  close();
});

test('indexing that is broken off goes on where it was', async ({ database }) => {
  const { key } = await earlierVersion(database);
  let transactions = 0;
  const ends = () => {
    if (++transactions === 6) throw new Error('the process ends');
  };
  await expect(openAndAsk(database, key, ends)).rejects.toThrow('the process ends');
  let again = 0;
  const { hits, close } = await openAndAsk(database, key, () => void again++);
  expect(again).toBeLessThan(transactions + 6);
  expect(await hits('ads', { query: 'tee' })).toBe(450);
  close();
});
