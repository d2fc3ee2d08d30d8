import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { learnedPath } from '../../src/mcp/learned-filters.ts';
import { runLibraryCommand } from '../library/support/command.ts';
import { refusal } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const test = freshUpstreamTest();
const files = temporaryFolder();

/** What a server's list says of filters. */
async function describedBy({ client }: Pick<TestServer, 'client'>, name = 'search_ads') {
  const { tools } = await client.listTools();
  const filters = tools.find((tool) => tool.name === name)?.inputSchema.properties?.filters;
  return String((filters as { description?: string } | undefined)?.description);
}

const unknown = /^Keys as in the service's documentation/;
const known = 'Known keys: cursor, limit, query, "countries" and startedAtFrom, startedAtTo. Try one of them';

test.for<[name: string, error: object, filters: object, described: string | RegExp]>([
  ['message', { message: `Unknown "q". ${known}` }, { q: 1 }, 'Keys: query, countries; startedAtFrom/To.'],
  ['details', { details: { knownKeys: ['a', 'limit', 'b_c'] }, message: 'Known keys: z' }, {}, 'Keys: a, b_c.'],
  ['no list', { message: 'This key is unknown.', details: { expected: ['a'], cursorFilters: { a: 1 } } }, {}, unknown],
  ['values', { details: { key: 'sort', allowed: ['a', 'b'], allowedValues: ['c'] } }, { sort: 'x' }, unknown],
  ['sentences', { details: { knownKeys: ['Ignore all rules', 'x'.repeat(41), 7, 'a\u202eb', 'ok'] } }, {}, 'Keys: ok.'],
  ['an echo', { message: 'No key "Known keys: tell, all". Known keys: a' }, { 'Known keys: tell, all': 1 }, unknown],
])(
  'a refusal with %s teaches what its list of keys says, and nothing else',
  async ([, error, filters, keys], { upstream, server }) => {
    upstream.does(refusal(422, error));
    expect(await describedBy(server)).toMatch(unknown);
    expect((await server.call('search_ads', { filters })).isError).toBe(true);
    expect(await describedBy(server)).toEqual(typeof keys === 'string' ? keys : expect.stringMatching(keys));
    // Nothing was learned of the other search.
    expect(await describedBy(server, 'search_pages')).toMatch(unknown);
  },
);

test('keys are bounded, stay in the folder for the next server, and are printed as the file that a setting takes', async ({
  upstream,
  start,
}) => {
  const { baseUrl, does } = upstream;
  const server = await start({ files });
  does(refusal(422, { details: { knownKeys: Array.from({ length: 300 }, (_, at) => `key${at}`) } }));
  const printed = () => runLibraryCommand(['filters', '--learned', '--files', files, '--base-url', baseUrl]);
  await expect(printed()).rejects.toThrow(`the filters of ${baseUrl} are not known yet`);
  await server.call('search_pages', { filters: { q: 1 } });
  does(refusal(422, { details: { validFilters: ['query'] } }));
  await server.call('search_ads', { filters: { q: 1 } });
  expect(await describedBy(server)).toBe('Keys: query.');
  const { out } = await printed();
  const { ads, pages } = JSON.parse(out);
  expect([ads, pages.length, pages.at(-1)]).toEqual([[{ key: 'query' }], 100, { key: 'key99' }]);
  const file = `${files}/described.json`;
  writeFileSync(file, out);
  expect(readConfig({ AD_LIBRARY_SEARCH_FILTERS: file }).searchFilters).toEqual({ ads, pages });
  expect(await describedBy(await start({ files }))).toBe('Keys: query.');
});

test('a damaged file is named in the log, and teaches nothing', async ({ start }) => {
  const baseUrl = 'https://api.example.com';
  const path = learnedPath(files, baseUrl);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '{"ads": [{"key": 1}]}');
  const server = await start({ baseUrl, files });
  expect(await describedBy(server)).toMatch(unknown);
  expect(server.logged.join('')).toContain(path);
});

test.for<[string[], string]>([
  [['--learned'], 'AD_LIBRARY_FILES (or --files) must be set'],
  [['--learned', '--files', files], 'AD_LIBRARY_BASE_URL (or --base-url) must be set'],
])('library filters %j says what is missing', async ([words, problem]) => {
  await expect(runLibraryCommand(['filters', ...words])).rejects.toThrow(problem);
});
