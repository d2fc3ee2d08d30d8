/**
 * Whether replicas and their store come to rest: long mixed traffic, each call of which goes to the next replica.
 * Needs `redis-server` or PostgreSQL. `npm run soak:replicas -- --seconds 600 --replicas 3 --store PostgreSQL`
 */
import { parseArgs } from 'node:util';
import { serveHttp } from '../test/support/process.ts';
import { type StateServer, stateServers } from '../test/support/stores.ts';
import { startChild } from './child.ts';
import { attach, debuggerAddress, inspected } from './debugger.ts';
import { megabytes, residentMegabytes } from './memory.ts';
import { type HttpCaller, httpCaller, type Outcome } from './requests.ts';
import type { SoakOptions } from './soak-http.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    replicas: { type: 'string', default: '3' },
    store: { type: 'string', default: 'Redis' },
  },
});
const callers = 32;
const settings = ['--cache-seconds', '5', '--refusals-per-minute', '1000000'];
const turns = 5;
/** How much the heap of a replica and the store may grow after the third turn. */
const maxGrowth = { heap: 16 * 1024 * 1024, store: 1.5 };

const say = (line: string) => process.stdout.write(`${line}\n`);
const kind = stateServers.find(({ name }) => name === values.store);
if (kind === undefined) throw new Error(`there is no store named ${values.store}`);
const store = await kind.start();
const library = await startChild<Pick<SoakOptions, 'baseUrl' | 'callers'>>('soak-library.ts', String(callers));
const state = {
  AD_LIBRARY_STATE_URL: store.url,
  AD_LIBRARY_STATE_SECRET: 'a secret of the soak, long enough to be one',
};
const replicas = await Promise.all(
  Array.from({ length: Number(values.replicas) }, async () => {
    const server = await serveHttp(['--base-url', library.ready.baseUrl, ...settings], { ...inspected, ...state });
    const [, address = ''] = await server.process.says(debuggerAddress);
    return { server, inside: await attach(address), heaps: [] as number[] };
  }),
);
const origins = replicas.map(({ server }) => server.origin);
const all = library.ready.callers.map((caller, number) => httpCaller(origins, caller, number));
const storeBytes: number[] = [];
const complaints: string[] = [];
let requests = 0;
let rss: number[] = [];
let kinds: ReturnType<StateServer['bytes']>['kinds'] = [];
try {
  for (let turn = 0; turn < turns; turn++) await oneTurn((1000 * Number(values.seconds)) / turns);
} finally {
  for (const caller of all) await caller.close();
  for (const { server, inside } of replicas) {
    inside.close();
    await server.close();
  }
  library.process.kill();
  await store.close();
}
report();

async function oneTurn(ms: number): Promise<void> {
  const end = performance.now() + ms;
  const count = ({ kind, wrong }: Outcome) => {
    requests++;
    if (wrong !== undefined && complaints.length < 10) complaints.push(`${kind}: ${wrong}`);
  };
  const ask = async (caller: HttpCaller) => {
    while (performance.now() < end) count(await caller.once());
  };
  await Promise.all(all.map(ask));
  for (const { inside, heaps } of replicas) heaps.push(await inside.heapUsed());
  const held = store.bytes();
  kinds = held.kinds;
  // What has ended is deleted later by PostgreSQL, whose tables keep the room of it.
  storeBytes.push(kinds.reduce((sum, [, bytes]) => sum + bytes, 0));
  rss = replicas.map(({ server }) => residentMegabytes(server.process.child.pid));
}

function report(): void {
  say(`${replicas.length} replicas, ${callers} callers, ${values.seconds} s in ${turns} turns, ${requests} requests`);
  for (const [index, { heaps }] of replicas.entries())
    say(`  heap ${heaps.map(megabytes).join(', ')} MB; RSS ${rss[index]} MB`);
  say(
    `  ${values.store} ${storeBytes.map(megabytes).join(', ')} MB: ${kinds.map(([kind, bytes]) => `${kind} ${megabytes(bytes)}`).join(', ')}`,
  );
  for (const complaint of complaints) say(`WRONG ${complaint}`);
  const heapsRest = replicas.every(({ heaps }) => (heaps.at(-1) ?? 0) - (heaps[2] ?? 0) <= maxGrowth.heap);
  const storeRests = (storeBytes.at(-1) ?? 0) <= maxGrowth.store * (storeBytes[2] ?? 0);
  const isFine = heapsRest && storeRests && complaints.length === 0;
  say(isFine ? 'at rest' : 'NOT AT REST, or answers were wrong');
  process.exitCode = isFine ? 0 : 1;
}
