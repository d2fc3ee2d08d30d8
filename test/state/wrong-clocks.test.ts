import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { type AdService, adOf, serveAds } from '../support/ad-service.ts';
import { creditStatus, json, refusal, usage } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { keepAlive, startHttp } from '../support/http.ts';
import type { TestServer } from '../support/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { writeOlder } from './files/older-folder.ts';

const test = freshUpstreamTest();
const root = temporaryFolder();
let folders = 0;

const HOUR = 3_600_000;
const start = Date.parse('2026-11-20T10:00:00Z');
/** How wrong a clock is, in hours. */
const wrong = fc.integer({ min: -1000, max: 1000 });

test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const [ad] = [adOf(0)];
const rowsOf = async (server: TestServer, sql: string) =>
  (await server.call('query_ads', { sql })).data.rows as unknown[][];

/** What a server knows of the ad. */
async function known(server: TestServer) {
  const seen = (await server.call('get_ad', { adId: ad.id, seen: true })).data;
  const [[newest] = []] = await rowsOf(server, 'select headline from ads');
  const earlier = await rowsOf(server, "select json ->> 'headline' from ad_versions");
  return {
    seen: seen.ad.headline,
    newest,
    charged: seen.receipt.charged,
    earlier: earlier.map(([headline]) => headline),
  };
}

const change = (service: AdService, headline: string) => {
  service.ads = [adOf(0, { headline })];
};

const ask = async (server: TestServer, tool: string, args = {}) =>
  expect((await server.call(tool, { fresh: true, ...args })).isError).toBe(false);

/** The clock is set, and time goes on. */
const moments = fc.array(fc.record({ hours: wrong, seconds: fc.integer({ min: 0, max: 600 }) }), {
  minLength: 3,
  maxLength: 8,
});

describe('a clock that is set while a server runs changes neither', () => {
  test('how long a full window is trusted', async ({ upstream, start: startServer }) => {
    await fc.assert(
      fc.asyncProperty(moments, async (steps) => {
        const service = serveAds(upstream, 1);
        upstream.credits = json(creditStatus(usage(400)));
        service.instead = () => refusal(429);
        let [time, passed] = [start, 0];
        const server = await startServer({ cacheSeconds: 0 }, { now: () => time, elapsed: () => passed });
        await server.call('search_ads');
        let askedAt = 0;
        for (const { hours, seconds } of steps) {
          time = start + hours * HOUR;
          passed += 1000 * seconds;
          const before = upstream.requests.length;
          expect((await server.call('search_ads')).error).toMatchObject({ kind: 'usage_limit' });
          const isAsked = passed - askedAt >= 60_000;
          if (isAsked) askedAt = passed;
          expect(upstream.requests.length - before).toBe(Number(isAsked));
        }
        await server.close();
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  test('nor how long a key counts as known over HTTP, nor how many unknown ones may be tried', async ({ upstream }) => {
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['Date'] });
    serveAds(upstream, 1);
    const server = await startHttp({ baseUrl: upstream.baseUrl, refusalsPerMinute: 2 });
    const { call, close } = keepAlive(server.origin);
    onTestFinished(async () => {
      close();
      await server.close();
    });
    await call('whoami');
    for (const hours of [-1000, 700, 2]) {
      vi.setSystemTime(start + hours * HOUR);
      await call('query_ads', { sql: 'select 1' });
    }
    expect(upstream.requests.filter(({ path }) => path === '/v1/whoami')).toHaveLength(1);
    upstream.does(refusal(401));
    const statuses: number[] = [];
    for (const [index, hours] of [0, -900, 900, 1].entries()) {
      vi.setSystemTime(start + hours * HOUR);
      statuses.push((await call('whoami', {}, `svc_live_made_up_${index}`)).status);
    }
    expect(statuses).toEqual([200, 200, 429, 429]);
  });
});

test('a gathering of the future answers for no count', async ({ upstream, start: startServer }) => {
  for (const hoursFast of [1, 30, 900]) {
    const files = join(root, `${++folders}`);
    const open = (hours: number) => startServer({ files }, { now: () => start + hours * HOUR });
    const service = serveAds(upstream, 3);
    const fast = await open(hoursFast);
    await fast.call('gather_ads', { maxCredits: 50 });
    await fast.close();
    service.ads = service.ads.slice(0, 1);
    const right = await open(0);
    expect((await right.call('count_ads', { split: [{ query: 'tea' }] })).data.total).toBe(1);
    await right.close();
  }
});

test('a folder of the version before, which knew only times, is read, and what comes now is newer', async ({
  upstream,
  start: startServer,
}) => {
  const files = join(root, `${++folders}`);
  const open = (hours: number) => startServer({ files }, { now: () => start + hours * HOUR });
  const service = serveAds(upstream, 1);
  for (const [hours, headline] of [
    [0, 'first'],
    [40, 'second'],
  ] as const) {
    const server = await open(hours);
    change(service, headline);
    await ask(server, 'gather_ads', { maxCredits: 50 });
    await server.close();
  }
  const [name = ''] = await readdir(join(files, 'accounts'));
  const [, ...lines] = (await readFile(join(files, 'accounts', name), 'utf8')).trim().split('\n');
  await rm(join(files, 'accounts'), { recursive: true });
  const older = lines.map((line) => {
    const record = JSON.parse(line);
    for (const added of ['order', 'sinceOrder', 'firstOrder', 'answerOrder', 'step', 'listed', 'fresh'])
      delete record[added];
    return JSON.stringify(record);
  });
  await writeOlder(join(files, 'datasets', name.slice(0, -'.jsonl'.length)), older.reverse());
  const server = await open(-500);
  expect(await known(server)).toEqual({ seen: 'second', newest: 'second', charged: 0, earlier: ['first'] });
  change(service, 'third');
  await ask(server, 'search_ads');
  expect(await known(server)).toMatchObject({ seen: 'third', newest: 'third', earlier: ['first', 'second'] });
  expect(await rowsOf(server, 'select complete from gatherings')).toEqual([[1], [1]]);
});
