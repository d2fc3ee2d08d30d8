import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { respondAsDocumented } from '../support/faulty-upstream.ts';
import { freshServiceTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';

let clock = Date.now();
/** Each test uses its own API key, so that the tests do not share cached results and spending. */
const test = freshServiceTest({ now: () => clock });
test.beforeEach(({ service }) => {
  service.requests.length = 0;
});

/** Returns the same value with the keys of every object in reverse order. */
const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
};

describe('Cached results of identical tool calls', () => {
  test('two calls whose filters have the same keys in a different order share one cached result', async ({
    upstream,
    start,
  }) => {
    const server = await start({ baseUrl: upstream.baseUrl });
    const keys = fc.string({ minLength: 1 }).filter((key) => !['__proto__', 'limit', 'cursor'].includes(key));
    // The server refuses numbers above `MAX_SAFE_INTEGER`, so replace them.
    const replaceLargeNumber = (_: string, value: unknown) =>
      typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? 0 : value;
    const filterValues = fc
      .jsonValue({ maxDepth: 3 })
      .map((value) => JSON.parse(JSON.stringify(value), replaceLargeNumber));
    const requestedQuestions = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.dictionary(keys, filterValues), async (filters) => {
        upstream.respondWith(respondAsDocumented);
        for (const filterVariant of [filters, reversed(filters), JSON.stringify(filters)])
          expect((await server.call('search_ads', { filters: filterVariant })).isError).toBe(false);
        const question = [JSON.stringify(reversed(filters)), JSON.stringify(filters)].toSorted()[0] ?? '';
        expect(upstream.requests).toHaveLength(requestedQuestions.has(question) ? 0 : 1);
        requestedQuestions.add(question);
      }),
      { numRuns: 50 },
    );
    upstream.respondWith(respondAsDocumented);
    for (const filters of [{ countries: ['DE', 'AT'] }, { countries: ['AT', 'DE'] }])
      await server.call('search_ads', { filters });
    expect(upstream.requests).toHaveLength(2);
  });

  test('the cache serves a call that differs from an earlier call only in its detail level', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    const full = await server.call('search_ads', { limit: '2', detail: 'full' });
    expect(full.data.receipt.charged).toBe(0);
    expect(full.data.items[0]).toHaveProperty('media');
  });

  test('calls of list_collection_items with no limit and with the default limit share one cached result', async ({
    server,
  }) => {
    const [collection] = (await server.call('list_collections')).data.items;
    const listing = { collectionId: collection?.id, itemType: 'ads' };
    const receipts = [];
    for (const args of [listing, { ...listing, limit: 50 }, listing])
      receipts.push((await server.call('list_collection_items', args)).data.receipt);
    expect(receipts).toMatchObject([{ cached: false }, { cached: true }, { cached: true }]);
  });

  test('two calls with different arguments or different API keys never share a cached result', async ({
    service,
    server,
  }) => {
    for (const args of [{ limit: 2 }, { limit: 3 }, { limit: 2, filters: { countries: ['DE'] } }])
      await server.call('search_ads', args);
    await server.call('search_pages', { limit: 2 });
    expect(service.countPaidRequests()).toBe(4);
    const otherServer = await server.connectAs(service.createKey());
    const { data } = await otherServer.call('search_ads', { limit: 2 });
    expect(data.receipt).toMatchObject({ charged: 1, cached: false });
    expect((await otherServer.call('get_credits')).data.thisServer).toMatchObject({ charged: 1, paidCalls: 1 });
  });
});

describe('The result cache', () => {
  test('a cached result shows its age and the current credit balance', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    clock += 180_000;
    await server.call('search_pages', { limit: 2 });
    const cachedResult = await server.call('search_ads', { limit: 2 });
    expect(cachedResult.text).toContain('nothing charged (cached 3 min ago), 9,998 left');
    expect(cachedResult.data.receipt.remaining).toBe(9998);
  });

  test('the cache serves a result until the result expires or a call sets the argument fresh', async ({ server }) => {
    const charge = async (args = {}) => (await server.call('search_ads', { limit: 2, ...args })).data.receipt.charged;
    expect(await charge()).toBe(1);
    clock += 900_000 - 1;
    expect(await charge()).toBe(0);
    clock += 1;
    expect(await charge()).toBe(1);
    clock += 60_000;
    expect(await charge({ fresh: true })).toBe(1);
    expect((await server.call('search_ads', { limit: 2 })).text).toContain('cached just now');
  });

  test('error results are never cached', async ({ service, server }) => {
    for (const _ of [1, 2])
      expect((await server.call('get_ad', { adId: '00000000-0000-4000-8000-000000000000' })).isError).toBe(true);
    expect(service.countPaidRequests()).toBe(2);
  });

  test('the server never caches the results of free calls, and a cache lifetime of 0 seconds turns the cache off', async ({
    service,
    server,
    start,
  }) => {
    const forgetful = await start({ cacheSeconds: 0 });
    for (const _ of [1, 2]) expect((await forgetful.call('search_ads', { limit: 2 })).data.receipt.charged).toBe(1);
    for (const tool of ['whoami', 'get_account', 'get_credits', 'list_collections']) {
      service.requests.length = 0;
      for (const _ of [1, 2]) await server.call(tool);
      expect(service.requests).toHaveLength(2);
    }
  });

  test('saving an ad to a collection removes only the cached list of that collection from the cache', async ({
    service,
    server,
  }) => {
    const items = ({ call }: Pick<TestServer, 'call'>, collectionId: string | undefined) =>
      call('list_collection_items', { collectionId, itemType: 'ads' });
    const [first, second] = (await server.call('list_collections')).data.items;
    const otherServer = await server.connectAs(service.createKey());
    const theirs = (await otherServer.call('list_collections')).data.items[0]?.id;
    const ad = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    const cached = async () => {
      await items(otherServer, theirs);
      await items(server, second?.id);
      await server.call('search_ads', { limit: 1 });
    };
    await items(server, first?.id);
    await cached();
    await server.call('add_collection_item', { collectionId: first?.id.toUpperCase(), itemType: 'ads', itemId: ad });
    service.requests.length = 0;
    expect((await items(server, first?.id)).data.items.map(({ id }) => id)).toEqual([ad]);
    await cached();
    expect(service.countPaidRequests()).toBe(1);
  });
});

describe('get_ad with the argument seen', () => {
  const listed = async (server: TestServer, limit = 1) =>
    (await server.call('search_ads', { limit })).data.items.at(-1)?.id ?? '';

  test('get_ad with seen: true returns an ad from an earlier list at no charge', async ({ service, server }) => {
    const id = await listed(server, 2);
    clock += 40_000;
    const opened = await server.call('get_ad', { adId: id.toUpperCase(), seen: true });
    expect(opened.data).toMatchObject({
      ad: { id },
      seenIn: 'search_ads',
      receipt: { charged: 0, cached: true, remaining: 9999 },
    });
    expect(opened.text).toContain('Copy from search_ads; get_ad without seen may show more.');
    expect(opened.text).toContain('cached 40 s ago');
    expect(service.countPaidRequests()).toBe(1);
  });

  test('get_ad with seen: true says how long ago the list that contained the ad was read', async ({
    service,
    server,
  }) => {
    const adId = await listed(server);
    clock += 60_000;
    await listed(server);
    expect((await server.call('get_ad', { adId, seen: true })).text).toContain('cached 60 s ago');
    clock += 3 * 86_400_000;
    expect((await server.call('get_ad', { adId, seen: true })).text).toContain('cached 3 days ago');
    expect(service.countPaidRequests()).toBe(1);
  });

  test('get_ad requests the ad from the API if the argument seen is missing or the argument fresh is set', async ({
    server,
  }) => {
    const adId = await listed(server);
    const result = await server.call('get_ad', { adId });
    expect(result.data).toMatchObject({ receipt: { charged: 1, cached: false } });
    expect(result.data.seenIn).toBeUndefined();
    expect((await server.call('get_ad', { adId, seen: true, fresh: true })).data.receipt.charged).toBe(1);
  });

  test('get_ad with seen: true refuses an ad that this API key has not received before, and costs nothing', async ({
    service,
    server,
  }) => {
    const adId = await listed(server);
    const otherServer = await server.connectAs(service.createKey());
    const refusal = await otherServer.call('get_ad', { adId, seen: true });
    expect(refusal.error).toMatchObject({ kind: 'invalid_request' });
    expect(refusal.text).toContain('No list has shown this ad');
    expect(refusal.text).toContain('call get_ad again without seen');
    expect(service.countPaidRequests()).toBe(1);
    expect((await otherServer.call('get_ad', { adId })).data.receipt.charged).toBe(1);
    expect((await otherServer.call('get_ad', { adId, seen: true })).data.receipt.charged).toBe(0);
  });
});
