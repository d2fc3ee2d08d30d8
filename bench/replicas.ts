/**
 * Measures the cost of a store that replicas of the server share: the number of store calls of a paid search, the time
 * that a store adds to a cached response and to `gather_ads`, the time until another replica has read the gathered ads,
 * and the space for 100,000 ads. Requires `redis-server` or PostgreSQL. Run it with `npm run bench:replicas --
 * --seconds 5 --ads 100000`.
 */
import { parseArgs } from 'node:util';
import { Client } from 'undici';
import { monotonicNow, openApp } from '../src/app.ts';
import { readConfig } from '../src/config/read-config.ts';
import { createLogger } from '../src/logging/log.ts';
import type { RemoteStore } from '../src/storage/storage.ts';
import { openStoreState } from '../src/storage/store/open-store.ts';
import { AdService } from '../test/support/ad-service.ts';
import { startUpstream } from '../test/support/faulty-upstream.ts';
import { createToolCall, createValidHeaders } from '../test/support/http.ts';
import { type HttpCommand, startHttpCommand } from '../test/support/process.ts';
import { openMemoryStore, type StateServer, stateServers } from '../test/support/stores.ts';
import { startChild } from './child.ts';
import type { ManyAdsInfo } from './many-ads.ts';
import { formatMegabytes } from './memory.ts';
import { computeMedian, printRow, printRowWithMaximum, skipBenchmark } from './row.ts';

const { values: optionValues } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    ads: { type: 'string', default: '100000' },
  },
});
const durationMs = 1000 * Number(optionValues.seconds);
/** The maximum time that a shared store may add to the median response time of cached calls, in milliseconds. */
const maxAddedMs: Record<string, number> = { Redis: 1, PostgreSQL: 2 };
const adsPerKey = 10_000;

const printLine = (line: string) => process.stdout.write(`${line}\n`);
const formatMs = (value: number) => `${value.toFixed(2)} ms`;

// Every child process adds an exit listener. Disable Node's warning about more than ten listeners.
process.setMaxListeners(0);

await countStoreCalls();
const installedServers = stateServers.filter(({ isInstalled }) => isInstalled);
if (installedServers.length === 0) skipBenchmark('neither redis-server nor PostgreSQL is installed');
for (const { name, start } of installedServers) {
  const server = await start({ isDurable: true });
  try {
    await measureAddedTime(name, server);
    await measureStorage(name, server, Number(optionValues.ads) / adsPerKey);
  } finally {
    await server.close();
  }
}

async function startReplica({ baseUrl, stateUrl }: { baseUrl: string; stateUrl?: string }): Promise<HttpCommand> {
  const secret = 'a secret of the benchmarks, long enough';
  const environment = stateUrl ? { AD_LIBRARY_STATE_URL: stateUrl, AD_LIBRARY_STATE_SECRET: secret } : {};
  const replica = await startHttpCommand(['--base-url', baseUrl, '--cache-seconds', '3600'], environment);
  // Kill the started server when this process exits, so that the server also stops if the benchmark fails.
  process.once('exit', () => replica.process.child.kill());
  return replica;
}

/**
 * Counts the calls to the shared store that a paid search with a credit budget makes. The number is the same for every
 * store, so this function counts the calls to a store in memory.
 */
async function countStoreCalls(): Promise<void> {
  const service = new AdService(50);
  const { baseUrl, close } = await startUpstream(service.respond);
  const log = createLogger('silent', printLine);
  let calls: { name: string; key: string }[] = [];
  const store = new Proxy<RemoteStore>(openMemoryStore(), {
    get: (target, name: keyof RemoteStore) => {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push({ name, key: String(args[0]) });
        return method.apply(target, args);
      };
    },
  });
  const driver = { hostAndPort: 'memory', open: () => store };
  const replicaState = await openStoreState({
    driver,
    secret: 'a secret',
    baseUrl,
    callTimeoutMs: 60_000,
    log,
    now: Date.now,
  });
  const config = { ...readConfig({}), baseUrl, creditBudget: 1000 };
  const app = await openApp({
    config,
    log,
    monotonicNow,
    random: Math.random,
    now: replicaState.now,
    acceptedKeys: replicaState.keys,
    replicaState,
  });
  const search = async (query: string) => {
    calls = [];
    const { signal } = new AbortController();
    const args = { filters: { query }, limit: 1 };
    const caller = { apiKey: 'svc_live_key', tenantId: 'tenant' };
    const result = await app.catalog.callTool({ name: 'search_ads', arguments: args, ...caller, signal });
    if (result.isError) throw new Error(JSON.stringify(result.content));
    const countedCalls = calls.filter(({ name }) =>
      /^(readDocument|swapDocument|readItems|putItems|readItemsSince)$/.test(name),
    );
    return {
      all: countedCalls.length,
      writes: countedCalls.filter(({ name }) => name === 'swapDocument' || name === 'putItems').length,
    };
  };
  const first = await search('first');
  const later = await search('later');
  printLine(
    `a paid search with a next page, under a budget: ${later.all} calls of the store, ${later.writes} of them writes; the first of a key ${first.all} and ${first.writes}`,
  );
  printRowWithMaximum('calls of the store for a paid search under a budget', later.all, 11, 'calls');
  printRowWithMaximum('writes among them', later.writes, 7, 'calls');
  await app.close();
  replicaState.close();
  await close();
}

/** Opens a connection that sends tool calls with one API key. */
function connectCaller({ origin }: HttpCommand, apiKey: string) {
  const client = new Client(origin);
  return {
    callTool: async (tool: string, args: object): Promise<string> => {
      const body = JSON.stringify(createToolCall(tool, args));
      const response = await client.request({
        path: '/mcp',
        method: 'POST',
        headers: createValidHeaders(apiKey),
        body,
      });
      const text = await response.body.text();
      if (response.statusCode !== 200 || text.includes('"isError"')) throw new Error(text.slice(0, 500));
      return text;
    },
    close: () => client.close(),
  };
}

/**
 * Requests the same cached response for `measurementMs` milliseconds. Returns the time of each call in milliseconds.
 */
async function measureCachedCalls(replica: HttpCommand, measurementMs: number): Promise<number[]> {
  const callTimesMs: number[] = [];
  const caller = connectCaller(replica, 'svc_live_caller');
  await caller.callTool('search_ads', { limit: 10 });
  const endTime = performance.now() + measurementMs;
  for (let startedAt = performance.now(); startedAt < endTime; startedAt = performance.now()) {
    const text = await caller.callTool('search_ads', { limit: 10 });
    callTimesMs.push(performance.now() - startedAt);
    if (!text.includes('"cached":true')) throw new Error(`not a cached answer: ${text.slice(0, 500)}`);
  }
  await caller.close();
  return callTimesMs;
}

/**
 * Measures how long a caller waits for cached responses with and without the shared store. The calls to both servers
 * alternate, so that both are measured under the same load of the machine.
 */
async function measureAddedTime(storeName: string, stateServer: StateServer): Promise<void> {
  const service = await startChild<{ port: number }>('upstream.ts', '10');
  const baseUrl = `http://127.0.0.1:${service.readyMessage.port}`;
  const memoryReplica = await startReplica({ baseUrl });
  const storeReplica = await startReplica({ baseUrl, stateUrl: stateServer.url });
  const times: [number[], number[]] = [[], []];
  for (let turn = 0; turn < 10; turn++) {
    for (const [index, replica] of [memoryReplica, storeReplica].entries())
      times[index]?.push(...(await measureCachedCalls(replica, durationMs / 10)));
  }
  for (const replica of [memoryReplica, storeReplica]) await replica.close();
  service.process.kill();
  const [memoryMs, storeMs] = times.map(computeMedian) as [number, number];
  const limitMs = maxAddedMs[storeName] ?? 0;
  printRow({
    measurement: `10 cached ads over HTTP, with ${storeName}`,
    measuredText: formatMs(storeMs),
    baselineText: `${formatMs(memoryMs)} with memory`,
    ratio: storeMs / memoryMs,
    limitText: `at most ${limitMs} ms more`,
    isWithinLimit: storeMs - memoryMs <= limitMs,
  });
}

/**
 * Gathers (reads and stores) all ads with several API keys, one key after another. Returns only the time of the first
 * key in milliseconds, because later keys benefit from code that is already compiled.
 */
async function gatherWithKeys(replica: HttpCommand, keyCount: number): Promise<number> {
  let firstKeyMs = 0;
  for (let keyIndex = 0; keyIndex < keyCount; keyIndex++) {
    const startedAt = performance.now();
    const caller = connectCaller(replica, `svc_live_key_${keyIndex}`);
    const gather = () => caller.callTool('gather_ads', { filters: {}, maxAds: adsPerKey, maxCredits: 1000 });
    for (let text = ''; !text.includes('"complete":true'); ) text = await gather();
    await caller.close();
    firstKeyMs ||= performance.now() - startedAt;
  }
  return firstKeyMs;
}

/**
 * Measures gathering (reading and storing) ads with several API keys in a shared store: the time, the space in the
 * store, and the time until another replica has read the ads.
 */
async function measureStorage(storeName: string, stateServer: StateServer, keyCount: number): Promise<void> {
  stateServer.clear();
  const service = await startChild<ManyAdsInfo>('many-ads.ts', String(adsPerKey));
  const baseUrl = `http://127.0.0.1:${service.readyMessage.port}`;
  const settings = { baseUrl, stateUrl: stateServer.url };
  const memoryReplica = await startReplica({ baseUrl });
  const memoryGatherMs = await gatherWithKeys(memoryReplica, 1);
  await memoryReplica.close();
  const [gatheringReplica, readingReplica] = [await startReplica(settings), await startReplica(settings)];
  const bytesBefore = stateServer.measureBytes().all;
  const gatherMs = await gatherWithKeys(gatheringReplica, keyCount);
  const startedAt = performance.now();
  const reader = connectCaller(readingReplica, 'svc_live_key_0');
  await reader.callTool('query_ads', { sql: 'SELECT count(*) FROM ads' });
  const readMs = performance.now() - startedAt;
  await reader.close();
  for (const replica of [gatheringReplica, readingReplica]) await replica.close();
  service.process.kill();
  const ads = keyCount * adsPerKey;
  const { all, kinds } = stateServer.measureBytes();
  const bytes = all - bytesBefore;
  printLine(`${ads} ads of ${keyCount} keys, ${service.readyMessage.dataDescription}:`);
  printLine(
    `  ${formatMegabytes(bytes)} MB of ${storeName} with cached answers and gatherings, ${(bytes / ads).toFixed(0)} bytes an ad`,
  );
  for (const [kind, size] of kinds.slice(0, 4))
    printLine(`  ${formatMegabytes(size)} MB of it under keys of the kind ${kind}`);
  const formatSeconds = (time: number) => `${(time / 1000).toFixed(1)} s`;
  printRow({
    measurement: `10,000 ads gathered, with ${storeName}`,
    measuredText: formatSeconds(gatherMs),
    baselineText: `${formatSeconds(memoryGatherMs)} with memory`,
    ratio: gatherMs / memoryGatherMs,
    ...{ limitText: 'at most 2.00', isWithinLimit: gatherMs <= 2 * memoryGatherMs },
  });
  printRowWithMaximum(
    `first SQL statement over 10,000 ads that another replica gathered, with ${storeName}`,
    readMs,
    5000,
  );
}
