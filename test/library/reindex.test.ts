import { expect } from 'vitest';
import { indexLine } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { makeFirstVersion } from './support/first-version.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { linesOf, uuid } from './support/served-library.ts';

const now = () => Date.UTC(2026, 2, 15);

test('a database of an earlier version is found by everything new, after it was opened once', async ({ database }) => {
  const ads = Array.from({ length: 450 }, (_, nr) => ({
    id: uuid(nr),
    pageId: `p${nr % 3}`,
    body: 'Ein guter Tee für jeden Tag, frisch gepflückt und schnell bei dir',
    bylines: `Payer ${nr}`,
    impressionsMax: nr,
  }));
  const first = await openLibrary({ database, now });
  await first.import(linesOf(ads));
  const { key } = first.keys.create({ credits: 1e6, hourlyLimit: 1e6, dailyLimit: 1e6 });
  first.close();
  makeFirstVersion(database);
  const progress: object[] = [];
  const { fetch, close } = await openLibrary({ database, now, onIndex: (report) => progress.push(report) });
  const hits = async (path: string, filters: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const request = new Request(`http://library.example/v1/${path}/search`, {
      method: 'POST',
      headers,
      body: JSON.stringify(filters),
    });
    return ((await (await fetch(request)).json()) as { totalHits: number }).totalHits;
  };
  expect(await hits('ads', {})).toBe(450);
  expect(await hits('ads', { query: 'tee' })).toBe(450);
  expect(await hits('ads', { language: 'de' })).toBe(450);
  expect(await hits('ads', { bylines: '"payer 449"' })).toBe(1);
  expect(await hits('ads', { missing: ['headline'], impressionsTo: 9 })).toBe(10);
  expect(await hits('pages', { missing: ['pageLikes'] })).toBe(3);
  close();
  expect(progress).toEqual([3, 203, 403, 453].map((done) => ({ done, of: 453 })));
  expect(indexLine('ads.db', { done: 403, of: 453 })).toBe(
    'ads.db: indexing again, because the file is of an older version  █████████████████████···  88 %',
  );
});
