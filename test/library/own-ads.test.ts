import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';
import { importText } from '../../src/cli/library.ts';
import { libraryTest as test } from './support/fixtures.ts';
import type { ServedLibrary } from './support/served-library.ts';

const guide = readFileSync(new URL('../../docs/archive.md', import.meta.url), 'utf8');
const example = /```csv\n(.*?)```/s.exec(guide)?.[1] ?? '';

const adsOf = async (served: ServedLibrary, filters: object = {}) => (await served.search(filters)).body.items;

test('the example of the guide is imported, found and dated', async ({ served }) => {
  expect(example).toBe(readFileSync(new URL('../../docs/examples/own-ads.csv', import.meta.url), 'utf8'));
  expect(await served.importRecords(example)).toMatchObject({ ads: 3, skipped: 0 });
  const [socks] = await adsOf(served, { query: 'wales' });
  expect(socks).toMatchObject({
    page: { pageName: 'Sock Shop' },
    headline: 'Warm socks for cold days',
    startedAt: '2026-01-05T00:00:00.000Z',
    offerLink: 'https://socks.example/warm',
    displayFormat: 'IMAGE',
    countries: ['GB'],
    duplicates: 3,
    media: [{ type: 'THUMB', url: 'https://socks.example/warm.jpg' }],
  });
  expect(await adsOf(served, { advertiserExact: ['Sock Shop'], countries: ['IE'] })).toMatchObject([
    { headline: 'Summer socks', endDate: '2026-08-31T00:00:00.000Z' },
  ]);
  // The advertiser is one page.
  expect(await adsOf(served, { pageId: [socks.pageId] })).toHaveLength(2);
});

test('the same rows are the same ads, a changed text is another, and an id of any form is kept', async ({ served }) => {
  const row = (body: string) => `Advertiser;Title;Primary text;Started\nShop;Hats;${body};2026-01-05\n`;
  expect(await served.importRecords(row('Warm'))).toMatchObject({ ads: 1, updated: 0 });
  expect(await served.importRecords(row('Warm'))).toMatchObject({ ads: 1, updated: 1 });
  expect(await served.importRecords(row('Cold'))).toMatchObject({ ads: 1, updated: 0 });
  const [first] = await adsOf(served);
  expect(first.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  await served.importRecords('ID,Body,My note\nnumber 7,First,x\n');
  expect(await served.importRecords('ID,Body,My note\nnumber 7,Second,y\n')).toMatchObject({ updated: 1 });
  expect(await adsOf(served, { query: 'second' })).toMatchObject([{ 'My note': 'y' }]);
});

test('a row that cannot be read is named with its line, and the others are stored', async ({ served }) => {
  const report = await served.importRecords(
    'headline,start,copies\nGood,2026-01-05,2\nDay,31. Dezember,1\nMany,2026-01-05,lots\n,2026-01-05,1\nAlso good,,\nFebruary,2026-02-30,1\n',
  );
  expect(report).toMatchObject({
    ads: 2,
    skipped: 4,
    problems: [
      { line: 3, problem: 'startedAt: "31. Dezember" is not a date such as 2026-01-31' },
      { line: 4, problem: 'duplicates: "lots" is not a whole number such as 1200' },
      { line: 5, problem: 'neither a headline nor a body; an ad needs one of them' },
      { line: 7, problem: 'startedAt: "2026-02-30" is not a date such as 2026-01-31' },
    ],
  });
});

test.for<[written: string[], days: string[] | RegExp]>([
  [
    ['31.03.2026', '1.2.2026'],
    ['2026-03-31', '2026-02-01'],
  ],
  [
    ['01/02/2026', '31/03/2026', '2026-05-06'],
    ['2026-02-01', '2026-03-31', '2026-05-06'],
  ],
  [
    ['01/02/2026', '03/31/2026'],
    ['2026-01-02', '2026-03-31'],
  ],
  [
    ['01/02/2026', '03/04/2026'],
    /^the column "First seen" has days such as 01\/02\/2026, which may be 1 February 2026 or 2 January 2026;/,
  ],
  [
    ['31/03/2026', '03/31/2026'],
    /^the column "First seen" has days such as 31\/03\/2026 and 03\/31\/2026, which are not written in the same order/,
  ],
])('days %j are read where their column is clear, or nothing is imported', async ([written, days], { served }) => {
  const report = await served.importRecords(
    ['Ad headline,First seen', ...written.map((day, at) => `Ad ${at},${day}`)].join('\n'),
  );
  if (days instanceof RegExp) {
    expect(report).toMatchObject({ ads: 0, problems: [{ problem: expect.stringMatching(days) }] });
    return;
  }
  expect(report).toMatchObject({ ads: days.length, skipped: 0 });
  const found = (await served.searchAll({ sort: 'duplicates', order: 'asc' })).items;
  expect(found.map(({ startedAt }) => startedAt.slice(0, 10))).toEqual(days);
});

test('it is said how columns are understood; countries may be named', async ({ served }) => {
  const report = await served.importRecords(
    'Ad headline,Headline,Brand name,Country,My note\nTea,x,Leaf,"Germany, UK; United Kingdom; Deutschland; USA; at",n\nTea,x,Leaf,Atlantis,\n',
  );
  expect(importText({ name: 'file', ...report }).split('\n')).toEqual([
    'file: 1 ad and 0 pages, 1 skipped:',
    '  columns: headline ← Ad headline, pageName ← Brand name, countries ← Country; not used: Headline, My note',
    '  line 3: countries: "Atlantis" is not a country such as DE or Germany; use the two-letter country code',
  ]);
  expect(await adsOf(served)).toMatchObject([{ headline: 'Tea', countries: ['DE', 'GB', 'US', 'AT'], 'My note': 'n' }]);
});

test('whatever cells hold, each row is stored or named', async ({ served }) => {
  const cell = fc.string({ unit: 'binary', maxLength: 30 }).map((text) => `"${text.replaceAll('"', '""')}"`);
  const columns = ['headline', 'advertiser', 'start', 'copies', 'countries', 'id', '__proto__', 'page id', 'link'];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(...columns.map(() => cell)), { minLength: 1, maxLength: 5 }), async (rows) => {
      const text = [columns.filter((name) => name !== 'page id'), ...rows.map((row) => row.slice(0, -1))].join('\n');
      const { ads, repeated, skipped } = await served.importRecords(text);
      expect(ads + repeated + skipped).toBe(rows.length);
    }),
    { numRuns: 50 },
  );
});

test('ids of rows are those of their advertiser, so that two tables may count from 1', async ({ served }) => {
  const table = (advertiser: string) => `id,advertiser,headline\n1,${advertiser},One\n2,${advertiser},Two\n`;
  expect(await served.importRecords(table('Shop'))).toMatchObject({ ads: 2, updated: 0 });
  expect(await served.importRecords(table('Bakery'))).toMatchObject({ ads: 2, updated: 0 });
  expect(await served.importRecords(table('Shop'))).toMatchObject({ ads: 2, updated: 2 });
  expect(await adsOf(served)).toHaveLength(4);
});
