import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { describedFilters } from '../../src/library/search/filters.ts';
import { runOf } from '../../src/present/values.ts';
import { serveLibrary, startOfTests } from '../library/support/served-library.ts';
import { AdService, adOf, type Search, type ServedAd } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { type Result, startServer, type TestServer } from '../support/server.ts';

const test = freshUpstreamTest();
const day = 86_400_000;
const dayOf = (offset: number) => new Date(startOfTests + offset * day).toISOString();
const orMissing = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

const someAds = fc
  .array(
    fc.record({
      displayFormat: orMissing(fc.constantFrom('VIDEO', 'IMAGE', 'CAROUSEL', 'STORY')),
      ctaType: orMissing(fc.constantFrom('SHOP_NOW', 'SEE_DETAILS')),
      countries: orMissing(fc.subarray(['DE', 'AT', 'CH'])),
      page: orMissing(fc.constantFrom('Acme', 'Brown & Co').map((pageName) => ({ pageName }))),
      lastSeenAt: orMissing(fc.integer({ min: -12, max: 1 }).map((half) => dayOf(half / 2))),
      endDate: orMissing(fc.option(fc.integer({ min: -3, max: 3 }).map(dayOf))),
    }),
    { minLength: 1, maxLength: 20 },
  )
  .map((ads) =>
    ads.map(
      (ad, index) =>
        JSON.parse(JSON.stringify(adOf(index, { displayFormat: undefined, ...(ad as object) }))) as ServedAd,
    ),
  );

const stateOf = (ad: object) => runOf(ad, startOfTests).stillRunning;
const seenOf = (ads: readonly ServedAd[]) => {
  const days = ads.flatMap(({ lastSeenAt }) => String(lastSeenAt ?? '').slice(0, 10) || []).sort();
  const [first = '', last] = [days[0], days.at(-1)];
  const some = days.length < ads.length ? `${days.length} of them ` : '';
  return first && `, ${some}last seen ${first === last ? first : `${first} to ${last}`}`;
};
const valuesOf: Record<string, (ad: ServedAd) => unknown[]> = {
  displayFormat: ({ displayFormat }) => [displayFormat ?? []].flat(),
  ctaType: ({ ctaType }) => [ctaType ?? []].flat(),
  countries: ({ countries = [] }) => countries as string[],
  advertiserExact: ({ page }) => [(page as { pageName: string } | undefined)?.pageName ?? []].flat(),
};

interface Part {
  filters: Record<string, unknown>;
  total: number | null;
  value?: string;
  note?: string;
}
const partsIn = ({ data }: Result) => data.counts as unknown as Part[];
const totals = (counts: readonly Part[], key: string) =>
  Object.fromEntries(counts.map(({ filters, total }) => [String([filters[key]].flat()[0]), total]));

function tally(values: readonly unknown[]) {
  const counts: Record<string, number> = {};
  for (const value of values) counts[String(value)] = (counts[String(value)] ?? 0) + 1;
  return counts;
}

/** A server in front of a local library that holds these ads, both of one time. */
async function withLibrary(ads: readonly ServedAd[], use: (call: TestServer['call']) => Promise<void>) {
  const library = await serveLibrary();
  await library.load(...ads);
  // Given, because on a loaded machine the library may describe them too late.
  const searchFilters = describedFilters();
  const config = { baseUrl: library.base, apiKey: library.key(), searchFilters };
  const server = await startServer({ config, now: () => library.clock.now });
  try {
    await use(server.call);
  } finally {
    await server.close();
    await library.close();
  }
}

describe('with the local library', () => {
  const aCountry = orMissing(fc.constantFrom('DE', 'AT'));
  const within = (country: string | undefined) => (country === undefined ? {} : { countries: [country] });
  const foundIn = (ads: readonly ServedAd[], country: string | undefined) =>
    ads.filter((ad) => country === undefined || (ad.countries as string[] | undefined)?.includes(country));
  const statesOf = (ads: readonly ServedAd[]) =>
    [true, false, undefined].map((state) => ads.filter((ad) => stateOf(ad) === state).length);

  test('by a key counts the values there are, those without one and the rest, with one search', async () => {
    await fc.assert(
      fc.asyncProperty(someAds, aCountry, (ads, country) =>
        withLibrary(ads, async (call) => {
          const filters = within(country);
          const found = foundIn(ads, country);
          for (const [by, values] of Object.entries(valuesOf)) {
            if (by in filters) continue;
            const result = await call('count_ads', { filters, by });
            expect(result.data).toMatchObject({ total: found.length, receipt: { calls: 1 } });
            expect(totals(partsIn(result), by)).toEqual(tally(found.flatMap(values)));
            const none = found.filter((ad) => values(ad).length === 0).length;
            const left = by === 'countries' ? {} : { none, rest: 0 };
            expect({ none: result.data.none, rest: result.data.rest }).toEqual(left);
            if (by !== 'countries') expect(result.text).toContain(`\nnone: ${none}\nrest (other values): 0\n`);
            expect(result.text).not.toContain('not verified');
          }
        }),
      ),
      { numRuns: 4, endOnFailure: true },
    );
  }, 120_000);

  test('an ad runs, has ended, or nobody knows, in every tool alike', async () => {
    await fc.assert(
      fc.asyncProperty(someAds, aCountry, (ads, country) =>
        withLibrary(ads, async (call) => {
          const filters = within(country);
          const found = foundIn(ads, country);
          const states = statesOf(found);
          const unknown = found.filter((ad) => stateOf(ad) === undefined);

          const active = await call('count_ads', { filters, by: 'active' });
          expect(partsIn(active).map(({ total }) => total)).toEqual(states);
          expect(active.text).toContain(`\nunknown: ${states[2]}`);
          const split = [{ active: true }, { active: false }, { missing: ['active'] }];
          expect(partsIn(await call('count_ads', { filters, split })).map(({ total }) => total)).toEqual(states);
          const running = await call('search_ads', { filters: { ...filters, active: true } });
          expect(running.data.items.map(({ stillRunning }) => stillRunning)).toEqual(Array(states[0]).fill(true));

          const gathered = await call('gather_ads', { filters, maxCredits: 50 });
          const summary = `${states[0]} still running, ${states[1]} ended, ${states[2]} unknown${seenOf(unknown)}.`;
          expect(gathered.data.summary).toEqual(
            found.length > 0 ? expect.stringContaining(summary) : expect.anything(),
          );
          const { data } = await call('query_ads', { sql: 'SELECT active, count(*) FROM ads GROUP BY 1' });
          const counted = new Map(data.rows as [number | null, number][]);
          expect([1, 0, null].map((state) => counted.get(state) ?? 0)).toEqual(states);
        }),
      ),
      { numRuns: 4, endOnFailure: true },
    );
  }, 120_000);
});

/** A service that knows some keys and ignores the others, as many do. */
class FilteringService extends AdService {
  knows = new Set<string>();

  override answer(body: string) {
    const { limit, cursor, ...filters } = JSON.parse(body || '{}') as Search['filters'];
    const all = this.ads;
    this.ads = all.filter((ad) => this.#finds(ad, filters));
    const behaviour = super.answer(body);
    this.ads = all;
    return behaviour;
  }

  #finds(ad: ServedAd, filters: Search['filters']): boolean {
    return Object.entries(filters).every(([key, value]) => {
      if (!this.knows.has(key)) return true;
      if (key === 'not')
        return Object.entries(value as object).every(
          ([inner, one]) => !this.knows.has(inner) || !this.#finds(ad, { [inner]: one }),
        );
      if (key === 'missing') return (value as string[]).every((one) => valuesOf[one]?.(ad).length === 0);
      if (key === 'active') return stateOf(ad) === value;
      return [value].flat().some((one) => valuesOf[key]?.(ad).includes(one));
    });
  }
}

describe('by and split with another service', () => {
  const keys = ['displayFormat', 'ctaType', 'countries', 'active', 'not', 'missing'];
  const described = {
    displayFormat: { type: 'strings', values: ['VIDEO', 'IMAGE', 'CAROUSEL'], open: true, single: true },
    ctaType: { type: 'strings', values: ['SHOP_NOW', 'SEE_DETAILS', 'ORDER_NOW'], single: true },
    countries: { type: 'strings', values: ['DE', 'AT', 'CH'] },
    active: { type: 'boolean' },
    not: { type: 'filters' },
    missing: { type: 'strings', values: ['displayFormat', 'ctaType'] },
  };

  test('states what the service counts, and calls no part verified whose key is ignored', async ({
    upstream,
    start,
  }) => {
    await fc.assert(
      fc.asyncProperty(someAds, fc.subarray(keys), fc.subarray(['not', 'missing']), async (ads, knows, says) => {
        const ads_ = keys.filter((key) => !['not', 'missing'].includes(key) || says.includes(key));
        const searchFilters = {
          ads: ads_.map((key) => ({ key, ...described[key as keyof typeof described] })),
          pages: [],
        } as never;
        const service = new FilteringService(0);
        service.ads = ads;
        service.knows = new Set(knows);
        // Of a service that counts no values, an answer may hold anything.
        service.change = (answer) => ({ ...answer, counts: { values: [{ value: 'VIDEO', total: -7 }], none: 1e9 } });
        upstream.does(service.behaviour);
        const server = await start({ searchFilters }, { now: () => startOfTests });
        const isKnown = (key: string) => service.knows.has(key);
        for (const by of ['displayFormat', 'ctaType', 'countries']) {
          const { data } = await server.call('count_ads', { by });
          expect(data.total).toBe(ads.length);
          const parts = partsIn({ data } as Result);
          const values = described[by as 'ctaType'].values;
          const all = tally(ads.flatMap(valuesOf[by] ?? (() => [])));
          const truly = isKnown(by)
            ? Object.fromEntries(values.flatMap((value) => (all[value] ? [[value, all[value]]] : [])))
            : Object.fromEntries(values.map((value) => [value, ads.length]));
          expect(totals(parts, by)).toEqual(truly);
          for (const { total, note } of parts) {
            expect(note).toEqual(total === ads.length ? expect.stringMatching(/^equal to the total; /) : undefined);
            if (!isKnown(by)) expect(note).toBe('equal to the total; not verified');
          }
          const asksMissing = says.includes('missing') && by !== 'countries';
          const none = isKnown('missing') ? ads.filter((ad) => valuesOf[by]?.(ad).length === 0).length : ads.length;
          const rest = ads.length - parts.reduce((sum, { total }) => sum + (total ?? 0), 0) - (asksMissing ? none : 0);
          const isStated = by !== 'countries' && rest >= 0;
          expect({ none: data.none, rest: data.rest }).toEqual({
            ...(isStated && asksMissing && { none }),
            ...(isStated && { rest }),
          });
        }
        const active = await server.call('count_ads', { by: 'active' });
        const found = (state: boolean) =>
          isKnown('active') ? ads.filter((ad) => stateOf(ad) === state).length : ads.length;
        const left = ads.length - found(true) - found(false);
        expect(partsIn(active).map(({ total }) => total)).toEqual([found(true), found(false), left < 0 ? null : left]);
        if (found(true) > 0)
          expect(active.text).toMatch(/\{"active":true\}: \d+ \(.*the service decides what is active/);
        await server.close();
      }),
      { numRuns: 15 },
    );
  }, 120_000);

  const video = { displayFormat: ['VIDEO'] };
  const withNot = { searchFilters: { ads: [{ key: 'not', type: 'filters' }], pages: [] } as never };

  test('proves a part equal to the total with one search of the opposite, within maxCredits', async ({
    upstream,
    start,
  }) => {
    const service = new FilteringService(7);
    for (const ad of service.ads) ad.displayFormat = 'VIDEO';
    upstream.does(service.behaviour);
    for (const [knows, note, searches] of [
      [['displayFormat', 'not'], 'equal to the total; verified', 3],
      [['not'], 'equal to the total; not verified', 3],
      [['displayFormat'], 'equal to the total; not verified', 3],
    ] as const) {
      service.searches = [];
      service.knows = new Set(knows);
      const server = await start(withNot);
      const { data, text } = await server.call('count_ads', { split: [video] });
      expect(data.counts).toEqual([{ filters: video, total: 7, note }]);
      expect(text).toContain(`{"displayFormat":["VIDEO"]}: 7 (${note})`);
      expect(service.searches).toHaveLength(searches);
      expect(service.searches.at(-1)?.filters).toEqual({ not: video });
    }
    service.searches = [];
    const poor = await (await start(withNot)).call('count_ads', { split: [video], maxCredits: 2 });
    expect(poor.data.counts).toMatchObject([{ total: 7, note: 'equal to the total; not verified' }]);
    expect(poor.data).not.toHaveProperty('stopped');
    expect(service.searches).toHaveLength(2);
  });

  test('leaves the rest out where a part is from another day, and counts what was read', async ({
    upstream,
    start,
  }) => {
    const service = new FilteringService(30);
    service.knows = new Set(['displayFormat']);
    upstream.does(service.behaviour);
    const clock = { now: startOfTests };
    const filter = { key: 'displayFormat', type: 'strings', values: ['VIDEO', 'IMAGE'], single: true };
    const server = await start({ searchFilters: { ads: [filter], pages: [] } as never }, { now: () => clock.now });
    service.change = (answer) => ({ ...answer, totalHits: answer.items.length === 1 ? 15 : 0 });
    await server.call('gather_ads', { filters: video, maxCredits: 50 });
    service.change = (answer) => answer;
    clock.now += 20 * 3_600_000;
    service.ads = Array.from({ length: 60 }, (_, index) => adOf(index));
    const { data, text } = await server.call('count_ads', { by: 'displayFormat' });
    expect(data.total).toBe(60);
    expect(data.counts).toMatchObject([{ total: 15, gatheredAt: expect.any(String) }, { total: 30 }]);
    expect(data).not.toHaveProperty('rest');
    expect(text).not.toMatch(/rest|other/);
  });
});
