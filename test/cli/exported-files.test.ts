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
import { commandLine, startCommand } from '../support/process.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = createTemporaryFolder();
const own = `ad-library-${process.getuid?.()}`;

function newMachine() {
  const home = mkdtempSync(join(root, 'home-'));
  const temporary = mkdtempSync(join(root, 'tmp-'));
  return { home, temporary, kept: join(temporary, own) };
}

/** Runs a command that may not write files with more than so many bytes, which POSIX counts in blocks of 512. */
const withFilesOf = (bytes: number | undefined) => [
  ...['sh', '-c', `ulimit -f ${bytes === undefined ? 'unlimited' : bytes / 512}; exec "$@"`, 'sh'],
];

/** A session without any setting but demo data: exports under a name, and reads what it wrote as a resource. */
async function exportIn(
  { home, temporary }: { home: string; temporary: string },
  { bytes = 10, maxFileBytes }: { bytes?: number; maxFileBytes?: number } = {},
) {
  const { command: node, args: all } = commandLine(['--demo']);
  const [program = '', ...args] = [...withFilesOf(maxFileBytes), node, ...all];
  const client = await connectCommand('v1', { command: program, args, env: { HOME: home, TMPDIR: temporary } });
  const { text, data } = await client.call('export_ads', {
    name: 'tea',
    sql: `SELECT '${'x'.repeat(bytes)}' AS filler`,
  });
  expect(JSON.stringify(await client.read(String(data.uri)))).toContain('x'.repeat(bytes));
  await client.close();
  return { text, file: data.file as string | undefined };
}

test('without a setting an export lies among the downloads', async () => {
  const machine = newMachine();
  mkdirSync(join(machine.home, 'Downloads'));
  const { file = '', text } = await exportIn(machine);
  expect(file).toBe(join(machine.home, 'Downloads', 'Ad Library', 'tea.csv'));
  expect(readFileSync(file, 'utf8')).toContain('xxx');
  expect(text).toContain(`It is in "${file}", with tea-methods.md beside it, until somebody deletes it`);
  expect(existsSync(machine.kept)).toBe(false);
});

test('without downloads it lies in a folder of its owner for seven days', async () => {
  const machine = newMachine();
  const { kept } = machine;
  mkdirSync(kept, { mode: 0o755 });
  const target = join(machine.temporary, 'target');
  const at = (name: string) => join(kept, name);
  for (const path of [target, at('old.csv'), at('young.csv')]) writeFileSync(path, 'mine');
  symlinkSync(target, at('link.csv'));
  const days = (count: number) => Date.now() / 1000 - count * 86_400;
  utimesSync(at('old.csv'), days(7.1), days(7.1));
  utimesSync(target, days(8), days(8));
  utimesSync(at('young.csv'), days(6.9), days(6.9));
  const { file = '', text } = await exportIn(machine);
  expect(file).toBe(at('tea.csv'));
  expect(text).toContain('for 7 days');
  expect([statSync(kept).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
  expect(readdirSync(kept).sort()).toEqual(['link.csv', 'tea-methods.md', 'tea.csv', 'young.csv']);
  expect(readFileSync(target, 'utf8')).toBe('mine');
});

test.for<[problem: string, cause: (kept: string, home: string) => void, disk?: object]>([
  ['a link in its place', (kept, home) => symlinkSync(home, kept)],
  ['a file in its place', (kept) => writeFileSync(kept, '')],
  ['no temporary folder', (kept) => rmdirSync(dirname(kept))],
  ['a full disk', () => {}, { bytes: 3000, maxFileBytes: 512 }],
])('%s: no file, and how to get one', async ([_, cause, disk]) => {
  const machine = newMachine();
  const { home, kept } = machine;
  cause(kept, home);
  const { text, file } = await exportIn(machine, disk);
  expect(file).toBeUndefined();
  expect(text).toContain(`No file can be written in ${kept}: `);
  expect(text).toContain('To get a file, set AD_LIBRARY_FILES to a folder');
  expect([readdirSync(home), disk ? readdirSync(kept) : []]).toEqual([[], []]);
});

/** Rights mean nothing to root, so the command then runs as nobody. */
const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];

const rowsOf = (bytes: number) =>
  `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT ${Math.ceil(bytes / 1000)})
  SELECT i, printf('%.*c', 1000, 'x') AS filler FROM n`;

test('an export that cannot be written leaves nothing behind and says why, and all is exported once it can', async ({
  upstream,
}) => {
  const files = join(root, 'files');
  const exports = join(files, 'exports');
  chmodSync(root, 0o777);
  const call = async (name: string, args: object, maxFileBytes?: number) => {
    const settings = { AD_LIBRARY_BASE_URL: upstream.baseUrl, AD_LIBRARY_FILES: files };
    const within = [...asNobody, ...withFilesOf(maxFileBytes)];
    const words = ['call', name, JSON.stringify(args), '--json'];
    const { stdout, stderr } = await startCommand(words, { AD_LIBRARY_API_KEY: 'svc_live_test', ...settings }, within)
      .ended;
    return { data: JSON.parse(stdout), text: stderr };
  };
  const service = serveAds(upstream, 3);
  expect((await call('search_ads', {})).data.items).toHaveLength(3);
  const { chargedCredits } = service;
  const refused = async (why: string, args: object, maxFileBytes?: number) => {
    const { data, text } = await call('export_ads', args, maxFileBytes);
    expect(text).toContain(`No file can be written in ${exports}: this server may not write ${why}.`);
    expect(data).toMatchObject({ kind: 'invalid_request', retryable: false });
  };
  // The rights of the folder for all files, then those of the folder for exports.
  chmodSync(files, 0o555);
  await refused('there', {});
  chmodSync(files, 0o777);
  mkdirSync(exports);
  chmodSync(exports, 0o555);
  await refused('there', {});
  chmodSync(exports, 0o777);
  // No room for the rows, and none for the note beside them.
  await refused('such a large file', { sql: rowsOf(200_000) }, 512 * 96);
  await refused('such a large file', { sql: `SELECT 1 AS one WHERE '${'x'.repeat(3000)}' <> ''` }, 1024);
  expect(readdirSync(exports)).toEqual([]);

  expect((await call('export_ads', { name: 'again', format: 'jsonl' })).data.rows).toBe(3);
  const lines = readFileSync(join(exports, 'again.jsonl'), 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(service.ads.map(({ id }) => id));
  expect(service.chargedCredits).toBe(chargedCredits);
});
