import type { ChildProcess } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { Client } from 'undici';
import { type HttpCommand, startHttpCommand } from '../test/support/process.ts';
import { bundleSdkServer, startChild } from './child.ts';
import { readResidentMegabytes } from './memory.ts';
import { addRow, computeQuantile } from './row.ts';

/**
 * Measures many concurrent clients of our server, of a server built as the documentation of the official SDK describes,
 * and of a plain proxy. All three do the same work and alternate within one run. Run it with `npm run bench:http --
 * --seconds 20 --callers 64 --tool search_ads --items 10`.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    callers: { type: 'string', default: '64' },
    tool: { type: 'string', default: 'search_ads' },
    items: { type: 'string', default: '10' },
    turns: { type: 'string', default: '4' },
  },
});
const seconds = Number(values.seconds);
const callers = Number(values.callers);
const turns = Number(values.turns);

interface Target {
  name: string;
  origin: string;
  pid: number;
  headers: Record<string, string>;
  body(id: number): string;
  answered: number;
  wrong: number;
  failed: number;
  /** Time of each response, in milliseconds. */
  times: number[];
  memory: number[];
  /** Processor time of the target's process, in milliseconds. */
  cpu: number;
}

/** Minimum ratio of our throughput to the throughput of the SDK server, for each protocol revision. */
const minRatio = 0.95;
const revisions = ['2025-11-25', '2026-07-28'];
const print = (line: string) => process.stdout.write(`${line}\n`);

const upstream = await startListening('upstream.ts', values.items);
const proxy = await startListening('proxy.ts', upstream.origin);
const server = await startHttpCommand(['--base-url', upstream.origin, '--cache-seconds', '0']);
const sdkServer = await bundleSdkServer();
const sdks = await Promise.all(revisions.map((revision) => startListening(sdkServer, revision, upstream.origin)));
const proxyTarget = createTarget('proxy', '', proxy);
const sdkTargets = revisions.map((revision, at) => createTarget('SDK', revision, sdks[at]));
const served = { origin: server.origin, process: server.process.child };
const serverTargets = revisions.map((revision) => createTarget('MCP', revision, served));
const targets = [proxyTarget, ...sdkTargets, ...serverTargets];
for (const each of targets) await load(each, 3);
for (const each of targets) reset(each);
for (let turn = 0; turn < turns; turn++) {
  for (const each of targets) await load(each, seconds / turns);
}
report(targets);
addRows();
await finish(server);

function createTarget(
  what: string,
  revision: string,
  at: { origin: string; process: ChildProcess } | undefined,
): Target {
  const modern = revision === '2026-07-28';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': revision,
    ...(modern && { 'mcp-method': 'tools/call', 'mcp-name': values.tool }),
  };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const args = values.tool === 'search_ads' ? { limit: Number(values.items) } : {};
  const params = { name: values.tool, arguments: args, ...(modern && { _meta: meta }) };
  const body = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  return {
    name: `${what} ${revision}`.trim(),
    origin: at?.origin ?? '',
    pid: at?.process.pid ?? 0,
    headers,
    body,
    answered: 0,
    wrong: 0,
    failed: 0,
    times: [],
    memory: [],
    cpu: 0,
  };
}

function reset(each: Target) {
  Object.assign(each, { answered: 0, wrong: 0, failed: 0, times: [], memory: [], cpu: 0 });
}

/**
 * Sends calls to a target from many callers. Each caller has its own API key and connection, and sends its next call as
 * soon as the previous response has arrived.
 */
async function load(each: Target, duration: number): Promise<void> {
  const until = performance.now() + duration * 1000;
  const call = async (caller: number) => {
    const authorization = `Bearer svc_live_caller-${caller}-of-${callers}`;
    // `upstream.ts` derives the same name from this API key.
    const name = hash('sha256', authorization).slice(0, 12);
    const client = new Client(each.origin);
    const headers = { ...each.headers, authorization };
    for (let id = 1; performance.now() < until; id++) {
      const sent = performance.now();
      try {
        const answer = await client.request({ path: '/mcp', method: 'POST', headers, body: each.body(id) });
        const text = await answer.body.text();
        if (answer.statusCode !== 200 || text.includes('"isError"')) each.failed++;
        else if (!text.includes(name)) each.wrong++;
        else each.answered++;
      } catch {
        each.failed++;
      }
      each.times.push(performance.now() - sent);
    }
    await client.close();
  };
  const before = processorTime(each.pid);
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)));
  each.cpu += processorTime(each.pid) - before;
  each.memory.push(readResidentMegabytes(each.pid));
}

/**
 * Returns the processor time of a process since its start, in milliseconds. Unlike elapsed time, it does not include
 * the time of other programs.
 */
function processorTime(pid: number): number {
  try {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
    return (user + system) * 10;
  } catch {
    return Number.NaN;
  }
}

function report(all: Target[]): void {
  const rate = (each: Target) => each.answered / seconds;
  const proxyRate = all[0] ? rate(all[0]) : 0;
  print(
    `${callers} callers, ${seconds} s each in ${turns} turns, ${values.tool}${values.tool === 'search_ads' ? ` of ${values.items} ads` : ''}`,
  );
  for (const each of all) {
    const at = (part: number) => `${computeQuantile(each.times, part).toFixed(1)} ms`;
    print(
      [
        each.name.padEnd(16),
        `${rate(each).toFixed(0).padStart(6)}/s`,
        `${((rate(each) / proxyRate) * 100).toFixed(0).padStart(4)} %`,
        `${(each.cpu / each.answered).toFixed(2)} ms of processor`,
        `p50 ${at(0.5)}, p99 ${at(0.99)}`,
        `failed ${each.failed}, wrong ${each.wrong}`,
        `memory ${each.memory.join(' ')} MB`,
      ].join('  '),
    );
  }
}

function mean(all: number[]): number {
  return all.reduce((sum, each) => sum + each, 0) / all.length;
}

function addRows(): void {
  const of = values.tool === 'search_ads' ? ` of ${values.items} ads` : '';
  const rate = (each: Target | undefined) => ((each?.answered ?? 0) / seconds).toFixed(0);
  for (const [at, each] of serverTargets.entries()) {
    const ratio = each.answered / (sdkTargets[at]?.answered ?? 1);
    addRow({
      what: `${values.tool}${of} over HTTP, revision ${revisions[at]}, ${callers} callers`,
      ours: `${rate(each)} a second`,
      beside: `${rate(sdkTargets[at])} by the SDK alone, ${rate(proxyTarget)} by a bare proxy`,
      ratio,
      ...{ limit: `at least ${minRatio.toFixed(2)}`, holds: ratio >= minRatio },
    });
  }
}

async function startListening(file: string, ...given: string[]): Promise<{ origin: string; process: ChildProcess }> {
  const { ready, process } = await startChild<AddressInfo>(file, ...given);
  return { origin: `http://127.0.0.1:${ready.port}`, process };
}

async function finish(running: HttpCommand): Promise<void> {
  for (const { process: child } of [upstream, proxy, ...sdks]) child.kill();
  const { code, stderr } = await running.close();
  const clean = targets.every(({ failed, wrong }) => failed + wrong === 0) && code === 0;
  // One process serves both protocol revisions. Its heap size varies from turn to turn, so compare the means.
  const memory = Array.from({ length: turns }, (_, turn) => mean(serverTargets.map((each) => each.memory[turn] ?? 0)));
  const half = Math.ceil(turns / 2);
  const flat = mean(memory.slice(-half)) <= 1.2 * mean(memory.slice(0, half));
  if (!clean) print(`ERRORS ${stderr}`);
  print(`memory ${flat ? 'flat' : 'GROWS'}: ${memory.map((each) => each.toFixed(0)).join(', ')} MB by turn`);
  if (!clean || !flat) process.exitCode = 1;
}
