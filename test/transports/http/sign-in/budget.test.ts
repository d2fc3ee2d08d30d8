import { expect } from 'vitest';
import { serveAds } from '../../../support/ad-service.ts';
import { waitUntil } from '../../../support/deadline.ts';
import { createCreditHeaders, respondWithJson } from '../../../support/faulty-upstream.ts';
import { createGate } from '../../../support/gate.ts';
import { goodKey, startSignInServer, signInTest as withUpstream } from '../../../support/sign-in.ts';

/** Starts servers without a cache, in front of an API that charges two credits per search. */
const test = withUpstream.extend('serve', ({ upstream }) => async (config = {}) => {
  const service = serveAds(upstream, 200, () => 2);
  const server = await startSignInServer({ baseUrl: upstream.baseUrl, cacheSeconds: 0, ...config });
  const search = async (token: string, query = 'x') =>
    (await server.call(token, 'search_ads', { filters: { query }, limit: 5 })).result;
  return { service, server, search };
});

test('a signed-in connection spends no more than its own credit budget', async ({ serve }) => {
  const { service, server, search } = await serve();
  const [bounded, free] = [await server.signIn('5'), await server.signIn()];
  for (const query of ['a', 'b']) expect((await search(bounded.access, query)).isError).toBe(false);
  const refused = await search(bounded.access, 'c');
  expect(refused.error).toMatchObject({ kind: 'credit_budget', retryable: false });
  expect(refused.text).toMatch(/that the user gave this connection(.|\n)*Budget of 5 credits: 4 spent/);
  for (const token of [free.access, goodKey]) expect((await search(token, 'd')).isError).toBe(false);
  expect(service.chargedCredits).toBe(8);
  const credits = (await server.call(bounded.access, 'get_credits')).result;
  expect(credits.data.thisServer).toMatchObject({ charged: 8, connection: { charged: 4, budget: 5 } });
  expect(credits.text).toContain('this connection: 4 charged; budget 5, 1 left');
  expect((await server.call(free.access, 'get_credits')).result.text).not.toContain('this connection');
});

test('a token renewal does not reset the spending of a sign-in connection, and a budget of 0 allows only free calls', async ({
  serve,
}) => {
  const { service, server, search } = await serve();
  const { access, refresh, clientId } = await server.signIn('3');
  await search(access);
  const renewed = await server.refreshTokens(refresh, clientId);
  expect((await search(renewed.body.access_token ?? '', 'y')).error).toMatchObject({ kind: 'credit_budget' });
  const nothing = await server.signIn('0');
  expect((await search(nothing.access, 'z')).error).toMatchObject({ kind: 'credit_budget' });
  expect((await server.call(nothing.access, 'whoami')).result.isError).toBe(false);
  expect(service.chargedCredits).toBe(2);
});

test('concurrent calls stay within the credit budgets of both their sign-in connection and the server', async ({
  serve,
}) => {
  const { service, server, search } = await serve({ creditBudget: 21 });
  const connections = [await server.signIn('7'), await server.signIn('9'), await server.signIn('50')];
  // Search once first, so that the server knows the price.
  await search(goodKey, 'first');
  const burst = connections.flatMap(({ access }, index) =>
    Array.from({ length: 12 }, (_, number) => search(access, `${index} ${number}`)),
  );
  const results = await Promise.all(burst);
  const passed = connections.map(
    (_, index) => results.slice(12 * index, 12 * index + 12).filter(({ isError }) => !isError).length,
  );
  expect(passed[0]).toBeLessThanOrEqual(3);
  expect(passed[1]).toBeLessThanOrEqual(4);
  expect(service.chargedCredits).toBe(20);
  expect(2 * (1 + passed.reduce((sum, count) => sum + count, 0))).toBe(20);
  // A call that exceeded the server's budget must not leave a reservation in the connection's budget.
  for (const [index, { access }] of connections.entries()) {
    const { thisServer } = (await server.call(access, 'get_credits')).result.data;
    expect(thisServer).toMatchObject({ charged: 20, connection: { charged: 2 * (passed[index] ?? 0) } });
  }
});

test('a call that several sign-in connections share is sent even if the budget of one of the connections is too small', async ({
  serve,
}) => {
  const { service, server, search } = await serve();
  const [poor, rich] = [await server.signIn('3'), await server.signIn('100')];
  const gate = createGate();
  const answer = respondWithJson({ items: [], cursor: null, hasMore: false }, { headers: createCreditHeaders(2) });
  service.overrideResponse = ({ sequenceNumber }) =>
    sequenceNumber === 1 ? (...request) => void gate.opened.then(() => answer(...request)) : undefined;
  // The next call of this connection waits until this search reveals the price. Then the budget refuses it.
  const first = search(poor.access, 'first');
  await waitUntil(() => service.searches.length === 1);
  const sharedCalls = [search(poor.access, 'same'), search(rich.access, 'same'), search(goodKey, 'same')];
  gate.open();
  await first;
  const [refused, ...otherResults] = await Promise.all(sharedCalls);
  expect(refused?.error).toMatchObject({ kind: 'credit_budget' });
  expect(otherResults.map(({ isError }) => isError)).toEqual([false, false]);
});

test('a call that does not fit the credit budget only because of running calls fails with a retryable error', async ({
  serve,
}) => {
  const { service, server, search } = await serve();
  const { access } = await server.signIn('3');
  await search(goodKey, 'the price');
  const gate = createGate();
  const answer = respondWithJson({ items: [], cursor: null, hasMore: false }, { headers: createCreditHeaders(1) });
  service.overrideResponse =
    () =>
    (...request) =>
      void gate.opened.then(() => answer(...request));
  const first = search(access, 'first');
  await waitUntil(() => service.searches.length === 2);
  const refused = await search(access, 'second');
  gate.open();
  expect((await first).isError).toBe(false);
  expect(refused.error).toMatchObject({ kind: 'credit_budget', retryable: true });
  expect(refused.text).toMatch(/that the user gave this connection(.|\n)*once those end, this call may fit/);
  service.overrideResponse = () => undefined;
  expect((await search(access, 'second')).isError).toBe(false);
});

test('gather_ads stops when the credit budget of its sign-in connection is used up', async ({ serve }) => {
  const { service, server } = await serve();
  service.priceSearch = (limit) => Math.ceil(limit / 10);
  const { access } = await server.signIn('6');
  await server.call(goodKey, 'search_ads', { filters: { query: 'a' }, limit: 10 });
  const before = service.chargedCredits;
  const { result } = await server.call(access, 'gather_ads', { filters: { query: 'x' }, maxAds: 200, maxCredits: 50 });
  expect(result.data).toMatchObject({ stopped: 'budget', complete: false });
  expect(service.chargedCredits - before).toBeLessThanOrEqual(6);
  expect(result.data.read).toBeGreaterThan(0);
});
