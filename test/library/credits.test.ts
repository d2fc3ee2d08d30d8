import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ServedLibrary, serveLibrary, startOfTests, uuid } from './support/served-library.ts';

const hour = 3_600_000;
const ad = `/v1/ads/${uuid(1)}`;
let served: ServedLibrary;

beforeAll(async () => {
  served = await serveLibrary();
  await served.load(...Array.from({ length: 45 }, (_, at) => ({ id: uuid(at), pageId: `page-${at}` })));
});
afterAll(() => served.close());

const status = async (key: string) => (await served.ask('GET', '/v1/credits', { key })).body;
const read = (key: string, path = ad) => served.ask('GET', path, { key });
const search = (key: string, limit: number) => served.ask('POST', '/v1/ads/search', { key, body: { limit } });

describe('prices', () => {
  test.each([
    [1, 1],
    [10, 1],
    [11, 2],
    [45, 5],
  ])('a search that answers %i items costs %i', async (limit, price) => {
    const key = served.key({ credits: 100 });
    const { headers } = await search(key, limit);
    expect(headers.get('x-service-credits-charged')).toBe(String(price));
    expect(headers.get('x-service-credits-remaining')).toBe(String(100 - price));
    expect(await status(key)).toMatchObject({ credits: 100 - price, creditsMax: 100 });
  });

  test('an answer without items is free', async () => {
    const key = served.key({ credits: 1 });
    const { headers } = await served.ask('POST', '/v1/ads/search', { key, body: { query: 'nowhere' } });
    expect(headers.get('x-service-credits-charged')).toBe('0');
  });
});

describe('60 paid reads at once', () => {
  test('with 20 credits buy exactly 20 credits’ worth, and the ledger agrees', async () => {
    const key = served.key({ credits: 20 });
    const answers = await Promise.all(Array.from({ length: 60 }, () => read(key)));
    const paid = answers.filter(({ status }) => status === 200);
    expect(paid).toHaveLength(20);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(40);
    const remaining = paid.map(({ headers }) => Number(headers.get('x-service-credits-remaining')));
    expect(remaining.sort((left, right) => left - right)).toEqual(Array.from({ length: 20 }, (_, at) => at));
    const { credits, usageLimit } = await status(key);
    expect(credits).toBe(0);
    expect(usageLimit).toMatchObject({ hourlyCredits: 20, dailyCredits: 20 });
  });

  test('in any mix, for two keys of one account, agree in charges, balance and spending', async () => {
    const call = fc.constantFrom('ad', 'page', 'small', 'large', 'missing', 'wrong', 'empty');
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 40 }),
        fc.nat(30),
        fc.nat(30),
        async (calls, credits, hourlyLimit) => {
          const first = served.key({ credits, hourlyLimit });
          const second = served.key({ accountOf: first.slice(0, 17) });
          const answers = await Promise.all(
            calls.map((name, at) => {
              const key = at % 2 ? first : second;
              if (name === 'small' || name === 'large') return search(key, name === 'small' ? 5 : 35);
              if (name === 'empty') return served.ask('POST', '/v1/ads/search', { key, body: { query: 'nowhere' } });
              const paths: Record<string, string> = {
                ad,
                page: '/v1/pages/page-1',
                missing: `/v1/ads/${uuid(99)}`,
                wrong: '/v1/ads/x',
              };
              return read(key, paths[name]);
            }),
          );
          const charged = answers.map(({ headers }) => Number(headers.get('x-service-credits-charged')));
          const total = charged.reduce((sum, one) => sum + one, 0);
          expect(total).toBeLessThanOrEqual(Math.min(credits, hourlyLimit));
          const books = await status(second);
          expect(books.credits).toBe(credits - total);
          expect(books.usageLimit.hourlyCredits).toBe(total);
          for (const { status, headers } of answers) {
            if (status !== 200) expect(headers.has('x-service-credits-charged')).toBe(false);
          }
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('windows and period', () => {
  test('an hourly window opens again with the next hour of the clock, a daily one with the next day', async () => {
    const key = served.key({ hourlyLimit: 2, dailyLimit: 3 });
    const at = async (time: number) => {
      served.clock.now = time;
      const { status, body } = await read(key);
      return [status, body.error?.details.usageLimit.limitType];
    };
    const half = startOfTests;
    expect(await at(half)).toEqual([200, undefined]);
    expect(await at(half + 1)).toEqual([200, undefined]);
    expect(await at(half + hour / 2 - 1)).toEqual([429, 'hourly']);
    expect((await status(key)).usageLimit).toEqual({
      isLimitReached: true,
      limitType: 'hourly',
      hourlyCredits: 2,
      hourlyLimit: 2,
      dailyCredits: 2,
      dailyLimit: 3,
    });
    expect(await at(half + hour / 2)).toEqual([200, undefined]);
    expect(await at(half + hour)).toEqual([429, 'daily']);
    expect(await at(Date.UTC(2026, 2, 15, 23, 59, 59, 999))).toEqual([429, 'daily']);
    expect(await at(Date.UTC(2026, 2, 16))).toEqual([200, undefined]);
    served.clock.now = startOfTests;
  });

  test('a window with less room than the price answers 429 and charges nothing', async () => {
    const key = served.key({ hourlyLimit: 2 });
    const { status: refused, body } = await search(key, 30);
    expect(refused).toBe(429);
    expect(body.error.message).toContain('costs 3 credits; 0 of the hourly limit of 2');
    expect(body.error.details.resetsAt).toBe(Date.UTC(2026, 2, 15, 11) / 1000);
    expect((await search(key, 20)).status).toBe(200);
  });

  test('credits are renewed at the start of a month', async () => {
    const key = served.key({ credits: 1 });
    expect((await read(key)).status).toBe(200);
    expect((await read(key)).body.error).toMatchObject({
      code: 'credits_exhausted',
      details: { credits: 0, price: 1 },
    });
    expect(await status(key)).toMatchObject({
      periodStart: Date.UTC(2026, 2) / 1000,
      periodEnd: Date.UTC(2026, 3) / 1000,
    });
    served.clock.now = Date.UTC(2026, 3);
    expect((await read(key)).headers.get('x-service-credits-remaining')).toBe('0');
    served.clock.now = startOfTests;
  });

  test('too few credits for an answer: 402 with price and balance; a smaller answer still works', async () => {
    const key = served.key({ credits: 2 });
    const { body } = await search(key, 30);
    expect(body.error).toMatchObject({ code: 'credits_exhausted', details: { price: 3, credits: 2 } });
    expect((await search(key, 20)).status).toBe(200);
  });

  test('without a subscription there is no period and no balance', async () => {
    const key = served.key({ subscription: false });
    expect(await status(key)).toMatchObject({
      planId: null,
      periodStart: null,
      periodEnd: null,
      credits: null,
      creditsMax: null,
    });
    const { body } = await served.ask('GET', '/v1/whoami', { key });
    expect(body.user).toMatchObject({ planId: 'none', subscriptionStatus: 'none' });
  });
});
