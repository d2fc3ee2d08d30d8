/**
 * How long the built command takes from its start to an answered `tools/list` over stdio, against a bare `node -e 0`
 * in the same run, taken in turns so that both meet the same load. Medians; `npm run bench:start [-- ROUNDS]`.
 *
 * Once in this shell's environment, and once in the small one that hosts hand down: what a shell sets for node
 * (NODE_EXTRA_CA_CERTS above all) makes both slower by the same amount, and so the ratio smaller.
 */
import { spawn } from 'node:child_process';
import { command } from '../test/support/process.ts';
import { addRow } from './row.ts';

const maxRatio = { shell: 3, host: 2.2 };
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

/** As in a host that is set up: nothing is called. */
const settings = { AD_LIBRARY_API_KEY: 'svc_live_bench', AD_LIBRARY_BASE_URL: 'https://api.example.com' };

interface Start {
  args: string[];
  env: NodeJS.ProcessEnv;
  /** What standard output holds once it is done; the end of the process where it says nothing. */
  until?: string;
}

function timed({ args, env, until }: Start): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (until === undefined || !output.includes(until)) return;
      resolve(performance.now() - began);
      child.stdin.end();
    });
    child.once('exit', () => {
      if (until === undefined) resolve(performance.now() - began);
      else reject(new Error('It ended without an answer.'));
    });
    child.stdin.on('error', () => {});
    child.stdin.write(input);
  });
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

async function compare(where: string, env: NodeJS.ProcessEnv, limit: number): Promise<boolean> {
  const bare: number[] = [];
  const served: number[] = [];
  for (let round = 0; round < rounds; round++) {
    bare.push(await timed({ args: ['-e', '0'], env }));
    served.push(await timed({ args: command().args, env: { ...env, ...settings }, until: '"id":2' }));
  }
  const ratio = median(served) / median(bare);
  const holds = ratio <= limit;
  const times = `node -e 0 ${median(bare).toFixed(0)} ms, tools/list answered ${median(served).toFixed(0)} ms`;
  const verdict = `at most ${limit.toFixed(2)}: ${holds ? 'holds' : 'MISSED'}`;
  process.stdout.write(`${where}: ${times}, ratio ${ratio.toFixed(2)}, ${verdict}\n`);
  addRow({
    what: `start to a list of tools, ${where}`,
    ours: `${median(served).toFixed(0)} ms`,
    beside: `${median(bare).toFixed(0)} ms for node -e 0`,
    ratio,
    limit: `at most ${limit.toFixed(2)}`,
    holds,
  });
  return holds;
}

const { PATH, HOME } = process.env;
process.stdout.write(`node ${process.version}, medians of ${rounds}\n`);
const inShell = await compare('as in this shell', process.env, maxRatio.shell);
const inHost = await compare('as a host starts it', { PATH, HOME }, maxRatio.host);
process.exitCode = inShell && inHost ? 0 : 1;
