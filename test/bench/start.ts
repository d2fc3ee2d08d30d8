/**
 * How long the built command takes from its start to an answered `tools/list` over stdio, against a bare `node -e 0`
 * in the same run, taken in turns so that both meet the same load. Medians; `npm run bench:start [-- ROUNDS]`.
 */
import { spawn } from 'node:child_process';
import { command } from '../support/process.ts';

const most = 3;
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

/** Milliseconds until the process has said `last`, or has ended where there is nothing to say. */
function timed(args: string[], { input = '', last }: { input?: string; last?: string } = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let said = '';
    let took: number | undefined;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (took !== undefined || last === undefined || !said.includes(last)) return;
      took = performance.now() - began;
      child.stdin.end();
    });
    child.once('exit', () => {
      took ??= last === undefined ? performance.now() - began : undefined;
      if (took === undefined) reject(new Error('ended without an answer'));
      else resolve(took);
    });
    child.stdin.write(input);
  });
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] ?? 0;

const bare: number[] = [];
const served: number[] = [];
for (let round = 0; round < rounds; round++) {
  bare.push(await timed(['-e', '0']));
  served.push(await timed(command().args, { input, last: '"id":2' }));
}
const [floor, start] = [median(bare), median(served)];
const ratio = start / floor;
process.stdout.write(
  `node ${process.version}, median of ${rounds}: node -e 0 ${floor.toFixed(0)} ms, tools/list answered ${start.toFixed(0)} ms, ratio ${ratio.toFixed(2)} (at most ${most})\n`,
);
process.exitCode = ratio > most ? 1 : 0;
