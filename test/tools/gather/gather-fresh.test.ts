import { expect } from 'vitest';
import { serveAds } from '../../support/ad-service.ts';
import { refusal } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const hour = 3_600_000;
const all = { maxCredits: 1000, maxAds: 1000 };
test('fresh starts over after a day, and says so; and after one that ended', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-20T10:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 300);
  const first = await server.call('gather_ads', { ...all, maxAds: 100, fresh: true });
  clock += 23 * hour;
  const second = await server.call('gather_ads', { ...all, maxAds: 200, fresh: true });
  expect(second.data).toMatchObject({ gathering: first.data.gathering, read: 200, receipt: { charged: 10 } });
  expect(second.text).not.toContain('started over');
  clock += hour;
  const third = await server.call('gather_ads', { ...all, fresh: true });
  expect(third.data).toMatchObject({ read: 300, complete: true, receipt: { charged: 30 } });
  expect(third.data.gathering).not.toBe(first.data.gathering);
  expect(third.text).toContain('more than a day old, so this one started over');
  const fourth = await server.call('gather_ads', { ...all, fresh: true });
  expect(fourth.data).toMatchObject({ read: 300, complete: true, receipt: { charged: 30 } });
  expect(fourth.text).not.toContain('started over');
  expect(service.charged).toBe(80);
});

test.for([
  ['takes its cursor no more', refusal(422, { message: 'The cursor has expired.' })],
  ['repeats its pages', undefined],
] as const)('fresh starts over where the service %s', async ([, answer], { upstream, server }) => {
  const service = serveAds(upstream, 300);
  await server.call('gather_ads', { ...all, maxAds: 100, fresh: true });
  if (answer) service.instead = ({ cursor }) => (cursor ? answer : undefined);
  else service.change = (page) => ({ ...page, items: service.ads.slice(0, 100), cursor: '100', hasMore: true });
  expect((await server.call('gather_ads', { ...all, fresh: true })).data).toMatchObject({
    read: 100,
    stopped: 'error',
  });
  service.instead = () => undefined;
  service.change = (page) => page;
  const { data } = await server.call('gather_ads', { ...all, fresh: true });
  expect(data).toMatchObject({ read: 300, complete: true, receipt: { charged: 30 } });
});

test('fresh reads a part anew that a call of several parts has read to its end', async ({ upstream, start }) => {
  const server = await start({ cacheSeconds: 0 });
  const service = serveAds(upstream, 150);
  const split = [{ part: 1 }, { part: 2 }];
  await server.call('gather_ads', { ...all, split, maxCredits: 17, fresh: true });
  service.ads = service.ads.slice(1);
  const { data } = await server.call('gather_ads', { ...all, filters: split[0], fresh: true });
  expect(data).toMatchObject({ read: 149, complete: true, gone: [expect.any(String)], receipt: { charged: 15 } });
});

test('fresh does not take what another call went on with for fresh', async ({ upstream, start }) => {
  const server = await start({ cacheSeconds: 0 });
  const service = serveAds(upstream, 300);
  await server.call('gather_ads', { ...all, maxAds: 100 });
  service.ads = service.ads.map((ad) => ({ ...ad, headline: 'Another offer' }));
  const [, fresh] = await Promise.all([
    server.call('gather_ads', all),
    server.call('gather_ads', { ...all, fresh: true }),
  ]);
  expect(fresh.data).toMatchObject({ read: 300, complete: true, receipt: { charged: 30 } });
  const sql = "SELECT count(*) FROM ads WHERE headline = 'Another offer'";
  expect((await server.call('query_ads', { sql })).data.rows).toEqual([[300]]);
});

test('a clock that was fast does not keep fresh from reading', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-20T10:00:00Z');
  const server = await start({ cacheSeconds: 0 }, { now: () => clock++ });
  const service = serveAds(upstream, 150);
  clock += 5 * hour;
  const ahead = await server.call('gather_ads', all);
  clock -= 5 * hour;
  service.ads = [adWithText(service.ads[0]), ...service.ads.slice(2)];
  const { data } = await server.call('gather_ads', { ...all, fresh: true });
  expect(data).toMatchObject({ read: 149, complete: true, receipt: { charged: 15 } });
  expect(data.gathering).not.toBe(ahead.data.gathering);
  expect(data.gone).toHaveLength(1);
  expect((await server.call('gather_ads', all)).data).toMatchObject({
    gathering: data.gathering,
    receipt: { calls: 0 },
  });
});

const adWithText = (ad?: { id: string }) => ({ id: '', ...ad, body: 'Another text' });
