/**
 * What a tool call takes on top of the same call of the API: a page of 50 ads, with undici and `JSON.parse`, then
 * through the built server, over stdio and over HTTP, asked anew and answered from what it kept; and through a server of
 * the official SDK alone, which fetches and condenses the page with the same code and does nothing else.
 * `npm run bench:calls [-- ROUNDS]`. The client speaks the protocol and nothing else: what an SDK's client does with a
 * result is not the server's time. The service is a process of its own, as it is for everybody.
 */
import { spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { commandLine, startHttpCommand } from '../test/support/process.ts';
import { bundledSdkServer, startChild } from './child.ts';
import type { PageOfAds } from './page-of-ads.ts';
import { addRow, median } from './row.ts';

const rounds = Number(process.argv[2] ?? 1000);
/** Until the engine has compiled what it will. */
const warmUp = 200;
/** In milliseconds: what the server may take longer than the SDK alone, and what an answer it kept may take. */
const [maxAddedMs, maxCachedMs] = [1.2, 0.8];

const page = await startChild<PageOfAds>('page-of-ads.ts');
const baseUrl = `http://127.0.0.1:${page.ready.port}`;

const dispatcher = new Agent();
async function direct(): Promise<void> {
  const headers = { authorization: 'Bearer svc_live_bench', 'content-type': 'application/json' };
  const { body } = await request(`${baseUrl}/v1/ads/search`, { method: 'POST', headers, body: '{}', dispatcher });
  JSON.parse(await body.text());
}

/** One way into the server: asks for the page, anew or as it may be kept, and resolves when the answer is there. */
interface Way {
  search(fresh: boolean): Promise<unknown>;
  end(): Promise<unknown>;
}

const call = (id: number, method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
const searching = (fresh: boolean) => ({ name: 'search_ads', arguments: fresh ? { fresh } : {} });

async function overStdio(args: readonly string[]): Promise<Way> {
  const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: 'svc_live_bench', AD_LIBRARY_BASE_URL: baseUrl };
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let answered = (_: unknown) => {};
  child.stdout.on('data', (bytes: Buffer) => {
    if (bytes.at(-1) === newline) answered(undefined);
  });
  let id = 0;
  const send = (method: string, params: object) =>
    new Promise((resolve) => {
      answered = resolve;
      id++;
      child.stdin.write(`${call(id, method, params)}\n`);
    });
  await send('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  });
  return { search: (fresh) => send('tools/call', searching(fresh)), end: async () => child.stdin.end() };
}

async function overHttp(url: string, end: Way['end']): Promise<Way> {
  const headers = {
    authorization: 'Bearer svc_live_bench',
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  const search = async (fresh: boolean) => {
    const { body } = await request(url, {
      method: 'POST',
      headers,
      body: call(1, 'tools/call', searching(fresh)),
      dispatcher,
    });
    await body.text();
  };
  return { search, end };
}

const newline = 0x0a;
const say = (line: string) => process.stdout.write(`${line}\n`);
const ms = (time: number) => `${time.toFixed(2)} ms`;

/** The server, the SDK alone and the direct call in turns, so that all meet the same load; medians. */
async function compare(name: string, server: Way, sdk: Way): Promise<void> {
  const ways = {
    direct,
    alone: () => sdk.search(false),
    fresh: () => server.search(true),
    kept: () => server.search(false),
  };
  const times: Record<string, number[]> = { direct: [], alone: [], fresh: [], kept: [] };
  for (let round = -warmUp; round < rounds; round++) {
    for (const [way, run] of Object.entries(ways)) {
      const began = performance.now();
      await run();
      if (round >= 0) times[way]?.push(performance.now() - began);
    }
  }
  await Promise.all([server.end(), sdk.end()]);
  const [bare = 0, alone = 0, fresh = 0, kept = 0] = Object.values(times).map(median);
  const limit = (words: string, holds: boolean) => (name === 'stdio' ? { limit: words, holds } : {});
  addRow({
    what: `50 ads over ${name}`,
    ours: ms(fresh),
    beside: `${ms(alone)} by the SDK alone, ${ms(bare)} direct`,
    ratio: fresh / alone,
    ...limit(`at most ${maxAddedMs} ms more than the SDK`, fresh - alone <= maxAddedMs),
  });
  addRow({
    what: `50 kept ads over ${name}`,
    ours: ms(kept),
    beside: `${ms(bare)} direct`,
    ratio: kept / bare,
    ...limit(`at most ${maxCachedMs} ms`, kept <= maxCachedMs),
  });
}

const { ads, bytes, source } = page.ready;
say(`node ${process.version}, ${ads} ads, ${bytes.toLocaleString('en')} bytes, ${source}; medians`);
const sdkServer = await bundledSdkServer();
await compare('stdio', await overStdio(commandLine().args), await overStdio([sdkServer, 'stdio', baseUrl]));
const served = await startHttpCommand(['--base-url', baseUrl]);
const sdk = await startChild<AddressInfo>(sdkServer, '2025-11-25', baseUrl);
await compare(
  'HTTP',
  await overHttp(served.url, served.close),
  await overHttp(`http://127.0.0.1:${sdk.ready.port}/mcp`, async () => sdk.process.kill()),
);
page.process.kill();
await dispatcher.close();
