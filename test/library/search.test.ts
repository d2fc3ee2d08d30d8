import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { runOf } from '../../src/present/values.ts';
import { searchAll, serveLibrary, serveRich, startOfTests, uuid } from './support/served-library.ts';

const { served, key } = await serveRich();
afterAll(() => served.close());

const day = 86_400_000;
const isoDay = (offset: number) => new Date(startOfTests + offset * day).toISOString();

describe('filters and sorting', () => {
  type Model = {
    id: string;
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
  const ads = fc
    .array(
      fc.record({
        countries: orMissing(fc.subarray(['US', 'DE', 'KR', 'BR'])),
        publisherPlatform: orMissing(fc.subarray(['FACEBOOK', 'INSTAGRAM'])),
        ctaType: orMissing(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', null)),
        startedAt: orMissing(fc.integer({ min: -5, max: 5 }).map(isoDay)),
        lastSeenAt: orMissing(fc.option(fc.integer({ min: -9, max: 1 }).map((hours) => isoDay(hours / 2)))),
        endDate: orMissing(fc.option(fc.integer({ min: -5, max: 5 }).map(isoDay))),
        duplicates: orMissing(fc.option(fc.integer({ min: 0, max: 4 }))),
        adSpendMin: orMissing(fc.integer({ min: 0, max: 5 })),
        adSpendMax: orMissing(fc.integer({ min: 5, max: 9 })),
        website: orMissing(
          fc.constantFrom('a.example', 'shop.a.example', 'b.example').map((siteDomain) => ({ siteDomain })),
        ),
      }),
      { maxLength: 25 },
    )
    .map((list): Model[] => list.map((ad, at) => JSON.parse(JSON.stringify({ id: uuid(at), ...ad }))));

  const rules = {
    countries: [
      fc.subarray(['us', 'DE', 'KR'], { minLength: 1 }),
      (ad: Model, any: string[]) => any.some((one) => ad.countries?.includes(one.toUpperCase())),
    ],
    publisherPlatform: [fc.constantFrom('INSTAGRAM'), (ad: Model, one: string) => ad.publisherPlatform?.includes(one)],
    ctaType: [
      fc.constantFrom(['SHOP_NOW'], ['shop_now', 'LEARN_MORE']),
      (ad: Model, any: string[]) => any.some((one) => ad.ctaType === one.toUpperCase()),
    ],
    domain: [
      fc.constantFrom('a.example', 'shop.a.example', 'example', 'xa.example'),
      (ad: Model, one: string) => `.${ad.website?.siteDomain}`.endsWith(`.${one}`),
    ],
    duplicatesFrom: [fc.integer({ min: 0, max: 4 }), (ad: Model, least: number) => (ad.duplicates ?? -1) >= least],
    duplicatesTo: [fc.integer({ min: 0, max: 4 }), (ad: Model, most: number) => (ad.duplicates ?? 99) <= most],
    adSpendFrom: [
      fc.integer({ min: 0, max: 9 }),
      (ad: Model, least: number) => (ad.adSpendMax ?? ad.adSpendMin ?? -1) >= least,
    ],
    adSpendTo: [
      fc.integer({ min: 0, max: 9 }),
      (ad: Model, most: number) => (ad.adSpendMin ?? ad.adSpendMax ?? 99) <= most,
    ],
    startedAtFrom: [
      fc.integer({ min: -5, max: 5 }).map(isoDay),
      (ad: Model, from: string) => (ad.startedAt ?? '') >= from,
    ],
    startedAtTo: [
      fc.integer({ min: -5, max: 5 }).map((offset) => isoDay(offset).slice(0, 10)),
      (ad: Model, to: string) => ad.startedAt != null && ad.startedAt.slice(0, 10) <= to,
    ],
    active: [fc.boolean(), (ad: Model, active: boolean) => runOf(ad, startOfTests).stillRunning === active],
    missing: [fc.constant(['active']), (ad: Model) => runOf(ad, startOfTests).stillRunning === undefined],
    // biome-ignore lint/suspicious/noExplicitAny: each rule has a value of its own type
  } as Record<string, [fc.Arbitrary<any>, (ad: Model, value: any) => boolean | undefined]>;
  const filters = fc.record(Object.fromEntries(Object.entries(rules).map(([name, [value]]) => [name, value])), {
    requiredKeys: [],
  });
  const sorting = fc.record(
    { sort: fc.constantFrom('duplicates', 'startedAt', 'adSpend'), order: fc.constantFrom('asc', 'desc') },
    { requiredKeys: [] },
  );

  function expected(all: Model[], wanted: Record<string, unknown>, { sort = 'startedAt', order = 'desc' }) {
    const value = (ad: Model) => (sort === 'adSpend' ? ad.adSpendMax : ad[sort as 'duplicates' | 'startedAt']) ?? null;
    const sign = order === 'asc' ? 1 : -1;
    return all
      .filter((ad) => Object.entries(wanted).every(([name, given]) => rules[name]?.[1](ad, given)))
      .map((ad, at) => ({ id: ad.id, value: value(ad), at }))
      .sort((left, right) => {
        if (left.value === null || right.value === null) {
          return left.value === right.value ? sign * (left.at - right.at) : left.value === null ? 1 : -1;
        }
        return sign * (left.value < right.value ? -1 : left.value > right.value ? 1 : left.at - right.at);
      })
      .map(({ id }) => id);
  }

  test('answers what a plain reading of the filters answers, page by page', async () => {
    await fc.assert(
      fc.asyncProperty(ads, filters, sorting, fc.integer({ min: 1, max: 30 }), async (all, wanted, sorted, limit) => {
        const own = await serveLibrary();
        try {
          await own.load(...all);
          const by = own.key();
          const { items, totalHits } = await searchAll(own, '/v1/ads/search', by, { ...wanted, ...sorted, limit });
          const ids = items.map((item: { id: string }) => item.id);
          expect(ids).toEqual(expected(all, wanted, sorted));
          expect(totalHits).toBe(ids.length);
        } finally {
          await own.close();
        }
      }),
      { numRuns: 150 },
    );
  });

  const valuesOf: Record<string, (ad: Model) => unknown[]> = {
    countries: ({ countries = [] }) => countries,
    publisherPlatform: ({ publisherPlatform = [] }) => publisherPlatform,
    ctaType: ({ ctaType }) => [ctaType ?? []].flat(),
    domain: ({ website }) =>
      website === undefined
        ? []
        : [website.siteDomain, website.siteDomain.split('.').slice(1).join('.')].filter((one) => one.includes('.')),
    active: (ad) => [runOf(ad, startOfTests).stillRunning ?? []].flat(),
  };
  test('counts by a key as a plain reading of the ads does, whatever was replaced', async () => {
    await fc.assert(
      fc.asyncProperty(ads, ads, filters, async (earlier, all, wanted) => {
        const own = await serveLibrary();
        try {
          await own.load(...earlier);
          await own.load(...all);
          const stored = [...new Map([...earlier, ...all].map((ad) => [ad.id, ad])).values()];
          for (const [countBy, values] of Object.entries(valuesOf)) {
            const { [countBy]: _, ...filters } = wanted;
            const { body } = await own.ask('POST', '/v1/ads/search', {
              key: own.key(),
              body: { ...filters, countBy, limit: 1 },
            });
            const found = stored.filter((ad) => expected([ad], filters, {}).length > 0);
            const counts = new Map<unknown, number>(countBy === 'active' ? [true, false].map((one) => [one, 0]) : []);
            for (const value of found.flatMap(values)) counts.set(value, (counts.get(value) ?? 0) + 1);
            expect(body.totalHits).toBe(found.length);
            expect(
              new Map(body.counts.values.map((one: { value: unknown; total: number }) => [one.value, one.total])),
            ).toEqual(counts);
            const isWithout = (ad: Model) =>
              countBy === 'domain' ? ad.website === undefined : values(ad).length === 0;
            expect(body.counts.none).toBe(found.filter(isWithout).length);
          }
        } finally {
          await own.close();
        }
      }),
      { numRuns: 60 },
    );
  }, 120_000);
});

test('days running are calendar days, as in results', async () => {
  const late = { id: uuid(77), startedAt: '2026-03-01T23:00:00Z', lastSeenAt: '2026-03-02T01:00:00Z' };
  await served.load(late);
  const { items } = await searchAll(served, '/v1/ads/search', key, { daysRunningFrom: 1, daysRunningTo: 1 });
  expect(items.map(({ id }: { id: string }) => id)).toContain(late.id);
  expect(runOf(late, served.clock.now).daysRunning).toBe(1);
});

test('days running are those that results show, on every page and in every zone, an end to come not yet counted', async () => {
  const { TZ } = process.env;
  const day = 86_400_000;
  const own = await serveLibrary();
  const today = own.clock.now;
  const days = fc.option(fc.integer({ min: -20, max: 20 }), { nil: undefined });
  const [dates = []] = fc.sample(fc.array(fc.tuple(days, days, days), { minLength: 120, maxLength: 120 }), 1);
  const without = (from: number | undefined) =>
    from === undefined ? null : new Date(today + from * day).toISOString().replace('Z', '');
  const all = dates.map(([start, seen, end], index) => ({
    id: uuid(index),
    startedAt: without(start),
    lastSeenAt: without(seen),
    endDate: without(end),
  }));
  try {
    process.env.TZ = 'Asia/Tokyo';
    await own.load(...all);
    process.env.TZ = 'America/Los_Angeles';
    for (const ran of [0, 1, 5, 12]) {
      const wanted = { daysRunningFrom: ran, daysRunningTo: ran, sort: 'daysRunning', limit: 3 };
      const { items } = await searchAll(own, '/v1/ads/search', own.key(), wanted);
      const shown = all.filter((_, index) => {
        const [start = Number.NaN, seen, end] = dates[index] ?? [];
        return ((end !== undefined && end <= 0 ? end : seen) ?? Number.NaN) - start === ran;
      });
      expect(items.map(({ id }: { id: string }) => id).toSorted()).toEqual(shown.map(({ id }) => id));
      for (const ad of shown) expect(runOf(ad, today).daysRunning).toBe(ran);
    }
  } finally {
    process.env.TZ = TZ;
    if (TZ === undefined) delete process.env.TZ;
    await own.close();
  }
});

describe('searchPages', () => {
  test('filters by languages and technologies, and finds by name', async () => {
    await served.load(
      { pageId: 'de-1', pageName: 'Müller Möbel', languages: ['de'], technologySlugs: ['live-chat'], pageLikes: 5 },
      { pageId: 'de-2', pageName: 'Schmidt Möbel', languages: ['de', 'en'], pageLikes: 50 },
    );
    const names = async (body: Record<string, unknown>) =>
      (await searchAll(served, '/v1/pages/search', key, body)).items.map((page: { pageId: string }) => page.pageId);
    expect(await names({ query: 'mobel', sort: 'pageLikes' })).toEqual(['de-2', 'de-1']);
    expect(await names({ languages: ['EN'], query: 'möbel' })).toEqual(['de-2']);
    expect(await names({ technologySlugs: 'live-chat' })).toEqual(['de-1']);
    expect(await names({ query: 'mobel', pageLikesTo: 10 })).toEqual(['de-1']);
  });
});
