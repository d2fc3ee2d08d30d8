import fc from 'fast-check';
import { expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { ad, type Behaviour, creditStatus, json, paid, type Upstream } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { gateOf } from '../support/gate.ts';
import type { TestServer } from '../support/server.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => {
  upstream.credits = json(creditStatus());
});

/** A page that is not full: the service's page size cannot be seen. */
const someAds = (count: number, charged: number): Behaviour => {
  const items = Array.from({ length: count }, (_, index) => ({ ...ad, id: `ad-${index}` }));
  return json({ items, cursor: null, hasMore: false }, { headers: paid(charged) });
};

interface Asked {
  upstream: Upstream;
  server: TestServer;
  args?: object;
  behaviour?: Behaviour;
}

/** Eight different searches at once: how many the service has before it answers, of so many at least, and how all end. */
async function searchAtOnce({ upstream, server, args = {}, behaviour = someAds(7, 1) }: Asked, least: number) {
  const gate = gateOf();
  upstream.does((...request) => void gate.opened.then(() => behaviour(...request)));
  const calls = Array.from({ length: 8 }, (_, number) => server.call('search_ads', { ...args, filters: { number } }));
  await upstream.reached(least);
  // What is not held back overtakes it, there and back.
  await server.call('get_credits');
  await server.call('get_credits');
  const count = upstream.requests.filter(({ path }) => path.endsWith('/search')).length;
  gate.open();
  return { count, kinds: (await Promise.all(calls)).map(({ error }) => error?.kind) };
}

test.for([
  ['without a limit', {}],
  ['with a limit that no answer fills', { limit: 50 }],
] as const)('searches %s go one at a time, and none that fits is refused', async ([_, args], { upstream, start }) => {
  const server = await start({ creditBudget: 9 });
  upstream.does(someAds(7, 1));
  await server.call('search_ads', args);
  const { count, kinds } = await searchAtOnce({ upstream, server, args }, 1);
  expect(count).toBe(1);
  expect(kinds).toEqual(Array(8).fill(undefined));
  expect((await server.call('search_ads', { ...args, filters: { number: 9 } })).error?.kind).toBe('credit_budget');
});

test('pages that turn out to be full do not exceed the budget', async ({ upstream, start }) => {
  const server = await start({ creditBudget: 40 });
  upstream.does(someAds(7, 1));
  await server.call('search_ads');
  await searchAtOnce({ upstream, server, behaviour: someAds(100, 10) }, 1);
  const { thisServer } = (await server.call('get_credits')).data;
  expect(thisServer.charged).toBeLessThanOrEqual(40);
});

test('the items of a collection have the page size of the document', async ({ upstream, start }) => {
  const server = await start({ creditBudget: 9 });
  const itemsOf = (collection: string) =>
    server.call('list_collection_items', { collectionId: uuidOf(collection), itemType: 'ads' });
  upstream.does(someAds(50, 5));
  await itemsOf('a');
  expect((await itemsOf('b')).text).toContain('this call is expected to cost 5.');
});

test('a page that goes on without a limit is reserved for the size that the list began with', async ({
  upstream,
  start,
}) => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 100 }), async (usual, larger) => {
      const service = serveAds(upstream, 500, (came) => came);
      service.usualLimit = usual;
      const server = await start({ creditBudget: larger + 3 * usual });
      await server.call('search_ads', { filters: { other: true }, limit: larger });
      const { data } = await server.call('search_ads');
      let { cursor } = data;
      for (const _ of [2, 3]) {
        const next = await server.call('search_ads', { cursor });
        expect(next.error?.kind).toBeUndefined();
        expect(next.data.receipt.charged).toBe(usual);
        cursor = next.data.cursor;
      }
      expect((await server.call('search_ads', { cursor })).error?.kind).toBe('credit_budget');
    }),
    { numRuns: 10 },
  );
});
