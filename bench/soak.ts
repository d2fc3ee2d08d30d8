/**
 * Checks whether the memory use of the server stays stable during a long run with different kinds of requests. Sends
 * requests over HTTP, with the local library as the service. Run it with `npm run soak -- --seconds 600`. With several
 * replicas (server processes), the calls are distributed over them, and the size of their shared store must stay
 * stable, too: `npm run soak -- --replicas 3 --store PostgreSQL`.
 */
import { parseArgs } from 'node:util';
import { Client, WebSocket } from 'undici';
import { createSeededRandom } from '../src/library/demo/market/market.ts';
import { toolCall, validHeaders } from '../test/support/http.ts';
import { startHttpCommand } from '../test/support/process.ts';
import { stateServers } from '../test/support/stores.ts';
import { startChild } from './child.ts';
import { formatMegabytes, readResidentMegabytes } from './memory.ts';
import type { ServedDemo } from './served-demo.ts';
import { createTraffic, type ToolResult } from './traffic.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    replicas: { type: 'string', default: '1' },
    store: { type: 'string' },
  },
});
const callers = 32;
const turns = 5;
/**
 * Number of turns (equal parts of the run) after which all caches are full. From then on, memory must not grow any
 * more.
 */
const warmUp = 3;
/**
 * Limits for the growth of memory after the caches are full. `heap` is in bytes, because the heap size varies with the
 * contents of the caches. `storeShare` is a ratio. A bounded store may also need `ofKey` bytes for each new API key,
 * and `ofItem` bytes for each item that a key receives for the first time.
 */
const maxGrowth = { heap: 16 * 2 ** 20, ofKey: 1024, ofItem: 3 * 1024, storeShare: 1.5 };
/**
 * Settings of the measured server. The short cache lifetime lets responses expire during the run. The high limit for
 * refusals lets the server reject unknown API keys without blocking the IP address of this program.
 */
const settings = ['--cache-seconds', '5', '--refusals-per-minute', '1000000'];
/**
 * Opens the debugger of Node, from which this program reads the heap size. It is set with an environment variable, so
 * that the code of the server need not change.
 */
const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };
const debuggerAddress = /^Debugger listening on (\S+)$/m;

const say = (line: string) => process.stdout.write(`${line}\n`);
const complaints: string[] = [];
let requests = 0;
let unknownKeys = 0;
/**
 * Ids of all ads and pages that callers have received so far. The server stores these items in the callers' datasets,
 * so their number explains growth.
 */
const receivedIds = new Set<string>();

const kind = stateServers.find(({ name }) => name === values.store);
if (values.store !== undefined && kind === undefined) throw new Error(`There is no store named ${values.store}.`);
const store = await kind?.start();
const library = await startChild<ServedDemo>('served-demo.ts', String(callers));
const { baseUrl, callers: all } = library.ready;
const secret = 'a secret of the soak, long enough to be one';
const state: Record<string, string> = store ? { AD_LIBRARY_STATE_URL: store.url, AD_LIBRARY_STATE_SECRET: secret } : {};

/** A server process, with its heap size in bytes after each turn (a fifth of the run). */
interface Watched {
  pid: number | undefined;
  heapUsed(): Promise<number>;
  heaps: number[];
  close(): void;
}

const servers = await Promise.all(
  Array.from({ length: Number(values.replicas) }, () =>
    startHttpCommand(['--base-url', baseUrl, ...settings], { ...inspected, ...state }),
  ),
);
const watched: Watched[] = [];
for (const { process: running } of servers) {
  const [, address] = await running.waitForStderr(debuggerAddress);
  watched.push(await watch(running.child.pid, address));
}
const asks = all.map(httpCaller);
const storeBytes: number[] = [];
const counts: { keys: number; items: number }[] = [];

for (let turn = 0; turn < turns; turn++) {
  const until = performance.now() + (1000 * Number(values.seconds)) / turns;
  const untilThen = async (ask: () => Promise<void>) => {
    while (performance.now() < until) {
      await ask().catch((error: Error) => complaints.push(error.message));
      requests++;
    }
  };
  await Promise.all(asks.map(untilThen));
  for (const { heapUsed, heaps } of watched) heaps.push(await heapUsed());
  counts.push({ keys: unknownKeys, items: receivedIds.size });
  // PostgreSQL frees the space of expired rows later. Count only live rows, so that dead rows do not look like growth.
  if (store) storeBytes.push(store.measureBytes().kinds.reduce((sum, [, bytes]) => sum + bytes, 0));
}

say(`${servers.length} replicas, ${callers} callers, ${values.seconds} s in ${turns} turns, ${requests} requests`);
const [full, end] = [counts[warmUp - 1], counts[turns - 1]] as [(typeof counts)[0], (typeof counts)[0]];
const items = end.items - full.items;
const most = maxGrowth.heap + (end.keys - full.keys) * maxGrowth.ofKey + items * maxGrowth.ofItem;
let isAtRest = complaints.length === 0;
for (const { pid, heaps } of watched) {
  const growth = (heaps[turns - 1] ?? 0) - (heaps[warmUp - 1] ?? 0);
  isAtRest &&= growth <= most;
  const grew = `grew by ${formatMegabytes(growth)} MB since turn ${warmUp}, at most ${formatMegabytes(most)}`;
  say(`  heap ${heaps.map(formatMegabytes).join(', ')} MB, ${grew}; RSS ${readResidentMegabytes(pid)} MB`);
}
if (store) {
  isAtRest &&= (storeBytes[turns - 1] ?? 0) <= maxGrowth.storeShare * (storeBytes[warmUp - 1] ?? 0);
  say(
    `  ${values.store}: ${storeBytes.map(formatMegabytes).join(', ')} MB, at most ${maxGrowth.storeShare} of turn ${warmUp}`,
  );
}
for (const { close } of watched) close();
for (const complaint of complaints.slice(0, 10)) say(`WRONG ${complaint.slice(0, 800)}`);
for (const { code } of await Promise.all(servers.map((one) => one.close()))) if (code !== 0) say(`ended with ${code}`);
library.process.kill();
await store?.close();
say(isAtRest ? 'at rest' : 'NOT AT REST, or answers were wrong');
process.exit(isAtRest ? 0 : 1);

/** Attaches to a server process through the Chrome DevTools Protocol, in order to read its heap size. */
async function watch(pid: number | undefined, address = ''): Promise<Watched> {
  const socket = new WebSocket(address);
  await new Promise((resolve) => socket.addEventListener('open', resolve));
  const waiting = new Map<number, (result: { usedSize: number }) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
  });
  let id = 0;
  const send = (method: string) =>
    new Promise<{ usedSize: number }>((resolve) => {
      waiting.set(++id, resolve);
      socket.send(JSON.stringify({ id, method }));
    });
  await send('HeapProfiler.enable');
  const heapUsed = async () => {
    // Collect garbage twice. Finalizers run after the first collection and may release further objects.
    for (let time = 0; time < 2; time++) await send('HeapProfiler.collectGarbage');
    return (await send('Runtime.getHeapUsage')).usedSize;
  };
  return { pid, heapUsed, heaps: [], close: () => socket.close() };
}

/**
 * Returns a function that sends each request to the next server process in turn. Most requests are valid tool calls,
 * but some misuse the server, e.g. with an unknown API key or an aborted request.
 */
function httpCaller({ name, key }: ServedDemo['callers'][number], number: number): () => Promise<void> {
  const clients = servers.map(({ origin }) => new Client(origin));
  const random = createSeededRandom(number);
  const traffic = createTraffic(name, random);
  let id = 0;
  const send = async (body: string, headers: object = {}, signal: AbortSignal | null = null) => {
    const client = clients[++id % clients.length] as Client;
    const sent = { ...validHeaders(key), ...headers };
    const answer = await client.request({ path: '/mcp', method: 'POST', headers: sent, body, signal });
    return { status: answer.statusCode, text: await answer.body.text() };
  };
  const ask = async () => {
    const question = traffic.createNextCall();
    const { status, text } = await send(JSON.stringify(toolCall(question.tool, question.args, id)));
    for (const [, item] of text.matchAll(/"(?:id|pageId)":"([^"]+)"/g)) receivedIds.add(`${number} ${item}`);
    const result: ToolResult | undefined = status === 200 ? JSON.parse(text).result : undefined;
    if (!result || !question.isExpectedResult(result))
      complaints.push(`${JSON.stringify(question).slice(0, 200)}: ${status} ${text}`);
    else traffic.rememberResult(question, result);
  };
  const hangUp = async (headers: object = {}) => {
    const { tool, args } = traffic.createNextCall();
    const signal = AbortSignal.timeout(random.between(0, 12));
    const { status } = await send(JSON.stringify(toolCall(tool, args)), headers, signal).catch(() => ({ status: 200 }));
    if (status !== 200) complaints.push(`hangs up: ${status}`);
  };
  const unknownKey = () => ({ authorization: `Bearer svc_live_stranger${unknownKeys++}` });
  const expectAnswer = async (status: number, holds: string, body: string, headers: object = {}) => {
    const posted = await send(body, headers);
    if (posted.status !== status || !posted.text.includes(holds)) complaints.push(`${holds}: ${posted.text}`);
  };
  const whoami = JSON.stringify(toolCall('whoami'));
  const oddities = [
    () => hangUp(),
    () => hangUp(unknownKey()),
    () => expectAnswer(200, 'unauthorized', whoami, unknownKey()),
    () => expectAnswer(401, 'needs your API key', '{}', { authorization: '' }),
    () => expectAnswer(400, 'not JSON', random.pick(['{"jsonrpc":', 'hello', ''])),
    () => expectAnswer(400, 'levels', '['.repeat(100)),
    () => expectAnswer(415, 'application/json', '{}', { 'content-type': 'text/plain' }),
    () => expectAnswer(400, 'one message at a time', `[${whoami},${whoami}]`),
  ];
  return () => (random.chance(0.85) ? ask() : random.pick(oddities)());
}
