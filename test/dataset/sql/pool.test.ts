import { afterAll, afterEach, expect, test } from 'vitest';
import { type DatasetSnapshot, SqlPool, type SqlPoolOptions } from '../../../src/dataset/sql/pool.ts';
import { createGate } from '../../support/gate.ts';
import { createAds, createSnapshot } from './snapshots.ts';

/** A pool shared by all tests that need no options. Each test uses its own tenant id. */
const pool = new SqlPool();
afterAll(() => pool.close());
const opened: SqlPool[] = [];
const openPool = (options: SqlPoolOptions) => {
  opened.push(new SqlPool(options));
  return opened.at(-1) as SqlPool;
};
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pool) => pool.close()));
});

const endless = 'with recursive n(x) as (select 1 union all select x + 1 from n) select x from n';
/** A statement whose single SQLite step takes longer than any time limit and cannot be interrupted. */
const uninterruptible = "select instr(zeroblob(900000), cast(zeroblob(450000) || x'01' as blob))";
const countAds = async (pool: SqlPool, snapshot: DatasetSnapshot) =>
  (await pool.query(snapshot, { sql: 'select count(*) from ads' })).rows[0]?.[0];
const abortReason = new Error('left');
const drain = async ({ rows }: { rows: AsyncIterable<unknown> }) => {
  for await (const _ of rows);
};

test('the pool of SQL workers loads the tables of a dataset only once for each version of the dataset', async () => {
  const first = createSnapshot('versions', createAds(3));
  expect([await countAds(pool, first), await countAds(pool, first)]).toEqual([3, 3]);
  expect(first.wanted).toEqual([{ includeJson: false }]);
  const { rows } = await pool.query(first, { sql: "select a.JSON ->> '$.id' from Ads a order by 1" });
  expect(rows).toEqual([['ad-0'], ['ad-1'], ['ad-2']]);
  await pool.query(first, { sql: 'select * from ads' });
  expect(first.wanted).toEqual([{ includeJson: false }, { includeJson: true }]);
  const second = createSnapshot('versions', createAds(5), '2');
  expect([await countAds(pool, second), await countAds(pool, second)]).toEqual([5, 5]);
  // The pool keeps only one version of a tenant's tables.
  expect(await countAds(pool, first)).toBe(3);
  expect(await countAds(pool, second)).toBe(5);
  expect(second.wanted).toHaveLength(2);
});

test('each API key sees only its own ads in SQL, although all API keys share the SQL workers', async () => {
  const snapshots = [1, 2, 3].map((count) => createSnapshot(`tenant-${count}`, createAds(count)));
  for (let round = 0; round < 2; round++)
    expect(await Promise.all(snapshots.map((snapshot) => countAds(pool, snapshot)))).toEqual([1, 2, 3]);
});

test('an idle SQL worker frees the memory of its tables', async () => {
  const idlePool = openPool({ workerIdleMs: 1 });
  const snapshot = createSnapshot('idle', createAds(3));
  const timesLoaded = async () => {
    await countAds(idlePool, snapshot);
    return snapshot.wanted.length;
  };
  await expect.poll(timesLoaded, { timeout: 60_000, interval: 20 }).toBeGreaterThan(1);
});

test('the pool of SQL workers rejects a dataset whose tables exceed the memory limit and gives the reason', async () => {
  const small = openPool({ limits: { maxTableBytes: 4 * 2 ** 20 } });
  const large = createAds(200).map((ad) => ({ ...ad, body: 'x'.repeat(40_000) }));
  await expect(countAds(small, createSnapshot('large', large))).rejects.toThrow('The dataset takes more than 4 MB');
  const tables = () => {
    throw new Error('no such folder');
  };
  await expect(countAds(small, { tenantId: 'broken', version: '1', readTables: tables })).rejects.toThrow(
    'no such folder',
  );
  expect(await countAds(small, createSnapshot('broken', createAds(2)))).toBe(2);
});

test('an SQL statement stops when the caller cancels it, and its tables stay loaded', async () => {
  const patientPool = openPool({ limits: { maxStatementMs: 60_000 } });
  const snapshot = createSnapshot('tenant', createAds(3));
  await countAds(patientPool, snapshot);
  const leave = new AbortController();
  const sql = `select count(*) from (${endless})`;
  const running = patientPool.query(snapshot, { sql, signal: leave.signal });
  setTimeout(() => leave.abort(abortReason), 50);
  await expect(running).rejects.toThrow('left');
  expect(await countAds(patientPool, snapshot)).toBe(3);
  expect(snapshot.wanted).toHaveLength(1);
  await expect(patientPool.query(snapshot, { sql: 'select 1', signal: AbortSignal.abort() })).rejects.toThrow(
    'aborted',
  );
});

test.each([
  ['the time limit', 500, 'stopped after 0.5 seconds'],
  ['a signal', 60_000, 'left'],
])('the server replaces the worker of an SQL statement that %s cannot interrupt', async (_, ms, message) => {
  const hastyPool = openPool({ limits: { maxStatementMs: ms } });
  const snapshot = createSnapshot('tenant', createAds(3));
  await countAds(hastyPool, snapshot);
  const leave = new AbortController();
  const running = hastyPool.query(snapshot, { sql: uninterruptible, signal: leave.signal });
  if (message === 'left') setTimeout(() => leave.abort(abortReason), 20);
  await expect(running).rejects.toThrow(message);
  expect(await countAds(hastyPool, snapshot)).toBe(3);
  expect(snapshot.wanted).toHaveLength(2);
});

test('an SQL statement that hangs does not delay the SQL statements of other API keys', async () => {
  const patientPool = openPool({ limits: { maxStatementMs: 60_000 } });
  const leave = new AbortController();
  const hanging = patientPool.query(createSnapshot('one', createAds(2)), {
    sql: uninterruptible,
    signal: leave.signal,
  });
  const countOf = (tenantId: string, count: number) =>
    Array.from({ length: 40 }, () => countAds(patientPool, createSnapshot(tenantId, createAds(count))));
  const ownCounts = Promise.all(countOf('one', 2));
  expect(new Set(await Promise.all(countOf('other', 3)))).toEqual(new Set([3]));
  leave.abort(abortReason);
  await expect(hanging).rejects.toThrow('left');
  expect(new Set(await ownCounts)).toEqual(new Set([2]));
});

test('an SQL statement fails with an internal error if its worker is terminated', async () => {
  const patientPool = openPool({ limits: { maxStatementMs: 60_000 } });
  const snapshot = createSnapshot('tenant', createAds(3));
  await countAds(patientPool, snapshot);
  const running = patientPool.query(snapshot, { sql: `select count(*) from (${endless})` });
  setTimeout(() => void patientPool.close(), 20);
  await expect(running).rejects.toMatchObject({ failure: { kind: 'internal', wasSent: false } });
  expect(await countAds(patientPool, snapshot)).toBe(3);
});

test('an SQL export returns all rows in batches and shortens no cell', async () => {
  const snapshot = createSnapshot('exporting', [...createAds(1200), { id: 'z', body: 'y'.repeat(30_000) }]);
  const sql = 'select id, body from ads order by rowid';
  const exported = await pool.exportRows(snapshot, { sql }, async ({ columns, rows }) => {
    const batches = [];
    for await (const batch of rows) batches.push(batch);
    return { columns, batches };
  });
  expect(exported.columns).toEqual(['id', 'body']);
  expect(exported.batches.length).toBeGreaterThan(2);
  expect(exported.batches.flat()).toHaveLength(1201);
  expect(exported.batches.at(-1)?.at(-1)).toEqual(['z', 'y'.repeat(30_000)]);
  const stopped = pool.exportRows(snapshot, { sql }, async ({ rows }) => {
    for await (const _ of rows) throw new Error('the disk is full');
  });
  await expect(stopped).rejects.toThrow('the disk is full');
  await expect(pool.exportRows(snapshot, { sql: 'pragma table_list' }, drain)).rejects.toThrow('Only a SELECT');
  expect(await countAds(pool, snapshot)).toBe(1201);
  expect(snapshot.wanted).toHaveLength(1);
});

test('an SQL export that never ends is stopped at its time limit', async () => {
  const hastyPool = openPool({ limits: { maxExportMs: 100 } });
  const exported = hastyPool.exportRows(createSnapshot('tenant', []), { sql: endless }, drain);
  await expect(exported).rejects.toThrow('stopped after 0.1 seconds of work');
});

test('an SQL export frees its slot if the pool of SQL workers terminates its worker', async () => {
  const hastyPool = openPool({ limits: { maxStatementMs: 500 } });
  // The second batch of rows takes longer than the time limit.
  const slow = "instr(zeroblob(900000), cast(zeroblob(450000 + x) || x'01' as blob))";
  const sql = `with recursive n(x) as (select 1 union all select x + 1 from n where x < 900)
    select case when x < 700 then x else ${slow} end from n`;
  for (let time = 0; time < 3; time++)
    await expect(hastyPool.exportRows(createSnapshot('tenant', createAds(2)), { sql }, drain)).rejects.toThrow(
      'after 0.5 seconds',
    );
  const snapshots = [createSnapshot('one', createAds(1)), createSnapshot('two', createAds(2))];
  for (let time = 0; time < 2; time++)
    expect(await Promise.all(snapshots.map((snapshot) => countAds(hastyPool, snapshot)))).toEqual([1, 2]);
  expect(snapshots.map(({ wanted }) => wanted.length)).toEqual([1, 1]);
});

test('SQL statements of other API keys run even if more exports are active than there are SQL workers', async () => {
  const patientPool = openPool({ maxWorkers: 4 });
  const leave = new AbortController();
  const startGates = [createGate(), createGate()];
  let batches = 0;
  const exports = Array.from({ length: 5 }, (_, index) =>
    patientPool
      .exportRows(
        createSnapshot(`exporting ${index}`, []),
        { sql: endless, signal: leave.signal },
        async ({ rows }) => {
          for await (const _ of rows) {
            startGates[index]?.open();
            batches++;
          }
        },
      )
      .catch((error) => error),
  );
  await Promise.all(startGates.map(({ opened }) => opened));
  for (const version of ['1', '1', '2']) {
    const before = batches;
    expect(await countAds(patientPool, createSnapshot('other', createAds(4), version))).toBe(4);
    await expect.poll(() => batches, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before);
  }
  leave.abort(abortReason);
  for (const error of await Promise.all(exports)) expect(error).toBe(abortReason);
});

test('a user can query the stored ads while an export of the same ads runs', async () => {
  const first = createSnapshot('both', createAds(1200));
  const ids = await pool.exportRows(first, { sql: 'select id from ads order by duplicates' }, async ({ rows }) => {
    const seenIds: unknown[] = [];
    for await (const batch of rows) {
      seenIds.push(...batch.flat());
      expect(await countAds(pool, createSnapshot('both', createAds(seenIds.length), `${seenIds.length}`))).toBe(
        seenIds.length,
      );
    }
    return seenIds;
  });
  expect(ids).toEqual(createAds(1200).map((ad) => (ad as { id: string }).id));
  expect(await countAds(pool, first)).toBe(1200);
});
