import { gzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { importText } from '../../src/library/commands/commands.ts';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, uuid } from './support/served-library.ts';

async function* chunksOf(...chunks: (string | Uint8Array)[]) {
  yield* chunks;
}

/** What the command prints after the first line. */
async function problemsOf(served: ServedLibrary, ...chunks: (string | Uint8Array)[]) {
  const report = await served.library.import(chunksOf(...chunks));
  return {
    ads: report.ads,
    problems: importText({ name: 'file', ...report })
      .split('\n')
      .slice(1),
  };
}

const ad = (number: number) => ({ id: uuid(number), headline: `Ad ${number}` });
const pretty = (value: unknown) => JSON.stringify(value, null, 2);

describe('problems are named by line and path, and cost one record', () => {
  test('a field in a document', async ({ served }) => {
    const text = pretty({ data: [ad(1), { id: 'x' }, { ...ad(3), countries: [1] }, ad(4)] });
    expect(await problemsOf(served, text)).toEqual({
      ads: 2,
      problems: [
        '  line 9, data[1].id: an ad\'s id is a UUID; got "x"',
        '  line 16, data[2].countries.0: Invalid input: expected string, received number',
      ],
    });
  });

  test('a text that is not closed in a document', async ({ served }) => {
    const text = pretty([ad(1), ad(2), ad(3)]).replace('"Ad 2"', '"Ad 2');
    const problem = 'line 8: not JSON; nothing after it was read, and "library import --help" names the formats';
    expect(await problemsOf(served, text)).toEqual({ ads: 1, problems: [`  ${problem}`] });
  });

  test('a bracket that is not closed on a line', async ({ served }) => {
    const lines = [`{"id":"${uuid(1)}","n":`, JSON.stringify(ad(2)), `{"id":"${uuid(3)}","cards":[{"a":1}`];
    const { ads, problems } = await problemsOf(
      served,
      [...lines, JSON.stringify(ad(4)), JSON.stringify(ad(5))].join('\n'),
    );
    expect(ads).toBe(3);
    expect(problems).toEqual(
      [1, 3].map((line) => `  line ${line}: not JSON; "library import --help" names the formats`),
    );
  });

  test('a file that is cut off in a record, or after one', async ({ served }) => {
    const text = pretty({ data: [ad(1), ad(2)] });
    expect(await problemsOf(served, text.slice(0, -30))).toEqual({
      ads: 1,
      problems: ['  line 9: not JSON: a text or a bracket is not closed; is the file cut off?'],
    });
    expect(await problemsOf(served, text.slice(0, -4))).toEqual({
      ads: 2,
      problems: ['  line 11: not JSON: a text or a bracket is not closed; is the file cut off?'],
    });
  });

  test('zero bytes, markup and anything else that is not JSON', async ({ served }) => {
    const { ads, problems } = await problemsOf(served, `${JSON.stringify(ad(1))}\n\0\0\n<html>\n{"id":"\0"}\n`);
    expect(ads).toBe(1);
    expect(problems).toEqual(
      [2, 3, 4].map((line) => `  line ${line}: not JSON; "library import --help" names the formats`),
    );
  });
});

describe('compressed data', () => {
  const whole = gzipSync(pretty([ad(1), ad(2)]));

  test.for([
    ['cut off', whole.subarray(0, -10), 'the compressed data is cut off; import a whole copy'],
    ['damaged', Buffer.from(whole).fill(0xff, 20, 24), 'the compressed data is damaged; import a whole copy'],
    ['twice', gzipSync(whole), 'compressed twice; unpack the file once and import the result'],
    ['of another kind', Buffer.from('PK\x03\x04…'), /^a ZIP archive or a workbook; unpack it/],
  ] as const)('%s', async ([_, bytes, problem], { served }) => {
    const report = await served.library.import(chunksOf(bytes));
    expect(report).toMatchObject({ skipped: 1, problems: [{ line: 1, problem: expect.stringMatching(problem) }] });
  });

  test('that unpacks to a text a thousand times as long is read without keeping it', async ({ served }) => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('{"id":"'), Buffer.alloc(96 * 2 ** 20, 'x')]));
    const before = process.memoryUsage.rss();
    const report = await served.library.import(chunksOf(bomb));
    expect(report).toMatchObject({
      ads: 0,
      problems: [{ line: 1, problem: expect.stringMatching(/^a record of more than .*nothing after it was read/) }],
    });
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 2 ** 20);
  });
});

test('a list of a hundred thousand brackets is no record, and the next line is read', async ({ served }) => {
  const { ads, problems } = await problemsOf(
    served,
    `${'['.repeat(100_000)}${']'.repeat(100_000)}\n${JSON.stringify(ad(1))}\n`,
  );
  expect(ads).toBe(1);
  expect(problems).toEqual([expect.stringMatching(/not a JSON object/)]);
});

test('page ids that no call could ask for are refused, in pages and in ads', async ({ served, key }) => {
  const wrong = ['.', '..', '', 'a/../b', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(301)];
  const pages = [...wrong, 'x'.repeat(300), 'ü z'].map((pageId) => ({ pageId, pageName: 'P' }));
  const report = await served.load(...pages, { ...ad(1), pageId: '..' });
  expect(report).toMatchObject({ pages: 2, ads: 0, skipped: wrong.length + 1 });
  for (const { problem } of report.problems)
    expect(problem).toMatch(/^pageId: cannot be asked for; a page id has 1 to 300/);
  for (const { pageId } of pages.slice(wrong.length))
    expect((await served.ask('GET', `/v1/pages/${encodeURIComponent(pageId)}`, { key })).status).toBe(200);
});

test('what replaced an earlier record and why others were skipped is counted', async ({ served }) => {
  const wrong = Array.from({ length: 100 }, (_, at) => (at % 2 ? { id: `no uuid ${at}` } : 7));
  const report = await served.load(ad(1), ad(1), ad(2), ...wrong);
  expect(report).toMatchObject({ ads: 3, updated: 1, skipped: 100 });
  const text = importText({ name: 'file', ...report }).split('\n');
  expect(text[0]).toBe('file: 3 ads and 0 pages, 1 of them updated an earlier record, 100 skipped:');
  expect(text.slice(-3)).toEqual(['  and 50 more:', '    25 × not JSON', "    25 × id: an ad's id is a UUID"]);
});
