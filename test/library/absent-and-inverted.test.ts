import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { searchAll, serveRich, uuid } from './support/served-library.ts';

const { served, key } = await serveRich();
afterAll(() => served.close());

const ads = [
  {
    headline: 'Tea for two',
    body: 'Loose leaf tea, picked by hand and sent to your door within two days',
    ctaType: 'SHOP_NOW',
    countries: ['DE', 'AT'],
    startedAt: '2026-01-05T00:00:00Z',
    duplicates: 3,
    page: { pageName: 'Leaf & Co' },
    bylines: 'Paid for by Friends of Tea',
    currency: 'EUR',
    impressionsMin: 100,
    impressionsMax: 500,
  },
  { headline: '', body: null, countries: [], languages: ['pt_BR'], page: { pageName: 'leaf & co' }, adSpendMin: 4 },
  {
    body: '따뜻한 차 한 잔으로 하루를 시작하세요. 오늘만 무료배송',
    ctaType: 'LEARN_MORE',
    startedAt: '2026-02-05T00:00:00Z',
    page: { pageName: 'Leaf & Co Korea' },
    endDate: '2026-02-20T00:00:00Z',
    audienceSizeMin: 1000,
  },
].map((ad, at) => ({ id: uuid(at + 1), ...ad }));
await served.load(...ads);

/** The numbers of the ads found. */
async function found(filters: Record<string, unknown>): Promise<number[]> {
  const { items, totalHits } = await searchAll(served, '/v1/ads/search', key, { sort: 'startedAt', ...filters });
  expect(totalHits).toBe(items.length);
  return items.map(({ id }: { id: string }) => Number(id.slice(-2))).sort();
}

test.each([
  [{ missing: ['ctaType'] }, [2]],
  [{ missing: ['headline'] }, [2, 3]],
  [{ missing: ['headline', 'duplicates', 'countries'] }, [2, 3]],
  [{ missing: ['headline', 'ctaType'] }, [2]],
  [{ missing: 'adSpend' }, [1, 3]],
  [{ missing: ['STARTEDAT'] }, [2]],
  [{ language: ['en'] }, [1]],
  [{ language: ['ko', 'pt'] }, [2, 3]],
  [{ language: 'pt_br' }, [2]],
  [{ advertiserExact: 'Leaf & Co' }, [1, 2]],
  [{ advertiser: 'leaf co' }, [1, 2, 3]],
  [{ bylines: '"friends of tea"' }, [1]],
  [{ bylines: '-friends' }, [2, 3]],
  [{ query: 'friends' }, [1]],
  [{ currency: 'eur' }, [1]],
  [{ impressionsFrom: 500 }, [1]],
  [{ impressionsTo: 99 }, []],
  [{ audienceSizeFrom: 1000, audienceSizeTo: 1000 }, [3]],
  [{ not: { ctaType: 'SHOP_NOW' } }, [2, 3]],
  [{ not: { ctaType: ['SHOP_NOW'], language: 'ko' } }, [2]],
  [{ not: { startedAtFrom: '2026-02-01' } }, [1, 2]],
  [{ not: { query: 'tea' } }, [2, 3]],
  [{ not: { query: '-tea' } }, [1]],
  [{ not: { missing: ['ctaType', 'duplicates'] } }, [1]],
  [{ not: { active: false } }, [1, 2]],
  [{ not: {} }, [1, 2, 3]],
  [{ query: '-tea', not: { bylines: 'tea' } }, [2, 3]],
] as const)('%j finds %j', async (filters, numbers) => {
  expect(await found(filters)).toEqual(numbers);
});

const filters = fc.constantFrom<Record<string, unknown>>(
  { query: 'tea' },
  { query: '-tea' },
  { advertiser: 'korea' },
  { countries: ['AT', 'US'] },
  { missing: ['body'] },
  { startedAtTo: '2026-01-31' },
  { duplicatesFrom: 2 },
  { adSpendFrom: 1 },
  { active: true },
  { language: 'en' },
);

test('a filter and its inversion part all records, whatever else is asked', async () => {
  await fc.assert(
    fc.asyncProperty(filters, filters, async (other, filter) => {
      const [all, matching, rest] = await Promise.all([
        found(other),
        found({ ...filter, ...other }),
        found({ ...other, not: filter }),
      ]);
      if (Object.keys(filter)[0] === Object.keys(other)[0]) return;
      expect([...matching, ...rest].sort()).toEqual(all);
    }),
    { numRuns: 60 },
  );
});

const isoDate = 'an ISO 8601 date \\(2026-01-31\\) or date-time with its zone';

test.each([
  [{ missing: ['colour'] }, /"missing" takes one of headline, body, .*; got "colour"/],
  [{ missing: ['__proto__'] }, /"missing" takes one of .*; got "__proto__"/],
  [{ not: 'DE' }, /"not" takes an object of filters other than not, sort and order; got "DE"/],
  [{ not: [] }, /"not" takes an object of filters other.*; got \[\]/],
  [{ not: { not: {} } }, /Unknown filter key "not"\. .*Known keys: query, /],
  [{ not: { sort: 'startedAt' } }, /Unknown filter key "sort"/],
  [{ not: { limit: 1 } }, /Unknown filter key "limit"\. .*Known keys: query, /],
  [{ not: { contries: ['DE'] } }, /Unknown filter key "contries"\. Did you mean "countries"\?/],
  ['{"not":{"__proto__":1}}', /Unknown filter key "__proto__"/],
  [`${'{"not":'.repeat(5000)}{}${'}'.repeat(5000)}`, /nested deeper than 64 levels/],
  [`{"limit":${'['.repeat(70)}${']'.repeat(70)}}`, /nested deeper than 64 levels/],
  [{ query: 7 }, /"query" takes a text that is not empty; got 7/],
  [{ query: '  ' }, /"query" takes a text that is not empty; got " {2}"/],
  [{ query: 'x'.repeat(301) }, /"query" takes a text of at most 300 characters; got 301/],
  [{ countries: [] }, /"countries" takes a list of texts; got \[\]/],
  [{ countries: ['DE', 1] }, /"countries" takes a list of texts; got \["DE",1\]/],
  [{ countries: Array(51).fill('DE') }, /"countries" takes a list of at most 50 texts; got 51/],
  [{ sort: 'luck' }, /"sort" takes one of startedAt, .*; got "luck"/],
  [{ duplicatesFrom: 'many' }, /"duplicatesFrom" takes a number; got "many"/],
  [{ startedAtFrom: 'yesterday' }, new RegExp(`"startedAtFrom" takes ${isoDate}.*; got "yesterday"`)],
  [{ startedAtFrom: '2026-02-31T25:00:00Z' }, new RegExp(`"startedAtFrom" takes ${isoDate}`)],
  [{ startedAtFrom: 20_260_131 }, new RegExp(`"startedAtFrom" takes ${isoDate}.*; got 20260131`)],
])('%s is refused, and the answer says what the key takes and what it got', async (body, message) => {
  const answer = await served.ask('POST', '/v1/ads/search', { key, body });
  expect(answer.status).toBe(422);
  expect(answer.body.error.message).toMatch(message);
});

test('a single text counts as a list, and known values ignore case', async () => {
  for (const body of [{ countries: 'de' }, { order: 'ASC' }, { startedAtTo: '2026-01-31T12:00+01:00' }])
    expect((await served.ask('POST', '/v1/ads/search', { key, body })).status).toBe(200);
});

test('more kinds of searches than prepared statements all work, and so does the first again', async () => {
  const keys = ['duplicates', 'audienceReach', 'daysRunning'].flatMap((key) => [`${key}From`, `${key}To`]);
  const kinds = Array.from({ length: 2 ** keys.length }, (_, kind) =>
    Object.fromEntries(keys.filter((_, at) => kind & (1 << at)).map((key) => [key, 1])),
  );
  for (const order of ['asc', 'desc', 'asc'])
    for (const filters of kinds) {
      const { status } = await served.ask('POST', '/v1/ads/search', { key, body: { ...filters, order } });
      expect(status, JSON.stringify(filters)).toBe(200);
    }
});

test('a search that uses them goes on from its cursor alone', async () => {
  const body = { not: { ctaType: 'LEARN_MORE' }, limit: 1 };
  const first = await served.ask('POST', '/v1/ads/search', { key, body });
  const next = await served.ask('POST', '/v1/ads/search', { key, body: { cursor: first.body.cursor } });
  const ids = [...first.body.items, ...next.body.items].map(({ id }: { id: string }) => id);
  expect(ids).toEqual([uuid(1), uuid(2)]);
});
