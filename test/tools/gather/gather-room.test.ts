import { expect } from 'vitest';
import { adOf, serveAds } from '../../support/ad-service.ts';
import { creditStatus, json, refusal } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => {
  upstream.credits = json(creditStatus());
});

test('stops before room runs out, however large the ads turn out to be', async ({ upstream, server }) => {
  const service = serveAds(upstream, 0);
  const body = 'x'.repeat(700_000);
  service.ads = Array.from({ length: 200 }, (_, index) => adOf(index, { unlisted: `${index}${body}` }));
  service.instead = ({ limit }) => (limit > 10 ? refusal(422, { message: 'limit is at most 10' }) : undefined);
  const { data, text } = await server.call('gather_ads', { maxCredits: 1000 });
  expect(data).toMatchObject({ stopped: 'maxAds', complete: false });
  expect(data).not.toHaveProperty('missing');
  expect(text).toMatch(/There is no room for more than 1\d\d ads of one gathering/);
  const kept = await server.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
  expect(kept.data.rows).toEqual([[data.read]]);
});
