import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect } from 'vitest';
import { importText } from '../../src/cli/library.ts';
import { libraryTest as test } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

async function* chunksOf(chunks: Iterable<string | Uint8Array>) {
  yield* chunks;
}

const ad = (number: number) => ({ id: uuid(number), headline: `Ad ${number}` });
const json = (value: unknown) => JSON.stringify(value);
const pretty = (value: unknown) => JSON.stringify(value, null, 2);

const layouts: Record<string, (ads: unknown[], indent: number) => string> = {
  lines: (ads) => ads.map(json).join('\n'),
  'indented values one after another': (ads) => ads.map(pretty).join('\n'),
  'an answer that wraps its list': (ads, indent) => JSON.stringify({ a: { b: [{ node: { ads } }] } }, null, indent),
  'lines with several': ([first, ...others]) => `${json(first)}\n${others.map(json).join(',')}\n`,
  'a list': (ads, indent) => JSON.stringify(ads, null, indent),
  'a list with a record on each line': (ads) => `[\n${ads.map(json).join(',\n')}\n]\n`,
  data: (data, indent) => JSON.stringify({ took: '"[', data, paging: { next: ']' } }, null, indent),
  items: (items, indent) => JSON.stringify({ items, cursor: null, hasMore: false }, null, indent),
  'a list of pages': (ads, indent) =>
    JSON.stringify([{ data: ads.slice(0, 1), paging: {} }, { data: ads.slice(1) }], null, indent),
};

test('records are read back as they were from any layout of JSON, wherever its bytes are cut', async ({ served }) => {
  const text = fc.string({ unit: 'binary' });
  const extra = fc.dictionary(
    fc.oneof(
      fc.constantFrom('data', 'items', 'key', 'a"b', '[', '{"', 'note\n'),
      fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== '__proto__'),
    ),
    fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant([{ id: 'inner' }]), fc.constant('}]{["\\\n')),
    { maxKeys: 5 },
  );
  const record = fc.tuple(extra, fc.record({ headline: text, body: text, countries: fc.array(text) }));
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...Object.keys(layouts)),
      fc.record({ indent: fc.nat(4), lineEnd: fc.constantFrom('\n', '\r\n'), cuts: fc.array(fc.nat(400)) }),
      async (records, layout, { indent, lineEnd, cuts }) => {
        const pageId = `run ${run++}`;
        const ads = records.map(([extras, fields], at) => {
          const id = uuid(10 * run + at);
          // The id comes first: until then, an object with a list in `data` is taken to be around records.
          return JSON.parse(json(Object.assign({ id }, extras, fields, { id, pageId })));
        });
        const bytes = Buffer.from(layouts[layout]?.(ads, indent).replaceAll('\n', lineEnd) ?? '');
        const at = [0, ...cuts.sort((left, right) => left - right), bytes.length];
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
        const report = await served.library.import(chunksOf(chunks));
        expect(report).toMatchObject({ ads: ads.length, skipped: 0, problems: [] });
        for (const one of ads) expect((await served.get(`/v1/ads/${one.id.toUpperCase()}`)).body).toEqual(one);
        const { items } = await served.searchAll({ pageId, sort: 'duplicates', order: 'asc' });
        expect(items).toEqual(ads);
      },
    ),
    { numRuns: 30 },
  );
});

test('a page made from an ad is replaced by the page itself, and never replaces it', async ({ served }) => {
  const given = { id: uuid(1), pageId: 'p', page: { pageName: 'From the ad', adsAmount: 3 }, countries: ['FR'] };
  const made = { pageId: 'p', pageName: 'From the ad', adsAmount: 3, countries: ['FR'], detailsEstimated: true };
  const own = { pageId: 'p', pageName: 'Itself' };
  await served.importRecords(given);
  expect((await served.get('/v1/pages/p')).body).toEqual(made);
  await served.importRecords(own);
  await served.importRecords(given, { ...given, id: uuid(2) });
  expect((await served.get('/v1/pages/p')).body).toEqual(own);
});

const encoded = [
  { id: uuid(1), headline: '수분 크림 🔥' },
  // The second was lost before it was written here.
  { id: uuid(2), headline: 'Crème �' },
];
const text = pretty(encoded);

test.for([
  ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${text}`)],
  ['gzip', gzipSync(text)],
  ['UTF-16 with a byte order mark', Buffer.from(`\uFEFF${text}`, 'utf16le')],
  ['UTF-16 without a byte order mark', Buffer.from(text, 'utf16le').swap16()],
  ['gzip in two parts', Buffer.concat([gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))])],
] as const)('recognises %s by content', async ([_, bytes], { served }) => {
  for (const chunks of [[bytes], Array.from(bytes, (byte) => Buffer.of(byte))]) {
    expect(await served.library.import(chunksOf(chunks))).toMatchObject({ ads: 2, skipped: 0 });
    expect((await served.searchAll({ sort: 'duplicates', order: 'asc' })).items).toEqual(encoded);
  }
});

const whole = gzipSync(pretty([ad(1), ad(2)]));
const notJson = 'not JSON, or cut off; "library import --help" lists the formats';
const mixed: unknown[] = [
  ...[ad(2), { id: 'seven' }, { id: uuid(3), duplicates: 'many' }, { id: uuid(4), startedAt: 'yesterday' }],
  ...[{ name: 'neither' }, { pageId: 'no-name' }, 42, [ad(5), { id: 'eight' }], { data: [ad(6)] }],
];

test.for<[name: string, source: string | Uint8Array, ads: number, ...problems: (string | RegExp)[]]>([
  [
    'lines of their own',
    `${json(ad(1))}\n\n${mixed.map(json).join('\n')}`,
    4,
    'line 4: id: an ad\'s id is a UUID; got "seven"',
    /^line 5: duplicates: /,
    'line 6: startedAt: not an ISO 8601 date-time; got "yesterday"',
    /^line 7: neither an ad \(id\) nor a page \(pageId, pageName\) nor an ad of the Meta Ad Library \(ad_archive_id\);/,
    /^line 8: pageName: /,
    'line 9: not a JSON object; a record is an ad or a page',
    'line 10, [1].id: an ad\'s id is a UUID; got "eight"',
  ],
  [
    'fields in a document',
    pretty({ data: [ad(1), { id: 'x' }, { ...ad(3), countries: [1] }, ad(4)] }),
    2,
    'data[1].id: an ad\'s id is a UUID; got "x"',
    'data[2].countries.0: Invalid input: expected string, received number',
  ],
  [
    'a text that is not closed in a document',
    pretty([ad(1), ad(2), ad(3)]).replace('"Ad 2"', '"Ad 2'),
    2,
    `line 6, [1]: ${notJson}`,
  ],
  [
    'a document that is cut off',
    pretty({ data: [ad(1), ad(2), ad(3)] }).slice(0, -30),
    2,
    `line 11, data[2]: ${notJson}`,
  ],
  ['a document on one line that is cut off', json([ad(1), ad(2), ad(3)]).slice(0, -30), 2, `line 1, [2]: ${notJson}`],
  [
    'a bracket that is not closed on a line',
    [`{"id":"${uuid(1)}","n":`, json(ad(2)), `{"id":"${uuid(3)}","a":[{"b":1}`, json(ad(4)), json(ad(5))].join('\n'),
    3,
    `line 1: ${notJson}`,
    `line 3: ${notJson}`,
  ],
  [
    'zero bytes, markup and anything else that is not JSON',
    `${json(ad(1))}\n\0\0\n<html>\n{"id":}\n`,
    1,
    ...[2, 3, 4].map((line) => `line ${line}: ${notJson}`),
  ],
  ['a hundred thousand brackets', `${'['.repeat(1e5)}${']'.repeat(1e5)}\n${json(ad(1))}\n`, 1, /not a JSON object/],
  ['gzip that is cut off', whole.subarray(0, -10), 0, /the compressed data is cut off; import an undamaged copy$/],
  [
    'damaged gzip',
    Buffer.from(whole).fill(0xff, 20, 24),
    0,
    /the compressed data is damaged; import an undamaged copy$/,
  ],
  [
    'a byte of another encoding',
    Buffer.concat(
      [json(ad(1)), json({ ...ad(2), body: 'Crème' }), json(ad(3))].map((line) => Buffer.from(`${line}\n`, 'latin1')),
    ),
    2,
    'line 2: bytes that are not UTF-8; save the file as UTF-8 and import it again',
  ],
  [
    'a byte of another encoding in a document on one line',
    Buffer.from(json({ data: [ad(1), { ...ad(2), body: 'Crème' }, ad(3)] }), 'latin1'),
    2,
    'line 1, data[1]: bytes that are not UTF-8; save the file as UTF-8 and import it again',
  ],
  ['a ZIP archive', 'PK\x03\x04…', 0, /a ZIP archive or a workbook; unpack it or save it as CSV/],
  ['an ad of a page that has no path', json({ ...ad(1), pageId: '..' }), 0, /^line 1: pageId: not a valid page id/],
  [
    'a record of more than a megabyte',
    `${json([{ id: uuid(1), body: 'long '.repeat(250_000) }, ad(2)])}\n`,
    1,
    /^line 1, \[0\]: a record of more than 1048576 characters; put a list of records into/,
  ],
])('reports the place of %s, and reads the other records', async ([_, source, ads, ...problems], { served }) => {
  const report = await served.library.import(chunksOf([source]));
  expect(report.ads).toBe(ads);
  const [, ...lines] = importText({ name: 'file', ...report }).split('\n  ');
  expect(lines).toEqual(problems.map((one) => (typeof one === 'string' ? one : expect.stringMatching(one))));
});

test('page ids that no call could ask for are refused', async ({ served }) => {
  const wrong = ['.', '..', '', 'a/../b', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(301)];
  const right = ['x'.repeat(300), 'ü z'];
  const report = await served.importRecords(...[...wrong, ...right].map((pageId) => ({ pageId, pageName: 'P' })));
  expect(report).toMatchObject({ pages: right.length, skipped: wrong.length });
  for (const { problem } of report.problems)
    expect(problem).toMatch(/^pageId: not a valid page id; a page id has 1 to 300/);
  for (const id of right) expect((await served.get(`/v1/pages/${encodeURIComponent(id)}`)).status).toBe(200);
});

test('what replaced an earlier record and why others were skipped is counted', async ({ served }) => {
  const wrong = Array.from({ length: 100 }, (_, at) => (at % 2 ? { id: `no uuid ${at}` } : 7));
  const report = await served.importRecords(ad(1), ad(1), ad(2), ...wrong);
  const lines = importText({ name: 'file', ...report }).split('\n');
  expect(lines[0]).toBe('file: 2 ads and 0 pages, 1 record with the id of another one in the file, 100 skipped:');
  expect(lines).toHaveLength(1 + 50 + 3);
  const [not, id] = ['not a JSON object', "id: an ad's id is a UUID"].map((reason) => `    25 × ${reason}`);
  expect(lines.slice(-3)).toEqual(['  and 50 more:', not, id]);
});

test('the report on a record is short, however much is wrong with it', async ({ served }) => {
  const { problems } = await served.importRecords({ id: uuid(1), countries: Array(50_000).fill(1) });
  expect(problems[0]?.problem).toMatch(/^countries\.0: /);
  expect(problems[0]?.problem.length).toBeLessThanOrEqual(500);
});

test('a page that an ad of the same import made is not counted as updated', async ({ served }) => {
  const page = { pageId: 'p', pageName: 'P' };
  expect(await served.importRecords({ ...ad(1), pageId: 'p' }, page)).toMatchObject({
    ads: 1,
    pages: 1,
    updated: 0,
    repeated: 0,
  });
  expect(await served.importRecords(page, page)).toMatchObject({ pages: 1, updated: 1, repeated: 1 });
});

test.for([
  { startedAt: '05/04/2026' },
  { startedAt: '1234' },
  { startedAt: '2026-02-30' },
  { endDate: 'Feb 3, 2025' },
  { audienceReach: -5 },
  { duplicates: -1 },
  { adSpendMin: -0.5 },
])('an ad in the shape of the API with %j is refused, and the key is named', async (fields, { served }) => {
  const [key] = Object.keys(fields);
  const { ads, problems } = await served.importRecords({ ...ad(1), ...fields }, ad(2));
  expect({ ads, problems }).toEqual({
    ads: 1,
    problems: [{ line: 1, path: '', problem: expect.stringMatching(`^${key}: `) }],
  });
});
