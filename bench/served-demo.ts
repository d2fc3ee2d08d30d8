import { openDemoLibrary } from '../src/library/demo/demo.ts';
import { listen } from '../src/transports/http/server.ts';

/**
 * The message that this process sends when it serves the demo library over HTTP: the base URL, and an API key for each
 * simulated caller.
 */
export interface ServedDemo {
  baseUrl: string;
  callers: {
    /**
     * The name that `whoami` returns for this API key. If a response contains another name, the benchmark knows that
     * the response was sent to the wrong caller.
     */
    name: string;
    apiKey: string;
  }[];
}

/**
 * Serves the demo library (generated ads) over HTTP. This program runs in a separate process, so that its memory is
 * measured separately. Run it with `node served-demo.ts <callers>`.
 */
const { library } = await openDemoLibrary({ now: Date.now });
const listener = await listen((request) => library.fetch(request), { host: '127.0.0.1', port: 0 });
const unlimitedAmount = 1_000_000_000;
const unlimitedPlan = { credits: unlimitedAmount, hourlyLimit: unlimitedAmount, dailyLimit: unlimitedAmount };
const callers = Array.from({ length: Number(process.argv[2]) }, (_, callerNumber) => {
  const name = `caller-${callerNumber}-`;
  return { name, apiKey: library.keys.create({ name, ...unlimitedPlan }).key };
});
// The library loads its data in the background. Send a request that waits until the data is loaded.
await library.fetch(new Request(`${listener.url}/v1/whoami`));
process.send?.({ baseUrl: listener.url, callers } satisfies ServedDemo);
