import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';
import { formatImportReport } from '../../src/cli/library.ts';
import { libraryTest as test } from './support/fixtures.ts';
import type { LibraryServer } from './support/library-server.ts';

const archiveGuide = readFileSync(new URL('../../docs/archive.md', import.meta.url), 'utf8');
const exampleTable = /```csv\n(.*?)```/s.exec(archiveGuide)?.[1] ?? '';

const findAds = async (libraryServer: LibraryServer, filters: object = {}) =>
  (await libraryServer.search(filters)).body.items;

test('`library import` reads the example table from the documentation', async ({ libraryServer }) => {
  expect(exampleTable).toBe(readFileSync(new URL('../../docs/examples/own-ads.csv', import.meta.url), 'utf8'));
  expect(await libraryServer.importRecords(exampleTable)).toMatchObject({ ads: 3, skipped: 0 });
  const [sockAd] = await findAds(libraryServer, { query: 'wales' });
  expect(sockAd).toMatchObject({
    page: { pageName: 'Sock Shop' },
    headline: 'Warm socks for cold days',
    startedAt: '2026-01-05T00:00:00.000Z',
    offerLink: 'https://socks.example/warm',
    displayFormat: 'IMAGE',
    countries: ['GB'],
    duplicates: 3,
    media: [{ type: 'THUMB', url: 'https://socks.example/warm.jpg' }],
  });
  expect(await findAds(libraryServer, { advertiserExact: ['Sock Shop'], countries: ['IE'] })).toMatchObject([
    { headline: 'Summer socks', endDate: '2026-08-31T00:00:00.000Z' },
  ]);
  // Both ads of the advertiser belong to the same page.
  expect(await findAds(libraryServer, { pageId: [sockAd.pageId] })).toHaveLength(2);
});

test('`library import` recognizes the payer and beneficiary columns of a table in any letter case', async ({
  libraryServer,
}) => {
  const table = 'Advertiser,Headline,Payer,Beneficiary\nShop,Hats,Hat Ltd,Hat Brand\n';
  expect(await libraryServer.importRecords(table)).toMatchObject({ ads: 1, skipped: 0 });
  const otherTable = 'advertiser,headline,payer,Paid for by\nShop,Caps,Cap Ltd,\n';
  expect(await libraryServer.importRecords(otherTable)).toMatchObject({ ads: 1, skipped: 0 });
  expect(await findAds(libraryServer, { query: 'hats' })).toMatchObject([
    { payer: 'Hat Ltd', beneficiary: 'Hat Brand' },
  ]);
  expect(await findAds(libraryServer, { query: 'caps' })).toMatchObject([{ payer: 'Cap Ltd' }]);
});

test('two imported table rows without an ad id count as the same ad if their texts are equal', async ({
  libraryServer,
}) => {
  const buildTable = (body: string) => `Advertiser;Title;Primary text;Started\nShop;Hats;${body};2026-01-05\n`;
  expect(await libraryServer.importRecords(buildTable('Warm'))).toMatchObject({ ads: 1, updated: 0 });
  expect(await libraryServer.importRecords(buildTable('Warm'))).toMatchObject({ ads: 1, updated: 1 });
  expect(await libraryServer.importRecords(buildTable('Cold'))).toMatchObject({ ads: 1, updated: 0 });
  const [firstAd] = await findAds(libraryServer);
  expect(firstAd.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

test('an imported table row replaces the stored ad that has the same id', async ({ libraryServer }) => {
  await libraryServer.importRecords('ID,Body,My note\nnumber 7,First,x\n');
  expect(await libraryServer.importRecords('ID,Body,My note\nnumber 7,Second,y\n')).toMatchObject({ updated: 1 });
  expect(await findAds(libraryServer, { query: 'second' })).toMatchObject([{ 'My note': 'y' }]);
});

test('`library import` rejects a table row whose lower bound is larger than its upper bound', async ({
  libraryServer,
}) => {
  const rows = ['Good,10,20,5', 'Two columns,20,10,5', 'One column,10,20,300-200'];
  expect(
    await libraryServer.importRecords(['headline,spend min,spend max,impressions', ...rows].join('\n')),
  ).toMatchObject({
    ads: 1,
    problems: [
      { line: 3, problem: 'spend: the lower bound 20 is larger than the upper bound 10' },
      { line: 4, problem: expect.stringContaining('the lower bound 300 is larger than the upper bound 200') },
    ],
  });
});

test('`library import` names the line of each invalid row and stores the other rows', async ({ libraryServer }) => {
  const report = await libraryServer.importRecords(
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

test.for<[cells: string[], expected: string[] | RegExp]>([
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
])(
  '`library import` reads all dates of the column %j in the same day and month order or rejects the column',
  async ([cells, expected], { libraryServer }) => {
    const report = await libraryServer.importRecords(
      ['Ad headline,First seen', ...cells.map((cell, index) => `Ad ${index},${cell}`)].join('\n'),
    );
    if (expected instanceof RegExp) {
      expect(report).toMatchObject({ ads: 0, problems: [{ problem: expect.stringMatching(expected) }] });
      return;
    }
    expect(report).toMatchObject({ ads: expected.length, skipped: 0 });
    const { items } = await libraryServer.searchAll({ sort: 'duplicates', order: 'asc' });
    expect(items.map(({ startedAt }) => startedAt.slice(0, 10))).toEqual(expected);
  },
);

test('`library import` accepts both names and codes of countries in a table', async ({ libraryServer }) => {
  const report = await libraryServer.importRecords(
    'Ad headline,Headline,Brand name,Country,My note\nTea,x,Leaf,"Germany, UK; United Kingdom; Deutschland; USA; at",n\nTea,x,Leaf,Atlantis,\n',
  );
  expect(formatImportReport({ name: 'file', ...report }).split('\n')).toEqual([
    'file: 1 ad and 0 pages, 1 skipped:',
    '  format: own-ads (1 ad)',
    '  columns: headline ← Ad headline, pageName ← Brand name, countries ← Country; not used: Headline, My note',
    '  line 3: countries: "Atlantis" is not a country such as DE or Germany; use the two-letter country code',
  ]);
  expect(await findAds(libraryServer)).toMatchObject([
    { headline: 'Tea', countries: ['DE', 'GB', 'US', 'AT'], 'My note': 'n' },
  ]);
});

test('`library import` accepts the common spellings of country names in a table', async ({ libraryServer }) => {
  const codes = {
    ...{
      Turkey: 'TR',
      'Hong Kong': 'HK',
      Macau: 'MO',
      Palestine: 'PS',
      'Czech Republic': 'CZ',
      UAE: 'AE',
      'U.S.': 'US',
    },
    ...{ 'United States of America': 'US', 'Great Britain': 'GB', 'Bosnia and Herzegovina': 'BA', 'Viet Nam': 'VN' },
    ...{ "Cote d'Ivoire": 'CI', 'Côte d’Ivoire': 'CI', 'The Netherlands': 'NL', Osterreich: 'AT', 'SOUTH KOREA': 'KR' },
  };
  const rows = Object.keys(codes).map((country) => `${country},${country}`);
  expect(await libraryServer.importRecords(['headline,countries', ...rows].join('\n'))).toMatchObject({ skipped: 0 });
  const ads = (await findAds(libraryServer)) as { headline: string; countries: string[] }[];
  expect(Object.fromEntries(ads.map(({ headline, countries }) => [headline, countries]))).toEqual(
    Object.fromEntries(Object.entries(codes).map(([country, code]) => [country, [code]])),
  );
});

test('`library import` counts each row of a table as stored, repeated or skipped', async ({ libraryServer }) => {
  const cell = fc.string({ unit: 'binary', maxLength: 30 }).map((text) => `"${text.replaceAll('"', '""')}"`);
  const columns = ['headline', 'advertiser', 'start', 'copies', 'countries', 'id', '__proto__', 'page id', 'link'];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(...columns.map(() => cell)), { minLength: 1, maxLength: 5 }), async (rows) => {
      const text = [columns.filter((name) => name !== 'page id'), ...rows.map((row) => row.slice(0, -1))].join('\n');
      const { ads, repeated, skipped } = await libraryServer.importRecords(text);
      expect(ads + repeated + skipped).toBe(rows.length);
    }),
    { numRuns: 50 },
  );
});

test('table rows with the same id are stored as different ads if their advertisers differ', async ({
  libraryServer,
}) => {
  const buildTable = (advertiser: string) => `id,advertiser,headline\n1,${advertiser},One\n2,${advertiser},Two\n`;
  expect(await libraryServer.importRecords(buildTable('Shop'))).toMatchObject({ ads: 2, updated: 0 });
  expect(await libraryServer.importRecords(buildTable('Bakery'))).toMatchObject({ ads: 2, updated: 0 });
  expect(await libraryServer.importRecords(buildTable('Shop'))).toMatchObject({ ads: 2, updated: 2 });
  expect(await findAds(libraryServer)).toHaveLength(4);
});

/** Imports an export of Ads Manager with these columns and rows. Returns the report and the stored ads. */
async function importAdsManagerRows(libraryServer: LibraryServer, columns: string, rows: readonly string[]) {
  const header = `${columns},Ad name,Amount spent (EUR),Impressions,Reporting ends`;
  const report = await libraryServer.importRecords([header, ...rows].join('\n'));
  return { report, ads: await findAds(libraryServer) };
}

test.for([
  ['campaigns', 'Campaign name'],
  ['ad sets', 'Ad set name'],
  ['campaign ids', 'Campaign ID'],
  ['ad set ids', 'Ad set ID'],
] as const)(
  'Ads Manager rows without an ad id are stored as separate ads if their %s differ',
  async ([_, column], { libraryServer }) => {
    const { report, ads } = await importAdsManagerRows(libraryServer, column, [
      '12,Video 1,100.00,5000,2026-01-31',
      '13,Video 1,40.00,2000,2026-01-31',
      '14,Video 1,60.00,900,2026-01-31',
    ]);
    expect(report).toMatchObject({ ads: 3, repeated: 0, skipped: 0 });
    expect(ads.map(({ adSpendMin }: { adSpendMin: number }) => adSpendMin).sort()).toEqual([100, 40, 60]);
  },
);

test.for([
  ['without a breakdown', 'Note', 'a', 'b'],
  ['with a breakdown by age', 'Age', '18-24', '18-24'],
] as const)(
  '`library import` skips an Ads Manager row without an ad id %s, because the row may belong to another ad',
  async ([_, column, firstCell, secondCell], { libraryServer }) => {
    const firstRow = `${firstCell},Video 1,100.00,5000,2026-01-31`;
    const { report, ads } = await importAdsManagerRows(libraryServer, column, [
      ...[firstRow, firstRow, `${secondCell},Video 1,40.00,2000,2026-01-31`],
    ]);
    expect(report).toMatchObject({ ads: 1, repeated: 1, skipped: 1 });
    expect(report.problems).toMatchObject([{ line: 4, problem: expect.stringContaining('with the column Ad ID') }]);
    expect(ads).toMatchObject([{ adSpendMin: 100 }]);
  },
);

test('the import rejects a second Ads Manager row of an ad if the start dates of the two reporting periods are unknown', async ({
  libraryServer,
}) => {
  const { report, ads } = await importAdsManagerRows(libraryServer, 'Campaign name', [
    'Winter,Video 1,100.00,5000,2026-01-31',
    'Winter,Video 1,40.00,2000,2026-02-28',
  ]);
  expect(report).toMatchObject({
    ...{ ads: 1, skipped: 1 },
    problems: [{ line: 3, problem: expect.stringContaining('so the amount spent may be 40 or 140;') }],
  });
  expect(ads).toMatchObject([{ adSpendMin: 100 }]);
});

/** Imports rows of an export of Ads Manager with all of its columns. Returns the report and the stored ads. */
async function importAdsManagerTable(libraryServer: LibraryServer, ...lines: string[]) {
  const report = await libraryServer.importRecords(lines.join('\n'));
  return { report, ads: await findAds(libraryServer) };
}

const breakdownColumns = 'Ad ID,Ad name,Age,Amount spent (EUR),Impressions,Reach,Link clicks,Results,CTR (all)';

test('the import adds up the results of an Ads Manager breakdown, except for values such as reach that cannot be added', async ({
  libraryServer,
}) => {
  const { report, ads } = await importAdsManagerTable(
    libraryServer,
    breakdownColumns,
    '1,V,18-24,10.10,100,80,40,3,1.5',
    '1,V,25-34,5.20,50,40,20,1,2.5',
    '1,V,35-44,1,10,9,,,2.5',
  );
  expect(report).toMatchObject({ ads: 1, repeated: 2, skipped: 0 });
  expect(report.notes.join('\n')).toMatch(/2 × Reach: kept for each row of an ad but not added up/);
  expect(ads).toMatchObject([
    {
      ...{ adSpendMin: 16.3, adSpendMax: 16.3, impressionsMin: 160, impressionsMax: 160 },
      ...{ 'Link clicks': 60, Results: 4 },
      breakdown: [
        { values: { Age: '18-24' }, audienceReach: 80, results: { 'Link clicks': 40, Results: 3, 'CTR (all)': '1.5' } },
        { values: { Age: '25-34' }, audienceReach: 40 },
        { values: { Age: '35-44' }, audienceReach: 9 },
      ],
    },
  ]);
  expect(ads[0]).not.toHaveProperty('audienceReach');
  expect(ads[0]).not.toHaveProperty('CTR (all)');
});

test.for([
  ['first', ['1,V,All,16,160,100,60,4,1.8', '1,V,18-24,10,100,80,40,3,1.5', '1,V,25-34,5,50,40,20,1,2.5']],
  ['last', ['1,V,18-24,10,100,80,40,3,1.5', '1,V,25-34,5,50,40,20,1,2.5', '1,V,,16,160,100,60,4,1.8']],
  ['in the middle', ['1,V,18-24,10,100,80,40,3,1.5', '1,V,All,16,160,100,60,4,1.8', '1,V,25-34,5,50,40,20,1,2.5']],
] as const)(
  'an imported ad gets its results from the total row of an Ads Manager breakdown (position of the row: %s)',
  async ([_, rows], { libraryServer }) => {
    const { report, ads } = await importAdsManagerTable(libraryServer, breakdownColumns, ...rows);
    expect(report).toMatchObject({ ads: 1, skipped: 0 });
    expect(ads).toMatchObject([
      {
        ...{
          adSpendMin: 16,
          impressionsMin: 160,
          audienceReach: 100,
          'Link clicks': 60,
          Results: 4,
          'CTR (all)': '1.8',
        },
        breakdown: [{ values: {} }, { values: { Age: '18-24' } }, { values: { Age: '25-34' } }],
      },
    ]);
  },
);

test('an import of an Ads Manager breakdown by day sets the last day of an ad, but not its start date', async ({
  libraryServer,
}) => {
  const { ads } = await importAdsManagerTable(
    libraryServer,
    'Ad ID,Ad name,Day,Amount spent (EUR),Link clicks,Reporting starts,Reporting ends',
    '1,V,2026-01-07,5,1,2026-01-01,2026-01-31',
    '1,V,2026-01-05,1,2,2026-01-01,2026-01-31',
    '1,V,2026-01-06,2,3,2026-01-01,2026-01-31',
  );
  expect(ads).toMatchObject([
    {
      ...{ adSpendMin: 8, 'Link clicks': 6 },
      ...{ reportingStarts: '2026-01-01T00:00:00.000Z', lastSeenAt: '2026-01-07T00:00:00.000Z' },
    },
  ]);
  expect(ads[0]).not.toHaveProperty('startedAt');
});

test('if one import contains two Ads Manager breakdowns of an ad, its results are not counted twice', async ({
  libraryServer,
}) => {
  const { ads } = await importAdsManagerTable(
    libraryServer,
    'Ad ID,Ad name,Age,Country,Amount spent (EUR),Link clicks',
    ...['1,V,18-24,,10,4', '1,V,25-34,,5,2', '1,V,,DE,12,5', '1,V,,FR,3,1'],
  );
  expect(ads).toMatchObject([{ adSpendMin: 15, 'Link clicks': 6 }]);
});

test('the imported total of an Ads Manager breakdown does not depend on the order of the rows', async ({
  libraryServer,
}) => {
  const row = fc.record({ clicks: fc.option(fc.nat(1000)), spend: fc.nat(1000), reach: fc.nat(1000), ctr: fc.nat(9) });
  let adId = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 2, maxLength: 8 }), async (rows) => {
      adId++;
      const lines = rows.map(
        ({ clicks, spend, reach, ctr }, age) => `${adId},V,${age},${spend},1,${reach},${clicks ?? ''},,${ctr}.5`,
      );
      const { ads } = await importAdsManagerTable(libraryServer, breakdownColumns, ...lines.reverse());
      const ad = ads.find((candidate: { adId: string }) => candidate.adId === String(adId));
      const sum = (values: (number | null)[]) => values.reduce<number>((total, value) => total + (value ?? 0), 0);
      expect(ad).toMatchObject({ adSpendMin: sum(rows.map(({ spend }) => spend)), impressionsMin: rows.length });
      if (rows.some(({ clicks }) => clicks !== null))
        expect(ad['Link clicks']).toBe(sum(rows.map(({ clicks }) => clicks)));
      expect(ad).not.toHaveProperty('audienceReach');
      expect(ad.breakdown).toHaveLength(rows.length);
    }),
    { numRuns: 20 },
  );
});

test('the imported total of an Ads Manager breakdown leaves out a result if the value in one of the rows cannot be read', async ({
  libraryServer,
}) => {
  const { ads } = await importAdsManagerTable(
    libraryServer,
    breakdownColumns,
    '1,V,18-24,10,100,80,40,3,1.5',
    '1,V,25-34,5,50,40,20,many,2.5',
  );
  expect(ads).toMatchObject([
    { 'Link clicks': 60, breakdown: [{ results: { Results: 3 } }, { results: { Results: 'many' } }] },
  ]);
  expect(ads[0]).not.toHaveProperty('Results');
});
