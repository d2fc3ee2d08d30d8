import { expect } from 'vitest';
import { ad, type Behaviour, creditStatus, documented, json, type Upstream } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { gateOf } from '../support/gate.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

/** Answers as documented, once it is let. */
function held(upstream: Upstream) {
  const gate = gateOf();
  upstream.does((request, response) => void gate.opened.then(() => documented(request, response)));
  return gate.open;
}

const opening = { adId: ad.id };

test('an answer that was paid for is kept though its caller has left, who is free at once', async ({
  upstream,
  server,
}) => {
  const { call, client } = server;
  const answer = held(upstream);
  const caller = new AbortController();
  const left = call('get_ad', opening, { signal: caller.signal }).catch(() => 'left');
  await upstream.reached(1);
  caller.abort();
  expect(await left).toBe('left');
  answer();
  await client.ping();
  const { data } = await call('get_ad', opening);
  expect(upstream.requests).toHaveLength(1);
  expect((data.receipt as unknown as { charged: number }).charged).toBeLessThanOrEqual(1);
  expect((await call('get_credits')).data.thisServer).toMatchObject({ charged: 1 });
});

test('ten callers who leave one after the other cost one call, not ten', async ({ upstream, server }) => {
  const { call } = server;
  const answer = held(upstream);
  for (let time = 0; time < 10; time++) {
    const caller = new AbortController();
    const left = call('get_ad', opening, { signal: caller.signal }).catch(() => 'left');
    await upstream.reached(1);
    caller.abort();
    expect(await left).toBe('left');
  }
  answer();
  expect((await call('get_ad', opening)).isError).toBe(false);
  expect(upstream.requests).toHaveLength(1);
});

test('an answer whose charge is still being found out is not asked for again when its caller leaves', async ({
  upstream,
  start,
}) => {
  const { call } = await start({ creditBudget: 50 });
  const gate = gateOf();
  const balance: Behaviour = json(creditStatus());
  let asked = 0;
  upstream.credits = (...exchange) =>
    void (++asked === 2 ? gate.opened : Promise.resolve()).then(() => balance(...exchange));
  upstream.does(json(ad));
  const caller = new AbortController();
  const left = call('get_ad', opening, { signal: caller.signal }).catch(() => 'left');
  await upstream.reached(3);
  caller.abort();
  expect(await left).toBe('left');
  await call('whoami');
  const second = call('get_ad', opening);
  await call('whoami');
  gate.open();
  expect((await second).isError).toBe(false);
  expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(1);
});

test('a call that costs nothing is dropped at the service when its caller leaves', async ({ upstream, server }) => {
  const { call } = server;
  held(upstream);
  const caller = new AbortController();
  const left = call('whoami', {}, { signal: caller.signal }).catch(() => 'left');
  await upstream.reached(1);
  caller.abort();
  await upstream.requests[0]?.left;
  expect(await left).toBe('left');
});

test('a write that was sent is carried to its end though its caller has left', async ({ upstream, server }) => {
  const { call } = server;
  const answer = held(upstream);
  const caller = new AbortController();
  const saving = { collectionId: '6a1f7e0c-0000-4000-8000-00000000c011', itemType: 'ads', itemId: ad.id };
  const left = call('add_collection_item', saving, { signal: caller.signal }).catch(() => 'left');
  await upstream.reached(1);
  let wasDropped = false;
  void upstream.requests[0]?.left.then(() => {
    wasDropped = true;
  });
  caller.abort();
  expect(await left).toBe('left');
  answer();
  upstream.does(documented);
  await call('whoami');
  expect(wasDropped).toBe(false);
});

test('a call of which nothing was sent yet ends with its caller: nothing is paid for it', async ({
  upstream,
  start,
}) => {
  const { call } = await start({ creditBudget: 50 });
  upstream.credits = documented;
  const answer = held(upstream);
  const first = call('get_ad', opening);
  await upstream.reached(2);
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

test('at shutdown paid calls that were sent get the drain, and what is lost is logged with its price', async ({
  upstream,
  server,
}) => {
  upstream.does(documented);
  await server.call('get_ad', opening);
  held(upstream);
  const lost = server.call('get_ad', { ...opening, fresh: true });
  await upstream.reached(1);
  await server.stop();
  expect((await lost).isError).toBe(true);
  const line = server.logged.find((logged) => logged.includes('a paid call was lost'));
  expect(line).toContain('operation="getAd"');
  expect(line).toContain('credits=1');
});

test('calls that were cancelled keep their places until they have ended, so nobody can pile them up', async ({
  upstream,
  server,
}) => {
  const { call } = server;
  held(upstream);
  const callers = Array.from({ length: 300 }, () => new AbortController());
  const results = callers.map(({ signal }, limit) =>
    call('search_ads', { limit: limit + 1 }, { signal }).catch(() => 'left'),
  );
  await upstream.reached(256);
  for (const caller of callers) caller.abort();
  await Promise.all(results);
  const { error } = await call('search_ads', { limit: 1000 });
  expect(error).toMatchObject({ kind: 'busy', retryable: true });
  expect(upstream.requests).toHaveLength(256);
});
