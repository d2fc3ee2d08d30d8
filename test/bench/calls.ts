/**
 * What a tool call over stdio takes on top of the same call of the API: a page of 50 ads, once with undici and
 * `JSON.parse`, then over stdio and HTTP through the built server, asked anew and answered from what it kept; in turns, so
 * that all meet the same load. Medians; `npm run bench:calls [-- ROUNDS]`. The client speaks the protocol and nothing
 * else: what an SDK's client does with a result is not the server's time.
 */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, request } from 'undici';
import { command, serveHttp } from '../support/process.ts';
import { addRow } from './row.ts';
import { demoSamples, realSamples } from './samples.ts';

const rounds = Number(process.argv[2] ?? 300);
const warmUp = 50;

const { source, ads } = realSamples() ?? (await demoSamples(Date.now()));
/** A page of 50 ads and about 120 KB: those of the sample that are nearest to the size that makes it so. */
const size = (ad: object) => Math.abs(JSON.stringify(ad).length - 120_000 / 50);
const items = ads.toSorted((one, other) => size(one) - size(other)).slice(0, 50);
const answer = Buffer.from(JSON.stringify({ items, cursor: null, hasMore: false }));

const service = createServer((incoming, outgoing) => {
  incoming.resume().on('end', () => {
    outgoing.writeHead(200, {
      'content-type': 'application/json',
      'content-length': answer.length,
      'x-service-credits-charged': '1',
      'x-service-credits-remaining': '1000',
    });
    outgoing.end(answer);
  });
});
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
const baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;

const dispatcher = new Agent();
async function direct(): Promise<void> {
  const headers = { authorization: 'Bearer svc_live_bench', 'content-type': 'application/json' };
  const { body } = await request(`${baseUrl}/v1/ads/search`, { method: 'POST', headers, body: '{}', dispatcher });
  JSON.parse(await body.text());
}

const { command: file, args } = command();
const env = { PATH: process.env.PATH ?? '', AD_LIBRARY_API_KEY: 'svc_live_bench', AD_LIBRARY_BASE_URL: baseUrl };
const child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map<number, (line: string) => void>();
let rest = '';
child.stdout.setEncoding('utf8').on('data', (text: string) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop() ?? '';
  for (const line of lines) waiting.get(Number(/"id":(\d+)\}?$/.exec(line.slice(-20))?.[1]))?.(line);
});

let id = 0;
function send(method: string, params: object): Promise<string> {
  id++;
  const answered = new Promise<string>((resolve) => waiting.set(id, resolve));
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  return answered;
}

const search = (fresh: boolean) => send('tools/call', { name: 'search_ads', arguments: fresh ? { fresh } : {} });
await send('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
});

const served = await serveHttp(['--base-url', baseUrl]);
const post = async (fresh: boolean) => {
  id++;
  const args = fresh ? { fresh } : {};
  const { body } = await request(served.url, {
    method: 'POST',
    headers: {
      authorization: 'Bearer svc_live_bench',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'search_ads', arguments: args } }),
    dispatcher,
  });
  await body.text();
};

const ways = {
  direct,
  'over stdio': () => search(true),
  'over stdio, kept': () => search(false),
  'over HTTP': () => post(true),
  'over HTTP, kept': () => post(false),
};
const times = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = -warmUp; round < rounds; round++) {
  for (const [name, way] of Object.entries(ways)) {
    const began = performance.now();
    await way();
    if (round >= 0) times.get(name)?.push(performance.now() - began);
  }
}
child.stdin.end();
await served.close();
service.close();
await dispatcher.close();

const median = (name: string) => (times.get(name) ?? []).toSorted((a, b) => a - b)[rounds >> 1] ?? 0;
const say = (line: string) => process.stdout.write(`${line}\n`);
say(
  `node ${process.version}, ${items.length} ads, ${answer.length.toLocaleString('en')} bytes, ${source}; medians of ${rounds}`,
);
for (const name of Object.keys(ways)) {
  say(
    `${name.padEnd(20)}${median(name).toFixed(2).padStart(8)} ms${(median(name) / median('direct')).toFixed(2).padStart(8)} ×`,
  );
}
const ms = (time: number) => `${time.toFixed(2)} ms`;
const beside = ms(median('direct'));
for (const way of ['over stdio', 'over HTTP'] as const) {
  const overhead = median(way) - median('direct');
  const kept = median(`${way}, kept`);
  const limit = { limit: 'at most 1.5 ms more', holds: overhead <= 1.5 };
  addRow({
    what: `50 ads ${way}`,
    ours: ms(median(way)),
    beside: `${beside} direct`,
    ratio: median(way) / median('direct'),
    ...(way === 'over stdio' && limit),
  });
  addRow({
    what: `50 kept ads ${way}`,
    ours: ms(kept),
    beside: `${beside} direct`,
    ratio: kept / median('direct'),
    limit: 'at most 1 ms',
    holds: kept <= 1,
  });
  say(`${way}: overhead ${ms(overhead)}, a kept answer ${ms(kept)}`);
}
const overhead = median('over stdio') - median('direct');
process.exitCode = overhead <= 1.5 && median('over stdio, kept') <= 1 ? 0 : 1;
