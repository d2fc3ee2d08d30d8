import { setTimeout as wait } from 'node:timers/promises';
import { serveHttp } from '../test/support/process.ts';
import { attach, debuggerAddress, inspected } from './debugger.ts';
import { bytesOf, growthTable } from './heap.ts';
import { megabytes, residentMegabytes } from './memory.ts';
import { type HttpCaller, httpCaller, type Outcome, strangersSeen } from './requests.ts';
import type { SoakCaller } from './traffic.ts';

export interface SoakOptions {
  baseUrl: string;
  callers: SoakCaller[];
  say(line: string): void;
}

/** Answers go stale in the run, and keys are refused without the address being shut out: both is to be seen here. */
const settings = ['--cache-seconds', '5', '--refusals-per-minute', '1000000'];

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
/** Each ad or page that is new to a key lies in its dataset as one Buffer, up to 256 MB in all: these are counted, too. */
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
  const measure = async () => ({ census: await inside.census(), rss: residentMegabytes(pid), keys: strangersSeen() });

  const warmUp = Math.max(shortestWarmUp, seconds / 10);
  await load(all, warmUp, count);
  const before = await measure();
  const series = [await inside.heapUsed()];
  for (let turn = 0; turn < turns; turn++) {
    await load(all, Math.max(shortestWarmUp, seconds - warmUp) / turns, count);
    series.push(await inside.heapUsed());
  }
  const after = await measure();

  inside.close();
  await Promise.all(all.map((caller) => caller.close()));
  const { code, stderr } = await server.close();

  const [then, now] = [bytesOf(before.census), bytesOf(after.census)];
  const keys = after.keys - before.keys;
  const buffers = ({ census }: typeof before) => census.get('Buffer')?.count ?? 0;
  const items = Math.max(0, buffers(after) - buffers(before));
  const bound = Math.max(least, then * share) + keys * bytesPerLedger + items * bytesPerItem;
  const requests = [...outcomes.values()].reduce((sum, { right, wrong }) => sum + right + wrong, 0);
  say(`HTTP: ${callers.length} callers, ${seconds} s of which ${warmUp} s to warm up, ${requests} requests`);
  for (const [kind, { right, wrong }] of [...outcomes].toSorted(([one], [other]) => one.localeCompare(other))) {
    say(`  ${kind.padEnd(40)}${String(right).padStart(8)} right${String(wrong).padStart(8)} wrong`);
  }
  for (const line of growthTable(before.census, after.census)) say(line);
  say('what bounds what is kept: docs/bounds.md');
  say('counts before, and after:');
  for (const [name, most] of Object.entries(kept)) {
    const counts = [before, after].map(({ census }) => census.get(name)?.count ?? 0);
    say(`  ${name.padEnd(42)}${counts.map((count) => String(count).padStart(6)).join('')}  ${most}`);
  }
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

/** What should not have grown whatever was asked, by the name of its constructor. */
const kept: Record<string, string> = {
  WebStandardStreamableHTTPServerTransport: 'one for each request under way',
  Places: 'one for all calls, one for lists, and one for each key with a call under way',
  AbortSignal: 'one for each call under way, and for each connection of the pool',
  Socket: 'one for each open connection, at most 64 to the service',
};
