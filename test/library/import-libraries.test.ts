import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

/** For each format, keys that get random values in the test, and fields with fixed values that identify the format. */
const records: Record<string, { keys: string[]; fixed: object }> = {
  'google-ads-transparency': {
    keys: [
      ...['advertiser_id', 'region_stats', 'ad_format_type', 'first_shown', 'last_shown', 'times_shown_lower_bound'],
      ...['image', 'advertiser', 'regions', 'region_code', 'target_domain', 'spend_range_min_usd'],
    ],
    fixed: { creative_id: 'CR1', creative_page_url: 'https://adstransparency.google.com/advertiser/AR1/creative/CR1' },
  },
  'tiktok-ad-library': {
    keys: ['advertiser', 'ad_group', 'reach', 'status', 'image_urls', 'videos', 'business_id', 'last_shown_date'],
    fixed: { id: '1', first_shown_date: 20250102, business_name: 'Tea' },
  },
  'linkedin-ad-library': {
    keys: ['details', 'isRestricted', 'advertiserUrl', 'adStatistics', 'totalImpressions', 'adTargeting', 'type'],
    fixed: { adUrl: 'https://www.linkedin.com/ad-library/detail/1' },
  },
  'meta-advertiser-report': {
    keys: ['Page name', 'Disclaimer', 'Number of ads'],
    // The import ignores rows without the number of ads, because they contain the spend in only one region.
    fixed: { 'Page ID': '1', 'Amount spent (EUR)': '≤100', disclaimer: 'Tea', 'Number of ads in Library': '3' },
  },
  'meta-ads-manager': {
    keys: ['Ad name', 'Impressions', 'Reach', 'Ends', 'Starts', 'Age', 'Page name', 'Headline (ad settings)'],
    fixed: { 'Ad ID': '1', 'Amount spent (EUR)': '1.5' },
  },
};

test.for(Object.entries(records))(
  'library import counts every malformed record in the format %s as either stored or skipped',
  async ([format, { keys, fixed }], { libraryServer }) => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 4 }),
      fc.dictionary(
        fc.constantFrom('id', 'link', 'url', 'country', 'unique_users_seen', 'adStatistics', 'advertiserUrl', 'value'),
        fc.jsonValue({ maxDepth: 2 }),
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...keys), value), async (record) => {
        const report = await libraryServer.importRecords({ ...record, ...fixed });
        expect(report.ads + report.pages + report.skipped).toBe(1);
        if (report.skipped === 0) expect(Object.keys(report.formats)).toEqual([format]);
      }),
      { numRuns: 40 },
    );
  },
);

test('ads with the same id in different ad libraries are stored as different ads', async ({ libraryServer }) => {
  await libraryServer.importRecords(
    { ad_archive_id: '1', page_id: '7', snapshot: { page_name: 'Tea' } },
    { ad: { id: 1, first_shown_date: 20250102 }, advertiser: { business_id: 7, business_name: 'Tea' } },
    {
      adUrl: 'https://www.linkedin.com/ad-library/detail/1',
      details: { advertiser: { advertiserName: 'Tea', advertiserUrl: 'https://www.linkedin.com/company/7' } },
    },
  );
  const { items } = await libraryServer.searchAll({});
  expect(new Set(items.map(({ id }) => id)).size).toBe(3);
  const { items: pages } = await libraryServer.searchAll({}, 'pages');
  expect(pages.map(({ pageId }) => pageId).sort()).toEqual(['7', 'linkedin:7', 'tiktok:7']);
  expect((await libraryServer.get('/v1/pages/linkedin%3A7')).body).toMatchObject({ pageName: 'Tea' });
  for (const adLibrary of ['meta', 'tiktok', 'linkedin'])
    expect((await libraryServer.searchAll({ adLibrary: [adLibrary] })).items).toMatchObject([{ adLibrary }]);
  const { body } = await libraryServer.search({ countBy: 'adLibrary' });
  expect(body.counts.values).toHaveLength(3);
});

test('library import removes access tokens from the ads of every ad library', async ({ libraryServer }) => {
  const url = 'https://media.example/1.jpg?access_token=SECRET&id=1';
  await libraryServer.importRecords(
    { creative_id: 'CR1', details_link: url, image: url, advertiser_id: 'AR1' },
    { ad: { id: 1, first_shown_date: 20250102, image_urls: [url], external_url: url }, note: url },
    { adUrl: 'https://www.linkedin.com/ad-library/detail/1', details: { landing: url } },
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toHaveLength(3);
  expect(JSON.stringify(items)).not.toContain('SECRET');
});

test('if two keys have different values for the same field, library import uses one and stores the other under its own name', async ({
  libraryServer,
}) => {
  await libraryServer.importRecords(
    { ad_archive_id: '1', ad_id: '23', title: 'Top', snapshot: { title: 'T', page_name: 'Old' }, page_name: 'New' },
    {
      creative_id: 'CR1',
      advertiser_disclosed_name: 'Tea',
      advertiser_legal_name: 'Tea Ltd',
      first_shown: '2026-01-02',
    },
    {
      id: '9',
      brand_names: ['Tea'],
      creator: { username: 'tea' },
      create_date: 20260102,
      create_timestamp: 1767400000,
    },
    { ad_archive_id: '2', page_name: 'Tea', snapshot: { page_name: 'Tea' } },
  );
  const { items } = await libraryServer.searchAll({});
  const findAd = (adArchiveId: string) => items.find((item) => item.adArchiveId === adArchiveId);
  expect(findAd('1')).toMatchObject({ headline: 'T', adId: '23', title: 'Top', snapshot: { pageName: 'Old' } });
  expect(findAd('CR1')).toMatchObject({ page: { pageName: 'Tea' }, advertiserLegalName: 'Tea Ltd' });
  expect(findAd('9')).toMatchObject({ startedAt: '2026-01-02T00:00:00.000Z', createTimestamp: 1767400000 });
  // The snapshot contains the same value as a key that was used. It is not stored, because it adds no information.
  expect(findAd('2')).not.toHaveProperty('snapshot');
});

test('library import reads regions of a Google ad in the notation of NumPy, and reports a text that is no list', async ({
  libraryServer,
}) => {
  const createRecord = (number: number, regions: string) => ({
    creative_id: `CR${number}`,
    creative_page_url: `https://adstransparency.google.com/advertiser/AR1/creative/CR${number}`,
    region_stats: regions,
  });
  const listOfRegions = "[{'region_code': 'DE', 'first_shown': '2026-10-01'}\n {'region_code': 'FR'}]";
  const { notes } = await libraryServer.importRecords(
    createRecord(1, listOfRegions),
    createRecord(2, listOfRegions.replace("'FR'", "'FR', 'surface_serving_stats': array([{'a': 1}], dtype=object)")),
    createRecord(3, 'many regions'),
  );
  expect(notes.join('\n')).toMatch(/1 × region_stats: "many regions" is not a list of regions/);
  const { items } = await libraryServer.searchAll({});
  const countries = items.map((ad) => [ad.adArchiveId, ad.countries]).sort();
  expect(countries).toMatchObject([
    ['CR1', ['DE', 'FR']],
    ['CR2', ['DE', 'FR']],
    ['CR3', undefined],
  ]);
});

test('library import stores all values of a region of a Google ad and reports unknown keys', async ({
  libraryServer,
}) => {
  const region = {
    ...{ region_code: 'DE', times_shown_start_date: '2026-01-05', times_shown_end_date: '2026-01-30' },
    ...{
      times_shown_availability_date: '2026-03-03',
      impressions: { lower: 1000, upper: 2000 },
      regionName: 'Germany',
    },
  };
  const url = 'https://adstransparency.google.com/advertiser/AR1/creative/CR1';
  const { notes, keys } = await libraryServer.importRecords({
    ...{ creative_id: 'CR1', creative_page_url: url, region_stats: [region, { times_shown_lower_bound: 5 }] },
  });
  expect(notes.join('\n')).toMatch(/region_stats: .* has no region_code/);
  expect(keys).toMatch(/; not used: region_stats\.regionName \(1\)$/);
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([
    {
      ...{ impressionsMin: 1000, impressionsMax: 2000 },
      regionStats: [
        {
          ...{ regionCode: 'DE', timesShownStartDate: '2026-01-05', timesShownEndDate: '2026-01-30' },
          ...{ timesShownAvailabilityDate: '2026-03-03', regionName: 'Germany' },
        },
      ],
    },
  ]);
});

const objectColumns = [
  ...['demographic_distribution', 'delivery_by_region', 'beneficiary_payers'],
  ...['age_country_gender_reach_breakdown', 'total_reach_by_location'],
];

test.for(objectColumns)(
  'library import reports a text in the column %s, which must contain a list of objects',
  async (column, { libraryServer }) => {
    const { ads, notes } = await libraryServer.importRecords(`ad_archive_id,${column}\n1,nonsense & more\n`);
    expect(ads).toBe(1);
    expect(notes.join('\n')).toContain(`1 × ${column}: "nonsense & more" is not a list of objects (first: line 2)`);
  },
);

test('library import reads table cells with objects whose keys have no quotation marks', async ({ libraryServer }) => {
  await libraryServer.importRecords(
    'ad_archive_id,demographic_distribution\n1,"{percentage: 0.5, age: 18-24, gender: male}, {percentage: 0.5, age: 65+, gender: male}"\n',
  );
  const { items } = await libraryServer.searchAll({});
  expect(items[0].demographics).toEqual([
    { percentage: 0.5, age: '18-24', gender: 'male' },
    { percentage: 0.5, age: '65+', gender: 'male' },
  ]);
});

test.for([
  ['JSON', { ad: { id: 8, status: 'active' }, advertiser: { business_id: 5, business_name: 'Tea' } }],
  ['a table', 'ad.id,ad.status,advertiser.business_id,advertiser.business_name\n8,active,5,Tea\n'],
] as const)(
  'library import accepts a TikTok ad without dates and media from %s',
  async ([_, source], { libraryServer }) => {
    expect(await libraryServer.importRecords(source)).toMatchObject({ ads: 1, pages: 0, skipped: 0 });
    const { items } = await libraryServer.searchAll({});
    expect(items).toMatchObject([{ adArchiveId: '8', adLibrary: 'tiktok', pageId: 'tiktok:5', isActive: true }]);
  },
);

test('a column and a JSON key of the same name are imported into the same field', async ({ libraryServer }) => {
  await libraryServer.importRecords(
    'Creative_ID,Advertiser_ID,Ad_Type,First_Shown,Age_Targeting,Spend_USD\nCR1,AR1,T,,18,5\n',
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ ageTargeting: '18', spendUsd: '5' }]);
});

test("Radlibrary's tables of shares are added to the ads of an earlier import", async ({ libraryServer }) => {
  await libraryServer.importRecords('id,page_id,ad_creative_bodies\n3001,77,Vote\n');
  const ages = '"",adlib_id,percentage,age,gender\n1,3001,0.75,18-24,male\n2,3001,0.25,65+,female\n';
  expect(await libraryServer.importRecords(ages)).toMatchObject({
    formats: { 'radlibrary-shares': { ads: 1 } },
    skipped: 0,
    notes: [],
  });
  // A later import of the same table replaces all shares of the earlier import.
  await libraryServer.importRecords(ages.replace('18-24', '25-34'));
  await libraryServer.importRecords('id,percentage,region\n3001,1,Texas\n');
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([
    {
      body: 'Vote',
      demographics: [
        { percentage: 0.75, age: '25-34', gender: 'male' },
        { percentage: 0.25, age: '65+', gender: 'female' },
      ],
      regions: [{ percentage: 1, region: 'Texas' }],
    },
  ]);
});

test('library import rejects a table of shares if its ads are not stored, and names the table to import first', async ({
  libraryServer,
}) => {
  const { ads, problems } = await libraryServer.importRecords('id,percentage,region\n3001,1,Texas\n');
  expect(ads).toBe(0);
  expect(problems).toMatchObject([
    {
      line: 2,
      problem: 'id: the archive has no ad 3001; a table of shares only adds to ads, so import the table of ads first',
    },
  ]);
});

test.for([
  ['JSONP', 'loadAds({"data":[{"ad_archive_id":"1","ad_creative_bodies":["Tea"]}]});\n'],
  [
    'JSONP on several lines',
    '/**/ app.load({\n "data": [\n{"ad_archive_id":"1","ad_creative_bodies":["Tea"]}\n]})\n\n',
  ],
  ['a pandas table with orient="columns"', '{"ad_archive_id":{"0":"1"},"ad_creative_bodies":{"0":["Tea"]}}'],
  [
    'a pandas table with orient="split"',
    '{"columns":["ad_archive_id","ad_creative_bodies"],"index":[0],"data":[["1",["Tea"]]]}',
  ],
  ['a pandas table with row numbers in CSV', ',ad_archive_id,ad_creative_bodies\n0,1,Tea\n'],
  [
    'markup with a script and a style',
    {
      ad_archive_id: '1',
      snapshot: {
        body: { markup: { __html: '<style>p{}</style>Te<script type="x">alert(1 < 2)</script>a<script>end' } },
      },
    },
  ],
] as const)('library import reads an ad from this source: %s', async ([_, source], { libraryServer }) => {
  expect(await libraryServer.importRecords(source)).toMatchObject({ ads: 1, skipped: 0, problems: [] });
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ adArchiveId: '1', body: 'Tea' }]);
  expect(Object.keys(items[0])).not.toContain('');
});

test('library import of a pandas table without column names tells the user how to write the table with pandas', async ({
  libraryServer,
}) => {
  const { problems } = await libraryServer.importRecords('[["1","Tea"],["2","Coffee"]]');
  expect(problems[0]?.problem).toMatch(/write a table of pandas with to_json\(orient="records"\)$/);
});

test('the filter payer finds ads by their payer, or by the disclaimer of a political ad', async ({ libraryServer }) => {
  await libraryServer.importRecords(
    { ad_archive_id: '1', beneficiary_payers: [{ payer: 'Tea Ltd', beneficiary: 'Tea', current: true }] },
    { ad_archive_id: '2', bylines: 'Tea Ltd' },
    { ad_archive_id: '3', bylines: 'Coffee Ltd' },
  );
  const { items } = await libraryServer.searchAll({ payer: ['Tea Ltd'] });
  expect(items.map(({ adArchiveId }) => adArchiveId).sort()).toEqual(['1', '2']);
});

test('library import removes the API key of a scraping service from URLs', async ({ libraryServer }) => {
  const link = 'https://serpapi.example/search?engine=google&api_key=SECRET&id=1';
  await libraryServer.importRecords({ creative_id: 'CR1', first_shown: 1735776000, serpapi_details_link: link });
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ serpapiDetailsLink: 'https://serpapi.example/search?engine=google&id=1' }]);
});

test('a table from a scraper of LinkedIn is read as ads of LinkedIn', async ({ libraryServer }) => {
  const url = 'https://www.linkedin.com/ad-library/detail/1521996440';
  await libraryServer.importRecords(
    `adId,adDetailUrl,advertiserName,headline,bodyText,imageUrls\n1521996440,${url},Tea,T,B,"https://m.example/1.png,https://m.example/2.png"\n`,
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([
    {
      ...{ adArchiveId: '1521996440', adLibrary: 'linkedin', headline: 'T', body: 'B', adSnapshotUrl: url },
      media: [{ url: 'https://m.example/1.png' }, { url: 'https://m.example/2.png' }],
    },
  ]);
});
