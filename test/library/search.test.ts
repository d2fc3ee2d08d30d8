import fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { parseTime } from '../../src/views/dates.ts';
import { computeRunningTime } from '../../src/views/days-running.ts';
import { createUuid, startLibraryServer, testStartTime } from './support/library-server.ts';

const libraryServer = await startLibraryServer();
afterAll(async () => {
  vi.unstubAllEnvs();
  await libraryServer.close();
});

/** The fields of an ad that the simple model of the search filters reads. */
type ModelAd = {
  headline?: string;
  countries?: string[];
  publisherPlatform?: string[];
  ctaType?: string | null;
  startedAt?: string | null;
  lastSeenAt?: string | null;
  endDate?: string | null;
  duplicates?: number | null;
  adSpendMin?: number;
  adSpendMax?: number;
  website?: { siteDomain: string };
};

const orUndefined = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const isoDay = (offset: number) => new Date(testStartTime + offset * 86_400_000).toISOString();
const dayTimes = fc.integer({ min: -5, max: 5 }).map(isoDay);
/** Generates times in steps of half a day. With and without the suffix Z, they mean UTC. */
const times = fc
  .tuple(fc.integer({ min: -10, max: 10 }), fc.boolean())
  .map(([halfDays, hasZone]) => isoDay(halfDays / 2).slice(0, hasZone ? undefined : -1));

const adLists: fc.Arbitrary<ModelAd[]> = fc.array(
  fc
    .record({
      headline: orUndefined(fc.constantFrom('red tea', 'green tea', 'red shoes', '')),
      countries: orUndefined(fc.subarray(['US', 'DE', 'KR', 'BR'])),
      publisherPlatform: orUndefined(fc.subarray(['FACEBOOK', 'INSTAGRAM'])),
      ctaType: orUndefined(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', null)),
      startedAt: orUndefined(times),
      lastSeenAt: orUndefined(fc.option(times)),
      endDate: orUndefined(fc.option(times)),
      duplicates: orUndefined(fc.option(fc.integer({ min: 0, max: 4 }))),
      adSpendMin: orUndefined(fc.integer({ min: 0, max: 5 })),
      adSpendMax: orUndefined(fc.integer({ min: 5, max: 9 })),
      website: orUndefined(
        fc.constantFrom('a.example', 'shop.a.example', 'b.example').map((siteDomain) => ({ siteDomain })),
      ),
    })
    .map((ad) => JSON.parse(JSON.stringify(ad))),
  { maxLength: 20 },
);

const isStillRunning = (ad: ModelAd) => computeRunningTime(ad, testStartTime).stillRunning;
const countDaysRunning = (ad: ModelAd) => computeRunningTime(ad, testStartTime).daysRunning;
/** For each key that the `missing` filter accepts, a function that returns true if an ad has no value for the key. */
const hasNoValue: Record<string, (ad: ModelAd) => boolean> = {
  active: (ad) => isStillRunning(ad) === undefined,
  headline: (ad) => !ad.headline,
  countries: (ad) => !ad.countries?.length,
  ctaType: (ad) => ad.ctaType == null,
  startedAt: (ad) => ad.startedAt == null,
  daysRunning: (ad) => countDaysRunning(ad) === undefined,
  duplicates: (ad) => ad.duplicates == null,
  adSpend: (ad) => (ad.adSpendMin ?? ad.adSpendMax) === undefined,
};

/**
 * Returns the upper bound of an ad's spend. It is infinite if the ad has only a lower bound, and undefined if the ad
 * has no bound.
 */
const getHighestSpend = ({ adSpendMin, adSpendMax }: ModelAd) =>
  adSpendMax ?? (adSpendMin === undefined ? undefined : Number.POSITIVE_INFINITY);
const getLowestSpend = ({ adSpendMin, adSpendMax }: ModelAd) =>
  adSpendMin ?? (adSpendMax === undefined ? undefined : 0);

const hasWord = (ad: ModelAd, word: string) => ad.headline?.split(' ').includes(word) === true;
/** Returns true if the values of an ad contain a filter value in upper case. The filter may be a single value. */
const hasAny = (filter: string | string[], values: unknown) =>
  [filter].flat().some((value) => [values].flat().includes(value.toUpperCase()));
const wholeNumber = (min: number, max: number) => fc.integer({ min, max });

/** For each filter, a generator of filter values, and a function that returns true if the filter must find an ad. */
const rules = {
  query: [
    fc.constantFrom('tea', '-tea', 'red tea', 'red -tea'),
    (ad, text: string) =>
      text.split(' ').every((word) => (word[0] === '-' ? !hasWord(ad, word.slice(1)) : hasWord(ad, word))),
  ],
  countries: [
    fc.subarray(['us', 'DE', 'KR'], { minLength: 1 }),
    (ad, countries: string[]) => hasAny(countries, ad.countries),
  ],
  publisherPlatform: [fc.constant('INSTAGRAM'), (ad, platform: string) => ad.publisherPlatform?.includes(platform)],
  ctaType: [
    fc.constantFrom(['SHOP_NOW'], ['shop_now', 'LEARN_MORE']),
    (ad, ctaTypes: string[]) => hasAny(ctaTypes, ad.ctaType),
  ],
  domain: [
    fc.constantFrom('a.example', 'shop.a.example', 'example', 'xa.example'),
    (ad, domain: string) => `.${ad.website?.siteDomain}`.endsWith(`.${domain}`),
  ],
  duplicatesFrom: [wholeNumber(0, 4), (ad, least: number) => (ad.duplicates ?? -1) >= least],
  duplicatesTo: [wholeNumber(0, 4), (ad, most: number) => (ad.duplicates ?? 99) <= most],
  adSpendFrom: [wholeNumber(0, 9), (ad, least: number) => (getHighestSpend(ad) ?? -1) >= least],
  adSpendTo: [wholeNumber(0, 9), (ad, most: number) => (getLowestSpend(ad) ?? 99) <= most],
  daysRunningFrom: [wholeNumber(0, 6), (ad, least: number) => (countDaysRunning(ad) ?? -1) >= least],
  daysRunningTo: [wholeNumber(0, 6), (ad, most: number) => (countDaysRunning(ad) ?? 99) <= most],
  startedAtFrom: [dayTimes, (ad, from: string) => Number(parseTime(ad.startedAt)) >= Number(parseTime(from))],
  startedAtTo: [
    dayTimes.map((time) => time.slice(0, 10)),
    (ad, to: string) => ad.startedAt != null && ad.startedAt.slice(0, 10) <= to,
  ],
  active: [fc.boolean(), (ad, active: boolean) => isStillRunning(ad) === active],
  missing: [
    fc.subarray(Object.keys(hasNoValue), { minLength: 1, maxLength: 2 }),
    (ad, keys: string[]) => keys.every((key) => hasNoValue[key]?.(ad)),
  ],
  // biome-ignore lint/suspicious/noExplicitAny: each rule has a value of its own type
} as Record<string, [fc.Arbitrary<any>, (ad: ModelAd, value: any) => boolean | undefined]>;

/** Generates at most three filters, because few random ads would match more. */
const filterSets = fc
  .subarray(Object.keys(rules), { maxLength: 3 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, rules[key]?.[0] ?? fc.constant(0)]))));

type Filters = Record<string, unknown> & { not?: Record<string, unknown> };

/**
 * The simple model of a search that the test compares with the library. Returns true if the search must find the ad.
 */
function isFound(ad: ModelAd, { not = {}, ...filters }: Filters): boolean {
  const matches = ([key, value]: [string, unknown]) => rules[key]?.[1](ad, value) === true;
  // Inside `not`, each key of `missing` counts as a separate filter.
  const { missing = [], ...others } = not as { missing?: string[] };
  const excluded = [...Object.entries(others), ...missing.map((key): [string, unknown] => ['missing', [key]])];
  return Object.entries(filters).every(matches) && !excluded.some(matches);
}

const sortValues: Record<string, (ad: ModelAd) => number | null | undefined> = {
  startedAt: (ad) => parseTime(ad.startedAt),
  duplicates: (ad) => ad.duplicates,
  adSpend: getHighestSpend,
  daysRunning: countDaysRunning,
};

/**
 * Sorts ads as a search of the library must sort them: by the sort value, then in the order of their import. Ads
 * without a sort value come last.
 */
function sortAds<Item extends ModelAd>(ads: Item[], { sort = 'startedAt', order = 'desc' }): Item[] {
  const sign = order === 'asc' ? 1 : -1;
  return ads
    .map((ad, index) => ({ ad, value: sortValues[sort]?.(ad) ?? null, index }))
    .sort((left, right) => {
      if (left.value === right.value) return sign * (left.index - right.index);
      if (left.value === null || right.value === null) return left.value === null ? 1 : -1;
      return sign * (left.value - right.value);
    })
    .map(({ ad }) => ad);
}

/**
 * Combines two versions of an ad as imports of the library must combine them. The imported version replaces the stored
 * version unless it was last seen earlier. The spend of the other version stays if the newer version has no spend.
 */
function combineVersions<Item extends ModelAd>(storedAd: Item | undefined, importedAd: Item): Item {
  if (!storedAd) return importedAd;
  const [importedTime, storedTime] = [importedAd, storedAd].map(({ lastSeenAt }) => parseTime(lastSeenAt));
  const isOlder = importedTime !== undefined && storedTime !== undefined && importedTime < storedTime;
  const [newerAd, olderAd] = isOlder ? [storedAd, importedAd] : [importedAd, storedAd];
  if (getHighestSpend(newerAd) !== undefined) return newerAd;
  return { ...newerAd, adSpendMin: olderAd.adSpendMin, adSpendMax: olderAd.adSpendMax };
}

/** For each key that a search can count, a function that returns the values of an ad. */
const countableValues: Record<string, (ad: ModelAd) => unknown[]> = {
  countries: ({ countries = [] }) => countries,
  publisherPlatform: ({ publisherPlatform = [] }) => publisherPlatform,
  ctaType: ({ ctaType }) => [ctaType ?? []].flat(),
  domain: ({ website: { siteDomain = '' } = {} }) => [siteDomain || []].flat(),
  active: (ad) => [isStillRunning(ad) ?? []].flat(),
};

test('a search in the local library returns the same ads as a simple reference implementation', async () => {
  const sortOptions = fc.record(
    { sort: fc.constantFrom(...Object.keys(sortValues)), order: fc.constantFrom('asc', 'desc') },
    { requiredKeys: [] },
  );
  const filterPairs = fc.tuple(filterSets, fc.option(filterSets, { nil: undefined }));
  const countByKeys = fc.constantFrom(...Object.keys(countableValues));
  const search = fc.tuple(filterPairs, sortOptions, wholeNumber(1, 12), countByKeys);
  let run = 0;
  await fc.assert(
    // Run several searches over the same ads, because an import takes longer than a search.
    fc.asyncProperty(
      fc.tuple(adLists, adLists),
      fc.array(search, { minLength: 3, maxLength: 3 }),
      async ([firstImport, secondImport], searches) => {
        run++;
        const pageId = `run ${run}`;
        const withIds = (ads: ModelAd[]) =>
          ads.map((ad, index) => ({ ...ad, id: createUuid(100 * run + index), pageId }));
        vi.stubEnv('TZ', 'Asia/Tokyo');
        await libraryServer.importRecords(...withIds(firstImport));
        await libraryServer.importRecords(...withIds(secondImport));
        vi.stubEnv('TZ', 'America/Los_Angeles');
        // A map keeps the position of a key that is set again, as the library keeps the position of an ad.
        const adById = new Map(withIds(firstImport).map((ad) => [ad.id, ad]));
        for (const ad of withIds(secondImport)) adById.set(ad.id, combineVersions(adById.get(ad.id), ad));
        const storedAds = [...adById.values()];
        for (const [[positiveFilters, not], sort, limit, countBy] of searches) {
          const filters = { ...positiveFilters, ...(not && { not }) };
          const expected = sortAds(storedAds, sort).filter((ad) => isFound(ad, filters));
          const { items, totalHits } = await libraryServer.searchAll({ ...filters, ...sort, pageId, limit });
          expect(items.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
          expect(totalHits).toBe(expected.length);

          const { [countBy]: _, ...otherFilters } = filters as Filters;
          const { body } = await libraryServer.search({ ...otherFilters, pageId, countBy, limit: 1 });
          const matchingAds = storedAds.filter((ad) => isFound(ad, otherFilters));
          const totals = new Map<unknown, number>(countBy === 'active' ? [true, false].map((value) => [value, 0]) : []);
          const getValues = (ad: ModelAd) => countableValues[countBy]?.(ad) ?? [];
          for (const value of matchingAds.flatMap(getValues))
            totals.set(value, matchingAds.filter((ad) => rules[countBy]?.[1](ad, value)).length);
          const { values, none } = body.counts;
          expect(new Map(values.map(({ value, total }: { value: unknown; total: number }) => [value, total]))).toEqual(
            totals,
          );
          expect(none).toBe(matchingAds.filter((ad) => getValues(ad).length === 0).length);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test('the number of ads that the local library counts for a filter value equals the number of ads that the filter finds', async () => {
  const word = fc.constantFrom(
    'a',
    'A',
    'b',
    ' b',
    'É',
    'é',
    'pt',
    'pt_BR',
    'PT-br',
    'ﬁ',
    'İ',
    'x\ud800',
    '\0',
    ' ',
    '',
  );
  const text = fc.oneof(word, fc.string({ unit: 'binary', maxLength: 3 }));
  const host = fc.constantFrom('a.example', 'shop.a.example', 'www.a.example', 'b.example', 'example', '中文.example');
  const link = host.map((name) => `https://${name}/x`);
  const redirectLink = link.map((url) => `https://l.facebook.com/l.php?u=${encodeURIComponent(url)}`);
  const list = fc.array(text, { maxLength: 3 });
  const boolean = fc.boolean();
  const ad = fc.record(
    {
      page: fc.record({ pageName: text }),
      ...{ countries: list, languages: list, publisherPlatform: list },
      ...{ displayFormat: text, ctaType: text, currency: text, isStorePlatformBestSeller: boolean },
      media: fc.array(fc.record({ type: fc.constantFrom('VID', 'THUMB', 'PA_PP') }), { maxLength: 2 }),
      website: fc.record({ siteDomain: host }),
      offerLink: fc.oneof(link, redirectLink),
      endDate: dayTimes,
    },
    { requiredKeys: [] },
  );
  const page = fc.record(
    { countries: list, languages: list, technologySlugs: list, detailsEstimated: boolean },
    { requiredKeys: [] },
  );
  const { body: filters } = await libraryServer.get('/filters.json');
  const listCountedKeys = (kind: 'ads' | 'pages') =>
    filters[kind].filter(({ counted }: { counted?: boolean }) => counted).map(({ key }: { key: string }) => key);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(ad, { maxLength: 12 }), fc.array(page, { maxLength: 6 }), async (ads, pages) => {
      run++;
      const pageIds = pages.map((_, index) => `counted ${run} ${index}`);
      await libraryServer.importRecords(
        ...ads.map((ad, index) => ({ ...ad, id: createUuid(2_000_000 + 100 * run + index), pageId: `counted ${run}` })),
        ...pages.map((page, index) => ({ ...page, pageId: pageIds[index], pageName: 'Counted' })),
      );
      for (const [kind, scope] of [
        ['ads', { pageId: `counted ${run}` }],
        ['pages', { pageId: pageIds.length > 0 ? pageIds : 'none' }],
      ] as const)
        for (const key of listCountedKeys(kind)) {
          const countHits = async (filters: object) =>
            (await libraryServer.search({ ...scope, ...filters, limit: 1 }, { kind })).body.totalHits;
          const { counts } = (await libraryServer.search({ ...scope, countBy: key, limit: 1 }, { kind })).body;
          for (const { value, total } of counts.values)
            expect([key, value, total]).toEqual([key, value, await countHits({ [key]: value })]);
          expect([key, counts.none]).toEqual([key, await countHits({ missing: [key] })]);
          if (key === 'active') expect(counts.values).toHaveLength(2);
        }
    }),
    { numRuns: 2 },
  );
});

describe('Search filters of the local library', () => {
  const pageId = 'examples';
  const exampleAds = [
    {
      headline: 'Tea for two',
      body: 'Loose leaf tea, picked by hand and sent to your door within two days',
      countries: ['DE', 'AT'],
      startedAt: '2026-01-05T00:00:00Z',
      page: { pageName: 'Leaf & Co' },
      bylines: 'Paid for by Friends of Tea',
      ...{ currency: 'EUR', impressionsMin: 100, impressionsMax: 500 },
    },
    {
      ...{ headline: '', body: null, languages: ['pt_BR'], page: { pageName: 'leaf & co' }, adSpendMax: 100 },
      offerLink: 'https://l.facebook.com/l.php?u=https%3A%2F%2Fwww.shop.leaf.example%2Ftea&h=x',
    },
    {
      body: '따뜻한 차 한 잔으로 하루를 시작하세요. 오늘만 무료배송',
      startedAt: '2026-02-05T00:00:00Z',
      page: { pageName: 'Leaf & Co Korea' },
      // The library does not know how many days the ad has run, because lastSeenAt is missing and the end date is in
      // the future.
      endDate: '2099-01-01T00:00:00Z',
      audienceSizeMin: 1000,
      impressionsMin: 1_000_001,
    },
  ];
  test('a search filter finds a name regardless of its Unicode normalization form', async () => {
    await libraryServer.importRecords({ id: createUuid(2_000_001), pageId: 'forms', pageName: 'Cafe\u0301 Noir' });
    for (const name of ['Caf\u00e9 Noir', 'Cafe\u0301 Noir', 'CAF\u00c9 NOIR'])
      expect((await libraryServer.searchAll({ pageId: 'forms', advertiserExact: [name] })).items).toHaveLength(1);
  });

  test.each([
    'müller.example',
    'MU\u0308LLER.example',
    'xn--mller-kva.example',
    'www.müller.example',
    'https://müller.example/tee',
  ])(
    'the filter `domain` finds the ads of an internationalized domain that the filter writes as %s',
    async (domain) => {
      await libraryServer.importRecords(
        { id: createUuid(2_000_002), pageId: 'international', offerLink: 'https://shop.xn--mller-kva.example/tea' },
        { id: createUuid(2_000_003), pageId: 'international', offerLink: 'https://müller.example/tea' },
        { id: createUuid(2_000_004), pageId: 'international', offerLink: 'https://muller.example/tea' },
      );
      const { items } = await libraryServer.searchAll({ pageId: 'international', domain });
      expect(items.map(({ id }) => Number(id.slice(-1))).sort()).toEqual([2, 3]);
    },
  );

  const firstNumber = 1_000_001;
  const examplesImport = libraryServer.importRecords(
    ...exampleAds.map((ad, index) => ({ ...ad, id: createUuid(firstNumber + index), pageId })),
  );

  test.each([
    [{ language: ['en'] }, [1]],
    [{ language: ['ko', 'pt'] }, [2, 3]],
    [{ language: 'pt_br' }, [2]],
    [{ advertiserExact: 'Leaf & Co' }, [1, 2]],
    [{ advertiser: 'leaf co' }, [1, 2, 3]],
    [{ bylines: '"friends of tea"' }, [1]],
    [{ bylines: '-friends' }, [2, 3]],
    [{ query: 'friends' }, [1]],
    [{ query: '-tea', not: { bylines: 'tea' } }, [2, 3]],
    [{ not: { query: '-tea' } }, [1]],
    [{ not: {} }, [1, 2, 3]],
    [{ currency: 'eur' }, [1]],
    [{ impressionsFrom: 500, impressionsTo: 500 }, [1]],
    [{ impressionsTo: 99 }, []],
    // The range of an ad is unlimited if it has no upper bound, and starts at zero if it has no lower bound.
    [{ impressionsFrom: 2_000_000 }, [3]],
    [{ impressionsTo: 1_000_000 }, [1]],
    [{ audienceSizeFrom: 1000, audienceSizeTo: 1000 }, [3]],
    [{ audienceSizeTo: 999 }, []],
    [{ adSpendTo: 50 }, [2]],
    [{ adSpendFrom: 100 }, [2]],
    [{ adSpendFrom: 101 }, []],
    [{ missing: ['impressions'] }, [2]],
    [{ not: { missing: ['adSpend'] } }, [2]],
    // The domain of an ad is the domain of the page to which all redirects lead.
    [{ domain: 'leaf.example' }, [2]],
    [{ domain: 'shop.leaf.example' }, [2]],
    [{ domain: 'facebook.com' }, []],
    [{ missing: ['domain'] }, [1, 3]],
    [{ missing: ['STARTEDAT'] }, [2]],
    [{ missing: ['daysRunning'] }, [1, 2, 3]],
    [{ not: { missing: ['daysRunning'] } }, []],
    [{ countries: 'de', order: 'ASC' }, [1]],
    [{ startedAtTo: '2026-01-05T12:00+01:00' }, [1]],
    [{ startedAtTo: '2026-01-05T00:30+01:00' }, []],
  ] as const)('a library search with the filters %j finds exactly the example ads %j', async (filters, numbers) => {
    await examplesImport;
    const { items } = await libraryServer.searchAll({ ...filters, pageId });
    expect(items.map(({ id }) => Number(id.slice(-1))).sort()).toEqual(numbers);
  });

  test('a search sorted by impressions lists ads without an upper bound first and ads without impressions last', async () => {
    await examplesImport;
    const { items } = await libraryServer.searchAll({ pageId, sort: 'impressions', limit: 1 });
    expect(items.map(({ id }) => Number(id.slice(-1)))).toEqual([3, 1, 2]);
  });

  test('a library search finds advertiser pages by language, technology, likes and name', async () => {
    await libraryServer.importRecords(
      { pageId: 'de-1', pageName: 'Müller Möbel', languages: ['de'], technologySlugs: ['live-chat'], pageLikes: 5 },
      { pageId: 'de-2', pageName: 'Schmidt Möbel', languages: ['de', 'en'], pageLikes: 50 },
    );
    const searchPageIds = async (filters: object) =>
      (await libraryServer.searchAll({ ...filters }, 'pages')).items.map(({ pageId }) => pageId);
    expect(await searchPageIds({ query: 'mobel', sort: 'pageLikes' })).toEqual(['de-2', 'de-1']);
    expect(await searchPageIds({ languages: ['EN'], query: 'möbel' })).toEqual(['de-2']);
    expect(await searchPageIds({ technologySlugs: 'live-chat' })).toEqual(['de-1']);
    expect(await searchPageIds({ query: 'mobel', pageLikesTo: 10 })).toEqual(['de-1']);
  });
});
