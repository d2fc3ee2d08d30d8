import { afterAll, beforeAll, describe } from 'vitest';
import { postgresStore } from '../../src/state/postgres/postgres-store.ts';
import { redisStore } from '../../src/state/redis/redis-store.ts';
import { MemoryStore } from '../../src/state/store/memory-store.ts';
import type { Store } from '../../src/state/store/store.ts';
import { describeWithPostgres, hasPostgres, startPgBouncer, startPostgres } from './postgres-server.ts';
import { describeWithRedis, hasRedis, startRedis } from './redis-server.ts';

/** A server that was started for tests. */
interface Started {
  /** The store of one more process; all of them see the same. */
  open(): Store;
  close(): Promise<void>;
}

interface RealStore {
  name: string;
  isInstalled: boolean;
  describe: typeof describeWithRedis;
  start(): Promise<Started>;
}

const ignore = () => {};

async function startedPostgres(isPooled: boolean): Promise<Started> {
  const server = await startPostgres();
  const pooler = isPooled ? await startPgBouncer(server.port) : undefined;
  const { port, user, password, database } = pooler ?? server;
  return {
    open: () => postgresStore({ host: '127.0.0.1', port, user, password, database, ssl: false }, ignore),
    close: async () => {
      await pooler?.close();
      await server.close();
    },
  };
}

async function startedRedis(): Promise<Started> {
  const { port, close } = await startRedis();
  return { open: () => redisStore({ tls: false, hosts: [{ host: '127.0.0.1', port }] }, ignore), close };
}

/** Every kind of store that is a server of its own. */
export const realStores: RealStore[] = [
  { name: 'Redis', isInstalled: hasRedis, describe: describeWithRedis, start: startedRedis },
  ...[false, true].map((isPooled) => ({
    name: `PostgreSQL${isPooled ? ' behind a pooler' : ''}`,
    isInstalled: hasPostgres,
    describe: describeWithPostgres,
    start: () => startedPostgres(isPooled),
  })),
];

/** Runs tests over every kind of store. Accounts, documents and collections in it are those of a test if it makes up their names. */
export function describeEveryStore(
  name: string,
  tests: (open: () => Promise<Store>, kind: { isReal: boolean }) => void,
): void {
  describe(`${name}, in memory`, () => {
    const store = new MemoryStore(Date.now);
    tests(async () => store, { isReal: false });
  });
  for (const { name: kind, describe: describeWith, start } of realStores)
    describeWith(`${name}, in ${kind}`, () => {
      let server: Started;
      const opened: Store[] = [];
      beforeAll(async () => {
        server = await start();
      });
      afterAll(async () => {
        for (const store of opened) await store.close();
        await server.close();
      });
      const open = async () => {
        const store = server.open();
        opened.push(store);
        await store.connect();
        return store;
      };
      tests(open, { isReal: true });
    });
}
