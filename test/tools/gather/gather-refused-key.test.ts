import { expect } from 'vitest';
import { serveAds } from '../../support/ad-service.ts';
import { refusal } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

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
