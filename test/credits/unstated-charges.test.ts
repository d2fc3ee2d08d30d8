import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  ad,
  creditStatus,
  faults,
  json,
  paid,
  refusal,
  startUpstream,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { startServer, type TestServer } from '../support/server.ts';

let upstream: Upstream;
let server: TestServer | undefined;
/** What is left of the account, as `GET /v1/credits` says. */
let balance = 0;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(() => server?.close());
afterAll(() => upstream.close());

let keys = 0;
async function withBudget(creditBudget: number, options = {}): Promise<TestServer> {
  balance = 1000;
  upstream.credits = (request, response) => json({ ...creditStatus(), credits: balance })(request, response);
  const apiKey = `svc_live_untold_${++keys}`;
  server = await startServer({
    config: { baseUrl: upstream.baseUrl, apiKey, creditBudget, cacheSeconds: 0, ...options },
  });
  return server;
}

/** Takes credits from the account, and does as told without a word of what it took. */
const charging =
  (credits: number, behaviour = json({ id: ad.id })) =>
  (...exchange: Parameters<typeof behaviour>) => {
    balance -= credits;
    behaviour(...exchange);
  };

const openings = async ({ call }: TestServer, times: number) => {
  const kinds: unknown[] = [];
  for (let time = 0; time < times; time++) kinds.push((await call('get_ad', { adId: ad.id })).error?.kind);
  return kinds;
};

test('a charge that no header states is taken from the change of the balance', async () => {
  const own = await withBudget(12);
  upstream.does(charging(5));
  expect(await openings(own, 5)).toEqual([undefined, undefined, undefined, 'credit_budget', 'credit_budget']);
  expect(balance).toBe(1000 - 15);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 0, uncertain: 15 });
});

test.each(['resets', 'closes without a word'] as const)(
  'a service that %s after it charged cannot drain the budget',
  async (fault) => {
    const own = await withBudget(12);
    upstream.does(charging(5, faults[fault]));
    expect(await openings(own, 5)).toEqual(['network', 'network', 'network', 'credit_budget', 'credit_budget']);
  },
);

test('a failed call that was not charged costs the budget nothing', async () => {
  const own = await withBudget(3);
  upstream.does(faults.resets);
  expect(await openings(own, 6)).toEqual(Array(6).fill('network'));
  expect((await own.call('get_credits')).data.thisServer).not.toHaveProperty('uncertain');
});

test('a charge that comes after its call failed is noticed before the next call of unknown price', async () => {
  const own = await withBudget(12);
  upstream.does(faults.resets);
  await openings(own, 1);
  balance -= 30;
  expect(await openings(own, 2)).toEqual(['network', 'credit_budget']);
});

test('where the balance is unknown too, the budget counts as spent', async () => {
  const own = await withBudget(12);
  upstream.credits = json({}, { status: 500 });
  upstream.does(json({ id: ad.id }));
  expect(await openings(own, 3)).toEqual([undefined, 'credit_budget', 'credit_budget']);
  const { text } = await own.call('get_ad', { adId: ad.id });
  expect(text).toContain('Budget of 12 credits: 0 spent, 12 counted for calls whose charge is unknown');
});

test('a budget that counts as spent stays so when calls under way turn out to cost nothing', async () => {
  const own = await withBudget(100);
  upstream.credits = json({}, { status: 500 });
  const gate = gateOf();
  upstream.does(
    json({ pageId: '1', pageName: 'A page' }, { headers: paid(10) }),
    (...exchange) => void gate.opened.then(() => refusal(404)(...exchange)),
    json({ id: ad.id }),
  );
  await own.call('get_page', { pageId: '1' });
  const free = own.call('get_page', { pageId: '2' });
  await upstream.reached(2);
  expect(await openings(own, 1)).toEqual([undefined]);
  gate.open();
  expect((await free).error?.kind).toBe('not_found');
  expect(await openings(own, 1)).toEqual(['credit_budget']);
});

test('once an operation stated a charge, one that states none counts as the dearest so far', async () => {
  const own = await withBudget(20);
  upstream.does(
    json({ id: ad.id }, { headers: paid(4) }),
    json({ id: ad.id }, { headers: paid(6) }),
    json({ id: ad.id }),
    json({ id: ad.id }, { headers: paid('gratis') }),
  );
  expect(await openings(own, 4)).toEqual([undefined, undefined, undefined, 'credit_budget']);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 10, uncertain: 6 });
});

const searches = async ({ call }: TestServer, limits: number[]) => {
  const kinds: unknown[] = [];
  for (const limit of limits) kinds.push((await call('search_ads', { limit })).error?.kind);
  return kinds;
};
const smallPage = json({ items: [ad], cursor: null, hasMore: false }, { headers: paid(1) });

test('a large page that nobody answered counts as what the balance fell by, though small ones were cheap', async () => {
  const own = await withBudget(25);
  upstream.does(smallPage, charging(10, faults.resets));
  expect(await searches(own, [1, 100, 100, 100, 100, 100])).toEqual([
    undefined,
    ...Array(3).fill('network'),
    ...Array(2).fill('credit_budget'),
  ]);
  expect(balance).toBe(1000 - 30);
});

test('where the balance cannot be asked, it counts as the most that so many items can cost', async () => {
  const own = await withBudget(25);
  upstream.credits = json({}, { status: 500 });
  upstream.does(smallPage, charging(10, faults.resets));
  expect(await searches(own, [1, 20, 20])).toEqual([undefined, 'network', 'network']);
  expect((await own.call('search_ads', { limit: 1 })).error?.kind).toBe('credit_budget');
  expect((await own.call('search_ads', { limit: 1 })).text).toContain('1 spent, 40 counted for calls');
});

test('an operation that was free so far cannot be called without end while nobody answers', async () => {
  const own = await withBudget(3);
  upstream.does(json({ id: ad.id }, { headers: paid(0) }), charging(5, faults.resets));
  expect(await openings(own, 7)).toEqual([undefined, ...Array(4).fill('network'), ...Array(2).fill('credit_budget')]);
});

test('the balance is not requested where charges are stated', async () => {
  const own = await withBudget(100);
  upstream.does(json({ id: ad.id }, { headers: paid(1) }));
  await openings(own, 5);
  expect(upstream.requests.filter(({ path }) => path.endsWith('/credits'))).toHaveLength(1);
});

test('a service that charges for the balance is asked no more, and what it took counts', async () => {
  const own = await withBudget(12);
  let asked = 0;
  upstream.credits = (request, response) => {
    asked++;
    balance -= 5;
    json({ ...creditStatus(), credits: balance }, { headers: paid(5) })(request, response);
  };
  upstream.does(refusal(404));
  expect(await openings(own, 4)).toEqual(Array(4).fill('not_found'));
  expect(asked).toBe(1);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 10 });
  expect((await own.call('get_credits')).error?.kind).toBe('credit_budget');
});

test('without a budget the balance is not requested, and no charge is made up', async () => {
  const own = await withBudget(0, { creditBudget: undefined });
  upstream.does(faults.resets);
  await openings(own, 1);
  const { text } = await own.call('get_ad', { adId: ad.id });
  expect(text).toContain('unknown whether the service charged for this call');
  expect(text).not.toContain('counted as charged');
  expect(upstream.requests).toHaveLength(2);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 0 });
});
