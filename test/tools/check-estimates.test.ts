import fc from 'fast-check';
import { expect } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';
import { computeCharge, priceRules } from '../support/price-rules.ts';
import type { TestServer } from '../support/server.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
const libraryTest = freshServiceTest({ config: { cacheSeconds: 0 } });

interface Estimate {
  pages: number | null;
  credits: number | null;
  atLeast: number;
  atMost?: number;
}

/** Requests the estimate of `check_watches`, then checks all watches with a very high `maxCredits`. Returns both. */
async function estimateAndCheck(server: TestServer) {
  const { data, text } = await server.call('check_watches', { maxCredits: 0 });
  const checkResult = await server.call('check_watches', { maxCredits: 100_000, fresh: true });
  // If all watches stop before their first page, the result is an error without a receipt.
  const { charged } = checkResult.data.receipt ?? { charged: 0 };
  return { estimate: data.estimate as Estimate, text, charged };
}

test('the cost estimate of check_watches takes the maxCredits of each watch (a saved search) into account', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = new AdService(1000);
  service.priceSearch = (items) => items / 10;
  upstream.respondWith(service.respond);
  for (const limit of [30, 100]) await server.call('search_ads', { limit });
  await server.call('watch_ads', { name: 'credits', filters: { q: 'a' }, maxCredits: 5 });
  await server.call('watch_ads', { name: 'ads', filters: { q: 'b' }, maxAds: 30, maxCredits: 100 });
  const unknown = await server.call('check_watches', { maxCredits: 0 });
  expect(unknown.data.estimate).toEqual({ pages: null, credits: null, atLeast: 0, atMost: 8 });
  expect(unknown.text).toContain('how many ads match is unknown for some watches; at most 8 credits.');
  const first = await estimateAndCheck(server);
  expect(first.charged).toBe(8);
  clock += 7 * 86_400_000;
  const second = await estimateAndCheck(server);
  expect(second.estimate).toEqual({ pages: 20, credits: 8, atLeast: 8, atMost: 8 });
  expect(second.text).toContain('2,000 ads in 20 pages, as last counted; 8 credits.');
  expect(second.charged).toBe(8);
});

test('the cost estimate of check_watches counts the ads of two watches with the same question once', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  upstream.respondWith(new AdService(30).respond);
  for (const name of ['first', 'second'])
    await server.call('watch_ads', { name, filters: { q: 'a' }, maxCredits: 100 });
  await estimateAndCheck(server);
  clock += 7 * 86_400_000;
  const { text } = await estimateAndCheck(server);
  expect(text).toContain('Estimate: 30 ads in 1 page, as last counted;');
  expect(text).toContain('A check reads stored ads again, because');
});

test('the lowest price of check_watches takes maxAds of each watch into account', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = new AdService(1000);
  service.selectAds = ({ q, part }) =>
    q === 'few' ? service.ads.slice(0, 50) : part === 1 ? service.ads.slice(0, 100) : service.ads.slice(100);
  upstream.respondWith(service.respond);
  for (const limit of [1, 10, 100]) await server.call('search_ads', { limit });
  const split = [{ part: 1 }, { part: 2 }];
  await server.call('watch_ads', { name: 'limited', filters: { q: 'many' }, maxAds: 30, maxCredits: 250 });
  await server.call('watch_ads', { name: 'split', filters: { q: 'many' }, split, maxAds: 130, maxCredits: 250 });
  await server.call('watch_ads', { name: 'complete', filters: { q: 'few' }, maxCredits: 250 });
  await estimateAndCheck(server);
  clock += 7 * 86_400_000;
  const { estimate, charged } = await estimateAndCheck(server);
  expect(charged).toBe(21);
  expect(estimate.atLeast).toBe(21);
});

test('the estimate of check_watches leaves out the ads that an unfinished check has read', async ({
  upstream,
  start,
}) => {
  const server = await start({});
  const service = new AdService(300);
  upstream.respondWith(service.respond);
  for (const limit of [1, 10, 100]) await server.call('search_ads', { limit });
  await server.call('watch_ads', { name: 'shoes', filters: { q: 'shoe' }, maxCredits: 25 });
  expect((await server.call('check_watches', { maxCredits: 100 })).data.receipt.charged).toBe(25);
  const { data, text } = await server.call('check_watches', { maxCredits: 0 });
  expect(data.estimate).toEqual({ pages: 1, credits: null, atLeast: 5, atMost: 25 });
  expect(text).toContain('Estimate: 50 of 300 ads in 1 page, as last counted; between 5 and 25 credits.');
  expect(text).not.toContain('reads them again');
  expect((await server.call('check_watches', { maxCredits: 100 })).data.receipt.charged).toBe(5);
});

const watchArbitrary = fc.record({
  question: fc.constantFrom('a', 'b', 'c'),
  isSplit: fc.boolean(),
  maxCredits: fc.integer({ min: 1, max: 60 }),
  maxAds: fc.option(fc.integer({ min: 1, max: 300 }), { nil: undefined }),
});

test('check_watches never costs more than its estimate announced', async ({ upstream, start }) => {
  const cases = fc.record({
    price: priceRules,
    watches: fc.array(watchArbitrary, { minLength: 1, maxLength: 4 }),
    seenLimits: fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 3 }),
    weeks: fc.array(fc.integer({ min: 0, max: 250 }), { minLength: 2, maxLength: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ price, watches, seenLimits, weeks }) => {
      let clock = Date.parse('2026-11-16T09:00:00Z');
      const server = await start({}, { now: () => clock++ });
      const service = new AdService(weeks[0] ?? 0);
      service.priceSearch = (came, { limit }) => computeCharge(price, came, limit);
      upstream.respondWith(service.respond);
      for (const limit of seenLimits) await server.call('search_ads', { limit, filters: { q: 'other' } });
      for (const [index, { question, isSplit, ...limits }] of watches.entries()) {
        const filters = { q: question };
        const split = isSplit ? { split: [{ part: 1 }, { part: 2 }] } : {};
        await server.call('watch_ads', { name: `${index}`, filters, ...split, ...limits });
      }
      for (const ads of weeks) {
        service.ads = new AdService(ads).ads;
        const before = service.chargedCredits;
        const { estimate } = await estimateAndCheck(server);
        expect(service.chargedCredits - before).toBeLessThanOrEqual(estimate.atMost ?? Infinity);
        expect(estimate.atLeast).toBeLessThanOrEqual(estimate.atMost ?? Infinity);
        if (estimate.credits !== null)
          expect(estimate).toMatchObject({ atLeast: estimate.credits, atMost: estimate.credits });
        clock += 7 * 86_400_000;
      }
      await server.close();
    }),
    { numRuns: 12 },
  );
}, 180_000);

libraryTest(
  'check_watches with the local library never costs more than estimated, with metered and with unmetered API keys',
  async ({ service, start }) => {
    for (const unmetered of [false, true]) {
      const server = await start({ apiKey: service.createKey({ unmetered }) });
      await server.call('search_ads', { limit: 100 });
      for (const [name, limits] of Object.entries({
        all: { maxCredits: 500 },
        credits: { maxCredits: 3 },
        ads: { maxCredits: 500, maxAds: 25 },
      }))
        await server.call('watch_ads', {
          name,
          filters: { countries: ['DE'], query: name === 'all' ? '' : 'a' },
          ...limits,
        });
      for (const _ of [1, 2]) {
        const { estimate, charged } = await estimateAndCheck(server);
        expect(estimate.atMost).toBeDefined();
        expect(charged).toBeLessThanOrEqual(estimate.atMost ?? 0);
        if (unmetered) expect(estimate.atMost).toBe(0);
      }
    }
  },
);
