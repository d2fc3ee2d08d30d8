import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { ad, createCreditHeaders, respondAsDocumented, respondWithJson } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

/** Responds to a search with ten ads, and charges ten credits. */
const tenAds = respondWithJson(
  { items: Array.from({ length: 10 }, (_, index) => ({ ...ad, id: `ad-${index}` })), cursor: null, hasMore: false },
  { headers: createCreditHeaders(10) },
);

describe('A credit budget for the local library', () => {
  const test = freshServiceTest({ config: { cacheSeconds: 0 } });
  test.beforeEach(({ service }) => {
    service.requests.length = 0;
  });

  test('a call that would exceed the credit budget is rejected with an error that shows the credits spent', async ({
    service,
    start,
  }) => {
    const { call } = await start({ creditBudget: 4 });
    expect((await call('search_ads', { limit: 10 })).isError).toBe(false);
    expect((await call('search_ads', { limit: 20 })).isError).toBe(false);
    const { text, error } = await call('search_ads', { limit: 20, filters: { countries: ['DE'] } });
    expect(error).toEqual({ kind: 'credit_budget', retryable: false });
    expect(text).toContain(
      'Budget of 4 credits: 3 spent; this call is expected to cost 2. With limit 10 it would cost about 1, which fits.',
    );
    expect(text).toContain('AD_LIBRARY_CREDIT_BUDGET');
    expect(text).toContain('Nothing was sent, nothing was charged.');
    expect(service.countPaidRequests()).toBe(2);
    expect((await call('search_ads', { limit: 10 })).isError).toBe(false);
    expect((await call('search_ads', { limit: 10 })).error?.kind).toBe('credit_budget');
  });
});

describe('A credit budget for an external API', () => {
  const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

  test('a budget error does not suggest a smaller limit if the tool has no limit argument', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ creditBudget: 3 });
    upstream.respondWith(respondWithJson({ id: 'x' }, { headers: createCreditHeaders(2) }));
    await call('get_ad', { adId: deriveUuid('x') });
    const { text } = await call('get_ad', { adId: deriveUuid('y') });
    expect(text).toContain('this call is expected to cost 2.');
    expect(text).not.toContain('smaller limit');
  });

  test('free calls do not wait for a paid call that gets no response', async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 5 });
    upstream.respondWith(respondAsDocumented);
    await call('list_collections');
    let hangingPaths = new Set(['/v1/ads/search', '/v1/collections']);
    upstream.respondWith((request, response) => {
      if (!hangingPaths.delete(request.url ?? '')) respondAsDocumented(request, response);
    });
    const caller = new AbortController();
    const hanging = ['search_ads', 'list_collections'].map((tool) =>
      call(tool, {}, { signal: caller.signal }).catch(() => 'left'),
    );
    await upstream.waitForRequests(2);
    hangingPaths = new Set();
    for (const tool of ['whoami', 'list_collections']) expect((await call(tool)).isError).toBe(false);
    caller.abort();
    expect(await Promise.all(hanging)).toEqual(['left', 'left']);
  });

  test('saving an item counts toward the credit budget even if an earlier save was free', async ({
    upstream,
    start,
  }) => {
    const createSaveResponse = (added: boolean) =>
      respondWithJson(
        { itemType: 'ads', itemId: deriveUuid('x'), added },
        { headers: createCreditHeaders(added ? 3 : 0) },
      );
    upstream.respondWith(createSaveResponse(false), createSaveResponse(true));
    const { call } = await start({ creditBudget: 10 });
    const save = (item: string) =>
      call('add_collection_item', { collectionId: deriveUuid('c'), itemType: 'ads', itemId: deriveUuid(item) });
    await save('there');
    const results = await Promise.all(Array.from({ length: 10 }, (_, index) => save(`${index}`)));
    expect(results.filter(({ isError }) => !isError)).toHaveLength(3);
  });

  test('calls with a known price wait until a call with an unknown price has ended', async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 200 });
    upstream.respondWith(tenAds);
    await call('search_ads', { limit: 10 });
    let endHeldCall = () => {};
    upstream.respondWith((request, response, body) => {
      if (request.method === 'POST') return tenAds(request, response, body);
      endHeldCall = () => respondWithJson({ id: 'x' }, { headers: createCreditHeaders(190) })(request, response, body);
    });
    const requestCount = upstream.requests.length;
    const heldCall = call('get_ad', { adId: deriveUuid('x') });
    await upstream.waitForRequests(requestCount + 1);
    const searches = [1, 2, 3].map((page) => call('search_ads', { limit: 10, filters: { page } }));
    // Without the wait, the searches would be sent in this time.
    await delay(200);
    expect(upstream.requests).toHaveLength(requestCount + 1);
    endHeldCall();
    expect((await heldCall).isError).toBe(false);
    expect((await Promise.all(searches)).map(({ error }) => error?.kind)).toEqual(Array(3).fill('credit_budget'));
  });

  test('the error of gather_ads says that a retry may help if other calls have only reserved the missing credits', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ creditBudget: 30 });
    upstream.respondWith(tenAds);
    await call('search_ads', { limit: 10 });
    await call('search_ads', { limit: 10, filters: { page: 2 } });
    let endHeldCall = () => {};
    upstream.respondWith((...exchange) => {
      endHeldCall = () => tenAds(...exchange);
    });
    const requestCount = upstream.requests.length;
    const heldCall = call('search_ads', { limit: 10, filters: { page: 3 } });
    await upstream.waitForRequests(requestCount + 1);
    const { error, text } = await call('gather_ads', { filters: { some: 'ads' }, maxCredits: 10 });
    expect(error).toMatchObject({ kind: 'credit_budget', retryable: true });
    expect(text).not.toContain('restart');
    endHeldCall();
    expect((await heldCall).isError).toBe(false);
    const exhausted = await call('gather_ads', { filters: { some: 'ads' }, maxCredits: 10 });
    expect(exhausted.error).toMatchObject({ kind: 'credit_budget', retryable: false });
  });

  test('a paid call that waits for another paid call times out at its own deadline', async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 5, timeoutMs: 200 });
    upstream.respondWith(() => {});
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, limit) => call('search_ads', { limit: limit + 1 })),
    );
    expect(results.map(({ error }) => error?.kind)).toEqual(Array(10).fill('timeout'));
    // All calls time out together with the first one, so most of them are never sent.
    expect(upstream.requests.filter(({ path }) => path.endsWith('/search')).length).toBeLessThan(4);
  });
});
