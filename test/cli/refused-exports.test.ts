import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { type AdService, serveAds } from '../support/ad-service.ts';
import { test as base } from '../support/fixtures.ts';
import { command } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = temporaryFolder();
let folders = 0;

/** Rights mean nothing to root, so the command then runs as nobody. */
const identity = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

interface Kept {
  service: AdService;
  files: string;
  /** Names in the folder for exports. */
  exported(): string[];
  /** What a call prints: data or an error, and the text of that. It may not write files with more than so many bytes. */
  call(name: string, args: object, maxFileBytes?: number): Promise<{ data: Record<string, unknown>; text: string }>;
}

/** A folder in which a dataset of three ads is kept. */
const test = base.extend('kept', async ({ upstream }): Promise<Kept> => {
  const service = serveAds(upstream, 3);
  const files = join(root, `${++folders}`);
  chmodSync(root, 0o777);
  const call = async (name: string, args: object, maxFileBytes?: number) => {
    const { command: file, args: all } = command(['call', name, JSON.stringify(args), '--json']);
    // POSIX counts in blocks of 512 bytes.
    const limit = maxFileBytes === undefined ? 'unlimited' : maxFileBytes / 512;
    const settings = { AD_LIBRARY_BASE_URL: upstream.baseUrl, AD_LIBRARY_FILES: files };
    const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: 'svc_live_test', ...settings };
    const limited = ['-c', `ulimit -f ${limit}; exec "$@"`, 'sh', file, ...all];
    const ran = promisify(execFile)('sh', limited, { ...identity, env });
    const { stdout, stderr } = await ran.catch((error) => error);
    return { data: JSON.parse(stdout), text: stderr };
  };
  expect((await call('search_ads', {})).data.items).toHaveLength(3);
  const exported = () => readdirSync(join(files, 'exports'));
  return { service, files, exported, call };
});

const rowsOf = (bytes: number) =>
  `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT ${Math.ceil(bytes / 1000)})
  SELECT i, printf('%.*c', 1000, 'x') AS filler FROM n`;

/** What was paid for is exported whole as soon as that is possible, without another paid call. */
async function expectAllIsThere({ service, files, call }: Kept): Promise<void> {
  const { charged } = service;
  expect((await call('export_ads', { name: 'again', format: 'jsonl' })).data.rows).toBe(3);
  const lines = readFileSync(join(files, 'exports', 'again.jsonl'), 'utf8')
    .trim()
    .split('\n');
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(service.ads.map(({ id }) => id));
  expect(service.charged).toBe(charged);
}

test('an export for which there is no room, or none for its note beside it, leaves nothing behind and says why', async ({
  kept,
}) => {
  const note = `SELECT 1 AS one WHERE '${'x'.repeat(3000)}' <> ''`;
  for (const [sql, maxFileBytes] of [
    [rowsOf(200_000), 512 * 96],
    [note, 1024],
  ] as const) {
    const { text, data } = await kept.call('export_ads', { sql }, maxFileBytes);
    expect(text).toContain(
      `No file can be written in ${join(kept.files, 'exports')}: this server may not write such a large file.`,
    );
    expect(data).toMatchObject({ kind: 'invalid_request', retryable: false });
    expect(kept.exported()).toEqual([]);
  }
  await expectAllIsThere(kept);
});

test('a missing right to write is named, be it in the folder for exports or for all files', async ({ kept }) => {
  mkdirSync(join(kept.files, 'exports'), { recursive: true });
  for (const closed of [join(kept.files, 'exports'), kept.files]) {
    if (closed === kept.files) rmdirSync(join(kept.files, 'exports'));
    chmodSync(closed, 0o555);
    const { text, data } = await kept.call('export_ads', {});
    expect(text).toContain(
      `No file can be written in ${join(kept.files, 'exports')}: this server may not write there. Tell the user.`,
    );
    expect(data).toMatchObject({ kind: 'invalid_request', retryable: false });
    chmodSync(closed, 0o777);
  }
  await expectAllIsThere(kept);
});
