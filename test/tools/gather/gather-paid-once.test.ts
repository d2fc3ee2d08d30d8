import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { expect } from 'vitest';
import { type AdService, serveAds } from '../../support/ad-service.ts';
import { documented, type Upstream } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';
import { gateOf } from '../../support/gate.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const all = { maxCredits: 1000, maxAds: 1000 };
const folder = temporaryFolder();

/** A service that is left while it answers: paid for, and sent a little later. */
function leftAt(upstream: Pick<Upstream, 'does'>, ads: number, leave: (search: number) => boolean): AdService {
  const service = serveAds(upstream, ads);
  upstream.does((request, response, body) => {
    const isLeft = request.url?.endsWith('/search') && leave(service.searches.length + 1);
    if (isLeft) setTimeout(() => service.behaviour(request, response, body), 30);
    else service.behaviour(request, response, body);
  });
  return service;
}

const limits = fc.record({
  ads: fc.integer({ min: 120, max: 450 }),
  maxAds: fc.array(fc.integer({ min: 1, max: 450 }), { minLength: 1, maxLength: 4 }),
  cacheSeconds: fc.constantFrom(0, 900),
  fresh: fc.boolean(),
  /** Whether the next call comes before the page does. */
  isSoon: fc.boolean(),
  isSplit: fc.boolean(),
});

test('a page that was paid for is a step, at whichever page the call was cancelled', { timeout: 120_000 }, async ({
  upstream,
  start,
}) => {
  await fc.assert(
    fc.asyncProperty(limits, fc.integer({ min: 1, max: 4 }), async (given, page) => {
      const { ads, maxAds, cacheSeconds, fresh, isSoon, isSplit } = given;
      const server = await start({ cacheSeconds });
      let host = new AbortController();
      let isFirst = true;
      const service = leftAt(upstream, ads, (search) => {
        const isLeft = isFirst && search >= page;
        if (isLeft) host.abort();
        return isLeft;
      });
      service.matching = ({ half }) => service.ads.filter((_, index) => half === undefined || index % 2 === half);
      const question = isSplit ? { split: [{ half: 0 }, { half: 1 }] } : {};
      for (const most of [...maxAds, 1000]) {
        host = new AbortController();
        const request = { ...question, maxCredits: 1000, maxAds: most, fresh };
        const result = await server.call('gather_ads', request, { signal: host.signal }).catch(() => undefined);
        // Once that is returned, fresh begins anew.
        if (result?.data.complete) break;
        isFirst = false;
        if (!isSoon) await wait(60);
      }
      const { data } = await server.call('gather_ads', { ...question, ...all });
      expect(data).toMatchObject({ read: ads, complete: true });
      expect(service.served).toBe(ads);
      const sql = `SELECT charged FROM gatherings WHERE id = '${data.gathering}'`;
      expect((await server.call('query_ads', { sql })).data.rows).toEqual([[service.charged]]);
      await server.close();
    }),
    { numRuns: 20 },
  );
});

test('a page that came too late is a step', async ({ upstream, start }) => {
  const server = await start({ cacheSeconds: 0, timeoutMs: 3000 });
  const service = serveAds(upstream, 300);
  const gate = gateOf();
  upstream.does(async (request, response, body) => {
    if (service.searches.length === 0) await wait(400);
    if (service.searches.length === 1) await gate.opened;
    service.behaviour(request, response, body);
  });
  const first = await server.call('gather_ads', { ...all, maxAds: 250 });
  expect(first.data).toMatchObject({ read: 100, stopped: 'deadline' });
  const second = server.call('gather_ads', all);
  gate.open();
  expect((await second).data).toMatchObject({ read: 300, complete: true });
  expect(service.served).toBe(300);
});

const part = fc.constantFrom({ half: 0 }, { half: 1 }, {}, { third: 0 }, { third: 1 });

test('a part is read once, however often it is named, and whoever else reads it', { timeout: 120_000 }, async ({
  upstream,
  start,
}) => {
  const split = fc.array(part, { minLength: 1, maxLength: 6 });
  const calls = fc.array(split, { minLength: 1, maxLength: 3 });
  const options = { ads: fc.integer({ min: 0, max: 350 }), areAtOnce: fc.boolean() };
  await fc.assert(
    fc.asyncProperty(fc.record({ calls, ...options }), async ({ calls, ads, areAtOnce }) => {
      const server = await start({ cacheSeconds: 0 });
      const service = serveAds(upstream, ads);
      service.matching = ({ half, third }) =>
        service.ads.filter(
          (_, index) => (half === undefined || index % 2 === half) && (third === undefined || index % 3 === third),
        );
      const results = [];
      const ask = (split: object[]) => server.call('gather_ads', { ...all, split });
      if (areAtOnce) results.push(...(await Promise.all(calls.map(ask))));
      else for (const split of calls) results.push(await ask(split));
      const distinct = new Map(calls.flat().map((filters) => [JSON.stringify(filters), filters]));
      const sizes = [...distinct.values()].map((filters) => service.matching(filters).length);
      expect(service.served).toBe(sizes.reduce((sum, size) => sum + size, 0));
      for (const [index, { data }] of results.entries()) {
        const own = new Map(calls[index]?.map((filters) => [JSON.stringify(filters), filters]));
        const found = [...own.values()].reduce((sum, filters) => sum + service.matching(filters).length, 0);
        const ids = new Set([...own.values()].flatMap((filters) => service.matching(filters).map(({ id }) => id)));
        expect(data).toMatchObject({ found, read: ids.size, complete: true });
      }
      await server.close();
    }),
    { numRuns: 20 },
  );
});

test('of several processes that use a folder, one reads a part at a time', { timeout: 120_000 }, async ({
  upstream,
  start,
}) => {
  const calls = fc.array(fc.record({ process: fc.nat(2), split: fc.array(part, { minLength: 1, maxLength: 3 }) }), {
    minLength: 2,
    maxLength: 5,
  });
  let folders = 0;
  await fc.assert(
    fc.asyncProperty(calls, fc.integer({ min: 0, max: 350 }), async (calls, ads) => {
      const files = join(folder, `${++folders}`);
      const servers = await Promise.all([0, 1, 2].map(() => start({ files, cacheSeconds: 0 })));
      const service = serveAds(upstream, ads);
      service.matching = ({ half, third }) =>
        service.ads.filter(
          (_, index) => (half === undefined || index % 2 === half) && (third === undefined || index % 3 === third),
        );
      upstream.does((request, response, body) =>
        (request.url?.endsWith('/whoami') ? documented : service.behaviour)(request, response, body),
      );
      const results = await Promise.all(
        calls.map(({ process, split }) => servers[process]?.call('gather_ads', { ...all, split })),
      );
      for (const result of results) expect(result?.data).toMatchObject({ complete: true });
      const distinct = new Map(calls.flatMap(({ split }) => split.map((one) => [JSON.stringify(one), one])));
      const sizes = [...distinct.values()].map((filters) => service.matching(filters).length);
      expect(service.served).toBe(sizes.reduce((sum, size) => sum + size, 0));
      for (const server of servers) await server.close();
      expect(await readdir(join(files, 'turns'))).toEqual([]);
    }),
    { numRuns: 8 },
  );
});
