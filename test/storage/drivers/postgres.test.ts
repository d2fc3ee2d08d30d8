import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../../src/storage/drivers/postgres.ts';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../../support/store-servers.ts';

const createDocument = (version: string, ttlMs = 60_000) => ({ version, body: Buffer.from(version), ttlMs });

describeWithPostgres('The PostgreSQL driver', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  const open = (user: Partial<PostgresServer> = {}, options = {}) => {
    const { port, user: name, password, database } = { ...server, ...user };
    const address = { host: '127.0.0.1', port, user: name, password, database, ssl: false } as const;
    const store = openPostgresStore(address, () => {}, options);
    onTestFinished(() => store.close());
    return store;
  };

  test('PostgreSQL tables are created only once if several replicas start at the same time', async () => {
    const stores = Array.from({ length: 8 }, () => open());
    await Promise.all(stores.map((store) => store.connect()));
    expect(server.sql('SELECT number FROM ad_library.format')).toBe('1');
    server.sql(`CREATE ROLE guest LOGIN PASSWORD 'guest';
      GRANT USAGE ON SCHEMA ad_library TO guest;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ad_library TO guest`);
    const guest = open({ user: 'guest', password: 'guest' });
    await guest.connect();
    expect(await guest.swapDocument('guest', '', createDocument('1'))).toMatchObject({ isDone: true });
    await guest.putItems('guest', [{ id: 'a', expectedSequenceNumber: 0, body: Buffer.of(1) }], {
      ttlMs: 60_000,
      maxBytes: 10,
    });
    expect((await guest.readItemsSince('guest', 0))?.items).toHaveLength(1);
    server.sql('UPDATE ad_library.format SET number = 2');
    await expect(open().connect()).rejects.toThrow('another version of this program');
    server.sql('UPDATE ad_library.format SET number = 1');
  });

  test('the server deletes all expired PostgreSQL rows, even tens of thousands of them', async () => {
    const store = open({}, { sweepEveryMs: 2500 });
    await store.connect();
    server.sql(
      `INSERT INTO ad_library.documents SELECT 'many ' || i, '1', '', now() FROM generate_series(1, 30000) AS i`,
    );
    await store.swapDocument('ends', '', createDocument('1', 150));
    await store.swapDocument('stays', '', createDocument('1'));
    const items = [{ id: 'a', expectedSequenceNumber: 0, body: Buffer.of(1) }];
    await store.putItems('ends', items, { ttlMs: 150, maxBytes: 10 });
    await store.putItems('stays', items, { ttlMs: 60_000, maxBytes: 10 });
    const readRemainingIds = () =>
      server.sql(`SELECT key FROM ad_library.documents WHERE key IN ('ends', 'stays') OR key LIKE 'many %'
        UNION ALL SELECT name FROM ad_library.items WHERE name IN ('ends', 'stays')`);
    await expect.poll(readRemainingIds).toBe('stays\nstays');
  });

  test('reads from PostgreSQL fail while the database does not respond and work again afterwards', async () => {
    const store = open();
    await store.connect();
    await store.swapDocument('silent', '', createDocument('1'));
    for (const [stop, goOn] of [
      [server.pause, server.resume],
      [server.kill, server.restart],
    ] as const) {
      await stop();
      const startMs = performance.now();
      const failures = await Promise.allSettled(Array.from({ length: 15 }, () => store.readDocument('silent')));
      expect(new Set(failures.map(({ status }) => status))).toEqual(new Set(['rejected']));
      expect(performance.now() - startMs).toBeLessThan(15_000);
      await goOn();
      await expect
        .poll(() => store.readDocument('silent').catch(() => {}))
        .toMatchObject({
          document: { version: '1' },
        });
    }
  });

  test('an error about a failed PostgreSQL connection never contains the password', async () => {
    const storeWithWrongPassword = open({ password: 'wrong p@ssword' });
    await expect(storeWithWrongPassword.connect()).rejects.toThrow(/^(?!.*p@ss).*authentication/);
    await open().connect();
    expect(server.sql("SELECT string_agg(attstorage::text, '') FROM pg_attribute WHERE attname = 'body'")).toBe('ee');
  });
});
