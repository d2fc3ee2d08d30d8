import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect } from 'vitest';
import { createAd, serveAds } from '../support/ad-service.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const files = createTemporaryFolder();
const day = 86_400_000;
const weekly = {
  title: 'Offers of the week',
  name: 'weekly',
  sections: [
    { heading: 'How many', text: 'There are few.', sql: 'SELECT count(*) AS ads, 1234.5 AS same FROM ads' },
    { heading: 'Formats', sql: 'SELECT displayFormat, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 1' },
    { heading: 'In words', text: 'Videos lead.' },
  ],
};

const writeReport = async (server: TestServer, args: Record<string, unknown>) => {
  const result = await server.call('write_report', args);
  return { ...result, html: result.isError ? '' : readFileSync(String(result.data.file), 'utf8') };
};

test('a report that is written again after a server restart shows the new numbers next to the earlier numbers', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const startServer = () => start({ files }, { now: () => clock });
  const service = serveAds(upstream, 10);
  let server = await startServer();
  await server.call('gather_ads', { filters: {}, maxCredits: 100 });
  const first = await writeReport(server, weekly);
  expect(first.data).toMatchObject({
    coverage: { ads: 10, gatherings: 1 },
    sections: [
      { rows: 1, columns: ['ads', 'same'], first: [[10, 1234.5]] },
      {
        rows: 2,
        first: [
          ['IMAGE', 5],
          ['VIDEO', 5],
        ],
      },
      { heading: 'In words' },
    ],
  });
  expect(first.text).toContain('"Formats", 2 rows; first rows of displayFormat | ads:\nIMAGE | 5\nVIDEO | 5');
  expect(first.html).not.toContain('Written on 16');
  const { data, text } = await server.call('list_watches');
  const writtenAt = '2026-11-16T09:00:00.000Z';
  expect(data.reports).toEqual([{ name: 'weekly', title: weekly.title, writtenAt, sections: 3 }]);
  expect(text).toContain('Report "weekly": "Offers of the week", 3 sections, written 2026-11-16 09:00 UTC.');

  clock += 7 * day;
  service.ads = [createAd(500), ...service.ads];
  server = await startServer();
  await server.call('gather_ads', { filters: {}, maxCredits: 100, fresh: true });
  const secondReport = await writeReport(server, { again: 'weekly' });
  expect(secondReport.data.sections).toMatchObject([
    { first: [[11, 1234.5]], last: { ads: 10, at: '2026-11-16' } },
    {},
    {},
  ]);
  expect(secondReport.text).toContain('"How many", 1 row, on 2026-11-16: ads 10, same 1234.5;');
  const [, figures = ''] = /<dl class="figures">(.*?)<\/dl>/.exec(secondReport.html) ?? [];
  expect(figures.replace(/<[^>]*>/g, '|')).toContain('Ads, 10 on 16 Nov 2026||11|');
  const [, sectionHtml = ''] = /<h2 dir="auto">How many<\/h2>(.*?)<\/section>/s.exec(secondReport.html) ?? [];
  expect(sectionHtml).toMatch(/<\/dl>.*Written on 16 Nov 2026<\/p><p class="words" dir="auto">There are few\.<\/p>/);

  // Rewriting a report on the same day keeps the comparison with the numbers of the earlier day.
  const rewrittenReport = await writeReport(server, { again: 'weekly', texts: ['One more.', '', ''] });
  expect(rewrittenReport.data.sections).toMatchObject([{ last: { ads: 10 } }, {}, {}]);
  expect(rewrittenReport.html).toMatch(/How many<\/h2><dl.*?<\/dl><p class="words" dir="auto">One more\.<\/p>/s);
  expect(rewrittenReport.html.match(/Written on 16 Nov 2026/g)).toHaveLength(1);
  clock += day;
  expect((await writeReport(server, { again: 'weekly' })).html.match(/Written on 23 Nov 2026/g)).toHaveLength(1);

  await server.call('unwatch_ads', { report: 'weekly' });
  expect((await server.call('list_watches')).data.reports).toEqual([]);
});

test('a rewritten report shows the earlier value of a number only if the texts in the same table row are unchanged', async ({
  upstream,
  start,
}) => {
  const advertiser = fc.constantFrom('Acme', 'Beta', undefined);
  const format = fc.constantFrom('VIDEO', 'IMAGE');
  const row = fc.record({ pageName: advertiser, displayFormat: format, duplicates: fc.nat(9) });
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock });
  const service = serveAds(upstream, 0);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(row, row), { minLength: 20, maxLength: 20 }), async (pairs) => {
      const formatPairs = async (which: 0 | 1) => {
        service.ads = pairs.map((pair, index) => {
          const { pageName, ...fields } = pair[which];
          return createAd(index, { ...fields, page: { pageName: pageName ?? null } });
        });
        await server.call('gather_ads', { filters: {}, maxCredits: 100, fresh: true });
      };
      const sections = pairs.map((_, index) => ({
        heading: `${index}`,
        sql: `SELECT pageName, displayFormat, duplicates AS figure FROM ads WHERE id = '${createAd(index).id}'`,
      }));
      await formatPairs(0);
      const day = new Date(clock).toISOString().slice(0, 10);
      await server.call('write_report', { title: 'Top', name: 'top', sections });
      clock += 86_400_000;
      await formatPairs(1);
      const { data } = await server.call('write_report', { again: 'top' });
      const lastFigures = (data.sections as { last?: object }[]).map(({ last }) => last);
      const expected = pairs.map(([before, now]) =>
        before.pageName === now.pageName && before.displayFormat === now.displayFormat
          ? { figure: before.duplicates, at: day }
          : undefined,
      );
      expect(lastFigures).toEqual(expected);
    }),
    { numRuns: 3 },
  );
}, 60_000);

test('a report counts each earlier reading of a split search once', async ({ upstream, start }) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock });
  serveAds(upstream, 5);
  for (let reading = 1; reading <= 3; reading++) {
    await server.call('gather_ads', { split: [{ part: 1 }, { part: 2 }], maxCredits: 100, fresh: true });
    clock += 7 * day;
  }
  const { data } = await server.call('write_report', { title: 'x', sections: [{ heading: 'x', text: 'x' }] });
  const { text } = await server.readResource(data.uri);
  expect(text).toContain('5 ads, read in 3 gatherings');
  expect(text).toContain('Reading them and 2 earlier gatherings that are not listed cost 6 credits.');
});

test('a report shows the earlier number of a column called at beside the day of the earlier report', async ({
  upstream,
  start,
}) => {
  let clock = Date.parse('2026-11-16T09:00:00Z');
  const server = await start({}, { now: () => clock });
  serveAds(upstream, 3);
  await server.call('gather_ads', { filters: {}, maxCredits: 100 });
  const sections = [{ heading: 'Ads', sql: 'SELECT count(*) AS at, 7 AS fixed FROM ads' }];
  await server.call('write_report', { title: 'Counts', name: 'counts', sections });
  clock += day;
  const { data, text } = await server.call('write_report', { again: 'counts' });
  expect(data.sections).toMatchObject([{ last: { 'at (column)': 3, fixed: 7, at: '2026-11-16' } }]);
  expect(text).toContain('on 2026-11-16: fixed 7, "at (column)" 3');
});

test('write_report says that a new report replaces the stored report of the same name', async ({ start }) => {
  const server = await start();
  const note =
    'This report has replaced the stored report "weekly", including its texts and earlier figures. To update a stored report instead, call write_report with again: "weekly".';
  expect((await server.call('write_report', weekly)).text).not.toContain(note);
  expect((await server.call('write_report', { again: 'weekly' })).text).not.toContain(note);
  const { data, text } = await server.call('write_report', { ...weekly, title: 'Other offers' });
  expect([data.note, text]).toEqual([expect.stringContaining(note), expect.stringContaining(note)]);
});

test('write_report leaves no files behind if it cannot store the report', async ({ start }) => {
  const server = await start();
  const { data } = await server.call('write_report', { ...weekly, name: 'daily' });
  expect(data.note).toContain('ends with this server');
  for (const [tool, args, problem] of [
    ['write_report', { again: 'dayly' }, 'Did you mean "daily"?'],
    ['write_report', { again: 'x' }, 'There is no kept report "x". Existing: "daily".'],
    ['write_report', { again: 'daily', title: 'x' }, 'again and title cannot be combined'],
    ['write_report', { again: 'daily', texts: ['x'] }, 'one text for each of the 3 sections'],
    ['write_report', { title: 'x' }, 'Pass title and sections, or again'],
    ['write_report', { ...weekly, texts: ['x'] }, 'Pass title and sections, or again'],
    ['unwatch_ads', { report: 'x' }, 'There is no kept report "x". Existing: "daily".'],
    ['unwatch_ads', { name: 'daily' }, '"daily" is a report: pass report, not name.'],
    ['unwatch_ads', { report: 'x', name: 'x' }, 'Pass either name or report.'],
    ['unwatch_ads', {}, 'Pass either name or report.'],
    ['write_report', { ...weekly, sections: Array(7).fill({ heading: 'x', text: 'x'.repeat(10_000) }) }, '49,152'],
  ] as const) {
    const { error, text } = await server.call(tool, args);
    expect([error?.kind, text]).toEqual(['invalid_request', expect.stringContaining(problem)]);
  }
  expect((await server.client.listResources()).resources.map(({ name }) => name)).toEqual(['board', 'daily.html']);
  const small = { title: 'x', sections: [{ heading: 'x' }] };
  for (let more = 1; more < 20; more++) await server.call('write_report', { ...small, name: `n ${more}` });
  const full = await server.call('write_report', { ...small, name: 'too many' });
  expect(full.text).toContain('At most 20 reports can be stored');
  expect((await server.call('write_report', { ...small, name: 'n 1' })).isError).toBe(false);
});
