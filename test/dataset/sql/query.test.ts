import { afterAll, describe, expect, test } from 'vitest';
import { SqlPool } from '../../../src/dataset/sql/pool.ts';
import { createAds, createSnapshot } from './snapshots.ts';

const pool = new SqlPool();
afterAll(() => pool.close());

const ads = [
  ...createAds(10),
  { id: 'long', body: `${'é'.repeat(200)}end`, countries: ['FR'], productPrice: 19.5 },
  { id: 'hidden', body: 'free\u200b\u202e ship\u0000ping', cards: [{ title: 'A' }, { title: 'B' }] },
];
const snapshot = createSnapshot('tenant', ads);
const query = (sql: string, options = {}) => pool.query(snapshot, { sql, ...options });

describe('The SQL operator REGEXP', () => {
  const value = async (sql: string) => (await query(`select ${sql}`)).rows[0]?.[0];

  test('the SQL operator REGEXP matches anywhere in a text and is case-sensitive', async () => {
    expect(await value("'Save 20% today' REGEXP '\\d+ ?%'")).toBe(1);
    expect(await value("'SAVE' REGEXP 'save'")).toBe(0);
    expect(await value("'SAVE' REGEXP '(?i)save'")).toBe(1);
    expect(await value("null REGEXP 'a'")).toBeNull();
    expect(await value(`(printf('%.1999997c', 'x') || 'end') REGEXP 'end'`)).toBe(1);
    expect((await query("select count(*) from ads where body REGEXP 'trail [135]$'")).rows).toEqual([[3]]);
  });

  test.for([
    ["'a' REGEXP '(?<=b)a'", 'look-around such as (?= or (?! is not supported'],
    [String.raw`'aa' REGEXP '(a)\1'`, 'a back-reference such as'],
    ["'a' REGEXP '['", 'missing closing ]'],
    ["'a' REGEXP printf('%.501c', 'a')", 'the pattern has more than 500 characters'],
    ["'a' REGEXP '(a|b|ab){900}'", 'the pattern repeats too much'],
  ] as const)('the SQL operator REGEXP rejects an unsupported pattern: %s', async ([sql, why]) => {
    await expect(value(sql)).rejects.toThrow(why);
  });

  test('a slow search with the SQL operator REGEXP stops at the time limit of the statement', async () => {
    const hastyPool = new SqlPool({ limits: { maxStatementMs: 300 } });
    const rows = 'with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n where';
    const sql = `${rows} (x || printf('%.19000c', 'a')) REGEXP '(a|b|ab){150}c|(x+x+)+y'`;
    // No step of SQLite interrupts the search in a single long text, so the pool terminates the worker.
    const longTextSql = `select replace(printf('%.1000000c', 'a'), 'a', 'ab') REGEXP '(a|b|ab){150}[cd]'`;
    for (const slowSql of [sql, longTextSql]) {
      await expect(hastyPool.query(snapshot, { sql: slowSql })).rejects.toThrow('was stopped after');
      expect((await hastyPool.query(snapshot, { sql: 'select 1' })).rows).toEqual([[1]]);
    }
    await hastyPool.close();
  });
});

describe('The result of an SQL statement', () => {
  test('an SQL result contains a number as text if JSON cannot represent the number exactly', async () => {
    const { rows } = await query('select id, headline, duplicates, productPrice, active from ads order by id');
    expect(rows[0]).toEqual(['ad-0', null, 0, null, null]);
    expect(rows.at(-1)).toEqual(['long', null, null, 19.5, null]);
    const unusualValues = await query("select 9007199254740993, -9e999, x'00ff', 2.0, 9007199254740991");
    expect(unusualValues.rows).toEqual([['9007199254740993', '-Infinity', "x'00ff'", 2, 9007199254740991]]);
  });

  test('an SQL result has at most as many rows as the argument limit allows and shows the total of up to 100,000 rows', async () => {
    const firstRows = await query('select id from ads', { limit: 3 });
    expect(firstRows).toMatchObject({ rowCount: 12, truncated: true });
    expect(firstRows.rows).toHaveLength(3);
    expect(await query('select id from ads', { limit: 12 })).toMatchObject({ rowCount: 12, truncated: false });
    expect(await query("select id from ads where id = ''")).toMatchObject({ rows: [], rowCount: 0, truncated: false });
    for (const count of [100_000, 100_001]) {
      const sql = `with recursive n(x) as (select 1 union all select x + 1 from n where x < ${count}) select x from n`;
      expect(await query(sql)).toMatchObject({ rowCount: count > 100_000 ? null : count, truncated: true });
    }
  });

  test('a long cell of an SQL result is shortened and says how many characters are missing', async () => {
    const sql = "select body from ads where id = 'long'";
    expect((await query(sql)).rows).toEqual([[`${'é'.repeat(160)}… (+43 chars)`]]);
    expect((await query(sql, { maxCellChars: 203 })).rows).toEqual([[`${'é'.repeat(200)}end`]]);
    expect((await query("select '😀😀'", { maxCellChars: 3 })).rows).toEqual([['😀… (+2 chars)']]);
  });

  test('an SQL result contains no invisible characters', async () => {
    expect((await query("select body from ads where id = 'hidden'")).rows).toEqual([['free shipping']]);
    const { columns, rows } = await query("select char(0x202e) || 'x' || char(0x200b, 7, 0) || 'y' as \"n\u200bame\"");
    expect({ columns, rows }).toEqual({ columns: ['name'], rows: [['xy']] });
  });

  test('the columns of an SQL result have short unique names', async () => {
    const { columns } = await query('select id, id, "" from (select id, id, 3 as "" from ads)');
    expect(columns).toEqual(['id', 'id (2)', 'column 3']);
    expect((await query(`select 1 as "${'x'.repeat(200)}"`)).columns).toEqual([`${'x'.repeat(80)}… (+120 chars)`]);
  });

  test('an SQL result contains fewer rows if its cells together exceed the size limit', async () => {
    const wide = Array.from({ length: 20 }, () => "printf('%.20000c', 'x')").join();
    const sql = `with recursive n(x) as (select 1 union all select x + 1 from n where x < 20) select ${wide} from n`;
    const { rows, rowCount, truncated } = await query(sql, { maxCellChars: 20_000 });
    expect(rows.length).toBeLessThan(8);
    expect({ rowCount, truncated }).toEqual({ rowCount: 20, truncated: true });
  });
});

test('SQL statements can use joins, window functions, medians, JSON functions and common table expressions', async () => {
  const { rows } = await query(`with c as (select country, count(*) as n from ad_countries group by country)
    select c.country, c.n, median(a.duplicates), rank() over (order by c.n desc), json_extract(max(a.json), '$.id')
    from c join ad_countries using (country) join ads a using (id) group by 1 order by 1`);
  expect(rows).toEqual([
    ['AT', 5, 4, 1, 'ad-8'],
    ['DE', 5, 4, 1, 'ad-8'],
    ['FR', 1, null, 3, 'long'],
  ]);
  const counted = await query('with c as (select id from ad_cards) select count(*), (select count(*) from c) from c');
  expect(counted.rows).toEqual([[2, 2]]);
  expect((await query("select value from json_each('[1,2]')")).rows).toEqual([[1], [2]]);
});

test('SQL statements still work if a stored ad has extremely long texts', async () => {
  const huge = '㊗'.repeat(700_000);
  const flood = { headline: huge, body: huge, linkDescription: huge, ctaType: huge, cards: [{ title: huge }] };
  const flooded = createSnapshot('flooded', [...createAds(2), { id: 'flood', ...flood }]);
  for (const sql of ['select * from ads order by id', "select json_extract(json, '$.id'), text || body from ads"])
    expect(await pool.query(flooded, { sql, maxCellChars: 20 })).toMatchObject({ rowCount: 3 });
  const { rows } = await pool.query(flooded, { sql: "select length(body), json from ads where id = 'flood'" });
  expect(rows).toEqual([[50_000 + '… (+650000 chars)'.length, null]]);
});

test.each<[said: string | RegExp, sql: string]>([
  ['There is no table adverts. The tables are ads, ad_countries', 'select id from adverts'],
  ['SQLite says: "bad JSON path: \'free ship', "select json_extract('{}', body) from ads where id = 'hidden'"],
  [/write ads\.json|no such column/, 'select json from ads, json_each(ads.countries)'],
  ['text REGEXP pattern', 'select regexp_replace(1, 2, 3)'],
  ['at most 20000 are allowed', `select '${'x'.repeat(20_000)}'`],
])('the error about an invalid SQL statement contains the hint "%s"', async (expectedMessage, sql) => {
  await expect(query(sql)).rejects.toThrow(expectedMessage);
});
