import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { type AdService, createAd, serveAds } from '../support/ad-service.ts';
import { respondWithError } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

const files = createTemporaryFolder();
const dayMs = 86_400_000;

/** Creates ads that were last seen running on this day. */
const runningAds = (first: number, count: number, day: number): AdService['ads'] =>
  Array.from({ length: count }, (_, index) =>
    createAd(first + index, { startedAt: '2026-10-01', lastSeenAt: new Date(day).toISOString() }),
  );

/** Reads the SQL statement of the weekly report from docs/shell.md. */
function readDocumentedSql(): string {
  const guide = readFileSync(new URL('../../docs/shell.md', import.meta.url), 'utf8');
  const [, sql = ''] = /"heading": "Running ads", "sql": "([^"]+)"/.exec(guide) ?? [];
  return sql;
}

test('the weekly report from the documentation shows how many ads of an advertiser run in each week', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-02T07:00:00Z');
  const server = await start({ files }, { now: () => clock });
  const service = serveAds(upstream, 0);
  await server.call('watch_ads', { name: 'Acme', filters: { advertiser: 'Acme' }, maxCredits: 50 });
  const days: string[] = [];
  const figures: unknown[] = [];
  for (const [week, count] of [60, 50, 40, 30].entries()) {
    // Each week, twenty ads disappear and ten new ones start.
    service.ads = runningAds(20 * week, count, clock);
    await server.call('check_watches', { maxCredits: 100 });
    const report = {
      name: 'weekly',
      title: 'Ads of Acme',
      sections: [{ heading: 'Running ads', sql: readDocumentedSql() }],
    };
    const { data, text } = await server.call('write_report', week === 0 ? report : { again: 'weekly' });
    const [{ columns = [], first = [[]] } = {}] = data.sections as { columns: string[]; first: unknown[][] }[];
    figures.push(first[0]?.[columns.indexOf('running')]);
    const day = new Date(clock).toISOString().slice(0, 10);
    days.push(day);
    expect(text).toContain(
      `current_ads: ${count} ads that the newest complete gathering of each question listed, read on ${day}.`,
    );
    expect(readFileSync(String(data.file), 'utf8')).toContain(`read on ${day}.`);
    clock += 7 * dayMs;
  }
  expect(figures).toEqual([60, 50, 40, 30]);
  // Ads that have disappeared stay in `ads` with their last known values.
  expect(await server.queryRows('SELECT sum(active = 1) FROM ads')).toEqual([[90]]);
  const byQuestion = `SELECT substr(gatherings.gatheredAt, 1, 10), read FROM gatherings WHERE newest = 1`;
  expect(await server.queryRows(byQuestion)).toEqual([[days.at(-1), 30]]);
});

test('the SQL view current_ads contains the ads of the latest complete run of each search', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-02T07:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 0);
  service.selectAds = ({ part }) => service.ads.filter(({ number }) => part === undefined || number === part);
  const show = (ads: Record<number, number[]>) => {
    service.ads = Object.entries(ads).flatMap(([part, numbers]) =>
      numbers.map((index) => createAd(index, { number: Number(part) })),
    );
  };
  const gather = (question: object) => server.call('gather_ads', { ...question, maxCredits: 100, fresh: true });
  const numbersIn = async (table: string) =>
    (await server.queryRows(`SELECT headline FROM ${table} ORDER BY headline`)).map(([headline]) =>
      Number(String(headline).slice(6)),
    );
  const splitSearch = { split: [{ part: 1 }, { part: 2 }] };

  const empty = await server.call('query_ads', { sql: 'SELECT count(*) FROM current_ads' });
  expect(empty.data.rows).toEqual([[0]]);
  show({ 1: [11, 12], 2: [21, 22] });
  service.overrideResponse = ({ filters }) => (filters.part === 2 ? respondWithError(500) : undefined);
  await gather({ filters: { part: 2 } });
  await server.call('gather_ads', { filters: {}, maxAds: 1, maxCredits: 100 });
  const partial = await server.call('query_ads', { sql: 'SELECT count(*) FROM current_ads' });
  expect(partial.data.rows).toEqual([[0]]);
  expect(partial.text).toContain('No gathering is complete, so current_ads is empty.');
  service.overrideResponse = () => undefined;

  await gather(splitSearch);
  expect(await numbersIn('current_ads')).toEqual([11, 12, 21, 22]);
  // Reading one part of the search alone replaces the ads of this part.
  show({ 1: [12, 13], 2: [22] });
  await gather({ filters: { part: 1 } });
  expect(await numbersIn('current_ads')).toEqual([12, 13, 21, 22]);
  // A gather_ads run that stops in its second part still replaces the ads of its first part.
  show({ 1: [13], 2: [22] });
  clock += 2 * dayMs;
  service.overrideResponse = ({ filters }) => (filters.part === 2 ? respondWithError(500) : undefined);
  await gather(splitSearch);
  expect(await numbersIn('current_ads')).toEqual([13, 21, 22]);
  service.overrideResponse = () => undefined;
  await gather(splitSearch);
  expect(await numbersIn('current_ads')).toEqual([13, 22]);
  expect(await numbersIn('ads')).toEqual([11, 12, 13, 21, 22]);
  const [[json] = []] = await server.queryRows("SELECT json ->> 'headline' FROM current_ads ORDER BY 1 LIMIT 1");
  expect(json).toBe('Offer 13');
});

const filters = { advertiser: 'Acme' };
const otherSearches: [name: string, searches: (week: number) => object[]][] = [
  ['a narrower search', (week) => (week === 0 ? [{ filters: { ...filters, countries: ['DE'] } }] : [])],
  [
    'a split search',
    (week) => (week === 0 ? [{ filters, split: [{ countries: ['DE'] }, { countries: ['AT'] }] }] : []),
  ],
  [
    'a split search of parts without common filters',
    (week) => (week === 0 ? [{ split: ['DE', 'AT'].map((country) => ({ ...filters, countries: [country] })) }] : []),
  ],
  ['the same search in another order', (week) => (week === 0 ? [{ filters: { ...filters, sort: 'startedAt' } }] : [])],
  [
    'a search in another order each week',
    (week) => [{ filters: { ...filters, sort: week % 2 ? 'endDate' : 'startedAt' } }],
  ],
];

test.for(otherSearches)(
  'the SQL view current_ads shows only ads of the newest complete run, although %s listed other ads before',
  async ([, listSearches], { upstream, start }) => {
    let clock = Date.parse('2026-11-02T07:00:00Z');
    const server = await start({}, { now: () => clock });
    const service = serveAds(upstream, 0);
    const gather = (search: object) => server.call('gather_ads', { ...search, fresh: true, maxCredits: 100 });
    const figures: unknown[] = [];
    for (const [week, count] of [60, 50, 40, 30].entries()) {
      service.ads = runningAds(20 * week, count, clock);
      for (const search of listSearches(week)) await gather(search);
      clock += 60_000;
      await gather({ filters });
      const { data } = await server.call('query_ads', { sql: 'SELECT sum(active = 1) AS running FROM current_ads' });
      figures.push((data.rows as unknown[][])[0]?.[0]);
      clock += 7 * dayMs;
    }
    expect(figures).toEqual([60, 50, 40, 30]);
  },
);

test('the SQL view current_ads also contains the ads of a narrower search if it was read after the broader search', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-02T07:00:00Z');
  const server = await start({}, { now: () => clock++ });
  const service = serveAds(upstream, 0);
  service.ads = runningAds(0, 20, clock);
  await server.call('gather_ads', { filters, maxCredits: 100 });
  service.ads = runningAds(20, 5, clock);
  await server.call('gather_ads', { filters: { ...filters, countries: ['DE'] }, maxCredits: 100 });
  const { data } = await server.call('query_ads', { sql: 'SELECT count(*) FROM current_ads' });
  expect(data.rows).toEqual([[25]]);
});
