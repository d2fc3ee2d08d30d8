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
  expect(await served.load(ad)).toMatchObject({ ads: 1, skipped: 0 });
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

test('a document that unpacks to more than 256 MB is refused, and not unpacked to its end', async ({ served }) => {
  const part = gzipSync(Buffer.alloc(16 * 2 ** 20, ' '));
  let read = 0;
  async function* source() {
    yield gzipSync('[');
    for (; read < 40; read++) yield part;
  }
  const problem = expect.stringMatching(/^a document of more than 256 MB; write each record on a line of its own/);
  expect(await served.library.import(source())).toMatchObject({ ads: 0, problems: [{ line: 1, problem }] });
  expect(read).toBeLessThan(20);
});

const words = (first: number) => Array.from({ length: 20_000 }, (_, at) => `w${first + at}`).join(' ');

test.for<[name: string, records: () => unknown[]]>([
  ['many records on one line', () => [Array.from({ length: 6000 }, (_, at) => ({ id: uuid(at), headline: 'Ad' }))]],
  ['much that is skipped on one line', () => [Array(150_000).fill(1)]],
  ['long texts', () => Array.from({ length: 25 }, (_, at) => ({ id: uuid(at), body: words(at * 50_000) }))],
])('other requests are answered during an import of %s', async ([_, records], { served }) => {
  const order: string[] = [];
  const importing = served.load(...records()).then(() => order.push('imported'));
  expect((await served.get('/v1/whoami')).status).toBe(200);
  order.push('answered');
  await importing;
  expect(order).toEqual(['answered', 'imported']);
});
