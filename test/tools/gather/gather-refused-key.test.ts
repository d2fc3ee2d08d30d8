import { expect } from 'vitest';
import { serveAds } from '../../support/ad-service.ts';
import { refusal } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';
import { gateOf } from '../../support/gate.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

test('a key that is rejected in the middle ends it, and the error names what was charged', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 300);
  service.before = () => (service.searches.length < 2 ? undefined : refusal(401));
  const { error, text } = await server.call('gather_ads', { maxCredits: 100 });
  expect(error).toMatchObject({ kind: 'unauthorized', status: 401 });
  expect(service.charged).toBe(20);
  expect(text).toContain('Credits: 20 charged for 3 calls');
});

test('a key that is accepted again has what was read, and goes on from there', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  service.instead = ({ number }) => (number === 3 ? refusal(401) : undefined);
  expect((await server.call('gather_ads', { maxCredits: 100 })).error).toMatchObject({ kind: 'unauthorized' });
  const { data } = await server.call('gather_ads', { maxCredits: 100 });
  // Whether the key is accepted is asked beside, at no charge.
  expect(data).toMatchObject({ read: 300, complete: true, receipt: { charged: 10, calls: 1 } });
  expect(service.charged).toBe(30);
});

test('an error of the first call names no other charge', async ({ upstream, server }) => {
  serveAds(upstream, 300).instead = () => refusal(401);
  expect((await server.call('gather_ads', { maxCredits: 100 })).text).not.toContain('Credits:');
});

test('an answer that was asked for before the key was rejected does not accept it again', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 30);
  await server.call('search_ads', { limit: 3 });
  const gate = gateOf();
  upstream.does(async (request, response, body) => {
    const isEarly = body?.includes('"limit":1') === true;
    if (isEarly) await gate.opened;
    service.before = () => (isEarly ? undefined : refusal(401));
    service.behaviour(request, response, body);
  });
  const early = server.call('search_ads', { limit: 1 });
  await upstream.reached(1);
  expect((await server.call('search_ads', { limit: 2 })).error).toMatchObject({ kind: 'unauthorized' });
  gate.open();
  expect((await early).isError).toBe(false);
  expect((await server.call('search_ads', { limit: 3 })).error).toMatchObject({ kind: 'unauthorized' });
});
