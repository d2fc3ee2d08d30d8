import { describe, expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();
upstreamTest.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const shares = { sql: 'SELECT displayFormat, count(*) FROM ads GROUP BY 1' };

describe('coverage names the ads that are in no newest gathering', () => {
  test('since only a search brought them', async ({ server }) => {
    const { data: gathered } = await server.call('gather_ads', {
      filters: { countries: ['DE'], displayFormat: ['VIDEO'] },
      maxCredits: 50,
    });
    const covered = await server.call('query_ads', shares);
    expect(covered.data.coverage).toEqual({ ads: 59, gatherings: 1 });
    expect(covered.text).toContain('Coverage: 59 ads; every gathering is complete.');
    await server.call('search_ads', { filters: { displayFormat: ['IMAGE'] }, limit: 20 });
    const { data, text } = await server.call('query_ads', shares);
    expect(data.coverage).toEqual({ ads: 79, gatherings: 1, outsideAds: 20 });
    expect(text).toContain('79 ads, 20 of them only from searches or earlier gatherings');
    const inside = await server.call('query_ads', {
      sql: `SELECT count(*) FROM ads JOIN gathered ON adId = id WHERE gatheringId = '${gathered.gathering}'`,
    });
    expect(inside.data.rows).toEqual([[59]]);
    const exported = await server.call('export_ads', {});
    expect(exported.text).toContain('20 of them only from searches');
    const note = await server.client.readResource({ uri: exported.data.methods as string });
    expect(note.contents[0]).toHaveProperty('text', expect.stringContaining('20 of the ads came only from searches'));
  });

  upstreamTest('since they are not found any more', async ({ upstream, start }) => {
    let clock = Date.parse('2026-11-20T10:00:00Z');
    const server = await start({}, { now: () => clock++ });
    const service = serveAds(upstream, 30);
    const split = { split: [{ query: 'a' }, { query: 'b' }], maxCredits: 100 };
    await server.call('gather_ads', split);
    service.ads = service.ads.slice(4);
    await server.call('gather_ads', { ...split, fresh: true });
    const { data, text } = await server.call('query_ads', shares);
    expect(data.coverage).toMatchObject({ ads: 30, outsideAds: 4 });
    expect(text).toContain('30 ads, 4 of them only from searches or earlier gatherings');
  });
});
