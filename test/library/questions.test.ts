import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect } from 'vitest';
import { startServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { runLibraryCommand as run, serveDatabase } from './support/command.ts';
import { databaseTest as test } from './support/fixtures.ts';

/** Writes a Meta Ad Library download that contains ads with these ids and titles. */
async function writeDownload(folder: string, name: string, titleById: Record<string, string>): Promise<string> {
  const data = Object.entries(titleById).map(([id, title]) => ({
    ...{ id, page_id: '7', page_name: 'Sock Shop', ad_creative_link_titles: [title] },
    ad_delivery_start_time: '2026-01-05',
  }));
  const file = join(folder, name);
  await writeFile(file, JSON.stringify({ data, paging: {} }));
  return file;
}

const question = ['--question', 'socks', '--complete'];

const preparedFolder = createTemporaryFolder({ inMemory: true });
/** Databases with the results of a saved search. Tests copy them, because each import takes longer than a copy. */
const databaseWithTwoAds = join(preparedFolder, 'two-ads.db');
const databaseWithOneAd = join(preparedFolder, 'one-ad.db');

beforeAll(async () => {
  const twoAds = await writeDownload(preparedFolder, 'two-ads.json', { 1: 'Warm', 2: 'Thin' });
  await run(['import', twoAds, ...question, '--database', databaseWithTwoAds]);
  const oneAd = await writeDownload(preparedFolder, 'one-ad.json', { 99: 'Warm' });
  await run(['import', oneAd, ...question, '--database', databaseWithOneAd]);
});

test('check_watches reports new, changed and gone ads after the results of a saved search were imported in two successive weeks', async ({
  folder,
  database,
}) => {
  const databaseFlag = ['--database', database];
  const firstWeek = await writeDownload(folder, 'week-1.json', { 1: 'Warm', 2: 'Thin', 3: 'Long' });
  const secondWeek = await writeDownload(folder, 'week-2.json', { 2: 'Thin', 3: 'Longer', 4: 'Short' });
  expect((await run(['import', firstWeek, ...question, ...databaseFlag])).err).toContain(
    'question socks: 3 ads listed, 0 gone\n',
  );
  const apiKey = (await run(['key', 'create', '--unmetered', ...databaseFlag])).out.trim();
  const library = await serveDatabase(database);
  let clock = Date.parse('2026-03-15T09:00:00Z');
  const server = await startServer({
    config: { apiKey, baseUrl: library.origin, cacheSeconds: 0 },
    now: () => clock++,
  });
  const filters = { question: ['socks'] };
  await server.call('watch_ads', { name: 'socks', filters, maxCredits: 10 });
  await server.call('check_watches', { maxCredits: 10 });
  // A server has the database open, so the import command sends the file to this server.
  expect((await run(['import', secondWeek, ...question, ...databaseFlag])).err).toContain(
    'question socks: 3 ads listed, 1 gone\n',
  );
  clock += 7 * 24 * 3_600_000;
  const { data, text } = await server.call('check_watches', { maxCredits: 10 });
  expect(text).toContain('No longer listed:\n');
  const [watch] = data.watches as { new: string[]; changed: string[]; gone: string[] }[];
  expect([watch?.new.length, watch?.changed.length, watch?.gone.length]).toEqual([1, 1, 1]);
  const { data: endedAds } = await server.call('search_ads', { filters: { active: false }, detail: 'full' });
  expect(endedAds.items).toMatchObject([
    { headline: 'Warm', endDate: '2026-03-15T00:00:00.000Z', goneAt: '2026-03-15T00:00:00.000Z', isActive: false },
  ]);
  await server.close();
  expect(await library.close()).toBe(0);
});

test.for([
  ['without the option --complete', ['--question', 'socks'], {}],
  ['without the option --question', [], {}],
  ['of another saved search', ['--question', 'hats', '--complete'], {}],
  ['that skips a record', question, { '': 'No id' }],
] as const)(
  'an import %s marks no ad as gone (no longer listed)',
  async ([_, options, extraAds], { folder, database }) => {
    const databaseFlag = ['--database', database];
    const partial = await writeDownload(folder, 'partial.json', { 2: 'Thin', ...extraAds });
    await copyFile(databaseWithTwoAds, database);
    await run(['import', partial, ...options, ...databaseFlag]);
    // An import without --complete marks no ad as gone. The complete import at the end then marks both ads.
    const { err } = await run(['import', partial, '--question', 'socks', ...databaseFlag]);
    expect(err).not.toContain('gone');
    const last = await writeDownload(folder, 'last.json', { 3: 'Short' });
    expect((await run(['import', last, ...question, ...databaseFlag])).err).toContain(
      'question socks: 1 ad listed, 2 gone\n',
    );
  },
);

test('an ad does not count as ended while another saved search in the library still lists it', async ({
  folder,
  database,
}) => {
  const databaseFlag = ['--database', database];
  const fileWithBoth = await writeDownload(folder, 'both.json', { 1: 'Warm', 2: 'Thin' });
  const fileWithOne = await writeDownload(folder, 'one.json', { 2: 'Thin' });
  await run(['import', fileWithBoth, ...question, ...databaseFlag]);
  await run(['import', fileWithBoth, '--question', 'wool', '--complete', ...databaseFlag]);
  expect((await run(['import', fileWithOne, ...question, ...databaseFlag])).err).toContain('1 ad listed, 1 gone');
  const apiKey = (await run(['key', 'create', '--unmetered', ...databaseFlag])).out.trim();
  const { origin, close } = await serveDatabase(database);
  const search = async (filters: object) => {
    const response = await fetch(`${origin}/v1/ads/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(filters),
    });
    return ((await response.json()) as { totalHits: number }).totalHits;
  };
  expect(await search({ active: false })).toBe(0);
  expect([await search({ question: ['socks'] }), await search({ question: ['WOOL'] })]).toEqual([1, 2]);
  await close();
});

test('`library import` rejects the --complete option without the --question option', async ({ database }) => {
  await expect(run(['import', '-', '--complete', '--database', database])).rejects.toThrow(
    /--complete needs --question/,
  );
});

const firstAd = { id: '1', page_id: '7', ad_creative_link_titles: ['Warm'], ad_delivery_start_time: '2026-01-05' };
const nextLink = 'https://graph.facebook.com/v23.0/ads_archive?after=c2';
const paddedAds = Array.from({ length: 30 }, () => ({ ...firstAd, ad_creative_bodies: ['x'.repeat(40_000)] }));

test.for([
  ['is empty', '', /second\.json was not read completely/],
  ['contains no ad', 'advertiser,headline\n', /second\.json was not read completely/],
  ['reports an error of Meta', '{"data":[],"error":{"code":190,"message":"expired"}}', /not read completely/],
  ['reports an error beside an ad', JSON.stringify({ data: [firstAd], error: { code: 1 } }), /not read completely/],
  ['reports an error of TikTok', '{"data":{"ads":[]},"error":{"code":"rate_limit_exceeded"}}', /not read completely/],
  ['names a next page', JSON.stringify({ data: [firstAd], paging: { next: nextLink } }), /the last page is missing/],
  ['has more pages', JSON.stringify({ data: { ads: [firstAd], has_more: true } }), /the last page is missing/],
  [
    'has more pages in a response of the website',
    JSON.stringify({ data: { main: { edges: [{ node: firstAd }], page_info: { has_next_page: true } } } }),
    /the last page is missing/,
  ],
  ['has a cursor for more pages', JSON.stringify({ searchResults: [firstAd], cursor: 'c2' }), /last page is missing/],
  ['is not the last page', JSON.stringify({ ads: [firstAd], isLastPage: false }), /the last page is missing/],
  [
    'contains the first of ten records',
    JSON.stringify({ data: [firstAd], paging: { start: 0, count: 1, total: 10 } }),
    /the last page is missing/,
  ],
  [
    'names a next page after a megabyte of ads',
    JSON.stringify({ data: paddedAds, paging: { next: nextLink } }),
    /the last page is missing/,
  ],
] as const)(
  'an import of the results of a saved search marks no ad as gone (no longer listed) if a file %s',
  async ([_, text, reason], { folder, database }) => {
    const databaseFlag = ['--database', database];
    await copyFile(databaseWithTwoAds, database);
    const [first, second] = [join(folder, 'first.json'), join(folder, 'second.json')];
    await writeFile(first, JSON.stringify([firstAd]));
    await writeFile(second, text);
    const { err } = await run(['import', first, second, ...question, ...databaseFlag]);
    expect(err).toMatch(/question socks: no ad was marked as gone, because /);
    expect(err).toMatch(reason);
    const last = await writeDownload(folder, 'last.json', { 1: 'Warm' });
    expect((await run(['import', last, ...question, ...databaseFlag])).err).toContain('1 ad listed, 1 gone\n');
  },
);

test.for([
  ['with an ad', JSON.stringify({ data: [{ ...firstAd, id: '3' }], paging: { cursors: {} } }), '2 ads listed, 1 gone'],
  ['without ads', '{"data":[]}', '1 ad listed, 1 gone'],
  ['of TikTok', JSON.stringify({ data: { ads: [], has_more: false }, error: { code: 'ok' } }), '1 ad listed, 1 gone'],
] as const)(
  'an import of several result pages counts as complete if its last page (%s) announces no further page',
  async ([_, text, line], { folder, database }) => {
    const databaseFlag = ['--database', database];
    await copyFile(databaseWithTwoAds, database);
    const [first, last] = [join(folder, 'page-1.json'), join(folder, 'page-2.json')];
    await writeFile(first, JSON.stringify({ data: [firstAd], paging: { next: nextLink } }));
    await writeFile(last, text);
    expect((await run(['import', first, last, ...question, ...databaseFlag])).err).toContain(
      `question socks: ${line}\n`,
    );
  },
);

/** Builds a response of the Meta Ad Library API. `next` is the token of the next page. */
const buildMetaPage = (ids: readonly number[], next?: string, paging: object = {}) => ({
  data: ids.map((id) => ({ ...firstAd, id: String(id) })),
  paging: {
    ...paging,
    ...(next !== undefined && { next: `https://graph.facebook.com/v23.0/ads_archive?limit=2&after=${next}` }),
  },
});

/** Builds a response of the LinkedIn Ad Library API. */
const buildLinkedInPage = (start: number, count: number, total: number, links: object[] = []) => ({
  elements: Array.from({ length: count }, (_, index) => ({
    adUrl: `https://www.linkedin.com/ad-library/detail/${start + index}`,
    details: {},
  })),
  paging: { start, count, total, links },
});

/** Builds a response of SearchApi, which repeats the token of the requested page. */
const buildSearchApiPage = (id: number, token?: string, next?: string) => ({
  search_metadata: { status: 'Success' },
  search_parameters: { engine: 'google_ads_transparency_center', ...(token && { next_page_token: token }) },
  ad_creatives: [{ id: `CR${id}`, target_domain: 'tea.example', first_shown_datetime: '2026-01-05T00:00:00Z' }],
  ...(next && { pagination: { next_page_token: next } }),
});

const buildTikTokPage = (id: number, hasMore: boolean) => ({
  data: { ads: [{ ad: { id, first_shown_date: 20260105 } }], has_more: hasMore },
  error: { code: 'ok' },
});

const buildWebsitePage = (id: number, hasNext: boolean, hasPrevious = false) => ({
  data: {
    main: {
      edges: [{ node: { ...firstAd, id: String(id) }, cursor: `c${id}` }],
      page_info: { has_next_page: hasNext, has_previous_page: hasPrevious, end_cursor: `c${id}` },
    },
  },
});

const buildTable = (id: number) => `advertiser,headline\nTea,Ad ${id}\n`;

const complete = buildMetaPage([1, 2]);
const toLines = (...pages: object[]) => pages.map((page) => JSON.stringify(page)).join('\n');

/** Files of an import from which a page of results is missing. */
const incompleteFiles: [title: string, files: Record<string, unknown>][] = [
  ['a broken chain of pages before a complete response', { 'fr.json': buildMetaPage([3], 'a'), 'de.json': complete }],
  ['a broken chain of pages after a complete response', { 'de.json': complete, 'fr.json': buildMetaPage([3], 'a') }],
  [
    'a broken chain beside a complete table',
    { 'a.csv': 'advertiser,headline\nTea,One\n', 'b.json': buildMetaPage([3], 'a') },
  ],
  [
    'a broken chain before more records than its pages hold',
    { '1.json': buildMetaPage([3], 'a'), '2.json': buildMetaPage([4, 5, 6]) },
  ],
  [
    'a complete and a broken chain',
    { 'a-1.json': buildMetaPage([1], 'a'), 'a-2.json': complete, 'b-1.json': buildMetaPage([3], 'b') },
  ],
  [
    'two chains of which the first is broken',
    { 'a-1.json': buildMetaPage([1], 'a'), 'b-1.json': buildMetaPage([3], 'b'), 'b-2.json': complete },
  ],
  ['a missing page between numbered files', { 'p1.json': buildMetaPage([1], 'a'), 'p3.json': complete }],
  [
    'a missing page among ten numbered files',
    {
      'p8.json': buildMetaPage([1], 'a'),
      'p9.json': buildMetaPage([2], 'b'),
      'p10.json': buildMetaPage([3], 'c'),
      'p12.json': complete,
    },
  ],
  ['a missing first numbered file', { 'p2.json': buildMetaPage([1], 'a'), 'p3.json': complete }],
  [
    'a missing page before a page that names it',
    { 'a.json': buildMetaPage([1, 2], undefined, { previous: 'https://graph.facebook.com/x' }) },
  ],
  ['a missing first page of the website', { 'a.json': buildWebsitePage(1, false, true) }],
  [
    'a response of the website whose last line says that more follow',
    {
      'a.json': toLines(
        { data: { main: { edges: [{ node: firstAd }] } } },
        { label: 'page_info', data: { page_info: { has_next_page: true } } },
      ),
    },
  ],
  ['a missing page in a list of responses', { 'a.json': [complete, buildMetaPage([3], 'a')] }],
  ['a missing page in lines of responses', { 'a.jsonl': toLines(buildTikTokPage(1, true), buildTikTokPage(2, true)) }],
  ['a missing first page of LinkedIn', { 'a.json': buildLinkedInPage(2, 2, 4) }],
  [
    'a missing page between two pages of LinkedIn',
    { 'a1.json': buildLinkedInPage(0, 2, 6), 'a2.json': buildLinkedInPage(4, 2, 6) },
  ],
  [
    'different totals on the pages of LinkedIn',
    { 'a1.json': buildLinkedInPage(0, 2, 4), 'a2.json': buildLinkedInPage(2, 1, 3) },
  ],
  [
    'fewer records than LinkedIn states',
    { 'a.json': { ...buildLinkedInPage(0, 1, 5), paging: { start: 0, count: 5, total: 5 } } },
  ],
  ['fewer records than a response states', { 'a.json': { ...buildMetaPage([1]), paging: undefined, total: 3 } }],
  [
    'a page that answers the request for another page',
    { 'a1.json': buildSearchApiPage(1, undefined, 't1'), 'a2.json': buildSearchApiPage(3, 't2') },
  ],
  [
    'the first page of another search',
    {
      'a1.json': { ...buildMetaPage([1]), page: 1, total_pages: 2 },
      'a2.json': { ...buildMetaPage([2]), page: 1, total_pages: 1 },
    },
  ],
  ['the first of three pages', { 'a.json': { items: [firstAd], currentPage: 1, totalPages: 3 } }],
  [
    'the URL of the next page',
    { 'a.json': { results: [firstAd], next: 'https://ads.example/?page=2', previous: null } },
  ],
  ['tables with a missing number', { 'ads-1.csv': buildTable(1), 'ads-3.csv': buildTable(3) }],
  ['tables without a first number', { 'ads-2.csv': buildTable(2), 'ads-3.csv': buildTable(3) }],
  ['a table without a number and a third table', { 'ads.csv': buildTable(1), 'ads-3.csv': buildTable(3) }],
  ['tables without the last number', { 'ads-1-of-3.csv': buildTable(1), 'ads-2-of-3.csv': buildTable(2) }],
  ['only the first of three tables', { 'ads-1-of-3.csv': buildTable(1) }],
  ['a missing download of a browser', { 'ads.csv': buildTable(1), 'ads (2).csv': buildTable(3) }],
  ['a missing table by record number', { '0.csv': buildTable(1), '50.csv': buildTable(2), '150.csv': buildTable(3) }],
  ['numbered responses without paging', { 'page-1.json': [firstAd], 'page-3.json': [{ ...firstAd, id: '3' }] }],
  ...(
    [
      ['search_results_connection.count', { data: { search_results_connection: { count: 3, edges: [] } } }],
      ['searchResultsCount', { searchResultsCount: 3, cursor: null }],
      ['total', { total: 3, has_more: false }],
      ['total as text', { total: '1,200', has_more: false }],
      ['total_count', { total_count: 3, next: null }],
      ['totalResults', { totalResults: 3 }],
      ['search_information.total_results', { search_information: { query: 'tea', total_results: 3 } }],
      ['meta.total', { meta: { page: 1, total: 3 } }],
    ] as const
  ).map(([key, wrapper]): [string, Record<string, unknown>] => [
    `fewer records than ${key} states`,
    { 'a.json': { ...wrapper, ads: [firstAd] } },
  ]),
  [
    'fewer records than the pages of a search state',
    { 'a1.json': { total: 4, ads: [firstAd] }, 'a2.json': { total: 4, ads: [{ ...firstAd, id: '3' }] } },
  ],
  ['the only copy of a page twice', { 'a1.json': buildMetaPage([1], 'a'), 'a2.json': buildMetaPage([1], 'a') }],
];

/** Files of an import that contain all pages of results. */
const completeFiles: typeof incompleteFiles = [
  [
    'three numbered pages',
    { 'p1.json': buildMetaPage([1], 'a'), 'p2.json': buildMetaPage([2], 'b'), 'p3.json': buildMetaPage([3]) },
  ],
  [
    'ten numbered pages in the order of a shell',
    Object.fromEntries(
      [1, 10, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => [
        `p${number}.json`,
        buildMetaPage([number], number < 10 ? `t${number}` : undefined),
      ]),
    ),
  ],
  ['downloads of a browser', { 'ads.json': buildMetaPage([1], 'a'), 'ads (1).json': buildMetaPage([2]) }],
  [
    'pages named by the index of their first record',
    { 'p0.json': buildMetaPage([1], 'a'), 'p25.json': buildMetaPage([2], 'b'), 'p50.json': buildMetaPage([3]) },
  ],
  [
    'pages of two searches',
    {
      'a-1.json': buildMetaPage([1], 'a'),
      'a-2.json': buildMetaPage([2]),
      'b-1.json': buildMetaPage([3], 'b'),
      'b-2.json': complete,
    },
  ],
  [
    'a copy of a page',
    {
      'p1.json': buildMetaPage([1], 'a'),
      'p1 (1).json': buildMetaPage([1], 'a'),
      'p2.json': buildMetaPage([3]),
      'p2 (1).json': buildMetaPage([3]),
    },
  ],
  ['a list of all pages', { 'a.json': [buildMetaPage([1], 'a'), buildMetaPage([2])] }],
  ['lines of all pages', { 'a.jsonl': toLines(buildTikTokPage(1, true), buildTikTokPage(2, false)) }],
  ['pages of the website', { 'a1.json': buildWebsitePage(1, true), 'a2.json': buildWebsitePage(2, false, true) }],
  [
    'pages of LinkedIn',
    {
      'a1.json': buildLinkedInPage(0, 2, 3, [{ rel: 'next', href: '/' }]),
      'a2.json': buildLinkedInPage(2, 1, 3, [{ rel: 'prev', href: '/' }]),
    },
  ],
  ['pages of SearchApi', { 'a1.json': buildSearchApiPage(1, undefined, 't1'), 'a2.json': buildSearchApiPage(3, 't1') }],
  ['an empty last page', { 'a1.json': buildMetaPage([1], 'a'), 'a2.json': { data: [] } }],
  ['a page and a table', { 'a.json': complete, 'b.csv': 'advertiser,headline\nTea,One\n' }],
  ['numbered tables', { 'ads-1.csv': buildTable(1), 'ads-2.csv': buildTable(2), 'ads-3.csv': buildTable(3) }],
  ['a table without a number and a second table', { 'ads.csv': buildTable(1), 'ads-2.csv': buildTable(2) }],
  ['all three tables', { '1-of-3.csv': buildTable(1), '2-of-3.csv': buildTable(2), '3-of-3.csv': buildTable(3) }],
  ['the days of two downloads', { '2026-01-05.csv': buildTable(1), '2026-01-12.csv': buildTable(2) }],
  ['dates without separators', { 'ads20260105.csv': buildTable(1), 'ads20260112.csv': buildTable(2) }],
  ['months as words', { 'ads 5 Jan 2026.csv': buildTable(1), 'ads 12 Jan 2026.csv': buildTable(2) }],
  ['German dates', { 'ads 05.01.2026.csv': buildTable(1), 'ads 12.01.2026.csv': buildTable(2) }],
  ['dates and numbers', { '2026-01-05-1.csv': buildTable(1), '2026-01-05-2.csv': buildTable(2) }],
  ['years', { '2024.csv': buildTable(1), '2026.csv': buildTable(2) }],
  ['ids of advertisers', { '81250017.csv': buildTable(1), '81250019.csv': buildTable(2) }],
  ['all stated results', { 'a.json': { searchResultsCount: 2, searchResults: complete.data, cursor: null } }],
  [
    'all stated results on two pages',
    { 'a1.json': { total: 2, ads: [firstAd] }, 'a2.json': { total: 2, ads: [{ ...firstAd, id: '3' }] } },
  ],
  [
    'results of which one ended while they were requested',
    {
      'a1.json': { total: 3, has_more: true, ads: [firstAd] },
      'a2.json': { total: 2, has_more: false, ads: [{ ...firstAd, id: '3' }] },
    },
  ],
];

const writeFiles = (folder: string, files: Record<string, unknown>) =>
  Promise.all(
    Object.entries(files).map(async ([name, content]) => {
      const file = join(folder, name);
      await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
      return file;
    }),
  );

for (const [outcome, cases] of [
  ['marks no ad as gone (no longer listed)', incompleteFiles],
  ['marks the missing ads as gone (no longer listed)', completeFiles],
] as const)
  test.for(cases)(
    `an import with the option --complete ${outcome} (imported files: %s)`,
    async ([_, files], { folder, database }) => {
      const databaseFlag = ['--database', database];
      await copyFile(databaseWithOneAd, database);
      const { code, err } = await run(['import', ...(await writeFiles(folder, files)), ...question, ...databaseFlag]);
      if (cases === completeFiles) expect(err).toMatch(/question socks: \d+ ads? listed, 1 gone\n$/);
      else expect(err).toMatch(/question socks: no ad was marked as gone, because .* (?:missing|results|read);/);
      expect(code).toBe(cases === completeFiles ? 0 : 1);
    },
  );

test('`library import` without --complete says how many results are missing if a file announces more than it contains', async ({
  folder,
  database,
}) => {
  const paths = await writeFiles(folder, { 'a.json': { total: 120, has_more: false, ads: [firstAd] } });
  const { code, err } = await run(['import', ...paths, '--database', database]);
  expect(err).toMatch(/a\.json states 120 results, but only 1 were read\n$/);
  expect(code).toBe(0);
});

test('an import of numbered tables marks no ad as gone (no longer listed) if a table before the last one is missing', async ({
  folder,
  database,
}) => {
  const databaseFlag = ['--database', database];
  await copyFile(databaseWithOneAd, database);
  const series = fc.record({
    length: fc.integer({ min: 3, max: 12 }),
    removedIndex: fc.nat(20),
    prefix: fc.constantFrom('ads-', 'page', '2026-01-05 part ', 'summary_', 'x1-', 'download ('),
    digits: fc.integer({ min: 1, max: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(series, async ({ length, removedIndex, prefix, digits }) => {
      const names = Array.from({ length }, (_, index) => `${prefix}${String(index + 1).padStart(digits, '0')}`);
      const remainingNames = names.toSpliced(removedIndex % (length - 1), 1);
      const files = remainingNames.map((name, index) => [
        `${name}${prefix.endsWith('(') ? ')' : ''}.csv`,
        buildTable(index),
      ]);
      const paths = await writeFiles(folder, Object.fromEntries(files));
      const { code, err } = await run(['import', ...paths, ...question, ...databaseFlag]);
      expect(err).toMatch(/no ad was marked as gone, because a file (?:before|between) .* is missing;/);
      expect(code).toBe(1);
    }),
    { numRuns: 15 },
  );
});

test('an import of linked result pages marks no ad as gone (no longer listed) if one of the pages is missing', async ({
  folder,
  database,
}) => {
  const databaseFlag = ['--database', database];
  await copyFile(databaseWithOneAd, database);
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 12 }).chain((length) => fc.tuple(fc.constant(length), fc.nat({ max: length - 1 }))),
      fc.boolean(),
      async ([length, removed], isLinkedIn) => {
        const pages = Array.from({ length }, (_, index) => [
          `page-${index + 1}.json`,
          isLinkedIn
            ? buildLinkedInPage(index, 1, length)
            : buildMetaPage([index], index < length - 1 ? `t${index}` : undefined),
        ]).filter((_, index) => index !== removed);
        // The last page alone looks like a complete response of the Meta Ad Library.
        if (pages.length === 1 && removed === 0 && !isLinkedIn) return;
        const paths = await writeFiles(folder, Object.fromEntries(pages));
        const { err } = await run(['import', ...paths, ...question, ...databaseFlag]);
        expect(err).toContain('question socks: no ad was marked as gone');
      },
    ),
    { numRuns: 15 },
  );
});

const emptyGraphqlConnection = { edges: [], page_info: { has_next_page: false, end_cursor: null } };

test.for([
  ['of the Meta Ad Library API', { data: [], paging: {} }],
  ['of the website of the Meta Ad Library', { data: { ad_library_main: { search: emptyGraphqlConnection } } }],
  ['of TikTok', { data: { ads: [], has_more: false, search_id: '1' }, error: { code: 'ok', message: '' } }],
  ['of LinkedIn', { elements: [], paging: { start: 0, count: 10, total: 0, links: [] } }],
  ['of SearchApi', { search_metadata: { status: 'Success' }, search_parameters: { q: 'tea' }, ad_creatives: [] }],
  ['of ScrapeCreators', { success: true, searchResults: [], searchResultsCount: 0, cursor: null }],
])(
  'a complete response without ads (%s) marks all ads of its saved search as gone (no longer listed)',
  async ([_, response], { folder, database }) => {
    const databaseFlag = ['--database', database];
    await copyFile(databaseWithTwoAds, database);
    const paths = await writeFiles(folder, { 'empty.json': response });
    expect((await run(['import', ...paths, ...databaseFlag])).err).not.toContain('gone');
    const { code, err } = await run(['import', ...paths, ...question, ...databaseFlag]);
    expect(err).toContain('the search has no results: its response lists no ad');
    expect(err).toContain('question socks: 0 ads listed, 2 gone\n');
    expect(code).toBe(0);
  },
);

test.for([
  ['a list', []],
  ['an object', {}],
  ['an empty list of unknown origin', { items: [] }],
  ['an empty list beside a message', { data: [], message: 'quota exceeded' }],
  ['an empty page with a next page', { data: [], paging: { next: nextLink } }],
  ['an empty page after other pages', { data: [], paging: { previous: nextLink } }],
  ['an empty page of results that are not empty', { elements: [], paging: { start: 10, count: 10, total: 10 } }],
  ['an error', { data: [], error: { code: 190 } }],
  ['an error of TikTok', { data: { ads: [], has_more: false }, error: { code: 'access_denied' } }],
  ['an error of a scraping service', { search_metadata: { status: 'Error' }, error: 'no credits', ads: [] }],
  ['a search that has not ended', { search_metadata: { status: 'Processing' }, ads: [] }],
  ['a failure', { success: false, searchResults: [] }],
  ['unfinished results', { data: [], is_result_complete: false }],
])(
  'an import that contains only %s marks no ad as gone (no longer listed)',
  async ([_, content], { folder, database }) => {
    const databaseFlag = ['--database', database];
    await copyFile(databaseWithTwoAds, database);
    const { code, err } = await run([
      'import',
      ...(await writeFiles(folder, { 'e.json': content })),
      ...question,
      ...databaseFlag,
    ]);
    expect(err).toContain('question socks: no ad was marked as gone');
    expect(code).toBe(1);
  },
);

test('`library import --question` treats names of saved searches that differ only in letter case as equal', async ({
  folder,
  database,
}) => {
  const databaseFlag = ['--database', database];
  const download = await writeDownload(folder, 'week.json', { 1: 'Warm' });
  for (const name of ['Socks', 'socks']) await run(['import', download, '--question', name, ...databaseFlag]);
  const library = await serveDatabase(database);
  const apiKey = (await run(['key', 'create', '--unmetered', ...databaseFlag])).out.trim();
  const server = await startServer({ config: { apiKey, baseUrl: library.origin } });
  const { data } = await server.call('search_ads', { filters: { question: ['SOCKS'] }, detail: 'full' });
  expect(data.items).toMatchObject([{ questions: ['Socks'] }]);
  await server.close();
  await library.close();
});

test('an import with --complete finds the gone ads of a saved search whose name has its accents as separate characters', async ({
  folder,
  database,
}) => {
  const firstWeek = await writeDownload(folder, 'week-1.json', { 1: 'Warm', 2: 'Thin' });
  const secondWeek = await writeDownload(folder, 'week-2.json', { 1: 'Warm' });
  const importWeek = async (file: string, name: string) =>
    (await run(['import', file, '--question', name, '--complete', '--database', database])).err;
  expect(await importWeek(firstWeek, 'cafe\u0301')).toContain('2 ads listed, 0 gone\n');
  expect(await importWeek(secondWeek, 'caf\u00e9')).toContain('1 ad listed, 1 gone\n');
  expect(await importWeek(firstWeek, 'cafe\u0301')).toContain('2 ads listed, 0 gone\n');
});

test('an ad that is gone counts as ended even if the service states the end of the day as the time it was last seen', async ({
  folder,
  database,
}) => {
  const file = join(folder, 'ads.json');
  for (const number of [1, 2]) {
    const id = `00000000-0000-4000-8000-00000000000${number}`;
    await writeFile(file, JSON.stringify([{ id, lastSeenAt: '2026-03-15T23:59:59.000Z' }]));
    await run(['import', file, ...question, '--database', database]);
  }
  const library = await serveDatabase(database);
  const apiKey = (await run(['key', 'create', '--unmetered', '--database', database])).out.trim();
  const server = await startServer({ config: { apiKey, baseUrl: library.origin } });
  const { data } = await server.call('search_ads', { filters: { active: false }, detail: 'full' });
  expect(data.items).toMatchObject([{ endDate: '2026-03-15T00:00:00.000Z', goneAt: '2026-03-15T00:00:00.000Z' }]);
  await server.close();
  await library.close();
});
