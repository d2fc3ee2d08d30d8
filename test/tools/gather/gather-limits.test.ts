import fc from 'fast-check';
import { expect } from 'vitest';
import { adOf, serveAds } from '../../support/ad-service.ts';
import { creditStatus, json, refusal, usage } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = json(creditStatus());
});

type PriceRule = { kind: 'flat' | 'each' | 'group'; credits: number; group: number };
const rule: fc.Arbitrary<PriceRule> = fc.record({
  kind: fc.constantFrom('flat', 'each', 'group'),
  credits: fc.integer({ min: 0, max: 5 }),
  group: fc.constantFrom(2, 5, 10, 20, 25, 50, 100),
});
const priceOf = ({ kind, credits, group }: PriceRule, items: number) =>
  kind === 'flat' ? credits : kind === 'each' ? credits * items : credits * Math.ceil(items / group);

test('spends no more than maxCredits, but for one first page of unknown price', { timeout: 60_000 }, async ({
  upstream,
  start,
}) => {
  const calls = fc.array(
    fc.record({ maxCredits: fc.integer({ min: 1, max: 120 }), maxAds: fc.integer({ min: 1, max: 400 }) }),
    {
      minLength: 1,
      maxLength: 3,
    },
  );
  await fc.assert(
    fc.asyncProperty(rule, fc.nat(300), calls, async (rule, count, limits) => {
      const server = await start();
      const service = serveAds(upstream, count, (items) => priceOf(rule, items));
      for (const [index, limit] of limits.entries()) {
        const before = service.charged;
        const { data, isError } = await server.call('gather_ads', limit);
        const spent = service.charged - before;
        const [first] = index === 0 ? service.searches : [];
        const unknown = first ? Math.max(0, priceOf(rule, Math.min(first.limit, count)) - 1) : 0;
        expect(spent).toBeLessThanOrEqual(limit.maxCredits + unknown);
        if (!isError) expect(data.receipt.charged).toBe(spent);
      }
    }),
    { numRuns: 25 },
  );
});

test('a price that rises while it gathers exceeds maxCredits by the rise of one page at most', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 2000, (items, { number }) => Math.ceil(items / 10) + number);
  const { data } = await server.call('gather_ads', { maxCredits: 60, maxAds: 2000 });
  expect(data).toMatchObject({ stopped: 'maxCredits', complete: false });
  expect(service.charged).toBeLessThanOrEqual(61);
});

test("the server's budget applies as well, and is named as what stopped it", async ({ upstream, start }) => {
  const server = await start({ creditBudget: 25 });
  const service = serveAds(upstream, 2000);
  const { data, text } = await server.call('gather_ads', { maxCredits: 1000, maxAds: 2000 });
  expect(data).toMatchObject({ read: 240, stopped: 'budget' });
  expect(service.charged).toBe(24);
  expect(text).toContain('AD_LIBRARY_CREDIT_BUDGET');
  const nothing = await server.call('gather_ads', { filters: { a: 1 }, maxCredits: 1000 });
  expect(nothing.error).toMatchObject({ kind: 'credit_budget' });
});

test('a usage window with too little room names no argument that the tool lacks', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  upstream.credits = json(creditStatus({ ...usage(395), isLimitReached: false }));
  service.instead = ({ number }) => (number === 2 ? refusal(429) : undefined);
  const { data, text } = await server.call('gather_ads', { maxCredits: 100 });
  expect(data).toMatchObject({ read: 100, stopped: 'usage_limit' });
  expect(text).toContain('Ask for less now, or repeat the call');
});

test('where charges are not stated, the text says so, and the balance counts', async ({ upstream, server }) => {
  const service = serveAds(upstream, 500);
  service.statesCharges = false;
  upstream.credits = (request, response) =>
    json({ ...creditStatus(), credits: 1000 - service.charged })(request, response);
  const { data, text } = await server.call('gather_ads', { maxCredits: 30 });
  expect(service.charged).toBeLessThanOrEqual(30 + 9);
  expect(data.receipt.charged).toBeNull();
  expect(text).toContain('at least 0 charged for');
});

test('of a large gathering, the first thousand ads can be looked at as lists at no charge', async ({
  upstream,
  start,
}) => {
  const server = await start();
  const service = serveAds(upstream, 1200);
  const { data } = await server.call('gather_ads', { maxAds: 1200, maxCredits: 1000 });
  expect(data).toMatchObject({ read: 1200, complete: true });
  const paid: number[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const before = service.searches.length;
    const page = await server.call('search_ads', { limit: 100, ...(cursor !== undefined && { cursor }) });
    if (service.searches.length > before) paid.push(Number(service.searches.at(-1)?.cursor));
    cursor = page.data.cursor;
  }
  expect(paid).toEqual([1000, 1100]);
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
