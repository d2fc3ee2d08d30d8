import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { createUuid } from './support/library-server.ts';

const nestArrays = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test.for<[name: string, fields: object, query?: string]>([
  ['a text of 50,000 letters without spaces', { body: `${'세럼'.repeat(25_000)}끝` }, '럼끝'],
  ['a domain of 100,000 labels', { displayUrl: 'a.'.repeat(100_000) }],
  // Normalizing all marks at once would take quadratic time, and exceed the time limit of the test.
  [
    'a letter with 800,000 combining marks',
    { body: `caf\u0065${'\u0301\u0316'.repeat(400_000)} cr\u00e8me` },
    'cafe creme',
  ],
])('`library import` stores an ad with %s unchanged', async ([_, fields, query], { libraryServer }) => {
  const ad = { id: createUuid(1), ...fields };
  expect(await libraryServer.importRecords(ad)).toMatchObject({ ads: 1, skipped: 0 });
  expect((await libraryServer.get(`/v1/ads/${createUuid(1)}`)).body).toEqual(ad);
  if (query) expect((await libraryServer.search({ query })).body.totalHits).toBe(1);
});

test('`library import` rejects records with more than 64 nested levels', async ({ libraryServer }) => {
  const report = await libraryServer.library.import(
    (async function* () {
      yield `{"id":"${createUuid(1)}","x":${nestArrays(63)}}\n{"id":"${createUuid(2)}","x":${nestArrays(64)}}\n`;
      yield `{"id":"${createUuid(3)}","x":${nestArrays(5_000)}}\n[{"id":"${createUuid(4)}","x":${nestArrays(100_000)}}]\n`;
      yield `{"ad_archive_id":"5","impressions":${nestArrays(5_000)}}\n`;
    })(),
  );
  const problem = 'nested deeper than 64 levels';
  expect(report).toMatchObject({ ads: 1, skipped: 4 });
  expect(report.problems).toEqual([2, 3, 4, 5].map((line) => ({ line, path: line === 4 ? '[0]' : '', problem })));
  expect((await libraryServer.search({})).body.items).toHaveLength(1);
  expect(libraryServer.errors).toEqual([]);
});

/** Runs the garbage collector, and returns the memory in use in bytes. */
function measureMemory(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('`library import` does not load a line of 32 MB into memory as a whole', async ({ libraryServer }) => {
  const megabyte = Buffer.alloc(2 ** 20, 'x');
  let [bytesBefore, bytesAfter] = [0, 0];
  async function* source() {
    yield Buffer.from(`{"id":"${createUuid(2)}"}\n`);
    bytesBefore = measureMemory();
    for (let count = 0; count < 32; count++) yield megabyte;
    bytesAfter = measureMemory();
    yield Buffer.from(`\n{"id":"${createUuid(1)}"}\n`);
  }
  expect(await libraryServer.library.import(source())).toMatchObject({ ads: 2, skipped: 1, problems: [{ line: 2 }] });
  expect(bytesAfter - bytesBefore).toBeLessThan(16 * 2 ** 20);
});

test('`library import` needs less than 32 MB of memory for a compressed file of 20 MB', async ({ libraryServer }) => {
  const emptyObjectCount = 20_000;
  const emptyObjects = JSON.stringify(Array.from({ length: emptyObjectCount }, () => ({}))).slice(1, -1);
  let bytesAfter = 0;
  const bytesBefore = measureMemory();
  async function* source() {
    yield gzipSync(`{"data":[{"id":"${createUuid(1)}"},${emptyObjects}`);
    for (let chunkIndex = 0; chunkIndex < 200; chunkIndex++) {
      yield gzipSync(`,"${'x'.repeat(100_000)}"`);
      if (chunkIndex === 190) bytesAfter = measureMemory();
    }
    yield gzipSync(`,{"id":"${createUuid(2)}"}]}`);
  }
  expect(await libraryServer.library.import(source())).toMatchObject({ ads: 2, skipped: emptyObjectCount + 200 });
  expect(bytesAfter - bytesBefore).toBeLessThan(32 * 2 ** 20);
});

test('`library import` stops after 100,000 records that it cannot use', async ({ libraryServer }) => {
  const unusableRecords = gzipSync('{}\n'.repeat(1000));
  let chunkCount = 0;
  async function* source() {
    yield gzipSync(`{"id":"${createUuid(1)}"}\n`);
    for (; chunkCount < 1000; chunkCount++) yield unusableRecords;
  }
  const report = await libraryServer.library.import(source());
  expect(report).toMatchObject({ ads: 1, skipped: 100_000 });
  expect(report.reasons).toMatchObject({
    '100,000 records cannot be used': 1,
  });
  expect(chunkCount).toBeLessThan(500);
});

test('`library import` rejects a table that has 40,001 columns', async ({ libraryServer }) => {
  const tableOf = (columns: number) => `headline${',date'.repeat(columns)}\n${'5\n'.repeat(5000)}`;
  expect(await libraryServer.importRecords(tableOf(40_000))).toMatchObject({
    skipped: 1,
    problems: [{ problem: 'a table of 40001 columns; an import reads at most 5000 columns' }],
  });
  const start = process.cpuUsage();
  expect(await libraryServer.importRecords(tableOf(4_000))).toMatchObject({ ads: 0, skipped: 5000 });
  expect(process.cpuUsage(start).user / 1000).toBeLessThan(2500);
});

const makeWords = (firstNumber: number) =>
  Array.from({ length: 20_000 }, (_, index) => `w${firstNumber + index}`).join(' ');

test.for<[name: string, records: () => unknown[]]>([
  [
    'many records on one line',
    () => [Array.from({ length: 1500 }, (_, index) => ({ id: createUuid(index), headline: 'Ad' }))],
  ],
  ['many invalid records on one line', () => [Array(30_000).fill(1)]],
  [
    'ads with long texts',
    () => Array.from({ length: 10 }, (_, index) => ({ id: createUuid(index), body: makeWords(index * 50_000) })),
  ],
])('the local library stays responsive while it imports %s', async ([_, records], { libraryServer }) => {
  const events: string[] = [];
  const importing = libraryServer.importRecords(...records()).then(() => events.push('imported'));
  expect((await libraryServer.get('/v1/whoami')).status).toBe(200);
  events.push('answered');
  await importing;
  expect(events).toEqual(['answered', 'imported']);
});
