import { expect } from 'vitest';
import { indexLine } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { earlierAds, earlierCollection, earlierKey, versions, writeEarlierVersion } from './support/earlier-version.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

type Answer = { totalHits?: number; collection?: { name: string }; items?: { id: string }[] };

const now = () => Date.UTC(2026, 2, 15);

test.for(versions)('a file of version %i is brought up to date and loses nothing', async (version, { database }) => {
  writeEarlierVersion(database, version, now());
  const { fetch, keys, close } = await openLibrary({ database, now });
  const ask = async (path: string, filters?: object) => {
    const headers = { authorization: `Bearer ${earlierKey}`, 'content-type': 'application/json' };
    const body = filters && { method: 'POST', body: JSON.stringify(filters) };
    return (
      await fetch(new Request(`http://library.example/v1/${path}`, { headers, ...body }))
    ).json() as Promise<Answer>;
  };
  const hits = async (kind: string, filters: object) =>
    (await ask(`${kind}/search`, { limit: 1, ...filters })).totalHits;
  expect(keys.list()).toMatchObject([{ id: uuid(9002), name: 'Old', unmetered: false, revokedAt: null }]);
  expect(await ask('credits')).toMatchObject({ credits: 93, usageLimit: { hourlyCredits: 7 } });
  expect(await hits('ads', {})).toBe(450);
  expect(await hits('ads', { query: 'tee' })).toBe(450);
  expect(await hits('ads', { query: 'earlier' })).toBe(0);
  expect(await hits('ads', { language: 'de' })).toBe(450);
  expect(await hits('ads', { bylines: '"payer 449"' })).toBe(1);
  expect(await hits('ads', { missing: ['headline'], impressionsTo: 9 })).toBe(10);
  expect(await hits('pages', { missing: ['pageLikes'] })).toBe(3);
  expect(await ask(`ads/${uuid(449)}`)).toEqual(earlierAds[449]);
  const { collection, items = [] } = await ask(`collections/${earlierCollection}/items?itemType=ads`);
  expect([collection?.name, items.map(({ id }) => id)]).toEqual(['Old ads', [uuid(4)]]);
  expect(keys.create({ accountOf: earlierKey, unmetered: true })).toMatchObject({ unmetered: true });
  close();
  const progress: object[] = [];
  (await openLibrary({ database, now, onIndex: (report) => progress.push(report) })).close();
  expect(progress).toEqual([]);
});

test('indexing that is broken off goes on where it was', async ({ database }) => {
  writeEarlierVersion(database, 3, now());
  const progress: { done: number; of: number }[] = [];
  const onIndex = (report: { done: number; of: number }) => {
    progress.push(report);
    if (report.done === 203) throw new Error('the process ends');
  };
  await expect(openLibrary({ database, now, onIndex })).rejects.toThrow('the process ends');
  (await openLibrary({ database, now, onIndex })).close();
  expect(progress.map(({ done, of }) => `${done} of ${of}`)).toEqual([
    '3 of 453',
    '203 of 453',
    '200 of 250',
    '250 of 250',
  ]);
  expect(indexLine('ads.db', { done: 403, of: 453 })).toBe(
    'ads.db: indexing again, because the file is of an older version  █████████████████████···  88 %',
  );
});
