import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { searchAll } from './support/served-library.ts';

test('an ad without an id of the archive is skipped', async ({ served }) => {
  const report = await served.load({ ad_archive_id: '', page_id: '42' });
  expect(report).toMatchObject({ ads: 0, skipped: 1, problems: [{ line: 1 }] });
  expect(report.problems[0]?.problem).toMatch(/^ad_archive_id: missing/);
});

test.for(['tel:+3510000', 'shop now'])(
  'a link that is no website (%s) gives no domain',
  async (link_url, { served }) => {
    await served.load({ ad_archive_id: '1', snapshot: { page_name: 'P', link_url } });
    const { items } = await searchAll(served, '/v1/ads/search', served.key(), {});
    expect(items).toMatchObject([{ offerLink: link_url }]);
    expect(items[0]).not.toHaveProperty('website.siteDomain');
  },
);
