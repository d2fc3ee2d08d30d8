import fc from 'fast-check';
import { expect } from 'vitest';
import { createAd, serveAds } from '../../support/ad-service.ts';
import { deriveUuid } from '../../support/derive-uuid.ts';
import { createCreditHeaders, respondWithJson } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();

const cases = fc.record({
  /** The price of each group of ads, in credits. If a group is larger than a page, every page has the same price. */
  credits: fc.integer({ min: 0, max: 5 }),
  group: fc.constantFrom(1, 2, 5, 10, 20, 25, 50, 100, 1000),
  ads: fc.nat(300),
  calls: fc.array(
    fc.record({ maxCredits: fc.integer({ min: 1, max: 120 }), maxAds: fc.integer({ min: 1, max: 400 }) }),
    { minLength: 1, maxLength: 3 },
  ),
});

test('gather_ads never spends more than maxCredits once it knows the price of a page', async ({ upstream, start }) => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ credits, group, ads, calls }) => {
      const server = await start();
      const priceOf = (items: number) => credits * Math.ceil(items / group);
      const service = serveAds(upstream, ads, priceOf);
      for (const [index, call] of calls.entries()) {
        const before = service.chargedCredits;
        const { data, isError } = await server.call('gather_ads', call);
        const spent = service.chargedCredits - before;
        const [first] = index === 0 ? service.searches : [];
        const unknown = first ? Math.max(0, priceOf(Math.min(first.limit, ads)) - 1) : 0;
        expect(spent).toBeLessThanOrEqual(call.maxCredits + unknown);
        if (!isError) expect(data.receipt.charged).toBe(spent);
      }
      await server.close();
    }),
    { numRuns: 25 },
  );
});

test('if the page price rises during a run, gather_ads exceeds maxCredits by at most one price increase', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 2000, (items, { sequenceNumber }) => Math.ceil(items / 10) + sequenceNumber);
  const { data } = await server.call('gather_ads', { maxCredits: 60, maxAds: 2000 });
  expect(data).toMatchObject({ stopped: 'maxCredits', complete: false });
  expect(service.chargedCredits).toBeLessThanOrEqual(61);
});

test('gather_ads requests only the remaining ads after the number of matching ads has risen', async ({
  upstream,
  start,
}) => {
  let now = Date.parse('2026-11-20T10:00:00Z');
  const server = await start({ cacheSeconds: 0 }, { now: () => now });
  // This service charges for the requested number of ads.
  const service = serveAds(upstream, 20, (_, { limit }) => limit);
  const filters = { some: 'ads' };
  await server.call('gather_ads', { filters, maxCredits: 1000 });
  // Two ads are added before the ads are read again.
  now += 3_600_000;
  service.ads = Array.from({ length: 22 }, (_, index) => createAd(index));
  const again = await server.call('gather_ads', { filters, fresh: true, maxCredits: 1000 });
  expect(again.data).toMatchObject({ read: 22, complete: true, receipt: { charged: 22, calls: 2 } });
  // One ad is added while the ads are read.
  service.ads = Array.from({ length: 150 }, (_, index) => createAd(1000 + index));
  service.overrideResponse = ({ cursor }) => {
    if (cursor === '100') service.ads = [...service.ads, createAd(2000)];
    return undefined;
  };
  const grown = await server.call('gather_ads', { filters: { more: 'ads' }, maxCredits: 1000 });
  expect(grown.data).toMatchObject({ read: 151, complete: true, receipt: { charged: 151, calls: 3 } });
});

test('gather_ads uses a cached page even if requesting the page again would exceed the credit limits', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 20, cacheSeconds: 900 });
  const service = serveAds(upstream, 100);
  const page = { items: service.ads, cursor: null, hasMore: false };
  service.interceptRequest = (path) =>
    path.includes('/items') ? respondWithJson(page, { headers: createCreditHeaders(10) }) : undefined;
  const filters = { some: 'ads' };
  await server.call('search_ads', { filters, limit: 100 });
  const items = { collectionId: deriveUuid('c'), itemType: 'ads', limit: 100 };
  await server.call('list_collection_items', items);
  for (const question of [{ filters }, { collectionId: items.collectionId }]) {
    const { data, text } = await server.call('gather_ads', { ...question, maxCredits: 5 });
    expect(data, text).toMatchObject({ read: 100, complete: true, receipt: { charged: 0 } });
  }
});

test('gather_ads stops when the credit budget of the server is used up', async ({ upstream, start }) => {
  const server = await start({ creditBudget: 25 });
  const service = serveAds(upstream, 2000);
  const { data, text } = await server.call('gather_ads', { maxCredits: 1000, maxAds: 2000 });
  expect(data).toMatchObject({ read: 240, stopped: 'budget' });
  expect(service.chargedCredits).toBe(24);
  expect(text).toContain('AD_LIBRARY_CREDIT_BUDGET');
  const nothing = await server.call('gather_ads', { filters: { a: 1 }, maxCredits: 1000 });
  expect(nothing.error).toMatchObject({ kind: 'credit_budget' });
});

test('gather_ads stops when calls whose charge is unknown may have used up maxCredits', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 500);
  service.hasChargeHeaders = false;
  const { data, text } = await server.call('gather_ads', { maxCredits: 30 });
  expect(service.chargedCredits).toBeLessThanOrEqual(30);
  expect(data).toMatchObject({ stopped: 'maxCredits', complete: false, receipt: { charged: null } });
  expect(text).toContain('at least 0 charged for');
});

test('search_ads lists the first thousand ads stored by gather_ads free of charge', async ({ upstream, server }) => {
  const service = serveAds(upstream, 1200);
  await server.call('gather_ads', { maxAds: 1200, maxCredits: 1000 });
  service.searches = [];
  let { data } = await server.call('search_ads', { limit: 100 });
  while (data.cursor !== null) ({ data } = await server.call('search_ads', { limit: 100, cursor: data.cursor }));
  expect(service.searches.map(({ cursor }) => cursor)).toEqual(['1000', '1100']);
});
