import { expect } from 'vitest';
import { creditStatus, json, paid, refusal } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest({ config: { creditBudget: 3, cacheSeconds: 0 } });

test('an empty answer teaches no price, and a refused call takes nothing from the budget', async ({
  upstream,
  server,
}) => {
  upstream.credits = json(creditStatus());
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
