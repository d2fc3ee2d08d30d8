import fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { computeRun, parseTime } from '../../src/views/dates.ts';
import { serveLibrary, testStartTime, uuid } from './support/served-library.ts';

const served = await serveLibrary();
afterAll(async () => {
  vi.unstubAllEnvs();
  await served.close();
});

type Model = {
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

const orMissing = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const isoDay = (offset: number) => new Date(testStartTime + offset * 86_400_000).toISOString();
const days = fc.integer({ min: -5, max: 5 }).map(isoDay);
/** In halves of a day, with the zone and without: that is UTC, too. */
const times = fc
  .tuple(fc.integer({ min: -10, max: 10 }), fc.boolean())
  .map(([half, zone]) => isoDay(half / 2).slice(0, zone ? undefined : -1));

const someAds: fc.Arbitrary<Model[]> = fc.array(
  fc
    .record({
      headline: orMissing(fc.constantFrom('red tea', 'green tea', 'red shoes', '')),
      countries: orMissing(fc.subarray(['US', 'DE', 'KR', 'BR'])),
      publisherPlatform: orMissing(fc.subarray(['FACEBOOK', 'INSTAGRAM'])),
      ctaType: orMissing(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', null)),
      startedAt: orMissing(times),
      lastSeenAt: orMissing(fc.option(times)),
      endDate: orMissing(fc.option(times)),
      duplicates: orMissing(fc.option(fc.integer({ min: 0, max: 4 }))),
      adSpendMin: orMissing(fc.integer({ min: 0, max: 5 })),
      adSpendMax: orMissing(fc.integer({ min: 5, max: 9 })),
      website: orMissing(
        fc.constantFrom('a.example', 'shop.a.example', 'b.example').map((siteDomain) => ({ siteDomain })),
      ),
    })
    .map((ad) => JSON.parse(JSON.stringify(ad))),
  { maxLength: 20 },
);

const stillRunning = (ad: Model) => computeRun(ad, testStartTime).stillRunning;
const daysRunning = (ad: Model) => computeRun(ad, testStartTime).daysRunning;
const lacks: Record<string, (ad: Model) => boolean> = {
  active: (ad) => stillRunning(ad) === undefined,
  headline: (ad) => !ad.headline,
  countries: (ad) => !ad.countries?.length,
  ctaType: (ad) => ad.ctaType == null,
  startedAt: (ad) => ad.startedAt == null,
  daysRunning: (ad) => daysRunning(ad) === undefined,
  duplicates: (ad) => ad.duplicates == null,
  adSpend: (ad) => (ad.adSpendMin ?? ad.adSpendMax) === undefined,
};

/** A range without an upper end reaches up to any number, one without a lower end begins at zero. */
const highestSpend = ({ adSpendMin, adSpendMax }: Model) =>
  adSpendMax ?? (adSpendMin === undefined ? undefined : Number.POSITIVE_INFINITY);
const lowestSpend = ({ adSpendMin, adSpendMax }: Model) => adSpendMin ?? (adSpendMax === undefined ? undefined : 0);

const has = (ad: Model, word: string) => ad.headline?.split(' ').includes(word) === true;
const holdsOne = (any: string | string[], values: unknown) =>
  [any].flat().some((one) => [values].flat().includes(one.toUpperCase()));
const whole = (least: number, most: number) => fc.integer({ min: least, max: most });

/** What each filter takes, and which ads it finds. */
const rules = {
  query: [
    fc.constantFrom('tea', '-tea', 'red tea', 'red -tea'),
    (ad, text: string) => text.split(' ').every((one) => (one[0] === '-' ? !has(ad, one.slice(1)) : has(ad, one))),
  ],
  countries: [fc.subarray(['us', 'DE', 'KR'], { minLength: 1 }), (ad, any: string[]) => holdsOne(any, ad.countries)],
  publisherPlatform: [fc.constant('INSTAGRAM'), (ad, one: string) => ad.publisherPlatform?.includes(one)],
  ctaType: [
    fc.constantFrom(['SHOP_NOW'], ['shop_now', 'LEARN_MORE']),
    (ad, any: string[]) => holdsOne(any, ad.ctaType),
  ],
  domain: [
    fc.constantFrom('a.example', 'shop.a.example', 'example', 'xa.example'),
    (ad, one: string) => `.${ad.website?.siteDomain}`.endsWith(`.${one}`),
  ],
  duplicatesFrom: [whole(0, 4), (ad, least: number) => (ad.duplicates ?? -1) >= least],
  duplicatesTo: [whole(0, 4), (ad, most: number) => (ad.duplicates ?? 99) <= most],
  adSpendFrom: [whole(0, 9), (ad, least: number) => (highestSpend(ad) ?? -1) >= least],
  adSpendTo: [whole(0, 9), (ad, most: number) => (lowestSpend(ad) ?? 99) <= most],
  daysRunningFrom: [whole(0, 6), (ad, least: number) => (daysRunning(ad) ?? -1) >= least],
  daysRunningTo: [whole(0, 6), (ad, most: number) => (daysRunning(ad) ?? 99) <= most],
  startedAtFrom: [days, (ad, from: string) => Number(parseTime(ad.startedAt)) >= Number(parseTime(from))],
  startedAtTo: [
    days.map((time) => time.slice(0, 10)),
    (ad, to: string) => ad.startedAt != null && ad.startedAt.slice(0, 10) <= to,
  ],
  active: [fc.boolean(), (ad, active: boolean) => stillRunning(ad) === active],
  missing: [
    fc.subarray(Object.keys(lacks), { minLength: 1, maxLength: 2 }),
    (ad, keys: string[]) => keys.every((key) => lacks[key]?.(ad)),
  ],
  // biome-ignore lint/suspicious/noExplicitAny: each rule has a value of its own type
} as Record<string, [fc.Arbitrary<any>, (ad: Model, value: any) => boolean | undefined]>;

/** At most three at once: more find nothing. */
const someFilters = fc
  .subarray(Object.keys(rules), { maxLength: 3 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, rules[key]?.[0] ?? fc.constant(0)]))));

type Filters = Record<string, unknown> & { not?: Record<string, unknown> };

function isFound(ad: Model, { not = {}, ...filters }: Filters): boolean {
  const finds = ([key, value]: [string, unknown]) => rules[key]?.[1](ad, value) === true;
  // Each key of `missing` counts by itself there.
  const { missing = [], ...others } = not as { missing?: string[] };
  const excluded = [...Object.entries(others), ...missing.map((key): [string, unknown] => ['missing', [key]])];
  return Object.entries(filters).every(finds) && !excluded.some(finds);
}

const sortValues: Record<string, (ad: Model) => number | null | undefined> = {
  startedAt: (ad) => parseTime(ad.startedAt),
  duplicates: (ad) => ad.duplicates,
  adSpend: highestSpend,
  daysRunning,
};

/** In the order of a measure, then as they were stored; those without a value last. */
function sorted<Item extends Model>(ads: Item[], { sort = 'startedAt', order = 'desc' }): Item[] {
  const sign = order === 'asc' ? 1 : -1;
  return ads
    .map((ad, at) => ({ ad, value: sortValues[sort]?.(ad) ?? null, at }))
    .sort((left, right) => {
      if (left.value === right.value) return sign * (left.at - right.at);
      if (left.value === null || right.value === null) return left.value === null ? 1 : -1;
      return sign * (left.value - right.value);
    })
    .map(({ ad }) => ad);
}

const countable: Record<string, (ad: Model) => unknown[]> = {
  countries: ({ countries = [] }) => countries,
  publisherPlatform: ({ publisherPlatform = [] }) => publisherPlatform,
  ctaType: ({ ctaType }) => [ctaType ?? []].flat(),
  domain: ({ website: { siteDomain = '' } = {} }) => [siteDomain || []].flat(),
  active: (ad) => [stillRunning(ad) ?? []].flat(),
};

test('a search and its counts agree with a plain reading of the filters, page by page, in any time zone, after records were replaced', async () => {
  const sorting = fc.record(
    { sort: fc.constantFrom(...Object.keys(sortValues)), order: fc.constantFrom('asc', 'desc') },
    { requiredKeys: [] },
  );
  const wanted = fc.tuple(someFilters, fc.option(someFilters, { nil: undefined }));
  const counted = fc.constantFrom(...Object.keys(countable));
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(someAds, someAds),
      wanted,
      sorting,
      whole(1, 12),
      counted,
      async ([earlier, later], [some, not], sort, limit, countBy) => {
        run++;
        const pageId = `run ${run}`;
        const withId = (ads: Model[]) => ads.map((ad, at) => ({ ...ad, id: uuid(100 * run + at), pageId }));
        const filters = { ...some, ...(not && { not }) };
        vi.stubEnv('TZ', 'Asia/Tokyo');
        await served.importRecords(...withId(earlier));
        await served.importRecords(...withId(later));
        vi.stubEnv('TZ', 'America/Los_Angeles');
        // A record that replaces another keeps its place.
        const stored = [...new Map([...withId(earlier), ...withId(later)].map((ad) => [ad.id, ad])).values()];
        const expected = sorted(stored, sort).filter((ad) => isFound(ad, filters));
        const { items, totalHits } = await served.searchAll({ ...filters, ...sort, pageId, limit });
        expect(items.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
        expect(totalHits).toBe(expected.length);

        const { [countBy]: _, ...others } = filters as Filters;
        const { body } = await served.search({ ...others, pageId, countBy, limit: 1 });
        const found = stored.filter((ad) => isFound(ad, others));
        const totals = new Map<unknown, number>(countBy === 'active' ? [true, false].map((one) => [one, 0]) : []);
        const valuesOf = (ad: Model) => countable[countBy]?.(ad) ?? [];
        for (const value of found.flatMap(valuesOf))
          totals.set(value, found.filter((ad) => rules[countBy]?.[1](ad, value)).length);
        const { values, none } = body.counts;
        expect(new Map(values.map((one: { value: unknown; total: number }) => [one.value, one.total]))).toEqual(totals);
        expect(none).toBe(found.filter((ad) => valuesOf(ad).length === 0).length);
      },
    ),
    { numRuns: 150 },
  );
});

test('for every key that can be counted, the number of a value is what its filter finds', async () => {
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
  const wrapped = link.map((url) => `https://l.facebook.com/l.php?u=${encodeURIComponent(url)}`);
  const list = fc.array(text, { maxLength: 3 });
  const flag = fc.boolean();
  const ad = fc.record(
    {
      page: fc.record({ pageName: text }),
      ...{ countries: list, languages: list, publisherPlatform: list },
      ...{ displayFormat: text, ctaType: text, currency: text, isStorePlatformBestSeller: flag },
      media: fc.array(fc.record({ type: fc.constantFrom('VID', 'THUMB', 'PA_PP') }), { maxLength: 2 }),
      website: fc.record({ siteDomain: host }),
      offerLink: fc.oneof(link, wrapped),
      endDate: days,
    },
    { requiredKeys: [] },
  );
  const page = fc.record(
    { countries: list, languages: list, technologySlugs: list, detailsEstimated: flag },
    { requiredKeys: [] },
  );
  const { body: filters } = await served.get('/filters.json');
  const countedKeys = (kind: 'ads' | 'pages') =>
    filters[kind].filter(({ counted }: { counted?: boolean }) => counted).map(({ key }: { key: string }) => key);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(ad, { maxLength: 12 }), fc.array(page, { maxLength: 6 }), async (ads, pages) => {
      run++;
      const pageIds = pages.map((_, at) => `counted ${run} ${at}`);
      await served.importRecords(
        ...ads.map((one, at) => ({ ...one, id: uuid(2_000_000 + 100 * run + at), pageId: `counted ${run}` })),
        ...pages.map((one, at) => ({ ...one, pageId: pageIds[at], pageName: 'Counted' })),
      );
      for (const [kind, scope] of [
        ['ads', { pageId: `counted ${run}` }],
        ['pages', { pageId: pageIds.length > 0 ? pageIds : 'none' }],
      ] as const)
        for (const key of countedKeys(kind)) {
          const hits = async (more: object) =>
            (await served.search({ ...scope, ...more, limit: 1 }, { kind })).body.totalHits;
          const { counts } = (await served.search({ ...scope, countBy: key, limit: 1 }, { kind })).body;
          for (const { value, total } of counts.values)
            expect([key, value, total]).toEqual([key, value, await hits({ [key]: value })]);
          expect([key, counts.none]).toEqual([key, await hits({ missing: [key] })]);
          if (key === 'active') expect(counts.values).toHaveLength(2);
        }
    }),
    { numRuns: 4 },
  );
});

describe('what filters find', () => {
  const pageId = 'examples';
  const examples = [
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
      // It was never seen, so it has not run for any days yet.
      endDate: '2099-01-01T00:00:00Z',
      audienceSizeMin: 1000,
      impressionsMin: 1_000_001,
    },
  ];
  const first = 1_000_001;
  const loaded = served.importRecords(...examples.map((ad, at) => ({ ...ad, id: uuid(first + at), pageId })));

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
    // A range with a lower end alone reaches up to any number, one with an upper end alone begins at zero.
    [{ impressionsFrom: 2_000_000 }, [3]],
    [{ impressionsTo: 1_000_000 }, [1]],
    [{ audienceSizeFrom: 1000, audienceSizeTo: 1000 }, [3]],
    [{ audienceSizeTo: 999 }, []],
    [{ adSpendTo: 50 }, [2]],
    [{ adSpendFrom: 100 }, [2]],
    [{ adSpendFrom: 101 }, []],
    [{ missing: ['impressions'] }, [2]],
    [{ not: { missing: ['adSpend'] } }, [2]],
    // The domain is the one where a visitor arrives.
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
  ] as const)('%j finds %j', async (filters, numbers) => {
    await loaded;
    const { items } = await served.searchAll({ ...filters, pageId });
    expect(items.map(({ id }) => Number(id.slice(-1))).sort()).toEqual(numbers);
  });

  test('an ad in the highest bracket comes first and an ad without any value last, page by page', async () => {
    await loaded;
    const { items } = await served.searchAll({ pageId, sort: 'impressions', limit: 1 });
    expect(items.map(({ id }) => Number(id.slice(-1)))).toEqual([3, 1, 2]);
  });

  test('pages are found by their languages, technologies and names', async () => {
    await served.importRecords(
      { pageId: 'de-1', pageName: 'Müller Möbel', languages: ['de'], technologySlugs: ['live-chat'], pageLikes: 5 },
      { pageId: 'de-2', pageName: 'Schmidt Möbel', languages: ['de', 'en'], pageLikes: 50 },
    );
    const found = async (filters: object) =>
      (await served.searchAll({ ...filters }, 'pages')).items.map(({ pageId }) => pageId);
    expect(await found({ query: 'mobel', sort: 'pageLikes' })).toEqual(['de-2', 'de-1']);
    expect(await found({ languages: ['EN'], query: 'möbel' })).toEqual(['de-2']);
    expect(await found({ technologySlugs: 'live-chat' })).toEqual(['de-1']);
    expect(await found({ query: 'mobel', pageLikesTo: 10 })).toEqual(['de-1']);
  });
});
