/**
 * Measures how much time a tool call adds to a direct API call, for a page of 50 ads. The direct call uses undici and
 * `JSON.parse`. The same page is requested from the built server over stdio and HTTP, with and without the cache. For
 * comparison, a minimal server with the official SDK also returns this page. It fetches and shortens the ads with the
 * same code.
 *
 * Run it with `npm run bench:calls [-- ROUNDS]`. The client sends raw protocol messages, so that the time of an SDK
 * client is not measured. The service runs in a separate process, as in production.
 */
import { spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { buildCommandLine, startHttpCommand } from '../test/support/process.ts';
import { bundleSdkServer, startChild } from './child.ts';
import type { PageOfAdsInfo } from './page-of-ads.ts';
import { computeMedian, printRow } from './row.ts';

const roundCount = Number(process.argv[2] ?? 1000);
/** The number of unmeasured rounds before the measurement. They give the JavaScript engine time to compile the code. */
const warmUpRoundCount = 200;
/**
 * Limits in milliseconds. A call may take at most `maxAddedMs` longer on our server than on a minimal server with the
 * official SDK. A cached response may take at most `maxCachedMs`.
 */
const [maxAddedMs, maxCachedMs] = [1.2, 0.8];

const adService = await startChild<PageOfAdsInfo>('page-of-ads.ts');
const baseUrl = `http://127.0.0.1:${adService.readyMessage.port}`;

const dispatcher = new Agent();
async function callDirectly(): Promise<void> {
  const headers = { authorization: 'Bearer svc_live_bench', 'content-type': 'application/json' };
  const { body } = await request(`${baseUrl}/v1/ads/search`, { method: 'POST', headers, body: '{}', dispatcher });
  JSON.parse(await body.text());
}

/**
 * A connection to a server. `search` requests the page of ads and resolves when the response has arrived. If `fresh` is
 * true, the server requests the page from the service again instead of using the cache.
 */
interface ServerConnection {
  search(fresh: boolean): Promise<unknown>;
  end(): Promise<unknown>;
}

const buildMessage = (id: number, method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const buildSearchParams = (fresh: boolean) => ({ name: 'search_ads', arguments: fresh ? { fresh } : {} });

async function connectOverStdio(args: readonly string[]): Promise<ServerConnection> {
  const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: 'svc_live_bench', AD_LIBRARY_BASE_URL: baseUrl };
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let resolveResponse = (_: unknown) => {};
  child.stdout.on('data', (bytes: Buffer) => {
    if (bytes.at(-1) === newlineCode) resolveResponse(undefined);
  });
  let id = 0;
  const send = (method: string, params: object) =>
    new Promise((resolve) => {
      resolveResponse = resolve;
      id++;
      child.stdin.write(`${buildMessage(id, method, params)}\n`);
    });
  await send('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  return { search: (fresh) => send('tools/call', buildSearchParams(fresh)), end: async () => child.stdin.end() };
}

async function connectOverHttp(url: string, end: ServerConnection['end']): Promise<ServerConnection> {
  const headers = {
    authorization: 'Bearer svc_live_bench',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const search = async (fresh: boolean) => {
    const { body } = await request(url, {
      method: 'POST',
      headers,
      body: buildMessage(1, 'tools/call', buildSearchParams(fresh)),
      dispatcher,
    });
    await body.text();
  };
  return { search, end };
}

const newlineCode = 0x0a;
const printLine = (line: string) => process.stdout.write(`${line}\n`);
const formatMs = (timeMs: number) => `${timeMs.toFixed(2)} ms`;

/**
 * Measures calls to the ad service itself (direct calls), to the SDK server and to our server. The calls alternate, so
 * that all of them run under the same machine load. Adds the median times to the table of results.
 */
async function compareServers(
  transport: string,
  ourServer: ServerConnection,
  sdkServer: ServerConnection,
): Promise<void> {
  const callsByTarget = {
    direct: callDirectly,
    sdk: () => sdkServer.search(false),
    fresh: () => ourServer.search(true),
    cached: () => ourServer.search(false),
  };
  const times: Record<string, number[]> = { direct: [], sdk: [], fresh: [], cached: [] };
  for (let round = -warmUpRoundCount; round < roundCount; round++) {
    for (const [target, sendCall] of Object.entries(callsByTarget)) {
      const startedAt = performance.now();
      await sendCall();
      if (round >= 0) times[target]?.push(performance.now() - startedAt);
    }
  }
  await Promise.all([ourServer.end(), sdkServer.end()]);
  const [directMs = 0, sdkMs = 0, freshMs = 0, cachedMs = 0] = Object.values(times).map(computeMedian);
  const buildLimitFields = (limitText: string, isWithinLimit: boolean) =>
    transport === 'stdio' ? { limitText, isWithinLimit } : {};
  printRow({
    measurement: `50 ads over ${transport}`,
    measuredText: formatMs(freshMs),
    baselineText: `${formatMs(sdkMs)} by the SDK alone, ${formatMs(directMs)} direct`,
    ratio: freshMs / sdkMs,
    ...buildLimitFields(`at most ${maxAddedMs} ms more than the SDK`, freshMs - sdkMs <= maxAddedMs),
  });
  printRow({
    measurement: `50 cached ads over ${transport}`,
    measuredText: formatMs(cachedMs),
    baselineText: `${formatMs(directMs)} direct`,
    ratio: cachedMs / directMs,
    ...buildLimitFields(`at most ${maxCachedMs} ms`, cachedMs <= maxCachedMs),
  });
}

const { adCount, byteCount, dataDescription } = adService.readyMessage;
printLine(
  `node ${process.version}, ${adCount} ads, ${byteCount.toLocaleString('en')} bytes, ${dataDescription}; medians`,
);
const sdkServer = await bundleSdkServer();
await compareServers(
  'stdio',
  await connectOverStdio(buildCommandLine().args),
  await connectOverStdio([sdkServer, 'stdio', baseUrl]),
);
const httpServer = await startHttpCommand(['--base-url', baseUrl]);
const sdk = await startChild<AddressInfo>(sdkServer, '2025-11-25', baseUrl);
await compareServers(
  'HTTP',
  await connectOverHttp(httpServer.url, httpServer.close),
  await connectOverHttp(`http://127.0.0.1:${sdk.readyMessage.port}/mcp`, async () => sdk.process.kill()),
);
adService.process.kill();
await dispatcher.close();
