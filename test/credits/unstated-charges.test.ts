import { expect } from 'vitest';
import {
  ad,
  type Behaviour,
  createCreditHeaders,
  createCreditStatus,
  delays,
  faults,
  respondAsDocumented,
  respondWithError,
  respondWithJson,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';

let clock = 1_790_000_000_000;
const test = freshUpstreamTest({ config: { cacheSeconds: 0 }, now: () => clock });
test.beforeEach(({ upstream }) => {
  upstream.credits = respondWithJson(createCreditStatus());
});

const createAnswer = (charged?: number | string) =>
  respondWithJson({ id: ad.id }, charged === undefined ? {} : { headers: createCreditHeaders(charged) });

/** Calls `get_ad` several times. Returns `ok` or the error kind of each call. */
const makeCalls = async ({ call }: TestServer, times: number) => {
  const kinds: unknown[] = [];
  for (let time = 0; time < times; time++) kinds.push((await call('get_ad', { adId: ad.id })).error?.kind ?? 'ok');
  return kinds;
};
const readSpent = async ({ call }: TestServer) => (await call('get_credits')).data.thisServer;

interface Case {
  creditBudget: number;
  behaviours: Behaviour[];
  expectedOutcomes: string;
  /** The sum of the stated charges, and the credits counted for calls of unknown charge. */
  spent: { charged: number; uncertain?: number };
}

test.for<[string, Case]>([
  [
    'a response without a charge counts as the whole remaining budget if no price is known',
    {
      creditBudget: 12,
      behaviours: [createAnswer()],
      expectedOutcomes: 'ok credit_budget',
      spent: { charged: 0, uncertain: 12 },
    },
  ],
  ...(['resets', 'closes without an answer', 'ends in the middle of the body'] as const).map(
    (fault): [string, Case] => [
      `a call to an API that ${fault} counts as the whole remaining budget if no price is known`,
      {
        creditBudget: 12,
        behaviours: [faults[fault]],
        expectedOutcomes: 'network credit_budget',
        spent: { charged: 0, uncertain: 12 },
      },
    ],
  ),
  [
    'a call whose charge cannot be read is booked at the highest known price',
    {
      creditBudget: 20,
      behaviours: [createAnswer(4), createAnswer(6), createAnswer(), createAnswer('gratis')],
      expectedOutcomes: 'ok ok ok credit_budget',
      spent: { charged: 10, uncertain: 6 },
    },
  ],
  [
    'a call whose response is lost is booked at the highest known price',
    {
      creditBudget: 20,
      behaviours: [createAnswer(6), faults.resets],
      expectedOutcomes: 'ok network network credit_budget',
      spent: { charged: 6, uncertain: 12 },
    },
  ],
  [
    'a call of unknown charge counts as one credit if earlier calls were free',
    {
      creditBudget: 3,
      behaviours: [createAnswer(0), faults.resets],
      expectedOutcomes: 'ok network network network network credit_budget',
      spent: { charged: 0, uncertain: 4 },
    },
  ],
])(
  'the server counts the spending correctly if the API does not report a charge: %s',
  async ([_, { creditBudget, behaviours, expectedOutcomes, spent }], { upstream, start }) => {
    const server = await start({ creditBudget });
    upstream.respondWith(...behaviours);
    expect((await makeCalls(server, expectedOutcomes.split(' ').length)).join(' ')).toBe(expectedOutcomes);
    const { charged, uncertain } = await readSpent(server);
    expect({ charged, uncertain }).toEqual(spent);
  },
);

test('a result page whose charge is unknown counts at its highest possible price if it is larger than all earlier pages', async ({
  upstream,
  start,
}) => {
  const items = Array.from({ length: 10 }, (_, index) => ({ ...ad, id: `ad-${index}` }));
  const page = { items, cursor: null, hasMore: false };
  const server = await start({ creditBudget: 50 });
  upstream.respondWith(respondWithJson(page, { headers: createCreditHeaders(3) }), respondWithJson(page));
  await server.call('search_ads', { limit: 10 });
  await server.call('search_ads', { limit: 100 });
  expect(await readSpent(server)).toMatchObject({ charged: 3, uncertain: 30 });
});

test('a budget error shows how many credits were counted for calls whose charge is unknown', async ({
  upstream,
  start,
}) => {
  const server = await start({ creditBudget: 12 });
  upstream.respondWith(createAnswer());
  await makeCalls(server, 1);
  const { text } = await server.call('get_ad', { adId: ad.id });
  expect(text).toContain('Budget of 12 credits: 0 spent, 12 counted for calls whose charge is unknown');
});

test('paid calls never request the credit balance from the API', async ({ upstream, start }) => {
  for (const config of [{ creditBudget: 100 }, {}])
    for (const behaviour of [createAnswer(1), createAnswer(), faults.resets]) {
      upstream.respondWith(behaviour);
      await makeCalls(await start(config), 3);
      expect(upstream.requests.filter(({ path }) => path.endsWith('/credits'))).toEqual([]);
    }
});

test('without a budget, a call whose charge and price are both unknown adds nothing to the spending', async ({
  upstream,
  start,
}) => {
  const server = await start();
  upstream.respondWith(faults.resets);
  const { text } = await server.call('get_ad', { adId: ad.id });
  expect(text).toContain('unknown whether the service charged for this call');
  expect(await readSpent(server)).toMatchObject({ charged: 0 });
});

test('the server repeats a failed request for the credit balance at most once a minute', async ({
  upstream,
  start,
}) => {
  upstream.respondWith(respondWithError(402));
  upstream.credits = delays.hangs;
  const { call, connectAs } = await start({ timeoutMs: 3000 });
  const countBalanceRequests = () => upstream.requests.filter(({ path }) => path === '/v1/credits').length;
  for (const advance of [0, 59_999]) {
    clock += advance;
    expect((await call('get_ad', { adId: ad.id })).error?.kind).toBe('payment_required');
  }
  expect(countBalanceRequests()).toBe(1);

  upstream.credits = respondAsDocumented;
  await (await connectAs('svc_live_other')).call('get_ad', { adId: ad.id });
  expect(countBalanceRequests()).toBe(2);
  clock += 2;
  await call('get_ad', { adId: ad.id });
  expect(countBalanceRequests()).toBe(3);
});
