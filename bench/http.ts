import type { ChildProcess } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { Client } from 'undici';
import { type HttpCommand, startHttpCommand } from '../test/support/process.ts';
import { bundleSdkServer, startChild } from './child.ts';
import { readResidentMegabytes } from './memory.ts';
import { computeQuantile, printRow } from './row.ts';

/**
 * Measures the throughput of three servers with many concurrent clients: our server, a server built as the
 * documentation of the official SDK describes, and a plain proxy. All three do the same work and take turns within one
 * run. Run the benchmark with `npm run bench:http -- --seconds 20 --callers 64 --tool search_ads --items 10`.
 */
const { values: optionValues } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    callers: { type: 'string', default: '64' },
    tool: { type: 'string', default: 'search_ads' },
    items: { type: 'string', default: '10' },
    turns: { type: 'string', default: '4' },
  },
});
const seconds = Number(optionValues.seconds);
const callerCount = Number(optionValues.callers);
const turnCount = Number(optionValues.turns);

interface MeasuredServer {
  name: string;
  origin: string;
  pid: number;
  headers: Record<string, string>;
  body(id: number): string;
  correctCount: number;
  wrongCallerCount: number;
  failedCount: number;
  /** The time from each request to its response, in milliseconds. */
  responseTimesMs: number[];
  residentMegabytes: number[];
  /** The processor time of the measured server's process, in milliseconds. */
  processorMs: number;
}

/**
 * The lowest allowed ratio of our throughput to the throughput of the SDK server. It applies to each protocol revision.
 */
const minThroughputRatio = 0.95;
const protocolRevisions = ['2025-11-25', '2026-07-28'];
const printLine = (line: string) => process.stdout.write(`${line}\n`);

const service = await startListening('upstream.ts', optionValues.items);
const proxyProcess = await startListening('proxy.ts', service.origin);
const ourCommand = await startHttpCommand(['--base-url', service.origin, '--cache-seconds', '0']);
const sdkServerFile = await bundleSdkServer();
const sdkProcesses = await Promise.all(
  protocolRevisions.map((revision) => startListening(sdkServerFile, revision, service.origin)),
);
const proxyServer = createMeasuredServer('proxy', '', proxyProcess);
const sdkServers = protocolRevisions.map((revision, index) =>
  createMeasuredServer('SDK', revision, sdkProcesses[index]),
);
const ourProcess = { origin: ourCommand.origin, process: ourCommand.process.child };
const ourServers = protocolRevisions.map((revision) => createMeasuredServer('MCP', revision, ourProcess));
const measuredServers = [proxyServer, ...sdkServers, ...ourServers];
for (const measuredServer of measuredServers) await sendCalls(measuredServer, 3);
for (const measuredServer of measuredServers) Object.assign(measuredServer, createEmptyMeasurements());
for (let turn = 0; turn < turnCount; turn++) {
  for (const measuredServer of measuredServers) await sendCalls(measuredServer, seconds / turnCount);
}
printReport(measuredServers);
addThroughputRows();
await stopServers(ourCommand);

function createMeasuredServer(
  serverKind: string,
  revision: string,
  connection: { origin: string; process: ChildProcess } | undefined,
): MeasuredServer {
  const isRevision2026 = revision === '2026-07-28';
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': revision,
    ...(isRevision2026 && { 'mcp-method': 'tools/call', 'mcp-name': optionValues.tool }),
  };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const args = optionValues.tool === 'search_ads' ? { limit: Number(optionValues.items) } : {};
  const params = { name: optionValues.tool, arguments: args, ...(isRevision2026 && { _meta: meta }) };
  const body = (id: number) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  return {
    name: `${serverKind} ${revision}`.trim(),
    origin: connection?.origin ?? '',
    pid: connection?.process.pid ?? 0,
    headers,
    body,
    ...createEmptyMeasurements(),
  };
}

/** Creates the measurements of a server that has not received any calls yet: counts of 0 and empty lists. */
function createEmptyMeasurements() {
  return {
    correctCount: 0,
    wrongCallerCount: 0,
    failedCount: 0,
    responseTimesMs: [] as number[],
    residentMegabytes: [] as number[],
    processorMs: 0,
  };
}

/**
 * Sends calls to one server from many simulated callers. Each caller has a separate API key and connection, and sends
 * the next call as soon as the previous response has arrived.
 */
async function sendCalls(measuredServer: MeasuredServer, durationSeconds: number): Promise<void> {
  const endTime = performance.now() + durationSeconds * 1000;
  const callRepeatedly = async (callerNumber: number) => {
    const authorization = `Bearer svc_live_caller-${callerNumber}-of-${callerCount}`;
    // The simulated service (`upstream.ts`) derives the same name from this API key and adds the name to its responses.
    // A response without this name therefore belongs to another caller.
    const callerName = hash('sha256', authorization).slice(0, 12);
    const client = new Client(measuredServer.origin);
    const headers = { ...measuredServer.headers, authorization };
    for (let callId = 1; performance.now() < endTime; callId++) {
      const sentAt = performance.now();
      try {
        const response = await client.request({
          path: '/mcp',
          method: 'POST',
          headers,
          body: measuredServer.body(callId),
        });
        const text = await response.body.text();
        if (response.statusCode !== 200 || text.includes('"isError"')) measuredServer.failedCount++;
        else if (!text.includes(callerName)) measuredServer.wrongCallerCount++;
        else measuredServer.correctCount++;
      } catch {
        measuredServer.failedCount++;
      }
      measuredServer.responseTimesMs.push(performance.now() - sentAt);
    }
    await client.close();
  };
  const processorMsBefore = readProcessorMs(measuredServer.pid);
  await Promise.all(Array.from({ length: callerCount }, (_, callerNumber) => callRepeatedly(callerNumber)));
  measuredServer.processorMs += readProcessorMs(measuredServer.pid) - processorMsBefore;
  measuredServer.residentMegabytes.push(readResidentMegabytes(measuredServer.pid));
}

/**
 * Returns the processor time that a process has used since its start, in milliseconds. Unlike elapsed time, it does not
 * depend on other programs.
 */
function readProcessorMs(pid: number): number {
  try {
    const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).map(Number);
    return (user + system) * 10;
  } catch {
    return Number.NaN;
  }
}

function printReport(measuredServers: MeasuredServer[]): void {
  const computeRate = (measuredServer: MeasuredServer) => measuredServer.correctCount / seconds;
  const proxyRate = measuredServers[0] ? computeRate(measuredServers[0]) : 0;
  printLine(
    `${callerCount} callers, ${seconds} s each in ${turnCount} turns, ${optionValues.tool}${optionValues.tool === 'search_ads' ? ` of ${optionValues.items} ads` : ''}`,
  );
  for (const measuredServer of measuredServers) {
    const formatQuantile = (quantile: number) =>
      `${computeQuantile(measuredServer.responseTimesMs, quantile).toFixed(1)} ms`;
    printLine(
      [
        measuredServer.name.padEnd(16),
        `${computeRate(measuredServer).toFixed(0).padStart(6)}/s`,
        `${((computeRate(measuredServer) / proxyRate) * 100).toFixed(0).padStart(4)} %`,
        `${(measuredServer.processorMs / measuredServer.correctCount).toFixed(2)} ms of processor`,
        `p50 ${formatQuantile(0.5)}, p99 ${formatQuantile(0.99)}`,
        `failed ${measuredServer.failedCount}, wrong ${measuredServer.wrongCallerCount}`,
        `memory ${measuredServer.residentMegabytes.join(' ')} MB`,
      ].join('  '),
    );
  }
}

function computeMean(numbers: number[]): number {
  return numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

function addThroughputRows(): void {
  const sizeText = optionValues.tool === 'search_ads' ? ` of ${optionValues.items} ads` : '';
  const formatRate = (measuredServer: MeasuredServer | undefined) =>
    ((measuredServer?.correctCount ?? 0) / seconds).toFixed(0);
  for (const [index, measuredServer] of ourServers.entries()) {
    const ratio = measuredServer.correctCount / (sdkServers[index]?.correctCount ?? 1);
    printRow({
      measurement: `${optionValues.tool}${sizeText} over HTTP, revision ${protocolRevisions[index]}, ${callerCount} callers`,
      measuredText: `${formatRate(measuredServer)} a second`,
      baselineText: `${formatRate(sdkServers[index])} by the SDK alone, ${formatRate(proxyServer)} by a bare proxy`,
      ratio,
      ...{ limitText: `at least ${minThroughputRatio.toFixed(2)}`, isWithinLimit: ratio >= minThroughputRatio },
    });
  }
}

async function startListening(file: string, ...args: string[]): Promise<{ origin: string; process: ChildProcess }> {
  const { readyMessage, process } = await startChild<AddressInfo>(file, ...args);
  return { origin: `http://127.0.0.1:${readyMessage.port}`, process };
}

async function stopServers(httpCommand: HttpCommand): Promise<void> {
  for (const { process: child } of [service, proxyProcess, ...sdkProcesses]) child.kill();
  const { code, stderr } = await httpCommand.close();
  const hasNoErrors =
    measuredServers.every(({ failedCount, wrongCallerCount }) => failedCount + wrongCallerCount === 0) && code === 0;
  // One process serves both protocol revisions, and its memory use varies between measurements. Compare means instead
  // of single measurements: the mean of the later half with the mean of the earlier half.
  const meanMegabytes = Array.from({ length: turnCount }, (_, turn) =>
    computeMean(ourServers.map((measuredServer) => measuredServer.residentMegabytes[turn] ?? 0)),
  );
  const halfTurnCount = Math.ceil(turnCount / 2);
  const isMemoryStable =
    computeMean(meanMegabytes.slice(-halfTurnCount)) <= 1.2 * computeMean(meanMegabytes.slice(0, halfTurnCount));
  if (!hasNoErrors) printLine(`ERRORS ${stderr}`);
  printLine(
    `memory ${isMemoryStable ? 'flat' : 'GROWS'}: ${meanMegabytes.map((value) => value.toFixed(0)).join(', ')} MB by turn`,
  );
  if (!hasNoErrors || !isMemoryStable) process.exitCode = 1;
}
