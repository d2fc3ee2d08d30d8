/**
 * Measures how long the built server takes to start and respond to `tools/list` over stdio. For comparison, it also
 * measures a minimal server with the same tool list that uses the official SDK. The two servers alternate, so that both
 * are measured under the same load. The benchmark also measures the processor time of the first tool call with demo
 * data. It prints medians. Run it with `npm run bench:start [-- ROUNDS]`.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildCommandLine } from '../test/support/process.ts';
import { bundleFile, startChild } from './child.ts';
import { measureFirstCall } from './first-call.ts';
import { computeMedian, printRow } from './row.ts';
import type { ServedDemo } from './served-demo.ts';

const roundCount = Number(process.argv[2] ?? 40);

const clientInfo = { name: 'bench', version: '1' };
const requestMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const initializeParams = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
/** The messages that a host sends to open a session and list the tools, for each protocol revision. */
const openingMessages = {
  '2025-11-25': [
    { id: 1, method: 'initialize', params: initializeParams },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list' },
  ],
  '2026-07-28': [
    { id: 1, method: 'server/discover', params: { _meta: requestMeta } },
    { id: 2, method: 'tools/list', params: { _meta: requestMeta } },
  ],
};
type Revision = keyof typeof openingMessages;

const buildInput = (revision: Revision): string =>
  openingMessages[revision].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join('');

/**
 * The only environment variables that the measured server inherits. Hosts do not pass on Node variables of the shell,
 * such as `NODE_OPTIONS`, which would slow down every start.
 */
const { PATH = '', HOME = '' } = process.env;

/** Starts a server. Returns the tool list, and the time in milliseconds until the list arrived. */
function measureStart(
  args: readonly string[],
  env: Record<string, string>,
  revision: Revision,
): Promise<{ startMs: number; toolList: object }> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, args, { env: { PATH, HOME, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (!output.endsWith('\n') || !output.includes('"id":2')) return;
      const ms = performance.now() - startedAt;
      resolve({ startMs: ms, toolList: JSON.parse(output.trim().split('\n').at(-1) ?? '').result });
      child.stdin.end();
    });
    child.once('exit', () => reject(new Error('The process ended before it answered.')));
    child.stdin.on('error', () => {});
    child.stdin.write(buildInput(revision));
  });
}

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
process.once('exit', () => rmSync(folder, { recursive: true }));
const listFile = join(folder, 'list.json');
const sdkCommand = [await bundleFile('sdk-alone.ts'), listFile];
const library = await startChild<ServedDemo>('served-demo.ts', '0');
const keyEnvironment = { AD_LIBRARY_API_KEY: 'svc_live_bench' };
const remoteEnvironment = { ...keyEnvironment, AD_LIBRARY_BASE_URL: 'https://api.example.com' };

interface StartCase {
  titleSuffix: string;
  env: Record<string, string>;
  revision: Revision;
  limitText: string;
  isWithinLimit(ms: number, sdkMs: number): boolean;
}

/**
 * The kinds of starts to measure, each with its environment variables and its time limit. If the base URL is a loopback
 * address, the start includes a request for the filters of the local library (an API server on this machine).
 * No start includes a tool call.
 */
const startCases: StartCase[] = [
  {
    titleSuffix: '',
    env: remoteEnvironment,
    revision: '2025-11-25',
    limitText: 'at most 10 ms more',
    isWithinLimit: (ms, sdkMs) => ms - sdkMs <= 10,
  },
  ...[
    // In revision 2026-07-28, the server loads two SDKs: the SDK for this revision, and the SDK for earlier revisions.
    { titleSuffix: ', in revision 2026-07-28', env: remoteEnvironment, revision: '2026-07-28' as const },
    {
      titleSuffix: ', of a library on this machine',
      env: { ...keyEnvironment, AD_LIBRARY_BASE_URL: library.readyMessage.baseUrl },
    },
    { titleSuffix: ', with demo data', env: { AD_LIBRARY_DEMO: 'true' } },
  ].map((startCase) => ({
    revision: '2025-11-25' as const,
    ...startCase,
    limitText: 'at most 1.50',
    isWithinLimit: (ms: number, sdkMs: number) => ms <= 1.5 * sdkMs,
  })),
];
process.stdout.write(`node ${process.version}, medians of ${roundCount}\n`);
for (const { titleSuffix, env, revision, limitText, isWithinLimit } of startCases) {
  writeFileSync(listFile, JSON.stringify((await measureStart(buildCommandLine().args, env, revision)).toolList));
  const [sdkTimes, ourTimes]: [number[], number[]] = [[], []];
  for (let round = 0; round < roundCount; round++) {
    sdkTimes.push((await measureStart([...sdkCommand, revision], {}, revision)).startMs);
    ourTimes.push((await measureStart(buildCommandLine().args, env, revision)).startMs);
  }
  const [ourMs, sdkMs] = [computeMedian(ourTimes), computeMedian(sdkTimes)];
  printRow({
    measurement: `start to a list of tools${titleSuffix}`,
    measuredText: `${ourMs.toFixed(0)} ms`,
    baselineText: `${sdkMs.toFixed(0)} ms for the SDK alone`,
    ratio: ourMs / sdkMs,
    ...{ limitText, isWithinLimit: isWithinLimit(ourMs, sdkMs) },
  });
}
library.process.kill();

const maxAddedMs = 300;
const { firstCallMs, laterCallMs } = await measureFirstCall(Math.ceil(roundCount / 2), { PATH, HOME });
printRow({
  measurement: 'first call, demo: processor time from the list to the answer',
  measuredText: `${firstCallMs.toFixed(0)} ms`,
  baselineText: `${laterCallMs.toFixed(0)} ms for a later call`,
  ratio: firstCallMs / laterCallMs,
  ...{ limitText: `at most ${maxAddedMs} ms more`, isWithinLimit: firstCallMs - laterCallMs <= maxAddedMs },
});
