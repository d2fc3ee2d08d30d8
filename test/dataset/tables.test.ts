import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { buildAdRows, createAdRowReaderFactory, extractLanguageText } from '../../src/dataset/ad-rows.ts';
import { buildPageRow } from '../../src/dataset/snapshot.ts';
import { getColumnNames, tables } from '../../src/dataset/tables.ts';
import { MemoryDatasetStore } from '../../src/storage/memory-datasets.ts';
import { addAds } from '../storage/add-items.ts';
import { serveAds } from '../support/ad-service.ts';
import { respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const gatheredAt = Date.UTC(2026, 10, 20, 12);

const english = 'The best running boots for every trail, made to last for many years.\nBuy less.';
const german = 'Die besten Laufschuhe für jeden Weg, gemacht für viele Jahre';
const ad = {
  id: '02dbad1d-1996-5523-ac12-e5be98677589',
  pageId: 'page-1',
  page: { pageName: 'Trail House', adsAmount: 12 },
  headline: 'Boots that last',
  body: english,
  offerLink: 'https://www.trail-house.example/boots?utm_source=x',
  startedAt: '2026-10-01T07:00:00.000Z',
  lastSeenAt: '2026-11-19T07:00:00+02:00',
  endDate: null,
  duplicates: 3,
  ctaType: 'SHOP_NOW',
  displayFormat: 'CAROUSEL',
  countries: ['DE', 'AT', 'DE'],
  publisherPlatform: ['FACEBOOK'],
  cards: [
    { title: 'Red', body: english, link_url: 'https://trail-house.example/red' },
    { title: '', body: 'Blue boots' },
  ],
  media: [
    { type: 'CARD_THUMB', nr: 0, url: 'a' },
    { type: 'CARD_VID', nr: 1, url: 'b', durationSeconds: 14.6 },
    { type: 'CARD_THUMB', nr: 1, url: 'c' },
    { type: 'PA_PP', nr: null, url: 'd' },
  ],
};
const page = { pageId: '7', pageName: 'Acme', adsAmount: 3, detailsEstimated: false, countries: ['DE', '', 4, 'AT'] };

freshUpstreamTest({ config: { cacheSeconds: 0 } })(
  'the SQL tables contain an ad, its page, its versions and its gather_ads run in all documented columns',
  async ({ upstream, start }) => {
    let clock = gatheredAt;
    const { call } = await start({}, { now: () => clock });
    const rowsOf = async (sql: string) => {
      const { columns, rows } = (await call('query_ads', { sql, cell: 10_000 })).data;
      return { columns, rows } as { columns: string[]; rows: unknown[][] };
    };
    const another = { id: 'another', pageId: 'page-1', headline: ad.headline, body: `${english}!` };
    const service = serveAds(upstream, 0);
    service.ads = [ad, another];
    const { gathering } = (await call('gather_ads', { filters: { query: 'boots' }, maxCredits: 50 })).data;
    const { columns, rows } = await rowsOf('SELECT * FROM ads ORDER BY id');
    expect(columns).toEqual(getColumnNames('ads'));
    const row = Object.fromEntries(columns.map((name, index) => [name, rows[0]?.[index]]));
    expect(row).toMatchObject({
      pageName: 'Trail House',
      startedAt: '2026-10-01T07:00:00.000Z',
      lastSeenAt: '2026-11-19T05:00:00.000Z',
      endDate: null,
      landingDomain: 'trail-house.example',
      landing: 'trail-house.example/boots',
      utm: '{"source":"x"}',
      daysRunning: 49,
      active: 1,
      activeWhenLastRead: 1,
      hasPlaceholders: 0,
      pictureState: 'none',
      payer: null,
      beneficiary: null,
      publicUrl: null,
      firstLine: english.split('\n')[0],
      startedMonth: '2026-10',
      text: `Boots that last\n${english}\nRed\nBlue boots`,
      language: 'en',
      variant: ad.id,
      cardCount: 2,
      videoCount: 1,
      imageCount: 1,
      videoSeconds: 14.6,
      firstGatheredAt: '2026-11-20T12:00:00.000Z',
      gatheredAt: '2026-11-20T12:00:00.000Z',
    });
    expect(JSON.parse(String(row.json))).toEqual(ad);
    expect((await rowsOf('SELECT variant FROM ads')).rows).toEqual([[ad.id], [ad.id]]);
    for (const [table, expected] of [
      [
        'ad_countries',
        [
          [ad.id, 'DE'],
          [ad.id, 'AT'],
        ],
      ],
      ['ad_platforms', [[ad.id, 'FACEBOOK']]],
      [
        'ad_cards',
        [
          [ad.id, 1, 'Red', english, 'https://trail-house.example/red'],
          [ad.id, 2, null, 'Blue boots', null],
        ],
      ],
      [
        'gathered',
        [
          [gathering, ad.id],
          [gathering, 'another'],
        ],
      ],
      [
        'gatherings',
        [
          [
            gathering,
            '{"query":"boots"}',
            null,
            2,
            2,
            1,
            1,
            '2026-11-20T12:00:00.000Z',
            1,
            '2026-11-19T05:00:00.000Z',
            '2026-11-19T05:00:00.000Z',
          ],
        ],
      ],
    ] as const)
      expect((await rowsOf(`SELECT * FROM ${table}`)).rows).toEqual(expected);

    clock += 1000;
    service.ads = [{ ...ad, headline: 'Schuhe', body: german, cards: [{ title: 'Rot' }] }];
    await call('search_ads', { limit: 5 });
    const versions = "SELECT gatheredAt, json->>'body' FROM ad_versions";
    expect((await rowsOf(versions)).rows).toEqual([['2026-11-20T12:00:00.000Z', english]]);
    const newest = `SELECT language, firstGatheredAt, gatheredAt, json->>'body' FROM ads WHERE id = '${ad.id}'`;
    const times = ['2026-11-20T12:00:00.000Z', '2026-11-20T12:00:01.000Z'];
    expect((await rowsOf(newest)).rows).toEqual([['de', ...times, german]]);
    upstream.respondWith(respondWithJson({ items: [page], cursor: null, hasMore: false }));
    await call('search_pages', {});
    const pages = await rowsOf('SELECT * FROM pages');
    expect(pages.columns).toEqual(getColumnNames('pages'));
    const cells = Object.fromEntries(pages.columns.map((name, index) => [name, pages.rows[0]?.[index]]));
    expect(cells).toMatchObject({ pageId: '7', pageName: 'Acme', adsAmount: 3, detailsEstimated: 0, languages: null });
    expect(cells.countries).toBe('["DE","AT"]');
  },
);

test('the server stays responsive while it loads thousands of ads into SQL tables', async () => {
  const dataset = await new MemoryDatasetStore().open({ tenantId: 't' });
  const manyAds = Array.from({ length: 3000 }, (_, nr) => ({ id: `${nr}`, pageId: 'one', body: `${english} ${nr}` }));
  await addAds(dataset, 1, ...manyAds);
  const contents = await dataset.readContents();
  const readers = createAdRowReaderFactory(() => gatheredAt);
  await readers.forTenant('another').readFacts({ version: 'empty', ads: [] });
  const reader = readers.forTenant('t');
  let eventLoopTurns = 0;
  const runOtherWork = () => {
    eventLoopTurns++;
    next = setImmediate(runOtherWork);
  };
  let next = setImmediate(runOtherWork);
  onTestFinished(() => clearImmediate(next));
  await reader.readFacts(contents);
  expect(eventLoopTurns).toBeGreaterThan(3);
  eventLoopTurns = 0;
  let ads = 0;
  for await (const batch of reader.readRows(contents, { includeJson: false })) ads += batch.length;
  expect(ads).toBe(manyAds.length);
  expect(eventLoopTurns).toBeGreaterThan(3);
});

test('the SQL columns active and daysRunning describe an ad as of the time when it was last read', () => {
  const endedAd = { ...ad, endDate: '2026-11-10' };
  expect(buildAdRows(endedAd, { gatheredAt }).ad).toMatchObject({ active: 0, daysRunning: 40 });
  expect(buildAdRows(ad, { gatheredAt: Date.UTC(2027, 1, 1) }).ad).toMatchObject({ active: null, daysRunning: 49 });
});

test('placeholders such as {{product.name}} are ignored in the SQL column firstLine and in language detection', () => {
  const template = { id: 'a', headline: '{{product.name}}', body: '{{product.brand}} for you', cards: ad.cards };
  expect(buildAdRows(template, { gatheredAt }).ad.firstLine).toBe(english.split('\n')[0]);
  expect(extractLanguageText(template)).toBe(`Red\n${english}\nBlue boots`);
  expect(extractLanguageText({ id: 'a', headline: '{{product.name}}' })).toBeNull();
});

test.each([
  [{ type: 'VID', nr: 0 }, { type: 'THUMB', nr: 0 }, 1, 0],
  [{ type: 'THUMB', nr: 0 }, { type: 'THUMB', nr: 0 }, 0, 1],
  [{ type: 'PA_PP' }, { type: 7 }, null, null],
])(
  'for an ad with the media types %j and %j, SQL shows %s videos and %s images',
  (first, second, videoCount, imageCount) => {
    expect(buildAdRows({ media: [first, second] }, { gatheredAt }).ad).toMatchObject({
      cardCount: 0,
      videoCount,
      imageCount,
    });
  },
);

test('an ad has one row for each country and platform, even if the service repeats it with spaces or in other case', () => {
  const spellings = { countries: ['US', ' US', 'us '], publisherPlatform: [' facebook', 'FACEBOOK'] };
  const { countries, platforms } = buildAdRows({ id: 'a', ...spellings }, { gatheredAt });
  expect(countries).toEqual([{ id: 'a', country: 'US' }]);
  expect(platforms).toEqual([{ id: 'a', platform: 'facebook' }]);
});

test('every cell of the SQL tables contains a non-empty text, a finite number or null', () => {
  const names = fc.constantFrom(...Object.keys(ad), ...getColumnNames('ads'), ...getColumnNames('pages'));
  const fields = fc.dictionary(
    names,
    fc.oneof(fc.jsonValue(), fc.array(fc.jsonValue()), fc.string({ unit: 'binary' })),
  );
  fc.assert(
    fc.property(fields, (object) => {
      const { ad: row, cards, countries, platforms } = buildAdRows(object, { gatheredAt });
      for (const [name, cell] of Object.entries(row)) {
        if (name === 'id' || cell === null) continue;
        expect(typeof cell).toBe(tables.ads[name as keyof typeof tables.ads] === 'text' ? 'string' : 'number');
        expect(cell).not.toBe('');
        expect(cell).not.toBe(Number.POSITIVE_INFINITY);
      }
      for (const card of cards) expect(card.body).not.toBe('');
      expect(countries.length + platforms.length).toBeLessThan(1000);
      expect(Object.keys(buildPageRow(object, { at: gatheredAt, firstAt: gatheredAt }, ''))).toEqual(
        getColumnNames('pages'),
      );
    }),
  );
});
