import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { runLibraryCommand as run, serveDatabase } from '../library/support/command.ts';
import { databaseTest as test } from '../library/support/fixtures.ts';
import { formatHttpRequest, openRawSocket } from '../support/http.ts';
import { runCommand, startCommand } from '../support/process.ts';
import { startServer } from '../support/server.ts';

const at = (database: string) => ['--database', database];

describe('keys', () => {
  test('are created, listed and revoked, and only the new key itself is printed', async ({ database }) => {
    const made = await run(['key', 'create', '--name', 'Ci', '--scopes', 'ads:read, pages:read', ...at(database)]);
    expect(made).toEqual({ code: 0, out: expect.stringMatching(/^svc_live_[0-9a-f]{40}\n$/), err: '' });
    const listed = await run(['key', 'list', ...at(database)]);
    expect(listed.out).toMatch(
      /^svc_live_[0-9a-f]+… {2}\S+ {2}made 2026-03-15 {2}active {2}Ci {2}ads:read,pages:read\n$/,
    );
    const prefix = made.out.slice(0, 17);
    expect((await run(['key', 'revoke', prefix, ...at(database)])).out).toMatch(/^revoked svc_live_[0-9a-f]+…\n$/);
    expect((await run(['key', 'list', ...at(database)])).out).toContain('revoked 2026-03-15');
  });

  test('are all created when many commands run at once', async ({ database }) => {
    const made = await Promise.all(
      Array.from({ length: 3 }, () => runCommand(['library', 'key', 'create', ...at(database)])),
    );
    expect(made.map(({ code }) => code)).toEqual(made.map(() => 0));
    const { out } = await run(['key', 'list', ...at(database)]);
    for (const { stdout } of made) expect(out).toContain(stdout.slice(0, 17));
  });

  test('have the account that the options describe', async ({ database }) => {
    const limits = ['--credits', '7', '--hourly-limit', '5', '--daily-limit', '6'];
    const { out: subscribed } = await run(['key', 'create', ...limits, ...at(database)]);
    const { out: not } = await run(['key', 'create', '--no-subscription', ...at(database)]);
    const { origin, close } = await serveDatabase(database);
    const creditsOf = async (key: string) => {
      const answer = await fetch(`${origin}/v1/credits`, { headers: { authorization: `Bearer ${key.trim()}` } });
      return answer.json();
    };
    expect(await creditsOf(subscribed)).toMatchObject({ credits: 7, usageLimit: { hourlyLimit: 5, dailyLimit: 6 } });
    expect(await creditsOf(not)).toMatchObject({ planId: null, credits: null });
    expect(await close()).toBe(0);
  });

  test.for([
    [['--credits', 'many'], /^--credits takes a whole number/],
    [['--hourly-limit', '-1'], /^--hourly-limit takes a whole number/],
    [['--scopes', 'ads:eat'], /Unknown scope ads:eat/],
  ] as const)('with %j are refused before a database is made', async ([options, problem], { folder, database }) => {
    await expect(run(['key', 'create', ...options, ...at(database)])).rejects.toThrow(problem);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('an import', () => {
  const good = '{"pageId":"p","pageName":"P"}\n';

  test.for([
    ['whose lines are all good', good, 0, /^standard input: 0 ads and 1 page\n$/],
    ['that skipped a line', '{"id":"x"}\n', 1, /nothing was read, 0 ads and 0 pages, 1 skipped:\n {2}line 1: id: /],
    ['that skipped many', '{"id":"x"}\n'.repeat(500), 1, /\n {2}and 450 more:\n {4}450 × id: an ad's id is a UUID\n/],
    [
      'in the form of the public library',
      '{"ad_archive_id":"1","page_id":"2"}\n',
      0,
      /1 ad \(1 from the public ad lib/,
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
      1,
      /nothing was read, .*\n {2}the source contains no ad and no page\n$/,
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
      /: 1 ad .* and 0 pages, 1 record with the id of another/,
    ],
  ] as const)('%s ends with a code and says what it did', async ([_, input, code, err], { database }) => {
    const ended = await run(['import', '-', ...at(database)], { input });
    expect(ended).toEqual({ code, out: '', err: expect.stringMatching(err) });
  });

  test('of a file that is not there, or is a folder, says which word was wrong', async ({ folder, database }) => {
    const nowhere = join(folder, 'nowhere.jsonl');
    await expect(run(['import', nowhere, ...at(database)])).rejects.toThrow(`${nowhere} does not exist`);
    const inside = join(folder, 'inside');
    await mkdir(inside);
    await expect(run(['import', inside, ...at(database)])).rejects.toThrow(/is a folder; name the files in it/);
  });
});

test('a served library is asked by its own names only, and ends though somebody never finishes', async ({
  database,
}) => {
  const { origin, close } = await serveDatabase(database, ['--allowed-hosts', 'ads.example.com']);
  const url = new URL(origin);
  const statusFor = async (host: string) =>
    (await request(new URL('/v1/whoami', url), { headers: { host } })).statusCode;
  expect(await statusFor('evil.example')).toBe(403);
  expect(await statusFor('ads.example.com')).toBe(401);
  expect(await statusFor(url.host)).toBe(401);
  const { socket } = openRawSocket(Number(url.port));
  const begun = formatHttpRequest({}).slice(0, -1).replace('/mcp', '/v1/ads/search');
  await new Promise<void>((resolve) => socket.write(begun, () => resolve()));
  expect(await close()).toBe(0);
});

test('a served demo says its key and its address, and ends when it is asked to', async () => {
  // macOS has one address of this kind only.
  const host = process.platform === 'darwin' ? '127.0.0.1' : '127.0.0.2';
  const { origin, readStderr, close } = await serveDatabase(':memory:', ['--demo', '--host', host]);
  const all =
    /^ad-library-mcp: demo key (svc_live_\w+)\nad-library-mcp: library on (http:\/\/[\d.]+:\d+)\nad-library-mcp: pages at \2\/p\/[\w-]+\/\n$/;
  const [, key = '', url = ''] = all.exec(readStderr()) ?? [];
  expect([origin, new URL(url).hostname]).toEqual([url, host]);
  expect((await fetch(`${url}/v1/whoami`)).status).toBe(401);
  expect((await fetch(`${url}/v1/whoami`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200);
  expect(await close()).toBe(0);
});

test('the filters that are printed are a file that describes the demo to a model as the demo does', async ({
  folder,
}) => {
  const { code, out, err } = await run(['filters']);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const file = join(folder, 'filters.json');
  await writeFile(file, out);
  const { searchFilters } = readConfig({ AD_LIBRARY_SEARCH_FILTERS: file });
  const [described, demo] = [
    await startServer({ config: { searchFilters } }),
    await startServer({ config: { demo: true } }),
  ];
  expect(await described.client.listTools()).toEqual(await demo.client.listTools());
  await Promise.all([described.close(), demo.close()]);
});

function runOnFullDisk(database: string, kilobytes: number, words: readonly string[]) {
  const within = ['bash', '--norc', '-c', `trap '' XFSZ; ulimit -f ${kilobytes}; exec "$@"`, 'bash'];
  return startCommand(['library', ...words, ...at(database)], {}, within).ended;
}

describe.skipIf(process.platform === 'win32')('a disk that is full', () => {
  test.for([
    [['serve', '--port', '0'], 0],
    [['import', '-'], 1],
    [['key', 'create'], 0],
  ] as const)(
    'stops %j with 1 and a reason, where files may have %i kB',
    async ([words, kilobytes], { folder, database }) => {
      await run(['key', 'list', ...at(database)]);
      const before = await readdir(folder);
      const { code, stderr } = await runOnFullDisk(database, kilobytes, words);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^ad-library-mcp: .*ad-library\.db(\.owner)? cannot be written .*\n$/);
      expect(await readdir(folder)).toEqual(before);
    },
  );
});
