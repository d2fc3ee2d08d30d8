/**
 * What a tool call takes on top of the same call of the API: a page of 50 ads, with undici and `JSON.parse`, then
 * through the built server, over stdio and over HTTP, asked anew and answered from what it kept.
 * `npm run bench:calls [-- ROUNDS]`. The client speaks the protocol and nothing else: what an SDK's client does with a
 * result is not the server's time. The service is a process of its own, as it is for everybody.
 */
import { spawn } from 'node:child_process';
import { Agent, request } from 'undici';
import { command, serveHttp } from '../test/support/process.ts';
import { startChild } from './child.ts';
import type { PageOfAds } from './page-of-ads.ts';
import { addRow } from './row.ts';

const rounds = Number(process.argv[2] ?? 1000);
/** Until the engine has compiled what it will. */
const warmUp = 200;

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

async function overStdio(): Promise<Way> {
  const { command: file, args } = command();
  const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: 'svc_live_bench', AD_LIBRARY_BASE_URL: baseUrl };
  const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
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

async function overHttp(): Promise<Way> {
  const { url, close } = await serveHttp(['--base-url', baseUrl]);
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
  return { search, end: close };
}

const newline = 0x0a;
const say = (line: string) => process.stdout.write(`${line}\n`);
const ms = (time: number) => `${time.toFixed(2)} ms`;

/** The server and the direct call in turns, so that both meet the same load; medians. */
async function compare(name: string, open: () => Promise<Way>): Promise<boolean> {
  const { search, end } = await open();
  const ways = { direct, fresh: () => search(true), kept: () => search(false) };
  const times: Record<string, number[]> = { direct: [], fresh: [], kept: [] };
  for (let round = -warmUp; round < rounds; round++) {
    for (const [way, run] of Object.entries(ways)) {
      const began = performance.now();
      await run();
      if (round >= 0) times[way]?.push(performance.now() - began);
    }
  }
  await end();
  const median = (way: keyof typeof ways) => (times[way] ?? []).toSorted((a, b) => a - b)[rounds >> 1] ?? 0;
  const [bare, fresh, kept] = [median('direct'), median('fresh'), median('kept')];
  const overhead = fresh - bare;
  const beside = `${ms(bare)} direct`;
  say(
    `${name}: direct ${ms(bare)}, through the server ${ms(fresh)} (${ms(overhead)} more), kept by the server ${ms(kept)}`,
  );
  const promised = name === 'stdio';
  const limit = (words: string, holds: boolean) => (promised ? { limit: words, holds } : {});
  addRow({
    what: `50 ads over ${name}`,
    ours: ms(fresh),
    beside,
    ratio: fresh / bare,
    ...limit('at most 1.2 ms more', overhead <= 1.2),
  });
  addRow({
    what: `50 kept ads over ${name}`,
    ours: ms(kept),
    beside,
    ratio: kept / bare,
    ...limit('at most 0.6 ms', kept <= 0.6),
  });
  return !promised || (overhead <= 1.2 && kept <= 0.6);
}

const { ads, bytes, source } = page.ready;
say(`node ${process.version}, ${ads} ads, ${bytes.toLocaleString('en')} bytes, ${source}; medians`);
const stdio = await compare('stdio', overStdio);
const http = await compare('HTTP', overHttp);
page.process.kill();
await dispatcher.close();
process.exitCode = stdio && http ? 0 : 1;
