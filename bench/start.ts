/**
 * How long the built command takes from its start to an answered `tools/list` over stdio, as a host starts it, beside
 * the least server that the official SDK makes: in one file, with the same list. In turns, so that both meet the same
 * load; medians. `npm run bench:start [-- ROUNDS]`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../test/support/process.ts';
import { bundled, startChild } from './child.ts';
import { addRow, median } from './row.ts';
import type { ServedDemo } from './served-demo.ts';

const rounds = Number(process.argv[2] ?? 40);

const clientInfo = { name: 'bench', version: '1' };
const opening = [
  { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/list' },
];
const input = opening.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');

/** A host hands down a small environment; what a shell sets for node makes every start slower by the same amount. */
const { PATH = '', HOME = '' } = process.env;

/** Starts a server, and gives the list and the milliseconds until it was there. */
function started(args: readonly string[], env: Record<string, string>): Promise<{ ms: number; list: object }> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, args, { env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (!output.endsWith('\n') || !output.includes('"id":2')) return;
      const ms = performance.now() - began;
      resolve({ ms, list: JSON.parse(output.trim().split('\n').at(-1) ?? '').result });
      child.stdin.end();
    });
    child.once('exit', () => reject(new Error('It ended without an answer.')));
    child.stdin.on('error', () => {});
    child.stdin.write(input);
  });
}

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
process.once('exit', () => rmSync(folder, { recursive: true }));
const listFile = join(folder, 'list.json');
const sdk = [await bundled('sdk-alone.ts'), listFile];
const library = await startChild<ServedDemo>('served-demo.ts', '0');
const key = { AD_LIBRARY_API_KEY: 'svc_live_bench' };
const remote = { ...key, AD_LIBRARY_BASE_URL: 'https://api.example.com' };

/** Nothing is called. A loopback address is asked for the filters that a library there describes. */
const ways = [
  { where: '', env: remote, limit: 'at most 10 ms more', holds: (ms: number, alone: number) => ms - alone <= 10 },
  ...[
    { where: ', of a library on this machine', env: { ...key, AD_LIBRARY_BASE_URL: library.ready.baseUrl } },
    { where: ', with demo data', env: { AD_LIBRARY_DEMO: 'true' } },
  ].map((way) => ({ ...way, limit: 'at most 1.50', holds: (ms: number, alone: number) => ms <= 1.5 * alone })),
];
process.stdout.write(`node ${process.version}, medians of ${rounds}\n`);
for (const { where, env, limit, holds } of ways) {
  writeFileSync(listFile, JSON.stringify((await started(command().args, env)).list));
  const [alone, served]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    alone.push((await started(sdk, {})).ms);
    served.push((await started(command().args, env)).ms);
  }
  const [ms, beside] = [median(served), median(alone)];
  addRow({
    what: `start to a list of tools${where}`,
    ours: `${ms.toFixed(0)} ms`,
    beside: `${beside.toFixed(0)} ms for the SDK alone`,
    ratio: ms / beside,
    ...{ limit, holds: holds(ms, beside) },
  });
}
library.process.kill();
