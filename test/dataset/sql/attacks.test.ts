import { afterAll, expect, test } from 'vitest';
import { AdLibraryError } from '../../../src/api/errors.ts';
import { getCompiledSqlite } from '../../../src/dataset/sql/compiled-sqlite.ts';
import { isAllowedAction, SqlEngine } from '../../../src/dataset/sql/engine.ts';
import { statementLimits } from '../../../src/dataset/sql/limits.ts';
import { type DatasetSnapshot, SqlPool } from '../../../src/dataset/sql/pool.ts';
import { createAds, createSnapshot } from './snapshots.ts';

const messages = {
  refused: /^Only a SELECT .* The tables are ads, /,
  'more than one': /^The SQL holds more than one statement, and none of them was run\./,
  nothing: /^The SQL holds no statement\./,
  stopped: /^The statement (?:was stopped after 0.4 seconds|needed more than 32 MB|put together a text of more than)/,
  wrong:
    /^(?:SQLite says: ".+"\. Correct the SQL|An integer is outside the range|There is no (?:table|column|function) |Double quotes mark|Several tables)/,
};
/** The outcome of a statement: an error of one of the kinds in `messages`, or a result if the statement is harmless. */
type Outcome = keyof typeof messages | 'answered';

const ones = 'with recursive n(x) as (select 1 union all select x + 1 from n)';
const deep = (depth: number, text: string, core = '1') => text.repeat(depth) + core + ')'.repeat(depth);

/** Statements that try to write, to access the system, to read foreign data, or to exceed the resource limits. */
const attacks: [Outcome, string][] = [
  // Statements that try to change data
  ['refused', 'delete from ads'],
  ['refused', "insert into ads (id) values ('x') returning id"],
  ['refused', "update ads set body = 'x' returning *"],
  ['refused', 'drop table ads'],
  ['refused', 'alter table ads rename to a'],
  ['refused', 'create table t (x)'],
  ['refused', 'create temp table t as select * from ads'],
  ['refused', 'create temp trigger t after insert on ads begin select 1; end'],
  ['refused', 'create virtual table f using fts5 (body)'],
  ['refused', 'with x as (select 1) insert into ads (id) select * from x'],
  ['wrong', "insert into ads_fts (ads_fts) values ('rebuild')"],
  ['wrong', 'select * from (delete from ads returning id)'],
  ['wrong', 'with x as (delete from ads returning id) select * from x'],
  ['wrong', "update sqlite_master set sql = 'x'"],
  ['refused', "insert into sqlite_schema values ('table', 'x', 'x', 1, 'x')"],
  // Statements that try to access files or other databases
  ['refused', "attach database 'file:/tmp/x?mode=rwc' as x"],
  ['refused', "attach ':memory:' as x"],
  ['refused', "vacuum into '/tmp/x.db'"],
  ['refused', 'pragma table_list'],
  ['refused', 'pragma hard_heap_limit = 0'],
  ['refused', "pragma temp_store_directory = '/tmp'"],
  ['wrong', "select load_extension('/tmp/x.so')"],
  ['wrong', "select writefile('/tmp/x', 'x')"],
  ['wrong', "select edit('x')"],
  ['wrong', "select fts3_tokenizer('simple')"],
  ['wrong', "select * from fsdir('/')"],
  // Transactions and SQLite internals
  ['refused', 'begin immediate'],
  ['refused', 'commit'],
  ['refused', 'analyze'],
  ['refused', 'explain query plan select * from ads'],
  ['refused', 'select * from sqlite_schema'],
  ['refused', 'select sql from "sqlite_master"'],
  ['refused', "select * from pragma_table_info('ads')"],
  ['refused', 'with x as (select name from pragma_function_list) select * from x'],
  ['wrong', 'select * from dbstat'],
  ['wrong', 'select data from sqlite_dbpage'],
  ['wrong', 'select sql from sqlite_stmt'],
  ['wrong', "select * from tables_used('select 1')"],
  ['refused', 'select sqlite_compileoption_get(1)'],
  ['refused', "select sqlite_log(1, 'x')"],
  ['refused', 'select sqlite_version()'],
  // Several statements or no statement
  ['refused', 'select 1; delete from ads'],
  ['more than one', 'select 1; select 2'],
  ['more than one', 'select 1\0; delete from ads'],
  ['more than one', '\0select 1'],
  ['wrong', 'select 1; not sql'],
  ['nothing', ''],
  ['nothing', '/* select 1 */'],
  ['answered', "/* it's */ select 1 -- ; delete from ads"],
  ['answered', 'select 1 ; ; /* end */'],
  ['answered', 'select \'a;b\', "id", [id], `id` from ads limit 1'],
  ['wrong', "select 'open"],
  ['wrong', 'select 1 )('],
  ['wrong', 'select :name, @name, $name'],
  ['answered', "select '\ud800', char(0, 55296, 1114111), x'ff00', cast(x'fffe' as text)"],
  ['wrong', 'select 1 as "a\u202eb\0\n", 2 as "a\u202eb", 3 as ""'],
  // Statements that never end
  ['stopped', `${ones} select count(*) from n`],
  ['stopped', `${ones} select max(x) from n where x < 0`],
  ['stopped', 'select count(*) from ads a, ads b, ads c, ads d, ads e where a.id || b.id || c.id > d.id || e.id'],
  ['stopped', 'select a.id from ads a, ads b, ads c, ads d order by random() limit 1'],
  ['stopped', `${ones} select sum(length(randomblob(900000))) from n`],
  ['stopped', `${ones} select count(*) from n, (select * from n limit 100000)`],
  ['stopped', `${ones}, m(y) as (select x from n union all select y + 1 from m) select count(*) from m`],
  ['stopped', "select instr(zeroblob(900000), cast(zeroblob(450000) || x'01' as blob))"],
  ['stopped', "select trim(printf('%9000000c', 'a') , printf('%.900000c', 'b') || 'a' || printf('%.9c', 'c'))"],
  [
    'stopped',
    "with recursive a(s) as (select printf('%.900000c', 'a')) select sum(s like printf('%%%.90c%%b', 'a')) from a, json_each('[1,2,3,4,5,6,7,8,9]') b, ads c, ads d",
  ],
  // Results that are too large
  ['stopped', 'select randomblob(1000000000)'],
  ['stopped', "select printf('%.1000000000c', 'x')"],
  ['stopped', "select format('%1000000000d', 1)"],
  ['stopped', 'select hex(zeroblob(1900000))'],
  ['stopped', "select replace(hex(zeroblob(400000)), '0', 'xxxxxxxxxx')"],
  ['stopped', `${ones} select group_concat(printf('%.1000c', 'x')) from n`],
  ['stopped', `${ones} select json_group_array(x) from n`],
  ['stopped', `with recursive n(x) as (select zeroblob(900000) union all select x || x from n) select count(*) from n`],
  ['stopped', `${ones} select printf('%.900000c', x) as t from n order by t desc`],
  ['stopped', `${ones} select distinct x, randomblob(100000) from n`],
  ['stopped', `${ones} select x, row_number() over (order by randomblob(1000)) from n`],
  // Statements that are too deep, too wide or too long
  ['wrong', `select ${deep(3000, 'abs(')}`],
  ['wrong', `select ${'not '.repeat(4000)} 1`],
  ['wrong', `select ${'-'.repeat(1)}${' -'.repeat(5000)} 1`],
  ['wrong', `select 1${' union all select 1'.repeat(500)}`],
  ['wrong', `select ${Array.from({ length: 3000 }, () => '1').join()}`],
  ['wrong', `select max(${Array.from({ length: 500 }, () => '1').join()})`],
  ['wrong', `select ${deep(300, '(select ')}`],
  ['wrong', `select * from ${Array.from({ length: 70 }, (_, index) => `ads a${index}`).join()}`],
  ['wrong', `select ${'case when 1 then '.repeat(400)} 1 ${'end '.repeat(400)}`],
  [
    'wrong',
    `with ${Array.from({ length: 300 }, (_, index) => `c${index} as (select * from c${index + 1})`).join()} select * from c0`,
  ],
  ['wrong', `select 1 where 1 in ${deep(200, '(select 1 where 1 in ', '(1)')}`],
  // Expensive patterns, JSON and dates
  ['wrong', `select '${'a'.repeat(3000)}' like '${'%a'.repeat(2000)}b'`],
  ['wrong', `select '${'a'.repeat(3000)}' glob '${'*a'.repeat(2000)}b'`],
  ['refused', "select body match 'x' from ads"],
  ['wrong', `select json('${'['.repeat(5000)}')`],
  ['wrong', "select json_extract('{', '$')"],
  ['wrong', "select json_each.value from json_each('[1')"],
  ['answered', 'select count(*) from json_tree(\'{"a":[1,2,{"b":null}]}\')'],
  ['answered', "select json_valid(x'ffffffff'), jsonb(json) is null from ads limit 1"],
  ['answered', "select date('now', '+999999999 years'), strftime('%s', 'now', 'localtime'), date('9999-99-99')"],
  ['answered', 'select 9223372036854775807, -9223372036854775808, 9e999, -9e999, 1/0, 0.1 + 0.2'],
  ['wrong', 'select abs(-9223372036854775808)'],
];

const workingBytes = 32 * 2 ** 20;
const pool = new SqlPool({ limits: { maxWorkingBytes: workingBytes } });
/** A pool with a short time limit, for statements that never end. */
const shortTimeoutPool = new SqlPool({ limits: { maxStatementMs: 400, maxWorkingBytes: workingBytes } });
afterAll(() => Promise.all([pool.close(), shortTimeoutPool.close()]));
const snapshot = createSnapshot('tenant', createAds(400));

const runStatement = async (sql: string, from = pool, of: DatasetSnapshot = snapshot) => {
  try {
    return await from.query(of, { sql });
  } catch (error) {
    if (!(error instanceof AdLibraryError)) throw error;
    expect(error.failure).toMatchObject({ kind: 'invalid_request', wasSent: false });
    return error.message;
  }
};

test.each(attacks)(
  'a hostile SQL statement does not harm the SQL engine (expected outcome "%s"): %j',
  async (outcome, sql) => {
    const from = outcome === 'stopped' ? shortTimeoutPool : pool;
    const result = await runStatement(sql, from);
    if (outcome === 'answered') expect(result).toHaveProperty('rows');
    else expect(result).toMatch(messages[outcome]);
    const counting = 'select count(*), max(duplicates), min(id) from ads';
    // On a busy machine, even this statement may exceed the time limit, so retry it.
    await expect
      .poll(() => from.query(snapshot, { sql: counting }), { timeout: 60_000 })
      .toMatchObject({ rows: [[400, 399, 'ad-0']] });
  },
);

/** The reviewed SQLite functions. They read only their arguments, the clock or random numbers. */
const harmless =
  '-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json json_array json_array_insert json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power printf quote radians random randomblob rank regexp replace round row_number rtrim sign sin sinh sqrt strftime string_agg substr substring subtype sum tan tanh time timediff total trim trunc typeof unhex unicode unistr unistr_quote unixepoch unlikely upper zeroblob';

test('an SQL statement can call only SQLite functions that are on the list of reviewed functions', async () => {
  const engine = await SqlEngine.createEngine(getCompiledSqlite(), statementLimits);
  const reader = engine.prepare('select distinct name from pragma_function_list');
  const codes = { SQLITE_SELECT: 21, SQLITE_READ: 20, SQLITE_FUNCTION: 31, SQLITE_RECURSIVE: 33 };
  const allowed: string[] = [];
  while (reader.advance()) {
    const secondArgument = String(reader.readRow((text) => text)[0]);
    if (isAllowedAction({ code: codes.SQLITE_FUNCTION, firstArgument: '', secondArgument }, codes))
      allowed.push(secondArgument);
  }
  expect(allowed.toSorted()).toEqual(harmless.split(' ').toSorted());
});

test('running 5,000 SQL statements does not increase the memory use of the process', { timeout: 300_000 }, async () => {
  const statements = [
    'select displayFormat, count(*), avg(duplicates) from ads group by 1',
    'select group_concat(body) from ads',
    'select * from ads order by random() limit 2',
    'select nothing from ads',
    'pragma table_list',
    "select replace(hex(zeroblob(10000)), '0', 'ab')",
    'select json_group_array(json_object(id, body)) from ads',
    'select 1; select 2',
  ];
  const smallSnapshot = createSnapshot('few', createAds(20));
  const run = async (count: number) => {
    for (let index = 0; index < count; index++)
      await runStatement(statements[index % statements.length] ?? '', pool, smallSnapshot);
    return process.memoryUsage().rss;
  };
  const before = await run(1000);
  expect(((await run(4000)) - before) / 2 ** 20).toBeLessThan(40);
});
