import { hash } from 'node:crypto';
import { Client } from 'undici';
import { callOf, goodHeaders } from '../test/support/http.ts';
import { type Served, serveHttp } from '../test/support/process.ts';

/** Processes that share a state, or one that shares none. */
export interface Fleet {
  name: string;
  servers: Served[];
}

const secret = 'a secret of the benchmarks, long enough';

export async function startFleet(name: string, count: number, settings: { baseUrl: string; stateUrl?: string }) {
  const { baseUrl, stateUrl } = settings;
  const environment = stateUrl ? { AD_LIBRARY_STATE_URL: stateUrl, AD_LIBRARY_STATE_SECRET: secret } : {};
  const start = () => serveHttp(['--base-url', baseUrl, '--cache-seconds', '3600'], environment);
  const servers = await Promise.all(Array.from({ length: count }, start));
  // Also those of a benchmark that failed.
  process.once('exit', () => {
    for (const server of servers) server.process.child.kill();
  });
  return { name, servers };
}

/** A caller with a key of its own and a connection to each process, whose calls go to one after the other. */
export function callerOf({ servers }: Fleet, key: string) {
  const clients = servers.map(({ origin }) => new Client(origin));
  let count = 0;
  return {
    call: async (tool: string, args: object): Promise<string> => {
      const client = clients[count++ % clients.length] as Client;
      const request = { path: '/mcp', method: 'POST' as const, headers: goodHeaders(key) };
      const answer = await client.request({ ...request, body: JSON.stringify(callOf(tool, args)) });
      const text = await answer.body.text();
      if (answer.statusCode !== 200 || text.includes('"isError"')) throw new Error(text.slice(0, 500));
      return text;
    },
    close: () => Promise.all(clients.map((client) => client.close())),
  };
}

/** Milliseconds of each call of several callers, each of whom asks for one cached answer again and again. */
export async function askCached(fleet: Fleet, { callers, ms }: { callers: number; ms: number }): Promise<number[]> {
  const times: number[] = [];
  const ask = async (_: unknown, number: number) => {
    const key = `svc_live_caller-${number}`;
    // As upstream.ts names whoever sends it.
    const name = hash('sha256', `Bearer ${key}`).slice(0, 12);
    const caller = callerOf(fleet, key);
    await caller.call('search_ads', { limit: 10 });
    const end = performance.now() + ms;
    for (let began = performance.now(); began < end; began = performance.now()) {
      const text = await caller.call('search_ads', { limit: 10 });
      times.push(performance.now() - began);
      if (!text.includes(name) || !text.includes('"cached":true')) throw new Error(`not a cached answer of ${name}`);
    }
    await caller.close();
  };
  await Promise.all(Array.from({ length: callers }, ask));
  return times;
}

export async function stopFleet({ servers }: Fleet): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}
