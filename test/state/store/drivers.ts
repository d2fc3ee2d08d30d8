import { afterAll, beforeAll, describe } from 'vitest';
import { postgresStore } from '../../../src/state/postgres/postgres-store.ts';
import { redisStore } from '../../../src/state/redis/redis-store.ts';
import { MemoryStore } from '../../../src/state/store/memory-store.ts';
import type { Store } from '../../../src/state/store/store.ts';
import {
  describeWithPostgres,
  type PostgresEndpoint,
  startPgBouncer,
  startPostgres,
} from '../../support/postgres-server.ts';
import { describeWithRedis, startRedis } from '../../support/redis-server.ts';

/** Opens the store of one more process; all of them see the same. */
type OpenStore = () => Promise<Store>;

const ignore = () => {};

const openPostgres = ({ port, user, password, database }: PostgresEndpoint) =>
  postgresStore({ host: '127.0.0.1', port, user, password, database, ssl: false }, ignore);

/** Runs tests over every kind of store there is. Names in it are those of a test alone if it makes them up. */
export function describeEveryStore(name: string, tests: (open: OpenStore) => void): void {
  const closing: (() => Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closing.splice(0).reverse()) await close();
  };
  const opening = (open: () => Store): OpenStore => {
    return async () => {
      const store = open();
      closing.push(() => store.close());
      await store.connect();
      return store;
    };
  };

  describe(`${name}, in memory`, () => {
    const store = new MemoryStore(Date.now);
    tests(async () => store);
  });

  describeWithRedis(`${name}, in Redis`, () => {
    let port: number;
    beforeAll(async () => {
      const server = await startRedis();
      closing.push(server.close);
      port = server.port;
    });
    afterAll(closeAll);
    tests(opening(() => redisStore({ tls: false, hosts: [{ host: '127.0.0.1', port }] }, ignore)));
  });

  for (const pooled of [false, true])
    describeWithPostgres(`${name}, in PostgreSQL${pooled ? ' behind a pooler' : ''}`, () => {
      let endpoint: PostgresEndpoint;
      beforeAll(async () => {
        const server = await startPostgres();
        closing.push(server.close);
        endpoint = server;
        if (!pooled) return;
        const pooler = await startPgBouncer(server.port);
        closing.push(pooler.close);
        endpoint = pooler;
      });
      afterAll(closeAll);
      tests(opening(() => openPostgres(endpoint)));
    });
}
