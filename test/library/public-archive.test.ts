import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ServedLibrary, searchAll, serveLibrary } from './support/served-library.ts';

let served: ServedLibrary;
beforeAll(async () => {
  served = await serveLibrary();
});
afterAll(() => served.close());

test('an ad without an id of the archive is skipped', async () => {
  const report = await served.load({ ad_archive_id: '', page_id: '42' });
  expect(report).toMatchObject({ ads: 0, skipped: 1, problems: [{ line: 1 }] });
  expect(report.problems[0]?.problem).toMatch(/^ad_archive_id: missing/);
});

test.each(['tel:+3510000', 'shop now'])('a link that is no website (%s) gives no domain', async (link_url) => {
  await served.load({ ad_archive_id: '1', snapshot: { page_name: 'P', link_url } });
  const { items } = await searchAll(served, '/v1/ads/search', served.key(), {});
  expect(items).toMatchObject([{ offerLink: link_url }]);
  expect(items[0]).not.toHaveProperty('website.siteDomain');
});
