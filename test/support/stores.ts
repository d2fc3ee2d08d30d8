import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { FileStore } from '../../src/storage/drivers/file.ts';
import { MemoryStore } from '../../src/storage/drivers/memory.ts';
import { openPostgresStore } from '../../src/storage/drivers/postgres.ts';
import { openRedisStore } from '../../src/storage/drivers/redis.ts';
import type { RemoteStore, Store, StoreDriver } from '../../src/storage/storage.ts';
import {
  describeWithPostgres,
  describeWithRedis,
  hasPostgres,
  hasRedis,
  startPgBouncer,
  startPostgres,
  startRedis,
} from './store-servers.ts';

interface StartedStore {
  /** Opens the store as a separate process would. All processes see the same data. */
  open(): RemoteStore;
  close(): Promise<void>;
}

const ignore = () => {};

/** Adds the methods of a remote store to a store in this process, so that the same tests can use both. */
const asRemoteStore = (store: Store): RemoteStore =>
  Object.assign(store, {
    connect: async () => {},
    isNearlyFull: () => false,
    isRefusal: () => false,
    close: async () => {},
  });
/** Creates an in-memory store with the methods of a remote store. */
export const openMemoryStore = () => asRemoteStore(new MemoryStore(Date.now));

async function startPostgresStore(isPooled: boolean): Promise<StartedStore> {
  const server = await startPostgres();
  const pooler = isPooled ? await startPgBouncer(server.port) : undefined;
  const { port, user, password, database } = pooler ?? server;
  return {
    open: () => openPostgresStore({ host: '127.0.0.1', port, user, password, database, ssl: false }, ignore),
    close: async () => {
      await pooler?.close();
      await server.close();
    },
  };
}

async function startRedisStore(): Promise<StartedStore> {
  const { port, close } = await startRedis();
  const log = { error: ignore, warn: ignore, info: ignore };
  return { open: () => openRedisStore({ tls: false, host: '127.0.0.1', port }, ignore, log), close };
}

async function startFolderStore(): Promise<StartedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'ad-library-'));
  const options = { path: join(folder, 'log'), baseUrl: 'https://api.example.com', now: Date.now };
  return { open: () => asRemoteStore(new FileStore(options)), close: () => rm(folder, { recursive: true }) };
}

/** All kinds of stores that several processes can share. */
export const sharedStores = [
  { name: 'a folder', isInstalled: true, describe, start: startFolderStore },
  { name: 'Redis', isInstalled: hasRedis, describe: describeWithRedis, start: startRedisStore },
  ...[false, true].map((isPooled) => ({
    name: `PostgreSQL${isPooled ? ' behind a pooler' : ''}`,
    isInstalled: hasPostgres,
    describe: describeWithPostgres,
    start: () => startPostgresStore(isPooled),
  })),
];

interface StoreKind {
  isReal: boolean;
  /** Returns the driver that a replica uses to open the store. The replica also closes it. */
  driver(): StoreDriver;
}

/** A store server whose contents tests can read, copy and measure. */
export type StateServer = Awaited<ReturnType<typeof startRedisServer>>;

interface StoredValue {
  name: string;
  value: string;
  /** The remaining lifetime, in milliseconds. */
  remainingMs: number;
}

async function startRedisServer({ isDurable = false } = {}) {
  // With `everysec`, Redis can delay writes for two seconds on a busy disk. A kill then loses these writes.
  const options = ['--appendonly', 'yes', '--appendfsync', isDurable ? 'everysec' : 'no'];
  const { url, kill, pause, resume, restart, cli, close } = await startRedis(options);
  /** Returns the raw stored values with their names. */
  const readAllValues = (): StoredValue[] =>
    JSON.parse(
      cli(
        'EVAL',
        `local all, read = {}, { string = { 'GET' }, hash = { 'HGETALL' }, zset = { 'ZRANGE', 0, -1 } }
        for _, key in ipairs(redis.call('KEYS', '*')) do
          local command, first, last = unpack(read[redis.call('TYPE', key).ok])
          local value = first and redis.call(command, key, first, last) or redis.call(command, key)
          if type(value) == 'table' then value = table.concat(value, ' ') end
          all[#all + 1] = { name = key, value = value, remainingMs = redis.call('PTTL', key) }
        end
        return cjson.encode(all)`,
        '0',
      ),
    );
  const clear = () => void cli('FLUSHALL');
  /** Copies all data. Returns a function that restores the copy. */
  const saveCopy = () => {
    cli('-n', '1', 'FLUSHDB');
    cli('EVAL', "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', 1) end", '0');
    return () => void cli('SWAPDB', '0', '1');
  };
  /** Copies only the items of collections. Returns a function that restores them. */
  const saveItemsCopy = () => {
    const collections = `for _, part in ipairs({ 'about', 'bodies', 'order' }) do
      for _, key in ipairs(redis.call('KEYS', '*:' .. part)) do redis.call('COPY', key, key, 'DB', ARGV[1], 'REPLACE') end end`;
    cli('-n', '1', 'FLUSHDB');
    cli('-n', '0', 'EVAL', collections, '0', '1');
    return () => void cli('-n', '1', 'EVAL', collections, '0', '0');
  };
  const sumsScript = `local sums, answer = {}, {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = string.match(key, '}:([^:]+)') or 'other'
      sums[kind] = (sums[kind] or 0) + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0)
    end
    for kind, bytes in pairs(sums) do answer[#answer + 1] = kind .. ' ' .. bytes end
    return answer`;
  /** Measures the used memory in bytes, in total and for each kind of value, largest first. */
  const measureBytes = () => ({
    all: Number(/used_memory:(\d+)/.exec(cli('INFO', 'memory'))?.[1]),
    kinds: sortByBytes(cli('EVAL', sumsScript, '0').split('\n').filter(Boolean)),
  });
  return {
    ...{ url, kill, pause, resume, restart, close },
    clear,
    saveCopy,
    saveItemsCopy,
    readAllValues,
    measureBytes,
  };
}

async function startPostgresServer(options?: { isDurable?: boolean }): Promise<StateServer> {
  const server = await startPostgres(options);
  const rowSql = `json_build_object('name', name, 'value', value, 'remainingMs', extract(epoch FROM expires_at - now()) * 1000)`;
  const readAllValues = () =>
    JSON.parse(
      server.sql(`SELECT coalesce(json_agg(${rowSql}), '[]') FROM (
        SELECT key AS name, encode(body, 'escape') AS value, expires_at FROM ad_library.documents
        UNION ALL SELECT name || ' ' || id, encode(body, 'escape'), expires_at
          FROM ad_library.items JOIN ad_library.collections USING (name)) AS one WHERE expires_at > now()`),
    );
  const clear = () =>
    void server.sql(`DO $$ BEGIN
      IF to_regclass('ad_library.format') IS NOT NULL THEN
        TRUNCATE ad_library.documents, ad_library.collections, ad_library.items;
      END IF;
    END $$`);
  const saveTablesCopy = (...tables: string[]) => {
    const createStatements = tables.map((table) => `CREATE TABLE copy.${table} AS TABLE ad_library.${table};`).join('');
    server.sql(`DROP SCHEMA IF EXISTS copy CASCADE; CREATE SCHEMA copy; ${createStatements}`);
    const restoreStatements = tables
      .map((table) => `INSERT INTO ad_library.${table} SELECT * FROM copy.${table};`)
      .join('');
    return () =>
      void server.sql(`BEGIN; TRUNCATE ${tables.map((table) => `ad_library.${table}`)}; ${restoreStatements} COMMIT`);
  };
  const kindsSql = `SELECT substring(name from '}:([^:]+)') || ' ' || sum(bytes) FROM (
      SELECT key AS name, length(body) AS bytes, expires_at FROM ad_library.documents
      UNION ALL SELECT name, bytes, expires_at FROM ad_library.collections) AS one WHERE expires_at > now() GROUP BY substring(name from '}:([^:]+)')`;
  // The size includes expired rows, whose space PostgreSQL has not yet reused.
  const measureBytes = () => ({
    all: Number(server.sql(`SELECT pg_database_size(current_database())`)),
    kinds: sortByBytes(server.sql(kindsSql).split('\n').filter(Boolean)),
  });
  const saveCopy = () => saveTablesCopy('documents', 'collections', 'items');
  const saveItemsCopy = () => saveTablesCopy('collections', 'items');
  return { ...server, clear, saveCopy, saveItemsCopy, readAllValues, measureBytes };
}

const sortByBytes = (lines: string[]) =>
  lines
    .map((line): [string, number] => [line.split(' ')[0] ?? '', Number(line.split(' ')[1])])
    .toSorted(([, left], [, right]) => right - left);

/** The store servers that replicas can share. */
export const stateServers = [
  { name: 'Redis', isInstalled: hasRedis, describe: describeWithRedis, start: startRedisServer },
  { name: 'PostgreSQL', isInstalled: hasPostgres, describe: describeWithPostgres, start: startPostgresServer },
];

/** Defines the same tests for each store server. */
export function describeEveryServer(name: string, tests: (server: StateServer) => void): void {
  for (const { name: kind, describe: describeWith, start } of stateServers)
    describeWith(`${name}, with ${kind}`, () => {
      const server = {} as StateServer;
      beforeAll(async () => void Object.assign(server, await start()));
      afterAll(() => server.close?.());
      tests(server);
    });
}

/**
 * Defines the same tests for every kind of store. The tests of a kind share one store, so each test must use its own
 * names. By default, PostgreSQL is tested only behind a pooler, which supports fewer features than a direct connection.
 */
export function describeEveryStore(
  name: string,
  tests: (open: () => Promise<Store>, kind: StoreKind) => void,
  kinds = sharedStores.filter(({ name: kind }) => kind !== 'PostgreSQL'),
): void {
  describe(`${name}, in memory`, () => {
    const store = openMemoryStore();
    tests(async () => store, { isReal: false, driver: () => ({ hostAndPort: 'memory', open: () => store }) });
  });
  for (const { name: kind, describe: describeWith, start } of kinds)
    describeWith(`${name}, in ${kind}`, () => {
      let server: StartedStore;
      const openedStores: RemoteStore[] = [];
      beforeAll(async () => {
        server = await start();
      });
      afterAll(async () => {
        for (const store of openedStores) await store.close();
        await server.close();
      });
      const open = async () => {
        const store = server.open();
        openedStores.push(store);
        await store.connect();
        return store;
      };
      tests(open, { isReal: true, driver: () => ({ hostAndPort: kind, open: server.open }) });
    });
}
