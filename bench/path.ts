/**
 * Lists the source files that a tool call runs through over stdio, from the incoming to the outgoing message. Uses V8's
 * code coverage, which is reset just before the call. Code in workers is not included. Run it with `npm run bench:path
 * [-- TOOL]`, which also prints how many functions of each file ran.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { openApp } from '../src/app.ts';
import { readConfig } from '../src/config/read-config.ts';
import { createLog } from '../src/logging/log.ts';
import { serveStdio } from '../src/transports/stdio.ts';
import { startChild } from './child.ts';

const search = { filters: { query: 'shoes' }, limit: 10 };
const calls = [
  { what: 'whoami', tool: 'whoami', args: {} },
  { what: 'search_ads', tool: 'search_ads', args: search },
  { what: 'search_ads, cached', tool: 'search_ads', args: search },
  { what: 'gather_ads', tool: 'gather_ads', args: { filters: { query: 'hats' }, maxCredits: 10 } },
  { what: 'query_ads', tool: 'query_ads', args: { sql: 'select count(*) from ads' } },
];

const sources = new URL('../src/', import.meta.url).href;
const upstream = await startChild<{ port: number }>('upstream.ts', '10');
const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
const config = readConfig({
  AD_LIBRARY_API_KEY: 'svc_live_path',
  AD_LIBRARY_BASE_URL: `http://127.0.0.1:${upstream.ready.port}`,
});
const app = await openApp({ config, log, now: Date.now, monotonicNow: Date.now, random: Math.random });
const stdin = new PassThrough();
const stdout = new PassThrough();
const { catalog, credentials } = app;
const never = new Promise<void>(() => {});
const served = serveStdio({
  ...{ catalog, credentials, log, stdin, stdout },
  ...{ now: Date.now, onCall: () => {}, stopRequested: never, drainMs: 1000 },
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

/** Returns how many functions ran in each file since the previous call of this function. */
async function filesRun(): Promise<Map<string, number>> {
  const { result } = await profiler.post('Profiler.takePreciseCoverage');
  const files = new Map<string, number>();
  for (const { url, functions } of result) {
    const file = url.replace(/\?.*/, '');
    if (!file.startsWith(sources) || file.startsWith(`${sources}library/`)) continue;
    // Exclude the function at offset 0, which is the module itself. It runs when the file is loaded.
    const run = functions.filter(({ ranges: [body] }) => body && body.startOffset > 0 && body.count > 0).length;
    if (run > 0) files.set(file, run);
  }
  return files;
}

await request('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'path', version: '1' },
});
stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
// The first call of each kind loads modules, so make it before the measurement.
for (const { tool, args } of calls)
  await request('tools/call', { name: tool, arguments: { ...args, fresh: undefined } });

const only = process.argv[2];
for (const { what, tool, args } of calls) {
  if (only !== undefined && only !== what) continue;
  const isSearch = what === 'search_ads' || what === 'gather_ads';
  await filesRun();
  const { result } = await request('tools/call', {
    name: tool,
    arguments: { ...args, ...(isSearch && { fresh: true }) },
  });
  const files = await filesRun();
  if (!result || result.isError) throw new Error(`${what} failed: ${JSON.stringify(result)}`);
  const lines = [...files.keys()].reduce((sum, file) => sum + linesOf(file), 0);
  const functions = [...files.values()].reduce((sum, count) => sum + count, 0);
  process.stdout.write(`${what}: ${files.size} files (${lines} lines, ${functions} functions)\n`);
  for (const [file, run] of [...files].toSorted()) process.stdout.write(`  ${file.slice(sources.length)} ${run}\n`);
}

function linesOf(file: string): number {
  return readFileSync(fileURLToPath(file), 'utf8').split('\n').length - 1;
}

stdin.end();
await served;
await app.close();
upstream.process.kill();
