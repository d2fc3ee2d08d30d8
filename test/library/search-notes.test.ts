import { expect } from 'vitest';
import { libraryTest } from './support/fixtures.ts';
import { createUuid } from './support/library-server.ts';

const createAd = (number: number, fields: object) => ({
  id: createUuid(number),
  page: { pageName: 'Tea House' },
  ...fields,
});
const ads = [
  createAd(1, {
    ...{ ctaType: 'SHOP_NOW', displayFormat: 'VIDEO', startedAt: '2026-01-05T00:00:00Z' },
    website: { siteDomain: 'tea.example' },
  }),
  createAd(2, {
    ctaType: 'BUY_NOW',
    displayFormat: 'CAROUSEL',
    media: [{ type: 'VID', url: 'https://tea.example/a' }],
  }),
  createAd(3, { ctaType: 'Learn_More', displayFormat: 'VIDEO', page: { pageName: 'Kaffee "Süd"' } }),
];

const test = libraryTest.extend('readNotes', async ({ libraryServer }) => {
  await libraryServer.importRecords(...ads);
  return async (body: object): Promise<string[] | undefined> => {
    const answer = await libraryServer.search(body);
    expect(answer.status).toBe(200);
    return answer.body.notes;
  };
});

const unknownValueNote = (key: string, value: string, ...values: string[]) =>
  `No ad in this library has ${key} "${value}". Values there are, nearest in spelling first: ${values.join(', ')}.`;
const leftOutNote = (key: string, hits: number) =>
  `Left out because they have no value for ${key}: ${hits}. The filter missing with ${key} finds these.`;
const includedNote = (key: string, hits: number) =>
  `Found although they have no value for ${key}: ${hits}. The filter missing with ${key} inside not leaves these out.`;

const unknownBuyNote = unknownValueNote('ctaType', 'BUY', 'BUY_NOW', 'SHOP_NOW', 'Learn_More');

test.for<[body: object, ...notes: string[]]>([
  // No record has this value, so the note suggests existing values in their stored spelling.
  [{ ctaType: 'BUY' }, unknownBuyNote],
  [{ not: { ctaType: 'BUY' } }, unknownBuyNote],
  [{ ctaType: ['shop now', 'BUY_NOW'] }, unknownValueNote('ctaType', 'shop now', 'SHOP_NOW', 'BUY_NOW', 'Learn_More')],
  [{ advertiserExact: 'tea hause' }, unknownValueNote('advertiserExact', 'tea hause', 'Tea House', 'Kaffee "Süd"')],
  [{ pageId: 'p1' }, 'No ad in this library has a value for pageId.'],
  [
    { startedAtFrom: '2026-03-01', startedAtTo: '2026-01-01' },
    'Nothing can match, because the bounds startedAtFrom and startedAtTo are reversed.',
    leftOutNote('startedAt', 2),
  ],
  [{ startedAtFrom: '2026-01-05T12:00:00Z', startedAtTo: '2026-01-05' }, leftOutNote('startedAt', 2)],
  // A range such as 50 to 1,000 contains both bounds.
  [{ adSpendFrom: 500, adSpendTo: 100 }, leftOutNote('adSpend', 3)],
  // These searches need no note, because their result counts are clear.
  [{ ctaType: ['SHOP_NOW', 'buy_now'] }],
  [{ query: 'coffee' }],
  [{ missing: ['ctaType'] }],
  // The note counts records without a value, which a filter excludes and `not` includes.
  [{ ctaType: 'learn_more', domain: 'tea.example' }, leftOutNote('domain', 1)],
  [{ domain: 'tea.example', missing: ['mediaKind'] }, leftOutNote('domain', 1)],
  [{ startedAtFrom: '2026-01-01' }, leftOutNote('startedAt', 2)],
  [{ startedAtTo: '2027-01-01', ctaType: 'BUY_NOW' }, leftOutNote('startedAt', 1)],
  [{ startedAtTo: '2027-01-01', ctaType: 'SHOP_NOW' }],
  [{ mediaKind: 'video' }, leftOutNote('mediaKind', 2)],
  [{ not: { domain: 'tea.example' } }, includedNote('domain', 2)],
  [{ not: { domain: 'tea.example', missing: ['domain'] } }],
  [{ not: { ctaType: 'SHOP_NOW', startedAtFrom: '2026-01-01' } }, includedNote('startedAt', 2)],
  [{ active: true }, leftOutNote('active', 3)],
  [{ active: false }, leftOutNote('active', 3)],
  [{ not: { active: true } }, includedNote('active', 3)],
  [{}],
])(
  'the result of a library search with the filters %j contains notes that explain the number of matches',
  async ([body, ...notes], { readNotes }) => {
    expect(await readNotes({ ...body })).toEqual(notes.length > 0 ? notes : undefined);
  },
);

test('if the countries filter contains a country name instead of a code, a note in the search result suggests the code', async ({
  libraryServer,
  readNotes,
}) => {
  await libraryServer.importRecords(createAd(4, { countries: ['DE'] }));
  const suggestion = 'This filter takes country codes; use "US".';
  for (const country of ['Vereinigte Staaten', 'United States', 'usa'])
    expect((await readNotes({ countries: country }))?.[0]).toBe(
      `No ad in this library has countries "${country}". ${suggestion}`,
    );
  expect((await readNotes({ countries: 'US' }))?.[0]).not.toContain(suggestion);
});

test('a library search by impressions does not report an ad as lacking impressions if one bound of the range is known', async ({
  libraryServer,
  readNotes,
}) => {
  await libraryServer.importRecords(createAd(4, { impressionsMin: 1_000_001 }), createAd(5, { impressionsMax: 99 }));
  expect(await readNotes({ impressionsFrom: 500 })).toEqual([leftOutNote('impressions', 3)]);
});

test('if a library search contains an unknown page id, a note in the result suggests the filter for advertiser names', async ({
  libraryServer,
  readNotes,
}) => {
  await libraryServer.importRecords(createAd(6, { pageId: '77' }));
  expect(await readNotes({ pageId: 'Tea House' })).toEqual([
    'No ad in this library has pageId "Tea House". The filter advertiserExact finds an advertiser by name.',
  ]);
});

test('the result of a library search contains at most five explanatory notes, and only on the first result page', async ({
  libraryServer,
  readNotes,
}) => {
  const { body } = await libraryServer.search({ limit: 1, not: { ctaType: Array(50).fill('x'.repeat(100)) } });
  expect(body.notes).toHaveLength(1);
  expect((await libraryServer.search({ cursor: body.cursor })).body.notes).toBeUndefined();
  const longValues = Array.from({ length: 50 }, (_, index) => `${index}${'x'.repeat(65)}`);
  const notes = await readNotes({ ctaType: longValues, domain: longValues });
  expect(notes).toHaveLength(5);
  for (const note of notes ?? []) expect(note.length).toBeLessThan(300);
});
