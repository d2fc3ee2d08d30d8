/**
 * How long the built command takes from its start to an answered `tools/list` over stdio, as a host starts it, beside
 * the least server that the official SDK makes: in one file, with an empty list. In turns, so that both meet the same
 * load; medians. `npm run bench:start [-- ROUNDS]`.
 */
import { spawn } from 'node:child_process';
import { command } from '../test/support/process.ts';
import { bundled, startChild } from './child.ts';
import { addRow } from './row.ts';

const rounds = Number(process.argv[2] ?? 21);

const opening = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/list' },
];
const input = opening.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');

/** A host hands down a small environment; what a shell sets for node makes every start slower by the same amount. */
const { PATH = '', HOME = '' } = process.env;

/** Milliseconds until the list is answered. */
function timed(args: readonly string[], env: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, args, { env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (!output.includes('"id":2')) return;
      resolve(performance.now() - began);
      child.stdin.end();
    });
    child.once('exit', () => reject(new Error('It ended without an answer.')));
    child.stdin.on('error', () => {});
    child.stdin.write(input);
  });
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

const sdk = await bundled('sdk-alone.ts');
const library = await startChild<{ baseUrl: string }>('soak-library.ts', '0');
const key = { AD_LIBRARY_API_KEY: 'svc_live_bench' };

/** Nothing is called. A loopback address is asked for the filters that a library there describes. */
const ways = [
  { where: '', env: { ...key, AD_LIBRARY_BASE_URL: 'https://api.example.com' }, maxRatio: 1.1 },
  {
    where: ', of a library on this machine',
    env: { ...key, AD_LIBRARY_BASE_URL: library.ready.baseUrl },
    maxRatio: 1.5,
  },
  { where: ', with demo data', env: { AD_LIBRARY_DEMO: 'true' }, maxRatio: 1.5 },
];
process.stdout.write(`node ${process.version}, medians of ${rounds}\n`);
for (const { where, env, maxRatio } of ways) {
  const alone: number[] = [];
  const served: number[] = [];
  for (let round = 0; round < rounds; round++) {
    alone.push(await timed([sdk], {}));
    served.push(await timed(command().args, env));
  }
  const ratio = median(served) / median(alone);
  const holds = ratio <= maxRatio;
  const limit = `at most ${maxRatio.toFixed(2)}`;
  const [ours, beside] = [`${median(served).toFixed(0)} ms`, `${median(alone).toFixed(0)} ms for the SDK alone`];
  process.stdout.write(
    `start to a list of tools${where}: ${ours}, ${beside}, ratio ${ratio.toFixed(2)}, ${limit}: ${holds ? 'holds' : 'MISSED'}\n`,
  );
  addRow({ what: `start to a list of tools${where}`, ours, beside, ratio, limit, holds });
  if (!holds) process.exitCode = 1;
}
library.process.kill();
