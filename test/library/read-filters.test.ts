import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import type { ServedLibrary } from './support/served-library.ts';

const search = ({ served, key }: { served: ServedLibrary; key: string }, filters: object) =>
  served.ask('POST', '/v1/ads/search', { key, body: filters });
const isoDate = 'an ISO 8601 date \\(2026-01-31\\) or date-time with its zone';

test.for([
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
] as const)(
  '%j is refused, and the answer says what the key takes and what it got',
  async ([filters, message], { served, key }) => {
    const { status, body } = await search({ served, key }, filters);
    expect(status).toBe(422);
    expect(body.error.message).toMatch(message);
    expect(body.error.details).toMatchObject({ key: Object.keys(filters)[0] });
  },
);

test('a single text counts as a list, and known values ignore case', async ({ served, key }) => {
  for (const filters of [{ countries: 'de' }, { order: 'ASC' }, { startedAtTo: '2026-01-31T12:00+01:00' }])
    expect((await search({ served, key }, filters)).status).toBe(200);
});

test('more kinds of searches than prepared statements all work, and so does the first again', async ({ served }) => {
  const keys = ['duplicates', 'audienceReach', 'daysRunning'].flatMap((key) => [`${key}From`, `${key}To`]);
  const kinds = Array.from({ length: 2 ** keys.length }, (_, kind) =>
    Object.fromEntries(keys.filter((_, at) => kind & (1 << at)).map((key) => [key, 1])),
  );
  const rich = served.key({ credits: 1e6, hourlyLimit: 1e6, dailyLimit: 1e6 });
  for (const order of ['asc', 'desc', 'asc'])
    for (const filters of kinds) {
      const { status } = await served.ask('POST', '/v1/ads/search', { key: rich, body: { ...filters, order } });
      expect(status, JSON.stringify(filters)).toBe(200);
    }
});
