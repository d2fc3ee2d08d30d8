import { expect } from 'vitest';
import { ad, creditStatus, faults, json, paid } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';

/** What is left of the account, as `GET /v1/credits` says. */
let balance = 0;
const test = upstreamTest({ config: { cacheSeconds: 0 } }).extend(
  'withBudget',
  ({ upstream, start }) =>
    (creditBudget: number | undefined) => {
      balance = 1000;
      upstream.credits = (request, response) => json({ ...creditStatus(), credits: balance })(request, response);
      return start({ creditBudget });
    },
);

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

test('a charge that no header states is read from the balance before and after', async ({ upstream, withBudget }) => {
  const own = await withBudget(12);
  upstream.does(charging(5));
  expect(await openings(own, 5)).toEqual([undefined, undefined, undefined, 'credit_budget', 'credit_budget']);
  expect(balance).toBe(1000 - 15);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 0, uncertain: 15 });
});

test.for(['resets', 'closes without a word'] as const)(
  'a service that %s after it charged cannot drain the budget',
  async (fault, { upstream, withBudget }) => {
    const own = await withBudget(12);
    upstream.does(charging(5, faults[fault]));
    expect(await openings(own, 5)).toEqual(['network', 'network', 'network', 'credit_budget', 'credit_budget']);
  },
);

test('a call that was never charged for costs the budget nothing, though nobody answered it', async ({
  upstream,
  withBudget,
}) => {
  const own = await withBudget(3);
  upstream.does(faults.resets);
  expect(await openings(own, 6)).toEqual(Array(6).fill('network'));
  expect((await own.call('get_credits')).data.thisServer).not.toHaveProperty('uncertain');
});

test('a charge that comes after the call had failed is noticed before the next call of unknown price', async ({
  upstream,
  withBudget,
}) => {
  const own = await withBudget(12);
  upstream.does(faults.resets);
  await openings(own, 1);
  balance -= 30;
  expect(await openings(own, 2)).toEqual(['network', 'credit_budget']);
});

test('where the balance cannot be asked either, the budget counts as spent', async ({ upstream, withBudget }) => {
  const own = await withBudget(12);
  upstream.credits = json({}, { status: 500 });
  upstream.does(json({ id: ad.id }));
  expect(await openings(own, 3)).toEqual([undefined, 'credit_budget', 'credit_budget']);
  const { text } = await own.call('get_ad', { adId: ad.id });
  expect(text).toContain('Budget 12 credits: 0 spent, 12 counted for calls whose charge is not known');
});

test('once an operation stated a charge, one that states none counts as the dearest so far', async ({
  upstream,
  withBudget,
}) => {
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

test('the balance is not asked about where charges are stated', async ({ upstream, withBudget }) => {
  const own = await withBudget(100);
  upstream.does(json({ id: ad.id }, { headers: paid(1) }));
  await openings(own, 5);
  expect(upstream.requests.filter(({ path }) => path.endsWith('/credits'))).toHaveLength(1);
});

test('without a budget nothing is asked, and what is not known is not made up', async ({ upstream, withBudget }) => {
  const own = await withBudget(undefined);
  upstream.does(faults.resets);
  await openings(own, 2);
  expect(upstream.requests).toHaveLength(2);
  expect((await own.call('get_credits')).data.thisServer).toMatchObject({ charged: 0 });
});
