import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import {
  ad,
  type Behaviour,
  createCreditHeaders,
  respondAsDocumented,
  respondWithJson,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createGate } from '../support/gate.ts';
import type { TestServer } from '../support/server.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const opening = { adId: ad.id };
const listing = { collectionId: deriveUuid('c'), itemType: 'ads' };
const saving = { ...listing, itemId: deriveUuid('saved') };

/** Delays the response to the next request until the returned function is called. Later requests are not delayed. */
function holdNextAnswer(upstream: Upstream, answer: Behaviour = respondAsDocumented) {
  const gate = createGate();
  upstream.respondWith(
    (request, response) => void gate.opened.then(() => answer(request, response)),
    respondAsDocumented,
  );
  return gate.open;
}

/** Makes a call and cancels it as soon as the API has received the request. */
async function callAndCancel({ call }: TestServer, upstream: Upstream, name: string, args: Record<string, unknown>) {
  const caller = new AbortController();
  const cancelledCall = call(name, args, { signal: caller.signal }).catch(() => 'left');
  await upstream.waitForRequests(1);
  caller.abort();
  expect(await cancelledCall).toBe('left');
}

/** Pings the server. When the ping returns, the server has received all messages sent before it. */
const waitForArrival = (server: TestServer) => server.client.ping();

describe('Concurrent identical calls', () => {
  test('concurrent identical calls share one API request and one charge', async ({ upstream, start }) => {
    const server = await start({ cacheSeconds: 0 });
    // Use a different call in each run, because a cancelled call of an earlier run may still be running.
    let limit = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 2, maxLength: 8 }), async (leaves) => {
        limit++;
        const answer = holdNextAnswer(
          upstream,
          respondWithJson({ items: [], cursor: null, hasMore: false }, { headers: createCreditHeaders(4) }),
        );
        const callers = leaves.map(() => new AbortController());
        const calls = callers.map(({ signal }) => server.call('search_ads', { limit }, { signal }));
        const settled = Promise.allSettled(calls);
        await upstream.waitForRequests(1);
        for (const [index, leaving] of leaves.entries()) if (leaving) callers[index]?.abort();
        await waitForArrival(server);
        answer();
        const results = await settled;
        expect(results.map(({ status }) => status === 'rejected')).toEqual(leaves);
        const receipts = results.flatMap((result) =>
          result.status === 'fulfilled' ? [result.value.data.receipt] : [],
        );
        const charges = receipts.map(({ charged }) => charged).filter((charged) => charged > 0);
        expect(charges).toEqual(receipts.length === 0 ? [] : [4]);
        const texts = results.map((result) => (result.status === 'fulfilled' ? result.value.text : ''));
        const shared = texts.filter((text) => text.includes('shared with an identical call'));
        expect(shared).toHaveLength(Math.max(0, receipts.length - 1));
        expect(upstream.requests).toHaveLength(1);
        await expect
          .poll(async () => (await server.call('get_credits')).data.thisServer)
          .toMatchObject({ charged: 4 * limit, paidCalls: limit });
      }),
      { numRuns: 20 },
    );
  });

  test('concurrent identical calls all get the same error if their shared API request fails', async ({
    upstream,
    server,
  }) => {
    upstream.respondWith((_, response) => response.socket?.resetAndDestroy());
    const results = await Promise.all([1, 2, 3].map(() => server.call('search_ads', { limit: 9 })));
    expect(results.map(({ error }) => error?.kind)).toEqual(['network', 'network', 'network']);
    expect(upstream.requests).toHaveLength(1);
  });

  test('if an API request that several calls share fails but is charged, the charge is counted only once', async ({
    upstream,
    start,
  }) => {
    const { call, logLines } = await start();
    upstream.respondWith(respondWithJson({}, { status: 500, headers: createCreditHeaders(3) }), respondAsDocumented);
    const results = await Promise.all([1, 2, 3].map(() => call('search_ads', { limit: 11 })));
    expect(upstream.requests).toHaveLength(1);
    const loggedCharges = logLines.flatMap((line) => /charged=(\d+)/.exec(line)?.[1] ?? []);
    expect(loggedCharges).toEqual(['3']);
    const charges = results.map(({ text }) => /The service says it charged 3 credits for (.*)\./.exec(text)?.[1]);
    const sharedCharge = 'the request that this call shared with an identical call';
    expect(charges.toSorted()).toEqual([sharedCharge, sharedCharge, 'this call']);
    expect((await call('get_credits')).data.thisServer).toMatchObject({ charged: 3 });
  });

  test('if two identical calls have different values of maxCredits, only the call with a high enough limit succeeds', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ cacheSeconds: 0 });
    upstream.respondWith(respondAsDocumented);
    await call('count_ads', { filters: { query: 'price' } });
    const count = (maxCredits: number) => call('count_ads', { filters: { query: 'tea' }, maxCredits });
    const [little, ...enough] = await Promise.all([0.5, 50, 50].map(count));
    expect(little?.error?.kind).toBe('credit_budget');
    expect(enough.map(({ isError }) => isError)).toEqual([false, false]);
    expect(upstream.requests.filter(({ path }) => path.endsWith('/search'))).toHaveLength(2);
  });

  test('identical calls of add_collection_item that run at the same time are all sent to the API', async ({
    upstream,
    server,
  }) => {
    const answer = holdNextAnswer(upstream);
    const search = () => server.call('search_ads', { limit: 6 });
    const reads = [search()];
    await upstream.waitForRequests(1);
    await Promise.all([1, 2].map(() => server.call('add_collection_item', saving)));
    reads.push(search());
    await waitForArrival(server);
    answer();
    for (const { isError } of await Promise.all(reads)) expect(isError).toBe(false);
    expect(upstream.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST']);
  });
});

test.for([true, false])(
  'a collection list that was requested before an item was saved is not reused after the save (read while pending: %s)',
  async (inBetween, { upstream, server }) => {
    const items = (ids: string[]) =>
      respondWithJson({
        collection: { id: 'c' },
        itemType: 'ads',
        items: ids.map((id) => ({ id })),
        cursor: null,
        hasMore: false,
      });
    const gate = createGate();
    const empty: Behaviour = (...exchange) => void gate.opened.then(() => items([])(...exchange));
    upstream.respondWith(empty, respondAsDocumented, items(['saved']));
    const list = async () => (await server.call('list_collection_items', listing)).data.items.map(({ id }) => id);
    const before = list();
    await upstream.waitForRequests(1);
    await server.call('add_collection_item', saving);
    if (inBetween) expect(await list()).toEqual(['saved']);
    gate.open();
    expect(await before).toEqual([]);
    expect(await list()).toEqual(['saved']);
    expect(upstream.requests).toHaveLength(3);
  },
);

test('a hundred concurrent calls cause no Node.js warning about leaking event listeners', async ({
  upstream,
  server,
}) => {
  const warnings: Error[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  upstream.respondWith(respondAsDocumented);
  await Promise.all(Array.from({ length: 100 }, (_, limit) => server.call('search_ads', { limit: limit + 1 })));
  process.off('warning', hear);
  expect(warnings).toEqual([]);
});

describe('Cancelled calls', () => {
  test.for([true, false])(
    'a cancelled paid call keeps running, and identical calls reuse its result (identical call sent meanwhile: %s)',
    async (isJoined, { upstream, server }) => {
      const answer = holdNextAnswer(upstream);
      for (let caller = 0; caller < 10; caller++) await callAndCancel(server, upstream, 'get_ad', opening);
      const joining = isJoined ? server.call('get_ad', opening) : undefined;
      await waitForArrival(server);
      answer();
      if (joining) expect((await joining).data).toMatchObject({ receipt: { charged: 1, cached: false } });
      await server.call('whoami');
      expect((await server.call('get_ad', opening)).data).toMatchObject({ receipt: { charged: 0, cached: true } });
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(1);
      expect((await server.call('get_credits')).data.thisServer).toMatchObject({ charged: 1 });
    },
  );

  test('the server aborts a free API request when the client cancels the call', async ({ upstream, server }) => {
    holdNextAnswer(upstream);
    await callAndCancel(server, upstream, 'whoami', {});
    expect(await upstream.requests[0]?.waitForAbort()).toBe(true);
  });

  test('the server finishes a write to the API after the client cancels the call', async ({ upstream, server }) => {
    const answer = holdNextAnswer(upstream);
    await callAndCancel(server, upstream, 'add_collection_item', saving);
    await server.call('whoami');
    expect(upstream.requests[0]?.aborted).toBe(false);
    answer();
    await server.call('whoami');
    expect(upstream.requests[0]?.aborted).toBe(false);
  });

  test('a paid call that the client cancels while it waits for a free slot is never sent to the API', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ creditBudget: 50 });
    upstream.credits = respondAsDocumented;
    const answer = holdNextAnswer(upstream);
    const first = call('get_ad', opening);
    await upstream.waitForRequests(1);
    const caller = new AbortController();
    const waiting = call('search_ads', {}, { signal: caller.signal }).catch(() => 'left');
    await call('get_credits');
    caller.abort();
    expect(await waiting).toBe('left');
    answer();
    expect((await first).isError).toBe(false);
    await call('get_credits');
    expect(upstream.requests.filter(({ path }) => path.endsWith('/search'))).toEqual([]);
  });

  test('a cancelled paid call occupies its concurrency slot until its API request ends', async ({
    upstream,
    server: { call },
  }) => {
    upstream.respondWith(() => {});
    const callers = Array.from({ length: 300 }, () => new AbortController());
    const results = callers.map(({ signal }, limit) =>
      call('search_ads', { limit: limit + 1 }, { signal }).catch(() => 'left'),
    );
    await upstream.waitForRequests(256);
    for (const caller of callers) caller.abort();
    await Promise.all(results);
    const { error } = await call('search_ads', { limit: 1000 });
    expect(error).toMatchObject({ kind: 'busy', retryable: true });
    expect(upstream.requests).toHaveLength(256);
  });
});

test('the log shows the price of a paid call that the server aborts at shutdown', async ({ upstream, server }) => {
  upstream.respondWith(respondAsDocumented, () => {});
  await server.call('get_ad', opening);
  const abortedCall = server.call('get_ad', { ...opening, fresh: true });
  await upstream.waitForRequests(2);
  await server.stopApp();
  const line = server.logLines.find((logged) => logged.includes('before the cost of a paid call was stored'));
  expect(line).toContain('operation="getAd"');
  expect(line).toContain('credits=1');
  expect((await abortedCall).text).toContain('The call was cancelled.');
  expect(await upstream.requests[1]?.waitForAbort()).toBe(true);
});
