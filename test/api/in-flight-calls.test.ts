import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  ad,
  type Behaviour,
  creditStatus,
  documented,
  json,
  startUpstream,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { startServer, type TestServer } from '../support/server.ts';

let upstream: Upstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream();
});
afterEach(() => server.close());
afterAll(() => upstream.close());

let keys = 0;
const start = async (config = {}) => {
  server = await startServer({
    config: { baseUrl: upstream.baseUrl, apiKey: `svc_live_leaving_${++keys}`, ...config },
  });
  return server;
};

/** Answers as documented, once it is let. */
function held() {
  const gate = gateOf();
  upstream.does((request, response) => void gate.opened.then(() => documented(request, response)));
  return gate.open;
}

const opening = { adId: ad.id };

test('a paid answer is kept though its caller cancelled, and the caller does not wait for it', async () => {
  const { call, client } = await start();
  const answer = held();
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

test('ten callers who cancel one after the other cost one call', async () => {
  const { call } = await start();
  const answer = held();
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

test('an answer whose charge is still being found out is not asked for again when its caller leaves', async () => {
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
  upstream.credits = undefined;
});

test('a free call is aborted when its caller cancels', async () => {
  const { call } = await start();
  held();
  const caller = new AbortController();
  const left = call('whoami', {}, { signal: caller.signal }).catch(() => 'left');
  await upstream.reached(1);
  caller.abort();
  await upstream.requests[0]?.left;
  expect(await left).toBe('left');
});

test('a write that was sent is finished though its caller cancelled', async () => {
  const { call } = await start();
  const answer = held();
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

test('a paid call that was not sent yet is dropped when its caller cancels', async () => {
  const { call } = await start({ creditBudget: 50 });
  upstream.credits = documented;
  const answer = held();
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
  upstream.credits = undefined;
});

test('at shutdown paid calls get the drain time, and those cut off are logged with their price', async () => {
  const own = await start();
  upstream.does(documented);
  await own.call('get_ad', opening);
  held();
  const lost = own.call('get_ad', { ...opening, fresh: true });
  await upstream.reached(1);
  await own.stop();
  expect((await lost).isError).toBe(true);
  const line = own.logged.find((logged) => logged.includes('a paid call was lost'));
  expect(line).toContain('operation="getAd"');
  expect(line).toContain('credits=1');
});

test('cancelled calls count against the limit until they have ended', async () => {
  const { call } = await start();
  held();
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
