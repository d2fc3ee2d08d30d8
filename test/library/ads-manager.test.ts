import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import type { LibraryServer } from './support/library-server.ts';

/** Imports lines of an Ads Manager export. Returns the report and the stored ads. */
async function importExport(libraryServer: LibraryServer, ...lines: string[]) {
  const report = await libraryServer.importRecords(lines.join('\n'));
  const { body } = await libraryServer.search({});
  return { report, ads: body.items };
}

/** The columns of an export whose rows differ in one more column. */
const buildHeader = (column: string) =>
  `Reporting starts,Reporting ends,Ad name,Ad ID,${column},Amount spent (GBP),Impressions,Reach,Link clicks,CTR (all)`;
const january = '2026-01-01,2026-01-31';
const february = '2026-02-01,2026-02-28';

test.for([
  ['an unknown breakdown', 'Marketing message', ['first', 'second', 'third']],
  ['the carousel card', 'Carousel card', ['card one', 'card two', 'card three']],
  ['an unknown breakdown with numbers', 'Product ID', ['1001', '1002', '1003']],
  ['the time of day', "Time of day (viewer's time zone)", ['00:00:00 - 00:59:59', '01:00:00 - 01:59:59', '02:00']],
  ['the headline', 'Headline', ['One', 'Two', 'Three']],
] as const)(
  '`library import` adds up the results of several Ads Manager rows for one ad if the rows differ in %s',
  async ([_, column, values], { libraryServer }) => {
    const { report, ads } = await importExport(
      libraryServer,
      buildHeader(column),
      `${january},A,1,${values[0]},1.50,100,90,5,1.5`,
      `${january},A,1,${values[1]},2.50,200,150,6,2.5`,
      // The results of this row equal the results of the first row.
      `${january},A,1,${values[2]},1.50,100,90,5,1.5`,
    );
    expect(report).toMatchObject({ ads: 1, repeated: 2, skipped: 0 });
    expect(ads).toMatchObject([{ adSpendMin: 5.5, adSpendMax: 5.5, impressionsMin: 400, 'Link clicks': 16 }]);
    for (const field of ['audienceReach', 'CTR (all)', 'startedAt']) expect(ads[0]).not.toHaveProperty(field);
    expect(ads[0].breakdown).toHaveLength(3);
    expect(report.notes.join('\n')).toMatch(/Reach: kept for each row of an ad but not added up/);
    expect(report.notes.join('\n')).toMatch(/CTR \(all\): kept for each row of an ad but not added up/);
  },
);

test('`library import` adds up the results of an ad from the Ads Manager exports of two months', async ({
  libraryServer,
}) => {
  const header = buildHeader('Objective');
  const { ads } = await importExport(
    libraryServer,
    header,
    `${january},A,1,Sales,1.50,100,90,5,1.5`,
    `${february},A,1,Sales,2.50,200,150,6,2.5`,
  );
  const total = {
    ...{ adSpendMin: 4, impressionsMin: 300, 'Link clicks': 11, Objective: 'Sales' },
    ...{ reportingStarts: '2026-01-01T00:00:00.000Z', reportingEnds: '2026-02-28T00:00:00.000Z' },
  };
  expect(ads).toMatchObject([total]);
  expect(ads[0]).not.toHaveProperty('audienceReach');
  // A new export of February replaces the earlier one, and an export of March is added.
  const nextWeek = await importExport(libraryServer, header, `${february},A,1,Sales,3.50,250,170,7,2.5`);
  expect(nextWeek.ads).toMatchObject([{ ...total, adSpendMin: 5, impressionsMin: 350, 'Link clicks': 12 }]);
  const march = await importExport(libraryServer, header, '2026-03-01,2026-03-14,A,1,Sales,1,10,9,1,2.5');
  expect(march.ads).toMatchObject([{ adSpendMin: 6, impressionsMin: 360, 'Link clicks': 13 }]);
  // An earlier month may also be imported later.
  const december = await importExport(libraryServer, header, '2025-12-01,2025-12-31,A,1,Sales,1,10,9,1,2.5');
  expect(december.ads).toMatchObject([{ adSpendMin: 7, impressionsMin: 370, 'Link clicks': 14 }]);
});

test('an ad that a later Ads Manager export calls ongoing has no end date any more', async ({ libraryServer }) => {
  const header = 'Reporting starts,Reporting ends,Ad name,Ad ID,Amount spent (GBP),Ends';
  await importExport(libraryServer, header, `${january},A,1,1.50,2026-01-31`);
  const { ads } = await importExport(libraryServer, header, `${february},A,1,2.50,Ongoing`);
  expect(ads).toMatchObject([{ adSpendMin: 4, endDate: null }]);
  expect((await libraryServer.search({ active: false })).body.totalHits).toBe(0);
});

test('the results of a day in a newer Ads Manager export replace the stored results of this day, in any order of rows', async ({
  libraryServer,
}) => {
  const header = buildHeader('Objective');
  const addUp = (days: number[]) => days.reduce((total, day) => total + day, 0);
  let adId = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.shuffledSubarray([1, 2, 3, 4], { minLength: 1 }),
      fc.shuffledSubarray([2, 3, 4, 5], { minLength: 1 }),
      async (earlierDays, laterDays) => {
        adId++;
        const formatRow = (day: number, spend: number) =>
          `2026-01-0${day},2026-01-0${day},A,${adId},Sales,${spend},10,9,1,1`;
        await importExport(libraryServer, header, ...earlierDays.map((day) => formatRow(day, day)));
        const newRows = laterDays.map((day) => formatRow(day, 10 * day));
        const { report, ads } = await importExport(libraryServer, header, ...newRows);
        expect(report.skipped).toBe(0);
        expect(report.notes.join('\n')).not.toContain('were replaced');
        const ad = ads.find((candidate: { adId: string }) => candidate.adId === String(adId));
        const keptDays = earlierDays.filter((day) => !laterDays.includes(day));
        expect(ad).toMatchObject({ adSpendMin: addUp(keptDays) + 10 * addUp(laterDays) });
      },
    ),
    { numRuns: 20 },
  );
});

test('a newer Ads Manager export with a row for each day of its period replaces the stored results of all days', async ({
  libraryServer,
}) => {
  const header = 'Reporting starts,Reporting ends,Day,Ad name,Ad ID,Amount spent (GBP)';
  const formatRows = (spendByDay: number[]) =>
    spendByDay.map((spend, index) => `2026-01-01,2026-01-0${spendByDay.length},2026-01-0${index + 1},A,1,${spend}`);
  for (const [spendByDay, total] of [
    [[1, 2, 4], 7],
    [[1, 2.5, 4], 7.5],
    [[1, 2.5, 4, 8], 15.5],
  ] as const) {
    const { report, ads } = await importExport(libraryServer, header, ...formatRows([...spendByDay]));
    expect(report).toMatchObject({ skipped: 0 });
    expect(report.notes.join('\n')).not.toContain('not stored');
    const lastSeenAt = `2026-01-0${spendByDay.length}T00:00:00.000Z`;
    expect(ads).toMatchObject([{ adSpendMin: total, adSpendMax: total, lastSeenAt }]);
    expect(ads[0].breakdown).toHaveLength(spendByDay.length);
  }
});

test.for([
  [
    'an overlapping period',
    '2026-01-28,2026-02-04,A,1,Sales,0.7,10,9,1,1',
    'GBP',
    /their period 2026-01-01 to 2026-01-31 overlaps the new period 2026-01-28 to 2026-02-04; before, the amount spent was 1\.5/,
  ],
  [
    'another currency',
    `${february},A,1,Sales,0.7,10,9,1,1`,
    'USD',
    /they are in GBP and the new results in USD; before/,
  ],
  [
    'another breakdown',
    `${january},A,1,DE,0.7,10,9,1,1`,
    'GBP',
    /they are broken down by nothing and the new results by Country; before/,
  ],
] as const)(
  'an import from Ads Manager reports that it replaced the stored results of an ad that have %s',
  async ([name, line, currency, message], { libraryServer }) => {
    await importExport(libraryServer, buildHeader('Objective'), `${january},A,1,Sales,1.50,100,90,5,1.5`);
    const header = buildHeader(name === 'another breakdown' ? 'Country' : 'Objective').replace('GBP', currency);
    const { report, ads } = await importExport(libraryServer, header, line);
    expect(report.notes.join('\n')).toMatch(message);
    expect(ads).toMatchObject([{ adSpendMin: 0.7 }]);
    const nextImport = await importExport(libraryServer, header, line.replace('0.7', '0.8'));
    expect(nextImport.report.notes.join('\n')).not.toContain('were replaced');
    expect(nextImport.ads).toMatchObject([{ adSpendMin: 0.8 }]);
  },
);

test.for([
  ['an overlapping period', '2026-01-15,2026-02-14', 'GBP'],
  ['another currency', february, 'USD'],
] as const)(
  'an import from Ads Manager reports that it did not store older results if the library has newer ones with %s',
  async ([_, newerPeriod, newerCurrency], { libraryServer }) => {
    const header = buildHeader('Objective');
    const newerHeader = header.replace('GBP', newerCurrency);
    await importExport(libraryServer, newerHeader, `${newerPeriod},A,1,Sales,2.50,200,150,6,2.5`);
    const { report, ads } = await importExport(libraryServer, header, `${january},A,1,Sales,1.50,100,90,5,1.5`);
    expect(report).toMatchObject({ ads: 1, older: 1, updated: 0 });
    const newerPeriodText = newerPeriod.replace(',', ' to ');
    expect(report.notes.join('\n')).toContain(
      `results of 2026-01-01 to 2026-01-31 were not stored, because the library has newer results of ${newerPeriodText}; in the older results, the amount spent is 1.5`,
    );
    expect(report.notes.join('\n')).not.toContain('were replaced');
    expect(ads).toMatchObject([{ adSpendMin: 2.5, impressionsMin: 200, currency: newerCurrency }]);
  },
);

test.for([
  [
    'equal periods and different results',
    [january, january],
    /Amount spent: 2\.5, but an earlier row .* has 1\.5; the total may be 2\.5, or 4 in both rows/,
  ],
  [
    'overlapping periods',
    [january, '2026-01-15,2026-02-14'],
    /are not separate, so the amount spent may be 2\.5 or 4;/,
  ],
  ['an unknown period', [january, ','], /are not separate, so the amount spent may be 2\.5 or 4;/],
] as const)(
  '`library import` rejects the second Ads Manager row of an ad if the rows have %s',
  async ([_, periods, problem], { libraryServer }) => {
    const { report, ads } = await importExport(
      libraryServer,
      buildHeader('Objective'),
      `${periods[0]},A,1,Sales,1.50,100,90,5,1.5`,
      `${periods[1]},A,1,Sales,2.50,200,150,6,2.5`,
    );
    expect(report).toMatchObject({
      ads: 1,
      skipped: 1,
      problems: [{ line: 3, problem: expect.stringMatching(problem) }],
    });
    expect(ads).toMatchObject([{ adSpendMin: 1.5, impressionsMin: 100 }]);
  },
);

test('`library import` does not add up Ads Manager results of one ad in two currencies', async ({ libraryServer }) => {
  const header = 'Reporting starts,Reporting ends,Ad name,Ad ID,Amount spent (EUR)';
  const { ads } = await importExport(libraryServer, header, `${january},A,1,5`);
  const pounds = await importExport(libraryServer, header.replace('EUR', 'GBP'), `${february},A,1,7`);
  expect(ads).toMatchObject([{ adSpendMin: 5, currency: 'EUR' }]);
  expect(pounds.ads).toMatchObject([{ adSpendMin: 7, currency: 'GBP' }]);
});

test('the results of an Ads Manager row are not added if the period of the row lies within the period of another row', async ({
  libraryServer,
}) => {
  const { ads } = await importExport(
    libraryServer,
    buildHeader('Objective'),
    '2026-01-05,2026-01-11,A,1,Sales,1,10,9,1,1',
    `${january},A,1,Sales,5,50,40,4,2`,
    '2026-01-12,2026-01-18,A,1,Sales,2,20,19,2,1',
  );
  expect(ads).toMatchObject([{ adSpendMin: 5, impressionsMin: 50, audienceReach: 40, 'Link clicks': 4 }]);
});

test('the results of an ad are not counted twice if it is in two Ads Manager exports with different columns', async ({
  libraryServer,
}) => {
  const results = await importExport(libraryServer, buildHeader('Objective'), `${january},A,1,Sales,5,50,40,4,2`);
  expect(results.ads).toMatchObject([{ adSpendMin: 5 }]);
  const { report, ads } = await importExport(
    libraryServer,
    'Reporting starts,Reporting ends,Ad name,Ad ID,Objective,Ad delivery,Amount spent (GBP),Purchases',
    `${january},A,1,Sales,active,5,3`,
    `${january},A,1,Sales,inactive,5,3`,
  );
  expect(report).toMatchObject({ ads: 1, repeated: 1, skipped: 0 });
  expect(ads).toMatchObject([{ adSpendMin: 5, Purchases: 3 }]);
  expect(ads[0]).not.toHaveProperty('breakdown');
});

test('`library import` keeps the label of an Ads Manager row if a row of another period has another label', async ({
  libraryServer,
}) => {
  const { report, ads } = await importExport(
    libraryServer,
    `${buildHeader('Shelf')},Age`,
    `${february},A,1,a,1,1,1,2,,25-34`,
    `${january},A,1,b,2,1,1,2,,18-24`,
    `${february},A,1,b,4,1,1,2,,25-34`,
  );
  expect(report.skipped).toBe(0);
  expect(ads).toMatchObject([{ adSpendMin: 7 }]);
});

test('`library import` adds up all Ads Manager rows of an ad, regardless of the column in which they differ', async ({
  libraryServer,
}) => {
  let adId = 0;
  const rows = fc.uniqueArray(
    fc.record({
      period: fc.constantFrom(january, february, '2026-03-01,2026-03-31'),
      label: fc.constantFrom('a', 'b', 'c', 'd'),
      age: fc.constantFrom('18-24', '25-34'),
    }),
    { minLength: 1, maxLength: 10, selector: (row) => JSON.stringify(row) },
  );
  const amounts = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 10, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(rows, amounts, async (parts, spends) => {
      adId++;
      const lines = parts.map(
        ({ period, label, age }, index) => `${period},A,${adId},${label},${spends[index]},1,1,2,,${age}`,
      );
      const { report, ads } = await importExport(libraryServer, `${buildHeader('Shelf')},Age`, ...lines);
      const ad = ads.find((candidate: { adId: string }) => candidate.adId === String(adId));
      expect(report.skipped).toBe(0);
      expect(ad.adSpendMin).toBe(spends.slice(0, parts.length).reduce((total, spend) => total + spend, 0));
      expect([ad.impressionsMin, ad['Link clicks']]).toEqual([parts.length, 2 * parts.length]);
    }),
    { numRuns: 25 },
  );
});
