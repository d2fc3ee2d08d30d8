import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';

/** The keys of each format's records, and the fixed fields that identify the format. */
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
    // Without the number of ads, the record would be a row of one region, which the import ignores.
    fixed: { 'Page ID': '1', 'Amount spent (EUR)': '≤100', disclaimer: 'Tea', 'Number of ads in Library': '3' },
  },
  'meta-ads-manager': {
    keys: ['Ad name', 'Impressions', 'Reach', 'Ends', 'Starts', 'Age', 'Page name', 'Headline (ad settings)'],
    fixed: { 'Ad ID': '1', 'Amount spent (EUR)': '1.5' },
  },
};

test.for(Object.entries(records))(
  'library import counts every malformed %s record as stored or skipped',
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

test('ads with the same id in different ad libraries stay separate', async ({ libraryServer }) => {
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
