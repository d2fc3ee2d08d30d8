/**
 * Checks whether the memory use of the server stays stable during a long run with different kinds of requests. Sends
 * requests over HTTP, with the local library as the service. Run it with `npm run soak -- --seconds 600`. With several
 * replicas (server processes), the calls are distributed over them, and the size of their shared store must stay
 * stable, too: `npm run soak -- --replicas 3 --store PostgreSQL`.
 */
import { parseArgs } from 'node:util';
import { Client, WebSocket } from 'undici';
import { createSeededRandom } from '../src/library/demo/market/market.ts';
import { createToolCall, createValidHeaders } from '../test/support/http.ts';
import { startHttpCommand } from '../test/support/process.ts';
import { stateServers } from '../test/support/stores.ts';
import { startChild } from './child.ts';
import { formatMegabytes, readResidentMegabytes } from './memory.ts';
import type { ServedDemo } from './served-demo.ts';
import { createTraffic, type ToolResult } from './traffic.ts';

const { values: optionValues } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    replicas: { type: 'string', default: '1' },
    store: { type: 'string' },
  },
});
const callerCount = 32;
const turnCount = 5;
/**
 * The number of turns (equal parts of the run) after which all caches are full. After these turns, memory use must stay
 * nearly constant.
 */
const warmUpTurnCount = 3;
/**
 * Limits for the growth of memory after the caches are full. `heapBytes` allows for the varying contents of the caches.
 * The heap may also grow by `bytesPerKey` for each new API key, and by `bytesPerItem` for each item that a key receives
 * for the first time. The shared store may grow by the factor `storeRatio`.
 */
const maxGrowth = { heapBytes: 16 * 2 ** 20, bytesPerKey: 1024, bytesPerItem: 3 * 1024, storeRatio: 1.5 };
/**
 * The settings of the measured server. The short cache lifetime lets responses expire during the run. The high limit
 * for refusals lets the server reject unknown API keys without blocking the IP address of this program.
 */
const serverArguments = ['--cache-seconds', '5', '--refusals-per-minute', '1000000'];
/**
 * Environment variables that make Node open its debugger, from which this program reads the heap size. They work
 * without a change to the code of the server.
 */
const debuggerEnvironment = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };
const debuggerAddressPattern = /^Debugger listening on (\S+)$/m;

const printLine = (line: string) => process.stdout.write(`${line}\n`);
const problems: string[] = [];
let requestCount = 0;
let unknownKeyCount = 0;
/**
 * The ids of all ads and pages that callers have received so far. The server stores these items in the callers'
 * datasets, so memory may grow with their number.
 */
const receivedIds = new Set<string>();

const storeServer = stateServers.find(({ name }) => name === optionValues.store);
if (optionValues.store !== undefined && storeServer === undefined)
  throw new Error(`There is no store named ${optionValues.store}.`);
const store = await storeServer?.start();
const library = await startChild<ServedDemo>('served-demo.ts', String(callerCount));
const { baseUrl, callers } = library.readyMessage;
const secret = 'a secret of the soak, long enough to be one';
const stateEnvironment: Record<string, string> = store
  ? { AD_LIBRARY_STATE_URL: store.url, AD_LIBRARY_STATE_SECRET: secret }
  : {};

/** A server process, with its heap size in bytes after each turn (a fifth of the run). */
interface WatchedProcess {
  pid: number | undefined;
  readHeapBytes(): Promise<number>;
  heapBytesByTurn: number[];
  close(): void;
}

const servers = await Promise.all(
  Array.from({ length: Number(optionValues.replicas) }, () =>
    startHttpCommand(['--base-url', baseUrl, ...serverArguments], { ...debuggerEnvironment, ...stateEnvironment }),
  ),
);
const watchedProcesses: WatchedProcess[] = [];
for (const { process: serverProcess } of servers) {
  const [, address] = await serverProcess.waitForStderr(debuggerAddressPattern);
  watchedProcesses.push(await watchProcess(serverProcess.child.pid, address));
}
const requestSenders = callers.map(createRequestSender);
const storeBytes: number[] = [];
const countsByTurn: { keys: number; items: number }[] = [];

for (let turn = 0; turn < turnCount; turn++) {
  const turnEndsAt = performance.now() + (1000 * Number(optionValues.seconds)) / turnCount;
  const sendUntilTurnEnds = async (sendNextRequest: () => Promise<void>) => {
    while (performance.now() < turnEndsAt) {
      await sendNextRequest().catch((error: Error) => problems.push(error.message));
      requestCount++;
    }
  };
  await Promise.all(requestSenders.map(sendUntilTurnEnds));
  for (const { readHeapBytes, heapBytesByTurn } of watchedProcesses) heapBytesByTurn.push(await readHeapBytes());
  countsByTurn.push({ keys: unknownKeyCount, items: receivedIds.size });
  // PostgreSQL frees the space of expired rows later. Count only live rows, so that dead rows do not look like growth.
  if (store) storeBytes.push(store.measureBytes().kinds.reduce((sum, [, bytes]) => sum + bytes, 0));
}

printLine(
  `${servers.length} replicas, ${callerCount} callers, ${optionValues.seconds} s in ${turnCount} turns, ${requestCount} requests`,
);
const [countsAfterWarmUp, countsAtEnd] = [countsByTurn[warmUpTurnCount - 1], countsByTurn[turnCount - 1]] as [
  (typeof countsByTurn)[0],
  (typeof countsByTurn)[0],
];
const newItems = countsAtEnd.items - countsAfterWarmUp.items;
const maxHeapGrowth =
  maxGrowth.heapBytes +
  (countsAtEnd.keys - countsAfterWarmUp.keys) * maxGrowth.bytesPerKey +
  newItems * maxGrowth.bytesPerItem;
let isMemoryStable = problems.length === 0;
for (const { pid, heapBytesByTurn } of watchedProcesses) {
  const growth = (heapBytesByTurn[turnCount - 1] ?? 0) - (heapBytesByTurn[warmUpTurnCount - 1] ?? 0);
  isMemoryStable &&= growth <= maxHeapGrowth;
  const growthText = `grew by ${formatMegabytes(growth)} MB since turn ${warmUpTurnCount}, at most ${formatMegabytes(maxHeapGrowth)}`;
  printLine(
    `  heap ${heapBytesByTurn.map(formatMegabytes).join(', ')} MB, ${growthText}; RSS ${readResidentMegabytes(pid)} MB`,
  );
}
if (store) {
  isMemoryStable &&= (storeBytes[turnCount - 1] ?? 0) <= maxGrowth.storeRatio * (storeBytes[warmUpTurnCount - 1] ?? 0);
  printLine(
    `  ${optionValues.store}: ${storeBytes.map(formatMegabytes).join(', ')} MB, at most ${maxGrowth.storeRatio} of turn ${warmUpTurnCount}`,
  );
}
for (const { close } of watchedProcesses) close();
for (const problem of problems.slice(0, 10)) printLine(`WRONG ${problem.slice(0, 800)}`);
for (const { code } of await Promise.all(servers.map((server) => server.close())))
  if (code !== 0) printLine(`ended with ${code}`);
library.process.kill();
await store?.close();
printLine(isMemoryStable ? 'at rest' : 'NOT AT REST, or answers were wrong');
process.exit(isMemoryStable ? 0 : 1);

/** Attaches to a server process through the Chrome DevTools Protocol, in order to read its heap size. */
async function watchProcess(pid: number | undefined, debuggerUrl = ''): Promise<WatchedProcess> {
  const socket = new WebSocket(debuggerUrl);
  await new Promise((resolve) => socket.addEventListener('open', resolve));
  const pendingRequests = new Map<number, (result: { usedSize: number }) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(data);
    pendingRequests.get(id)?.(result);
  });
  let id = 0;
  const send = (method: string) =>
    new Promise<{ usedSize: number }>((resolve) => {
      pendingRequests.set(++id, resolve);
      socket.send(JSON.stringify({ id, method }));
    });
  await send('HeapProfiler.enable');
  const readHeapBytes = async () => {
    // Collect garbage twice. Finalizers run after the first collection and may release further objects.
    for (let round = 0; round < 2; round++) await send('HeapProfiler.collectGarbage');
    return (await send('Runtime.getHeapUsage')).usedSize;
  };
  return { pid, readHeapBytes, heapBytesByTurn: [], close: () => socket.close() };
}

/**
 * Returns a function that sends one request of a simulated caller. The requests go to the server processes in turn.
 * Most requests are valid tool calls, but some misuse the server, e.g. with an unknown API key or an aborted request.
 */
function createRequestSender(
  { name, apiKey }: ServedDemo['callers'][number],
  callerNumber: number,
): () => Promise<void> {
  const clients = servers.map(({ origin }) => new Client(origin));
  const random = createSeededRandom(callerNumber);
  const traffic = createTraffic(name, random);
  let id = 0;
  const postMessage = async (body: string, headers: object = {}, signal: AbortSignal | null = null) => {
    const client = clients[++id % clients.length] as Client;
    const allHeaders = { ...createValidHeaders(apiKey), ...headers };
    const response = await client.request({ path: '/mcp', method: 'POST', headers: allHeaders, body, signal });
    return { status: response.statusCode, text: await response.body.text() };
  };
  const sendValidCall = async () => {
    const call = traffic.createNextCall();
    const { status, text } = await postMessage(JSON.stringify(createToolCall(call.tool, call.args, id)));
    for (const [, item] of text.matchAll(/"(?:id|pageId)":"([^"]+)"/g)) receivedIds.add(`${callerNumber} ${item}`);
    const result: ToolResult | undefined = status === 200 ? JSON.parse(text).result : undefined;
    if (!result || !call.isExpectedResult(result))
      problems.push(`${JSON.stringify(call).slice(0, 200)}: ${status} ${text}`);
    else traffic.rememberResult(call, result);
  };
  const sendAbortedCall = async (headers: object = {}) => {
    const { tool, args } = traffic.createNextCall();
    const signal = AbortSignal.timeout(random.between(0, 12));
    const { status } = await postMessage(JSON.stringify(createToolCall(tool, args)), headers, signal).catch(() => ({
      status: 200,
    }));
    if (status !== 200) problems.push(`hangs up: ${status}`);
  };
  const buildUnknownKeyHeaders = () => ({ authorization: `Bearer svc_live_stranger${unknownKeyCount++}` });
  const expectResponse = async (status: number, expectedText: string, body: string, headers: object = {}) => {
    const response = await postMessage(body, headers);
    if (response.status !== status || !response.text.includes(expectedText))
      problems.push(`${expectedText}: ${response.text}`);
  };
  const whoami = JSON.stringify(createToolCall('whoami'));
  const misuses = [
    () => sendAbortedCall(),
    () => sendAbortedCall(buildUnknownKeyHeaders()),
    () => expectResponse(200, 'unauthorized', whoami, buildUnknownKeyHeaders()),
    () => expectResponse(401, 'needs your API key', '{}', { authorization: '' }),
    () => expectResponse(400, 'not JSON', random.pick(['{"jsonrpc":', 'hello', ''])),
    () => expectResponse(400, 'levels', '['.repeat(100)),
    () => expectResponse(415, 'application/json', '{}', { 'content-type': 'text/plain' }),
    () => expectResponse(400, 'one message at a time', `[${whoami},${whoami}]`),
  ];
  return () => (random.chance(0.85) ? sendValidCall() : random.pick(misuses)());
}
