import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { runLibraryCommand as run, serveDatabase, startServeCommand } from '../library/support/command.ts';
import { databaseTest as test } from '../library/support/fixtures.ts';
import { formatHttpRequest, openRawSocket } from '../support/http.ts';
import { runCommand, startCommand } from '../support/process.ts';
import { startServer } from '../support/server.ts';

const databaseFlag = (database: string) => ['--database', database];

describe('The library key command', () => {
  test('`library key` creates, lists and revokes an API key of the local library', async ({ database }) => {
    const creation = await run([
      'key',
      'create',
      '--name',
      'Ci',
      '--scopes',
      'ads:read, pages:read',
      ...databaseFlag(database),
    ]);
    expect(creation).toEqual({ code: 0, out: expect.stringMatching(/^svc_live_[0-9a-f]{40}\n$/), err: '' });
    const list = await run(['key', 'list', ...databaseFlag(database)]);
    expect(list.out).toMatch(
      /^svc_live_[0-9a-f]+… {2}\S+ {2}created 2026-03-15 {2}active {2}Ci {2}ads:read,pages:read\n$/,
    );
    const prefix = creation.out.slice(0, 17);
    expect((await run(['key', 'revoke', prefix, ...databaseFlag(database)])).out).toMatch(
      /^revoked svc_live_[0-9a-f]+…\n$/,
    );
    expect((await run(['key', 'list', ...databaseFlag(database)])).out).toContain('revoked 2026-03-15');
  });

  test('`library key revoke` accepts a prefix with the ellipsis that `library key list` shows', async ({
    database,
  }) => {
    await run(['key', 'create', ...databaseFlag(database)]);
    const [shownPrefix = ''] = (await run(['key', 'list', ...databaseFlag(database)])).out.split(' ');
    expect(shownPrefix).toMatch(/^svc_live_\w+…$/);
    const revocation = await run(['key', 'revoke', shownPrefix, ...databaseFlag(database)]);
    expect(revocation.out).toBe(`revoked ${shownPrefix}\n`);
  });

  test('several `library key create` commands that run at the same time create different keys', async ({
    database,
  }) => {
    const creations = await Promise.all(
      Array.from({ length: 3 }, () => runCommand(['library', 'key', 'create', ...databaseFlag(database)])),
    );
    expect(creations.map(({ code }) => code)).toEqual(creations.map(() => 0));
    const { out } = await run(['key', 'list', ...databaseFlag(database)]);
    for (const { stdout } of creations) expect(out).toContain(stdout.slice(0, 17));
  });

  test('`library key create` sets the credits, limits and subscription of the new key from its options', async ({
    database,
  }) => {
    const limits = ['--credits', '7', '--hourly-limit', '5', '--daily-limit', '6'];
    const { out: subscribedKey } = await run(['key', 'create', ...limits, ...databaseFlag(database)]);
    const { out: unsubscribedKey } = await run(['key', 'create', '--no-subscription', ...databaseFlag(database)]);
    const { origin, close } = await serveDatabase(database);
    const readCredits = async (key: string) => {
      const answer = await fetch(`${origin}/v1/credits`, { headers: { authorization: `Bearer ${key.trim()}` } });
      return answer.json();
    };
    expect(await readCredits(subscribedKey)).toMatchObject({
      credits: 7,
      usageLimit: { hourlyLimit: 5, dailyLimit: 6 },
    });
    expect(await readCredits(unsubscribedKey)).toMatchObject({ planId: null, credits: null });
    expect(await close()).toBe(0);
  });

  test.for([
    [['--credits', 'many'], /^--credits takes a whole number/],
    [['--credits', ''], /^--credits takes a whole number/],
    [['--hourly-limit', '-1'], /^--hourly-limit takes a whole number/],
    [['--scopes', 'ads:eat'], /Unknown scope ads:eat/],
  ] as const)(
    '`library key create` rejects the options %j before it creates a database',
    async ([options, problem], { folder, database }) => {
      await expect(run(['key', 'create', ...options, ...databaseFlag(database)])).rejects.toThrow(problem);
      expect(await readdir(folder)).toEqual([]);
    },
  );
});

describe('The library import command', () => {
  const validLine = '{"pageId":"p","pageName":"P"}\n';

  test.for([
    [
      'with valid lines only',
      validLine,
      0,
      /^standard input: 0 ads and 1 page\n {2}format: api \(1 page\)\n {2}keys: pageId ← pageId, pageName ← pageName\n$/,
    ],
    ['with one invalid line', '{"id":"x"}\n', 1, /nothing was read, 0 ads and 0 pages, 1 skipped:\n {2}line 1: id: /],
    [
      'with 500 invalid lines',
      '{"id":"x"}\n'.repeat(500),
      1,
      /\n {2}and 450 more:\n {4}450 × id: an ad's id is a UUID\n/,
    ],
    [
      'with ads of two formats',
      '{"ad_archive_id":"1","page_id":"2"}\n{"id":"00000000-0000-4000-8000-000000000001"}\n',
      0,
      /: 2 ads and 0 pages\n {2}formats: meta-ad-library \(1 ad\), api \(1 ad\)\n/,
    ],
    [
      'of an empty file',
      '',
      1,
      /^standard input: nothing was read, 0 ads and 0 pages:\n {2}the source contains no ad and no page\n$/,
    ],
    [
      'of an answer without ads',
      '{"data":[],"paging":{}}',
      0,
      /nothing was read, .*\n {2}the search has no results: its response lists no ad\n$/,
    ],
    [
      'of column names without rows',
      'advertiser,headline\n',
      1,
      /nothing was read, .*\n {2}columns: .*\n {2}the source contains no ad and no page/,
    ],
    [
      'of the same ad twice',
      '{"ad_archive_id":"1"}\n'.repeat(2),
      0,
      /: 1 ad and 0 pages, 1 record with the id of another/,
    ],
  ] as const)(
    '`library import` prints a report and sets the exit code for an input file (contents: %s)',
    async ([_, input, code, err], { database }) => {
      const result = await run(['import', '-', ...databaseFlag(database)], { input });
      expect(result).toEqual({ code, out: '', err: expect.stringMatching(err) });
    },
  );

  test('`library formats` lists every format name that `library import` accepts', async ({ database }) => {
    const { out } = await run(['formats']);
    const names = out.split('\n').filter((line) => /^\S/.test(line));
    expect(names).toContain('meta-ad-library');
    await expect(run(['import', '-', '--format', 'excel', ...databaseFlag(database)])).rejects.toThrow(
      `--format takes one of ${names.join(', ')}`,
    );
  });

  test('with the --format option, `library import` reads a table whose format it does not recognize by itself', async ({
    database,
  }) => {
    const input = 'Brand,Start\nSock Shop,2026-01-05\n';
    const importTable = (options: string[]) => run(['import', '-', ...options, ...databaseFlag(database)], { input });
    expect((await importTable([])).err).toMatch(/neither JSON nor a table of ads/);
    const { err } = await importTable(['--format', 'own-ads']);
    expect(err).toMatch(/columns: pageName ← Brand, startedAt ← Start/);
    expect(err).toMatch(/line 2: neither a headline nor a body/);
  });

  test('`library import` rejects a missing file and prints its path', async ({ folder, database }) => {
    const missingFile = join(folder, 'nowhere.jsonl');
    await expect(run(['import', missingFile, ...databaseFlag(database)])).rejects.toThrow(
      `${missingFile} does not exist`,
    );
  });
});

test('`library serve` rejects a request whose Host header names a host that is not allowed', async ({ database }) => {
  const { origin, close } = await serveDatabase(database, ['--allowed-hosts', 'ads.example.com']);
  const url = new URL(origin);
  const getStatus = async (host: string) =>
    (await request(new URL('/v1/whoami', url), { headers: { host } })).statusCode;
  expect(await getStatus('evil.example')).toBe(403);
  expect(await getStatus('ads.example.com')).toBe(401);
  expect(await getStatus(url.host)).toBe(401);
  const { socket } = openRawSocket(Number(url.port));
  const unfinishedRequest = formatHttpRequest({}).slice(0, -1).replace('/mcp', '/v1/ads/search');
  await new Promise<void>((resolve) => socket.write(unfinishedRequest, () => resolve()));
  expect(await close()).toBe(0);
});

test('`library serve --demo` prints its API key and its URLs when it starts', async () => {
  // Use another loopback address than the default to check that the server listens on it. macOS has only one.
  const host = process.platform === 'darwin' ? '127.0.0.1' : '127.0.0.2';
  const { origin, readStderr, close } = await startServeCommand(['--demo', '--host', host]);
  const expectedOutput =
    /^ad-library-mcp: demo key (svc_live_\w+)\nad-library-mcp: library on (http:\/\/[\d.]+:\d+)\nad-library-mcp: pages at \2\/p\/[\w-]+\/\n$/;
  const [, key = '', url = ''] = expectedOutput.exec(readStderr()) ?? [];
  expect([origin, new URL(url).hostname]).toEqual([url, host]);
  expect((await fetch(`${url}/v1/whoami`)).status).toBe(401);
  expect((await fetch(`${url}/v1/whoami`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200);
  expect(await close()).toBe(0);
});

test('`library serve --demo` refuses a database file, because demo data is served from memory', async ({
  folder,
  database,
}) => {
  await expect(startServeCommand(['--demo', ...databaseFlag(database)])).rejects.toThrow(
    '--database must be left out with demo data, because demo data is served from memory. To serve the database, leave out --demo',
  );
  expect(() =>
    readConfig({ AD_LIBRARY_DATABASE: database }, { demo: 'true' }, { commandName: 'library serve' }),
  ).toThrow('AD_LIBRARY_DATABASE must be left out with demo data');
  expect(await readdir(folder)).toEqual([]);
});

test('the output of `library filters` can be used as the filter file of a server', async ({ folder }) => {
  const { code, out, err } = await run(['filters']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const filterFile = join(folder, 'filters.json');
  await writeFile(filterFile, out);
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: filterFile });
  const [serverWithFile, demoServer] = [
    await startServer({ config: { searchFilters } }),
    await startServer({ config: { demo: true } }),
  ];
  expect(await serverWithFile.client.listTools()).toEqual(await demoServer.client.listTools());
  await Promise.all([serverWithFile.close(), demoServer.close()]);
});

function runOnFullDisk(database: string, kilobytes: number, args: readonly string[]) {
  const wrapper = ['bash', '--norc', '-c', `trap '' XFSZ; ulimit -f ${kilobytes}; exec "$@"`, 'bash'];
  return startCommand(['library', ...args, ...databaseFlag(database)], {}, wrapper).ended;
}

describe.skipIf(process.platform === 'win32')('The library on a full disk', () => {
  test.for([
    [['serve', '--port', '0'], 0],
    [['import', '-'], 1],
    [['key', 'create'], 0],
  ] as const)(
    'on a full disk, the library command %j explains its failure and exits with code 1 (file size limit: %i kB)',
    async ([args, kilobytes], { folder, database }) => {
      await run(['key', 'list', ...databaseFlag(database)]);
      const filesBefore = await readdir(folder);
      const { code, stderr } = await runOnFullDisk(database, kilobytes, args);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^ad-library-mcp: .*ad-library\.db(\.owner)? cannot be written .*\n$/);
      expect(await readdir(folder)).toEqual(filesBefore);
    },
  );
});
