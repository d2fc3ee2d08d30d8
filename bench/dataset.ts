/**
 * Measures the time and memory that the dataset (the stored ads, which SQL can query) needs for 1,000, 10,000 and
 * 100,000 ads: to build rows, open a worker, run ten SQL statements, and export. Run the benchmark with `npm run
 * bench:dataset`. If AD_LIBRARY_TEST_DATA is set, it also measures real ads. The code is bundled like the published
 * code, and uses the built worker.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { listLatestBuild } from '../scripts/bundle.ts';

const root = new URL('../', import.meta.url);
const folder = new URL('node_modules/.cache/bench-dataset/', root);
mkdirSync(folder, { recursive: true });
await build({
  absWorkingDir: fileURLToPath(root),
  entryPoints: ['bench/dataset-run.ts'],
  outdir: fileURLToPath(folder),
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  outExtension: { '.js': '.mjs' },
});
for (const file of listLatestBuild().filter((path) => /(?:sql-worker\.js|sqlite3\.wasm)$/.test(path)))
  copyFileSync(new URL(file, root), new URL(basename(file), folder));

const realDataFolder = process.env.AD_LIBRARY_TEST_DATA;
const adCounts = process.argv[2] ? [process.argv[2]] : ['1000', '10000', '100000'];
const program = fileURLToPath(new URL('dataset-run.mjs', folder));
for (const dataOptions of realDataFolder ? [[], ['--data', realDataFolder]] : [[]])
  for (const adCount of adCounts) {
    const options = ['--expose-gc', '--max-old-space-size=8192', program, '--ads', adCount, ...dataOptions];
    const { status } = spawnSync(process.execPath, options, { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
rmSync(folder, { recursive: true });
