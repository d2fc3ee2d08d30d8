import { afterEach, expect } from 'vitest';
import { callOf, goodHeaders, keepAlive } from './http.ts';
import { type Served, serveHttp } from './process.ts';
import { type Result, readResult } from './server.ts';

/** One of several processes behind a load balancer. */
export interface Replica extends Served {
  call(name: string, args?: object, key?: string): Promise<Result>;
  get(path: string): Promise<{ status: number; text: string }>;
  /** Ends it without warning. */
  kill(): Promise<void>;
}

/** Replicas of the built command, and a load balancer that sends each call to the next one. */
export interface Replicas {
  all: Replica[];
  call(name: string, args?: object, key?: string): Promise<Result>;
  /** Ends one as an update does, and starts another in its place. */
  replace(index: number): Promise<void>;
}

export const replicaSecret = 'a secret of at least 32 characters';
const running = new Set<Replica>();

afterEach(async () => {
  await Promise.all([...running].map((replica) => replica.kill()));
});

export interface ReplicasOptions {
  count: number;
  baseUrl: string;
  /** Which holds their state. */
  server: { url: string };
  args?: string[];
  environment?: Record<string, string>;
  /** Minutes by which the clock of each is fast; none by default. */
  minutesFast?: readonly number[];
}

/** A clock of its own for a process. */
const clock = (minutes: number) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`const now=Date.now;Date.now=()=>now()+${minutes * 60_000}`)}`,
});

export async function startReplicas({
  count,
  baseUrl,
  server,
  args = [],
  environment: own = {},
  minutesFast,
}: ReplicasOptions): Promise<Replicas> {
  const start = async (index: number): Promise<Replica> => {
    const state = { AD_LIBRARY_STATE_URL: server.url, AD_LIBRARY_STATE_SECRET: replicaSecret, ...own };
    const environment = minutesFast ? { ...state, ...clock(minutesFast[index] ?? 0) } : state;
    return replicaOf(await serveHttp(['--base-url', baseUrl, '--log-level', 'info', ...args], environment));
  };
  const all = await Promise.all(Array.from({ length: count }, (_, index) => start(index)));
  const isNew = async (replica: Replica) => (await replica.get('/readyz')).text.includes('state is new');
  // Budgets open once it is known that no other state was there.
  for (const replica of all) await expect.poll(() => isNew(replica), { timeout: 10_000 }).toBe(false);
  let next = 0;
  return {
    all,
    call: (...call) => (all[next++ % all.length] as Replica).call(...call),
    replace: async (index) => {
      await all[index]?.close();
      all[index] = await start(index);
    },
  };
}

function replicaOf(served: Served): Replica {
  const connection = keepAlive(served.origin);
  const replica: Replica = {
    ...served,
    // A connection for each call: one would answer them in turn.
    call: async (name, args = {}, key) => {
      const own = keepAlive(served.origin);
      try {
        const { json } = await own.send({ headers: goodHeaders(key), body: JSON.stringify(callOf(name, args)) });
        return readResult(json.result);
      } finally {
        own.close();
      }
    },
    get: (path) => connection.send({ method: 'GET', path }),
    kill: async () => {
      running.delete(replica);
      connection.close();
      served.process.child.kill('SIGKILL');
      await served.process.ended;
    },
  };
  running.add(replica);
  return replica;
}
