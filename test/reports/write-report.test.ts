import { randomBytes } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { createGathering } from '../../src/dataset/gatherings.ts';
import { encodeJpeg } from '../../src/drawing/codecs.ts';
import { type ReportMetadata, type ReportSection, writeReportPage } from '../../src/reports/report.tsx';
import type { Gathering } from '../../src/storage/dataset.ts';
import type { AdCardContent } from '../../src/ui/ad-card.tsx';
import { createJpeg } from '../pictures/sample-pictures.ts';
import { findViolations } from '../support/board/axe.ts';
import { inChromium } from '../support/board/in-chromium.ts';
import { launchChromium } from '../support/board/launch-chromium.ts';
import type { Upstream } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { loadAds, startPictureHost } from '../support/picture-host.ts';
import type { TestServer } from '../support/server.ts';

const host = await startPictureHost();
afterAll(() => host.close());
const mediaHosts = { allowsPublicHosts: true, listedHosts: [host.host] };
const opened = upstreamTest({ config: { mediaHosts }, resolve: async () => [] });
const test = opened.extend('hostileHtml', { scope: 'file' }, writeHostileReport);

const hostile = [
  '"><script>window.broken = true</script><img src=x onerror="window.broken = true">',
  '</style></title><svg onload="broken = true"><a href="javascript:broken = true">x</a>',
  '<meta http-equiv="refresh" content="0;url=https://evil.example"><base href="https://evil.example/">',
  '{{constructor.constructor("broken = true")()}} &lt;b&gt; url(https://evil.example/x)',
  'מבצע \u202e\u2066 hidden \u{e0041}',
  `${'W'.repeat(5000)}\n\n${'👩‍👩‍👧‍👦'.repeat(300)}`,
];

async function writeTestReport(server: TestServer, args: object) {
  const result = await server.call('write_report', { title: 'Report', ...args });
  const { contents } = await server.client.readResource({ uri: result.data.uri as string });
  const [page] = contents as { mimeType: string; text: string }[];
  expect(page?.mimeType).toBe('text/html');
  return { ...result, html: page?.text ?? '' };
}

/** Writes a report with hostile ads and with texts from a model that such ads have manipulated. */
async function writeHostileReport({ server, upstream }: { server: TestServer; upstream: Upstream }): Promise<string> {
  const image = host.serve(await createJpeg({ width: 500, height: 300, colour: [200, 60, 30] }));
  const ids = await loadAds(
    { server, upstream },
    ...hostile.map((text, index) => ({
      page: { pageName: text },
      pageId: `${index}`,
      headline: text,
      body: text,
      displayFormat: text.slice(0, 80),
      offerLink: 'javascript:broken = true',
      duplicates: 1e300,
      startedAt: '0001-01-01T00:00:00Z',
      media: index === 0 ? [{ type: 'THUMB', url: image, nr: 0 }] : [],
    })),
  );
  const labels = hostile.map((text, at) => ({ adId: ids[at], label: text.slice(0, 40), value: text.slice(0, 200) }));
  expect((await server.call('label_ads', { labels })).data.labelled).toBe(hostile.length);
  const headings = hostile.map((text) => text.slice(0, 200));
  const { html } = await writeTestReport(server, {
    title: headings[0],
    sections: [
      { heading: headings[1], text: hostile.join('\n\n'), adIds: ids },
      {
        heading: headings[2],
        sql: 'SELECT pageName AS "</th><script>broken = true</script>", count(*) AS n, headline, body FROM ads GROUP BY pageName',
        chart: 'bar',
      },
      { heading: headings[3], sql: "SELECT * FROM '</code><script>broken = true</script>'", adIds: [headings[0]] },
    ],
  });
  return html;
}

const numbers = 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n';

describe('A report', () => {
  test('a report contains all of its sections in the requested order', async ({ server, upstream }) => {
    const image = host.serve(await createJpeg({ width: 500, height: 300, colour: [200, 60, 30] }));
    const gone = host.serve((response) => response.writeHead(410).end());
    const [shownId = '', missing = ''] = await loadAds(
      { server, upstream },
      { pageId: 'a', page: { pageName: 'Brew & Leaf' }, duplicates: 3, media: [{ type: 'THUMB', url: image, nr: 0 }] },
      { pageId: 'b', page: { pageName: 'Other' }, media: [{ type: 'THUMB', url: gone, nr: 0 }] },
    );
    await server.call('label_ads', { labels: [{ adId: shownId, label: 'hook', value: '<b>question' }] });
    const before = upstream.requests.length;
    const { html, data, text } = await writeTestReport(server, {
      sections: [
        { heading: 'First', text: 'One.\n\nTwo,\nthree.' },
        { heading: 'Second', sql: `SELECT pageName, 12345.5 AS n FROM ads WHERE id = '${shownId}'`, chart: 'bar' },
        { heading: 'Third', adIds: [missing, shownId.toUpperCase(), 'unknown'] },
      ],
    });
    expect(upstream.requests.length).toBe(before);
    expect(data.sections).toEqual([
      { heading: 'First' },
      { heading: 'Second', rows: 1, columns: ['pageName', 'n'], first: [['Brew & Leaf', 12345.5]] },
      { heading: 'Third', ads: 2, problem: 'unknown is not in the dataset.' },
    ]);
    const places = ['One.', 'Two,\nthree.', '<dl', '<svg', `id">${missing}`, `id">${shownId}`]
      .concat('How these numbers', 'SELECT pageName')
      .map((part) => html.lastIndexOf(part));
    expect(places).toEqual(places.toSorted((left, right) => left - right));
    expect(html.match(/>hook: &lt;b>question</g)).toHaveLength(1);
    expect(html).toContain('<dd dir="auto">Brew &amp; Leaf</dd>');
    expect(html.match(/<img src="data:image\/jpeg;base64,\/9j/g)).toHaveLength(1);
    expect(html).toContain('No picture: ');
    expect(text).toContain('1 picture could not be shown');
    expect(html).not.toContain('Demo data');
    expect(html).not.toContain('svc_live');
    expect(html).not.toContain(host.host.host);
  });

  test('a report shows an error in place of a section that failed', async ({ server, upstream }) => {
    await loadAds({ server, upstream }, {});
    const { html, data } = await writeTestReport(server, {
      sections: [
        { heading: 'Wrong', sql: 'SELECT nothing FROM ads' },
        { heading: 'No numbers', sql: 'SELECT id, headline FROM ads', chart: 'line' },
        { heading: 'Only a chart', chart: 'bar' },
        { heading: 'Long', sql: `${numbers} LIMIT 300) SELECT i FROM n` },
        { heading: 'Empty', sql: "SELECT id FROM ads WHERE id = ''", adIds: [] },
      ],
    });
    expect(data.sections).toMatchObject([
      { problem: expect.stringContaining('nothing') },
      { problem: expect.stringMatching(/^There is no chart: no column after the first/) },
      { problem: 'A chart needs sql, whose rows it draws.' },
      { rows: 300 },
      { rows: 0 },
    ]);
    expect(html).toContain('The first 200 of 300 rows are shown.');
    expect(html.match(/class="problem"/g)).toHaveLength(3);
  });

  test('a report states how many rows of a long result its chart leaves out', async ({ server }) => {
    const listNumbers = (count: number) =>
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) SELECT i, i * i AS square FROM n`;
    const { html, data } = await writeTestReport(server, {
      sections: [
        { heading: 'Long', sql: listNumbers(1001), chart: 'line' },
        { heading: 'Short', sql: listNumbers(1000), chart: 'line' },
      ],
    });
    const sentence = 'The chart shows only the first 1,000 of 1,001 rows.';
    expect((data.sections as object[])[0]).toMatchObject({ rows: 1001, problem: sentence });
    expect((data.sections as object[])[1]).not.toHaveProperty('problem');
    expect(html).toContain(`<p class="problem">${sentence}</p>`);
  });

  test('a report with many pictures leaves some out, so that the report file stays under 5 MB', async ({
    server,
    upstream,
  }) => {
    const pixels = new Uint8ClampedArray(randomBytes(400 * 400 * 4));
    const noise = await encodeJpeg({ width: 400, height: 400, data: pixels }, 95);
    // Use few different pictures many times, so that even a slow machine fetches them in time.
    const media = [{ type: 'THUMB', url: host.serve(noise), nr: 0 }];
    const adIds = await loadAds({ server, upstream }, ...Array.from({ length: 12 }, () => ({ media })));
    const sections = Array.from({ length: 20 }, (_, index) => ({ heading: `Section ${index}`, adIds }));
    const { html, data } = await writeTestReport(server, { sections });
    expect(data.bytes).toBeLessThan(5_000_000);
    expect(html.match(/<img /g)?.length).toBeGreaterThan(20);
    const wide = Array.from({ length: 60 }, (_, index) => `printf('%.*c', 300, 'x') AS c${index}`);
    const sql = `${numbers} LIMIT 200) SELECT ${wide} FROM n`;
    const large = Array.from({ length: 20 }, () => ({ heading: 'Large', sql }));
    const refused = await server.call('write_report', { title: 'Large', sections: large });
    expect(refused.error).toMatchObject({ kind: 'invalid_request' });
    expect(refused.text).toContain('more than 5000000 bytes');
  });

  test('a report with hostile ad texts contains only markup that the server generates', ({ hostileHtml }) => {
    const htmlWithoutValues = hostileHtml.replace(/="[^"]*"/g, (value) => (value.startsWith('="#') ? '' : '=""'));
    expect(
      htmlWithoutValues
        .match(/<[a-z][^>]*>/g)
        ?.filter((tag) => /^<(?:script|base|iframe|link|form)|\s(?:on\w+|href)=/.test(tag)),
    ).toEqual([]);
    expect(hostileHtml).not.toContain('http-equiv="refresh"');
    expect(hostileHtml).not.toMatch(/[\u202e\u2066\u{e0041}]/u);
  });
});

describe('The plain text of a report', () => {
  const createTestGathering = (day: string, more: object): Gathering => {
    const state = createGathering({ filters: { countries: ['DE'] } }, Date.parse(day));
    return { ...state, state, adIds: new Set(['a']), evictedCount: 0, isComplete: true, storedParts: [], ...more };
  };
  const older = createTestGathering('2026-11-01', { matchingCount: 12_345, chargedCredits: 7 });
  const newer = createTestGathering('2026-11-19', { matchingCount: null, chargedCredits: null, isComplete: false });
  const methodology: ReportMetadata['methodology'] = {
    ...{ adCount: 1, gatheredAdCount: 1, gatherings: [], unlistedGatheringCount: 0, readingPeriod: undefined },
    ...{ cost: { credits: 7, isExact: true }, describeCoverage: () => '', statements: [] },
  };
  const writePage = async ({ sections = [], ...more }: Partial<ReportMetadata> & { sections?: ReportSection[] }) => {
    const headings = sections.map(({ heading }) => heading);
    const head = {
      title: 'T',
      writtenAt: Date.UTC(2026, 10, 20),
      isDemo: false,
      version: '1',
      headings,
      methodology,
      ...more,
    };
    const { html } = await writeReportPage(head, sections, async () => []);
    return html;
  };
  const createTable = (columns: string[], ...rows: unknown[][]) => ({
    table: { columns, rows, rowCount: rows.length },
  });
  const times = ['2026-06-14T00:00:00.000Z', '2026-06-14T12:30:05.000Z', '2026-06-14 was a Sunday'];
  const text = 'One **bold** <b>\n**\n\nThen:\n- a **b**\n  c\n* d\n\n3. e\n4) f\n\n[link](https://x.example) # no';
  const picture = { src: 'data:image/webp;base64,x' };
  const card = { id: 'x', pageName: 'Serra', firstLine: 'Walk', mediaText: 'video', picture };
  const ran: Partial<AdCardContent>[] = [
    { daysRunning: 1, active: true, startedAt: '2026-08-21' },
    { daysRunning: 92, active: false, duplicates: 3 },
    { daysRunning: 0, lastSeenAt: '2026-08-21', duplicates: 2_500_000 },
    ...[{ duplicates: 1e300 }, { duplicates: 1 }],
  ];

  /** Sections of the report. Each key says what the section must show. */
  const sections: Record<string, Omit<ReportSection, 'heading'>> = {
    'Names of sections are "text" <b>\u202e': {},
    'Numbers of a column can be compared, and none below one loses its digits': createTable(
      ['year', 'price', 'share', 'reach', 'mixed', 'ctrRate', 'tiny'],
      [2025, 1, 0.5, 4159, 1, 0.0041, 1e-9],
      [2026, 19.99, 12, 120_000, 'x', 0.00123456, 0],
      [null, 3, 1, -7, null, 1.5, 2],
    ),
    'One row with a number is figures': createTable(['ads', 'pageName'], [1963, 'Serra']),
    'One row without a number is a table': createTable(['ads', 'pageName'], ['x', 'Serra']),
    'One row with a long text is a table': createTable(['ads', 'pageName'], [1963, 'W'.repeat(100)]),
    'Paragraphs, bold and lists of Markdown are shown as such, and all else as text': { text },
    'Times are days, or to the minute; what begins like one stays': createTable(['at'], ...times.map((time) => [time])),
    'More rows than can be counted': { table: { columns: ['at'], rows: [['x']], rowCount: null } },
    'How long ads ran': { ads: ran.map((facts) => ({ id: 'x', picture: { reason: 'none' }, ...facts })) },
    'An ad of which nothing is known': { ads: [{ id: 'x', picture: { reason: 'gone' } }] },
    'A card has what is known, each once': {
      ads: [
        { ...card, title: 'Boots', path: '/ads/x', domain: 'serra.example' },
        { ...card, title: 'Walk' },
      ],
    },
    'An advertiser has a colour': { ads: [{ ...card, id: 'y' }, card, { ...card, pageName: 'Other' }] },
  };

  test('a report page with all kinds of sections matches the snapshot file report.txt', async () => {
    const html = await writePage({
      sections: Object.entries(sections).map(([heading, section]) => ({ heading, ...section })),
      methodology: {
        ...methodology,
        ...{
          adCount: 2000,
          gatheredAdCount: 1990,
          gatherings: [newer, older],
          unlistedGatheringCount: 2,
          describeCoverage: () => '<b>',
        },
        ...{
          readingPeriod: { from: Date.UTC(2026, 9, 1), to: Date.UTC(2026, 10, 19) },
          cost: { credits: 1018.5, isExact: false },
        },
      },
      isDemo: true,
    });
    const formattedHtml = html.replace(/(?<=<style>).*?(?=<\/style>)/s, '').replaceAll('><', '>\n<');
    await expect(formattedHtml).toMatchFileSnapshot('report.txt');
  });

  const [first, last] = [Date.UTC(2026, 10, 1, 23), Date.UTC(2026, 10, 2, 1)];
  test.each<[string, Partial<ReportMetadata['methodology']>, string]>([
    ['that its ads come only from searches', {}, '1 ad that searches brought; no gathering covers them'],
    [
      'the single day on which its ads were read',
      { gatherings: [older], readingPeriod: { from: first, to: first + 1 } },
      '1 ad, read in 1 gathering on 1 Nov 2026',
    ],
    [
      'the first and the last day on which its ads were read',
      { gatherings: [older], unlistedGatheringCount: 3, readingPeriod: { from: first, to: last } },
      '1 ad, read in 4 gatherings from 1 Nov 2026 to 2 Nov 2026',
    ],
    [
      'how many of its ads gather_ads read',
      { adCount: 30, gatheredAdCount: 20, gatherings: [older], readingPeriod: { from: first, to: first } },
      '30 ads, 20 of them read in 1 gathering on 1 Nov 2026',
    ],
  ])('the section of a report about its data sources states %s', async (_, reportFacts, expectedText) => {
    const html = await writePage({ methodology: { ...methodology, ...reportFacts } });
    expect(html).toContain(expectedText);
    expect(html).not.toContain('Demo data');
  });

  test.each<Partial<AdCardContent>>([
    ...['javascript:alert(1)', '//bad.example', '/\\bad.example', '/\t/bad.example'].map((path) => ({ path })),
    ...['https://bad.example/x.png', 'data:image/svg+xml;base64,x', 'data:text/html;base64,x'].map((src) => ({
      picture: { src },
    })),
  ])('writing a report fails if an ad in the report has the unsafe URL %j', async (address) => {
    const ads = [{ ...card, ...address }];
    await expect(writePage({ sections: [{ heading: 'H', ads }] })).rejects.toThrow('A page contains a URL');
  });

  test('writing a report stops at the size limit and never blocks other calls', async () => {
    let [taken, turns, isDone] = [0, 0, false];
    function* createSections() {
      const rows = Array.from({ length: 200 }, () => Array.from({ length: 33 }, () => '&'.repeat(300)));
      for (; taken < 20; taken++)
        yield { heading: 'H', table: { columns: rows[0]?.map(String) ?? [], rows, rowCount: 200 } };
    }
    const head = { title: 'T', writtenAt: 0, isDemo: false, version: '1', headings: [], methodology };
    const page = writeReportPage(head, createSections(), async () => []);
    const pageEnd = page.finally(() => {
      isDone = true;
    });
    pageEnd.catch(() => undefined);
    for (; !isDone; turns++) await new Promise(setImmediate);
    await expect(pageEnd).rejects.toThrow('more than 5000000 bytes');
    expect(taken).toBe(0);
    expect(turns).toBeGreaterThan(20);
  });
});

inChromium('A report in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());

  test('a report that is open in a browser makes no network requests, is accessible and can be printed', async ({
    hostileHtml,
  }) => {
    for (const [width, colorScheme] of [
      [360, 'light'],
      [1100, 'dark'],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      const requestedUrls: string[] = [];
      await page.route('**', (route) => {
        requestedUrls.push(route.request().url());
        return route.fulfill({ contentType: 'text/html', body: hostileHtml });
      });
      await page.goto('https://report.example/');
      expect(requestedUrls).toEqual(['https://report.example/']);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
      expect(await page.evaluate("'broken' in window")).toBe(false);
      expect(await page.evaluate('[...document.images].map(({ naturalWidth }) => naturalWidth)')).toEqual([400]);
      expect(await findViolations(page.locator('html'))).toEqual([]);
      expect((await page.pdf({ format: 'A4' })).length).toBeGreaterThan(10_000);
      await page.close();
    }
  });
});
