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
  '`library import` counts every malformed record of the format %s as either stored or skipped',
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

test('ads that have the same id in different ad libraries are stored as different ads', async ({ libraryServer }) => {
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

test('`library import` removes access tokens from the URLs of ads of every ad library', async ({ libraryServer }) => {
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

test('if two keys of a record fit the same field, the import uses one and stores the other under its original name', async ({
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

test('`library import` reads NA as the country code of Namibia and not as a missing value', async ({
  libraryServer,
}) => {
  const names = 'advertiser_id,creative_id,advertiser_disclosed_name,region_code,first_shown,last_shown';
  const rows = ['AR1,CR44,Acme,NA,2025-01-01,2025-03-01', 'AR1,CR44,Acme,ZA,2025-01-05,2025-02-01'];
  expect(await libraryServer.importRecords([names, ...rows].join('\n'))).toMatchObject({ skipped: 0 });
  expect((await libraryServer.searchAll({})).items).toMatchObject([
    { countries: ['NA', 'ZA'], startedAt: '2025-01-01T00:00:00.000Z', lastSeenAt: '2025-03-01T00:00:00.000Z' },
  ]);
});

test('if one import contains two records of a Google ad, the newer record determines the values, in any order', async ({
  libraryServer,
}) => {
  const createResult = (name: string, lastShown: number) => ({
    ...{ id: 'CR22', advertiser_id: 'AR1', advertiser: 'Acme', first_shown: 1_700_000_000, last_shown: lastShown },
    ...{ target_domain: `${name}.example`, image: `https://x.example/${name}.png` },
  });
  const [older, newer] = [createResult('old', 1_736_000_000), createResult('new', 1_738_368_000)];
  for (const records of [
    [older, newer],
    [newer, older],
  ]) {
    await libraryServer.importRecords(...records);
    expect((await libraryServer.searchAll({})).items).toMatchObject([
      { website: { siteDomain: 'new.example' }, lastSeenAt: '2025-02-01T00:00:00.000Z' },
    ]);
  }
});

test('the import never combines the audience bounds of two different records of an ad into one range', async ({
  libraryServer,
}) => {
  const createRecord = (size: object) => ({
    ...{ id: '111', page_id: '9', page_name: 'P', ad_delivery_start_time: '2026-01-01' },
    estimated_audience_size: size,
  });
  await libraryServer.importRecords(
    createRecord({ lower_bound: '500001', upper_bound: '1000000' }),
    createRecord({ lower_bound: '1000001' }),
  );
  const [ad] = (await libraryServer.searchAll({})).items;
  expect(ad).toMatchObject({ audienceSizeMin: 1_000_001 });
  expect(ad).not.toHaveProperty('audienceSizeMax');
});

test('the import reads the regions of a Google ad in NumPy notation and reports a text that is not a list', async ({
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

test('`library import` stores all values of the regions of a Google ad and reports keys that it does not know', async ({
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
  '`library import` reports a text in the column %s, which should contain a list of objects',
  async (column, { libraryServer }) => {
    const { ads, notes } = await libraryServer.importRecords(`ad_archive_id,${column}\n1,nonsense & more\n`);
    expect(ads).toBe(1);
    expect(notes.join('\n')).toContain(`1 × ${column}: "nonsense & more" is not a list of objects (first: line 2)`);
  },
);

test('`library import` reads table cells that contain objects with unquoted keys', async ({ libraryServer }) => {
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
  '`library import` accepts a TikTok ad without dates and media (source: %s)',
  async ([_, source], { libraryServer }) => {
    expect(await libraryServer.importRecords(source)).toMatchObject({ ads: 1, pages: 0, skipped: 0 });
    const { items } = await libraryServer.searchAll({});
    expect(items).toMatchObject([{ adArchiveId: '8', adLibrary: 'tiktok', pageId: 'tiktok:5', isActive: true }]);
  },
);

test('a table column and a JSON key with the same name are imported into the same field', async ({ libraryServer }) => {
  await libraryServer.importRecords(
    'Creative_ID,Advertiser_ID,Ad_Type,First_Shown,Age_Targeting,Spend_USD\nCR1,AR1,T,,18,5\n',
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ ageTargeting: '18', spendUsd: '5' }]);
});

test('`library import` adds the shares in Radlibrary tables to ads that were imported earlier', async ({
  libraryServer,
}) => {
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

test('the error about a Radlibrary table with shares of unknown ads says what to import first', async ({
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
    'a filtered pandas table, whose first row has the number 3',
    '{"ad_archive_id":{"3":"1"},"ad_creative_bodies":{"3":["Tea"]}}',
  ],
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
] as const)('`library import` reads an ad from this kind of source: %s', async ([_, source], { libraryServer }) => {
  expect(await libraryServer.importRecords(source)).toMatchObject({ ads: 1, skipped: 0, problems: [] });
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ adArchiveId: '1', body: 'Tea' }]);
  expect(Object.keys(items[0])).not.toContain('');
});

test.for([
  ['123', '456'],
  ['0', '1'],
])(
  'ads in an object whose keys are the numbers %s and %s are not read as a column of a pandas table',
  async ([firstKey, secondKey], { libraryServer }) => {
    const ads = { [firstKey as string]: { ad_archive_id: '1' }, [secondKey as string]: { ad_archive_id: 'abc' } };
    const { ads: adCount, problems } = await libraryServer.importRecords(JSON.stringify({ ads }));
    expect(adCount).toBe(1);
    expect(problems).toMatchObject([{ path: `ads.${secondKey}` }]);
    const page = { [firstKey as string]: { page_id: '7', page_name: 'Tea' }, [secondKey as string]: null };
    const report = await libraryServer.importRecords(JSON.stringify({ ads, page }));
    expect(report.problems[0]?.path).toBe(`ads.${secondKey}`);
  },
);

test('the error about a table from pandas without column names says how to export the table correctly', async ({
  libraryServer,
}) => {
  const { problems } = await libraryServer.importRecords('[["1","Tea"],["2","Coffee"]]');
  expect(problems[0]?.problem).toMatch(/write a table of pandas with to_json\(orient="records"\)$/);
});

test('the search filter "payer" finds ads by their payer, or by the disclaimer of a political ad', async ({
  libraryServer,
}) => {
  await libraryServer.importRecords(
    { ad_archive_id: '1', beneficiary_payers: [{ payer: 'Tea Ltd', beneficiary: 'Tea', current: true }] },
    { ad_archive_id: '2', bylines: 'Tea Ltd' },
    { ad_archive_id: '3', bylines: 'Coffee Ltd' },
  );
  const { items } = await libraryServer.searchAll({ payer: ['Tea Ltd'] });
  expect(items.map(({ adArchiveId }) => adArchiveId).sort()).toEqual(['1', '2']);
});

test('`library import` removes the API key of a scraping service from URLs in ads', async ({ libraryServer }) => {
  const link = 'https://serpapi.example/search?engine=google&api_key=SECRET&id=1';
  await libraryServer.importRecords({ creative_id: 'CR1', first_shown: 1735776000, serpapi_details_link: link });
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ serpapiDetailsLink: 'https://serpapi.example/search?engine=google&id=1' }]);
});

test('imported records with the same id from different platforms, such as Meta and TikTok, never become one ad or page', async ({
  libraryServer,
}) => {
  const shown = { first_shown_date: 20250102 };
  await libraryServer.importRecords(
    { ad_archive_id: '7', page_id: '111', page_name: 'On Facebook' },
    { ad: { id: 7, ...shown }, advertiser: { business_id: 111, business_name: 'With an id' } },
    { ad: { id: 8, ...shown }, advertiser: { business_name: '111' } },
    { id: 7, brand_names: ['Tea'], creator: { username: '111' }, create_date: 20260102 },
  );
  await libraryServer.importRecords('id,advertiser,page id,headline\n7,Own table,111,Tea\n');
  await libraryServer.importRecords(
    'Ad ID,Ad name,Account ID,Account name,Amount spent (EUR)\n7,Tea,111,Own account,1.50\n',
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toHaveLength(6);
  const { items: pages } = await libraryServer.searchAll({}, 'pages');
  expect(new Set(pages.map(({ pageId }) => pageId)).size).toBe(6);
  expect(pages.map(({ pageId }) => pageId)).toEqual(
    expect.arrayContaining(['111', 'tiktok:111', 'own:111', 'own:account-111']),
  );
});

test.for([
  [
    'Meta',
    { ad_archive_id: 'abc', snapshot: { title: 'Tea' } },
    /^ad_archive_id: "abc" is not the id of an ad in the Meta/,
  ],
  [
    'Meta in a response of the API',
    { id: 'x1', ad_creative_bodies: ['Tea'] },
    /^id: "x1" is not the id of an ad in the Meta/,
  ],
  ['Meta in a table', 'libraryId,body\nCR7,Tea\n', /^libraryId: "CR7" is not the id of an ad in the Meta/],
  [
    'TikTok',
    { ad: { id: 'abc', first_shown_date: 20250102 } },
    /^ad\.id: "abc" is not the id of an ad in the Ad Library/,
  ],
  ['Google', { creative_id: 'abc', target_domain: 'tea.example', first_shown: 1 }, /^creative_id: missing/],
  ['LinkedIn', { adUrl: 'https://www.linkedin.com/ad-library/detail/abc' }, /^adUrl: not the URL of an ad/],
] as const)(
  '`library import` rejects a record whose id cannot be the id of an ad of %s',
  async ([_, record, problem], { libraryServer }) => {
    const { ads, problems } = await libraryServer.importRecords(record);
    expect(ads).toBe(0);
    expect(problems).toMatchObject([{ problem: expect.stringMatching(problem) }]);
  },
);

test('`library import` reads the number in a library id such as "Library ID: 123456"', async ({ libraryServer }) => {
  await libraryServer.importRecords({ libraryId: 'Library ID: 123456', adText: 'Tea' });
  expect((await libraryServer.searchAll({})).items).toMatchObject([{ adArchiveId: '123456' }]);
});

test('`library import` stores the other entries of a list if one entry cannot be read', async ({ libraryServer }) => {
  const groups = [
    { age_range: '18-24', male: 'many', female: 2 },
    { age_range: '25-34', male: 3 },
  ];
  const { notes } = await libraryServer.importRecords(
    {
      ad_archive_id: '1',
      beneficiary_payers: [
        { payer: 'Tea Ltd', current: 'perhaps' },
        { payer: 'Coffee Ltd', current: true },
      ],
      age_country_gender_reach_breakdown: [{ country: 'DE', age_gender_breakdowns: groups }],
      total_reach_by_location: [
        { key: 'DE', value: 'many' },
        { key: 'FR', value: 5 },
      ],
    },
    { ad: { id: 2, first_shown_date: 20250102, reach: { unique_users_seen_by_country: { DE: 'many', FR: '5' } } } },
  );
  expect(notes.filter((note) => /"many"|"perhaps"/.test(note))).toHaveLength(4);
  const { items } = await libraryServer.searchAll({});
  expect(items.find(({ adLibrary }) => adLibrary === 'meta')).toMatchObject({
    beneficiaryPayers: [{ payer: 'Tea Ltd' }, { payer: 'Coffee Ltd', current: true }],
    ageCountryGenderReachBreakdown: [
      {
        country: 'DE',
        age_gender_breakdowns: [
          { age_range: '18-24', female: 2 },
          { age_range: '25-34', male: 3 },
        ],
      },
    ],
    reachByCountry: { FR: 5 },
  });
  expect(items.find(({ adLibrary }) => adLibrary === 'tiktok')).toMatchObject({ reachByCountry: { FR: 5 } });
});

test.for([
  ['TikTok', 'ad.id,ad.first_shown_date,ad.videos\n1,20250102,nonsense{\n', 'ad.videos'],
  ['LinkedIn', 'adUrl,isRestricted,imageUrl\nhttps://www.linkedin.com/ad-library/detail/1,no,nonsense{\n', 'imageUrl'],
  ['Google', 'creative_id,first_shown,imageUrl\nCR1,2026-01-05,nonsense{\n', 'imageUrl'],
  ['Meta', 'libraryId,videoUrls\n1,nonsense{\n', 'videoUrls'],
] as const)(
  'the import report names the row in which a media value of %s cannot be read',
  async ([_, table, column], { libraryServer }) => {
    const { ads, notes } = await libraryServer.importRecords(table);
    expect(ads).toBe(1);
    expect(notes).toContain(`1 × ${column}: "nonsense{" contains no URL (first: line 2)`);
  },
);

test.for([
  ['Active', true],
  ['INACTIVE', false],
  ['Completed', undefined],
])(
  '`library import` reads the status "%s" of a scraped Meta ad as the isActive field with the value %s',
  async ([status, isActive], { libraryServer }) => {
    await libraryServer.importRecords({ libraryId: '1', adText: 'Tea', status });
    const [ad] = (await libraryServer.searchAll({})).items;
    expect(ad.isActive).toBe(isActive);
    if (isActive === undefined) expect(ad.status).toBe(status);
  },
);

test('`library import` reads the texts, links and media from the variations of a Google ad', async ({
  libraryServer,
}) => {
  const scripted = 'https://displayads.example/ads/preview/content.js?client=x';
  await libraryServer.importRecords(
    {
      ...{ creativeId: 'CR1', advertiserId: 'AR1', format: 'text', firstShown: '2026-01-05', domain: 'tea.example' },
      variations: [
        {
          headline: 'Green tea',
          description: 'Fresh',
          destinationUrl: 'tea.example/green',
          imageUrl: 'https://m.example/1.png',
        },
        {
          headline: 'Black tea',
          description: 'Fresh',
          destinationUrl: 'https://tea.example/black',
          imageUrl: 'https://m.example/2.png',
        },
      ],
    },
    {
      creativeId: 'CR2',
      advertiserId: 'AR1',
      firstShown: '2026-01-05',
      variants: [{ imageUrl: 'https://m.example/3.png' }],
    },
    { creativeId: 'CR3', advertiserId: 'AR1', firstShown: '2026-01-05', previewUrl: 'https://m.example/4.png' },
    { creativeId: 'CR4', advertiserId: 'AR1', firstShown: '2026-01-05', previewUrl: scripted },
  );
  const { items } = await libraryServer.searchAll({});
  const findAd = (id: string) => items.find(({ adArchiveId }) => adArchiveId === id);
  expect(findAd('CR1')).toMatchObject({
    ...{ headline: 'Green tea', headlines: ['Green tea', 'Black tea'], body: 'Fresh', displayUrl: 'tea.example' },
    ...{ offerLink: 'https://tea.example/black', website: { siteDomain: 'tea.example' } },
    media: [{ url: 'https://m.example/1.png' }, { url: 'https://m.example/2.png' }],
  });
  expect(findAd('CR1').variations).toHaveLength(2);
  expect(findAd('CR2').media).toEqual([{ type: 'THUMB', url: 'https://m.example/3.png', nr: 0 }]);
  expect(findAd('CR3').media).toEqual([{ type: 'THUMB', url: 'https://m.example/4.png', nr: 0 }]);
  expect(findAd('CR4')).toMatchObject({ media: [], previewUrl: scripted });
});

test("`library import` reads Google's table of political advertisers as advertiser pages with their spend", async ({
  libraryServer,
}) => {
  const report = await libraryServer.importRecords(
    [
      'Advertiser_ID,Advertiser_Name,Public_IDs_List,Regions,Elections,Total_Creatives,Spend_USD,Spend_EUR',
      'AR5,Tea Party,X1,"EU,US",US-Federal,12,5000,4600',
      'AR6,Coffee Party,,EU,,3,,120',
    ].join('\n'),
  );
  expect(report).toMatchObject({ ads: 0, pages: 2, skipped: 0, formats: { 'google-ads-transparency': { pages: 2 } } });
  const { items } = await libraryServer.searchAll({}, 'pages');
  expect(items.find(({ pageId }) => pageId === 'google:AR5')).toMatchObject({
    ...{ pageName: 'Tea Party', adLibrary: 'google', countries: ['US'], adsAmount: 12, currency: 'USD' },
    ...{ adSpendMin: 5000, adSpendMax: 5000, spendEur: '4600', elections: 'US-Federal' },
  });
  expect(items.find(({ pageId }) => pageId === 'google:AR6')).toMatchObject({ currency: 'EUR', adSpendMin: 120 });
});

test.for(['Week_Start_Date', 'Country_Subdivision_Primary'])(
  "`library import` ignores rows about Google's political advertisers that split the spend by %s",
  async (column, { libraryServer }) => {
    const report = await libraryServer.importRecords(
      `Advertiser_ID,Advertiser_Name,${column},Spend_USD\nAR5,Tea Party,2026-01-05,50\n`,
    );
    expect(report).toMatchObject({ pages: 0, skipped: 0 });
    expect(report.notes.join()).toContain('the table advertiser_stats holds its whole spend: 1 row');
  },
);

test('an advertiser page that is created from ads gets the countries of all its ads and the name of their ad library', async ({
  libraryServer,
}) => {
  const buildAd = (id: number, countries: string[]) => ({
    ...{ ad_archive_id: String(id), page_id: '7', page_name: 'Tea', targeted_or_reached_countries: countries },
  });
  await libraryServer.importRecords(buildAd(1, ['DE']), buildAd(2, ['FR', 'DE']));
  await libraryServer.importRecords(buildAd(3, ['IT']));
  const readPage = async () => (await libraryServer.searchAll({}, 'pages')).items;
  const page = { pageId: '7', adLibrary: 'meta', countries: ['DE', 'FR', 'IT'], detailsEstimated: true };
  expect(await readPage()).toMatchObject([page]);
  // The country of an ad is not added to a page that was imported itself.
  const importedPage = { pageId: '7', pageName: 'Tea', countries: ['US'] };
  await libraryServer.importRecords(importedPage);
  await libraryServer.importRecords(buildAd(4, ['GB']));
  expect(await readPage()).toEqual([importedPage]);
});
