import fc from 'fast-check';
import { expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import type { ServedLibrary } from './support/served-library.ts';

const adsOf = async (served: ServedLibrary, filters = {}) => (await served.found(filters)).items;

test('ads are imported as scrapers write them', async ({ served }) => {
  const scraped = {
    ad_archive_id: '123456789',
    page_id: '42',
    is_active: true,
    start_date: 1_767_225_600,
    end_date: 1_767_312_000,
    collation_count: 3,
    publisher_platform: ['facebook', 'INSTAGRAM'],
    targeted_or_reached_countries: ['FR'],
    spend: { lower_bound: '100', upper_bound: '199' },
    impressions: { lower_bound: '1000' },
    snapshot: {
      page_name: 'Made-up Page',
      page_profile_picture_url: 'https://media.example/p.jpg',
      title: 'A title',
      body: { text: 'A body' },
      caption: 'shop.example',
      cta_type: 'SHOP_NOW',
      display_format: 'video',
      link_url: 'https://www.shop.example/x',
      images: [{ original_image_url: 'https://media.example/1.jpg' }],
      videos: [{ video_hd_url: 'https://media.example/1.mp4', video_preview_image_url: 'https://media.example/v.jpg' }],
      cards: [{ title: 'Card', resized_image_url: 'https://media.example/c.jpg' }],
    },
  };
  expect(await served.load(scraped, scraped)).toMatchObject({ ads: 2, fromPublicArchive: 2, skipped: 0 });
  const items = await adsOf(served, { query: 'card body', countries: 'FR' });
  expect(items).toHaveLength(1);
  const { id, ...ad } = items[0];
  expect(ad).toEqual({
    adArchiveId: '123456789',
    pageId: '42',
    sourcePageExternalId: '42',
    headline: 'A title',
    body: 'A body',
    offerLink: 'https://www.shop.example/x',
    displayUrl: 'shop.example',
    startedAt: '2026-01-01T00:00:00.000Z',
    lastSeenAt: '2026-01-02T00:00:00.000Z',
    endDate: null,
    duplicates: 3,
    adSpendMin: 100,
    adSpendMax: 199,
    ctaType: 'SHOP_NOW',
    displayFormat: 'VIDEO',
    countries: ['FR'],
    publisherPlatform: ['FACEBOOK', 'INSTAGRAM'],
    media: [
      { type: 'VID', url: 'https://media.example/1.mp4', nr: 0, urls: { preview: 'https://media.example/v.jpg' } },
      { type: 'THUMB', url: 'https://media.example/1.jpg', nr: 0 },
      { type: 'CARD_THUMB', url: 'https://media.example/c.jpg', nr: 0 },
      { type: 'PA_PP', url: 'https://media.example/p.jpg', nr: null },
    ],
    cards: [{ title: 'Card', resized_image_url: 'https://media.example/c.jpg' }],
    page: { pageName: 'Made-up Page' },
    website: { siteDomain: 'shop.example' },
    impressionsMin: 1000,
  });
  expect((await served.get('/v1/pages/42')).body.pageName).toBe('Made-up Page');
});

test('ads are imported as the official archive answers, with what it says about money, audience and targeting', async ({
  served,
}) => {
  const reach = [{ country: 'GB', age_gender_breakdowns: [{ age_range: '18-24', male: 3 }] }];
  const official = {
    id: '2001',
    page_id: '9',
    page_name: 'Other Page',
    ad_creative_bodies: ['One', 'Two'],
    ad_creative_link_titles: ['Only one'],
    ad_creative_link_captions: ['a.example', 'b.example'],
    ad_creative_link_descriptions: ['D', 'E'],
    ad_delivery_start_time: '2026-02-01',
    ad_delivery_stop_time: '2026-02-03',
    publisher_platforms: ['facebook'],
    bylines: 'Friends of Tests',
    currency: 'GBP',
    spend: { lower_bound: '0', upper_bound: '199' },
    impressions: { lower_bound: '1000000' },
    estimated_audience_size: { lower_bound: 5001, upper_bound: 10000 },
    demographic_distribution: [{ age: '18-24', gender: 'female', percentage: '0.25' }],
    delivery_by_region: [{ region: 'Wales', percentage: '1' }],
    target_locations: [{ name: 'Wales', type: 'regions', excluded: false }],
    target_ages: ['18', '65+'],
    target_gender: 'All',
    languages: ['cy', 'en'],
    age_country_gender_reach_breakdown: reach,
    ad_snapshot_url: 'https://archive.example/render_ad/?access_token=SECRET&id=2001',
  };
  await served.load({ data: [official], paging: {} });
  const [ad] = await adsOf(served, { daysRunningFrom: 2, daysRunningTo: 2 });
  expect(ad).toMatchObject({
    page: { pageName: 'Other Page' },
    headline: 'Only one',
    body: 'One',
    bodies: ['One', 'Two'],
    displayUrl: 'a.example',
    displayUrls: ['a.example', 'b.example'],
    linkDescriptions: ['D', 'E'],
    startedAt: '2026-02-01T00:00:00.000Z',
    endDate: '2026-02-03T00:00:00.000Z',
    bylines: 'Friends of Tests',
    currency: 'GBP',
    adSpendMin: 0,
    adSpendMax: 199,
    impressionsMin: 1_000_000,
    audienceSizeMin: 5001,
    audienceSizeMax: 10_000,
    demographics: [{ age: '18-24', gender: 'female', percentage: 0.25 }],
    regions: [{ region: 'Wales', percentage: 1 }],
    targetLocations: [{ name: 'Wales', type: 'regions', excluded: false }],
    targetAges: ['18', '65+'],
    targetGender: 'All',
    languages: ['cy', 'en'],
    ageCountryGenderReachBreakdown: reach,
    adSnapshotUrl: 'https://archive.example/render_ad/?id=2001',
  });
  for (const absent of ['headlines', 'impressionsMax', 'impressions', 'spend']) expect(ad).not.toHaveProperty(absent);
  expect(JSON.stringify(ad)).not.toContain('SECRET');
});

test('what fits no field is kept under its own name, in the snapshot too', async ({ served }) => {
  await served.load({
    ad_archive_id: '2002',
    is_active: false,
    spend: '100–199',
    start_date: 'soon',
    collation_count: 'n/a',
    publisher_platform: 'facebook',
    categories: ['POLITICAL'],
    state_media_label: null,
    constructor: 'odd',
    snapshot: { page_like_count: 5, extra_texts: [{ text: 'More' }], event: null, cards: [] },
  });
  expect(await adsOf(served)).toMatchObject([
    {
      isActive: false,
      spend: '100–199',
      startDate: 'soon',
      collationCount: 'n/a',
      publisherPlatform: ['FACEBOOK'],
      categories: ['POLITICAL'],
      constructor: 'odd',
      snapshot: { pageLikeCount: 5, extraTexts: [{ text: 'More' }] },
    },
  ]);
});

test.for(['tel:+3510000', 'shop now'])('a link that is no website (%s) gives no domain', async (link, { served }) => {
  await served.load({ ad_archive_id: '1', snapshot: { page_name: 'P', link_url: link, caption: 'paypal.com' } });
  const items = await adsOf(served);
  expect(items).toMatchObject([{ offerLink: link }]);
  expect(items[0]).not.toHaveProperty('website.siteDomain');
});

test.for([
  ['without an id of the archive', { ad_archive_id: '', page_id: '42' }, /^ad_archive_id: missing/],
  ['with an end past all dates', { ad_archive_id: '3', end_date: 1e20 }, /^endDate:/],
  ['with an end that is no date', { ad_archive_id: '3', end_date: 'soon' }, /^endDate:/],
  ['whose id was rounded', '{"ad_archive_id":12345678901234567890}', /is rounded, so the id is lost/],
  ['whose page id was rounded', '{"ad_archive_id":"1","page_id":1e30}', /is rounded, so the id is lost/],
] as const)('an ad %s is refused', async ([_, record, problem], { served }) => {
  const report = await served.load(record);
  expect(report).toMatchObject({ ads: 0, problems: [{ line: 1, problem: expect.stringMatching(problem) }] });
});

test('malformed ads never make the import fail', async ({ served }) => {
  const names = ['page_id', 'start_date', 'end_date', 'is_active', 'spend', 'publisher_platform', 'body', 'cards'];
  const record = fc.dictionary(fc.constantFrom(...names, 'images'), fc.jsonValue({ maxDepth: 4 }));
  await fc.assert(
    fc.asyncProperty(record, record, async (outer, snapshot) => {
      const report = await served.load({ ...outer, snapshot, ad_archive_id: '1' });
      expect(report.ads + report.skipped).toBe(1);
    }),
  );
});

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const ages = '{"age":"18-24","gender":"female","percentage":"0.25"}, {"age":"65+","gender":"male","percentage":0.75}';
const row = [
  ['ad_archive_id', '1234567890123456'],
  ['page_id', '77'],
  ['page_name', cell('The "Page"')],
  ['byline', 'Friends of Tests'],
  ['ad_creative_bodies', cell('First line\r\nand, another')],
  ['ad_creative_link_titles', cell('["One","Two"]')],
  ['ad_delivery_start_time', '2024-01-02'],
  ['impressions', cell('lower_bound: 1000, upper_bound: 4999')],
  ['spend', cell('{"lower_bound":"0","upper_bound":"99"}')],
  ['currency', 'EUR'],
  ['publisher_platforms', cell('facebook,instagram')],
  ['languages', 'de'],
  ['demographic_distribution', cell(ages)],
  ['estimated_audience_size', 'lower_bound: 1000001'],
  ['ad_creation_time', ''],
] as const;

test.for([
  ['commas and CRLF', ',', '\r\n'],
  ['semicolons and LF', ';', '\n'],
] as const)('ads as CSV with %s', async ([_, delimiter, lineEnd], { served }) => {
  const header = row.map(([name]) => name).join(delimiter);
  const cells = row.map(([, text]) => text).join(delimiter);
  const report = await served.load(['\uFEFF', header, lineEnd, cells, lineEnd, lineEnd].join(''));
  expect(report).toMatchObject({ ads: 1, fromPublicArchive: 1, skipped: 0, problems: [] });
  expect(await adsOf(served, { query: '"and another" two friends' })).toMatchObject([
    {
      adArchiveId: '1234567890123456',
      pageId: '77',
      page: { pageName: 'The "Page"' },
      body: 'First line\r\nand, another',
      headline: 'One',
      headlines: ['One', 'Two'],
      bylines: 'Friends of Tests',
      startedAt: '2024-01-02T00:00:00.000Z',
      impressionsMin: 1000,
      impressionsMax: 4999,
      adSpendMin: 0,
      adSpendMax: 99,
      currency: 'EUR',
      publisherPlatform: ['FACEBOOK', 'INSTAGRAM'],
      languages: ['de'],
      demographics: [
        { age: '18-24', gender: 'female', percentage: 0.25 },
        { age: '65+', gender: 'male', percentage: 0.75 },
      ],
      audienceSizeMin: 1_000_001,
    },
  ]);
});

test('rows that cannot be used are named by their line', async ({ served }) => {
  const ads = ['ad_archive_id,page_id,page_name', '1,2', '1.23457E+15,2,P', '3,2,"two\nlines"', '4,..,P'];
  const report = await served.load(ads.join('\n'));
  expect(report).toMatchObject({ ads: 1, skipped: 3 });
  expect(report.problems.map(({ line, problem }) => `${line} ${problem}`)).toEqual([
    '2 2 cells where the first line has 3; is a quotation mark missing?',
    '3 ad_archive_id: 1.23457E+15 is rounded, so the id is lost; export it again as a text',
    expect.stringMatching(/^6 pageId: cannot be asked for/),
  ]);
});

test('a quotation mark that is not closed ends the file, however much follows', async ({ served }) => {
  for (const amount of [1000, 1_000_000]) {
    const report = await served.load(`ad_archive_id,page_name\n5,P\n6,"open\n${'7,Q\n'.repeat(amount)}`);
    const problem = expect.stringMatching(/^a row without an end/);
    expect(report).toMatchObject({ ads: 1, skipped: 1, problems: [{ line: 3, problem }] });
  }
});

test('a CSV of something else says which columns are known', async ({ served }) => {
  const { skipped, problems } = await served.load('Name,Age\nA,1\n');
  const problem = expect.stringMatching(/^neither JSON nor a CSV of .* "body" .*"ad_archive_id"/);
  expect([skipped, problems]).toEqual([1, [{ line: 1, path: '', problem }]]);
});
