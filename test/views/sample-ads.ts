import type { Ad, Page } from '../../src/api/schemas.ts';

/** The current time in these tests: 20 November 2026, 12:00 UTC. */
export const now = Date.UTC(2026, 10, 20, 12);

/** An invented ad with every documented field. */
export const everyFact: Ad = {
  id: '6f1c2a34-9b0d-4c6e-8f52-1a2b3c4d5e6f',
  pageId: '0b9a8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d',
  sourcePageExternalId: '100200300400',
  headline: 'Boots that outlast the trail',
  body: 'Hand-welted in Porto.\n\nFree returns for 90 days. '.concat('Walk more, buy less. '.repeat(20)).trim(),
  linkDescription: 'Made once, resoled forever',
  productTitle: 'Serra boot',
  offerLink: 'https://www.serra.example/boots?utm_source=fb&color=tan&fbclid=abc&c={{campaign.name}}#top',
  displayUrl: 'SERRA.EXAMPLE',
  startedAt: '2026-09-01T07:00:00.000Z',
  lastSeenAt: '2026-11-20T07:00:00.000Z',
  endDate: null,
  productCreatedAt: '2026-01-15T00:00:00.000Z',
  productPrice: 189.5,
  duplicates: 4,
  trendPublic: 0.8,
  performancePublic: 71,
  audienceReach: 120000,
  adSpendMin: 1000,
  adSpendMax: 5000,
  revenueMin: 3000,
  revenueMax: 9000,
  isStorePlatformBestSeller: true,
  ctaType: 'SHOP_NOW',
  displayFormat: 'VIDEO',
  countries: ['DE', 'PT'],
  publisherPlatform: ['FACEBOOK', 'INSTAGRAM'],
  media: [
    { type: 'VID', url: 'https://media.example/v.mp4', nr: 0, durationSeconds: 15 },
    { type: 'THUMB', url: 'https://media.example/t.jpg', nr: 0 },
    { type: 'PA_PP', url: 'https://media.example/p.jpg', nr: null },
  ],
  cards: [],
  page: { pageName: 'Serra Boots', adsAmount: 31 },
  website: { siteDomain: 'serra.example' },
  appUrl: 'https://app.example/ads/6f1c2a34-9b0d-4c6e-8f52-1a2b3c4d5e6f',
};

export const somePage: Page = {
  pageId: '0b9a8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d',
  pageName: 'Serra Boots',
  sourcePageExternalId: '100200300400',
  pageLikes: 12345,
  pageIgFollowers: 678,
  adsAmount: 31,
  adsTotalDuplicates: 52,
  averageDuplicates: 1.68,
  audienceReach: 400000,
  trend: 1.2,
  performance: 65,
  pageCreatedAt: '2019-03-01T00:00:00.000Z',
  createdAt: '2024-05-01T00:00:00.000Z',
  detailsEstimated: true,
  technologySlugs: ['shopify'],
  countries: ['DE'],
  languages: ['en'],
  thumbnails: [
    { url: 'https://media.example/1.jpg', isVideo: true },
    { url: 'https://media.example/2.jpg', isVideo: false },
  ],
  appUrl: 'https://app.example/pages/0b9a8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d',
};
