import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { createUuid, startLibraryServer, testStartTime } from './support/library-server.ts';

const libraryServer = await startLibraryServer();
afterAll(() => libraryServer.close());
await libraryServer.importRecords(
  ...Array.from({ length: 45 }, (_, at) => ({ id: createUuid(at), pageId: `page-${at}` })),
);

const readCredits = async (key: string) => (await libraryServer.get('/v1/credits', key)).body;
const readAd = (key: string) => libraryServer.get(`/v1/ads/${createUuid(1)}`, key);
const search = (key: string, body: object) => libraryServer.search(body, { key });
const readCharge = ({ headers }: { headers: Headers }) => Number(headers.get('x-service-credits-charged'));

test.each([1, 10, 11, 45])(
  'a search in the local library that returns %i items costs one credit per ten items',
  async (limit) => {
    const price = Math.ceil(limit / 10);
    const key = libraryServer.createKey({ credits: 100 });
    const answer = await search(key, { limit });
    expect(readCharge(answer)).toBe(price);
    expect(answer.headers.get('x-service-credits-remaining')).toBe(String(100 - price));
    expect(await readCredits(key)).toMatchObject({ credits: 100 - price, creditsMax: 100 });
    expect(readCharge(await search(key, { query: 'nowhere' }))).toBe(0);
  },
);

test('the charges of concurrent calls to the local library add up to the decrease in the credit balance', async () => {
  const calls: Record<string, (key: string) => ReturnType<typeof readAd>> = {
    ad: readAd,
    page: (key) => libraryServer.get('/v1/pages/page-1', key),
    small: (key) => search(key, { limit: 5 }),
    large: (key) => search(key, { limit: 35 }),
    empty: (key) => search(key, { query: 'nowhere' }),
    missing: (key) => libraryServer.get(`/v1/ads/${createUuid(99)}`, key),
    wrong: (key) => libraryServer.get('/v1/ads/x', key),
  };
  const names = fc.array(fc.constantFrom(...Object.keys(calls)), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(names, fc.nat(30), fc.nat(30), async (callNames, creditsMax, hourlyLimit) => {
      const key = libraryServer.createKey({ credits: creditsMax, hourlyLimit });
      const answers = await Promise.all(callNames.map((name) => calls[name]?.(key)));
      for (const answer of answers)
        if (answer?.status !== 200) expect(answer?.headers.has('x-service-credits-charged')).toBe(false);
      const total = answers.reduce((sum, answer) => sum + (answer ? readCharge(answer) : 0), 0);
      expect(total).toBeLessThanOrEqual(Math.min(creditsMax, hourlyLimit));
      expect(await readCredits(key)).toMatchObject({
        credits: creditsMax - total,
        usageLimit: { hourlyCredits: total },
      });
    }),
    { numRuns: 30 },
  );
});

test('the hourly usage limit of the local library resets on the hour, and the daily limit resets at midnight UTC', async () => {
  const key = libraryServer.createKey({ hourlyLimit: 2, dailyLimit: 3 });
  const expectations: [time: number, status: number, limitType?: string][] = [
    [testStartTime, 200],
    [testStartTime + 1, 200],
    [Date.UTC(2026, 2, 15, 10, 59, 59, 999), 429, 'hourly'],
    [Date.UTC(2026, 2, 15, 11), 200],
    [Date.UTC(2026, 2, 15, 12), 429, 'daily'],
    [Date.UTC(2026, 2, 15, 23, 59, 59, 999), 429, 'daily'],
    [Date.UTC(2026, 2, 16), 200],
  ];
  for (const [time, expected, limitType] of expectations) {
    libraryServer.clock.now = time;
    const { status, body } = await readAd(key);
    expect([status, body.error?.details.usageLimit.limitType]).toEqual([expected, limitType]);
    if (limitType === 'hourly')
      expect((await readCredits(key)).usageLimit).toEqual({
        ...{ isLimitReached: true, limitType, hourlyCredits: 2, hourlyLimit: 2, dailyCredits: 2, dailyLimit: 3 },
      });
  }
  libraryServer.clock.now = testStartTime;
});

test('the local library refills the credit balance of an account at the start of each month', async () => {
  const key = libraryServer.createKey({ credits: 1 });
  expect((await readAd(key)).status).toBe(200);
  const { error } = (await readAd(key)).body;
  expect(error).toMatchObject({ code: 'credits_exhausted', details: { credits: 0, price: 1 } });
  const [periodStart, periodEnd] = [Date.UTC(2026, 2) / 1000, Date.UTC(2026, 3) / 1000];
  expect(await readCredits(key)).toMatchObject({ periodStart, periodEnd });
  libraryServer.clock.now = Date.UTC(2026, 3);
  expect((await readAd(key)).headers.get('x-service-credits-remaining')).toBe('0');
  libraryServer.clock.now = testStartTime;
});

test('an account of the local library without a subscription has neither a billing period nor a credit balance', async () => {
  const key = libraryServer.createKey({ subscription: false });
  const noSubscription = { planId: null, periodStart: null, periodEnd: null, credits: null, creditsMax: null };
  expect(await readCredits(key)).toMatchObject(noSubscription);
  const { body } = await libraryServer.get('/v1/whoami', key);
  expect(body.user).toMatchObject({ planId: 'none', subscriptionStatus: 'none' });
});

test('calls to the local library with an unmetered API key cost nothing', async () => {
  const key = libraryServer.createKey({ unmetered: true });
  libraryServer.library.context.database.run('UPDATE accounts SET creditsMax = 0, hourlyLimit = 0, dailyLimit = 0');
  for (const answer of [await readAd(key), await search(key, {})])
    expect([answer.status, readCharge(answer)]).toEqual([200, 0]);
  const { usageLimit } = await readCredits(key);
  expect(usageLimit).toMatchObject({ isLimitReached: false, limitType: 'none', hourlyCredits: 0 });
});
