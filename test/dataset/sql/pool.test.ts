import { afterEach, expect, test } from 'vitest';
import { type Snapshot, SqlPool, type SqlPoolOptions } from '../../../src/dataset/sql/pool.ts';
import { gateOf } from '../../support/gate.ts';
import { snapshotOf, someAds } from './snapshots.ts';

const open: SqlPool[] = [];
const newPool = (options?: SqlPoolOptions) => {
  const pool = new SqlPool(options);
  open.push(pool);
  return pool;
};
afterEach(async () => {
  await Promise.all(open.splice(0).map((pool) => pool.close()));
});

const endless = 'with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n';
/** One step of the engine that takes longer than anyone waits. */
const uninterruptible = "select instr(zeroblob(900000), cast(zeroblob(450000) || x'01' as blob))";
const countAds = async (pool: SqlPool, snapshot: Snapshot) =>
  (await pool.query(snapshot, { sql: 'select count(*) from ads' })).rows[0]?.[0];

test('tables are made once for a version', async () => {
  const pool = newPool();
  const first = snapshotOf('tenant', someAds(3));
  expect(await countAds(pool, first)).toBe(3);
  expect(await countAds(pool, first)).toBe(3);
  expect(first.wanted).toHaveLength(1);
  const second = snapshotOf('tenant', someAds(5), '2');
  expect(await countAds(pool, second)).toBe(5);
  expect(second.wanted).toHaveLength(1);
  await pool.forget('tenant');
  expect(await countAds(pool, second)).toBe(5);
  expect(second.wanted).toHaveLength(2);
});

test('labels are replaced where they alone changed, and the tables stay', async () => {
  const pool = newPool();
  const snapshot = snapshotOf('tenant', someAds(3));
  const withLabels = (version: string, values: string[]): Snapshot => ({
    ...snapshot,
    labels: {
      version,
      rows: () => values.map((value) => ({ adId: 'ad-0', label: 'hook', value, labelledAt: null })),
    },
  });
  const sql = 'select group_concat(value) from ads join labels on adId = id';
  const valuesOf = async (of: Snapshot) => (await pool.query(of, { sql })).rows[0]?.[0];
  await pool.query(withLabels('1', []), { sql });
  expect(await valuesOf(withLabels('2', ['a', 'b']))).toBe('a,b');
  expect(await valuesOf(withLabels('2', ['not read']))).toBe('a,b');
  const many = Array.from({ length: 20_000 }, (_, at) => `${at}`.padEnd(200, 'x'));
  expect((await pool.query(withLabels('3', many), { sql: 'select count(*), max(value) from labels' })).rowCount).toBe(
    1,
  );
  expect(await valuesOf(withLabels('4', ['c']))).toBe('c');
  await expect(pool.query(withLabels('4', []), { sql: 'delete from labels' })).rejects.toThrow('Only a SELECT');
  expect(snapshot.wanted).toHaveLength(1);
});

test('the JSON is loaded once a statement reads it', async () => {
  const pool = newPool();
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(pool, snapshot);
  expect(snapshot.wanted).toEqual([{ json: false }]);
  const { rows } = await pool.query(snapshot, { sql: "select a.JSON ->> '$.id' from Ads a order by 1" });
  expect(rows).toEqual([['ad-0'], ['ad-1'], ['ad-2']]);
  expect(await countAds(pool, snapshot)).toBe(3);
  await pool.query(snapshot, { sql: 'select * from ads' });
  expect(snapshot.wanted).toEqual([{ json: false }, { json: true }]);
  const exported = snapshotOf('other', someAds(3));
  const read = await pool.export(exported, { sql: 'select json from ads' }, async ({ rows: batches }) => {
    for await (const [first] of batches) return first;
  });
  expect(read?.[0]).toContain('"id":"ad-0"');
});

test('each tenant sees its own ads, with fewer workers than tenants', async () => {
  const pool = newPool({ maxWorkers: 2 });
  const snapshots = [1, 2, 3, 4].map((count) => snapshotOf(`tenant-${count}`, someAds(count)));
  const counts = () => Promise.all(snapshots.map((snapshot) => countAds(pool, snapshot)));
  expect(await counts()).toEqual([1, 2, 3, 4]);
  expect(await counts()).toEqual([1, 2, 3, 4]);
});

test('a signal ends a statement, and the tables stay for the next', async () => {
  const pool = newPool({ limits: { statementMs: 60_000 } });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(pool, snapshot);
  const leave = new AbortController();
  const running = pool.query(snapshot, { sql: endless, signal: leave.signal });
  setTimeout(() => leave.abort(new Error('left')), 50);
  await expect(running).rejects.toThrow('left');
  expect(await countAds(pool, snapshot)).toBe(3);
  expect(snapshot.wanted).toHaveLength(1);
  await expect(pool.query(snapshot, { sql: 'select 1', signal: AbortSignal.abort() })).rejects.toThrow('aborted');
});

test.each([
  ['its time', 100, 'stopped after 0.1 seconds'],
  ['a signal', 60_000, 'left'],
])(
  'a statement that %s cannot interrupt loses its worker, and the next gets a new one',
  async (_, statementMs, said) => {
    const pool = newPool({ limits: { statementMs }, graceMs: 100 });
    const snapshot = snapshotOf('tenant', someAds(3));
    await countAds(pool, snapshot);
    const leave = new AbortController();
    const running = pool.query(snapshot, { sql: uninterruptible, signal: leave.signal });
    if (said === 'left') setTimeout(() => leave.abort(new Error('left')), 20);
    await expect(running).rejects.toThrow(said);
    expect(await countAds(pool, snapshot)).toBe(3);
    expect(snapshot.wanted).toHaveLength(2);
  },
);

test('of 200 statements of two tenants at once, one that hangs loses its own answer alone', async () => {
  const pool = newPool({ maxWaiting: 400, limits: { statementMs: 200 }, graceMs: 100 });
  const answered: string[] = [];
  const ask = async (at: number) => {
    const tenant = at % 2 === 0 ? 'even' : 'odd';
    if (at === 20) return await pool.query(snapshotOf(tenant, someAds(2)), { sql: uninterruptible });
    const found = await countAds(pool, snapshotOf(tenant, someAds(at % 2 === 0 ? 2 : 3)));
    answered.push(tenant);
    return found;
  };
  const all = await Promise.allSettled(Array.from({ length: 200 }, (_, at) => ask(at)));
  const expected = (at: number) => ({ status: 'fulfilled', value: at % 2 === 0 ? 2 : 3 });
  expect(all.filter((_, at) => at !== 20)).toEqual(all.flatMap((_, at) => (at === 20 ? [] : expected(at))));
  expect(String((all[20] as PromiseRejectedResult).reason)).toContain('stopped after 0.2 seconds');
  // While the one hangs, the other tenant goes on.
  expect(answered.slice(0, 100).filter((tenant) => tenant === 'odd').length).toBeGreaterThan(55);
});

test('a dataset too large for SQL is refused, and one that cannot be read says why', async () => {
  const pool = newPool({ limits: { tableBytes: 4 * 2 ** 20 } });
  const large = someAds(200).map((ad) => ({ ...ad, body: 'x'.repeat(40_000) }));
  await expect(countAds(pool, snapshotOf('large', large))).rejects.toThrow('The dataset takes more than 4 MB');
  const broken: Snapshot = {
    tenantId: 'broken',
    version: '1',
    tables() {
      throw new Error('no such folder');
    },
  };
  await expect(countAds(pool, broken)).rejects.toThrow('no such folder');
  expect(await countAds(pool, snapshotOf('broken', someAds(2)))).toBe(2);
});

test('an export gives every row whole, in batches, and leaves the worker ready', async () => {
  const pool = newPool();
  const snapshot = snapshotOf('tenant', [...someAds(1200), { id: 'z', body: 'y'.repeat(30_000) }]);
  const sql = 'select id, body from ads order by rowid';
  const read = await pool.export(snapshot, { sql }, async ({ columns, rows }) => {
    const all = [];
    for await (const batch of rows) all.push(...batch);
    return { columns, all };
  });
  expect(read.columns).toEqual(['id', 'body']);
  expect(read.all).toHaveLength(1201);
  expect(read.all.at(-1)).toEqual(['z', 'y'.repeat(30_000)]);
  const stopped = pool.export(snapshot, { sql }, async ({ rows }) => {
    for await (const _ of rows) throw new Error('the disk is full');
  });
  await expect(stopped).rejects.toThrow('the disk is full');
  await expect(pool.export(snapshot, { sql: 'pragma table_list' }, async () => 1)).rejects.toThrow('Only a SELECT');
  expect(await countAds(pool, snapshot)).toBe(1201);
  expect(snapshot.wanted).toHaveLength(1);
});

test('an endless export ends', async () => {
  const pool = newPool({ limits: { exportMs: 100 } });
  const sql = 'with recursive n(x) as (select 1 union all select x + 1 from n) select x from n';
  const exported = pool.export(snapshotOf('tenant', []), { sql }, async ({ rows }) => {
    for await (const _ of rows);
  });
  await expect(exported).rejects.toThrow('stopped after 0.1 seconds of work');
});

test('exports that end with their worker leave room for others', async () => {
  const pool = newPool({ limits: { statementMs: 100 }, graceMs: 50 });
  for (let time = 0; time < 3; time++) {
    // The second batch of rows hangs.
    const slow = "instr(zeroblob(900000), cast(zeroblob(450000 + x) || x'01' as blob))";
    const sql = `with recursive n(x) as (select 1 union all select x + 1 from n where x < 900)
      select case when x < 700 then x else ${slow} end from n`;
    const exported = pool.export(snapshotOf('tenant', someAds(2)), { sql }, async ({ rows }) => {
      for await (const _ of rows);
    });
    await expect(exported).rejects.toThrow('stopped after 0.1 seconds');
  }
  const first = snapshotOf('one', someAds(1));
  const second = snapshotOf('two', someAds(2));
  for (let time = 0; time < 2; time++)
    expect([await countAds(pool, first), await countAds(pool, second)]).toEqual([1, 2]);
  expect([first.wanted, second.wanted].map((wanted) => wanted.length)).toEqual([1, 1]);
});

test('a worker that is ended under a statement says so, and the next statement has a new one', async () => {
  const pool = newPool({ limits: { statementMs: 60_000 } });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(pool, snapshot);
  const running = pool.query(snapshot, { sql: endless });
  setTimeout(() => void pool.forget('tenant'), 20);
  await expect(running).rejects.toMatchObject({ failure: { kind: 'internal', sent: false } });
  expect(await countAds(pool, snapshot)).toBe(3);
});

test('an unused worker lets go of its tables', async () => {
  const pool = newPool({ idleMs: 1 });
  const snapshot = snapshotOf('tenant', someAds(3));
  await countAds(pool, snapshot);
  await new Promise((resolve) => setTimeout(resolve, 30));
  await countAds(pool, snapshot);
  expect(snapshot.wanted).toHaveLength(2);
});

/** Rows that take so long to compute that a batch of them is a good part of a statement's time. */
const slowRows = (count: number) =>
  `with recursive n(x) as (select 1 union all select x + 1 from n where x < ${count})
   select x, (with recursive m(y) as (select 1 union all select y + 1 from m where y < 400) select sum(y) from m) from n`;

test.each([2, 3, 5])('%i exports under way shut out no statement of another tenant', async (exporting) => {
  const pool = newPool({ maxWorkers: 2 });
  const leave = new AbortController();
  const begun = [gateOf(), gateOf()];
  let rows = 0;
  const exports = Array.from({ length: exporting }, (_, index) =>
    pool
      .export(
        snapshotOf(`exporting ${index}`, []),
        { sql: slowRows(10_000_000), signal: leave.signal },
        async (read) => {
          begun[index]?.open();
          for await (const batch of read.rows) rows += batch.length;
        },
      )
      .catch((error) => error),
  );
  await Promise.all(begun.map(({ opened }) => opened));
  for (const version of ['1', '1', '2']) {
    const before = rows;
    expect(await countAds(pool, snapshotOf('other', someAds(4), version))).toBe(4);
    while (rows === before) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  leave.abort(new Error('left'));
  for (const error of await Promise.all(exports)) expect(error).toMatchObject({ message: 'left' });
});

test('statements of its own tenant run while an export is under way, and both are of their version', async () => {
  const pool = newPool();
  const first = snapshotOf('tenant', someAds(3000));
  const ids = await pool.export(first, { sql: 'select id from ads order by duplicates' }, async ({ rows }) => {
    const seen: unknown[] = [];
    for await (const batch of rows) {
      seen.push(...batch.flat());
      const version = String(seen.length % 2000);
      expect(await countAds(pool, snapshotOf('tenant', someAds(seen.length), version))).toBe(seen.length);
    }
    return seen;
  });
  expect(ids).toEqual(someAds(3000).map((ad) => (ad as { id: string }).id));
  expect(await countAds(pool, first)).toBe(3000);
});
