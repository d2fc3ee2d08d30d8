import { setTimeout as wait } from 'node:timers/promises';
import { serveHttp } from '../test/support/process.ts';
import { attach, debuggerAddress, inspected } from './debugger.ts';
import { megabytes, residentMegabytes } from './memory.ts';
import { type HttpCaller, httpCaller, itemsSeen, type Outcome, unknownKeysSeen } from './requests.ts';
import type { SoakCaller } from './traffic.ts';

export interface SoakOptions {
  baseUrl: string;
  callers: SoakCaller[];
  say(line: string): void;
}

/** Answers go stale in the run, and keys are refused without the address being shut out: both is to be seen here. */
const settings = ['--cache-seconds', '5', '--refusals-per-minute', '1000000', '--metrics'];

/**
 * Full caches are measured in characters of JSON, and what those take as objects differs with what is in them at the
 * moment: so much of the heap, and so many bytes at least.
 */
const share = 0.06;
const least = 4 * 1024 * 1024;
/** Seconds in which callers fill every cache that can be filled, and have its contents exchanged once. */
const shortestWarmUp = 25;
/** Growth that comes to an end shows in the series: what fills up slows down. */
const turns = 4;
/** A key that was seen takes a ledger, of which there are 50,000 at most: too many to reach here, so these are counted. */
const bytesPerLedger = 1024;
/** Each ad or page that is new to a key lies in its dataset, up to 256 MB in all: those in answers are counted, too. */
const bytesPerItem = 3 * 1024;

/** Mixed traffic over HTTP; resolves with whether the heap kept within its bound and every answer was right. */
export async function soakHttp({ baseUrl, callers, say }: SoakOptions, seconds: number): Promise<boolean> {
  const server = await serveHttp(['--base-url', baseUrl, ...settings], inspected);
  const { pid } = server.process.child;
  const [, address = ''] = await server.process.says(debuggerAddress);
  const inside = await attach(address);
  const all = callers.map((caller, number) => httpCaller([server.origin], caller, number));
  const outcomes = new Map<string, { right: number; wrong: number }>();
  const complaints: string[] = [];
  const count = ({ kind, wrong }: Outcome) => {
    const counted = outcomes.get(kind) ?? { right: 0, wrong: 0 };
    outcomes.set(kind, counted);
    counted[wrong === undefined ? 'right' : 'wrong']++;
    if (wrong !== undefined && complaints.length < 10) complaints.push(`${kind}: ${wrong}`);
  };
  const measure = async () => ({
    ...{ heap: await inside.heapUsed(), rss: residentMegabytes(pid) },
    ...{ keys: unknownKeysSeen(), items: itemsSeen(), held: await held(server.origin) },
  });

  const warmUp = Math.max(shortestWarmUp, seconds / 10);
  await load(all, warmUp, count);
  const before = await measure();
  const series = [before.heap];
  for (let turn = 0; turn < turns; turn++) {
    await load(all, Math.max(shortestWarmUp, seconds - warmUp) / turns, count);
    series.push(await inside.heapUsed());
  }
  const after = await measure();

  inside.close();
  await Promise.all(all.map((caller) => caller.close()));
  const { code, stderr } = await server.close();

  const [then, now] = [before.heap, after.heap];
  const keys = after.keys - before.keys;
  const items = after.items - before.items;
  const bound = Math.max(least, then * share) + keys * bytesPerLedger + items * bytesPerItem;
  const requests = [...outcomes.values()].reduce((sum, { right, wrong }) => sum + right + wrong, 0);
  say(`HTTP: ${callers.length} callers, ${seconds} s of which ${warmUp} s to warm up, ${requests} requests`);
  for (const [kind, { right, wrong }] of [...outcomes].toSorted(([one], [other]) => one.localeCompare(other))) {
    say(`  ${kind.padEnd(40)}${String(right).padStart(8)} right${String(wrong).padStart(8)} wrong`);
  }
  say('what bounds what is kept: docs/bounds.md');
  say('what is held, as the metrics say, before and after:');
  for (const [name, count] of after.held)
    say(`  ${name.padEnd(64)}${String(before.held.get(name) ?? 0).padStart(8)}${String(count).padStart(8)}`);
  say(`heap in use, in equal turns: ${series.map(megabytes).join(', ')} MB`);
  say(`heap ${megabytes(then)} MB before, ${megabytes(now)} MB after; RSS ${before.rss} MB, then ${after.rss} MB`);
  say(
    `grew by ${megabytes(now - then)} MB, at most ${megabytes(bound)}: ${share * 100} % of the heap or ${megabytes(least)} MB, ${bytesPerLedger} bytes for each of ${keys} new keys, ${bytesPerItem} for each of ${items} new ads and pages`,
  );
  for (const complaint of complaints) say(`WRONG ${complaint}`);
  if (code !== 0 || stderr.includes('"level":"error"')) say(`ended with ${code}: ${stderr.slice(-1000)}`);
  return now - then <= bound && complaints.length === 0 && code === 0;
}

async function load(callers: HttpCaller[], seconds: number, count: (outcome: Outcome) => void): Promise<void> {
  const until = performance.now() + seconds * 1000;
  const ask = async (caller: HttpCaller) => {
    while (performance.now() < until) count(await caller.once());
  };
  await Promise.all(callers.map(ask));
  // What callers left behind comes to its end.
  await wait(1000);
}

/** Handles, timers, requests and calls that the server has at the moment, by their names in its metrics. */
async function held(origin: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const lines = text.matchAll(/^((?:nodejs_active_\w+|ad_library_calls_\w+)\S*) (\d+)$/gm);
  return new Map([...lines].map(([, name = '', count]) => [name, Number(count)]));
}
