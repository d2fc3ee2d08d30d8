import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, expect, test } from 'vitest';
import { lastBuild } from '../../scripts/bundle.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'ad-library-mcp-'));
afterAll(() => rmSync(folder, { recursive: true }));

const program = `
  import { adRows } from './src/dataset/ad-rows.ts';
  import { SqlPool } from './src/dataset/sql/pool.ts';
  const { ad } = adRows({ id: 'a', body: 'Boots' }, { gatheredAt: 0 });
  const snapshot = { tenantId: 't', version: '1', tables: () => [{ table: 'ads', rows: [ad] }] };
  const pool = new SqlPool();
  const { rows } = await pool.query(snapshot, { sql: 'select id, body, median(cardCount) from ads' });
  const refused = await pool.query(snapshot, { sql: 'pragma table_list' }).catch((error) => error.message);
  process.stdout.write(JSON.stringify({ rows, refused }));
`;

test('bundled, the pool finds the built worker beside it, and a process that is done ends', async () => {
  const outfile = join(folder, 'program.mjs');
  const bundled = { bundle: true, format: 'esm', platform: 'node', outfile, absWorkingDir: root } as const;
  await build({ ...bundled, stdin: { contents: program, resolveDir: root } });
  for (const file of lastBuild().filter((path) => /(?:sql-worker\.js|sqlite3\.wasm)$/.test(path)))
    copyFileSync(join(root, file), join(folder, basename(file)));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile], { cwd: folder });
  expect(stderr).toBe('');
  const { rows, refused } = JSON.parse(stdout);
  expect(rows).toEqual([['a', 'Boots', 0]]);
  expect(refused).toContain('Only a SELECT');
});
