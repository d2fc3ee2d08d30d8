import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { AdService, type Search } from '../support/ad-service.ts';
import { json } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();

describe('a cursor says what it is expected to cost', () => {
  test('on the next page: as much as this one', async ({ server }) => {
    const { text, data } = await server.call('search_ads', { limit: 20 });
    expect(text).toContain(`\n\nNext page: about 2 credits, with cursor:\n${data.cursor}\n`);
    expect(data.nextPage).toEqual({ credits: 2 });
    expect((await server.call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(2);
  });

  test('on the rest of a page that was cut: nothing', async ({ start }) => {
    const { call } = await start({ resultTokens: 1500 });
    const { text, data } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page is free with cursor:\n${data.cursor}\n`);
    expect(data.nextPage).toEqual({ credits: 0 });
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(0);
  });

  test('on the rest of a page that is not cached: the page', async ({ start }) => {
    const { call } = await start({ resultTokens: 1500, cacheSeconds: 0 });
    const { text, data } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page costs about 3 credits with cursor:\n${data.cursor}\n`);
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(3);
  });

  test('on the items of a collection', async ({ server }) => {
    const [collection] = (await server.call('list_collections')).data.items;
    const items = { collectionId: collection?.id, itemType: 'ads' };
    for (const { id } of (await server.call('search_ads', { limit: 2 })).data.items)
      await server.call('add_collection_item', { ...items, itemId: id });
    const { text } = await server.call('list_collection_items', { ...items, limit: 1 });
    expect(text).toContain('\n\nNext page: about 1 credit, with cursor:\n');
  });
});

upstreamTest('a cursor says nothing of its cost while that is unknown', async ({ upstream, server }) => {
  upstream.does(json({ items: [{ id: uuidOf('a') }], cursor: 'more', hasMore: true }));
  const { text, data } = await server.call('search_ads', { limit: 1 });
  expect(text).toContain('\n\nMore with cursor:\n');
  expect(data).not.toHaveProperty('nextPage');
});

upstreamTest('the last page has no price after it', async ({ upstream, server }) => {
  upstream.does(
    json(
      { items: [{ id: uuidOf('a') }], cursor: null, hasMore: false },
      { headers: { 'x-service-credits-charged': '1' } },
    ),
  );
  expect((await server.call('search_ads', { limit: 1 })).data).not.toHaveProperty('nextPage');
});

/** Credits for each group of items begun; 0 credits for a free account. */
const aPrice = fc.record({
  credits: fc.constantFrom(0, 1, 3),
  perItems: fc.constantFrom(1, 5, 10, 25, 1000),
  isByAsked: fc.boolean(),
});
const aCall = fc.record({
  tool: fc.constantFrom('search_ads', 'count_ads', 'gather_ads'),
  limit: fc.option(fc.integer({ min: 1, max: 120 }), { nil: undefined }),
});

const asked = (limit: number): Search => ({ number: 1, limit, cursor: undefined, filters: {} });

test('a free account reads free everywhere', async ({ service, start }) => {
  const { call } = await start({ apiKey: service.createKey({ unmetered: true }) });
  const estimate = await call('gather_ads', { maxCredits: 0 });
  expect(estimate.text).toMatch(/Estimate: \d+ ads in \d+ pages, free\./);
  expect(estimate.data.estimate).toMatchObject({ credits: 0 });
  const { text, data } = await call('search_ads');
  expect(text).toContain('Next page: free, with cursor:');
  expect(data.nextPage).toEqual({ credits: 0 });
  expect((await call('get_credits')).text).toContain('prices seen: search_ads free');
});

describe('whatever was read before, at whatever price', () => {
  upstreamTest(
    'no gathering costs more than the most of its estimate, even where calls have a fee or a least price',
    async ({ upstream, start }) => {
      const price = fc.record({ fee: fc.constantFrom(0, 0, 2), least: fc.integer({ min: 1, max: 4 }) });
      const groups = fc.record({ credits: fc.constantFrom(1, 2), perItems: fc.integer({ min: 5, max: 30 }) });
      const limits = fc.array(fc.integer({ min: 2, max: 60 }), { minLength: 1, maxLength: 2 });
      await fc.assert(
        fc.asyncProperty(price, groups, limits, async ({ fee, least }, { credits, perItems }, earlier) => {
          const service = new AdService(400);
          service.price = (came) => Math.max(least, fee + Math.ceil(came / perItems) * credits);
          upstream.does(service.behaviour);
          const server = await start({});
          for (const limit of earlier) await server.call('search_ads', { filters: { other: true }, limit });
          const estimated = await server.call('gather_ads', { maxCredits: 0 });
          const { atMost = Infinity } = estimated.data.estimate as { atMost?: number };
          const gathered = await server.call('gather_ads', { maxCredits: 1e6 });
          expect(gathered.data.receipt.charged).toBeLessThanOrEqual(atMost);
          await server.close();
        }),
        { numRuns: 40, examples: [[{ fee: 0, least: 2 }, { credits: 1, perItems: 20 }, [7, 33]]] },
      );
    },
    120_000,
  );

  upstreamTest(
    'what a next page is expected to cost is what it costs, and an estimate is right or the most it can be',
    async ({ upstream, start }) => {
      await fc.assert(
        fc.asyncProperty(
          aPrice,
          fc.integer({ min: 15, max: 60 }),
          fc.array(aCall, { maxLength: 5 }),
          async ({ credits, perItems, isByAsked }, usual, earlier) => {
            const service = new AdService(230);
            service.usualLimit = usual;
            service.price = (came, { limit }) =>
              came === 0 ? 0 : Math.ceil((isByAsked ? limit : came) / perItems) * credits;
            upstream.does(service.behaviour);
            const server = await start({ creditBudget: 1e6 });
            for (const { tool, limit } of earlier) {
              const sized = { ...(limit && { limit }) };
              const args = { search_ads: sized, count_ads: {}, gather_ads: { maxAds: limit ?? 200, maxCredits: 1e5 } };
              expect((await server.call(tool, args[tool as keyof typeof args])).isError).toBe(false);
            }
            const { text, data } = await server.call('search_ads', { filters: { other: true } });
            expect(data.nextPage).toEqual({ credits: data.receipt.charged });
            expect(text).not.toContain('about 0');
            if (credits === 0) expect(text).toContain('Next page: free, with cursor');
            const next = await server.call('search_ads', { filters: { other: true }, cursor: data.cursor });
            expect(data.nextPage).toEqual({ credits: next.data.receipt.charged });

            const estimated = await server.call('gather_ads', { filters: { third: true }, maxCredits: 0 });
            const { estimate } = estimated.data as unknown as { estimate: { credits: number | null } };
            const gathered = await server.call('gather_ads', { filters: { third: true }, maxCredits: 1e6 });
            const { charged } = gathered.data.receipt;
            const most = Number(/at most about ([\d,]+) credit/.exec(estimated.text)?.[1]?.replaceAll(',', ''));
            if (estimate.credits === null) expect(most).toBeGreaterThanOrEqual(charged);
            // The last page is asked for like the others, and may cost as much.
            else expect(charged - estimate.credits).toBeLessThanOrEqual(isByAsked ? service.price(100, asked(100)) : 0);
            if (estimate.credits !== null) expect(estimate.credits).toBeLessThanOrEqual(charged);
            if (credits === 0) expect(estimated.text).toContain(' free');
            await server.close();
          },
        ),
        { numRuns: 25 },
      );
    },
    120_000,
  );
});
