import { openDemoLibrary } from '../src/library/demo/demo.ts';
import { listen } from '../src/transports/http/server.ts';

/** The demo library over real HTTP: its address, and a key for each caller. */
export interface ServedDemo {
  baseUrl: string;
  callers: {
    /** What `whoami` says of the key: an answer in the wrong hands shows. */
    name: string;
    key: string;
  }[];
}

/** In a process of its own, so that its memory is nobody else's. `node served-demo.ts <callers>`. */
const { library } = await openDemoLibrary({ now: Date.now });
const listener = await listen((request) => library.fetch(request), { host: '127.0.0.1', port: 0 });
const endless = 1_000_000_000;
const plan = { credits: endless, hourlyLimit: endless, dailyLimit: endless };
const callers = Array.from({ length: Number(process.argv[2]) }, (_, number) => {
  const name = `caller-${number}-`;
  return { name, key: library.keys.create({ name, ...plan }).key };
});
// It fills itself while it has time to spare, and the first request waits for that.
await library.fetch(new Request(`${listener.url}/v1/whoami`));
process.send?.({ baseUrl: listener.url, callers } satisfies ServedDemo);
