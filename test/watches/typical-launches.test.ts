import fc from 'fast-check';
import { expect } from 'vitest';
import { AdService, createAd } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

const dayMs = 86_400_000;
const firstCheck = Date.parse('2026-11-16T00:00:00Z');
const calls = { maxCredits: 1000 };

/** Creates one ad for each launch time. */
const createLaunchedAds = (times: readonly number[], first = 0) =>
  times.map((at, index) => createAd(first + index, { startedAt: new Date(at).toISOString() }));

/** Returns launch times, two hours apart, for these numbers of launches in the weeks before the first check. */
const listLaunchTimes = (weeks: readonly number[]) =>
  weeks.flatMap((count, week) =>
    Array.from({ length: count }, (_, at) => firstCheck - (weeks.length - week) * 7 * dayMs + (at + 12) * 7_200_000),
  );

const weeks = [4, 5, 2, 9, 5, 3, 6, 7, 4, 5, 3, 8];

test('check_watches compares the number of new ads with the number in a typical week', async ({ upstream, start }) => {
  let clock = firstCheck + 9 * 3_600_000;
  const server = await start({}, { now: () => clock++ });
  const service = new AdService(0);
  upstream.respondWith(service.respond);
  service.ads = createLaunchedAds(listLaunchTimes(weeks));
  for (const filters of [{ q: 'a' }, { active: true }, { not: { startedAtFrom: '2026-01-01' } }])
    await server.call('watch_ads', { name: Object.keys(filters).join(), filters, maxCredits: 500 });
  const first = await server.call('check_watches', calls);
  expect(first.text).not.toContain('started since');
  clock += 7 * dayMs;
  const listedLate = createAd(5000, { startedAt: new Date(firstCheck - 30 * dayMs).toISOString() });
  const started = Array.from({ length: 21 }, (_, at) => firstCheck + at * 6 * 3_600_000);
  service.ads = [...createLaunchedAds(started, 6000), listedLate, ...service.ads];
  const second = await server.call('check_watches', calls);
  const [firstWatch, ...otherWatches] = second.data.watches as { new: string[]; usual?: object }[];
  expect(firstWatch?.new).toHaveLength(22);
  expect(firstWatch?.usual).toEqual({ started: 21, weeks: 8, median: 5, least: 3, most: 8 });
  expect(second.text).toContain(
    'Of 22 new, 21 started since 16 Nov; in the eight weeks before 3 to 8 a week (median 5).',
  );
  // A search for running ads or by date misses ended ads, so its launches cannot be compared.
  expect(otherWatches.map(({ usual }) => usual)).toEqual([undefined, undefined]);
});

test('check_watches names a typical number of ad launches only if it knows at least four weeks', async ({
  upstream,
  start,
}) => {
  for (const [knownDays, isTold] of [
    [weeks.slice(-5), true],
    [weeks.slice(-4), false],
  ] as const) {
    let clock = firstCheck;
    const server = await start({}, { now: () => clock++ });
    const service = new AdService(0);
    upstream.respondWith(service.respond);
    service.ads = createLaunchedAds(listLaunchTimes(knownDays));
    await server.call('watch_ads', { name: 'a', filters: {}, maxCredits: 500 });
    await server.call('check_watches', calls);
    clock += dayMs;
    service.ads = [...createLaunchedAds([clock], 6000), ...service.ads];
    const { data, text } = await server.call('check_watches', calls);
    const [{ usual } = {}] = data.watches as { usual?: object }[];
    const daily = { started: 1, weeks: 4, days: 1, intervals: 34, median: 0, least: 0, most: 8 };
    expect(usual).toEqual(isTold ? daily : undefined);
    expect(text.includes('in the 34 days before 0 to 8 a day (median 0)')).toBe(isTold);
  }
});

test('check_watches compares numbers of ad launches only over periods of equal length', async ({ upstream, start }) => {
  const launchDays = fc.array(fc.integer({ min: 1, max: 130 }), { minLength: 1, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(launchDays, fc.integer({ min: 1, max: 20 }), async (daysBefore, elapsedDays) => {
      let clock = firstCheck;
      const server = await start({}, { now: () => clock++ });
      const service = new AdService(0);
      upstream.respondWith(service.respond);
      service.ads = createLaunchedAds(daysBefore.map((days) => firstCheck - days * dayMs));
      await server.call('watch_ads', { name: 'a', filters: {}, maxCredits: 500 });
      await server.call('check_watches', calls);
      clock += elapsedDays * dayMs;
      const { data } = await server.call('check_watches', calls);
      const [{ usual } = {}] = data.watches as { usual?: Record<string, number> }[];
      const known = Math.floor(Math.max(...daysBefore) / elapsedDays);
      const intervals = Math.min(known, Math.max(8, Math.floor(56 / elapsedDays)));
      if (intervals < Math.max(4, 28 / elapsedDays)) expect(usual).toBeUndefined();
      else {
        const counts = Array.from({ length: intervals }, (_, ago) => {
          const [from, to] = [ago * elapsedDays + 1, (ago + 1) * elapsedDays];
          return daysBefore.filter((days) => days >= from && days <= to).length;
        }).sort((left, right) => left - right);
        const middle = (counts.length - 1) / 2;
        const median = ((counts[Math.floor(middle)] ?? 0) + (counts[Math.ceil(middle)] ?? 0)) / 2;
        expect(usual).toMatchObject({ started: 0, least: counts[0], median, most: counts.at(-1) });
        if (elapsedDays !== 7) expect(usual).toMatchObject({ days: elapsedDays, intervals });
      }
      await server.close();
    }),
    { numRuns: 15 },
  );
}, 120_000);
