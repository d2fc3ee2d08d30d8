import fc from 'fast-check';
import { expect } from 'vitest';
import { AdService, createAd, serveAds } from '../support/ad-service.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { createCreditHeaders, respondWithJson } from '../support/faulty-upstream.ts';
import { freshServiceTest, freshUpstreamTest } from '../support/fixtures.ts';
import { computeCharge, type PriceRule, priceRules } from '../support/price-rules.ts';

const test = freshServiceTest();
const upstreamTest = freshUpstreamTest();

test('the rest of a result page that was cut to fit the token limit is free if the page is in the cache', async ({
  start,
}) => {
  for (const [cacheSeconds, charged, expectedText] of [
    [900, 0, 'is free for 15 minutes with cursor'],
    [0, 3, 'costs 3 credits with cursor'],
  ] as const) {
    const { call } = await start({ resultTokens: 1500, cacheSeconds });
    const { text, data } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page ${expectedText}:\n${data.cursor}\n`);
    expect(data.nextPage).toEqual({ credits: charged });
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(charged);
  }
});

test('the rest of a cached page is free until the cached response expires', async ({ start }) => {
  let clock = Date.now();
  const { call } = await start({ resultTokens: 800, cacheSeconds: 120 }, { now: () => clock });
  for (const [waitMs, expectedText] of [
    [0, 'is free for 2 minutes'],
    [59_000, 'is free for 1 minute'],
    [60_000, 'is free for less than a minute'],
    [1000, 'is free for 2 minutes'],
  ] as const) {
    clock += waitMs;
    const { text } = await call('search_ads', { limit: 30 });
    expect(text).toContain(`\n\nThe rest of this page ${expectedText} with cursor:\n`);
  }
});

upstreamTest(
  'the rest of a result page that was cut to fit the token limit costs credits if the page is too large for the cache',
  async ({ upstream, start }) => {
    const { call } = await start({ resultTokens: 1500 });
    // Each empty card takes three characters in the response and about 90 bytes of memory.
    const cards = Array.from({ length: 9000 }, () => ({}));
    const items = Array.from({ length: 100 }, (_, index) => ({ ...createAd(index), cards }));
    upstream.respondWith(
      respondWithJson({ items, cursor: null, hasMore: false }, { headers: createCreditHeaders(10) }),
    );
    const { text, data } = await call('search_ads', { limit: 100 });
    expect(text).toContain('The rest of this page costs 10 credits with cursor:');
    expect(data.nextPage).toEqual({ credits: 10 });
    expect((await call('search_ads', { cursor: data.cursor })).data.receipt.charged).toBe(10);
  },
);

upstreamTest('an empty page does not reveal the price of the next page', async ({ upstream, start }) => {
  const { call } = await start({ creditBudget: 6 });
  const service = serveAds(upstream, 100);
  await call('search_ads', { limit: 10 });
  for (const charge of [0, 1]) {
    service.overrideResponse = () =>
      respondWithJson(
        { items: [], cursor: `after ${charge}`, hasMore: true },
        { headers: createCreditHeaders(charge) },
      );
    const { data } = await call('search_ads', { filters: { charge } });
    // Pages of any size cost at most as much as ten pages of 10 ads.
    expect(data.nextPage).toEqual({ credits: null, atLeast: 1, atMost: 10 });
  }
  service.overrideResponse = () => undefined;
  // 4 credits remain, which cover two pages of 20 ads. If the empty page determined the price of a page without a limit,
  // three such pages would be sent.
  await Promise.all([1, 2, 3].map((part) => call('search_ads', { filters: { part } })));
  expect(service.chargedCredits).toBe(5);
});

upstreamTest('no call is sent after fractional charges have used up the credit budget', async ({ upstream, start }) => {
  const { call } = await start({ creditBudget: 1.2 });
  const service = serveAds(upstream, 100, (limit) => limit / 10);
  await call('search_ads', { limit: 12 });
  expect((await call('search_ads', { limit: 1 })).error).toMatchObject({ kind: 'credit_budget' });
  expect(service.chargedCredits).toBe(1.2);
});

upstreamTest(
  'a page with fewer ads than requested does not raise the lowest price of smaller pages',
  async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 3 });
    const service = serveAds(upstream, 1, (_, { limit }) => limit / 10);
    await call('search_ads', { limit: 25 });
    // The service charged 2.5 credits for one ad of the 25 requested ads, so one ad costs at least 0.1.
    expect((await call('count_ads', { filters: { q: 'a' }, maxCredits: 0 })).data.estimate).toMatchObject({
      atLeast: 0.1,
    });
    expect((await call('search_ads', { limit: 1, filters: { q: 'a' } })).error).toBeUndefined();
    expect(service.chargedCredits).toBe(2.6);
  },
);

upstreamTest(
  'an empty page that costs a fraction of a credit does not raise the lowest price to a whole credit',
  async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 1 });
    const service = serveAds(upstream, 0, (_, { limit }) => limit / 100);
    await call('search_ads', { limit: 10 });
    expect((await call('search_ads', { limit: 5, filters: { q: 'a' } })).error).toBeUndefined();
    expect(service.chargedCredits).toBeCloseTo(0.15);
  },
);

upstreamTest(
  'a page without a known size never makes the lowest price of other pages infinite',
  async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 10 });
    const service = serveAds(upstream, 0, () => 0.5);
    await call('search_ads', { cursor: 'of the API' });
    expect((await call('search_ads')).error).toBeUndefined();
    expect(service.chargedCredits).toBe(1);
  },
);

upstreamTest(
  'a page without a known size does not raise the price of a page with one ad',
  async ({ upstream, server: { call } }) => {
    const service = serveAds(upstream, 100);
    await call('count_ads', { filters: { q: 'a' } });
    service.overrideResponse = ({ cursor }) =>
      cursor === 'of the API'
        ? respondWithJson(
            { items: service.ads.slice(0, 20), cursor: null, hasMore: false },
            { headers: createCreditHeaders(2) },
          )
        : undefined;
    await call('search_ads', { cursor: 'of the API' });
    const { data } = await call('count_ads', { filters: { q: 'b' }, maxCredits: 0 });
    expect(data.estimate).toMatchObject({ credits: 1 });
  },
);

upstreamTest(
  'the next page of a list that a cursor of the API continues does not change the price of a page of the default size',
  async ({ upstream, start }) => {
    const { call } = await start({ creditBudget: 45 });
    const service = serveAds(upstream, 100, (adCount) => adCount);
    await call('search_ads');
    // The cursor belongs to a list with 5 ads on each page.
    service.defaultLimit = 5;
    const { data } = await call('search_ads', { cursor: '5' });
    await call('search_ads', { cursor: data.cursor });
    service.defaultLimit = 20;
    expect(service.chargedCredits).toBe(30);
    const { error, text } = await call('search_ads', { filters: { q: 'other' } });
    expect(error).toMatchObject({ kind: 'credit_budget' });
    expect(text).toContain('this call is expected to cost 20.');
    expect(service.chargedCredits).toBe(30);
  },
);

upstreamTest(
  'gather_ads does not exceed maxCredits if the service charges for groups of an unusual size',
  async ({ upstream, server: { call } }) => {
    const service = serveAds(upstream, 50, (adCount) => Math.ceil(adCount / 41));
    for (const limit of [10, 40]) await call('search_ads', { limit });
    const { data } = await call('gather_ads', { filters: { q: 'a' }, maxAds: 50, maxCredits: 1 });
    expect(data.receipt.charged).toBe(1);
    expect(service.searches.at(-1)?.limit).toBe(40);
  },
);

upstreamTest.for([
  ['per ad', 1, [1, 10]],
  ['per 10 ads', 10, [1, 100]],
  ['per 10 ads', 10, [10, 20]],
  ['per 25 ads', 25, [1, 50]],
  ['per page', 100, [1, 100]],
] as const)(
  'the server knows an exact price %s after charges for two page sizes',
  async ([, groupSize, limits], { upstream, server: { call } }) => {
    serveAds(upstream, 150, (adCount) => Math.ceil(adCount / groupSize));
    for (const limit of limits) await call('search_ads', { limit });
    await call('gather_ads', { filters: { q: 'a' }, maxCredits: 0 });
    for (const maxAds of [67, 55, 33]) {
      const { text } = await call('gather_ads', { filters: { q: 'a' }, maxCredits: 0, maxAds });
      const credits = Math.ceil(maxAds / groupSize);
      expect(text).toContain(`stops after ${maxAds} ads (${credits} ${credits === 1 ? 'credit' : 'credits'})`);
    }
  },
);

upstreamTest('the highest price of the next page is rounded to six decimals', async ({ upstream, server }) => {
  const service = serveAds(upstream, 100, () => 0.1);
  service.modifyResponse = (body) => ({ ...body, items: body.items.slice(0, 1) });
  const { data } = await server.call('search_ads', { limit: 3 });
  // In floating-point numbers, 3 * 0.1 is 0.30000000000000004.
  expect(data.nextPage).toMatchObject({ credits: null, atMost: 0.3 });
});

upstreamTest(
  'a result shows no price for the next page if the price is unknown or if there is no next page',
  async ({ upstream, server }) => {
    const items = [{ id: deriveUuid('a') }];
    upstream.respondWith(respondWithJson({ items, cursor: 'more', hasMore: true }));
    const { text, data } = await server.call('search_ads', { limit: 1 });
    expect(text).toContain('\n\nMore with cursor:\n');
    expect(data).not.toHaveProperty('nextPage');
    upstream.respondWith(respondWithJson({ items, cursor: null, hasMore: false }, { headers: createCreditHeaders(1) }));
    expect((await server.call('search_ads', { limit: 2 })).data).not.toHaveProperty('nextPage');
  },
);

test('all prices are shown as free for an account without credit metering', async ({ service, start }) => {
  const { call } = await start({ apiKey: service.createKey({ unmetered: true }) });
  const estimate = await call('gather_ads', { maxCredits: 0 });
  // A free page says nothing about the price of a larger page.
  expect(estimate.text).toMatch(/Estimate: [\d,]+ ads in \d+ pages, at an unknown price;/);
  expect((await call('gather_ads', { filters: { countries: ['DE'] } })).data).toMatchObject({ complete: true });
  expect((await call('gather_ads', { maxCredits: 0 })).text).toMatch(/Estimate: [\d,]+ ads in \d+ pages, free\./);
  const { text, data } = await call('search_ads');
  expect(text).toContain('Next page: free, with cursor:');
  expect(data.nextPage).toEqual({ credits: 0 });
  expect((await call('get_credits')).text).toContain('prices seen: search_ads free');
});

const callArbitrary = fc.record({
  tool: fc.constantFrom('search_ads', 'count_ads', 'gather_ads'),
  limit: fc.option(fc.integer({ min: 1, max: 120 }), { nil: undefined }),
});

interface StatedPrices {
  estimate?: { credits: number | null; atMost?: number };
  nextPage?: { credits: number | null; atMost?: number };
}

/** Returns the highest price that the result mentions, or Infinity if it mentions none. */
const readHighestPrice = ({ credits, atMost = Infinity }: NonNullable<StatedPrices['nextPage']> = { credits: null }) =>
  credits ?? atMost;

const cases = fc.record({
  price: priceRules,
  ads: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 13, max: 330 })),
  defaultLimit: fc.integer({ min: 15, max: 60 }),
  earlier: fc.array(callArbitrary, { maxLength: 6 }),
  cacheSeconds: fc.constantFrom(0, 900),
  parts: fc.constantFrom(undefined, 2, 3),
});
type Case = typeof cases extends fc.Arbitrary<infer Value> ? Value : never;

upstreamTest(
  'no result page and no gather_ads run costs more than its announced price',
  async ({ upstream, start }) => {
    const check = async ({ price, ads, defaultLimit, earlier, cacheSeconds, parts }: Case) => {
      const service = new AdService(ads);
      service.defaultLimit = defaultLimit;
      service.priceSearch = (came, { limit }) => computeCharge(price, came, limit);
      service.selectAds = ({ part }) =>
        service.ads.filter((_, index) => part === undefined || index % (parts ?? 1) === part);
      upstream.respondWith(service.respond);
      const server = await start({ creditBudget: 1e6, cacheSeconds });
      for (const { tool, limit } of earlier) {
        const limitArgument = { ...(limit && { limit }) };
        const args = {
          search_ads: limitArgument,
          count_ads: {},
          gather_ads: { maxAds: limit ?? 200, maxCredits: 1e5 },
        };
        expect((await server.call(tool, args[tool as keyof typeof args])).isError).toBe(false);
      }
      const filters = { other: true };
      let { text, data } = await server.call('search_ads', { filters });
      while (data.cursor !== null) {
        const highestPrice = readHighestPrice((data as StatedPrices).nextPage);
        if (price.pricePerGroup === 0) expect(text).toMatch(/Next page: free, with cursor|More with cursor/);
        ({ text, data } = await server.call('search_ads', { filters, cursor: data.cursor }));
        expect(data.receipt.charged).toBeLessThanOrEqual(highestPrice);
      }

      const split = parts && Array.from({ length: parts }, (_, part) => ({ part }));
      const question = { filters: { third: true }, ...(split && { split }) };
      const estimated = await server.call('gather_ads', { ...question, maxCredits: 0 });
      const { estimate } = estimated.data as StatedPrices;
      const highestPrice = readHighestPrice(estimate);
      // A page of ads shows a price. A page without a charge shows only that this number of ads is free.
      if (highestPrice === Infinity) expect(ads === 0 || price.pricePerGroup === 0).toBe(true);
      else if (price.pricePerGroup === 0) expect(estimated.text).toContain(', free.');
      else expect(estimated.text).toMatch(/, (between \d+ and |at most )?\d+ credits?[.;]/);
      const maxCredits = highestPrice === Infinity ? 1e5 : Math.max(1, highestPrice);
      const gathered = await server.call('gather_ads', { ...question, maxCredits });
      expect(gathered.data).toMatchObject({ complete: true, read: ads });
      expect(gathered.data.receipt.charged).toBeLessThanOrEqual(highestPrice);
      if (estimate?.credits != null && cacheSeconds === 0) expect(gathered.data.receipt.charged).toBe(estimate.credits);
      await server.close();
    };
    const isAsked: PriceRule = {
      pricePerGroup: 1,
      groupSize: 1,
      pricePerCall: 0,
      minPrice: 0,
      countsRequestedItems: true,
      isEmptyFree: false,
    };
    const plain: Omit<Case, 'price' | 'ads'> = { defaultLimit: 20, earlier: [], cacheSeconds: 900, parts: undefined };
    await fc.assert(fc.asyncProperty(cases, check), {
      numRuns: 25,
      examples: [
        [{ ...plain, price: isAsked, ads: 146 }],
        [{ ...plain, price: isAsked, ads: 0 }],
        [{ ...plain, price: { ...isAsked, minPrice: 2, groupSize: 20, countsRequestedItems: false }, ads: 330 }],
      ],
    });
  },
  180_000,
);

upstreamTest(
  'get_credits shows prices for the number of ads that were returned, not for the number requested',
  async ({ upstream, start }) => {
    for (const [matches, limit, text] of [
      [3, 100, '1 for 3 items'],
      [30, 20, '2 for 20 items'],
    ] as const) {
      serveAds(upstream, matches, () => Math.ceil(Math.min(matches, limit) / 10));
      const server = await start({ cacheSeconds: 0 });
      await server.call('search_ads', { limit });
      expect((await server.call('get_credits')).text).toContain(text);
    }
  },
);
