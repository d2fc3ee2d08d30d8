import fc from 'fast-check';
import { expect } from 'vitest';
import { serveAds } from '../../support/ad-service.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';
import type { Result } from '../../support/server.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const rule = fc.record({
  kind: fc.constantFrom('flat', 'each', 'group'),
  credits: fc.integer({ min: 0, max: 5 }),
  group: fc.constantFrom(2, 5, 10, 20, 25, 50, 100),
});
type Rule = typeof rule extends fc.Arbitrary<infer Value> ? Value : never;
const priceOf = ({ kind, credits, group }: Rule, items: number) =>
  items === 0 ? 0 : kind === 'flat' ? credits : kind === 'each' ? credits * items : credits * Math.ceil(items / group);

const all = { maxCredits: 100_000, maxAds: 10_000 };
const third = (index: number) => ({ third: index });

/** The number of credits that an estimate names, and whether it is the most it can be. */
function namedCredits({ data, text }: Result): { credits: number; isMost: boolean } | undefined {
  const { credits } = data.estimate as { credits: number | null };
  if (credits !== null) return { credits, isMost: false };
  const [, most] = /at most about ([\d.]+) credit/.exec(text) ?? [];
  if (most !== undefined) return { credits: Number(most), isMost: true };
  expect(text).toContain('at a price that is not known yet');
  return undefined;
}

test('an estimate is what reading then costs, or the most it can', { timeout: 180_000 }, async ({
  upstream,
  start,
}) => {
  const earlier = fc.oneof(
    fc.record({ tool: fc.constant('search_ads'), limit: fc.integer({ min: 1, max: 100 }) }),
    fc.record({ tool: fc.constant('count_ads'), isSplit: fc.boolean() }),
    fc.record({ tool: fc.constant('gather_ads'), third: fc.nat(2), maxAds: fc.integer({ min: 1, max: 250 }) }),
  );
  const cases = {
    rule,
    ads: fc.integer({ min: 0, max: 700 }),
    earlier: fc.array(earlier, { maxLength: 4 }),
    parts: fc.constantFrom([], [0], [0, 1], [0, 1, 2], [2, 2]),
    cacheSeconds: fc.constantFrom(0, 900),
    fresh: fc.boolean(),
  };
  await fc.assert(
    fc.asyncProperty(fc.record(cases), async ({ rule, ads, earlier, parts, cacheSeconds, fresh }) => {
      const server = await start({ cacheSeconds });
      const service = serveAds(upstream, ads, (items) => priceOf(rule, items));
      service.matching = ({ third }) => service.ads.filter((_, index) => third === undefined || index % 3 === third);
      for (const call of earlier) {
        if (call.tool === 'search_ads') await server.call('search_ads', { limit: call.limit });
        else if (call.tool === 'count_ads')
          await server.call('count_ads', call.isSplit ? { split: [0, 1, 2].map(third) } : {});
        else await server.call('gather_ads', { ...all, filters: third(call.third), maxAds: call.maxAds });
      }
      const question = { ...(parts.length > 0 && { split: parts.map(third) }), fresh };
      const before = service.searches.length;
      const estimate = await server.call('gather_ads', { ...question, maxCredits: 0 });
      const sent = service.searches.slice(before);
      expect(sent.length).toBeLessThanOrEqual(1);
      for (const { limit, filters } of sent) expect({ limit, filters }).toEqual({ limit: 1, filters: {} });
      expect(estimate.text.includes('It took one search.')).toBe(sent.length === 1);
      expect(estimate.text).not.toContain('The number of ads is of');
      const { ads: total } = estimate.data.estimate as { ads: number };
      const charged = service.charged;
      const { data } = await server.call('gather_ads', { ...question, ...all });
      expect(data.complete).toBe(true);
      const named = namedCredits(estimate);
      // A page that is kept costs nothing.
      if (named?.isMost === false && cacheSeconds === 0) expect(named.credits).toBe(service.charged - charged);
      else if (named) expect(named.credits).toBeGreaterThanOrEqual(service.charged - charged);
      if (!estimate.text.includes('each may have all')) expect(total).toBe(data.found);
      else expect(total).toBeGreaterThanOrEqual(Number(data.found));
      const again = await server.call('gather_ads', { ...question, fresh: false, maxCredits: 0 });
      expect(again.data).toMatchObject({ estimate: { pages: 0, credits: 0 }, receipt: { calls: 0 } });
      await server.close();
    }),
    { numRuns: 20 },
  );
});

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
  expect(more.text).toContain('How many ads match one part is not known: each may have all 300 that match filters.');
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
  expect(text).toContain('270 ads in 3 pages, for at most about 270 credits.');
});
