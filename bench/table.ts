/**
 * Runs every benchmark and puts what they measured into one table, each number beside what it is held against.
 * `npm run bench` prints it; `npm run bench -- --write` keeps it as BENCHMARKS.md too.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem, type } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Row, rowMark, skipMark } from './row.ts';

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
];
const skipped: string[] = [];

interface Measured extends Row {
  command: string;
}

async function rowsOf(name: string): Promise<Measured[]> {
  process.stderr.write(`bench:${name} …\n`);
  const [file = '', ...given] = name.split(' ');
  const path = fileURLToPath(new URL(`${file}.ts`, import.meta.url));
  const env = { ...process.env, BENCH_TABLE: '1' };
  const child = spawn(process.execPath, ['--import', 'tsx', path, ...given], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const rows: Measured[] = [];
  let output = '';
  let reason: string | undefined;
  for await (const line of createInterface(child.stdout)) {
    if (line.startsWith(rowMark))
      rows.push({ ...JSON.parse(line.slice(rowMark.length)), command: `npm run bench:${name.replace(' ', ' -- ')}` });
    else if (line.startsWith(skipMark)) reason = line.slice(skipMark.length);
    else output += `${line}\n`;
  }
  if (reason !== undefined) {
    process.stderr.write(`bench:${file} skipped: ${reason}\n`);
    skipped.push(`${file} (${reason})`);
  } else if (rows.length === 0) throw new Error(`bench:${name} measured nothing:\n${output}`);
  const [code] = await closed;
  if (code !== 0) process.stderr.write(`bench:${name} missed a limit:\n${output}`);
  return rows;
}

function tableOf(rows: readonly Measured[]): string {
  const head = ['what', 'measured', 'beside', 'ratio', 'limit', 'command'];
  const cells = rows.map(({ what, ours, beside, ratio, limit = '', holds, command }) => [
    what,
    ours,
    beside,
    ratio.toFixed(2),
    limit && `${limit}: ${holds ? 'holds' : 'MISSED'}`,
    `\`${command}\``,
  ]);
  const widths = head.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line)].join('\n');
}

function circumstances(): string {
  const manifest = new URL('../package-lock.json', import.meta.url);
  const { packages } = JSON.parse(readFileSync(manifest, 'utf8'));
  const versions = ['@modelcontextprotocol/sdk', '@modelcontextprotocol/server', 'zod', 'undici']
    .map((name) => `${name} ${packages[`node_modules/${name}`].version}`)
    .join(', ');
  const [processor, ...others] = cpus();
  const machine = `${type()}, ${others.length + 1} × ${processor?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GB`;
  return `${new Date().toISOString().slice(0, 10)}; ${machine}; Node ${process.version}; ${versions}.`;
}

const rows: Measured[] = [];
for (const name of benchmarks) rows.push(...(await rowsOf(name)));
const missing = skipped.length > 0 ? `\nNot measured: ${skipped.join('; ')}.\n` : '';
const table = `${tableOf(rows)}\n\n${circumstances()}\n${missing}`;
process.stdout.write(table);
if (process.argv.includes('--write')) {
  const text = readFileSync(new URL('../BENCHMARKS.md', import.meta.url), 'utf8');
  const [before = ''] = text.split('\n| what');
  writeFileSync(new URL('../BENCHMARKS.md', import.meta.url), `${before}\n${table}`);
}
process.exitCode = rows.some(({ holds }) => holds === false) ? 1 : 0;
