import fc from 'fast-check';
import { expect } from 'vitest';
import { startLibraryServer } from '../library/support/library-server.ts';
import { AdService, createAd } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { startServer, type TestServer } from '../support/server.ts';

const test = freshUpstreamTest();

/** Filter keys. A library counts all values of a key in one search; other APIs need one search per value. */
const describedKeys = [
  { key: 'displayFormat', type: 'strings', values: ['VIDEO', 'IMAGE', 'CAROUSEL'], open: true, single: true },
  { key: 'countries', type: 'strings', values: ['DE', 'AT', 'CH'] },
  { key: 'active', type: 'boolean' },
  { key: 'missing', type: 'strings', values: ['displayFormat', 'countries'] },
];
const filterDescriptions = {
  counted: { ads: describedKeys.map((key) => ({ ...key, counted: key.key !== 'missing' })), pages: [] },
  searched: { ads: describedKeys, pages: [] },
};

const filters = fc.constantFrom({}, { ctaType: ['SHOP_NOW'] }, { duplicatesFrom: 2 });
const split = fc.constantFrom(
  [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }],
  [{ active: true }, { active: false }, { active: true }],
  Array.from({ length: 7 }, (_, index) => ({ daysRunningFrom: index + 1 })),
);
const question = fc.oneof(
  fc.record({ tool: fc.constant('count_ads'), filters, split }),
  fc.record({
    tool: fc.constant('count_ads'),
    filters,
    by: fc.constantFrom('displayFormat', 'countries', 'active'),
    fresh: fc.boolean(),
  }),
  fc.record({ tool: fc.constant('gather_ads'), filters }),
  fc.record({ tool: fc.constant('gather_ads'), filters, split }),
);
const earlierCall = fc.oneof(
  question.map(({ tool, ...args }) => ({ tool, args: { ...args, maxCredits: 1e5, ...gatherLimits(tool) } })),
  fc.record({ tool: fc.constant('search_ads'), args: fc.record({ filters, limit: fc.integer({ min: 1, max: 100 }) }) }),
);
/** Returns a high `maxAds` for gather_ads, because the estimate covers all parts, even if they overlap. */
const gatherLimits = (tool: string) => (tool === 'gather_ads' ? { maxAds: 10_000 } : {});

const cases = fc.record({
  earlierCalls: fc.array(earlierCall, { maxLength: 3 }),
  question,
  descriptionKind: fc.constantFrom('counted' as const, 'searched' as const),
  cacheSeconds: fc.constantFrom(0, 900),
});
type Case = typeof cases extends fc.Arbitrary<infer One> ? One : never;

interface Estimate {
  credits: number | null;
  atLeast: number;
  atMost?: number;
}

/** Requests an estimate, makes the call and compares the charge with the estimate. */
async function expectBound(
  { call }: TestServer,
  { earlierCalls, question: { tool, ...args } }: Case,
  isEveryPriceFit = true,
) {
  for (const one of earlierCalls) expect((await call(one.tool, one.args)).isError).toBe(false);
  const estimated = await call(tool, { ...args, maxCredits: 0 });
  expect(estimated.isError).toBe(false);
  const { estimate } = estimated.data as { estimate?: Estimate };
  // If the ads were gathered completely before, the result has no estimate and is free.
  const { credits = 0, atMost = credits ?? Infinity } = estimate ?? { credits: 0 };
  const { data, isError } = await call(tool, { ...args, maxCredits: 1e5, ...gatherLimits(tool) });
  expect(isError).toBe(false);
  const { charged } = data.receipt;
  expect(charged).toBeLessThanOrEqual(atMost);
  if (credits !== null && isEveryPriceFit) expect(charged).toBeLessThanOrEqual(credits);
}

/** More ads than fit on a page. Some lack the fields that the tests count by. */
const libraryAds = Array.from({ length: 130 }, (_, index) =>
  createAd(index, {
    ...(index % 5 === 0 && { displayFormat: undefined }),
    ...(index % 3 > 0 && { countries: index % 2 === 0 ? ['DE'] : ['DE', 'AT'] }),
    ...(index % 4 === 0 && { ctaType: 'SHOP_NOW' }),
    duplicates: index % 7,
  }),
);

const gatherAll = { tool: 'gather_ads', args: { filters: {}, maxCredits: 1e5, maxAds: 10_000 } };
const countByFormat = { tool: 'count_ads', filters: {}, by: 'displayFormat', fresh: false };
const countAllAsPart = { tool: 'count_ads', filters: {}, split: [{ duplicatesFrom: 0 }] };
const fixedCases = [
  // Ads that gather_ads stored do not replace a search that counts values.
  { earlierCalls: [gatherAll], question: countByFormat, descriptionKind: 'counted', cacheSeconds: 900 },
  // A part with the same number of ads as the total needs no separate search.
  { earlierCalls: [], question: countAllAsPart, descriptionKind: 'searched', cacheSeconds: 900 },
].map((one): [Case] => [one as unknown as Case]);

test.for([
  ['metered', { credits: 1e6, hourlyLimit: 1e6, dailyLimit: 1e6 }],
  ['unmetered', { unmetered: true }],
] as const)(
  'count_ads and gather_ads never cost more than their estimates announced (API key: %s)',
  { timeout: 120_000 },
  async ([_, keyOptions]) => {
    const library = await startLibraryServer();
    await library.importRecords(...libraryAds);
    const checkBound = async (one: Case) => {
      const { descriptionKind, cacheSeconds } = one;
      const searchFilters = filterDescriptions[descriptionKind] as never;
      const config = { baseUrl: library.baseUrl, apiKey: library.createKey(keyOptions), searchFilters, cacheSeconds };
      const server = await startServer({ config, now: () => library.clock.now });
      await expectBound(server, one).finally(server.close);
    };
    await fc.assert(fc.asyncProperty(cases, checkBound), { numRuns: 8, examples: fixedCases }).finally(library.close);
  },
);

/**
 * Generates pricing rules: a fee per call and a price per group of items. A rule counts either the requested or the
 * returned items.
 */
const priceRule = fc.record({
  credits: fc.integer({ min: 0, max: 3 }),
  perItems: fc.constantFrom(1, 2, 5, 10, 20, 25, 50, 100, 1000),
  fee: fc.constantFrom(0, 0, 2),
  isByAsked: fc.boolean(),
});

test('count_ads and gather_ads never cost more than estimated, whatever the pricing rule of the API', async ({
  upstream,
  start,
}) => {
  await fc.assert(
    fc.asyncProperty(cases, priceRule, fc.nat(130), async (one, rule, ads) => {
      const service = new AdService(ads);
      service.selectAds = ({ displayFormat }) =>
        service.ads.filter(
          (ad) => displayFormat === undefined || [displayFormat].flat().includes(String(ad.displayFormat)),
        );
      service.priceSearch = (came, { limit }) =>
        rule.fee + Math.ceil((rule.isByAsked ? limit : came) / rule.perItems) * rule.credits;
      upstream.respondWith(service.respond);
      const searchFilters = filterDescriptions[one.descriptionKind] as never;
      const server = await start({ searchFilters, cacheSeconds: one.cacheSeconds });
      await expectBound(server, one, false);
      await server.close();
    }),
    { numRuns: 15 },
  );
}, 120_000);

test('gather_ads states no price for the remaining ads if the API has listed more ads than the total that it reports', async ({
  upstream,
  start,
}) => {
  const service = new AdService(400);
  service.modifyResponse = (answer) => ({ ...answer, totalHits: 100 });
  upstream.respondWith(service.respond);
  const server = await start();
  const partial = await server.call('gather_ads', { maxCredits: 1000, maxAds: 150 });
  expect(partial.data).toMatchObject({ read: 150, stopped: 'maxAds' });
  expect(partial.data).not.toHaveProperty('estimate');
  expect(partial.text).not.toContain('Reading the rest costs');
  const { data, text } = await server.call('gather_ads', { maxCredits: 0 });
  expect(data.estimate).toEqual({ ads: null, pages: null, credits: null, atLeast: 0 });
  expect(data.receipt.charged).toBe(0);
  expect(text).toContain('although it has listed as many ads as it stated');
  expect(text).not.toContain('does not say how many');
});

test('gather_ads does not suggest counting the ads, and claims no wrong total, if the API reports no totals', async ({
  upstream,
  start,
}) => {
  const service = new AdService(400);
  service.modifyResponse = ({ totalHits: _, ...answer }) => answer;
  upstream.respondWith(service.respond);
  const server = await start();
  for (const readAds of [0, 150]) {
    if (readAds > 0) await server.call('gather_ads', { maxCredits: 1000, maxAds: readAds });
    const { data, text } = await server.call('gather_ads', { maxCredits: 0 });
    expect(data).toMatchObject({ read: readAds, estimate: { ads: null } });
    expect(text).toContain('The service does not say how many ads there are.');
    expect(text).not.toContain('as it stated');
    expect(text).not.toContain('count_ads');
  }
});
