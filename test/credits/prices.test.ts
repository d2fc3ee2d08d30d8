import { afterAll, beforeAll, expect, test } from 'vitest';
import { creditStatus, json, paid, refusal, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { startServer, type TestServer } from '../support/server.ts';

let upstream: Upstream;
let server: TestServer;
beforeAll(async () => {
  upstream = await startUpstream();
  upstream.credits = json(creditStatus());
  const config = { baseUrl: upstream.baseUrl, apiKey: 'svc_live_prices', creditBudget: 3, cacheSeconds: 0 };
  server = await startServer({ config });
});
afterAll(async () => {
  await server.close();
  await upstream.close();
});

test('an answer without items tells no price, and a refusal takes nothing from the budget', async () => {
  const none = { items: [], cursor: null, hasMore: false };
  upstream.does(json(none, { headers: paid(0) }), refusal(422), json(none, { headers: paid(3) }));
  const search = () => server.call('search_ads', { limit: 10 });
  const spent = async () => (await server.call('get_credits')).data.thisServer;
  await search();
  expect((await search()).error?.kind).toBe('invalid_request');
  expect(await spent()).toMatchObject({ charged: 0 });
  expect((await search()).isError).toBe(false);
  expect(await spent()).toMatchObject({ charged: 3 });
});
