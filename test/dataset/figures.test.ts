import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { buildMonthRows } from '../../src/dataset/tables.ts';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });

const startedIn = (month: string, index: number, more: object = {}) =>
  createAd(index, { startedAt: `${month}-05T00:00:00Z`, lastSeenAt: `${month}-09T00:00:00Z`, ...more });

test('gather_ads says on which day the last complete gathering was begun if it took longer than a day', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-08-20T10:00:00Z');
  const server = await start({}, { now: () => clock });
  const service = serveAds(upstream, 150);
  await server.call('gather_ads', { maxAds: 100, maxCredits: 50 });
  clock = Date.parse('2026-09-29T10:00:00Z');
  service.ads = [createAd(500), ...service.ads];
  await server.call('gather_ads', { maxCredits: 50 });
  const readAgain = async () => (await server.call('gather_ads', { maxCredits: 50, fresh: true })).text;
  clock = Date.parse('2026-09-30T10:00:00Z');
  const first = 'Since the last complete gathering of 2026-09-29 10:00 UTC, begun on 2026-08-20: 1 new, 0 changed';
  expect(await readAgain()).toContain(first);
  clock = Date.parse('2026-10-01T10:00:00Z');
  expect(await readAgain()).toContain('Since the last complete gathering of 2026-09-30 10:00 UTC: 0 new, 0 changed');
});

test('gather_ads states the time at which the service sent a cached page', async ({ upstream, start }) => {
  let clock = Date.parse('2026-08-31T10:00:00Z');
  const server = await start({ cacheSeconds: 86_400 }, { now: () => clock });
  serveAds(upstream, 0).ads = [startedIn('2026-08', 0)];
  await server.call('search_ads', { limit: 100 });
  clock = Date.parse('2026-09-01T09:00:00Z');
  const { data } = await server.call('gather_ads', { maxCredits: 50 });
  expect(data).toMatchObject({ gatheredAt: '2026-08-31T10:00:00.000Z', receipt: { charged: 0 } });
  expect(await server.queryRows('SELECT month FROM months WHERE unfinished')).toEqual([['2026-08']]);
});

describe('The SQL table months', () => {
  const launches = `SELECT month, unfinished, count(id) FROM months LEFT JOIN ads ON startedMonth = month
    GROUP BY 1 ORDER BY 1`;

  test('the months table in SQL ends with the month in which the ads were last read', async ({ upstream, start }) => {
    let clock = Date.parse('2026-09-10T10:00:00Z');
    const server = await start({}, { now: () => clock });
    const service = serveAds(upstream, 0);
    service.ads = [...Array(10).keys()].map((at) => startedIn('2026-08', at));
    service.ads.push(...[10, 11, 12, 13].map((at) => startedIn('2026-09', at)));
    await server.call('gather_ads', { maxCredits: 50 });
    const expected = [
      ['2026-08', 0, 10],
      ['2026-09', 1, 4],
    ];
    expect(await server.queryRows(launches)).toEqual(expected);
    clock = Date.parse('2026-11-20T10:00:00Z');
    expect(await server.queryRows(launches)).toEqual(expected);
    const chart = { sql: 'SELECT startedMonth, count(*) FROM ads GROUP BY 1', chart: 'bar' };
    await server.call('write_report', { title: 'Launches', sections: [{ heading: 'By month', ...chart }] });
    const { data } = await server.call('write_report', {
      title: 'Launches',
      sections: [{ heading: 'By month', ...chart }],
    });
    expect((await server.readResource(data.uri)).text).toContain('2026-09 so far');
    await server.call('gather_ads', { maxCredits: 50, fresh: true });
    expect(await server.queryRows(launches)).toEqual([
      ['2026-08', 0, 10],
      ['2026-09', 0, 4],
      ['2026-10', 0, 0],
      ['2026-11', 1, 0],
    ]);
  });

  test('the SQL table months marks a month as unfinished until every search has been repeated after the end of the month', async ({
    upstream,
    start,
  }) => {
    let clock = Date.parse('2026-09-10T10:00:00Z');
    const server = await start({}, { now: () => clock });
    const service = serveAds(upstream, 0);
    service.selectAds = ({ query }) => [startedIn('2026-08', query === 'a' ? 0 : 1)];
    const gather = (query: string) => server.call('gather_ads', { filters: { query }, maxCredits: 50, fresh: true });
    await gather('a');
    clock = Date.parse('2026-11-20T10:00:00Z');
    await gather('b');
    const unfinished = 'SELECT month FROM months WHERE unfinished ORDER BY 1';
    expect(await server.queryRows(unfinished)).toEqual([['2026-09'], ['2026-10'], ['2026-11']]);
    await gather('a');
    expect(await server.queryRows(unfinished)).toEqual([['2026-11']]);
  });

  test('the SQL table months counts a month as unfinished if the first page of a search was read in this month', async ({
    upstream,
    start,
  }) => {
    let clock = Date.parse('2026-08-20T10:00:00Z');
    const server = await start({}, { now: () => clock });
    const service = serveAds(upstream, 0);
    service.ads = Array.from({ length: 150 }, (_, index) => startedIn('2026-07', index));
    await server.call('gather_ads', { maxAds: 100, maxCredits: 50 });
    clock = Date.parse('2026-09-29T10:00:00Z');
    service.ads = [...service.ads, ...[200, 201].map((index) => startedIn('2026-09', index))];
    service.ads = [...[300, 301].map((index) => startedIn('2026-08', index)), ...service.ads];
    const { text, data } = await server.call('gather_ads', { maxCredits: 50 });
    expect(data.complete).toBe(true);
    expect(text).toContain(
      'The first ads of this gathering were read on 2026-08-20, so ads that appeared later may be missing.',
    );
    expect(await server.queryRows('SELECT month FROM months WHERE unfinished')).toEqual([['2026-08'], ['2026-09']]);
    const { coverage } = (await server.call('query_ads', { sql: 'SELECT count(*) FROM current_ads' })).data;
    expect(coverage).toMatchObject({ current: { firstDay: '2026-08-20', lastDay: '2026-09-29' } });
  });

  test('the months table in SQL ends with the month of the last API response if gather_ads never ran', async ({
    upstream,
    start,
  }) => {
    let clock = Date.parse('2026-09-10T10:00:00Z');
    const server = await start({}, { now: () => clock });
    serveAds(upstream, 0).ads = [startedIn('2026-08', 0)];
    await server.call('search_ads');
    clock = Date.parse('2026-11-20T10:00:00Z');
    expect(await server.queryRows('SELECT month, unfinished FROM months')).toEqual([
      ['2026-08', 0],
      ['2026-09', 1],
    ]);
  });

  test('the SQL table months has exactly one row for each month since the first ad launch', () => {
    const time = fc.integer({ min: Date.UTC(2015, 0), max: Date.UTC(2030, 0) });
    fc.assert(
      fc.property(time, time, time, (launch, one, other) => {
        const launchCoverage = { completeUntil: Math.min(one, other), partialUntil: Math.max(one, other) };
        const rows = buildMonthRows(new Date(launch).toISOString(), launchCoverage);
        expect(rows.length > 0).toBe(
          launch <
            Date.UTC(
              new Date(launchCoverage.partialUntil).getUTCFullYear(),
              new Date(launchCoverage.partialUntil).getUTCMonth() + 1,
            ),
        );
        for (const [at, { first, last, unfinished }] of rows.entries()) {
          expect(Date.parse(`${first}`)).toBe(
            at === 0 ? Date.parse(`${first}`) : Date.parse(`${rows[at - 1]?.last}`) + 1,
          );
          expect(unfinished).toBe(Number(Date.parse(`${last}`) >= launchCoverage.completeUntil));
        }
      }),
    );
  });
});

describe('The method section of a report', () => {
  test('a report on a search that was repeated every week shows the period and the total cost of all runs', async ({
    upstream,
    start,
  }) => {
    let clock = Date.parse('2026-11-02T10:00:00Z');
    const server = await start({}, { now: () => clock });
    serveAds(upstream, 60);
    const costs: number[] = [];
    for (let week = 0; week < 4; week++) {
      const { receipt } = (await server.call('gather_ads', { maxCredits: 50, fresh: true })).data;
      costs.push(receipt.charged);
      clock += 7 * 86_400_000;
    }
    const paid = costs.reduce((sum, cost) => sum + cost, 0);
    expect(paid).toBe(24);
    const { data } = await server.call('write_report', { title: 'T', sections: [{ heading: 'H', text: 'x' }] });
    const html = (await server.readResource(data.uri)).text;
    expect(html).toContain('60 ads, read in 4 gatherings from 2 Nov 2026 to 23 Nov 2026');
    expect(html).toContain(`Reading them and 3 earlier gatherings that are not listed cost ${paid} credits.`);
  });
});

describe('A gather_ads run with overlapping searches', () => {
  const split = { split: [{ part: 'a' }, { part: 'b' }], maxCredits: 50 };

  test('gather_ads reports how many ads were counted twice because two of its searches overlap', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 31);
    service.selectAds = ({ part }) => (part === 'a' ? service.ads.slice(0, 20) : service.ads.slice(12));
    const { data, text } = await server.call('gather_ads', split);
    expect(data).toMatchObject({ found: 39, read: 31, repeats: 8, complete: true });
    expect(text).toContain('31 ads read, of 39 found (which counts 8 ads of several parts again); complete');
    const { data: report } = await server.call('write_report', { title: 'T', sections: [{ heading: 'H', text: 'x' }] });
    expect((await server.readResource(report.uri)).text).toContain('counts an ad of several parts several times');
  });

  test('query_ads says how many ads were counted twice because two searches of gather_ads overlap', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 300);
    service.selectAds = ({ part }) => (part === 'a' ? service.ads.slice(0, 20) : service.ads.slice(12));
    await server.call('gather_ads', { ...split, maxAds: 100 });
    const { text } = await server.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
    expect(text).toMatch(/Read \d+ of 308 ads \(which counts 8 ads of several parts again\)/);
  });
});

describe('The gather_ads summary compared with SQL', () => {
  test('the gather_ads summary shows the same percentiles of running days as an SQL query', async ({
    upstream,
    start,
  }) => {
    const server = await start({}, { now: () => Date.parse('2026-11-20T10:00:00Z') });
    const days = [3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 89];
    serveAds(upstream, 0).ads = days.map((ran, at) =>
      createAd(at, { startedAt: '2026-01-01', endDate: new Date(Date.UTC(2026, 0, 1 + ran)).toISOString() }),
    );
    const { summary } = (await server.call('gather_ads', { maxCredits: 50 })).data;
    const [[median, high] = []] = await server.queryRows(
      'SELECT median(daysRunning), percentile(daysRunning, 90) FROM ads',
    );
    expect(summary).toContain(`Days running: min 1, median ${median}, 90th percentile ${high}, max 89`);
  });

  test('the gather_ads summary and SQL queries both ignore letter case', async ({ upstream, server }) => {
    const service = serveAds(upstream, 0);
    service.ads = ['VIDEO', 'video', 'Video'].map((displayFormat, at) =>
      createAd(at, {
        ...{ displayFormat, ctaType: ['SHOP_NOW', 'shop_now', 'SHOP_NOW'][at], countries: ['DE', 'de', 'Fr'] },
        ...{
          pageId: 'p',
          page: { pageName: ['Acme', 'ACME', 'Acme'][at] },
          publisherPlatform: ['FACEBOOK', 'facebook'],
        },
      }),
    );
    const { summary } = (await server.call('gather_ads', { maxCredits: 50 })).data;
    for (const line of ['Advertisers (1): "Acme" 3', 'Calls to action (1): SHOP_NOW 3', 'DE 3, Fr 3'])
      expect(summary).toContain(line);
    for (const [sql, rows] of [
      ['SELECT upper(displayFormat), count(*) FROM ads GROUP BY displayFormat', [['VIDEO', 3]]],
      ['SELECT upper(ctaType), count(*) FROM ads GROUP BY ctaType', [['SHOP_NOW', 3]]],
      ['SELECT count(DISTINCT pageName) FROM ads', [[1]]],
      [
        'SELECT upper(country), count(*) FROM ad_countries GROUP BY country ORDER BY 1',
        [
          ['DE', 3],
          ['FR', 3],
        ],
      ],
      ["SELECT count(*) FROM ad_platforms WHERE platform = 'Facebook'", [[3]]],
    ] as const)
      expect(await server.queryRows(sql)).toEqual(rows);
  });
});

describe('The method note of an export', () => {
  test.for([
    'SELECT * FROM gatherings',
    "SELECT id, 'gathering' AS kind FROM gatherings",
    'SELECT 1 AS id',
    'SELECT country AS id FROM ad_countries',
  ])(
    'the note that explains how exported ads were collected lists all searches if the SQL statement "%s" returns no ad ids',
    async (sql, { upstream, server }) => {
      serveAds(upstream, 3).ads = [1, 2, 3].map((at) => createAd(at, { countries: ['DE'] }));
      const { gathering } = (await server.call('gather_ads', { maxCredits: 50 })).data;
      const { data } = await server.call('export_ads', { sql });
      const note = (await server.readResource(data.methods)).text;
      expect(note).toContain(String(gathering));
      expect(note).not.toContain('read none of these ads');
    },
  );

  test('the note that explains how exported ads were collected lists only the searches that found the ads', async ({
    upstream,
    server,
  }) => {
    const service = serveAds(upstream, 2);
    service.selectAds = ({ query }) => service.ads.slice(query === 'a' ? 0 : 1).slice(0, 1);
    const gather = async (query: string) =>
      String((await server.call('gather_ads', { filters: { query }, maxCredits: 50 })).data.gathering);
    const [first, second] = [await gather('a'), await gather('b')];
    const sql = `SELECT adId AS id FROM gathered WHERE gatheringId = '${first}' UNION ALL SELECT 'other'`;
    const note = (await server.readResource((await server.call('export_ads', { sql })).data.methods)).text;
    expect(note).toContain(first);
    expect(note).not.toContain(second);
    expect(note).toContain('1 other gathering of the dataset read none of these ads.');
  });
});

test('query_ads warns about advertisers whose ads were not all read, even if the SQL result contains no ad ids', async ({
  upstream,
  server,
}) => {
  serveAds(upstream, 4).ads = [0, 1, 2, 3].map((at) => createAd(at, { pageId: `p${at % 2}` }));
  await server.call('gather_ads', { maxAds: 1, maxCredits: 50 });
  await server.call('search_ads');
  const { text } = await server.call('query_ads', { sql: 'SELECT count(*) AS number FROM ads' });
  expect(text).toContain('No complete gathering covers 2 advertisers of the dataset');
});
