import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { createUuid, type LibraryServer } from './support/library-server.ts';

const findAds = async (libraryServer: LibraryServer, filters = {}) => (await libraryServer.searchAll(filters)).items;

/**
 * A key of a Meta Ad Library record, its value, and the fields of the ad that the import creates from it. A key that
 * starts with a dot is inside the `snapshot` object.
 */
type Mapping = readonly [key: string, value: unknown, adFields?: object];

/** Builds a Meta Ad Library record from the keys and values of the mappings. */
function buildRecord(mappings: readonly Mapping[]): object {
  const topLevel = mappings.filter(([key]) => !key.startsWith('.')).map(([key, value]) => [key, value]);
  const snapshot = mappings.filter(([key]) => key.startsWith('.')).map(([key, value]) => [key.slice(1), value]);
  return Object.fromEntries(snapshot.length > 0 ? [...topLevel, ['snapshot', Object.fromEntries(snapshot)]] : topLevel);
}

/** Builds the ad that the import must create from the record of these mappings. The ad has no id. */
const buildExpectedAd = (mappings: readonly Mapping[]): { pageId?: string; page?: object } =>
  Object.assign(
    { adLibrary: 'meta', media: [], cards: [], website: {} },
    ...mappings.map(([, , adFields]) => adFields),
  );

const mediaUrl = 'https://media.example';
const shopUrl = 'https://www.shop.example/x';
const cards = [{ title: 'Card', resized_image_url: `${mediaUrl}/c.jpg` }];
const scrapedAd: Mapping[] = [
  ['ad_archive_id', '123456789', { adArchiveId: '123456789' }],
  ['page_id', '42', { pageId: '42', sourcePageExternalId: '42' }],
  ['start_date', 1_767_225_600, { startedAt: '2026-01-01T00:00:00.000Z' }],
  ['end_date', 1_767_312_000, { lastSeenAt: '2026-01-02T00:00:00.000Z' }],
  ['is_active', true, { endDate: null }],
  ['collation_count', 3, { duplicates: 3 }],
  ['publisher_platform', ['facebook', 'INSTAGRAM'], { publisherPlatform: ['FACEBOOK', 'INSTAGRAM'] }],
  ['targeted_or_reached_countries', ['FR'], { countries: ['FR'] }],
  ['spend', { lower_bound: '100', upper_bound: '199' }, { adSpendMin: 100, adSpendMax: 199 }],
  ['impressions', { lower_bound: '1000' }, { impressionsMin: 1000 }],
  ['.page_name', 'Made-up Page', { page: { pageName: 'Made-up Page' } }],
  ['.title', 'A title', { headline: 'A title' }],
  ['.body', { text: 'A body' }, { body: 'A body' }],
  ['.caption', 'shop.example', { displayUrl: 'shop.example' }],
  ['.cta_type', 'SHOP_NOW', { ctaType: 'SHOP_NOW' }],
  ['.display_format', 'video', { displayFormat: 'VIDEO' }],
  ['.link_url', shopUrl, { offerLink: shopUrl, website: { siteDomain: 'shop.example' } }],
  ['.videos', [{ video_hd_url: `${mediaUrl}/1.mp4`, video_preview_image_url: `${mediaUrl}/v.jpg` }]],
  ['.images', [{ original_image_url: `${mediaUrl}/1.jpg` }]],
  ['.cards', cards, { cards }],
  [
    '.page_profile_picture_url',
    `${mediaUrl}/p.jpg`,
    {
      media: [
        { type: 'VID', url: `${mediaUrl}/1.mp4`, nr: 0, urls: { preview: `${mediaUrl}/v.jpg` } },
        { type: 'THUMB', url: `${mediaUrl}/1.jpg`, nr: 0 },
        { type: 'CARD_THUMB', url: `${mediaUrl}/c.jpg`, nr: 0 },
        { type: 'PA_PP', url: `${mediaUrl}/p.jpg`, nr: null },
      ],
    },
  ],
];

const reachBreakdown = [{ country: 'GB', age_gender_breakdowns: [{ age_range: '18-24', male: 3 }] }];
const female = { age: '18-24', gender: 'female' };
const wales = { name: 'Wales', type: 'regions', excluded: false };
const snapshotUrl = 'https://archive.example/render_ad/?';

const endDate = '2026-02-03T00:00:00.000Z';

const officialApiAd: Mapping[] = [
  ['id', '2001', { adArchiveId: '2001' }],
  ['page_id', '9', { pageId: '9', sourcePageExternalId: '9' }],
  ['page_name', 'Other Page', { page: { pageName: 'Other Page' } }],
  ['ad_creative_bodies', ['One', 'Two'], { body: 'One', bodies: ['One', 'Two'] }],
  ['ad_creative_link_titles', ['Only one'], { headline: 'Only one' }],
  [
    'ad_creative_link_captions',
    ['a.example', 'b.example'],
    { displayUrl: 'a.example', displayUrls: ['a.example', 'b.example'], website: { siteDomain: 'a.example' } },
  ],
  ['ad_creative_link_descriptions', ['D', 'E'], { linkDescription: 'D', linkDescriptions: ['D', 'E'] }],
  ['ad_delivery_start_time', '2026-02-01', { startedAt: '2026-02-01T00:00:00.000Z' }],
  ['ad_delivery_stop_time', '2026-02-03', { lastSeenAt: endDate, endDate }],
  ['publisher_platforms', ['facebook'], { publisherPlatform: ['FACEBOOK'] }],
  ['bylines', 'Friends of Tests', { bylines: 'Friends of Tests' }],
  ['currency', 'GBP', { currency: 'GBP' }],
  ['spend', { lower_bound: '0', upper_bound: '199' }, { adSpendMin: 0, adSpendMax: 199 }],
  ['impressions', { lower_bound: '1000000' }, { impressionsMin: 1_000_000 }],
  ['estimated_audience_size', { lower_bound: 50, upper_bound: 99 }, { audienceSizeMin: 50, audienceSizeMax: 99 }],
  ['demographic_distribution', [{ ...female, percentage: '1' }], { demographics: [{ ...female, percentage: 1 }] }],
  ['delivery_by_region', [{ region: 'Wales', percentage: '1' }], { regions: [{ region: 'Wales', percentage: 1 }] }],
  ['target_locations', [wales], { targetLocations: [wales] }],
  ['target_ages', ['18', '65+'], { targetAges: ['18', '65+'] }],
  ['target_gender', 'All', { targetGender: 'All' }],
  ['languages', ['cy', 'en'], { languages: ['cy', 'en'] }],
  ['age_country_gender_reach_breakdown', reachBreakdown, { ageCountryGenderReachBreakdown: reachBreakdown }],
  ['ad_snapshot_url', `${snapshotUrl}access_token=SECRET&id=2001`, { adSnapshotUrl: `${snapshotUrl}id=2001` }],
];

test.for<[name: string, mappings: Mapping[], filters: object, wrap?: (record: object) => unknown]>([
  ['a scraped ad', scrapedAd, { query: 'card body', countries: 'FR' }],
  [
    'a response of the official API',
    officialApiAd,
    { daysRunningFrom: 2, daysRunningTo: 2 },
    (record) => ({ data: [record], paging: {} }),
  ],
])(
  '`library import` converts a record of the Meta Ad Library (%s) into an ad in the API format',
  async ([_, mappings, filters, wrap], { libraryServer }) => {
    const record = wrap?.(buildRecord(mappings)) ?? buildRecord(mappings);
    const counts = { ads: 1, formats: { 'meta-ad-library': { ads: 1, pages: 0 } }, skipped: 0 };
    expect(await libraryServer.importRecords(record, record)).toMatchObject({ ...counts, updated: 0, repeated: 1 });
    expect(await libraryServer.importRecords(record)).toMatchObject({ ...counts, updated: 1, repeated: 0 });
    const ad = { id: expect.any(String), ...buildExpectedAd(mappings) };
    expect(await findAds(libraryServer, filters)).toEqual([ad]);
    // The import also creates an advertiser page from the ad.
    expect((await libraryServer.searchAll({}, 'pages')).items).toMatchObject([{ pageId: ad.pageId, ...ad.page }]);
  },
);

test('`library import` reads a 16-digit id correctly if Python has written the id as a floating-point number', async ({
  libraryServer,
}) => {
  await libraryServer.importRecords({ ad_archive_id: '1100000000000009.0', page_id: '5.0' });
  expect(await findAds(libraryServer)).toMatchObject([
    { adArchiveId: '1100000000000009', pageId: '5', sourcePageExternalId: '5' },
  ]);
});

test('`library import` stores whether an ad is active even if the ad has no end date', async ({ libraryServer }) => {
  for (const isActive of [true, false])
    await libraryServer.importRecords({ ad_archive_id: `300${Number(isActive)}`, is_active: isActive });
  const ads = await findAds(libraryServer);
  expect(ads.map((ad) => [ad.adArchiveId, ad.isActive]).sort()).toEqual([
    ['3000', false],
    ['3001', true],
  ]);
});

test('`library import` stores a value that it cannot read under the original key of the value', async ({
  libraryServer,
}) => {
  const { notes, keys } = await libraryServer.importRecords({
    ad_archive_id: '2002',
    is_active: false,
    spend: 'little',
    start_date: 'soon',
    collation_count: 'many',
    publisher_platform: 'facebook',
    categories: ['POLITICAL'],
    state_media_label: null,
    constructor: 'odd',
    snapshot: { page_like_count: 5, extra_texts: [{ text: 'More' }], event: null, cards: [] },
  });
  expect(await findAds(libraryServer)).toMatchObject([
    {
      isActive: false,
      spend: 'little',
      startDate: 'soon',
      collationCount: 'many',
      publisherPlatform: ['FACEBOOK'],
      categories: ['POLITICAL'],
      constructor: 'odd',
      snapshot: { pageLikeCount: 5, extraTexts: [{ text: 'More' }] },
    },
  ]);
  expect(notes).toEqual([
    'no ad has a headline or a body',
    '1 × start_date: "soon" is not a date such as 2026-01-31 (first: line 1)',
    '1 × collation_count: "many" is not a whole number such as 1200 (first: line 1)',
    '1 × spend: "little" is not a number such as 1200 or 0.5 (first: line 1)',
  ]);
  expect(keys).toBe(
    `${[
      'adArchiveId ← ad_archive_id, publisherPlatform ← publisher_platform, isActive ← is_active',
      'snapshot.pageLikeCount ← snapshot.page_like_count, snapshot.extraTexts ← snapshot.extra_texts',
      'categories ← categories',
    ].join(', ')}; not used: constructor (1)`,
  );
});

test.for([
  { impressions: { lower_bound: '5000', upper_bound: '1000' } },
  { impressions: '5000-1000' },
  { impressions_lower: '5000', impressions_upper: '1000' },
])(
  '`library import` reports the range %j as invalid, because its lower bound exceeds its upper bound',
  async (range, { libraryServer }) => {
    const { notes } = await libraryServer.importRecords({ ad_archive_id: '1', body: 'Tea', ...range });
    expect(notes).toContain(
      '1 × impressions: the lower bound 5000 is larger than the upper bound 1000 (first: line 1)',
    );
    const [ad] = await findAds(libraryServer);
    expect(ad).not.toHaveProperty('impressionsMin');
    expect(ad).not.toHaveProperty('impressionsMax');
  },
);

test.for(['tel:+3510000', 'shop now'])(
  'an imported ad has no domain if its link (%s) is not a web URL',
  async (link, { libraryServer }) => {
    await libraryServer.importRecords({
      ad_archive_id: '1',
      snapshot: { page_name: 'P', link_url: link, caption: 'paypal.com' },
    });
    const items = await findAds(libraryServer);
    expect(items).toMatchObject([{ offerLink: link }]);
    expect(items[0]).not.toHaveProperty('website.siteDomain');
  },
);

test.for([
  ['without an archive id', { ad_archive_id: '', page_id: '42' }, /^ad_archive_id: missing/],
  ['with a rounded archive id', '{"ad_archive_id":1.2345678901234567e19}', /is a rounded number, so the id is lost/],
  [
    'with an archive id that Python has rounded',
    '{"ad_archive_id":"8234567890123456789.0"}',
    /is a rounded number, so the id is lost/,
  ],
  ['with a rounded page id', '{"ad_archive_id":"1","page_id":1e30}', /is a rounded number, so the id is lost/],
] as const)('`library import` rejects a Meta Ad Library ad %s', async ([_, record, problem], { libraryServer }) => {
  const report = await libraryServer.importRecords(record);
  expect(report).toMatchObject({ ads: 0, problems: [{ line: 1, problem: expect.stringMatching(problem) }] });
});

test.for([1e20, 'soon'])(
  '`library import` stores a Meta Ad Library ad without its invalid end date %j, and reports the date',
  async (endDate, { libraryServer }) => {
    const { notes, ...report } = await libraryServer.importRecords({ ad_archive_id: '3', end_date: endDate });
    expect(report).toMatchObject({ ads: 1, skipped: 0, problems: [] });
    expect(notes.join('\n')).toMatch(/end_date: .+ is not a date/);
    expect((await findAds(libraryServer))[0]).not.toHaveProperty('endDate');
  },
);

test('`library import` counts every malformed Meta Ad Library ad as either stored or skipped', async ({
  libraryServer,
}) => {
  const names = ['page_id', 'start_date', 'end_date', 'is_active', 'spend', 'publisher_platform', 'body', 'cards'];
  const record = fc.dictionary(fc.constantFrom(...names, 'images'), fc.jsonValue({ maxDepth: 4 }));
  await fc.assert(
    fc.asyncProperty(record, record, async (outer, snapshot) => {
      const report = await libraryServer.importRecords({ ...outer, snapshot, ad_archive_id: '1' });
      expect(report.ads + report.skipped).toBe(1);
    }),
    { numRuns: 50 },
  );
});

const quoteCell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const male = { age: '65+', gender: 'male' };
const ageShares = [
  { ...female, percentage: 0.25 },
  { ...male, percentage: 0.75 },
];

/**
 * The columns of a table of Meta Ad Library ads, each with an example cell and the fields of the ad that the import
 * creates from it.
 */
const tableMappings: (readonly [column: string, cell: string, adFields?: object])[] = [
  ['ad_archive_id', '1234567890123456', { adArchiveId: '1234567890123456' }],
  ['page_id', '77', { pageId: '77', sourcePageExternalId: '77' }],
  ['page_name', quoteCell('The "Page"'), { page: { pageName: 'The "Page"' } }],
  ['byline', 'Friends of Tests', { bylines: 'Friends of Tests' }],
  ['ad_creative_bodies', quoteCell('First line\r\nand, another'), { body: 'First line\r\nand, another' }],
  ['ad_creative_link_titles', quoteCell('["One","Two"]'), { headline: 'One', headlines: ['One', 'Two'] }],
  ['ad_delivery_start_time', '2024-01-02', { startedAt: '2024-01-02T00:00:00.000Z' }],
  ['impressions', quoteCell('lower_bound: 1000, upper_bound: 4999'), { impressionsMin: 1000, impressionsMax: 4999 }],
  ['spend', quoteCell('{"lower_bound":"0","upper_bound":"99"}'), { adSpendMin: 0, adSpendMax: 99 }],
  ['currency', 'EUR', { currency: 'EUR' }],
  ['publisher_platforms', quoteCell('facebook,instagram'), { publisherPlatform: ['FACEBOOK', 'INSTAGRAM'] }],
  ['languages', 'de', { languages: ['de'] }],
  ['demographic_distribution', quoteCell(JSON.stringify(ageShares).slice(1, -1)), { demographics: ageShares }],
  ['estimated_audience_size', 'lower_bound: 1000001', { audienceSizeMin: 1_000_001 }],
  ['ad_creation_time', ''],
];

test.for([
  ['commas and CRLF', ',', '\r\n'],
  ['semicolons and LF', ';', '\n'],
] as const)(
  '`library import` reads Meta Ad Library ads from a CSV file with %s',
  async ([_, delimiter, lineEnd], { libraryServer }) => {
    const lines = [tableMappings.map(([column]) => column), tableMappings.map(([, cell]) => cell)].map((row) =>
      row.join(delimiter),
    );
    const report = await libraryServer.importRecords(`\uFEFF${lines.join(lineEnd)}${lineEnd}${lineEnd}`);
    expect(report).toMatchObject({ ads: 1, skipped: 0, problems: [] });
    expect(report.formats).toEqual({ 'meta-ad-library': { ads: 1, pages: 0 } });
    const ads = await findAds(libraryServer, { query: '"and another" two friends' });
    expect(ads).toEqual([{ ...buildExpectedAd(tableMappings), id: expect.any(String) }]);
  },
);

test('the import report shows the line number of each row that cannot be used', async ({ libraryServer }) => {
  const rows = ['ad_archive_id,page_id,page_name', '1,2', '1.23457E+15,2,P', '3,2,"two\nlines"', '4,..,P'];
  const report = await libraryServer.importRecords(rows.join('\n'));
  expect(report).toMatchObject({ ads: 1, skipped: 3 });
  expect(report.problems.map(({ line, problem }) => `${line} ${problem}`)).toEqual([
    '2 the row has 2 cells, and the line of column names has 3; is a quotation mark missing?',
    '3 ad_archive_id: 1.23457E+15 is a rounded number, so the id is lost; export the ids again as text',
    expect.stringMatching(/^6 pageId: not a valid page id/),
  ]);
});

test('`library import` skips a row with a quotation mark that is not closed and reads the rows after it', async ({
  libraryServer,
}) => {
  for (const rows of ['7,Q\n'.repeat(100), '\n'.repeat(2_000_000)]) {
    const rowCount = rows.split('\n').length - 1;
    const report = await libraryServer.importRecords(`ad_archive_id,page_name\n5,P\n6,"open\n${rows}8,"again\n9,R`);
    const problem = 'a row that does not end; is a quotation mark not closed?';
    expect(report).toMatchObject({ ads: rows.includes('Q') ? 3 : 2, skipped: 2 });
    expect(report.problems).toEqual([3, rowCount + 4].map((line) => ({ line, path: '', problem })));
  }
});

test('`library import` reads rows whose cells begin with a quotation mark and contain line breaks', async ({
  libraryServer,
}) => {
  const bodies = ['"Best product ever\nOrder now, it is free!', '"Great\nBuy now!"', 'One "word"\n"Two"', '"\n"'];
  const rows = bodies.map((body, index) => `${index + 1},P,"${body.replaceAll('"', '""')}"`);
  for (const newline of ['\n', '\r\n']) {
    const report = await libraryServer.importRecords(['ad_archive_id,page_name,body', ...rows].join(newline));
    expect(report).toMatchObject({ skipped: 0 });
    expect((await findAds(libraryServer)).map(({ body }) => body).toSorted()).toEqual(bodies.toSorted());
  }
});

test.for([
  ['\r\n', '\r\n'],
  ['\n', '\r'],
  ['\r', '\n'],
] as const)(
  '`library import` reads a long table with lines that end in %j and cells with the line break %j',
  async ([lineEnd, lineBreak], { libraryServer }) => {
    // The table is longer than the part of a text that the import passes to the CSV parser in each call.
    const body = quoteCell(['One', 'Two', 'x'.repeat(300)].join(lineBreak));
    const rows = Array.from({ length: 400 }, (_, index) => `${index + 1},P,${body}`);
    const report = await libraryServer.importRecords(['ad_archive_id,page_name,body', ...rows, '401,P'].join(lineEnd));
    expect(report).toMatchObject({ ads: 400, skipped: 1 });
    const linesOfRow = lineBreak === '\r\n' ? 3 : 1;
    expect(report.problems).toMatchObject([{ line: 2 + 400 * linesOfRow }]);
  },
);

test.for([
  ['\r', '\r\n', ''],
  ['\r', '\n', ''],
  ['\r\r\r\n', '\r\r\r\n', ''],
  ['\n', '\n', '\r'],
] as const)(
  '`library import` reads a long table with the line ends %j and %j and rows that start with %j',
  async ([headerEnd, rowEnd, rowStart], { libraryServer }) => {
    const rows = Array.from({ length: 400 }, (_, index) => `${rowStart}P,${index + 1},${'x'.repeat(300)}`);
    const table = `page_name,ad_archive_id,body${headerEnd}${[...rows, 'P,401'].join(rowEnd)}`;
    const report = await libraryServer.importRecords(table);
    expect(report).toMatchObject({ ads: 400, skipped: 1, problems: [{ line: 402 }] });
  },
);

test('`library import` stores every emoji of a long table', async ({ libraryServer }) => {
  // The rows have an odd length, so that some parts of the text that the CSV parser receives would end in an emoji.
  const body = `${'💰😀'.repeat(200)}!`;
  const rows = Array.from({ length: 200 }, (_, index) => `${1000 + index},P,${body}`);
  const report = await libraryServer.importRecords(['ad_archive_id,page_name,body', ...rows].join('\n'));
  expect(report).toMatchObject({ ads: 200, skipped: 0, problems: [] });
  const ads = await findAds(libraryServer);
  expect(ads).toHaveLength(200);
  expect(new Set(ads.map((ad) => ad.body))).toEqual(new Set([body]));
});

test('`library import` rejects a table that contains no ads and names the missing columns', async ({
  libraryServer,
}) => {
  const { skipped, problems } = await libraryServer.importRecords('Name,Age\nA,1\n');
  const problem = expect.stringMatching(
    /^neither JSON nor a table of ads: no line of column names contains .* "body" .*"ad_archive_id"/,
  );
  expect([skipped, problems]).toEqual([1, [{ line: 1, path: '', problem }]]);
});

test('an imported ad whose end date is in the future was last seen at the time of the import', async ({
  libraryServer,
}) => {
  const record = { ad_creative_bodies: ['Text'], ad_delivery_start_time: '2026-02-18' };
  await libraryServer.importRecords({ id: '1', ...record, ad_delivery_stop_time: '2026-05-01' });
  expect(await findAds(libraryServer)).toMatchObject([
    { endDate: '2026-05-01T00:00:00.000Z', lastSeenAt: '2026-03-15T10:30:00.000Z' },
  ]);
  expect(await findAds(libraryServer, { daysRunningFrom: 25, daysRunningTo: 25 })).toHaveLength(1);
});

test('an imported record without spend, impressions and reach does not delete these values from an earlier import', async ({
  libraryServer,
}) => {
  const download = {
    ...{ id: '1', ad_creative_bodies: ['First text'], ad_delivery_start_time: '2026-02-18', currency: 'EUR' },
    ...{ spend: { lower_bound: '100', upper_bound: '199' }, impressions: { lower_bound: '1000', upper_bound: '1999' } },
    eu_total_reach: 500,
    demographic_distribution: [{ age: '18-24', gender: 'female', percentage: '1' }],
  };
  const measurements = {
    ...{ adSpendMin: 100, adSpendMax: 199, currency: 'EUR', impressionsMin: 1000, impressionsMax: 1999 },
    ...{ audienceReach: 500, demographics: [{ age: '18-24' }] },
  };
  const scrape = { ad_archive_id: '1', snapshot: { body: { text: 'Second text' } }, is_active: true };
  await libraryServer.importRecords(download);
  await libraryServer.importRecords(scrape);
  expect(await findAds(libraryServer)).toMatchObject([{ ...measurements, body: 'Second text' }]);
  // A newer measurement replaces all fields of the same measurement.
  await libraryServer.importRecords({ ...scrape, spend: { lower_bound: '200' }, currency: 'EUR' });
  const [ad] = await findAds(libraryServer);
  const { adSpendMax: _, ...otherMeasurements } = measurements;
  expect(ad).toMatchObject({ ...otherMeasurements, adSpendMin: 200 });
  expect(ad).not.toHaveProperty('adSpendMax');
});

test('an import with amounts in another currency removes the amounts of an earlier import from the ad', async ({
  libraryServer,
}) => {
  const revenue = { id: createUuid(1), headline: 'T', revenueMin: 5, revenueMax: 5, currency: 'USD' };
  await libraryServer.importRecords({
    id: createUuid(1),
    headline: 'T',
    adSpendMin: 1,
    adSpendMax: 1,
    currency: 'EUR',
  });
  await libraryServer.importRecords(revenue);
  const [ad] = await findAds(libraryServer);
  expect(ad).toMatchObject({ revenueMin: 5, currency: 'USD' });
  expect(ad).not.toHaveProperty('adSpendMin');
});

test('an imported ad whose link is a Facebook redirect gets the domain of the target page', async ({
  libraryServer,
}) => {
  const link = `https://l.facebook.com/l.php?u=${encodeURIComponent('https://www.shop.example/a?x=1')}&h=AT0`;
  await libraryServer.importRecords({ ad_archive_id: '1', snapshot: { title: 'T', link_url: link } });
  expect(await findAds(libraryServer, { domain: ['shop.example'] })).toMatchObject([
    { website: { siteDomain: 'shop.example' } },
  ]);
});

test.for<[query: string, storedQuery: string]>([
  ['?access_token=SECRET&id=1', '?id=1'],
  ['?id=1&access_token=SECRET', '?id=1'],
  ['?id=1&access_token=SECRET#top', '?id=1#top'],
  ['?id=1&amp;access_token=SECRET&amp;x=2', '?id=1&amp;x=2'],
  ['?u=https%3A%2F%2Fa.example%3Faccess_token%3DSECRET%26id%3D1&h=2', '?u=https%3A%2F%2Fa.example%3Fid%3D1&h=2'],
  ['?u=https%3A%2F%2Fa.example%3Faccess_token%3DSECRET&h=2', '?u=https%3A%2F%2Fa.example&h=2'],
])(
  '`library import` removes the access token from a URL with the query "%s"',
  async ([query, storedQuery], { libraryServer }) => {
    const buildUrl = (query: string) => `https://www.facebook.com/ads/archive/render_ad/${query}`;
    await libraryServer.importRecords({
      ad_archive_id: '1',
      link: buildUrl(query),
      snapshot: { title: 'T', cards: [{ link_url: buildUrl(query) }] },
    });
    await libraryServer.importRecords({
      id: createUuid(1),
      headline: 'T',
      note: buildUrl(query),
      access_token: 'SECRET',
    });
    await libraryServer.importRecords(`headline,link,My note\nT,${buildUrl(query)},${buildUrl(query)}`);
    const ads = await findAds(libraryServer, {});
    expect(ads).toHaveLength(3);
    expect(JSON.stringify(ads)).not.toContain('SECRET');
    expect(ads).toContainEqual(
      expect.objectContaining({ offerLink: buildUrl(storedQuery), 'My note': buildUrl(storedQuery) }),
    );
  },
);

test("importing an advertiser page's spend in one region does not replace the total spend of the page", async ({
  libraryServer,
}) => {
  const wholeSpend =
    'Page ID,Page name,Disclaimer,Amount spent (EUR),Number of ads in Library\n7001,Park,Friends,1200,12\n';
  const regionSpend = 'Page ID,Page name,Disclaimer,Amount spent (EUR)\n7001,Park,Friends,300\n';
  await libraryServer.importRecords(wholeSpend);
  const { pages, notes, problems } = await libraryServer.importRecords(regionSpend);
  expect(pages).toBe(0);
  expect(notes).toContain(
    'ignored, because they hold the spend of a page in one region; the table of advertisers holds its whole spend: 1 row',
  );
  expect(problems).toMatchObject([{ problem: 'the source contains no ad and no page' }]);
  const { items } = await libraryServer.searchAll({}, 'pages');
  expect(items).toMatchObject([{ pageId: '7001', adSpendMin: 1200, adSpendMax: 1200 }]);
});

test('`library import` reads the ad id from the adlib_id column in tables from older versions of Radlibrary', async ({
  libraryServer,
}) => {
  const report = await libraryServer.importRecords(
    'adlib_id,ad_creation_time,ad_creative_body,page_name,page_id,spend_lower,spend_upper\n' +
      '123,2026-01-02,Fresh tea,Tea House,42,100,199\n',
  );
  expect(report).toMatchObject({ ads: 1, skipped: 0, formats: { 'meta-ad-library': expect.anything() } });
  expect(await findAds(libraryServer)).toMatchObject([
    { adArchiveId: '123', pageId: '42', body: 'Fresh tea', adSpendMin: 100, adSpendMax: 199 },
  ]);
});
