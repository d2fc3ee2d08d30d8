import { expect } from 'vitest';
import { ad, creditStatus, delays, documented, json, page, paid, refusal } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

let clock = 1_790_000_000_000;
const test = freshUpstreamTest({ config: { cacheSeconds: 0, timeoutMs: 3000 }, now: () => clock });
test.beforeEach(({ upstream }) => {
  upstream.does(documented);
  upstream.credits = delays.hangs;
});

test('a service that does not answer for the balance is asked once a minute for each key, and holds up no other call', async ({
  upstream,
  start,
}) => {
  const { call, as } = await start({ creditBudget: 100 });
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

test('a charge that is not stated meanwhile counts as without a balance', async ({ upstream, start }) => {
  const { call } = await start({ creditBudget: 12 });
  upstream.does(json(ad));
  expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
  expect((await call('get_ad', { adId: ad.id })).text).toContain('12 counted for calls whose charge is unknown');
  expect(upstream.requests.filter(({ path }) => path === '/v1/credits')).toHaveLength(1);
});

test('a usage limit is one though the windows cannot be asked, and credits that are spent are', async ({
  upstream,
  server,
}) => {
  const none = json({ error: { code: 'none', message: 'No.', requestId: 'r' } }, { status: 402, headers: paid(0) });
  upstream.does(none, refusal(429));
  expect((await server.call('search_ads', { limit: 1 })).error?.kind).toBe('payment_required');
  const { error } = await server.call('search_ads', { limit: 1 });
  expect(error).toMatchObject({ kind: 'usage_limit', status: 429 });
  expect(error).not.toHaveProperty('usageLimit');
});
