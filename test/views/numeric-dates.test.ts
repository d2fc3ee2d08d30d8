import { expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

test('a last-seen date that is a number counts as unknown in lists and counts', async ({ upstream, server }) => {
  const service = serveAds(upstream, 0);
  service.ads = [createAd(0, { startedAt: '2026-03-01', lastSeenAt: 1_770_000_000 })];
  const { text, data } = await server.call('search_ads', { filters: { q: 'a' }, limit: 1 });
  expect(text).toContain('since 2026-03-01');
  expect(text).not.toContain('1970');
  expect(data.items[0]).not.toHaveProperty('lastSeen');
  const count = await server.call('count_ads', { filters: { active: true } });
  expect(count.text).toContain('the ad that it sent: no last-seen date');
});
