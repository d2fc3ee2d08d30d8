import { describe, expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, uuid } from './support/served-library.ts';

const adOf = async ({ served, key }: { served: ServedLibrary; key: string }, at: number) =>
  (await served.ask('GET', `/v1/ads/${uuid(at)}`, { key })).body;
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const archived = (html: string) => ({ ad_archive_id: '1', snapshot: { body: { markup: { __html: html } } } });

describe('extreme texts', () => {
  test('a field of 200,000 letters of a script without spaces is kept and found', async ({ served, key }) => {
    const report = await served.load({ id: uuid(1), body: `${'세럼'.repeat(100_000)}끝` });
    expect(report).toMatchObject({ ads: 1, skipped: 0 });
    const { body } = await served.ask('POST', '/v1/ads/search', { key, body: { query: '럼끝' } });
    expect(body.totalHits).toBe(1);
  });

  test('a domain of countless labels is stored but not indexed', async ({ served, key }) => {
    const displayUrl = 'a.'.repeat(50_000);
    expect(await served.load({ id: uuid(1), displayUrl })).toMatchObject({ ads: 1, skipped: 0 });
    expect(await adOf({ served, key }, 1)).toEqual({ id: uuid(1), displayUrl });
  });

  test('a letter with countless marks is stored as it is and found without them', async ({ served, key }) => {
    const body = `caf\u0065${'\u0301\u0316'.repeat(1000)} cr\u00e8me`;
    await served.load({ id: uuid(1), body });
    expect((await adOf({ served, key }, 1)).body).toBe(body);
    for (const query of ['cafe', 'creme']) {
      expect((await served.ask('POST', '/v1/ads/search', { key, body: { query } })).body.totalHits).toBe(1);
    }
  });

  test.for([
    ['opening brackets', (length: number) => archived('<'.repeat(length))],
    ['broken line breaks', (length: number) => archived('<br '.repeat(length / 4))],
    ['marks out of order', (length: number) => ({ id: uuid(1), body: `a${'\u0300\u0316'.repeat(length / 2)}` })],
    ['labels of a domain', (length: number) => ({ id: uuid(1), displayUrl: 'a.'.repeat(length / 2) })],
  ] as const)('%s take linear time', async ([_, record], { served }) => {
    const timeOf = async (length: number) => {
      const start = performance.now();
      await served.load(record(length));
      return performance.now() - start;
    };
    await timeOf(1000);
    // Quadratic work would take 4,096 times as long for 64 times the length.
    const short = await timeOf(4_000);
    expect(await timeOf(256_000)).toBeLessThan(Math.max(short, 20) * 64 * 4);
  });
});

describe('limits', () => {
  test('a record nested too deep is reported with its line; the deepest allowed one can be read', async ({
    served,
    key,
  }) => {
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
    const { status, body } = await served.ask('POST', '/v1/ads/search', { key, body: {} });
    expect([status, body.items.length]).toEqual([200, 1]);
    expect(served.errors).toEqual([]);
  });

  test('a record of more than a megabyte is reported with its line; others on the line are stored', async ({
    served,
  }) => {
    const report = await served.load([{ id: uuid(1), body: 'long '.repeat(250_000) }, { id: uuid(2) }]);
    expect(report).toMatchObject({ ads: 1, skipped: 1 });
    expect(report.problems).toMatchObject([{ line: 1, path: '[0]' }]);
    expect(report.problems[0]?.problem).toMatch(
      /^a record of more than 1048576 characters; a list of records goes into/,
    );
  });

  test('the report on a record is short, however much is wrong with it', async ({ served }) => {
    const report = await served.load({ id: uuid(1), countries: Array.from({ length: 50_000 }, () => 1) });
    expect(report.problems[0]?.problem).toMatch(/^countries\.0: /);
    expect(report.problems[0]?.problem.length).toBeLessThanOrEqual(500);
  });
});

test.for([
  [
    'many records on one line',
    () => [Array.from({ length: 20_000 }, (_, at) => ({ id: uuid(at), headline: `Ad ${at}` }))],
  ],
  ['much that is skipped on one line', () => [Array.from({ length: 300_000 }, () => 1)]],
  ['long texts', () => Array.from({ length: 60 }, (_, at) => ({ id: uuid(at), body: wordsFrom(at * 50_000, 20_000) }))],
] as const)('other requests are answered during an import of %s', async ([_, records], { served, key }) => {
  const lines = records();
  const order: string[] = [];
  const importing = served.load(...lines).then(() => order.push('imported'));
  for (let asked = 0; asked < 2; asked++) {
    expect((await served.ask('GET', '/v1/whoami', { key })).status).toBe(200);
    order.push('answered');
  }
  await importing;
  expect(order).toEqual([...Array.from({ length: 2 }, () => 'answered'), 'imported']);
});

const wordsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, at) => `w${first + at}`).join(' ');
