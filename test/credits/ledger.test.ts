import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import {
  ad,
  type Behaviour,
  createCreditHeaders,
  createCreditStatus,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => {
  upstream.credits = respondWithJson(createCreditStatus());
});

/** Responds with a page of `count` ads at a price of `charged` credits. */
const createListing = (count: number, charged: number, hasMore = false) => {
  const items = Array.from({ length: count }, (_, index) => ({ ...ad, id: `ad-${index}` }));
  return respondWithJson(
    { items, cursor: hasMore ? 'next' : null, hasMore },
    { headers: createCreditHeaders(charged) },
  );
};

describe('The spending shown by get_credits', () => {
  test('get_credits shows the credits spent by this server next to the numbers of the account', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ cacheSeconds: 900 });
    for (const [items, price] of [
      [10, 3],
      [50, 7],
      [20, 4],
    ] as const) {
      upstream.respondWith(createListing(items, price));
      for (const _ of [1, 2]) await call('search_ads', { limit: items });
    }
    const { data, text } = await call('get_credits');
    const prices = {
      search_ads: [
        { items: 10, charged: 3 },
        { items: 20, charged: 4 },
        { items: 50, charged: 7 },
      ],
    };
    const thisServer = { charged: 14, paidCalls: 3, prices };
    expect(data).toMatchObject({ credits: 90, hourlyLeft: 399, thisServer });
    expect(text).toContain('hourly: 1 of 400 used, 399 left');
    expect(text).toContain('14 charged in 3 paid calls');
    expect(text).toContain('prices seen: search_ads 3 for 10 items, 4 for 20 items, 7 for 50 items');
  });

  test('a cached result shows the negative balance of an overdrawn account', async ({ upstream, start }) => {
    const { call } = await start({ cacheSeconds: 900 });
    const page = { items: [ad], cursor: null, hasMore: false };
    for (const [limit, balance] of [
      [1, 9],
      [2, -3.5],
    ] as const) {
      upstream.respondWith(respondWithJson(page, { headers: createCreditHeaders(10, balance) }));
      await call('search_ads', { limit });
    }
    const { data, text } = await call('search_ads', { limit: 1 });
    expect(data.receipt).toMatchObject({ cached: true, remaining: -3.5 });
    expect(text).toContain(', -3.5 left');
  });

  test('get_credits shows zero spending and no prices before the first paid call', async ({ server }) => {
    const { data, text } = await server.call('get_credits');
    expect(data.thisServer).toEqual({ charged: 0, paidCalls: 0, prices: {} });
    expect(text).toContain('prices are unknown until the first paid call');
  });

  test.for<[string, Behaviour, Record<string, unknown>]>([
    [
      'has an unexpected shape',
      respondWithJson({ items: 'none' }, { headers: createCreditHeaders(2) }),
      { kind: 'unexpected_response' },
    ],
    [
      'is a 503 and is not retried',
      respondWithJson({}, { status: 503, headers: createCreditHeaders(2) }),
      { retryable: false },
    ],
    [
      'ends in the middle of the body',
      (_, response) => {
        response
          .writeHead(200, { ...createCreditHeaders(2), 'x-service-request-id': 'req-1', 'content-length': '99' })
          .write('{');
        setImmediate(() => response.socket?.destroy());
      },
      { kind: 'network', status: 200 },
    ],
  ])(
    'get_credits includes the charge of a failed call if the API response %s',
    async ([_, fails, expected], { upstream, server }) => {
      upstream.respondWith(fails, createListing(1, 1));
      const { text, error } = await server.call('search_ads');
      expect(upstream.requests).toHaveLength(1);
      expect(error).toMatchObject({ ...expected, requestId: 'req-1' });
      expect(text).toMatch(/The service says it charged 2 credits for this call\..*Request id: req-1/s);
      expect(text).toContain('may be charged again');
      expect((await server.call('get_credits')).data.thisServer).toMatchObject({ charged: 2 });
    },
  );

  test('get_credits counts no charge for calls that the API rejects', async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 3 });
    const readSpent = async () => (await call('get_credits')).data.thisServer;
    upstream.respondWith(createListing(0, 0), respondWithError(422), createListing(0, 3));
    await call('search_ads', { limit: 10 });
    expect((await call('search_ads', { limit: 10 })).error?.kind).toBe('invalid_request');
    expect(await readSpent()).toMatchObject({ charged: 0 });
    expect((await call('search_ads', { limit: 10 })).isError).toBe(false);
    expect(await readSpent()).toMatchObject({ charged: 3 });
  });
});

describe('Expected prices', () => {
  test('the server remembers the highest known price even after calls with many other page sizes', async ({
    upstream,
    start,
  }) => {
    const { call } = await start({ creditBudget: 138 });
    for (let items = 40; items >= 1; items--) {
      upstream.respondWith(createListing(items, items === 40 ? 50 : 1));
      expect((await call('search_ads', { limit: items })).isError).toBe(false);
    }
    expect((await call('search_ads', { limit: 40, filters: {} })).text).toContain(
      '89 spent; this call is expected to cost 50.',
    );
  });

  const small = [undefined, createListing(20, 2, true)] as const;
  const withFee = [
    [50, createListing(50, 7)],
    [20, createListing(20, 4)],
    [10, createListing(10, 3)],
  ] as const;
  const perTen = [
    [10, createListing(10, 1)],
    [20, createListing(20, 2)],
  ] as const;
  const flat = [
    [5, createListing(5, 3)],
    [90, createListing(90, 3)],
  ] as const;

  /** Title, earlier responses, arguments of the next call, a budget one credit too small, and the price in the error. */
  test.for<[string, (readonly [number | undefined, ReturnType<typeof createListing>])[], object, number, string]>([
    ['two known page sizes determine the price of a larger page', [...perTen], { limit: 100 }, 12, '10'],
    [
      'one response gives only a lower bound for a larger page',
      [[1, createListing(1, 5)]],
      { limit: 50 },
      9,
      '5 or more',
    ],
    ['a page costs at least as much as the next smaller known size', [...withFee], { limit: 40 }, 17, '4 or more'],
    ['two sizes with equal prices determine all sizes in between', [...flat], { limit: 40 }, 8, '3'],
    [
      'the price of a half-empty page is a lower bound for a full page',
      [[100, createListing(3, 1)]],
      { limit: 100 },
      1,
      '1 or more',
    ],
    ['the price of an empty page is remembered', [[20, createListing(0, 5)]], { limit: 20 }, 9, '5 or more'],
    ['a page without a limit uses the page size of the API', [small], {}, 3, '2'],
    [
      'the highest known price of a page size is used',
      [
        [10, createListing(10, 5)],
        [10, createListing(10, 3)],
      ],
      { limit: 10 },
      12,
      '5',
    ],
    ['a first page without a limit uses the default page size', [small, [100, createListing(100, 10)]], {}, 13, '2'],
    [
      'a next page without a limit uses the highest known price',
      [small, [100, createListing(100, 10)]],
      { cursor: 'next' },
      21,
      '10',
    ],
  ])(
    'the credit ledger expects the right price for the next call (%s)',
    async ([_, earlierResponses, nextArgs, tooSmall, price], { upstream, start }) => {
      for (const creditBudget of [tooSmall, tooSmall + 1]) {
        const { call } = await start({ creditBudget });
        for (const [limit, answer] of earlierResponses) {
          upstream.respondWith(answer);
          await call('search_ads', limit === undefined ? {} : { limit });
        }
        upstream.respondWith(createListing(1, 0));
        const { text } = await call('search_ads', { filters: { other: 1 }, ...nextArgs });
        const named = /expected to cost (\d+(?: or more)?)/.exec(text)?.[1];
        expect(named).toBe(creditBudget === tooSmall ? price : undefined);
      }
    },
  );

  test("the expected price of a collection's items is based on the documented page size of the API", async ({
    upstream,
    start,
  }) => {
    const server = await start({ creditBudget: 9 });
    const createItems = (collection: string) =>
      server.call('list_collection_items', { collectionId: deriveUuid(collection), itemType: 'ads' });
    upstream.respondWith(createListing(50, 5));
    await createItems('a');
    expect((await createItems('b')).text).toContain('this call is expected to cost 5.');
  });

  test('for every further page of a search without a limit, the server reserves the credits that the first page cost', async ({
    upstream,
    start,
  }) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 41, max: 100 }), async (usual, larger) => {
        const service = serveAds(upstream, 500, (came) => came);
        service.defaultLimit = usual;
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
});
