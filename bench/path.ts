/**
 * Lists the source files whose code runs during a tool call over stdio, from the incoming to the outgoing message. Uses
 * V8's code coverage, which is reset just before the call. Code in workers is not included. Run it with `npm run
 * bench:path [-- TOOL]`, which also prints how many functions of each file ran.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { openApp } from '../src/app.ts';
import { readConfig } from '../src/config/read-config.ts';
import { createLogger } from '../src/logging/log.ts';
import { serveStdio } from '../src/transports/stdio.ts';
import { startChild } from './child.ts';

const searchArguments = { filters: { query: 'shoes' }, limit: 10 };
const calls = [
  { title: 'whoami', tool: 'whoami', args: {} },
  { title: 'search_ads', tool: 'search_ads', args: searchArguments },
  { title: 'search_ads, cached', tool: 'search_ads', args: searchArguments },
  { title: 'gather_ads', tool: 'gather_ads', args: { filters: { query: 'hats' }, maxCredits: 10 } },
  { title: 'query_ads', tool: 'query_ads', args: { sql: 'select count(*) from ads' } },
];

const sourcesUrl = new URL('../src/', import.meta.url).href;
const service = await startChild<{ port: number }>('upstream.ts', '10');
const log = createLogger('warn', (line) => process.stderr.write(`${line}\n`));
const config = readConfig({
  AD_LIBRARY_API_KEY: 'svc_live_path',
  AD_LIBRARY_BASE_URL: `http://127.0.0.1:${service.readyMessage.port}`,
});
const app = await openApp({ config, log, now: Date.now, monotonicNow: Date.now, random: Math.random });
const stdin = new PassThrough();
const stdout = new PassThrough();
const { catalog, credentials } = app;
const neverRequested = new Promise<void>(() => {});
const sessionEnded = serveStdio({
  ...{ catalog, credentials, log, stdin, stdout },
  ...{ monotonicNow: Date.now, onCall: () => {}, stopRequested: neverRequested, drainMs: 1000 },
});

let lastId = 0;
async function request(method: string, params: object): Promise<{ result?: { isError?: boolean } }> {
  const id = ++lastId;
  stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  for (;;) {
    const message = JSON.parse(String((await once(stdout, 'data'))[0]));
    if (message.id === id) return message;
  }
}

const profiler = new Session();
profiler.connect();
await profiler.post('Profiler.enable');
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

/** Returns the number of functions that ran in each file since this function was last called. */
async function countExecutedFunctions(): Promise<Map<string, number>> {
  const { result } = await profiler.post('Profiler.takePreciseCoverage');
  const functionCountsByFile = new Map<string, number>();
  for (const { url, functions } of result) {
    const file = url.replace(/\?.*/, '');
    if (!file.startsWith(sourcesUrl) || file.startsWith(`${sourcesUrl}library/`)) continue;
    // Exclude the function at offset 0. It is the module itself, which runs when the file is loaded and not because of
    // a call.
    const functionCount = functions.filter(
      ({ ranges: [body] }) => body && body.startOffset > 0 && body.count > 0,
    ).length;
    if (functionCount > 0) functionCountsByFile.set(file, functionCount);
  }
  return functionCountsByFile;
}

await request('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'path', version: '1' },
});
stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
// Make each kind of call once before the measurement, because the first call also loads modules.
for (const { tool, args } of calls)
  await request('tools/call', { name: tool, arguments: { ...args, fresh: undefined } });

const selectedTitle = process.argv[2];
for (const { title, tool, args } of calls) {
  if (selectedTitle !== undefined && selectedTitle !== title) continue;
  const isSearch = title === 'search_ads' || title === 'gather_ads';
  await countExecutedFunctions();
  const { result } = await request('tools/call', {
    name: tool,
    arguments: { ...args, ...(isSearch && { fresh: true }) },
  });
  const files = await countExecutedFunctions();
  if (!result || result.isError) throw new Error(`${title} failed: ${JSON.stringify(result)}`);
  const lines = [...files.keys()].reduce((sum, file) => sum + countLines(file), 0);
  const functions = [...files.values()].reduce((sum, count) => sum + count, 0);
  process.stdout.write(`${title}: ${files.size} files (${lines} lines, ${functions} functions)\n`);
  for (const [file, functionCount] of [...files].toSorted())
    process.stdout.write(`  ${file.slice(sourcesUrl.length)} ${functionCount}\n`);
}

function countLines(file: string): number {
  return readFileSync(fileURLToPath(file), 'utf8').split('\n').length - 1;
}

stdin.end();
await sessionEnded;
await app.close();
service.process.kill();
