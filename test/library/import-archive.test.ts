import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, uuid } from './support/served-library.ts';

const adsOf = async (served: ServedLibrary, filters = {}) => (await served.searchAll(filters)).items;

/** A key of the archive (a dot is its snapshot), what stands there, and what the ad has of it. */
type Row = readonly [key: string, written: unknown, becomes?: object];

function recordOf(rows: readonly Row[]): object {
  const own = rows.filter(([key]) => !key.startsWith('.')).map(([key, written]) => [key, written]);
  const snapshot = rows.filter(([key]) => key.startsWith('.')).map(([key, written]) => [key.slice(1), written]);
  return Object.fromEntries(snapshot.length > 0 ? [...own, ['snapshot', Object.fromEntries(snapshot)]] : own);
}

/** All of the ad but its id. */
const adFrom = (rows: readonly Row[]): { pageId?: string; page?: object } =>
  Object.assign({ media: [], cards: [], website: {} }, ...rows.map(([, , becomes]) => becomes));

const media = 'https://media.example';
const link = 'https://www.shop.example/x';
const cards = [{ title: 'Card', resized_image_url: `${media}/c.jpg` }];
const scraped: Row[] = [
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
  ['.link_url', link, { offerLink: link, website: { siteDomain: 'shop.example' } }],
  ['.videos', [{ video_hd_url: `${media}/1.mp4`, video_preview_image_url: `${media}/v.jpg` }]],
  ['.images', [{ original_image_url: `${media}/1.jpg` }]],
  ['.cards', cards, { cards }],
  [
    '.page_profile_picture_url',
    `${media}/p.jpg`,
    {
      media: [
        { type: 'VID', url: `${media}/1.mp4`, nr: 0, urls: { preview: `${media}/v.jpg` } },
        { type: 'THUMB', url: `${media}/1.jpg`, nr: 0 },
        { type: 'CARD_THUMB', url: `${media}/c.jpg`, nr: 0 },
        { type: 'PA_PP', url: `${media}/p.jpg`, nr: null },
      ],
    },
  ],
];

const reach = [{ country: 'GB', age_gender_breakdowns: [{ age_range: '18-24', male: 3 }] }];
const female = { age: '18-24', gender: 'female' };
const wales = { name: 'Wales', type: 'regions', excluded: false };
const render = 'https://archive.example/render_ad/?';

const stopped = '2026-02-03T00:00:00.000Z';

const official: Row[] = [
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
  ['ad_delivery_stop_time', '2026-02-03', { lastSeenAt: stopped, endDate: stopped }],
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
  ['age_country_gender_reach_breakdown', reach, { ageCountryGenderReachBreakdown: reach }],
  ['ad_snapshot_url', `${render}access_token=SECRET&id=2001`, { adSnapshotUrl: `${render}id=2001` }],
];

test.for<[name: string, rows: Row[], filters: object, wrap?: (record: object) => unknown]>([
  ['scrapers write them', scraped, { query: 'card body', countries: 'FR' }],
  ['the archive answers', official, { daysRunningFrom: 2, daysRunningTo: 2 }, (one) => ({ data: [one], paging: {} })],
])('imports ads as %s', async ([_, rows, filters, wrap], { served }) => {
  const record = wrap?.(recordOf(rows)) ?? recordOf(rows);
  const report = { ads: 1, fromPublicArchive: 1, skipped: 0 };
  expect(await served.importRecords(record, record)).toMatchObject({ ...report, updated: 0, repeated: 1 });
  expect(await served.importRecords(record)).toMatchObject({ ...report, updated: 1, repeated: 0 });
  const ad = { id: expect.any(String), ...adFrom(rows) };
  expect(await adsOf(served, filters)).toEqual([ad]);
  // The page that is made from it.
  expect((await served.searchAll({}, 'pages')).items).toMatchObject([{ pageId: ad.pageId, ...ad.page }]);
});

test('a value that fits no field is kept under its own name and named in the report', async ({ served }) => {
  const { notes } = await served.importRecords({
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
  expect(await adsOf(served)).toMatchObject([
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
    'unknown keys, stored under their own names: constructor (1)',
  ]);
});

test.for(['tel:+3510000', 'shop now'])('a link that is no website (%s) has no domain', async (link, { served }) => {
  await served.importRecords({
    ad_archive_id: '1',
    snapshot: { page_name: 'P', link_url: link, caption: 'paypal.com' },
  });
  const items = await adsOf(served);
  expect(items).toMatchObject([{ offerLink: link }]);
  expect(items[0]).not.toHaveProperty('website.siteDomain');
});

test.for([
  ['without an id of the archive', { ad_archive_id: '', page_id: '42' }, /^ad_archive_id: missing/],
  ['with an end past all dates', { ad_archive_id: '3', end_date: 1e20 }, /^endDate:/],
  ['with an end that is no date', { ad_archive_id: '3', end_date: 'soon' }, /^endDate:/],
  ['whose id was rounded', '{"ad_archive_id":12345678901234567890}', /is a rounded number, so the id is lost/],
  ['whose page id was rounded', '{"ad_archive_id":"1","page_id":1e30}', /is a rounded number, so the id is lost/],
] as const)('an ad %s is refused', async ([_, record, problem], { served }) => {
  const report = await served.importRecords(record);
  expect(report).toMatchObject({ ads: 0, problems: [{ line: 1, problem: expect.stringMatching(problem) }] });
});

test('malformed ads never make the import fail', async ({ served }) => {
  const names = ['page_id', 'start_date', 'end_date', 'is_active', 'spend', 'publisher_platform', 'body', 'cards'];
  const record = fc.dictionary(fc.constantFrom(...names, 'images'), fc.jsonValue({ maxDepth: 4 }));
  await fc.assert(
    fc.asyncProperty(record, record, async (outer, snapshot) => {
      const report = await served.importRecords({ ...outer, snapshot, ad_archive_id: '1' });
      expect(report.ads + report.skipped).toBe(1);
    }),
    { numRuns: 50 },
  );
});

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const male = { age: '65+', gender: 'male' };
const ages = [
  { ...female, percentage: 0.25 },
  { ...male, percentage: 0.75 },
];

/** Cells as the archive writes them. */
const cells: (readonly [column: string, cell: string, becomes?: object])[] = [
  ['ad_archive_id', '1234567890123456', { adArchiveId: '1234567890123456' }],
  ['page_id', '77', { pageId: '77', sourcePageExternalId: '77' }],
  ['page_name', cell('The "Page"'), { page: { pageName: 'The "Page"' } }],
  ['byline', 'Friends of Tests', { bylines: 'Friends of Tests' }],
  ['ad_creative_bodies', cell('First line\r\nand, another'), { body: 'First line\r\nand, another' }],
  ['ad_creative_link_titles', cell('["One","Two"]'), { headline: 'One', headlines: ['One', 'Two'] }],
  ['ad_delivery_start_time', '2024-01-02', { startedAt: '2024-01-02T00:00:00.000Z' }],
  ['impressions', cell('lower_bound: 1000, upper_bound: 4999'), { impressionsMin: 1000, impressionsMax: 4999 }],
  ['spend', cell('{"lower_bound":"0","upper_bound":"99"}'), { adSpendMin: 0, adSpendMax: 99 }],
  ['currency', 'EUR', { currency: 'EUR' }],
  ['publisher_platforms', cell('facebook,instagram'), { publisherPlatform: ['FACEBOOK', 'INSTAGRAM'] }],
  ['languages', 'de', { languages: ['de'] }],
  ['demographic_distribution', cell(JSON.stringify(ages).slice(1, -1)), { demographics: ages }],
  ['estimated_audience_size', 'lower_bound: 1000001', { audienceSizeMin: 1_000_001 }],
  ['ad_creation_time', ''],
];

test.for([
  ['commas and CRLF', ',', '\r\n'],
  ['semicolons and LF', ';', '\n'],
] as const)('ads are imported from CSV with %s', async ([_, delimiter, lineEnd], { served }) => {
  const lines = [cells.map(([column]) => column), cells.map(([, text]) => text)].map((one) => one.join(delimiter));
  const report = await served.importRecords(`\uFEFF${lines.join(lineEnd)}${lineEnd}${lineEnd}`);
  expect(report).toMatchObject({ ads: 1, fromPublicArchive: 1, skipped: 0, problems: [] });
  const found = await adsOf(served, { query: '"and another" two friends' });
  expect(found).toEqual([{ ...adFrom(cells), id: expect.any(String) }]);
});

test('rows that cannot be used are named by their line', async ({ served }) => {
  const ads = ['ad_archive_id,page_id,page_name', '1,2', '1.23457E+15,2,P', '3,2,"two\nlines"', '4,..,P'];
  const report = await served.importRecords(ads.join('\n'));
  expect(report).toMatchObject({ ads: 1, skipped: 3 });
  expect(report.problems.map(({ line, problem }) => `${line} ${problem}`)).toEqual([
    '2 the row has 2 cells, and the line of column names has 3; is a quotation mark missing?',
    '3 ad_archive_id: 1.23457E+15 is a rounded number, so the id is lost; export the ids again as text',
    expect.stringMatching(/^6 pageId: not a valid page id/),
  ]);
});

test('a quotation mark that is not closed costs its line, however much follows', async ({ served }) => {
  for (const rows of ['7,Q\n'.repeat(100), '\n'.repeat(2_000_000)]) {
    const amount = rows.split('\n').length - 1;
    const report = await served.importRecords(`ad_archive_id,page_name\n5,P\n6,"open\n${rows}8,"again\n9,R`);
    const problem = 'a row that does not end; is a quotation mark not closed?';
    expect(report).toMatchObject({ ads: rows.includes('Q') ? 3 : 2, skipped: 2 });
    expect(report.problems).toEqual([3, amount + 4].map((line) => ({ line, path: '', problem })));
  }
});

test('a table of something else is refused, and the message names the columns that tell', async ({ served }) => {
  const { skipped, problems } = await served.importRecords('Name,Age\nA,1\n');
  const problem = expect.stringMatching(
    /^neither JSON nor a table of ads: no line of column names contains .* "body" .*"ad_archive_id"/,
  );
  expect([skipped, problems]).toEqual([1, [{ line: 1, path: '', problem }]]);
});

test('no ad of the archive was seen after the import', async ({ served }) => {
  const record = { ad_creative_bodies: ['Text'], ad_delivery_start_time: '2026-02-18' };
  await served.importRecords({ id: '1', ...record, ad_delivery_stop_time: '2026-05-01' });
  expect(await adsOf(served)).toMatchObject([
    { endDate: '2026-05-01T00:00:00.000Z', lastSeenAt: '2026-03-15T10:30:00.000Z' },
  ]);
  expect(await adsOf(served, { daysRunningFrom: 25, daysRunningTo: 25 })).toHaveLength(1);
});

test('the domain of a wrapped link is that of the page behind the wrapper', async ({ served }) => {
  const link = `https://l.facebook.com/l.php?u=${encodeURIComponent('https://www.shop.example/a?x=1')}&h=AT0`;
  await served.importRecords({ ad_archive_id: '1', snapshot: { title: 'T', link_url: link } });
  expect(await adsOf(served, { domain: ['shop.example'] })).toMatchObject([
    { website: { siteDomain: 'shop.example' } },
  ]);
});

test.for<[given: string, kept: string]>([
  ['?access_token=SECRET&id=1', '?id=1'],
  ['?id=1&access_token=SECRET', '?id=1'],
  ['?id=1&access_token=SECRET#top', '?id=1#top'],
  ['?id=1&amp;access_token=SECRET&amp;x=2', '?id=1&amp;x=2'],
  ['?u=https%3A%2F%2Fa.example%3Faccess_token%3DSECRET%26id%3D1&h=2', '?u=https%3A%2F%2Fa.example%3Fid%3D1&h=2'],
  ['?u=https%3A%2F%2Fa.example%3Faccess_token%3DSECRET&h=2', '?u=https%3A%2F%2Fa.example&h=2'],
])(
  'the access token of the address %s is not stored, whatever the key and the format',
  async ([given, kept], { served }) => {
    const address = (query: string) => `https://www.facebook.com/ads/archive/render_ad/${query}`;
    await served.importRecords({
      ad_archive_id: '1',
      link: address(given),
      snapshot: { title: 'T', cards: [{ link_url: address(given) }] },
    });
    await served.importRecords({ id: uuid(1), headline: 'T', note: address(given), access_token: 'SECRET' });
    await served.importRecords(`headline,link,My note\nT,${address(given)},${address(given)}`);
    const ads = await adsOf(served, {});
    expect(ads).toHaveLength(3);
    expect(JSON.stringify(ads)).not.toContain('SECRET');
    expect(ads).toContainEqual(expect.objectContaining({ offerLink: address(kept), 'My note': address(kept) }));
  },
);
