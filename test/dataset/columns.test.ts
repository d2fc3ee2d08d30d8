import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { buildAdRows } from '../../src/dataset/ad-rows.ts';
import { createJpeg } from '../pictures/sample-pictures.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { startPictureHost } from '../support/picture-host.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const test = freshUpstreamTest();

const toDay = (day: number) => new Date(Date.UTC(2026, 6, day)).toISOString();

test('the SQL column currency contains the currency in which the amounts of an imported ad are stated', async ({
  upstream,
  start,
}) => {
  const server = await start();
  const service = serveAds(upstream, 0);
  service.ads = [createAd(1, { adSpendMin: 10_000, currency: 'JPY' }), createAd(2, { adSpendMin: 90 })];
  await server.call('search_ads', {});
  expect(await server.queryRows('SELECT currency, adSpendMin FROM ads ORDER BY rowid')).toEqual([
    ['JPY', 10_000],
    [null, 90],
  ]);
});

describe('The SQL column activeWhenLastRead', () => {
  test('the SQL column activeWhenLastRead is 1 for ads that ran on the last day of an imported archive', async ({
    upstream,
    start,
  }) => {
    const server = await start({}, { now: () => now });
    const service = serveAds(upstream, 0);
    service.ads = [
      createAd(1, { lastSeenAt: '2026-07-01T05:00:00Z' }),
      createAd(2, { lastSeenAt: '2026-07-01T22:00:00Z' }),
      createAd(3, { lastSeenAt: '2026-06-30T23:59:59Z' }),
      createAd(4, { lastSeenAt: '2026-07-01T05:00:00Z', endDate: '2026-06-30T00:00:00Z' }),
      createAd(5, { lastSeenAt: '2026-07-01T05:00:00Z', endDate: '2026-07-01T00:00:00Z' }),
      createAd(6, { endDate: '2026-05-01T00:00:00Z' }),
      createAd(7),
    ];
    await server.call('gather_ads', { filters: { some: 'archive' }, maxCredits: 50 });
    service.ads = [createAd(8, { lastSeenAt: '2026-07-01T05:00:00Z' })];
    await server.call('search_ads', {});
    expect(await server.queryRows('SELECT activeWhenLastRead FROM ads ORDER BY rowid')).toEqual(
      [1, 1, 0, 0, 1, 0, null, null].map((value) => [value]),
    );
    const range = 'SELECT lastSeenFrom, lastSeenTo FROM gatherings';
    expect(await server.queryRows(range)).toEqual([['2026-06-30T23:59:59.000Z', '2026-07-01T22:00:00.000Z']]);
  });

  test('the SQL column activeWhenLastRead uses the latest date of the whole search if the search is split into parts', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 0);
    const [early, late] = [createAd(1, { lastSeenAt: toDay(1) }), createAd(2, { lastSeenAt: toDay(9) })];
    service.selectAds = ({ query }) => (query === 'early' ? [early] : [late]);
    await server.call('gather_ads', { split: [{ query: 'early' }, { query: 'late' }], maxCredits: 50 });
    const rows = await server.queryRows('SELECT lastSeenAt, activeWhenLastRead FROM ads ORDER BY 1');
    expect(rows).toEqual([
      [toDay(1), 0],
      [toDay(9), 1],
    ]);
  });

  test('the SQL column activeWhenLastRead is correct even if one ad has a last-seen date in the future', async ({
    upstream,
    start,
  }) => {
    const server = await start({}, { now: () => Date.parse('2026-11-20T12:00:00Z') });
    serveAds(upstream, 0).ads = [
      createAd(1, { lastSeenAt: '2026-11-19' }),
      createAd(2, { lastSeenAt: '2026-11-19' }),
      createAd(3, { lastSeenAt: '2030-01-01' }),
    ];
    await server.call('gather_ads', { filters: {}, maxCredits: 50 });
    const sql = 'SELECT activeWhenLastRead FROM ads ORDER BY rowid';
    expect((await server.queryRows(sql)).flat().slice(0, 2)).toEqual([1, 1]);
    expect(await server.queryRows('SELECT substr(lastSeenTo, 1, 10) FROM gatherings')).toEqual([['2026-11-19']]);
  });

  test('the SQL column activeWhenLastRead compares each ad with the latest date in the search that listed it', async ({
    upstream,
    start,
  }) => {
    const server = await start({ cacheSeconds: 0 }, { now: () => now });
    const service = serveAds(upstream, 0);
    const days = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined, freq: 4 });
    const ads = fc.array(fc.record({ seen: days, end: days }), { minLength: 1, maxLength: 12 });
    let question = 0;
    await fc.assert(
      fc.asyncProperty(ads, async (dates) => {
        question++;
        service.ads = dates.map(({ seen, end }, index) =>
          createAd(100 * question + index, {
            ...(seen && { lastSeenAt: toDay(seen) }),
            ...(end && { endDate: toDay(end) }),
          }),
        );
        const { gathering } = (await server.call('gather_ads', { filters: { question }, maxCredits: 50 })).data;
        const last = Math.max(...dates.map(({ seen }) => seen ?? 0));
        const expected = dates.map(({ seen, end }) => {
          if (last === 0) return null;
          if (end !== undefined && end < last) return 0;
          return seen === undefined ? null : Number(seen === last);
        });
        const sql = `SELECT activeWhenLastRead FROM gathered JOIN ads ON ads.id = adId WHERE gatheringId = '${gathering}' ORDER BY ads.rowid`;
        expect((await server.queryRows(sql)).flat()).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });
});

test('an ad whose text is only a placeholder such as {{product.brand}} has no language and no text variant', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 0);
  const text = 'The best running boots for every trail, made to last for many years.';
  const common = { pageId: 'p', headline: null };
  service.ads = [
    createAd(1, { ...common, body: '{{product.brand}}' }),
    createAd(2, { ...common, body: '{{product.brand}}' }),
    createAd(3, { ...common, body: text, headline: '{{product.name}}' }),
    createAd(4, { ...common, body: text }),
    createAd(5, { ...common, body: text, linkDescription: 'Now {{product.price}}' }),
  ];
  await server.call('search_ads', {});
  const sql = 'SELECT hasPlaceholders, variant IS NULL, language FROM ads ORDER BY rowid';
  expect(await server.queryRows(sql)).toEqual([
    [1, 1, null],
    [1, 1, null],
    [1, 0, 'en'],
    [0, 0, 'en'],
    [1, 0, 'en'],
  ]);
  expect(await server.queryRows('SELECT count(DISTINCT variant) FROM ads')).toEqual([[1]]);
});

test('in SQL, a text without visible characters is null, and firstLine is the first line with visible characters', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 0);
  service.ads = [
    createAd(1, { headline: '\u200b', body: '\u2800\nBig summer sale' }),
    createAd(2, { headline: ' \u200e', body: `${'\u2800'.repeat(300)}\r\n  Free shipping  \nToday` }),
    createAd(3, { headline: 'Boots', body: '\u200b\n\ufeff' }),
  ];
  await server.call('search_ads', {});
  expect(await server.queryRows('SELECT headline, body IS NULL, firstLine FROM ads ORDER BY rowid')).toEqual([
    [null, 0, 'Big summer sale'],
    [null, 0, 'Free shipping'],
    ['Boots', 1, 'Boots'],
  ]);
});

test('the SQL column pictureState says whether a picture is available, expired, failed or missing', async ({
  upstream,
  start,
}) => {
  const host = await startPictureHost();
  try {
    const time = { now };
    const server = await start(
      { mediaHosts: { allowsPublicHosts: false, listedHosts: [host.host] } },
      { now: () => time.now },
    );
    const createThumbnail = (url: string) => ({ media: [{ type: 'THUMB', url }] });
    const red = host.serve(await createJpeg({ width: 400, height: 400, colour: [200, 0, 0] }));
    const expiry = (at: number) => Math.floor(at / 1000).toString(16);
    const service = serveAds(upstream, 0);
    service.ads = [
      createThumbnail(red),
      createThumbnail(`${red}?oe=${expiry(now - 1000)}`),
      createThumbnail(red.replace(/\d+$/, '99')),
      createThumbnail(`${red}?oe=${expiry(now + 86_400_000)}`),
      { media: [{ type: 'PA_PP', url: red }] },
      {},
    ].map((fields, index) => createAd(index, fields));
    await server.call('search_ads', {});
    const readStates = async () =>
      (await server.queryRows('SELECT pictureState FROM ads ORDER BY rowid')).map(([state]) => state);
    expect(await readStates()).toEqual([null, 'expired', null, null, 'none', 'none']);
    await server.call('view_ads', { adIds: service.ads.slice(0, 3).map(({ id }) => id) });
    expect(await readStates()).toEqual(['available', 'expired', 'failed', null, 'none', 'none']);
    time.now += 3 * 86_400_000;
    expect(await readStates()).toEqual(['available', 'expired', 'failed', 'expired', 'none', 'none']);
  } finally {
    await host.close();
  }
});

describe('SQL columns of imported ads', () => {
  const importedAd = {
    id: 'a',
    adLibrary: 'meta',
    adArchiveId: '1234567890',
    bylines: 'Paid for by Boots',
    beneficiaryPayers: [
      { payer: 'Old Ltd', beneficiary: 'Old brand', current: false },
      { payer: 'Boots Ltd', beneficiary: 'Boots', current: true },
    ],
    ageCountryGenderReachBreakdown: [
      {
        country: 'DE',
        age_gender_breakdowns: [
          { age_range: '25-34', male: 7, female: 5 },
          { age_range: '65+', unknown: 1 },
        ],
      },
      { country: 'FR', age_gender_breakdowns: [] },
    ],
    reachByCountry: { DE: 13, FR: 4 },
  };
  const buildColumns = (ad: object) => buildAdRows({ id: 'a', ...ad }, { gatheredAt: now }).ad;

  test('the SQL columns payer, beneficiary and reach are read from the EU transparency fields of an ad', () => {
    const { ad, reach } = buildAdRows(importedAd, { gatheredAt: now });
    expect(ad).toMatchObject({ payer: 'Boots Ltd', beneficiary: 'Boots' });
    expect(ad.publicUrl).toBe('https://www.facebook.com/ads/library/?id=1234567890');
    expect(reach.map(({ country, age, gender, reach }) => [country, age, gender, reach])).toEqual([
      ['DE', '25-34', 'female', 5],
      ['DE', '25-34', 'male', 7],
      ['DE', '65+', 'unknown', 1],
      ['FR', null, null, 4],
    ]);
  });

  test("the SQL column payer is read from an ad's disclaimer if no other field names the payer", () => {
    expect(buildColumns({ bylines: 'Paid for by Boots' })).toMatchObject({
      payer: 'Paid for by Boots',
      beneficiary: null,
    });
  });

  test("the SQL column publicUrl contains an https URL from the ad, or a URL that is built from the ad's archive id", () => {
    const urls = [
      { adLibrary: 'google', adArchiveId: 'CR12', adSnapshotUrl: 'https://adstransparency.example/CR12' },
      { adLibrary: 'google', adArchiveId: '12', adSnapshotUrl: 'javascript:alert(1)' },
      { adSnapshotUrl: 'https://bank.example@bad.example/' },
      { adSnapshotUrl: 'http://plain.example/' },
      { adArchiveId: '12"><script>' },
      { adArchiveId: 77 },
      {},
    ].map((ad) => buildColumns(ad).publicUrl);
    const ofMeta = 'https://www.facebook.com/ads/library/?id=77';
    expect(urls).toEqual(['https://adstransparency.example/CR12', null, null, null, null, ofMeta, null]);
  });

  test('transparency fields of unexpected types never produce an invalid payer or reach in SQL', () => {
    const anything = fc.anything();
    const fields = fc.record(
      {
        payer: anything,
        beneficiaryPayers: anything,
        bylines: anything,
        adArchiveId: anything,
        adSnapshotUrl: anything,
        ageCountryGenderReachBreakdown: anything,
        reachByCountry: anything,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fields, (ad) => {
        const rows = buildAdRows({ id: 'a', ...ad }, { gatheredAt: now, json: '' });
        for (const name of ['payer', 'beneficiary', 'publicUrl'] as const)
          expect(rows.ad[name] === null || typeof rows.ad[name] === 'string').toBe(true);
        for (const { reach } of rows.reach) expect(Number.isFinite(reach)).toBe(true);
      }),
    );
  });
});
