import { afterAll, afterEach, expect, test } from 'vitest';
import { type Snapshot, SqlPool, type SqlPoolOptions } from '../../../src/dataset/sql/pool.ts';
import { createGate } from '../../support/gate.ts';
import { snapshotOf, someAds } from './snapshots.ts';

/** One for all tests that ask for nothing unusual, each as a tenant of its own. */
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
/** One step of the engine that takes longer than anyone waits. */
const uninterruptible = "select instr(zeroblob(900000), cast(zeroblob(450000) || x'01' as blob))";
const countAds = async (pool: SqlPool, snapshot: Snapshot) =>
  (await pool.query(snapshot, { sql: 'select count(*) from ads' })).rows[0]?.[0];
const left = new Error('left');
const drain = async ({ rows }: { rows: AsyncIterable<unknown> }) => {
  for await (const _ of rows);
};

test('tables are loaded once for a version, and the JSON once a statement reads it', async () => {
  const first = snapshotOf('versions', someAds(3));
  expect([await countAds(pool, first), await countAds(pool, first)]).toEqual([3, 3]);
  expect(first.wanted).toEqual([{ json: false }]);
  const { rows } = await pool.query(first, { sql: "select a.JSON ->> '$.id' from Ads a order by 1" });
  expect(rows).toEqual([['ad-0'], ['ad-1'], ['ad-2']]);
  await pool.query(first, { sql: 'select * from ads' });
  expect(first.wanted).toEqual([{ json: false }, { json: true }]);
  const second = snapshotOf('versions', someAds(5), '2');
  expect([await countAds(pool, second), await countAds(pool, second)]).toEqual([5, 5]);
  // A key has the tables of one version.
  expect(await countAds(pool, first)).toBe(3);
  expect(await countAds(pool, second)).toBe(5);
  expect(second.wanted).toHaveLength(2);
});

test('each tenant sees its own ads, with fewer workers than tenants', async () => {
  const snapshots = [1, 2, 3].map((count) => snapshotOf(`tenant-${count}`, someAds(count)));
  for (let round = 0; round < 2; round++)
    expect(await Promise.all(snapshots.map((snapshot) => countAds(pool, snapshot)))).toEqual([1, 2, 3]);
});

test('a worker that is not used lets go of its tables', async () => {
  const hasty = openPool({ idleMs: 1 });
  const snapshot = snapshotOf('idle', someAds(3));
  const timesLoaded = async () => {
    await countAds(hasty, snapshot);
    return snapshot.wanted.length;
  };
  await expect.poll(timesLoaded, { timeout: 60_000, interval: 20 }).toBeGreaterThan(1);
});

test('a dataset too large for SQL is refused, and one that cannot be read says why', async () => {
  const small = openPool({ limits: { tableBytes: 4 * 2 ** 20 } });
  const large = someAds(200).map((ad) => ({ ...ad, body: 'x'.repeat(40_000) }));
  await expect(countAds(small, snapshotOf('large', large))).rejects.toThrow('The dataset takes more than 4 MB');
  const tables = () => {
    throw new Error('no such folder');
  };
  await expect(countAds(small, { tenantId: 'broken', version: '1', tables })).rejects.toThrow('no such folder');
  expect(await countAds(small, snapshotOf('broken', someAds(2)))).toBe(2);
});

test('a signal ends a statement, and the tables stay for the next', async () => {
  const patient = openPool({ limits: { statementMs: 60_000 } });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(patient, snapshot);
  const leave = new AbortController();
  const sql = `select count(*) from (${endless})`;
  const running = patient.query(snapshot, { sql, signal: leave.signal });
  setTimeout(() => leave.abort(left), 50);
  await expect(running).rejects.toThrow('left');
  expect(await countAds(patient, snapshot)).toBe(3);
  expect(snapshot.wanted).toHaveLength(1);
  await expect(patient.query(snapshot, { sql: 'select 1', signal: AbortSignal.abort() })).rejects.toThrow('aborted');
});

test.each([
  ['its time', 500, 'stopped after 0.5 seconds'],
  ['a signal', 60_000, 'left'],
])('a statement that %s cannot interrupt loses its worker, and the next gets a new one', async (_, ms, says) => {
  const hasty = openPool({ limits: { statementMs: ms } });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(hasty, snapshot);
  const leave = new AbortController();
  const running = hasty.query(snapshot, { sql: uninterruptible, signal: leave.signal });
  if (says === 'left') setTimeout(() => leave.abort(left), 20);
  await expect(running).rejects.toThrow(says);
  expect(await countAds(hasty, snapshot)).toBe(3);
  expect(snapshot.wanted).toHaveLength(2);
});

test('while a statement hangs, another tenant goes on, and its own statements have a new worker afterwards', async () => {
  const patient = openPool({ limits: { statementMs: 60_000 } });
  const leave = new AbortController();
  const hanging = patient.query(snapshotOf('one', someAds(2)), { sql: uninterruptible, signal: leave.signal });
  const countOf = (tenantId: string, count: number) =>
    Array.from({ length: 40 }, () => countAds(patient, snapshotOf(tenantId, someAds(count))));
  const own = Promise.all(countOf('one', 2));
  expect(new Set(await Promise.all(countOf('other', 3)))).toEqual(new Set([3]));
  leave.abort(left);
  await expect(hanging).rejects.toThrow('left');
  expect(new Set(await own)).toEqual(new Set([2]));
});

test('a worker that is ended under a statement says so, and the next statement has a new one', async () => {
  const patient = openPool({ limits: { statementMs: 60_000 } });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(patient, snapshot);
  const running = patient.query(snapshot, { sql: `select count(*) from (${endless})` });
  setTimeout(() => void patient.close(), 20);
  await expect(running).rejects.toMatchObject({ failure: { kind: 'internal', sent: false } });
  expect(await countAds(patient, snapshot)).toBe(3);
});

test('an export gives every row whole, in batches, and leaves the worker ready', async () => {
  const snapshot = snapshotOf('exporting', [...someAds(1200), { id: 'z', body: 'y'.repeat(30_000) }]);
  const sql = 'select id, body from ads order by rowid';
  const read = await pool.export(snapshot, { sql }, async ({ columns, rows }) => {
    const batches = [];
    for await (const batch of rows) batches.push(batch);
    return { columns, batches };
  });
  expect(read.columns).toEqual(['id', 'body']);
  expect(read.batches.length).toBeGreaterThan(2);
  expect(read.batches.flat()).toHaveLength(1201);
  expect(read.batches.at(-1)?.at(-1)).toEqual(['z', 'y'.repeat(30_000)]);
  const stopped = pool.export(snapshot, { sql }, async ({ rows }) => {
    for await (const _ of rows) throw new Error('the disk is full');
  });
  await expect(stopped).rejects.toThrow('the disk is full');
  await expect(pool.export(snapshot, { sql: 'pragma table_list' }, drain)).rejects.toThrow('Only a SELECT');
  expect(await countAds(pool, snapshot)).toBe(1201);
  expect(snapshot.wanted).toHaveLength(1);
});

test('an endless export ends', async () => {
  const hasty = openPool({ limits: { exportMs: 100 } });
  const exported = hasty.export(snapshotOf('tenant', []), { sql: endless }, drain);
  await expect(exported).rejects.toThrow('stopped after 0.1 seconds of work');
});

test('exports that end with their worker leave room for others', async () => {
  const hasty = openPool({ limits: { statementMs: 500 } });
  // The second batch of rows hangs.
  const slow = "instr(zeroblob(900000), cast(zeroblob(450000 + x) || x'01' as blob))";
  const sql = `with recursive n(x) as (select 1 union all select x + 1 from n where x < 900)
    select case when x < 700 then x else ${slow} end from n`;
  for (let time = 0; time < 3; time++)
    await expect(hasty.export(snapshotOf('tenant', someAds(2)), { sql }, drain)).rejects.toThrow('after 0.5 seconds');
  const both = [snapshotOf('one', someAds(1)), snapshotOf('two', someAds(2))];
  for (let time = 0; time < 2; time++)
    expect(await Promise.all(both.map((snapshot) => countAds(hasty, snapshot)))).toEqual([1, 2]);
  expect(both.map(({ wanted }) => wanted.length)).toEqual([1, 1]);
});

test('more exports than there are workers shut out no statement of another tenant', async () => {
  const patient = openPool({ maxWorkers: 4 });
  const leave = new AbortController();
  const begun = [createGate(), createGate()];
  let batches = 0;
  const exports = Array.from({ length: 5 }, (_, index) =>
    patient
      .export(snapshotOf(`exporting ${index}`, []), { sql: endless, signal: leave.signal }, async ({ rows }) => {
        for await (const _ of rows) {
          begun[index]?.open();
          batches++;
        }
      })
      .catch((error) => error),
  );
  await Promise.all(begun.map(({ opened }) => opened));
  for (const version of ['1', '1', '2']) {
    const before = batches;
    expect(await countAds(patient, snapshotOf('other', someAds(4), version))).toBe(4);
    await expect.poll(() => batches, { timeout: 60_000, interval: 5 }).toBeGreaterThan(before);
  }
  leave.abort(left);
  for (const error of await Promise.all(exports)) expect(error).toBe(left);
});

test('statements of its own tenant run while an export is in progress, and both are of their version', async () => {
  const first = snapshotOf('both', someAds(1200));
  const ids = await pool.export(first, { sql: 'select id from ads order by duplicates' }, async ({ rows }) => {
    const seen: unknown[] = [];
    for await (const batch of rows) {
      seen.push(...batch.flat());
      expect(await countAds(pool, snapshotOf('both', someAds(seen.length), `${seen.length}`))).toBe(seen.length);
    }
    return seen;
  });
  expect(ids).toEqual(someAds(1200).map((ad) => (ad as { id: string }).id));
  expect(await countAds(pool, first)).toBe(1200);
});
