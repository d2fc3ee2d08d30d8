import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { computeRunningTime } from '../../src/views/days-running.ts';
import { startLibraryServer, testStartTime } from '../library/support/library-server.ts';
import { type AdSearch, AdService, createAd, type ServedAd } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { type Result, startServer, type TestServer } from '../support/server.ts';

const test = freshUpstreamTest();
const day = 86_400_000;
const formatDay = (offset: number) => new Date(testStartTime + offset * day).toISOString();
const createOptional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

const adLists = fc
  .array(
    fc.record({
      displayFormat: createOptional(fc.constantFrom('VIDEO', 'IMAGE', 'CAROUSEL', 'STORY')),
      ctaType: createOptional(fc.constantFrom('SHOP_NOW', 'SEE_DETAILS')),
      countries: createOptional(fc.subarray(['DE', 'AT', 'CH'])),
      offerLink: createOptional(fc.constantFrom('a.example', 'www.shop.a.example/x?utm_source=y', 'b.example')),
      page: createOptional(fc.constantFrom('Acme', 'Brown & Co').map((pageName) => ({ pageName }))),
      lastSeenAt: createOptional(fc.integer({ min: -12, max: 1 }).map((half) => formatDay(half / 2))),
      endDate: createOptional(fc.option(fc.integer({ min: -3, max: 3 }).map(formatDay))),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((ads) =>
    ads.map(
      (ad, index) =>
        JSON.parse(JSON.stringify(createAd(index, { displayFormat: undefined, ...(ad as object) }))) as ServedAd,
    ),
  );

const isStillRunning = (ad: object) => computeRunningTime(ad, testStartTime).stillRunning;
const formatLastSeen = (ads: readonly ServedAd[]) => {
  const days = ads.flatMap(({ lastSeenAt }) => String(lastSeenAt ?? '').slice(0, 10) || []).sort();
  const [first = '', last] = [days[0], days.at(-1)];
  const some = days.length < ads.length ? `${days.length} of them ` : '';
  return first && `, ${some}last seen ${first === last ? first : `${first} to ${last}`}`;
};
const valueReaders: Record<string, (ad: ServedAd) => unknown[]> = {
  displayFormat: ({ displayFormat }) => [displayFormat ?? []].flat(),
  ctaType: ({ ctaType }) => [ctaType ?? []].flat(),
  countries: ({ countries = [] }) => countries as string[],
  domain: ({ offerLink }) => (offerLink ? [String(offerLink).replace(/^www\.|\/.*$/g, '')] : []),
  advertiserExact: ({ page }) => [(page as { pageName: string } | undefined)?.pageName ?? []].flat(),
};

interface Part {
  filters: Record<string, unknown>;
  total: number | null;
  value?: string;
  note?: string;
}
const readParts = ({ data }: Result) => data.counts as unknown as Part[];
const countTotals = (counts: readonly Part[], key: string) =>
  Object.fromEntries(counts.map(({ filters, total }) => [String([filters[key]].flat()[0]), total]));

/** Counts the ads that the filter for each value would find. The domain filter also matches subdomains. */
function countValues(values: readonly unknown[], key: string) {
  const isFound = (value: string, wanted: string) =>
    value === wanted || (key === 'domain' && value.endsWith(`.${wanted}`));
  const texts = values.map(String);
  return Object.fromEntries(
    [...new Set(texts)].map((wanted) => [wanted, texts.filter((value) => isFound(value, wanted)).length]),
  );
}

/** Runs `use` with a server in front of a local library with these ads. Both use the same clock. */
async function startLibrary(ads: readonly ServedAd[], runTest: (call: TestServer['call']) => Promise<void>) {
  const library = await startLibraryServer();
  await library.importRecords(...ads);
  // Pass the filter description directly, because the library's own description may arrive too late on a busy machine.
  const searchFilters = libraryFilters;
  const config = { baseUrl: library.baseUrl, apiKey: library.createKey(), searchFilters };
  const server = await startServer({ config, now: () => library.clock.now });
  await runTest(server.call).finally(server.close).finally(library.close);
}

const optionalCountry = createOptional(fc.constantFrom('DE', 'AT'));

test('count_ads returns the same number of ads for each value as search_ads, gather_ads and query_ads', async () => {
  await fc.assert(
    fc.asyncProperty(adLists, optionalCountry, (ads, country) =>
      startLibrary(ads, async (call) => {
        const filters = country === undefined ? {} : { countries: [country] };
        const matchingAds = ads.filter((ad) => country === undefined || valueReaders.countries?.(ad).includes(country));
        for (const [by, values] of Object.entries(valueReaders)) {
          if (by in filters) continue;
          const result = await call('count_ads', { filters, by });
          expect(result.data).toMatchObject({ total: matchingAds.length, receipt: { calls: 1 } });
          expect(countTotals(readParts(result), by)).toEqual(countValues(matchingAds.flatMap(values), by));
          const adsWithoutValue = matchingAds.filter((ad) => values(ad).length === 0).length;
          const isSingle = by !== 'countries' && by !== 'domain';
          expect([result.data.none, result.data.rest]).toEqual([adsWithoutValue, isSingle ? 0 : undefined]);
          expect(result.text).toContain(`\nnone: ${adsWithoutValue}\n${isSingle ? 'rest (other values): 0\n' : ''}`);
          expect(result.data).not.toHaveProperty('leftOut');
          expect(result.text).not.toContain('not verified');
        }

        const [running, ended, unknown] = [true, false, undefined].map((state) =>
          matchingAds.filter((ad) => isStillRunning(ad) === state),
        ) as [ServedAd[], ServedAd[], ServedAd[]];
        const states = [running, ended, unknown].map(({ length }) => length);
        const active = await call('count_ads', { filters, by: 'active' });
        expect(readParts(active).map(({ total }) => total)).toEqual(states);
        expect(active.text).toContain(`\nunknown: ${unknown.length}`);
        const split = [{ active: true }, { active: false }, { missing: ['active'] }];
        expect(readParts(await call('count_ads', { filters, split })).map(({ total }) => total)).toEqual(states);
        const listed = await call('search_ads', { filters: { ...filters, active: true } });
        expect(listed.data.items.map(({ stillRunning }) => stillRunning)).toEqual(running.map(() => true));
        const gathered = await call('gather_ads', { filters, maxCredits: 50 });
        const summary = `${running.length} still running, ${ended.length} ended, ${unknown.length} unknown${formatLastSeen(unknown)}`;
        if (matchingAds.length > 0) expect(gathered.data.summary).toContain(summary);
        const { data } = await call('query_ads', { sql: 'SELECT active, count(*) FROM ads GROUP BY 1' });
        const counted = new Map(data.rows as [number | null, number][]);
        expect([1, 0, null].map((state) => counted.get(state) ?? 0)).toEqual(states);
      }),
    ),
    { numRuns: 4, endOnFailure: true },
  );
});

test('count_ads by the filter key missing says that an ad may lack values for several keys', async () => {
  await startLibrary([createAd(0), createAd(1, { ctaType: 'SHOP_NOW', countries: ['DE'] })], async (call) => {
    const result = await call('count_ads', { by: 'missing' });
    expect(countTotals(readParts(result), 'missing')).toMatchObject({ ctaType: 1, countries: 1 });
    expect(result.text).toContain('An ad may lack values for several keys, so the counts may add up to more than');
    expect(result.text).not.toContain('ads without a value');
  });
});

test('count_ads says how many values of a search filter it does not list', async () => {
  const codes = Array.from(
    { length: 37 },
    (_, index) => `${'ABCDEFGHIJ'[index % 10]}${'ABCD'[Math.floor(index / 10)]}`,
  );
  const ads = [
    ...codes.map((code, index) => createAd(index, { countries: [code], page: { pageName: `Advertiser ${code}` } })),
    ...codes.slice(0, 30).map((code, index) => createAd(100 + index, { countries: [code, 'DE'], page: undefined })),
    createAd(200, { countries: undefined, page: { pageName: 'Advertiser AA' } }),
  ];
  await startLibrary(ads, async (call) => {
    const byCountry = await call('count_ads', { by: 'countries' });
    expect(readParts(byCountry)).toHaveLength(30);
    expect(byCountry.data).toMatchObject({ total: 68, none: 1, leftOut: '8 rarer values are not listed.' });
    expect(byCountry.data).not.toHaveProperty('rest');
    expect(byCountry.text).toContain('\nnone: 1\n8 rarer values are not listed.');
    const byAdvertiser = await call('count_ads', { by: 'advertiserExact' });
    const leftOut = '7 rarer values are not listed. Their ads are in rest.';
    expect(byAdvertiser.data).toMatchObject({ total: 68, none: 30, rest: 7, leftOut });
  });
});

/** A fake API that applies some filters and ignores all others, as many real APIs do. */
class FilteringService extends AdService {
  knownKeys = new Set<string>();

  override answerSearch(body: string) {
    const { limit, cursor, ...filters } = JSON.parse(body || '{}') as AdSearch['filters'];
    const all = this.ads;
    this.ads = all.filter((ad) => this.#matches(ad, filters));
    const behaviour = super.answerSearch(body);
    this.ads = all;
    return behaviour;
  }

  #matches(ad: ServedAd, filters: AdSearch['filters']): boolean {
    return Object.entries(filters).every(([key, value]) => {
      if (!this.knownKeys.has(key)) return true;
      if (key === 'not')
        return Object.entries(value as object).every(
          ([inner, one]) => !this.knownKeys.has(inner) || !this.#matches(ad, { [inner]: one }),
        );
      if (key === 'missing') return (value as string[]).every((one) => valueReaders[one]?.(ad).length === 0);
      if (key === 'active') return isStillRunning(ad) === value;
      return [value].flat().some((one) => valueReaders[key]?.(ad).includes(one));
    });
  }
}

describe('count_ads by value with an external API', () => {
  /** The filter description from the user. */
  const describedKeys = {
    displayFormat: { type: 'strings', values: ['VIDEO', 'IMAGE', 'CAROUSEL'], open: true, single: true },
    ctaType: { type: 'strings', values: ['SHOP_NOW', 'SEE_DETAILS', 'ORDER_NOW'], single: true },
    countries: { type: 'strings', values: ['DE', 'AT', 'CH'] },
    active: { type: 'boolean' },
    not: { type: 'filters' },
    missing: { type: 'strings', values: ['displayFormat', 'ctaType'] },
  };
  type Key = keyof typeof describedKeys;
  const keys = Object.keys(describedKeys) as Key[];
  const buildFilters = (keys: readonly Key[]) =>
    ({ ads: keys.map((key) => ({ key, ...describedKeys[key] })), pages: [] }) as never;

  test('count_ads returns the number of ads with each value and the number of ads without a value', async ({
    upstream,
    start,
  }) => {
    await fc.assert(
      fc.asyncProperty(adLists, fc.subarray(keys), fc.subarray(['not', 'missing']), async (ads, knows, tells) => {
        const service = new FilteringService(0);
        service.ads = ads;
        service.knownKeys = new Set(knows);
        // An API that does not count values may return anything in this field.
        service.modifyResponse = (answer) => ({
          ...answer,
          counts: { values: [{ value: 'VIDEO', total: -7 }], none: 1e9 },
        });
        upstream.respondWith(service.respond);
        const toldKeys = keys.filter((key) => !['not', 'missing'].includes(key) || tells.includes(key));
        const server = await start({ searchFilters: buildFilters(toldKeys) }, { now: () => testStartTime });
        const isKnown = (key: string) => service.knownKeys.has(key);
        for (const by of ['displayFormat', 'ctaType', 'countries'] as const) {
          const result = await server.call('count_ads', { by });
          expect(result.data.total).toBe(ads.length);
          const countedParts = readParts(result);
          const all = countValues(ads.flatMap(valueReaders[by] ?? (() => [])), by);
          const listedValues = describedKeys[by].values.filter((value) => !isKnown(by) || all[value]);
          const expectedCounts = listedValues.map((value) => [value, isKnown(by) ? all[value] : ads.length]);
          expect(countTotals(countedParts, by)).toEqual(Object.fromEntries(expectedCounts));
          for (const { total, note } of countedParts) {
            expect(note).toBe(total === ads.length ? 'equal to the total; not verified' : undefined);
          }
          const asksMissing = tells.includes('missing') && by !== 'countries';
          const adsWithoutValue = isKnown('missing')
            ? ads.filter((ad) => valueReaders[by]?.(ad).length === 0).length
            : ads.length;
          const remainingAds =
            ads.length -
            countedParts.reduce((sum, { total }) => sum + (total ?? 0), 0) -
            (asksMissing ? adsWithoutValue : 0);
          const isStated = by !== 'countries' && remainingAds >= 0;
          expect([result.data.none, result.data.rest]).toEqual([
            asksMissing ? adsWithoutValue : undefined,
            isStated ? remainingAds : undefined,
          ]);
          // The result states which ads are missing from all figures.
          expect(typeof result.data.leftOut).toBe(isStated ? 'undefined' : 'string');
          if (!isStated && !asksMissing) expect(result.text).toContain('ads without a value');
        }
        const active = await server.call('count_ads', { by: 'active' });
        const listFound = (state: boolean) =>
          isKnown('active') ? ads.filter((ad) => isStillRunning(ad) === state).length : ads.length;
        const unknownCount = ads.length - listFound(true) - listFound(false);
        expect(readParts(active).map(({ total }) => total)).toEqual([
          listFound(true),
          listFound(false),
          unknownCount < 0 ? null : unknownCount,
        ]);
        if (listFound(true) > 0)
          expect(active.text).toMatch(/\{"active":true\}: \d+ \(.*the service decides what is active/);
        await server.close();
      }),
      { numRuns: 15 },
    );
  });

  const video = { displayFormat: ['VIDEO'] };

  test('if the API cannot count the values of a filter, count_ads suggests separate searches with the argument split', async ({
    upstream,
    start,
  }) => {
    const service = new FilteringService(7);
    upstream.respondWith(service.respond);
    const counted = { key: 'displayFormat', ...describedKeys.displayFormat, counted: true };
    const server = await start({ searchFilters: { ads: [counted], pages: [] } as never });
    const { data, text } = await server.call('count_ads', { by: 'displayFormat' });
    expect(data).toMatchObject({ total: 7, counts: [], receipt: { calls: 1 } });
    expect(text).toContain('The service did not count the values of displayFormat');
    expect(text).toContain('List the parts in split instead.');
  });

  test('count_ads reuses the ad counts that gather_ads has stored and shows their age', async ({ upstream, start }) => {
    const service = new FilteringService(30);
    service.knownKeys = new Set(['displayFormat']);
    upstream.respondWith(service.respond);
    const clock = { now: testStartTime };
    const server = await start({ searchFilters: buildFilters(['displayFormat']) }, { now: () => clock.now });
    service.modifyResponse = (answer) => ({ ...answer, totalHits: answer.items.length === 1 ? 15 : 0 });
    await server.call('gather_ads', { filters: video, maxCredits: 50 });
    service.modifyResponse = (answer) => answer;
    clock.now += 20 * 3_600_000;
    service.ads = Array.from({ length: 60 }, (_, index) => createAd(index));
    const { data, text } = await server.call('count_ads', { by: 'displayFormat' });
    expect(data.total).toBe(60);
    expect(data.counts).toMatchObject([{ total: 15, gatheredAt: expect.any(String) }, { total: 30 }]);
    expect(data).not.toHaveProperty('rest');
    expect(text).not.toMatch(/rest \(|none or other/);
    expect(text).toContain('The counts overlap or are of different times');
    expect(text).toMatch(/VIDEO"\]\}: 15 \(gathered \d{4}-/);
    const fresh = await server.call('count_ads', { filters: video, fresh: true });
    expect(fresh.data).toMatchObject({ total: 30, receipt: { charged: 1 } });
  });
});
