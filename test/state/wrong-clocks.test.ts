import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { creditStatus, json, refusal, usage } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { keepAlive, startHttp } from '../support/http.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const root = temporaryFolder();
let folders = 0;

const hour = 3_600_000;
const start = Date.parse('2026-11-20T10:00:00Z');
/** How wrong a clock is, in hours. */
const wrong = fc.integer({ min: -1000, max: 1000 });

test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

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
          time = start + hours * hour;
          passed += 1000 * seconds;
          const before = upstream.requests.length;
          expect((await server.call('search_ads')).error).toMatchObject({ kind: 'usage_limit' });
          const isAsked = passed - askedAt >= 60_000;
          if (isAsked) askedAt = passed;
          expect(upstream.requests.length - before).toBe(Number(isAsked));
        }
        await server.close();
      }),
      { numRuns: 8, endOnFailure: true },
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
      vi.setSystemTime(start + hours * hour);
      await call('query_ads', { sql: 'select 1' });
    }
    expect(upstream.requests.filter(({ path }) => path === '/v1/whoami')).toHaveLength(1);
    upstream.does(refusal(401));
    const statuses: number[] = [];
    for (const [index, hours] of [0, -900, 900, 1].entries()) {
      vi.setSystemTime(start + hours * hour);
      statuses.push((await call('whoami', {}, `svc_live_made_up_${index}`)).status);
    }
    expect(statuses).toEqual([200, 200, 429, 429]);
  });
});

test('a gathering of the future answers for no count', async ({ upstream, start: startServer }) => {
  for (const hoursFast of [1, 30, 900]) {
    const files = join(root, `${++folders}`);
    const open = (hours: number) => startServer({ files }, { now: () => start + hours * hour });
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
