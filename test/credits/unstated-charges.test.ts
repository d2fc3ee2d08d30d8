import { expect } from 'vitest';
import {
  ad,
  type Behaviour,
  creditStatus,
  delays,
  documented,
  faults,
  json,
  page,
  paid,
  refusal,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';

let clock = 1_790_000_000_000;
const test = freshUpstreamTest({ config: { cacheSeconds: 0 }, now: () => clock });
/** What is left of the account, as `GET /v1/credits` says. */
let balance = 0;
test.beforeEach(({ upstream }) => {
  balance = 1000;
  upstream.credits = (request, response) => json({ ...creditStatus(), credits: balance })(request, response);
});

const found = (charged?: number | string) =>
  json({ id: ad.id }, charged === undefined ? {} : { headers: paid(charged) });

/** Takes credits from the account, and does as told without a word of what it took. */
const charging =
  (credits: number, behaviour: Behaviour = found()): Behaviour =>
  (...exchange) => {
    balance -= credits;
    behaviour(...exchange);
  };

/** How so many calls of `get_ad` end: `ok`, or the kind of the error. */
const openings = async ({ call }: TestServer, times: number) => {
  const kinds: unknown[] = [];
  for (let time = 0; time < times; time++) kinds.push((await call('get_ad', { adId: ad.id })).error?.kind ?? 'ok');
  return kinds;
};
const spentOf = async ({ call }: TestServer) => (await call('get_credits')).data.thisServer;

interface Case {
  creditBudget: number;
  does: Behaviour[];
  ends: string;
  /** What is charged then, and what is counted for calls of unknown charge. */
  spent: object;
}
const spent = (charged: number, uncertain?: number) => ({ charged, uncertain });

test.for<[string, Case]>([
  [
    'that no header states is read from the balance before and after',
    { creditBudget: 12, does: [charging(5)], ends: 'ok ok ok credit_budget credit_budget', spent: spent(0, 15) },
  ],
  ...(['resets', 'closes without a word'] as const).map((fault): [string, Case] => [
    `of a service that ${fault} after it charged cannot drain the budget`,
    {
      creditBudget: 12,
      does: [charging(5, faults[fault])],
      ends: 'network network network credit_budget credit_budget',
      spent: spent(0, 15),
    },
  ]),
  [
    'that neither an answer nor the balance shows counts at least 1, and a second one as the rest of the budget',
    { creditBudget: 20, does: [found()], ends: 'ok ok credit_budget credit_budget', spent: spent(0, 20) },
  ],
  [
    'that never came costs the budget nothing, though nobody answered',
    { creditBudget: 3, does: [faults.resets], ends: 'network network network network network', spent: spent(0) },
  ],
  [
    'that is not stated counts as the highest charge so far, once an operation stated one',
    {
      creditBudget: 20,
      does: [found(4), found(6), found(), found('gratis')],
      ends: 'ok ok ok credit_budget',
      spent: spent(10, 6),
    },
  ],
  [
    'of an operation that was free so far is counted, too, while nobody answers',
    {
      creditBudget: 3,
      does: [found(0), charging(5, faults.resets)],
      ends: 'ok network network network network credit_budget credit_budget',
      spent: spent(0, 4),
    },
  ],
])('a charge %s', async ([_, { creditBudget, does, ends, spent: expected }], { upstream, start }) => {
  const own = await start({ creditBudget });
  upstream.does(...does);
  expect((await openings(own, ends.split(' ').length)).join(' ')).toBe(ends);
  const { charged, uncertain } = await spentOf(own);
  expect({ charged, uncertain }).toEqual(expected);
});

test('a charge that comes after the call had failed is noticed before the next call of unknown price', async ({
  upstream,
  start,
}) => {
  const own = await start({ creditBudget: 12 });
  upstream.does(faults.resets);
  await openings(own, 1);
  balance -= 30;
  expect(await openings(own, 2)).toEqual(['network', 'credit_budget']);
});

test('a charge that the balance shows later than the answer came counts once', async ({ upstream, start }) => {
  const own = await start({ creditBudget: 30 });
  upstream.does(found());
  await openings(own, 1);
  balance -= 5;
  await openings(own, 1);
  balance -= 5;
  expect(await spentOf(own)).toMatchObject({ charged: 0, uncertain: 6 });
  upstream.does(found(5));
  expect(await openings(own, 1)).toEqual(['ok']);
  expect(await spentOf(own)).toMatchObject({ charged: 5, uncertain: 10 });
});

test('where the balance cannot be asked either, the budget counts as spent', async ({ upstream, start }) => {
  const own = await start({ creditBudget: 12 });
  upstream.credits = json({}, { status: 500 });
  upstream.does(found());
  expect(await openings(own, 2)).toEqual(['ok', 'credit_budget']);
  const { text } = await own.call('get_ad', { adId: ad.id });
  expect(text).toContain('Budget of 12 credits: 0 spent, 12 counted for calls whose charge is unknown');
});

test('the balance is asked once where charges are stated, and never without a budget', async ({ upstream, start }) => {
  const asked = () => upstream.requests.filter(({ path }) => path.endsWith('/credits')).length;
  upstream.does(found(1));
  await openings(await start({ creditBudget: 100 }), 5);
  expect(asked()).toBe(1);

  const free = await start();
  upstream.does(faults.resets);
  await openings(free, 1);
  const { text } = await free.call('get_ad', { adId: ad.id });
  expect(text).toContain('unknown whether the service charged for this call');
  expect(text).not.toContain('counted as charged');
  expect([asked(), upstream.requests.length]).toEqual([0, 2]);
  // What is not known is not made up.
  expect(await spentOf(free)).toMatchObject({ charged: 0 });
});

test('a service that charges for the balance is asked no more, and what it took counts', async ({
  upstream,
  start,
}) => {
  const own = await start({ creditBudget: 12 });
  let asked = 0;
  upstream.credits = (request, response) => {
    asked++;
    balance -= 5;
    json({ ...creditStatus(), credits: balance }, { headers: paid(5) })(request, response);
  };
  upstream.does(refusal(404));
  expect(await openings(own, 4)).toEqual(Array(4).fill('not_found'));
  expect(asked).toBe(1);
  expect(await spentOf(own)).toMatchObject({ charged: 10 });
  expect((await own.call('get_credits')).error?.kind).toBe('credit_budget');
});

test('a service that does not answer for the balance is asked once a minute for each key, and holds up no other call', async ({
  upstream,
  start,
}) => {
  upstream.does(documented);
  upstream.credits = delays.hangs;
  const { call, as } = await start({ creditBudget: 100, timeoutMs: 3000 });
  const timesAsked = () => upstream.requests.filter(({ path }) => path === '/v1/credits').length;
  expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
  clock += 59_999;
  expect((await call('get_page', { pageId: page.pageId })).isError).toBe(false);
  expect((await call('search_ads', { limit: 5 })).isError).toBe(false);
  expect(timesAsked()).toBe(1);

  upstream.credits = json(creditStatus());
  await (await as('svc_live_other')).call('get_ad', { adId: ad.id });
  expect(timesAsked()).toBe(2);
  clock += 2;
  await call('search_pages', { limit: 5 });
  expect(timesAsked()).toBe(3);
});
