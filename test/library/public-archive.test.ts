import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, searchAll } from './support/served-library.ts';

test('an ad without an id of the archive is skipped', async ({ served }) => {
  const report = await served.load({ ad_archive_id: '', page_id: '42' });
  expect(report).toMatchObject({ ads: 0, skipped: 1, problems: [{ line: 1 }] });
  expect(report.problems[0]?.problem).toMatch(/^ad_archive_id: missing/);
});

test.for(['tel:+3510000', 'shop now'])(
  'a link that is no website (%s) gives no domain',
  async (link_url, { served }) => {
    await served.load({ ad_archive_id: '1', snapshot: { page_name: 'P', link_url, caption: 'paypal.com' } });
    const { items } = await searchAll(served, '/v1/ads/search', served.key(), {});
    expect(items).toMatchObject([{ offerLink: link_url }]);
    expect(items[0]).not.toHaveProperty('website.siteDomain');
  },
);

const adOf = async (served: ServedLibrary, archiveId: string) => {
  const { items } = await searchAll(served, '/v1/ads/search', served.key(), { limit: 100 });
  return items.find(({ adArchiveId }) => adArchiveId === archiveId);
};

test('what the archive says about money, audience and targeting is kept', async ({ served }) => {
  await served.load({
    id: '2001',
    page_id: '9',
    ad_creative_bodies: ['One', 'Two'],
    ad_creative_link_titles: ['Only one'],
    ad_creative_link_captions: ['a.example', 'b.example'],
    ad_creative_link_descriptions: ['D', 'E'],
    bylines: 'Friends of Tests',
    currency: 'GBP',
    spend: { lower_bound: '100', upper_bound: '199' },
    impressions: { lower_bound: '1000000' },
    estimated_audience_size: { lower_bound: 5001, upper_bound: 10000 },
    demographic_distribution: [{ age: '18-24', gender: 'female', percentage: '0.25' }],
    delivery_by_region: [{ region: 'Wales', percentage: '1' }],
    target_locations: [{ name: 'Wales', type: 'regions', excluded: false }],
    target_ages: ['18', '65+'],
    target_gender: 'All',
    languages: ['cy', 'en'],
    age_country_gender_reach_breakdown: [{ country: 'GB', age_gender_breakdowns: [{ age_range: '18-24', male: 3 }] }],
    ad_snapshot_url: 'https://archive.example/render_ad/?access_token=SECRET&id=2001',
  });
  const ad = await adOf(served, '2001');
  expect(ad).toMatchObject({
    headline: 'Only one',
    body: 'One',
    bodies: ['One', 'Two'],
    displayUrls: ['a.example', 'b.example'],
    linkDescriptions: ['D', 'E'],
    bylines: 'Friends of Tests',
    currency: 'GBP',
    adSpendMin: 100,
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
    ageCountryGenderReachBreakdown: [{ country: 'GB', age_gender_breakdowns: [{ age_range: '18-24', male: 3 }] }],
    adSnapshotUrl: 'https://archive.example/render_ad/?id=2001',
  });
  for (const absent of ['headlines', 'impressionsMax', 'impressions', 'spend']) expect(ad).not.toHaveProperty(absent);
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
  expect(await adOf(served, '2002')).toMatchObject({
    isActive: false,
    spend: '100–199',
    startDate: 'soon',
    collationCount: 'n/a',
    publisherPlatform: ['FACEBOOK'],
    categories: ['POLITICAL'],
    constructor: 'odd',
    snapshot: { pageLikeCount: 5, extraTexts: [{ text: 'More' }] },
  });
});

test('a date that is none in a field of the API is refused', async ({ served }) => {
  const report = await served.load({ ad_archive_id: '3', end_date: 1e20 }, { ad_archive_id: '3', end_date: 'soon' });
  expect(report.problems.map(({ problem }) => problem.split(':')[0])).toEqual(['endDate', 'endDate']);
});

test('an id that was rounded is refused, because two ads could have the same', async ({ served }) => {
  const report = await served.load('{"ad_archive_id":12345678901234567890}', '{"ad_archive_id":"1","page_id":1e30}');
  expect(report).toMatchObject({ ads: 0, skipped: 2 });
  for (const { problem } of report.problems) expect(problem).toMatch(/is rounded, so the id is lost/);
});
