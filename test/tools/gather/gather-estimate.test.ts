import { expect } from 'vitest';
import { serveAds } from '../../support/ad-service.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const all = { maxCredits: 100_000, maxAds: 10_000 };
const third = (index: number) => ({ third: index });

test('what a count has told is not searched for again, for any part', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  service.matching = ({ third }) => service.ads.filter((_, index) => third === undefined || index % 3 === third);
  const split = [third(0), third(2)];
  await server.call('count_ads', { split });
  const searches = service.searches.length;
  const { data, text } = await server.call('gather_ads', { split, maxCredits: 0 });
  expect(data).toMatchObject({ found: 200, estimate: { ads: 200, pages: 2 }, receipt: { calls: 0 } });
  expect(text).toContain('Estimate: 200 ads in 2 pages, for at most about 200 credits.');
  const more = await server.call('gather_ads', { split: [...split, third(1)], maxCredits: 0 });
  expect(more.data.estimate).toMatchObject({ ads: 500, credits: null });
  expect(more.text).toContain('It is not known how many ads match one part: each may have all 300 that match filters.');
  expect(service.searches).toHaveLength(searches);
});

test('what is partly read is estimated by what is left', async ({ upstream, server }) => {
  serveAds(upstream, 270);
  await server.call('gather_ads', { ...all, maxAds: 100 });
  await server.call('search_ads', { limit: 70 });
  const { data, text } = await server.call('gather_ads', { maxCredits: 0 });
  expect(data).toMatchObject({ found: 270, read: 100, estimate: { ads: 270, pages: 2 }, receipt: { calls: 0 } });
  expect(text).toContain('Estimate: 270 ads, 100 of which are read; the rest in 2 pages, for about 17 credits.');
});

test('a number of ads that an old gathering tells is dated', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-01T10:00:00Z');
  const server = await start({}, { now: () => clock++ });
  serveAds(upstream, 120);
  await server.call('gather_ads', all);
  clock += 20 * 86_400_000;
  const { data, text } = await server.call('gather_ads', { maxCredits: 0, fresh: true });
  expect(data).toMatchObject({ estimate: { ads: 120, pages: 2 }, receipt: { calls: 0 } });
  expect(text).toContain('The number of ads is of 2026-11-01 10:00 UTC.');
});

test('a free key reads that it is free, and an empty answer tells no price', async ({ upstream, start }) => {
  const service = serveAds(upstream, 270, () => 0);
  const server = await start();
  const free = await server.call('gather_ads', { maxCredits: 0 });
  expect(free.data.estimate).toEqual({ ads: 270, pages: 3, credits: 0 });
  expect(free.text).toContain('270 ads in 3 pages, free.');
  const other = await start();
  service.price = () => 1;
  service.change = (page, { filters }) => ({
    ...page,
    ...(filters.none === 1 && { items: [], hasMore: false, totalHits: 0 }),
  });
  await other.call('search_ads', { filters: { none: 1 }, limit: 100 });
  const { text } = await other.call('gather_ads', { maxCredits: 0 });
  expect(text).toContain(
    '270 ads in 3 pages, for at most about 270 credits. The price of such pages is not known yet, so it may be much less.',
  );
});
