/**
 * Measures how long the built command takes to start and respond to `tools/list` over stdio, as a host starts it. For
 * comparison, measures a minimal server with the same tool list that uses the official SDK of the same protocol
 * revision. Both alternate, so that they are measured under the same load. Also measures the processor time of the
 * first call of a demo. Prints medians. Run it with `npm run bench:start [-- ROUNDS]`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandLine } from '../test/support/process.ts';
import { bundleFile, startChild } from './child.ts';
import { measureFirstCall } from './first-call.ts';
import { addRow, computeMedian } from './row.ts';
import type { ServedDemo } from './served-demo.ts';

const rounds = Number(process.argv[2] ?? 40);

const clientInfo = { name: 'bench', version: '1' };
const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const handshake = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
/** The messages that a host sends to open a session and list the tools. */
const openings = {
  '2025-11-25': [
    { id: 1, method: 'initialize', params: handshake },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list' },
  ],
  '2026-07-28': [
    { id: 1, method: 'server/discover', params: { _meta: envelope } },
    { id: 2, method: 'tools/list', params: { _meta: envelope } },
  ],
};
type Revision = keyof typeof openings;

const inputOf = (revision: Revision): string =>
  openings[revision].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');

/** Pass only a minimal environment, as a host does. Node variables of the shell would slow down every start. */
const { PATH = '', HOME = '' } = process.env;

/** Starts a server. Returns the tool list, and the time in milliseconds until it arrived. */
function start(
  args: readonly string[],
  env: Record<string, string>,
  revision: Revision,
): Promise<{ ms: number; list: object }> {
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
    child.once('exit', () => reject(new Error('The process ended before it answered.')));
    child.stdin.on('error', () => {});
    child.stdin.write(inputOf(revision));
  });
}

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
process.once('exit', () => rmSync(folder, { recursive: true }));
const listFile = join(folder, 'list.json');
const sdk = [await bundleFile('sdk-alone.ts'), listFile];
const library = await startChild<ServedDemo>('served-demo.ts', '0');
const key = { AD_LIBRARY_API_KEY: 'svc_live_bench' };
const remote = { ...key, AD_LIBRARY_BASE_URL: 'https://api.example.com' };

interface StartCase {
  where: string;
  env: Record<string, string>;
  revision: Revision;
  limit: string;
  holds(ms: number, alone: number): boolean;
}

/**
 * The cases to measure, none of which calls a tool. With a loopback base URL, the start includes a request for the
 * filters of the local library.
 */
const cases: StartCase[] = [
  {
    where: '',
    env: remote,
    revision: '2025-11-25',
    limit: 'at most 10 ms more',
    holds: (ms, alone) => ms - alone <= 10,
  },
  ...[
    // In this revision, the server also loads the SDK for earlier revisions.
    { where: ', in revision 2026-07-28', env: remote, revision: '2026-07-28' as const },
    { where: ', of a library on this machine', env: { ...key, AD_LIBRARY_BASE_URL: library.ready.baseUrl } },
    { where: ', with demo data', env: { AD_LIBRARY_DEMO: 'true' } },
  ].map((one) => ({
    revision: '2025-11-25' as const,
    ...one,
    limit: 'at most 1.50',
    holds: (ms: number, alone: number) => ms <= 1.5 * alone,
  })),
];
process.stdout.write(`node ${process.version}, medians of ${rounds}\n`);
for (const { where, env, revision, limit, holds } of cases) {
  writeFileSync(listFile, JSON.stringify((await start(commandLine().args, env, revision)).list));
  const [alone, served]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    alone.push((await start([...sdk, revision], {}, revision)).ms);
    served.push((await start(commandLine().args, env, revision)).ms);
  }
  const [ms, beside] = [computeMedian(served), computeMedian(alone)];
  addRow({
    what: `start to a list of tools${where}`,
    ours: `${ms.toFixed(0)} ms`,
    beside: `${beside.toFixed(0)} ms for the SDK alone`,
    ratio: ms / beside,
    ...{ limit, holds: holds(ms, beside) },
  });
}
library.process.kill();

const maxMore = 300;
const { first, later } = await measureFirstCall(Math.ceil(rounds / 4), { PATH, HOME });
addRow({
  what: 'first call, demo: processor time from the list to the answer',
  ours: `${first.toFixed(0)} ms`,
  beside: `${later.toFixed(0)} ms for a later call`,
  ratio: first / later,
  ...{ limit: `at most ${maxMore} ms more`, holds: first - later <= maxMore },
});
