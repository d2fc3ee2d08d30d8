import fc from 'fast-check';
import { expect } from 'vitest';
import { adOf, serveAds } from '../../support/ad-service.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const all = { maxCredits: 1000, maxAds: 1000 };
const day = 86_400_000;

test('the oldest part dates the whole, wherever a date is shown', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-01T10:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 20);
  service.matching = ({ half }) => service.ads.filter((_, index) => index % 2 === half);
  await server.call('gather_ads', { ...all, filters: { half: 0 } });
  clock += 20 * day;
  const { data, text } = await server.call('gather_ads', { ...all, split: [{ half: 0 }, { half: 1 }] });
  expect(data).toMatchObject({ read: 20, complete: true, gatheredAt: expect.stringMatching(/^2026-11-01T10:00/) });
  expect(text).toContain('complete, last read 2026-11-01 10:00 UTC');
  const sql = `SELECT substr(gatheredAt, 1, 10) FROM gatherings WHERE id = '${data.gathering}'`;
  expect((await server.call('query_ads', { sql })).data.rows).toEqual([['2026-11-01']]);
});

test('what is read while many others are kept is held to its end', { timeout: 180_000 }, async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 250);
  service.matching = ({ one }) => (one === undefined ? service.ads : service.ads.slice(0, 1));
  const old = { filters: { one: 'old' } };
  await server.call('gather_ads', { ...all, ...old });
  await server.call('gather_ads', { ...all, maxAds: 100 });
  for (let one = 0; one < 498; one++) await server.call('gather_ads', { ...all, filters: { one } });
  const split = [{ one: 'old' }, {}, { one: 'new' }];
  const { data } = await server.call('gather_ads', { ...all, split });
  expect(data).toMatchObject({ found: 252, read: 250, complete: true, stopped: 'end' });
  const sql = 'SELECT count(*), (SELECT count(*) FROM gathered JOIN gatherings ON id = gatheringId WHERE read = 250)';
  expect((await server.call('query_ads', { sql: `${sql} FROM gatherings` })).data.rows).toEqual([[500, 500]]);
});

test('counts every ad that changed since the earlier gathering, whoever saw it first', { timeout: 120_000 }, async ({
  upstream,
  start,
}) => {
  const change = fc.record({
    ad: fc.nat(119),
    field: fc.constantFrom('body', 'headline', 'lastSeenAt', 'appUrl', 'media'),
    seenBy: fc.constantFrom('search_ads', 'other gathering', 'nobody'),
    hours: fc.integer({ min: -50, max: 50 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (changes) => {
      let clock = Date.parse('2026-11-20T10:00:00Z');
      const server = await start({}, { now: () => clock++ });
      const service = serveAds(upstream, 120);
      const media = [{ type: 'IMG', url: 'https://cdn.example/1.png?s=0' }];
      service.ads = service.ads.map((ad) => ({ ...ad, media }));
      await server.call('gather_ads', all);
      const changed = new Set<number>();
      for (const [number, { ad, field, seenBy, hours }] of changes.entries()) {
        clock += hours * 3_600_000;
        const signed = [{ type: 'IMG', url: `https://cdn.example/1.png?s=${number + 1}` }];
        const value = field === 'media' ? signed : `https://app.example/${number}`;
        service.ads = service.ads.map((one, index) => (index === ad ? { ...one, [field]: value } : one));
        if (field === 'body' || field === 'headline') changed.add(ad);
        if (seenBy === 'search_ads') await server.call('search_ads', { limit: 100, fresh: true });
        if (seenBy === 'other gathering') await server.call('gather_ads', { ...all, filters: { number } });
      }
      clock += day;
      const { data } = await server.call('gather_ads', { ...all, fresh: true });
      expect(data).toMatchObject({ sinceLast: { fresh: 0, updated: changed.size, gone: 0 } });
      await server.close();
    }),
    { numRuns: 15 },
  );
});

test('a total below what was read is not believed', async ({ upstream, server }) => {
  const service = serveAds(upstream, 30);
  service.change = (page) => ({ ...page, totalHits: 29 });
  const { data, text } = await server.call('gather_ads', all);
  expect(data).toMatchObject({ found: null, read: 30, complete: true });
  expect(text).toContain('total not stated');
  expect((await server.call('count_ads', {})).data.total).toBe(30);
});

test('count_ads takes no total for an answer that is below what came with it', async ({ upstream, server }) => {
  const service = serveAds(upstream, 30);
  service.change = (page) => ({ ...page, totalHits: 0 });
  const { data, text } = await server.call('count_ads', {});
  expect(data.total).toBeNull();
  expect(text).toContain('does not say how many ads match');
});

test('parts that list the same ads are read as far as all of them can be kept', { timeout: 240_000 }, async ({
  upstream,
  start,
}) => {
  const server = await start({ cacheSeconds: 0, timeoutMs: 200_000 });
  const service = serveAds(upstream, 0);
  service.ads = Array.from({ length: 9900 }, (_, index) => ({ id: adOf(index).id }));
  const request = { split: Array.from({ length: 14 }, (_, one) => ({ one })), maxAds: 10_000, maxCredits: 100_000 };
  const { data, text } = await server.call('gather_ads', request);
  expect(data).toMatchObject({ read: 9900, complete: false, stopped: 'maxAds' });
  expect(text).toContain('There is no room for more than 100000 ads of one gathering, counted in each of its parts.');
  const { served } = service;
  await server.call('gather_ads', request);
  expect(service.served).toBe(served);
  const sql = `SELECT count(*) FROM gatherings WHERE read = 9900 AND complete`;
  expect((await server.call('query_ads', { sql })).data.rows).toEqual([[Math.floor(served / 9900)]]);
});
