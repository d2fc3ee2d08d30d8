import fc from 'fast-check';
import { expect } from 'vitest';
import { type Behaviour, documented, paid } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { gateOf } from '../support/gate.ts';
import type { TestServer } from '../support/server.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } });

/** Answers only once it is let. */
function held(): { behaviour: Behaviour; answer: () => void } {
  const gate = gateOf();
  const behaviour: Behaviour = (_, response) =>
    void gate.opened.then(() => response.writeHead(200, paid(4, 60)).end('{"items":[],"cursor":null,"hasMore":false}'));
  return { behaviour, answer: gate.open };
}

/** A round trip to the server: what was sent before has arrived there. */
const arrived = (server: TestServer) => server.client.ping();

test('equal callers who cancel do not affect the others, and one of those who stay pays', async ({
  upstream,
  server,
}) => {
  // Each run has a question of its own: what nobody waits for any more may still be under way.
  let limit = 1000;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { minLength: 2, maxLength: 8 }), async (leaves) => {
      limit++;
      const { behaviour, answer } = held();
      upstream.does(behaviour);
      const callers = leaves.map(() => new AbortController());
      const calls = callers.map(({ signal }) => server.call('search_ads', { limit }, { signal }));
      const settled = Promise.allSettled(calls);
      await upstream.reached(1);
      for (const [index, leave] of leaves.entries()) if (leave) callers[index]?.abort();
      await arrived(server);
      const stay = leaves.filter((leave) => !leave).length;
      answer();
      const results = await settled;
      expect(results.map(({ status }) => status)).toEqual(leaves.map((leave) => (leave ? 'rejected' : 'fulfilled')));
      const receipts = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.data.receipt] : []));
      const charges = receipts.map((receipt) => receipt.charged);
      expect(charges.reduce((sum, charge) => sum + charge, 0)).toBe(stay === 0 ? 0 : 4);
      expect(charges.filter((charge) => charge > 0)).toHaveLength(stay === 0 ? 0 : 1);
      expect(upstream.requests).toHaveLength(1);
    }),
    { numRuns: 60 },
  );
});

test('a write does not disturb other calls in flight', async ({ upstream, server }) => {
  const { behaviour, answer } = held();
  upstream.does(behaviour, documented);
  const calls = [server.call('search_ads', { limit: 6 })];
  await upstream.reached(1);
  await server.call('add_collection_item', { collectionId: uuidOf('c'), itemType: 'ads', itemId: uuidOf('x') });
  calls.push(server.call('search_ads', { limit: 6 }));
  await arrived(server);
  answer();
  for (const { isError } of await Promise.all(calls)) expect(isError).toBe(false);
  expect(upstream.requests.map(({ path }) => path)).toEqual(['/v1/ads/search', `/v1/collections/${uuidOf('c')}/items`]);
});

test('a caller who comes after all others cancelled joins the call in flight and pays once', async ({
  upstream,
  server,
}) => {
  const { behaviour, answer } = held();
  upstream.does(behaviour, documented);
  const first = new AbortController();
  const call = server.call('search_ads', { limit: 8 }, { signal: first.signal }).catch(() => 'left');
  await upstream.reached(1);
  first.abort();
  expect(await call).toBe('left');
  const second = server.call('search_ads', { limit: 8 });
  await arrived(server);
  answer();
  expect((await second).data).toMatchObject({ receipt: { charged: 4, cached: false } });
  expect(upstream.requests).toHaveLength(1);
});

test('equal calls at once share an error', async ({ upstream, server }) => {
  upstream.does((_, response) => response.socket?.resetAndDestroy());
  const results = await Promise.all([1, 2, 3].map(() => server.call('search_ads', { limit: 9 })));
  expect(results.map(({ error }) => error?.kind)).toEqual(['network', 'network', 'network']);
  expect(upstream.requests).toHaveLength(1);
});

test('a hundred calls at once cause no leak warning', async ({ upstream, server }) => {
  const warnings: Error[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  upstream.does(documented);
  await Promise.all(Array.from({ length: 100 }, (_, limit) => server.call('search_ads', { limit: limit + 1 })));
  process.off('warning', hear);
  expect(warnings).toEqual([]);
});

test('saving twice at once sends two requests', async ({ upstream, server }) => {
  upstream.does(documented);
  const saving = { collectionId: uuidOf('c'), itemType: 'ads', itemId: uuidOf('x') };
  await Promise.all([server.call('add_collection_item', saving), server.call('add_collection_item', saving)]);
  expect(upstream.requests).toHaveLength(2);
});

test('a call does not fail by what another equal call may spend', async ({ upstream, server }) => {
  upstream.does(documented);
  await server.call('count_ads', { filters: { query: 'price' } });
  const count = (maxCredits: number) => server.call('count_ads', { filters: { query: 'tea' }, maxCredits });
  const [little, ...enough] = await Promise.all([0.5, 50, 50].map(count));
  expect(little?.error?.kind).toBe('credit_budget');
  expect(enough.map(({ isError }) => isError)).toEqual([false, false]);
  expect(upstream.requests).toHaveLength(2);
});

test('a list requested after a save does not join one that was in flight before it', async ({ upstream, server }) => {
  const gate = gateOf();
  const items = (ids: string[]) =>
    JSON.stringify({
      collection: { id: 'c' },
      itemType: 'ads',
      items: ids.map((id) => ({ id })),
      cursor: null,
      hasMore: false,
    });
  upstream.does(
    (_, response) => void gate.opened.then(() => response.writeHead(200, paid(1)).end(items([]))),
    documented,
    (_, response) => void response.writeHead(200, paid(1)).end(items(['saved'])),
  );
  const listing = { collectionId: uuidOf('c'), itemType: 'ads' };
  const before = server.call('list_collection_items', listing);
  await upstream.reached(1);
  await server.call('add_collection_item', { ...listing, itemId: uuidOf('saved') });
  const after = await server.call('list_collection_items', listing);
  gate.open();
  expect((await before).data.items).toEqual([]);
  expect(after.data.items).toMatchObject([{ id: 'saved' }]);
});
