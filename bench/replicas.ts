/**
 * What it costs to share the state: calls a second with cached answers in one process and in several, what each
 * kind of store adds to a cached answer, and the room it takes for 100,000 ads. Needs `redis-server` or PostgreSQL.
 * `npm run bench:replicas -- --seconds 5 --callers 32 --ads 100000`
 */
import { parseArgs } from 'node:util';
import { type StateServer, stateServers } from '../test/support/stores.ts';
import { startChild } from './child.ts';
import type { ManyAds } from './many-ads.ts';
import { megabytes } from './memory.ts';
import { askCached, callerOf, type Fleet, startFleet, stopFleet } from './replica-calls.ts';
import { addBoundedRow, addRow, median, quantile, skipBenchmark } from './row.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    callers: { type: 'string', default: '32' },
    ads: { type: 'string', default: '100000' },
  },
});
const ms = 1000 * Number(values.seconds);
const callers = Number(values.callers);
/** What a store may add to a cached answer at the median, in milliseconds. */
const maxAdded: Record<string, number> = { Redis: 1, PostgreSQL: 2 };
const adsOfKey = 10_000;

const say = (line: string) => process.stdout.write(`${line}\n`);
const fixed = (value: number) => `${value.toFixed(2)} ms`;

// Each process that is started is ended with this one.
process.setMaxListeners(0);

const installed = stateServers.filter(({ isInstalled }) => isInstalled);
if (installed.length === 0) skipBenchmark('there is no redis-server, and no PostgreSQL');
for (const { name, start } of installed) {
  const server = await start({ isDurable: true });
  try {
    await measureCalls(name, server);
    await measureRoom(name, server, Number(values.ads) / adsOfKey);
  } finally {
    await server.close();
  }
}

async function measureCalls(store: string, server: StateServer): Promise<void> {
  const upstream = await startChild<{ port: number }>('upstream.ts', '10');
  const baseUrl = `http://127.0.0.1:${upstream.ready.port}`;
  const shared = { baseUrl, stateUrl: server.url };
  const alone = await startFleet('memory, 1 process', 1, { baseUrl });
  const one = await startFleet(`${store}, 1 process`, 1, shared);
  const fleets = [alone, one];
  for (const count of [2, 3]) fleets.push(await startFleet(`${store}, ${count} processes`, count, shared));

  say(`cached answers of 10 ads, ${callers} callers, ${values.seconds} s each`);
  for (const fleet of fleets) {
    await askCached(fleet, { callers, ms: 1000 });
    const times = await askCached(fleet, { callers, ms });
    const rate = (1000 * times.length) / ms;
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)].map(fixed);
    say(`  ${fleet.name.padEnd(24)}${rate.toFixed(0).padStart(6)} calls a second, p50 ${p50}, p99 ${p99}`);
  }
  await measureAdded(store, alone, one);
  for (const fleet of fleets) await stopFleet(fleet);
  upstream.process.kill();
}

/** One caller, in turns, so that what else the machine does meets both. */
async function measureAdded(store: string, alone: Fleet, shared: Fleet): Promise<void> {
  const times: [number[], number[]] = [[], []];
  for (let turn = 0; turn < 10; turn++) {
    for (const [index, fleet] of [alone, shared].entries())
      times[index]?.push(...(await askCached(fleet, { callers: 1, ms: ms / 10 })));
  }
  const [memory, stored] = times.map(median) as [number, number];
  const limit = maxAdded[store] ?? 0;
  addRow({
    what: `10 kept ads over HTTP, with ${store}`,
    ours: fixed(stored),
    beside: `${fixed(memory)} with memory`,
    ratio: stored / memory,
    limit: `at most ${limit} ms more`,
    holds: stored - memory <= limit,
  });
}

/** Gathers all ads with several keys. Returns the milliseconds of the first: a process that is warm is faster. */
async function gatherAll(fleet: Fleet, keys: number): Promise<number> {
  let first = 0;
  for (let key = 0; key < keys; key++) {
    const began = performance.now();
    const caller = callerOf(fleet, `svc_live_key_${key}`);
    const gather = () => caller.call('gather_ads', { filters: {}, maxAds: adsOfKey, maxCredits: 1000 });
    for (let text = ''; !text.includes('"complete":true'); ) text = await gather();
    await caller.close();
    first ||= performance.now() - began;
  }
  return first;
}

/** Gathers ads with several keys, and reads them on another replica. */
async function measureRoom(store: string, server: StateServer, keys: number): Promise<void> {
  server.clear();
  const service = await startChild<ManyAds>('many-ads.ts', String(adsOfKey));
  const baseUrl = `http://127.0.0.1:${service.ready.port}`;
  const settings = { baseUrl, stateUrl: server.url };
  const alone = await startFleet('memory', 1, { baseUrl });
  const inMemory = await gatherAll(alone, 1);
  await stopFleet(alone);
  const [one, other] = [await startFleet('one', 1, settings), await startFleet('other', 1, settings)];
  const before = server.bytes().all;
  const gathered = await gatherAll(one, keys);
  const began = performance.now();
  const reader = callerOf(other, 'svc_live_key_0');
  await reader.call('query_ads', { sql: 'SELECT count(*) FROM ads' });
  const read = performance.now() - began;
  await reader.close();
  for (const fleet of [one, other]) await stopFleet(fleet);
  service.process.kill();
  const ads = keys * adsOfKey;
  const { all, kinds } = server.bytes();
  const bytes = all - before;
  say(`${ads} ads of ${keys} keys, ${service.ready.source}:`);
  say(
    `  ${megabytes(bytes)} MB of ${store} with cached answers and gatherings, ${(bytes / ads).toFixed(0)} bytes an ad`,
  );
  for (const [kind, held] of kinds.slice(0, 4)) say(`  ${megabytes(held)} MB of it under keys of the kind ${kind}`);
  const seconds = (time: number) => `${(time / 1000).toFixed(1)} s`;
  addRow({
    what: `10,000 ads gathered, with ${store}`,
    ours: seconds(gathered),
    beside: `${seconds(inMemory)} with memory`,
    ratio: gathered / inMemory,
    ...{ limit: 'at most 2.00', holds: gathered <= 2 * inMemory },
  });
  addBoundedRow(`first SQL statement over 10,000 ads that another replica gathered, with ${store}`, read, 5000);
}
