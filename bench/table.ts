/**
 * Runs every benchmark of the table in BENCHMARKS.md. `npm run bench` prints the table at the end. With `-- --write`,
 * it also replaces the table in BENCHMARKS.md.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem, type } from 'node:os';
import { fileURLToPath } from 'node:url';

const benchmarks = [
  'calls',
  'http',
  'http --tool whoami',
  'start',
  'tokens',
  'library',
  'dataset 10000',
  'pictures',
  'board',
  'replicas --ads 10000',
  'neighbour',
];
const table = ['| what | measured | baseline | ratio | limit | command |', '|---|---|---|---|---|---|'];
for (const name of benchmarks) {
  const [file, ...benchmarkOptions] = name.split(' ');
  const path = fileURLToPath(new URL(`${file}.ts`, import.meta.url));
  const args = ['--import', 'tsx', path, ...benchmarkOptions];
  const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  process.stdout.write(`bench:${name}\n${stdout}\n`);
  const command = `\`npm run bench:${name.replace(' ', ' -- ')}\``;
  const rows = stdout.match(/^\| .* \|$/gm) ?? ['| not measured: it failed | | | | MISSED |'];
  table.push(...rows.map((row) => `${row} ${command} |`));
}
const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
const versions = ['@modelcontextprotocol/sdk', '@modelcontextprotocol/server', 'zod', 'undici'].map(
  (name) => `${name} ${packages[`node_modules/${name}`].version}`,
);
const day = new Date().toISOString().slice(0, 10);
const machine = `${type()}, ${cpus().length} × ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB of memory`;
const software = `Node.js ${process.version.slice(1)}, ${versions.join(', ')}`;
const tableText = `${table.join('\n')}\n\nWe measured these benchmark results on ${day} on ${machine}, with ${software}.\n`;
process.stdout.write(tableText);
if (process.argv.includes('--write')) {
  const pageUrl = new URL('../BENCHMARKS.md', import.meta.url);
  const previousPage = readFileSync(pageUrl, 'utf8');
  const tableStart = previousPage.indexOf('\n| what');
  const tableEnd = previousPage.indexOf('\n## ', tableStart);
  // Keep the sections after the table, because they contain results of longer runs that this command does not repeat.
  const laterSections = tableEnd === -1 ? '' : previousPage.slice(tableEnd);
  writeFileSync(pageUrl, `${previousPage.slice(0, tableStart)}\n${tableText}${laterSections}`);
}
process.exitCode = tableText.includes('MISSED') ? 1 : 0;
