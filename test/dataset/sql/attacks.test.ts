import { afterAll, describe, expect, test } from 'vitest';
import { AdLibraryError } from '../../../src/api/call.ts';
import { type Snapshot, SqlPool } from '../../../src/dataset/sql/pool.ts';
import { attacks, type Outcome } from './attacks.ts';
import { snapshotOf, someAds } from './snapshots.ts';

const pool = new SqlPool({ limits: { statementMs: 1000, workingBytes: 32 * 2 ** 20 }, graceMs: 200 });
afterAll(() => pool.close());
/** Its labels are other ones each time, so that they are replaced before every statement. */
let changes = 0;
const labels = {
  get version() {
    return String(++changes);
  },
  rows: () => [{ adId: 'ad-0', label: 'change', value: String(changes), labelledAt: null }],
};
const snapshot = { ...snapshotOf('tenant', someAds(400)), labels };

const messages: Record<Exclude<Outcome, 'answered'>, RegExp> = {
  refused: /^Only a SELECT .* Tables and columns: ads\(id, pageId/,
  'more than one': /^The SQL holds more than one statement, and none of them was run\./,
  nothing: /^The SQL holds no statement\./,
  stopped: /^The statement (?:was stopped after 1 seconds|needed more than 32 MB|put together a text of more than)/,
  wrong: /^SQLite could not run the statement\. SQLite says: ".+"\. (?:Correct the SQL|Tables and columns)/,
};

const outcomeOf = async (sql: string, of: Snapshot = snapshot) => {
  try {
    return await pool.query(of, { sql });
  } catch (error) {
    if (!(error instanceof AdLibraryError)) throw error;
    expect(error.failure).toMatchObject({ kind: 'invalid_request', sent: false });
    return error.message;
  }
};

describe('an attack', () => {
  test.each(attacks)('is %s: %j', async (outcome, sql) => {
    const said = await outcomeOf(sql);
    if (outcome === 'answered') expect(said).toHaveProperty('rows');
    else expect(said).toMatch(messages[outcome]);
    const counting = 'select count(*), max(duplicates), min(id), (select count(*) from labels) from ads';
    expect((await pool.query(snapshot, { sql: counting })).rows).toEqual([
      [400, 399, 'ad-0', expect.toBeOneOf([0, 1])],
    ]);
  });

  test('there are at least sixty, of every outcome', () => {
    expect(attacks.length).toBeGreaterThan(60);
    expect(new Set(attacks.map(([outcome]) => outcome)).size).toBe(6);
  });
});

test('10,000 statements leave no memory behind', async () => {
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
  const few = snapshotOf('few', someAds(20));
  const run = async (count: number) => {
    for (let index = 0; index < count; index++) await outcomeOf(statements[index % statements.length] ?? '', few);
    return process.memoryUsage().rss;
  };
  const before = await run(1000);
  expect(((await run(9000)) - before) / 2 ** 20).toBeLessThan(60);
});
