import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

const ownTable = (...rows: string[]) => ['advertiser,headline,spend,currency', ...rows].join('\n');

test.for([
  ['€7.50', '', 'EUR', 7.5],
  ['7.50 €', '', 'EUR', 7.5],
  ['7.50', '€', 'EUR', 7.5],
  ['£8.50', 'GBP', 'GBP', 8.5],
  ['zł 12', '', 'PLN', 12],
  ['₺250', '', 'TRY', 250],
  ['7.50 CHF', '', 'CHF', 7.5],
  ['US$5', '', 'USD', 5],
  ['$5.50', 'CAD', 'CAD', 5.5],
  ['£5.50', 'EGP', 'EGP', 5.5],
] as const)(
  'an imported amount of %s in a row with the currency "%s" is stored with the currency %s',
  async ([amount, statedCurrency, currency, adSpendMin], { libraryServer }) => {
    const report = await libraryServer.importRecords(ownTable(`Tea,One,${amount},${statedCurrency}`));
    expect(report).toMatchObject({ ads: 1, skipped: 0, notes: [] });
    expect((await libraryServer.searchAll({})).items).toMatchObject([{ adSpendMin, currency }]);
  },
);

test.for([
  ['a table of your own', 'headline,advertiser,country,spend', ['Tea,A,DE,100', 'Tea,A,FR,50'], 'adSpendMin'],
  [
    'Google',
    'creative_id,advertiser_id,region,first_shown,impressions',
    ['CR1,AR1,DE,2026-01-05,90', 'CR1,AR1,FR,2026-01-05,80'],
    'impressionsMin',
  ],
] as const)(
  'the import report mentions an ad of which two records have different results (table: %s)',
  async ([_, header, rows, field], { libraryServer }) => {
    const { notes } = await libraryServer.importRecords([header, ...rows].join('\n'));
    expect(notes.join('\n')).toMatch(
      new RegExp(`${field}: an earlier record of this ad has \\d+ and this record has \\d+,`),
    );
    const sameRows = await libraryServer.importRecords([header, rows[1], rows[1]].join('\n'));
    expect(sameRows.notes.join('\n')).not.toContain('an earlier record');
  },
);

test.for([
  [
    'LinkedIn',
    { url: 'https://www.linkedin.com/ad-library/detail/16', headline: 'Tea' },
    'website',
    'https://tea.example',
  ],
  ['TikTok', { id: '75', first_shown_date: '2026-01-05', business_id: '7' }, 'duplicates', '3'],
  ['Google', { creative_id: 'CR1', advertiser_id: 'AR1' }, 'countries', 'DE'],
  ['Meta', { ad_archive_id: '5', page_id: '7' }, 'lastSeenAt', 'yesterday'],
  ['Ads Manager', { 'Ad ID': '5', 'Amount spent (EUR)': 3 }, 'productPrice', '5 EUR'],
] as const)(
  'an ad of %s is stored without an unknown key whose value is not valid for the API field with the same name',
  async ([_, record, key, value], { libraryServer }) => {
    const report = await libraryServer.importRecords(JSON.stringify([{ ...record, [key]: value }]));
    expect(report).toMatchObject({ ads: 1, skipped: 0, problems: [] });
    expect(report.notes.join('\n')).toMatch(
      new RegExp(`^1 × ${key}: .+; the field ${key} is left out \\(first: `, 'm'),
    );
    const { items } = await libraryServer.searchAll({});
    expect(items).toHaveLength(1);
    expect(items[0][key]).not.toBe(value);
  },
);

test('an import report names a field that the import leaves out because the field contains an invalid value', async ({
  libraryServer,
}) => {
  const countries = ['DE', 5];
  const { notes } = await libraryServer.importRecords({ creative_id: 'CR1', advertiser_id: 'AR1', countries });
  expect(notes.join('\n')).toMatch(/^1 × countries\.1: .+; the field countries is left out \(first: /m);
});

test('a record with only the lower bound of a range also removes the upper bound of an earlier record of the same ad', async ({
  libraryServer,
}) => {
  const ad = { id: '1', page_id: '2', ad_delivery_start_time: '2026-01-05' };
  await libraryServer.importRecords(
    JSON.stringify([
      { ...ad, currency: 'EUR', impressions: { lower_bound: '900000', upper_bound: '999999' } },
      { ...ad, impressions: { lower_bound: '1000000' } },
    ]),
  );
  const { body } = await libraryServer.search({});
  expect(body.items).toMatchObject([{ impressionsMin: 1_000_000, currency: 'EUR' }]);
  expect(body.items[0]).not.toHaveProperty('impressionsMax');
});

test('an amount with a sign such as $, which several currencies share, is imported without a currency and reported', async ({
  libraryServer,
}) => {
  const report = await libraryServer.importRecords(ownTable('Tea,One,$5.50,', 'Tea,Two,$6,', 'Tea,Three,12 kr,'));
  expect(report).toMatchObject({ ads: 3, skipped: 0 });
  expect(report.notes).toEqual([
    '2 × spend: the currency of "$5.50" is unknown, because its sign may mean USD, CAD, AUD; add a column "currency" (first: line 2)',
    '1 × spend: the currency of "12 kr" is unknown, because its sign may mean SEK, NOK, DKK; add a column "currency" (first: line 4)',
  ]);
  const { items } = await libraryServer.searchAll({});
  for (const item of items) expect(item).not.toHaveProperty('currency');
});

test.for([
  ['$5.50', 'EUR'],
  ['£8.50', 'USD'],
  ['€100 - €199', 'USD'],
  ['>€1M', 'GBP'],
  ['€5 USD', ''],
] as const)(
  'the import rejects a row of a user-made table in which the amount %s contradicts the currency %s',
  async ([amount, currency], { libraryServer }) => {
    const report = await libraryServer.importRecords(ownTable('Tea,One,5,EUR', `Tea,Two,${amount},${currency}`));
    expect(report).toMatchObject({ ads: 1, skipped: 1 });
    const code = currency || 'EUR';
    expect(report.problems).toEqual([
      {
        line: 3,
        path: '',
        problem: `spend: "${amount}" contradicts the currency ${code}, so the amount is unknown; correct one of them`,
      },
    ]);
  },
);

test('an imported ad of the Meta Ad Library gets no amount if the currency sign contradicts the stated currency', async ({
  libraryServer,
}) => {
  const { ads, notes } = await libraryServer.importRecords({
    ad_archive_id: '1',
    spend: '€100 - €199',
    currency: 'USD',
  });
  expect(ads).toBe(1);
  expect(notes.join()).toContain('1 × spend: "€100 - €199" contradicts the currency USD, so the amount is unknown');
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ spend: '€100 - €199', currency: 'USD' }]);
  expect(items[0]).not.toHaveProperty('adSpendMin');
});

test.for([
  ['Meta', { ad_archive_id: '1', start_date: '2026-01-05', end_date: '2025-01-01' }, 'endDate: 2025-01-01'],
  ['Google', { creative_id: 'CR1', first_shown: '2026-01-05', last_shown: '2025-01-01' }, 'lastSeenAt: 2025-01-01'],
  ['TikTok', { ad: { id: 1, first_shown_date: 20260105, last_shown_date: 20250101 } }, 'lastSeenAt: 2025-01-01'],
] as const)(
  'an ad of %s whose end date is before its start date is imported without these dates and reported',
  async ([_, record, message], { libraryServer }) => {
    const { ads, notes } = await libraryServer.importRecords(record);
    expect(ads).toBe(1);
    expect(notes.join()).toContain(`1 × ${message} is before the start 2026-01-05, so neither date is used`);
    const { items } = await libraryServer.searchAll({});
    expect(items).toMatchObject([{ contradictoryDates: { startedAt: '2026-01-05T00:00:00.000Z' } }]);
    for (const field of ['startedAt', 'endDate']) expect(items[0]).not.toHaveProperty(field);
  },
);

test('the import rejects a row of a user-made table in which the end date of an ad is before its start date', async ({
  libraryServer,
}) => {
  const report = await libraryServer.importRecords(
    'headline,start,end\nOne,2026-01-05,2025-01-01\nTwo,2026-01-05,2026-01-05\n',
  );
  expect(report).toMatchObject({
    ...{ ads: 1, skipped: 1 },
    problems: [{ line: 2, problem: 'endDate: 2025-01-01 is before the start 2026-01-05' }],
  });
});

test('the import report mentions an ad in the API format whose end date is before its start date', async ({
  libraryServer,
}) => {
  const ad = { id: '00000000-0000-4000-8000-000000000001', startedAt: '2026-01-05', endDate: '2025-01-01' };
  const { ads, notes } = await libraryServer.importRecords(ad);
  expect(ads).toBe(1);
  expect(notes).toContain('1 × endDate: 2025-01-01 is before the start 2026-01-05 (first: line 1)');
  expect((await libraryServer.searchAll({})).items).toMatchObject([ad]);
});

test('an imported ad whose start date is in the future keeps its dates', async ({ libraryServer }) => {
  const record = { ad_archive_id: '1', start_date: '2026-05-01', end_date: '2026-06-01' };
  expect((await libraryServer.importRecords(record)).notes.join()).not.toContain('before');
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ startedAt: '2026-05-01T00:00:00.000Z', endDate: '2026-06-01T00:00:00.000Z' }]);
});

test('if two columns of an imported table have the same name, the second column is stored under a different name', async ({
  libraryServer,
}) => {
  const own = await libraryServer.importRecords(
    'advertiser,headline,My note,My note,headline\nTea,One,first,second,Two\n',
  );
  expect(own.columns).toContain('not used: My note, My note (2), headline (2)');
  const meta = await libraryServer.importRecords('ad_archive_id,page_name,page_name,note,note\n1,Tea,Coffee,a,b\n');
  expect(meta.notes.join()).toContain('stored under their own names: page_name (2) (1)');
  const { items } = await libraryServer.searchAll({});
  expect(items).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ headline: 'One', 'My note': 'first', 'My note (2)': 'second', 'headline (2)': 'Two' }),
      expect.objectContaining({ page: { pageName: 'Tea' }, 'pageName (2)': 'Coffee', note: 'a', 'note (2)': 'b' }),
    ]),
  );
});

test('importing a user-made table with repeated column names loses no cells', async ({ libraryServer }) => {
  const names = fc.array(fc.constantFrom('Note', 'note', 'Note (2)', 'Memo', '__proto__'), {
    minLength: 1,
    maxLength: 8,
  });
  let row = 0;
  await fc.assert(
    fc.asyncProperty(names, async (columns) => {
      row++;
      const cells = columns.map((_, index) => `cell ${row}-${index}`);
      await libraryServer.importRecords(`headline,${columns.join(',')}\nAd ${row},${cells.join(',')}\n`);
      const { items } = await libraryServer.searchAll({ query: `"Ad ${row}"` });
      const text = JSON.stringify(items);
      for (const [index, cell] of cells.entries())
        if (columns[index] !== '__proto__') expect(text).toContain(`"${cell}"`);
    }),
    { numRuns: 30 },
  );
});

test('the import report lists each kind of problem with a column on a separate line', async ({ libraryServer }) => {
  const spends = ['lots', 'many', '-5', '-7', { lower_bound: 9, upper_bound: 5 }];
  const { notes } = await libraryServer.importRecords(
    ...spends.map((spend, index) => ({ ad_archive_id: String(index + 1), spend })),
  );
  expect(notes.filter((note) => note.includes('spend'))).toEqual([
    '2 × spend: "lots" is not a number such as 1200 or 0.5 (first: line 1)',
    '2 × spend: "-5" is below 0 (first: line 3)',
    '1 × spend: the lower bound 9 is larger than the upper bound 5 (first: line 5)',
  ]);
});

test('`library import` never stores the URL of a Google ad as the id or name of the advertiser', async ({
  libraryServer,
}) => {
  const url = 'https://adstransparency.google.com/?region=DE';
  await libraryServer.importRecords(
    `advertiser_id,creative_id,creative_page_url,ad_format_type,advertiser\n,CR3,${url},VIDEO,${url}\n`,
  );
  const { items } = await libraryServer.searchAll({});
  expect(items).toMatchObject([{ adSnapshotUrl: url }]);
  for (const field of ['page', 'pageId', 'sourcePageExternalId']) expect(items[0]).not.toHaveProperty(field);
});

test('a newer download replaces a stored ad even if the new end date of the ad is earlier', async ({
  libraryServer,
}) => {
  const buildAd = (stopDay: string, spend: string) => ({
    ...{ id: '1', page_id: '2', ad_delivery_start_time: '2026-01-05', ad_delivery_stop_time: stopDay, currency: 'EUR' },
    spend: { lower_bound: spend, upper_bound: spend },
  });
  await libraryServer.importRecords(JSON.stringify([buildAd('2026-03-10', '100')]));
  expect(await libraryServer.importRecords(JSON.stringify([buildAd('2026-03-05', '300')]))).toMatchObject({
    updated: 1,
  });
  const { body } = await libraryServer.search({});
  expect(body.items).toMatchObject([{ adSpendMin: 300, endDate: expect.stringContaining('2026-03-05') }]);
});

test('an imported political ad from Google keeps a region that is not a country, but not a contradictory spend range', async ({
  libraryServer,
}) => {
  const report = await libraryServer.importRecords(
    [
      'Ad_ID,Ad_Type,Regions,Advertiser_ID,Advertiser_Name,Date_Range_Start,Spend_Range_Min_USD,Spend_Range_Max_USD',
      'CR1,TEXT,"EU, United Kingdom",AR1,Tea Party,2026-01-05,100,1000',
      'CR2,TEXT,GB,AR1,Tea Party,2026-01-05,1000,100',
    ].join('\n'),
  );
  expect(report).toMatchObject({ ads: 2, skipped: 0 });
  expect(report.notes.join('\n')).toContain('spend_range_usd: the lower bound 1000 is larger than the upper bound 100');
  const { items } = await libraryServer.searchAll({});
  const [both, contradictory] = ['CR1', 'CR2'].map((id) => items.find(({ adArchiveId }) => adArchiveId === id));
  expect(both).toMatchObject({
    countries: ['GB'],
    regions: ['EU', 'United Kingdom'],
    adSpendMin: 100,
    adSpendMax: 1000,
  });
  expect(contradictory).toMatchObject({ countries: ['GB'] });
  expect(contradictory).not.toHaveProperty('adSpendMin');
  expect(contradictory).not.toHaveProperty('regions');
});
