import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startServer } from '../support/server.ts';
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

test('check_watches finds new, changed and gone ads after two weekly imports', async ({ folder, database }) => {
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
  ['without --complete', ['--question', 'socks'], {}],
  ['without --question', [], {}],
  ['of another question', ['--question', 'hats', '--complete'], {}],
  ['that skipped a record', question, { '': 'No id' }],
] as const)(
  'an import of a saved search %s does not mark any ad as gone',
  async ([_, options, extraAds], { folder, database }) => {
    const databaseFlag = ['--database', database];
    const complete = await writeDownload(folder, 'complete.json', { 1: 'Warm', 2: 'Thin' });
    const partial = await writeDownload(folder, 'partial.json', { 2: 'Thin', ...extraAds });
    await run(['import', complete, ...question, ...databaseFlag]);
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

test('an ad does not count as ended while another saved search still lists it', async ({ folder, database }) => {
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

test('library import rejects --complete without --question', async ({ database }) => {
  await expect(run(['import', '-', '--complete', '--database', database])).rejects.toThrow(
    /--complete needs --question/,
  );
});

const firstAd = { id: '1', page_id: '7', ad_creative_link_titles: ['Warm'], ad_delivery_start_time: '2026-01-05' };
const nextLink = 'https://graph.facebook.com/v23.0/ads_archive?after=c2';
const paddedAds = Array.from({ length: 3000 }, () => ({ ...firstAd, ad_creative_bodies: ['x'.repeat(400)] }));

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
  'an incomplete import of a saved search (with a file that %s) does not mark any ad as gone',
  async ([_, text, reason], { folder, database }) => {
    const databaseFlag = ['--database', database];
    const complete = await writeDownload(folder, 'complete.json', { 1: 'Warm', 2: 'Thin' });
    await run(['import', complete, ...question, ...databaseFlag]);
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
  'an import of several result pages is complete if its last page (%s) names no next page',
  async ([_, text, line], { folder, database }) => {
    const databaseFlag = ['--database', database];
    const complete = await writeDownload(folder, 'complete.json', { 1: 'Warm', 2: 'Thin' });
    await run(['import', complete, ...question, ...databaseFlag]);
    const [first, last] = [join(folder, 'page-1.json'), join(folder, 'page-2.json')];
    await writeFile(first, JSON.stringify({ data: [firstAd], paging: { next: nextLink } }));
    await writeFile(last, text);
    expect((await run(['import', first, last, ...question, ...databaseFlag])).err).toContain(
      `question socks: ${line}\n`,
    );
  },
);

test('library import --question ignores the letter case of the name', async ({ folder, database }) => {
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
