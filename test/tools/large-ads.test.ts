import { expect } from 'vitest';
import { adOf, serveAds } from '../support/ad-service.ts';
import { creditStatus, json, refusal } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
test.beforeEach(({ upstream }) => {
  upstream.credits = json(creditStatus());
});

test('large ads are gathered as far as there is room, and SQL reads all of them', async ({ upstream, server }) => {
  const service = serveAds(upstream, 0);
  // One letter beyond Latin-1 doubles the memory of the whole text.
  const unlisted = `ж${'x'.repeat(480_000)}`;
  service.ads = Array.from({ length: 260 }, (_, index) => adOf(index, { unlisted }));
  service.instead = ({ limit }) => (limit > 10 ? refusal(422, { message: 'limit is at most 10' }) : undefined);
  const { data, text } = await server.call('gather_ads', { maxCredits: 1000 });
  expect(data).toMatchObject({ stopped: 'maxAds', complete: false });
  expect(data).not.toHaveProperty('missing');
  expect(text).toMatch(/There is no room for more than 2\d\d ads of one gathering/);
  const kept = await server.call('query_ads', { sql: "SELECT count(*), count(json ->> 'unlisted') FROM ads" });
  expect(kept.data.rows).toEqual([[data.read, data.read]]);
});
