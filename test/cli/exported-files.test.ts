import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { connectCommand } from '../support/clients.ts';
import { test } from '../support/fixtures.ts';
import { buildCommandLine, startCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = createTemporaryFolder();
/**
 * The name of the private folder in the temporary folder. It contains the user's id, because all users share the
 * temporary folder.
 */
const userFolderName = `ad-library-${process.getuid?.()}`;

/**
 * Creates an empty home folder and an empty temporary folder. `fallback` is the folder to which exports go if the home
 * folder has no folder for downloads.
 */
function createMachine() {
  const home = mkdtempSync(join(root, 'home-'));
  const temporary = mkdtempSync(join(root, 'tmp-'));
  return { home, temporary, fallback: join(temporary, userFolderName) };
}

/**
 * Returns the beginning of a command line that limits the size of the files that the command can write. `ulimit -f`
 * takes a number of blocks of 512 bytes.
 */
const limitFileSize = (bytes: number | undefined) => [
  ...['sh', '-c', `ulimit -f ${bytes === undefined ? 'unlimited' : bytes / 512}; exec "$@"`, 'sh'],
];

/** Exports a file in a session with demo data and no other setting, and reads the export as a resource. */
async function exportOnMachine(
  { home, temporary }: { home: string; temporary: string },
  { bytes = 10, maxFileBytes }: { bytes?: number; maxFileBytes?: number } = {},
) {
  const { command: node, args: nodeArgs } = buildCommandLine(['--demo']);
  const [program = '', ...args] = [...limitFileSize(maxFileBytes), node, ...nodeArgs];
  const client = await connectCommand('v1', { command: program, args, env: { HOME: home, TMPDIR: temporary } });
  const { text, data } = await client.call('export_ads', {
    name: 'tea',
    sql: `SELECT '${'x'.repeat(bytes)}' AS filler`,
  });
  expect(JSON.stringify(await client.read(String(data.uri)))).toContain('x'.repeat(bytes));
  await client.close();
  return { text, file: data.file as string | undefined };
}

test("export_ads writes files to the user's downloads folder by default", async () => {
  const machine = createMachine();
  mkdirSync(join(machine.home, 'Downloads'));
  const { file = '', text } = await exportOnMachine(machine);
  expect(file).toBe(join(machine.home, 'Downloads', 'Ad Library', 'tea.csv'));
  expect(readFileSync(file, 'utf8')).toContain('xxx');
  expect(text).toContain(`It is in "${file}", with tea-methods.md beside it, until somebody deletes it`);
  expect(existsSync(machine.fallback)).toBe(false);
});

test('export_ads writes to a private temporary folder, which keeps files for seven days, if there is no downloads folder', async () => {
  const machine = createMachine();
  const { fallback } = machine;
  mkdirSync(fallback, { mode: 0o755 });
  const target = join(machine.temporary, 'target');
  const getPath = (name: string) => join(fallback, name);
  for (const path of [target, getPath('old.csv'), getPath('young.csv')]) writeFileSync(path, 'mine');
  symlinkSync(target, getPath('link.csv'));
  const daysAgo = (count: number) => Date.now() / 1000 - count * 86_400;
  utimesSync(getPath('old.csv'), daysAgo(7.1), daysAgo(7.1));
  utimesSync(target, daysAgo(8), daysAgo(8));
  utimesSync(getPath('young.csv'), daysAgo(6.9), daysAgo(6.9));
  const { file = '', text } = await exportOnMachine(machine);
  expect(file).toBe(getPath('tea.csv'));
  expect(text).toContain('for 7 days');
  expect([statSync(fallback).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(readdirSync(fallback).sort()).toEqual(['link.csv', 'tea-methods.md', 'tea.csv', 'young.csv']);
  expect(readFileSync(target, 'utf8')).toBe('mine');
});

test.for<[problem: string, cause: (fallback: string, home: string) => void, disk?: object]>([
  ['a link in place of the temporary export folder', (fallback, home) => symlinkSync(home, fallback)],
  ['a file in place of the temporary export folder', (fallback) => writeFileSync(fallback, '')],
  ['no temporary folder', (fallback) => rmdirSync(dirname(fallback))],
  ['a full disk', () => {}, { bytes: 3000, maxFileBytes: 512 }],
])('export_ads writes no file and says which setting to change if it finds %s', async ([_, cause, disk]) => {
  const machine = createMachine();
  const { home, fallback } = machine;
  cause(fallback, home);
  const { text, file } = await exportOnMachine(machine, disk);
  expect(file).toBeUndefined();
  expect(text).toContain(`No file can be written in ${fallback}: `);
  expect(text).toContain('To get a file, set AD_LIBRARY_FILES to a folder');
  expect([readdirSync(home), disk ? readdirSync(fallback) : []]).toEqual([[], []]);
});

/** File permissions do not apply to root. If the tests run as root, they start the command as the user nobody. */
const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];

/** Returns an SQL statement whose rows have about this many bytes in total. */
const createRowsSql = (bytes: number) =>
  `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT ${Math.ceil(bytes / 1000)})
  SELECT i, printf('%.*c', 1000, 'x') AS filler FROM n`;

test('export_ads leaves no file behind and gives the reason if it cannot finish writing the file', async ({
  upstream,
}) => {
  const files = join(root, 'files');
  const exports = join(files, 'exports');
  chmodSync(root, 0o777);
  const call = async (name: string, args: object, maxFileBytes?: number) => {
    const settings = { AD_LIBRARY_BASE_URL: upstream.baseUrl, AD_LIBRARY_FILES: files };
    const wrapper = [...asNobody, ...limitFileSize(maxFileBytes)];
    const callArgs = ['call', name, JSON.stringify(args), '--json'];
    const { stdout, stderr } = await startCommand(
      callArgs,
      { AD_LIBRARY_API_KEY: 'svc_live_test', ...settings },
      wrapper,
    ).ended;
    return { data: JSON.parse(stdout), text: stderr };
  };
  const service = serveAds(upstream, 3);
  expect((await call('search_ads', {})).data.items).toHaveLength(3);
  const { chargedCredits } = service;
  const expectRefusal = async (reason: string, args: object, maxFileBytes?: number) => {
    const { data, text } = await call('export_ads', args, maxFileBytes);
    expect(text).toContain(`No file can be written in ${exports}: this server may not write ${reason}.`);
    expect(text).toContain('Ask the user to make the folder writable');
    expect(data).toMatchObject({ kind: 'unavailable', retryable: true });
  };
  // First the exports folder cannot be created, because its parent folder is read-only. Then it exists and is read-only
  // itself.
  chmodSync(files, 0o555);
  await expectRefusal('there', {});
  chmodSync(files, 0o777);
  mkdirSync(exports);
  chmodSync(exports, 0o555);
  await expectRefusal('there', {});
  chmodSync(exports, 0o777);
  // In the first call, the rows exceed the limit for file sizes. In the second call, only the note about the method
  // exceeds it.
  await expectRefusal('such a large file', { sql: createRowsSql(200_000) }, 512 * 96);
  await expectRefusal('such a large file', { sql: `SELECT 1 AS one WHERE '${'x'.repeat(3000)}' <> ''` }, 1024);
  expect(readdirSync(exports)).toEqual([]);

  expect((await call('export_ads', { name: 'again', format: 'jsonl' })).data.rows).toBe(3);
  const lines = readFileSync(join(exports, 'again.jsonl'), 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(service.ads.map(({ id }) => id));
  expect(service.chargedCredits).toBe(chargedCredits);
});
