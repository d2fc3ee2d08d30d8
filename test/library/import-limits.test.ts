import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test.for<[name: string, fields: object, query?: string]>([
  ['200,000 letters of a script without spaces', { body: `${'세럼'.repeat(100_000)}끝` }, '럼끝'],
  ['a domain of countless labels, which is not indexed', { displayUrl: 'a.'.repeat(100_000) }],
  // Normalizing as many in a row at once would take longer than any test may.
  ['a letter with countless marks', { body: `caf\u0065${'\u0301\u0316'.repeat(400_000)} cr\u00e8me` }, 'cafe creme'],
])('%s: a field is kept as it is, and found', async ([_, fields, query], { served }) => {
  const ad = { id: uuid(1), ...fields };
  expect(await served.importRecords(ad)).toMatchObject({ ads: 1, skipped: 0 });
  expect((await served.get(`/v1/ads/${uuid(1)}`)).body).toEqual(ad);
  if (query) expect((await served.search({ query })).body.totalHits).toBe(1);
});

test('a record nested too deep is reported with its line; the deepest allowed one can be read', async ({ served }) => {
  const report = await served.library.import(
    (async function* () {
      yield `{"id":"${uuid(1)}","x":${nested(63)}}\n{"id":"${uuid(2)}","x":${nested(64)}}\n`;
      yield `{"id":"${uuid(3)}","x":${nested(5_000)}}\n[{"id":"${uuid(4)}","x":${nested(100_000)}}]\n`;
      yield `{"ad_archive_id":"5","impressions":${nested(5_000)}}\n`;
    })(),
  );
  const problem = 'nested deeper than 64 levels';
  expect(report).toMatchObject({ ads: 1, skipped: 4 });
  expect(report.problems).toEqual([2, 3, 4, 5].map((line) => ({ line, path: line === 4 ? '[0]' : '', problem })));
  expect((await served.search({})).body.items).toHaveLength(1);
  expect(served.errors).toEqual([]);
});

/** Bytes that are in use. */
function held(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('a line without an end is not kept in memory', async ({ served }) => {
  const megabyte = Buffer.alloc(2 ** 20, 'x');
  let [before, after] = [0, 0];
  async function* source() {
    yield Buffer.from(`{"id":"${uuid(2)}"}\n`);
    before = held();
    for (let at = 0; at < 128; at++) yield megabyte;
    after = held();
    yield Buffer.from(`\n{"id":"${uuid(1)}"}\n`);
  }
  expect(await served.library.import(source())).toMatchObject({ ads: 2, skipped: 1, problems: [{ line: 2 }] });
  expect(after - before).toBeLessThan(64 * 2 ** 20);
});

test('a document of any length is read in little memory, compressed or not', async ({ served }) => {
  const amount = 40_000;
  const line = JSON.stringify(Array.from({ length: amount }, () => ({}))).slice(1, -1);
  let after = 0;
  const before = held();
  async function* source() {
    yield gzipSync(`{"data":[{"id":"${uuid(1)}"},${line}`);
    for (let at = 0; at < 400; at++) {
      yield gzipSync(`,"${'x'.repeat(100_000)}"`);
      if (at === 390) after = held();
    }
    yield gzipSync(`,{"id":"${uuid(2)}"}]}`);
  }
  expect(await served.library.import(source())).toMatchObject({ ads: 2, skipped: amount + 400 });
  expect(after - before).toBeLessThan(64 * 2 ** 20);
});

test('a source of which 100,000 records cannot be used is not read any further', async ({ served }) => {
  const junk = gzipSync('{},'.repeat(100_000));
  let read = 0;
  async function* source() {
    yield gzipSync(`[{"id":"${uuid(1)}"},`);
    for (; read < 1000; read++) yield junk;
  }
  const report = await served.library.import(source());
  expect(report).toMatchObject({ ads: 1, skipped: 100_000 });
  expect(report.reasons).toMatchObject({
    '100,000 records cannot be used': 1,
  });
  expect(read).toBeLessThan(500);
});

test('a table of thousands of columns for one field is refused at once, or read in the time of other tables', async ({
  served,
}) => {
  const tableOf = (columns: number) => `headline${',date'.repeat(columns)}\n${'5\n'.repeat(20_000)}`;
  expect(await served.importRecords(tableOf(40_000))).toMatchObject({
    skipped: 1,
    problems: [{ problem: 'a table of 40001 columns; an import reads at most 5000 columns' }],
  });
  const start = process.cpuUsage();
  expect(await served.importRecords(tableOf(4_000))).toMatchObject({ ads: 0, skipped: 20_000 });
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(10_000);
});

const words = (first: number) => Array.from({ length: 20_000 }, (_, at) => `w${first + at}`).join(' ');

test.for<[name: string, records: () => unknown[]]>([
  ['many records on one line', () => [Array.from({ length: 6000 }, (_, at) => ({ id: uuid(at), headline: 'Ad' }))]],
  ['much that is skipped on one line', () => [Array(90_000).fill(1)]],
  ['long texts', () => Array.from({ length: 25 }, (_, at) => ({ id: uuid(at), body: words(at * 50_000) }))],
])('other requests are answered during an import of %s', async ([_, records], { served }) => {
  const order: string[] = [];
  const importing = served.importRecords(...records()).then(() => order.push('imported'));
  expect((await served.get('/v1/whoami')).status).toBe(200);
  order.push('answered');
  await importing;
  expect(order).toEqual(['answered', 'imported']);
});
