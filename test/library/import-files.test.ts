import { randomUUID } from 'node:crypto';
import { createReadStream, readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { formatImportReport } from '../../src/cli/library.ts';
import { type RunStatement, writeExport } from '../../src/dataset/export.ts';
import { libraryTest as test } from './support/fixtures.ts';

/** The folder with files of invented ads, in the formats that ad libraries, scrapers and spreadsheets write. */
const folder = new URL('import-files/', import.meta.url);

interface ExpectedImport {
  /** Fields that each imported ad must have. */
  ads: object[];
  /** Fields that each imported page must have. */
  pages?: object[];
  /** The format that the report names. Undefined if nothing in the file can be read. */
  format?: string;
  /** The report lines, except the first line and the lines about the format, the columns and the keys. */
  reportLines?: (string | RegExp)[];
  /** The keys of JSON records that the report lists as not used. */
  unusedKeys?: string;
  /** Filters of searches, each of which must find all ads of the file. */
  searches?: object[];
}

const toDateTime = (day: string) => `${day}T00:00:00.000Z`;
const park = { headline: 'Save the park', body: "Vote for the park.\nIt's ours" };
const wrappedAd: ExpectedImport = {
  format: 'meta-ad-library',
  ads: [{ adArchiveId: '7001', headline: 'T', body: 'Hello', page: { pageName: 'P' } }],
};
const facebookRender = 'https://www.facebook.com/ads/archive/render_ad/';
const adsManagerPeriod = { reportingStarts: toDateTime('2026-01-01'), reportingEnds: toDateTime('2026-01-31') };
const describeInvalidDate = (field: string, date: string) => `${field}: not an ISO 8601 date-time; got "${date}"`;

/** The expected result of importing each file, by its file name. */
const expectedImports: Record<string, ExpectedImport> = {
  'flattened-scrape.csv': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ headline: 'Float on', body: 'Soap that floats', offerLink: 'https://soap.example/x', ctaType: 'SHOP_NOW' },
        ...{ displayFormat: 'IMAGE', publisherPlatform: ['FACEBOOK', 'INSTAGRAM'], duplicates: 2, endDate: null },
        media: [{ type: 'THUMB', url: 'https://m.example/1.jpg', nr: 0 }],
      },
    ],
    searches: [
      { query: 'soap floats' },
      { domain: ['soap.example'] },
      { publisherPlatform: ['INSTAGRAM'] },
      { mediaKind: ['image'] },
    ],
  },
  'python-literals.csv': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ ...park, bodies: [park.body, 'Second version'], adSpendMin: 100, adSpendMax: 199, impressionsMin: 1000 },
        ...{ publisherPlatform: ['FACEBOOK', 'INSTAGRAM'], languages: ['en'] },
        demographics: [{ percentage: 0.5, age: '18-24', gender: 'female' }],
      },
    ],
    searches: [{ publisherPlatform: ['FACEBOOK'] }, { language: ['en'] }],
  },
  'snapshot-as-python.csv': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ headline: 'Light on', body: 'All about light', offerLink: 'https://lamp.example/a', ctaType: 'SHOP_NOW' },
        snapshot: { isReshared: false },
      },
    ],
  },
  'lists-in-three-notations.csv': {
    format: 'meta-ad-library',
    ads: [
      { body: 'Double quoted', publisherPlatform: ['FACEBOOK', 'INSTAGRAM'] },
      { body: 'Single quoted', publisherPlatform: ['FACEBOOK'], languages: ['en'] },
      { body: 'Plain text', publisherPlatform: ['FACEBOOK', 'INSTAGRAM'], languages: ['en', 'de'] },
    ],
  },
  'lists-as-text.jsonl': {
    format: 'meta-ad-library',
    ads: [{ publisherPlatform: ['FACEBOOK', 'INSTAGRAM'], bodies: ['One', 'Two'], languages: ['en', 'de'] }],
  },
  'dates-of-a-spreadsheet.csv': {
    format: 'meta-ad-library',
    ads: [
      { startedAt: toDateTime('2025-01-05'), endDate: toDateTime('2025-01-13') },
      { startedAt: toDateTime('2025-01-13'), endDate: toDateTime('2025-02-20') },
      { startedAt: toDateTime('2025-01-05'), endDate: toDateTime('2025-02-20') },
    ],
  },
  'api-ads-with-written-dates.jsonl': {
    ads: [],
    reportLines: [
      `line 1: ${describeInvalidDate('startedAt', '05/01/2025')}`,
      `line 2: ${describeInvalidDate('startedAt', '05.01.2025')}; ${describeInvalidDate('endDate', 'Feb 3, 2025')}`,
      `line 3: ${describeInvalidDate('startedAt', '13/01/2025')}`,
    ],
  },
  'is-active-as-text.csv': {
    format: 'meta-ad-library',
    ads: [
      ...Array.from({ length: 3 }, () => ({ endDate: null, lastSeenAt: toDateTime('2024-02-01') })),
      { endDate: toDateTime('2024-02-01') },
    ],
  },
  'radlibrary.csv': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ adSpendMin: 100, adSpendMax: 199, impressionsMin: 1000, impressionsMax: 1999, audienceSizeMin: 50_000 },
        ...{ audienceSizeMax: 100_000, publisherPlatform: ['FACEBOOK', 'INSTAGRAM'] },
      },
    ],
    searches: [{ adSpendFrom: 150 }, { impressionsFrom: 1500 }],
  },
  'german-numbers.csv': {
    format: 'own-ads',
    ads: [
      { audienceReach: 1234, adSpendMin: 1250.5, adSpendMax: 1250.5 },
      { audienceReach: 12_000, adSpendMin: 99, adSpendMax: 99 },
      { audienceReach: 1_234_567, adSpendMin: 10, adSpendMax: 10 },
    ],
  },
  'german-counts.csv': {
    format: 'own-ads',
    ads: [{ audienceReach: 1234 }, { audienceReach: 12_000 }, { audienceReach: 999 }],
  },
  'one-invalid-byte.jsonl': {
    format: 'meta-ad-library',
    ads: [{ adArchiveId: '9001' }, { adArchiveId: '9004' }],
    reportLines: ['line 2: bytes that are not UTF-8; save the file as UTF-8 and import it again'],
  },
  'wrapped-in-ads.json': wrappedAd,
  'wrapped-in-results.json': wrappedAd,
  'wrapped-in-search-results.json': wrappedAd,
  'asynchronous-answer.json': {
    format: 'meta-ad-library',
    ads: [{ adArchiveId: '7002', headline: 'T', page: { pageName: 'P' } }],
  },
  'access-tokens.jsonl': {
    format: 'meta-ad-library',
    ads: [{ snapshotUrl: `${facebookRender}?id=7007`, offerLink: `${facebookRender}?id=7` }],
  },
  'character-references.jsonl': {
    format: 'meta-ad-library',
    ads: [
      {
        body: "We can't wait & you won't either\n5 < 6 €  now link",
        headline: "Tom & Jerry's tea",
        offerLink: 'https://tea.example/?a=1&b=2',
        page: { pageName: 'Tea & Co' },
      },
    ],
  },
  'carriage-returns.csv': {
    format: 'own-ads',
    ads: [{ headline: 'Old Mac' }, { headline: 'Second' }],
  },
  'indented-values.json': {
    format: 'meta-ad-library',
    ads: [{ headline: 'one' }, { headline: 'two' }],
  },
  'not-a-number.jsonl': {
    format: 'meta-ad-library',
    ads: [{ headline: 'Nan ad' }, { headline: 'ok' }],
    reportLines: ['1 × NaN or Infinity: JSON does not allow this value, so it was read as null (first: line 1)'],
  },
  'separator-line.csv': {
    format: 'own-ads',
    ads: [{ headline: 'Mit sep', startedAt: toDateTime('2026-01-05') }],
  },
  'title-and-pipes.csv': {
    format: 'own-ads',
    ads: [{ headline: 'With a title', page: { pageName: 'A' } }],
    reportLines: ['the line above the column names was ignored'],
  },
  'capitals-and-tabs.tsv': {
    format: 'meta-ad-library',
    ads: [{ adArchiveId: '1', body: 'In capitals' }],
  },
  'one-column-with-template.csv': {
    format: 'own-ads',
    ads: [{ headline: '{{product.name}}' }, { headline: 'Second' }],
  },
  'ads-manager.csv': {
    format: 'meta-ads-manager',
    ads: [
      {
        ...{ headline: 'H', body: 'B', offerLink: 'https://x.example', currency: 'USD', audienceReach: 999 },
        ...{ adSpendMin: 1234.5, adSpendMax: 1234.5, impressionsMin: 12_345, impressionsMax: 12_345, adName: 'x' },
      },
    ],
  },
  'ads-manager-breakdown.csv': {
    format: 'meta-ads-manager',
    ads: [
      {
        ...{
          adLibrary: 'own',
          adId: '123456789012345678',
          adName: 'Warm socks',
          campaignName: 'Winter',
          currency: 'EUR',
        },
        ...{ adSpendMin: 30.5, adSpendMax: 30.5, impressionsMin: 300, lastSeenAt: toDateTime('2026-01-31') },
        breakdown: [
          { ...adsManagerPeriod, values: { Age: '18-24' }, adSpend: 10.25, impressions: 100, audienceReach: 80 },
          { ...adsManagerPeriod, values: { Age: '25-34' }, adSpend: 20.25, impressions: 200, audienceReach: 150 },
        ],
      },
    ],
    reportLines: [
      'ignored, because they name no ad (rows of totals): 1 row',
      'no ad has a headline or a body',
      '1 × Reach: kept for each row of an ad but not added up, because several rows may count the same person (first: line 4)',
    ],
  },
  'eu-transparency.json': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ adLibrary: 'meta', audienceReach: 1234, payer: 'Payer GmbH', beneficiary: 'Tea GmbH' },
        beneficiaryPayers: [
          { payer: 'Old Payer', beneficiary: 'Old Tea', current: false },
          { payer: 'Payer GmbH', beneficiary: 'Tea GmbH', current: true },
        ],
        ageCountryGenderReachBreakdown: [
          { country: 'DE', age_gender_breakdowns: [{ age_range: '25-34', male: 40, female: 160, unknown: 0 }] },
        ],
        reachByCountry: { DE: 1200 },
        targetAges: ['18', '65+'],
      },
    ],
  },
  'scrape-with-details.json': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ audienceReach: 3948, payer: 'Payer GmbH', beneficiary: 'Tea GmbH', impressionsMin: 10_000 },
        ...{ impressionsMax: 15_000, targetLocations: [{ name: 'Sweden', excluded: false }] },
        ageCountryGenderReachBreakdown: [
          { country: 'SE', age_gender_breakdowns: [{ age_range: '25-34', male: 10, female: 30, unknown: null }] },
        ],
      },
    ],
  },
  'meta-advertiser-report.csv': {
    format: 'meta-advertiser-report',
    ads: [],
    pages: [
      {
        ...{ pageId: '7001', pageName: 'Park Friends', adsAmount: 13, currency: 'EUR' },
        ...{ adSpendMin: 1200, adSpendMax: 1300 },
        spendByDisclaimer: [
          { disclaimer: 'Friends of the Park', adSpendMin: 1200, adSpendMax: 1200, adsAmount: 12 },
          { disclaimer: 'Park Society', adSpendMax: 100, adsAmount: 1 },
        ],
      },
      { pageId: '7002', pageName: 'Lake Club', adsAmount: 4, adSpendMin: 350, adSpendMax: 350 },
    ],
  },
  'google-bigquery.jsonl': {
    format: 'google-ads-transparency',
    ads: [
      {
        ...{ adLibrary: 'google', adArchiveId: 'CR01', pageId: 'google:AR01', sourcePageExternalId: 'AR01' },
        ...{ page: { pageName: 'Tea House' }, displayFormat: 'VIDEO', countries: ['DE', 'TR'], topic: 'Food' },
        ...{ startedAt: toDateTime('2025-01-02'), lastSeenAt: toDateTime('2025-03-04') },
        // The region EEA contains the total of its countries. The import must not add both, because each impression
        // would count twice.
        ...{ impressionsMin: 3010, impressionsMax: 4020, publisherPlatform: ['YOUTUBE'] },
        adSnapshotUrl: 'https://adstransparency.google.com/advertiser/AR01/creative/CR01',
      },
    ],
    reportLines: ['no ad has a headline or a body'],
    searches: [{ countries: ['DE'] }, { pageId: ['google:AR01'] }],
  },
  'google-regions.csv': {
    format: 'google-ads-transparency',
    ads: [
      {
        ...{ adArchiveId: 'CR02', countries: ['DE', 'FR'], impressionsMin: 1000, impressionsMax: 3000 },
        ...{ startedAt: toDateTime('2025-01-03'), lastSeenAt: toDateTime('2025-03-04') },
      },
    ],
    reportLines: ['no ad has a headline or a body'],
  },
  'google-serpapi.json': {
    format: 'google-ads-transparency',
    ads: [
      {
        ...{ adArchiveId: 'CR03', pageId: 'google:AR02', page: { pageName: 'Vidora' }, displayFormat: 'IMAGE' },
        ...{ website: { siteDomain: 'vidora.example' }, startedAt: toDateTime('2025-01-02'), totalDaysShown: 44 },
        media: [{ type: 'THUMB', url: 'https://media.example/3.png', nr: 0 }],
      },
    ],
    reportLines: ['no ad has a headline or a body'],
    searches: [{ domain: ['vidora.example'] }],
  },
  'google-searchapi.json': {
    format: 'google-ads-transparency',
    ads: [
      {
        ...{ adArchiveId: 'CR04', pageId: 'google:AR02', page: { pageName: 'Vidora' }, displayFormat: 'TEXT' },
        media: [{ type: 'THUMB', url: 'https://media.example/4.png', nr: 0 }],
      },
    ],
    reportLines: ['no ad has a headline or a body'],
  },
  'tiktok-query.json': {
    format: 'tiktok-ad-library',
    ads: [
      {
        ...{ adLibrary: 'tiktok', adArchiveId: '1923845247192304', pageId: 'tiktok:7057157514558702338' },
        ...{ page: { pageName: 'Awe Food Co.' }, payer: 'Awe Co.', isActive: true, audienceReach: 11_000 },
        ...{ startedAt: toDateTime('2025-01-02'), lastSeenAt: toDateTime('2025-03-04') },
        media: [
          {
            ...{ type: 'VID', url: 'https://media.example/1.mp4', nr: 0 },
            urls: { preview: 'https://media.example/cover.jpeg' },
          },
          { type: 'THUMB', url: 'https://media.example/1.jpeg?x-expires=1', nr: 0 },
        ],
      },
    ],
    reportLines: ['no ad has a headline or a body'],
  },
  'tiktok-detail.json': {
    format: 'tiktok-ad-library',
    ads: [
      {
        ...{ headline: 'Try the tea', offerLink: 'https://tea.example/x', ctaType: 'SHOP_NOW', isActive: false },
        ...{ endDate: toDateTime('2025-01-10'), countries: ['GB', 'IT'], targetCountries: ['IT', 'GB'] },
        ...{ reachMin: 10_000, reachMax: 100_000, audienceSizeMin: 50_000, audienceSizeMax: 100_000 },
        ...{ reachByCountry: { GB: 18_000, IT: { min: 0, max: 1000 } }, targetingInfoInterest: 'Food' },
      },
    ],
    searches: [{ active: false }, { audienceSizeFrom: 60_000 }],
  },
  'tiktok-table.csv': {
    format: 'tiktok-ad-library',
    ads: [{ adArchiveId: '1812268576617521', pageId: 'tiktok:7057157514558702338', audienceReach: 11_000 }],
    reportLines: ['no ad has a headline or a body'],
  },
  'tiktok-advertisers.json': {
    format: 'tiktok-ad-library',
    ads: [],
    pages: [{ pageId: 'tiktok:7057157514558702338', pageName: 'Awe Food Co.', advertiserCountryCode: 'US' }],
  },
  'linkedin-api.json': {
    format: 'linkedin-ad-library',
    ads: [
      {
        ...{ adLibrary: 'linkedin', adArchiveId: '1521996423', pageId: 'linkedin:10180448', countries: ['DE', 'AT'] },
        ...{ page: { pageName: 'Personal Works' }, payer: 'Personal Works SE', displayFormat: 'VIDEO' },
        ...{ startedAt: toDateTime('2025-01-02'), lastSeenAt: toDateTime('2025-03-04'), impressionsMin: 5000 },
        ...{ impressionsMax: 10_000, adType: 'SPONSORED_VIDEO' },
        regions: [
          { region: 'DE', percentage: 0.9154 },
          { region: 'AT', percentage: 0.0846 },
        ],
      },
    ],
    reportLines: ['no ad has a headline or a body'],
  },
  'linkedin-liads.csv': {
    format: 'linkedin-ad-library',
    ads: [{ adArchiveId: '1521996424', pageId: 'linkedin:10180448', adType: 'TEXT_AD', impressionsMax: 1000 }],
    reportLines: ['no ad has a headline or a body'],
  },
  'linkedin-flattened.csv': {
    format: 'linkedin-ad-library',
    ads: [{ adArchiveId: '1521996425', pageId: 'linkedin:in/somebody', displayFormat: 'CAROUSEL' }],
    reportLines: ['no ad has a headline or a body'],
  },
  'linkedin-scrapes.json': {
    format: 'linkedin-ad-library',
    ads: ['1521996450', '1521996451', '1521996452'].map((adArchiveId) => ({
      ...{ adArchiveId, page: { pageName: 'Ledger' }, headline: 'Count', body: 'Count on us', displayFormat: 'IMAGE' },
      media: expect.arrayContaining([{ type: 'THUMB', url: 'https://m.example/1.png', nr: 0 }]),
    })),
    unusedKeys: 'position (1)',
  },
  'meta-flat-scrape.json': {
    format: 'meta-ad-library',
    ads: [
      {
        ...{ adArchiveId: '8001', headline: 'Fly high', body: 'Kites for windy days', linkDescription: 'Free string' },
        ...{ offerLink: 'https://kite.example/x', displayUrl: 'kite.example', ctaType: 'SHOP_NOW', endDate: null },
        publisherPlatform: ['FACEBOOK'],
        media: [
          { type: 'VID', url: 'https://m.example/1.mp4', nr: 0, urls: { preview: 'https://m.example/1p.jpg' } },
          { type: 'THUMB', url: 'https://m.example/1.jpg', nr: 0 },
          { type: 'THUMB', url: 'https://m.example/2.jpg', nr: 1 },
        ],
      },
      // The id in the URL of the ad takes precedence over the `id` key, which is a row number here.
      { adArchiveId: '8002', headline: 'Fly low', body: 'Kites for calm days' },
    ],
    reportLines: ['values that are not stored, because another key has the same field: id (1)'],
    unusedKeys: 'daysRunning (1)',
  },
  'meta-graphql-lines.json': {
    format: 'meta-ad-library',
    ads: [{ adArchiveId: '8101', headline: 'Row', body: 'Oars of ash' }],
  },
  'google-flat-scrape.json': {
    format: 'google-ads-transparency',
    ads: [
      {
        ...{ adArchiveId: 'CR09', startedAt: toDateTime('2026-02-03'), lastSeenAt: toDateTime('2026-03-03') },
        adSnapshotUrl: 'https://adstransparency.google.com/advertiser/AR09/creative/CR09',
        media: [
          { type: 'VID', url: 'https://media.example/9.mp4', nr: 0 },
          { type: 'THUMB', url: 'https://media.example/9.png', nr: 0 },
          { type: 'THUMB', url: 'https://media.example/10.png', nr: 1 },
        ],
      },
    ],
    reportLines: ['no ad has a headline or a body'],
    unusedKeys: 'variationCount (1)',
  },
  'tiktok-flat-scrape.json': {
    format: 'tiktok-ad-library',
    ads: [
      {
        ...{ adArchiveId: '1816831112281203', headline: 'Fry it', audienceSizeMin: 100_000, audienceSizeMax: 200_000 },
        media: [{ type: 'VID', url: 'https://v.example/3', nr: 0, urls: { preview: 'https://v.example/3.jpg' } }],
      },
      {
        ...{ adArchiveId: '1816831112281204', startedAt: toDateTime('2026-01-01'), page: { pageName: 'Tofu SARL' } },
        media: [{ type: 'VID', url: 'https://v.example/4', nr: 0 }],
      },
    ],
  },
  'own-export.jsonl': {
    format: 'dataset-export',
    ads: [
      {
        id: 'a12eeed2-18f5-822c-a132-b8a4edc1717b',
        pageId: '77',
        body: 'Vote for the park',
        startedAt: toDateTime('2024-05-01'),
        page: { pageName: 'Made Page' },
      },
    ],
    searches: [{ advertiser: 'Made Page' }],
  },
  'own-export.csv': {
    format: 'dataset-export',
    ads: [
      {
        ...{ id: 'a12eeed2-18f5-822c-a132-b8a4edc1717b', pageId: '77', page: { pageName: 'Made Page' }, body: 'Vote' },
        ...{ headline: '+5 % off', startedAt: toDateTime('2024-05-01'), duplicates: 1.5, audienceReach: 1.234 },
      },
    ],
  },
  'metrics-only.json': {
    format: 'meta-ad-library',
    ads: [{ adArchiveId: '8001', adSpendMax: 99, impressionsMax: 999, page: { pageName: 'Only metrics' } }],
    reportLines: ['no ad has a headline or a body'],
  },
};

test('every example file in the folder import-files has an expected import result', () => {
  expect(readdirSync(folder).sort()).toEqual(Object.keys(expectedImports).sort());
});

test.for(Object.entries(expectedImports))(
  'importing the example file %s gives the expected ads and the expected report',
  async ([name, expected], { libraryServer }) => {
    const report = await libraryServer.library.import(createReadStream(new URL(name, folder)));
    const [, ...lines] = formatImportReport({ name, ...report }).split('\n  ');
    expect(Object.keys(report.formats)).toEqual(expected.format === undefined ? [] : [expected.format]);
    expect(lines.filter((line) => !/^(?:columns|keys|format): /.test(line))).toEqual(expected.reportLines ?? []);
    const [, unusedKeys] = /; not used: (.*)$/.exec(report.keys ?? '') ?? [];
    if (report.columns === undefined) expect(unusedKeys).toBe(expected.unusedKeys);
    const { items } = await libraryServer.searchAll({ sort: 'duplicates', order: 'asc', limit: 100 });
    expect(items.map(({ id }) => id)).toHaveLength(expected.ads.length);
    for (const ad of expected.ads) expect(items).toContainEqual(expect.objectContaining(ad));
    const pages = (await libraryServer.searchAll({}, 'pages')).items;
    for (const page of expected.pages ?? []) expect(pages).toContainEqual(expect.objectContaining(page));
    for (const filters of expected.searches ?? [])
      expect((await libraryServer.search(filters)).body.totalHits, JSON.stringify(filters)).toBe(expected.ads.length);
  },
);

test('`library import` ignores the computed columns of a CSV file that export_ads has written', async ({
  libraryServer,
}) => {
  await libraryServer.library.import(createReadStream(new URL('own-export.csv', folder)));
  const { items } = await libraryServer.searchAll({});
  for (const computedColumn of ['Active', 'active', 'Days running', 'First line', 'Text', 'Gathered at', 'gatheredAt'])
    expect(items[0]).not.toHaveProperty([computedColumn]);
});

test('importing an exported table keeps dates before 2000 and after 2099', async ({ libraryServer }) => {
  const id = '00000000-0000-4000-8000-000000000001';
  const report = await libraryServer.importRecords(
    `ID,Started at,Last seen at,End date,Gathered at\n${id},1999-12-31,2026-03-01 12:30:05,9999-12-31,2026-03-01\n`,
  );
  expect(report).toMatchObject({ ads: 1, skipped: 0, problems: [] });
  const { items } = await libraryServer.searchAll({});
  expect(items).toEqual([
    {
      ...{ id, startedAt: '1999-12-31T00:00:00.000Z', lastSeenAt: '2026-03-01T12:30:05.000Z' },
      endDate: '9999-12-31T00:00:00.000Z',
    },
  ]);
});

test('importing an exported table removes the apostrophes that the export put before signs of formulas', async ({
  libraryServer,
}) => {
  const id = '00000000-0000-4000-8000-000000000001';
  await libraryServer.importRecords(
    `ID,Headline,Body,Gathered at\r\n${id},'=Now,"New (today):\n'- it's soft\n'- ""'quoted""; '+1|""'=1\n",2026-03-01\r\n`,
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toEqual([{ id, headline: '=Now', body: `New (today):\n- it's soft\n- "'quoted"; '+1|"=1\n` }]);
});

test.for([
  ['csv', ['id', 'headline', 'body', 'gatheredAt']],
  ['csv', ['id', 'json', 'gatheredAt']],
  ['jsonl', ['id', 'headline', 'body', 'gatheredAt']],
  ['jsonl', ['id', 'json', 'gatheredAt']],
] as const)(
  'importing an exported file restores texts that have apostrophes before signs of formulas (%s, columns %s)',
  async ([format, columns], { libraryServer }) => {
    const signs = ['=', '+1', '-50%', '- item', '\uff1d'];
    const texts = ['', '\n', '; ', ';', '|""', 'a\r\n', 'a\t'].flatMap((before) =>
      ['', "'", "''"].flatMap((apostrophes) => signs.map((sign) => `${before}${apostrophes}${sign}'`)),
    );
    const ads = texts.flatMap((body) =>
      // The second headline looks like a function call, so the export also escapes list items in its row.
      ['Sale', 'SUM(A1)'].map((headline) => ({ id: randomUUID() as string, headline, body })),
    );
    const rows = ads.map((ad) => {
      const cells = { ...ad, json: JSON.stringify(ad), gatheredAt: '2026-03-01T00:00:00.000Z' };
      return columns.map((column) => cells[column]);
    });
    const chunks: Uint8Array[] = [];
    const runStatement: RunStatement = (readRows) =>
      readRows({
        ...{ columns: [...columns], isAboutAds: true },
        rows: (async function* () {
          yield rows;
        })(),
      });
    await writeExport([{ name: 'Ads', sql: '', runStatement }], {
      ...{ format, maxBytes: 1e6, buildMethodRows: () => [] },
      writeBytes: (bytes) => void chunks.push(bytes),
    });
    await libraryServer.importRecords(Buffer.concat(chunks).toString());
    const { items } = await libraryServer.searchAll({});
    const bodyById = new Map(items.map(({ id, body }) => [id, body]));
    for (const { id, headline, body } of ads) expect([headline, bodyById.get(id)]).toEqual([headline, body]);
  },
);

test('importing an exported table keeps the currency of the spend', async ({ libraryServer }) => {
  const id = '00000000-0000-4000-8000-000000000001';
  await libraryServer.importRecords(`ID,Ad spend min,Currency,Gathered at\n${id},5,EUR,2026-03-01\n`);
  const { items } = await libraryServer.searchAll({ currency: 'EUR' });
  expect(items).toEqual([{ id, adSpendMin: 5, currency: 'EUR' }]);
});
