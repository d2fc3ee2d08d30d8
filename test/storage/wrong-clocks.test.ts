import { expect, onTestFinished, vi } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { respondWithError } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { openConnection, startHttp } from '../support/http.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const newFolder = createFolderSequence();

const hour = 3_600_000;
const start = Date.parse('2026-11-20T10:00:00Z');
test("setting the computer's clock does not change how long the server trusts an API key", async ({ upstream }) => {
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['Date'] });
  serveAds(upstream, 1);
  const server = await startHttp({ baseUrl: upstream.baseUrl, refusalsPerMinute: 2 });
  const { call, close } = openConnection(server.origin);
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
  upstream.respondWith(respondWithError(401));
  const statuses: number[] = [];
  for (const [index, hours] of [0, -900, 900, 1].entries()) {
    vi.setSystemTime(start + hours * hour);
    statuses.push((await call('whoami', {}, `svc_live_made_up_${index}`)).status);
  }
  expect(statuses).toEqual([200, 200, 429, 429]);
});

test('count_ads ignores stored ads that are dated in the future', async ({ upstream, start: startServer }) => {
  for (const hoursFast of [1, 30, 900]) {
    const files = newFolder();
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
