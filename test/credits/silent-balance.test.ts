import { expect } from 'vitest';
import {
  ad,
  creditStatus,
  delays,
  documented,
  json,
  page,
  paid,
  refusal,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

let clock = 1_790_000_000_000;
const test = freshUpstreamTest({ config: { cacheSeconds: 0, timeoutMs: 4000 }, now: () => clock });
test.beforeEach(({ upstream }) => {
  upstream.does(documented);
  upstream.credits = delays.hangs;
});

const timesAsked = ({ requests }: Upstream) => requests.filter(({ path }) => path === '/v1/credits').length;

test('a service that does not answer for the balance holds up no first call for long, and the next not at all', async ({
  upstream,
  start,
}) => {
  const { call } = await start({ creditBudget: 10 });
  expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
  expect((await call('get_page', { pageId: page.pageId })).isError).toBe(false);
  expect((await call('search_ads', { limit: 5 })).isError).toBe(false);
  expect(timesAsked(upstream)).toBeLessThanOrEqual(1);
});

test('it is asked again after a minute', async ({ upstream, start }) => {
  const { call } = await start({ creditBudget: 100 });
  await call('get_ad', { adId: ad.id });
  clock += 60_001;
  upstream.credits = json(creditStatus());
  const before = timesAsked(upstream);
  await call('get_page', { pageId: page.pageId });
  expect(timesAsked(upstream)).toBe(before + 1);
});

test('a charge that is not stated meanwhile counts as without a balance', async ({ upstream, start }) => {
  const { call } = await start({ creditBudget: 12 });
  upstream.does(json(ad));
  expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
  expect((await call('get_ad', { adId: ad.id })).text).toContain('12 counted for calls whose charge is unknown');
  expect(timesAsked(upstream)).toBeLessThanOrEqual(1);
});

test('a balance that hangs for one key is asked for another', async ({ upstream, start }) => {
  const own = await start({ creditBudget: 10 });
  await own.call('get_ad', { adId: ad.id });
  const other = await own.as('svc_live_other');
  const before = timesAsked(upstream);
  await other.call('get_ad', { adId: ad.id });
  expect(timesAsked(upstream)).toBe(before + 1);
});

test('a usage limit is one though the windows cannot be asked', async ({ upstream, server }) => {
  upstream.does(refusal(429));
  const { error } = await server.call('search_ads', { limit: 1 });
  expect(error).toMatchObject({ kind: 'usage_limit', status: 429 });
  expect(error).not.toHaveProperty('usageLimit');
});

test('credits that are spent are, though the balance cannot be asked', async ({ upstream, server }) => {
  upstream.does(json({ error: { code: 'none', message: 'No.', requestId: 'r' } }, { status: 402, headers: paid(0) }));
  expect((await server.call('search_ads', { limit: 1 })).error?.kind).toBe('payment_required');
});
