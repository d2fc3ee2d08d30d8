import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { elapsed } from '../../src/app.ts';
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

/** Each opens servers and asks them with SQL. */
const runs = { numRuns: 4, endOnFailure: true };

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

/** What came, in the order it came. */
class Came {
  readonly headlines: string[] = [];

  add(headline: string): void {
    if (this.headlines.at(-1) !== headline) this.headlines.push(headline);
  }

  get expected() {
    const newest = this.headlines.at(-1);
    return { seen: newest, newest, charged: 0, earlier: this.headlines.slice(-11, -1) };
  }
}

const change = (service: AdService, headline: string) => {
  service.ads = [adOf(0, { headline })];
};

const ways = fc.constantFrom('search_ads', 'get_ad', 'gather_ads');

const ask = async (server: TestServer, way: string) => {
  const { isError } = await server.call(
    way,
    way === 'get_ad' ? { adId: ad.id, fresh: true } : { fresh: true, ...(way === 'gather_ads' && { maxCredits: 50 }) },
  );
  expect(isError).toBe(false);
};

describe('what came last is the newest, whatever the clocks say', () => {
  test('in one process', async ({ upstream, start: startServer }) => {
    const asked = fc.record({ hours: wrong, headline: fc.constantFrom('a', 'b', 'c'), way: ways });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 3, maxLength: 8 }), async (steps) => {
        const service = serveAds(upstream, 1);
        const came = new Came();
        let time = start;
        const server = await startServer({}, { now: () => time++, elapsed });
        for (const { hours, headline, way } of steps) {
          time = start + hours * HOUR;
          change(service, headline);
          await ask(server, way);
          came.add(headline);
        }
        expect(await known(server)).toMatchObject(came.expected);
        await server.close();
      }),
      runs,
    );
  }, 120_000);

  test('in a folder, over restarts and several processes', async ({ upstream, start: startServer }) => {
    const asked = fc.record({
      process: fc.nat({ max: 1 }),
      hours: fc.option(wrong, { nil: undefined }),
      headline: fc.constantFrom('a', 'b', 'c'),
      way: ways,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 3, maxLength: 8 }), async (steps) => {
        const service = serveAds(upstream, 1);
        const came = new Came();
        const files = join(root, `${++folders}`);
        let tick = 0;
        const open = (hours = 0) => startServer({ files }, { now: () => start + hours * HOUR + tick++, elapsed });
        const servers = [await open(), await open()];
        for (const { process, hours, headline, way } of steps) {
          if (hours !== undefined) {
            await servers[process]?.close();
            servers[process] = await open(hours);
          }
          change(service, headline);
          await ask(servers[process] as TestServer, way);
          came.add(headline);
        }
        for (const server of servers) {
          expect(await known(server)).toMatchObject(came.expected);
          await server.close();
        }
      }),
      runs,
    );
  }, 120_000);
});

/** The clock is set, and time goes on. */
const moments = fc.array(fc.record({ hours: wrong, seconds: fc.integer({ min: 0, max: 600 }) }), {
  minLength: 3,
  maxLength: 8,
});

describe('a clock that is set while a server runs changes', () => {
  test('neither how long an answer is kept, nor its age', async ({ upstream, start: startServer }) => {
    await fc.assert(
      fc.asyncProperty(moments, async (steps) => {
        const service = serveAds(upstream, 1);
        let [time, passed] = [start, 0];
        const server = await startServer({}, { now: () => time, elapsed: () => passed });
        await server.call('search_ads');
        let keptAt = 0;
        for (const { hours, seconds } of steps) {
          time = start + hours * HOUR;
          passed += 1000 * seconds;
          const isKept = passed - keptAt < 900_000;
          if (!isKept) keptAt = passed;
          const { data, text } = await server.call('search_ads');
          expect(data.receipt).toMatchObject({ cached: isKept });
          const age = passed - keptAt;
          if (isKept && age >= 1000) expect(text).toContain(age < 120_000 ? `${age / 1000} s ago` : 'min ago');
        }
        expect(service.charged).toBe(service.searches.length);
        await server.close();
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  test('nor what is left of a budget', async ({ upstream, start: startServer }) => {
    const budgets = fc.record({ creditBudget: fc.integer({ min: 5, max: 40 }), steps: moments });
    await fc.assert(
      fc.asyncProperty(budgets, async ({ creditBudget, steps }) => {
        const service = serveAds(upstream, 1);
        service.price = () => 5;
        let [time, passed] = [start, 0];
        const options = { now: () => time, elapsed: () => passed };
        const server = await startServer({ creditBudget, cacheSeconds: 0 }, options);
        for (const { hours, seconds } of [...steps, ...steps, ...steps]) {
          time += hours * HOUR;
          passed += 1000 * seconds;
          await server.call('search_ads');
          expect(service.charged).toBeLessThanOrEqual(creditBudget);
          const { thisServer } = (await server.call('get_credits')).data;
          expect(thisServer.charged).toBe(service.charged);
        }
        expect(service.charged).toBe(5 * Math.min(Math.floor(creditBudget / 5), 3 * steps.length));
        await server.close();
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  test('nor how long a full window is trusted', async ({ upstream, start: startServer }) => {
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
  const came = new Came();
  for (const [hours, headline] of [
    [0, 'first'],
    [40, 'second'],
  ] as const) {
    const server = await open(hours);
    change(service, headline);
    await ask(server, 'gather_ads');
    came.add(headline);
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
  expect(await known(server)).toMatchObject(came.expected);
  change(service, 'third');
  await ask(server, 'search_ads');
  came.add('third');
  expect(await known(server)).toMatchObject(came.expected);
  expect(await rowsOf(server, 'select complete from gatherings')).toEqual([[1], [1]]);
});
