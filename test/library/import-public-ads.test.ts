import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { linesOf, type ServedLibrary, searchAll } from './support/served-library.ts';

const get = async ({ served, key }: { served: ServedLibrary; key: string }, path: string) =>
  (await served.ask('GET', path, { key })).body;

describe('ads of the public ad library', () => {
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

  test('are imported as scrapers write them', async ({ served, key }) => {
    const report = await served.load(scraped, scraped);
    expect(report).toMatchObject({ ads: 2, fromPublicArchive: 2, skipped: 0 });
    const { items, totalHits } = await searchAll(served, '/v1/ads/search', key, {
      query: 'card body',
      countries: 'FR',
    });
    expect(totalHits).toBe(1);
    const { id, appUrl, ...ad } = items[0];
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
    expect((await get({ served, key }, '/v1/pages/42')).pageName).toBe('Made-up Page');
  });

  test('are imported as the official archive answers, in its envelope', async ({ served, key }) => {
    await served.load({
      data: [
        {
          id: '987',
          page_id: '43',
          page_name: 'Other Page',
          ad_creative_bodies: ['First', 'Second'],
          ad_creative_link_titles: ['Title'],
          ad_creative_link_captions: ['other.example'],
          ad_delivery_start_time: '2026-02-01',
          ad_delivery_stop_time: '2026-02-03',
          publisher_platforms: ['facebook'],
          languages: ['en'],
          spend: { lower_bound: '0', upper_bound: '99' },
        },
      ],
      paging: {},
    });
    const { items } = await searchAll(served, '/v1/ads/search', key, { daysRunningFrom: 2, daysRunningTo: 2 });
    expect(items).toMatchObject([
      {
        body: 'First',
        headline: 'Title',
        displayUrl: 'other.example',
        startedAt: '2026-02-01T00:00:00.000Z',
        endDate: '2026-02-03T00:00:00.000Z',
        adSpendMin: 0,
        languages: ['en'],
        page: { pageName: 'Other Page' },
      },
    ]);
  });

  test('malformed ads never make the import fail', async ({ served }) => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const names = [
      'page_id',
      'start_date',
      'end_date',
      'is_active',
      'spend',
      'publisher_platform',
      'body',
      'cards',
      'images',
    ];
    const record = fc.dictionary(fc.constantFrom(...names), value);
    await fc.assert(
      fc.asyncProperty(record, record, async (outer, snapshot) => {
        const report = await served.load({ ...outer, snapshot, ad_archive_id: '1' });
        expect(report.ads + report.skipped).toBe(1);
      }),
    );
  });
});

const data = process.env.AD_LIBRARY_TEST_DATA ?? resolve(import.meta.dirname, '../../../shared/data');
describe.skipIf(!existsSync(join(data, 'ads.jsonl')))(
  'real ads and pages (AD_LIBRARY_TEST_DATA or ../shared/data)',
  () => {
    const records = (file: string) =>
      readFileSync(join(data, file), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));

    test('every field is read back as it was, by id and by search', async ({ served, key }) => {
      const ads = records('ads.jsonl');
      const pages = records('pages.jsonl');
      expect(await served.library.import(linesOf([...pages, ...ads]))).toMatchObject({ skipped: 0 });
      for (const ad of ads) expect(await get({ served, key }, `/v1/ads/${ad.id}`)).toEqual(ad);
      for (const page of pages) expect(await get({ served, key }, `/v1/pages/${page.pageId}`)).toEqual(page);
      const byId = (items: { id: string }[]) => [...items].sort((left, right) => (left.id < right.id ? -1 : 1));
      const { items, totalHits } = await searchAll(served, '/v1/ads/search', key, { limit: 7 });
      expect(totalHits).toBe(ads.length);
      expect(byId(items.map(({ appUrl, ...ad }: { appUrl: string; id: string }) => ad))).toEqual(byId(ads));
    });

    test('every advertiser is found by its name, every ad by words of its headline', async ({ served, key }) => {
      const ads = records('ads.jsonl');
      await served.library.import(linesOf(ads));
      for (const ad of ads) {
        const found = await searchAll(served, '/v1/ads/search', key, {
          advertiser: `"${ad.page.pageName.replaceAll('"', ' ')}"`,
        });
        expect(found.items.map(({ id }: { id: string }) => id)).toContain(ad.id);
        const words = (ad.headline ?? '')
          .match(/[\p{L}\p{M}\p{N}]+/gu)
          ?.slice(0, 3)
          .join(' ');
        if (!words) continue;
        const { items } = await searchAll(served, '/v1/ads/search', key, { query: words, limit: 100 });
        expect(items.map(({ id }: { id: string }) => id)).toContain(ad.id);
      }
    });
  },
);
