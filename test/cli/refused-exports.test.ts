import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { serveAds } from '../support/ad-service.ts';
import { test as base } from '../support/fixtures.ts';
import { command } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = temporaryFolder();
const files = join(root, 'files');
const exports = join(files, 'exports');

/** Rights mean nothing to root, so the command then runs as nobody. */
const identity = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

/** What a call prints: data or an error, and the text of that. It may not write files with more than so many bytes. */
type Call = (name: string, args: object, maxFileBytes?: number) => Promise<{ data: Printed; text: string }>;
type Printed = Record<string, unknown>;

/** A folder in which a dataset of three ads is kept. */
const test = base.extend('call', async ({ upstream }): Promise<Call> => {
  chmodSync(root, 0o777);
  return async (name, args, maxFileBytes) => {
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
});

const rowsOf = (bytes: number) =>
  `WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT ${Math.ceil(bytes / 1000)})
  SELECT i, printf('%.*c', 1000, 'x') AS filler FROM n`;

test('an export that cannot be written leaves nothing behind and says why, and all is exported once it can', async ({
  upstream,
  call,
}) => {
  const service = serveAds(upstream, 3);
  expect((await call('search_ads', {})).data.items).toHaveLength(3);
  const { charged } = service;
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
  expect(service.charged).toBe(charged);
});
