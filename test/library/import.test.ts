import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, onTestFinished } from 'vitest';
import { formatImportReport } from '../../src/cli/library.ts';
import { libraryTest as test } from './support/fixtures.ts';
import { createUuid, startLibraryServer } from './support/library-server.ts';

async function* toStream(chunks: Iterable<string | Uint8Array>) {
  yield* chunks;
}

const createAd = (number: number) => ({ id: createUuid(number), headline: `Ad ${number}` });
const toJson = (value: unknown) => JSON.stringify(value);
const toIndentedJson = (value: unknown) => JSON.stringify(value, null, 2);

/** Functions that write ads as JSON, by layout name. */
const layouts: Record<string, (ads: unknown[], indent: number) => string> = {
  lines: (ads) => ads.map(toJson).join('\n'),
  'indented values one after another': (ads) => ads.map(toIndentedJson).join('\n'),
  'a list inside other objects': (ads, indent) => JSON.stringify({ a: { b: [{ node: { ads } }] } }, null, indent),
  'several values on a line': ([first, ...others]) => `${toJson(first)}\n${others.map(toJson).join(',')}\n`,
  'a list': (ads, indent) => JSON.stringify(ads, null, indent),
  'a list with a record on each line': (ads) => `[\n${ads.map(toJson).join(',\n')}\n]\n`,
  'a list under "data"': (data, indent) => JSON.stringify({ took: '"[', data, paging: { next: ']' } }, null, indent),
  'a list under "items"': (items, indent) => JSON.stringify({ items, cursor: null, hasMore: false }, null, indent),
  'a list of result pages': (ads, indent) =>
    JSON.stringify([{ data: ads.slice(0, 1), paging: {} }, { data: ads.slice(1) }], null, indent),
};

test('a page that was created from an ad gets its name from a later ad, instead of its page id', async ({
  libraryServer,
}) => {
  const createPageAd = (number: number, fields: object) => ({ id: createUuid(number), pageId: '7', ...fields });
  const readPageNames = async () =>
    (await libraryServer.searchAll({}, 'pages')).items.map(({ pageName, countries }) => [pageName, countries]);
  await libraryServer.importRecords(createPageAd(1, { countries: ['DE'] }));
  expect(await readPageNames()).toEqual([['7', ['DE']]]);
  await libraryServer.importRecords(
    createPageAd(2, { page: { pageName: 'Tea House' } }),
    createPageAd(3, { countries: ['FR'] }),
  );
  expect(await readPageNames()).toEqual([['Tea House', ['DE', 'FR']]]);
  expect((await libraryServer.searchAll({ query: 'house' }, 'pages')).items).toHaveLength(1);
  // Another name does not replace the name, because nothing shows which of them is the newer one.
  await libraryServer.importRecords(createPageAd(4, { page: { pageName: 'Tea Shop' } }));
  expect(await readPageNames()).toEqual([['Tea House', ['DE', 'FR']]]);
});

test('`library import` stores records in the API format unchanged, whatever the layout of the JSON file', async ({
  libraryServer,
}) => {
  const text = fc.string({ unit: 'binary' });
  const extraFields = fc.dictionary(
    fc.oneof(
      fc.constantFrom('data', 'items', 'key', 'a"b', '[', '{"', 'note\n'),
      fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== '__proto__'),
    ),
    fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant([{ id: 'inner' }]), fc.constant('}]{["\\\n')),
    { maxKeys: 5 },
  );
  const record = fc.tuple(extraFields, fc.record({ headline: text, body: text, countries: fc.array(text) }));
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...Object.keys(layouts)),
      fc.record({ indent: fc.nat(4), lineEnd: fc.constantFrom('\n', '\r\n'), splits: fc.array(fc.nat(400)) }),
      async (records, layout, { indent, lineEnd, splits }) => {
        const pageId = `run ${run++}`;
        const ads = records.map(([extras, fields], index) => {
          const id = createUuid(10 * run + index);
          // Write the id first. The import treats an object with a list in `data` as a wrapper until it reads an id.
          return JSON.parse(toJson(Object.assign({ id }, extras, fields, { id, pageId })));
        });
        const bytes = Buffer.from(layouts[layout]?.(ads, indent).replaceAll('\n', lineEnd) ?? '');
        const bounds = [0, ...splits.sort((left, right) => left - right), bytes.length];
        const chunks = bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
        const report = await libraryServer.library.import(toStream(chunks));
        expect(report).toMatchObject({ ads: ads.length, skipped: 0, problems: [] });
        for (const ad of ads) expect((await libraryServer.get(`/v1/ads/${ad.id.toUpperCase()}`)).body).toEqual(ad);
        const { items } = await libraryServer.searchAll({ pageId, sort: 'duplicates', order: 'asc' });
        expect(items).toEqual(ads);
      },
    ),
    { numRuns: 30 },
  );
});

test('an imported advertiser page with estimated details stays unchanged when ads of the page are imported', async ({
  libraryServer,
}) => {
  const page = { pageId: 'p', pageName: 'Tea', countries: ['DE'], detailsEstimated: true };
  await libraryServer.importRecords(page, { id: createUuid(1), pageId: 'p', countries: ['FR'] });
  expect((await libraryServer.get('/v1/pages/p')).body).toEqual(page);
});

test('an imported advertiser page replaces the page that was created from an ad', async ({ libraryServer }) => {
  const ad = { id: createUuid(1), pageId: 'p', page: { pageName: 'From the ad', adsAmount: 3 }, countries: ['FR'] };
  const pageFromAd = { pageId: 'p', pageName: 'From the ad', adsAmount: 3, countries: ['FR'], detailsEstimated: true };
  const importedPage = { pageId: 'p', pageName: 'Itself' };
  await libraryServer.importRecords(ad);
  expect((await libraryServer.get('/v1/pages/p')).body).toEqual(pageFromAd);
  await libraryServer.importRecords(importedPage);
  await libraryServer.importRecords(ad, { ...ad, id: createUuid(2) });
  expect((await libraryServer.get('/v1/pages/p')).body).toEqual(importedPage);
});

const adsWithSpecialCharacters = [
  { id: createUuid(1), headline: '수분 크림 🔥' },
  // The last character is U+FFFD, as if an earlier program had lost the original.
  { id: createUuid(2), headline: 'Crème �' },
];
const text = toIndentedJson(adsWithSpecialCharacters);

test.for([
  ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${text}`)],
  ['gzip', gzipSync(text)],
  ['UTF-16 with a byte order mark', Buffer.from(`\uFEFF${text}`, 'utf16le')],
  ['UTF-16 without a byte order mark', Buffer.from(text, 'utf16le').swap16()],
  ['gzip in two parts', Buffer.concat([gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))])],
] as const)(
  '`library import` recognizes the encoding or compression of a file from its content (%s)',
  async ([_, bytes], { libraryServer }) => {
    for (const chunks of [[bytes], Array.from(bytes, (byte) => Buffer.of(byte))]) {
      expect(await libraryServer.library.import(toStream(chunks))).toMatchObject({ ads: 2, skipped: 0 });
      expect((await libraryServer.searchAll({ sort: 'duplicates', order: 'asc' })).items).toEqual(
        adsWithSpecialCharacters,
      );
    }
  },
);

const compressedAds = gzipSync(toIndentedJson([createAd(1), createAd(2)]));
const notJsonProblem = 'not JSON, or cut off; "library import --help" lists the formats';
const validAndInvalidRecords: unknown[] = [
  ...[
    createAd(2),
    { id: 'seven' },
    { id: createUuid(3), duplicates: 'many' },
    { id: createUuid(4), startedAt: 'yesterday' },
  ],
  ...[{ name: 'neither' }, { pageId: 'no-name' }, 42, [createAd(5), { id: 'eight' }], { data: [createAd(6)] }],
];

test.for<[name: string, source: string | Uint8Array, ads: number, ...problems: (string | RegExp)[]]>([
  [
    'records on separate lines',
    `${toJson(createAd(1))}\n\n${validAndInvalidRecords.map(toJson).join('\n')}`,
    4,
    'line 4: id: an ad\'s id is a UUID; got "seven"',
    /^line 5: duplicates: /,
    'line 6: startedAt: not an ISO 8601 date-time; got "yesterday"',
    /^line 7: neither an ad \(id\) nor a page \(pageId, pageName\) nor an ad of an ad library/,
    /^line 8: pageName: /,
    'line 9: not a JSON object; a record is an ad or a page',
    'line 10, [1].id: an ad\'s id is a UUID; got "eight"',
  ],
  [
    'records in a document',
    toIndentedJson({ data: [createAd(1), { id: 'x' }, { ...createAd(3), countries: [1] }, createAd(4)] }),
    2,
    'data[1].id: an ad\'s id is a UUID; got "x"',
    'data[2].countries.0: Invalid input: expected string, received number',
  ],
  [
    'a document with a missing quotation mark',
    toIndentedJson([createAd(1), createAd(2), createAd(3)]).replace('"Ad 2"', '"Ad 2'),
    2,
    `line 6, [1]: ${notJsonProblem}`,
  ],
  [
    'a document that is cut off',
    toIndentedJson({ data: [createAd(1), createAd(2), createAd(3)] }).slice(0, -30),
    2,
    `line 11, data[2]: ${notJsonProblem}`,
  ],
  [
    'a document on one line that is cut off',
    toJson([createAd(1), createAd(2), createAd(3)]).slice(0, -30),
    2,
    `line 1, [2]: ${notJsonProblem}`,
  ],
  [
    'lines with a missing closing bracket',
    [
      `{"id":"${createUuid(1)}","n":`,
      toJson(createAd(2)),
      `{"id":"${createUuid(3)}","a":[{"b":1}`,
      toJson(createAd(4)),
      toJson(createAd(5)),
    ].join('\n'),
    3,
    `line 1: ${notJsonProblem}`,
    `line 3: ${notJsonProblem}`,
  ],
  [
    'lines with zero bytes, markup and other text that is not JSON',
    `${toJson(createAd(1))}\n\0\0\n<html>\n{"id":}\n`,
    1,
    ...[2, 3, 4].map((line) => `line ${line}: ${notJsonProblem}`),
  ],
  [
    'a value of a hundred thousand nested brackets',
    `${'['.repeat(1e5)}${']'.repeat(1e5)}\n${toJson(createAd(1))}\n`,
    1,
    /not a JSON object/,
  ],
  [
    'compressed data that is cut off',
    compressedAds.subarray(0, -10),
    0,
    /the compressed data is cut off; import an undamaged copy$/,
  ],
  [
    'damaged gzip',
    Buffer.from(compressedAds).fill(0xff, 20, 24),
    0,
    /the compressed data is damaged; import an undamaged copy$/,
  ],
  [
    'a line in another encoding than the others',
    Buffer.concat(
      [createAd(1), { ...createAd(2), body: 'Crème' }, { ...createAd(3), body: '수분' }].map((ad) =>
        Buffer.from(`${toJson(ad)}\n`, 'body' in ad && ad.body === 'Crème' ? 'latin1' : 'utf8'),
      ),
    ),
    2,
    'line 2: bytes that are not UTF-8; save the file as UTF-8 and import it again',
  ],
  [
    'a document on one line with a byte that no encoding of texts contains',
    Buffer.from(toJson({ data: [createAd(1), { ...createAd(2), body: 'Cr\x81me' }, createAd(3)] }), 'latin1'),
    2,
    'line 1, data[1]: bytes that are not UTF-8; save the file as UTF-8 and import it again',
  ],
  ['a ZIP archive', 'PK\x03\x04…', 0, /a ZIP archive where a text was expected; unpack it/],
  [
    'an ad whose page id cannot be part of a URL',
    toJson({ ...createAd(1), pageId: '..' }),
    0,
    /^line 1: pageId: not a valid page id/,
  ],
  [
    'a record of more than a megabyte',
    `${toJson([{ id: createUuid(1), body: 'long '.repeat(250_000) }, createAd(2)])}\n`,
    1,
    /^line 1, \[0\]: a record of more than 1048576 characters; put a list of records into/,
  ],
])(
  '`library import` stores the valid records of an input and shows the line of each problem (input: %s)',
  async ([_, source, ads, ...problems], { libraryServer }) => {
    const report = await libraryServer.library.import(toStream([source]));
    expect(report.ads).toBe(ads);
    const [, ...lines] = formatImportReport({ name: 'file', ...report }).split('\n  ');
    expect(lines.filter((line) => !/^(?:format|keys): /.test(line))).toEqual(
      problems.map((problem) => (typeof problem === 'string' ? problem : expect.stringMatching(problem))),
    );
  },
);

test('`library import` rejects a page id that cannot be part of a URL', async ({ libraryServer }) => {
  const invalidIds = ['.', '..', '', 'a/../b', 'a\0b', 'a\nb', '\ud800', 'x'.repeat(301)];
  const validIds = ['x'.repeat(300), 'ü z'];
  const report = await libraryServer.importRecords(
    ...[...invalidIds, ...validIds].map((pageId) => ({ pageId, pageName: 'P' })),
  );
  expect(report).toMatchObject({ pages: validIds.length, skipped: invalidIds.length });
  for (const { problem } of report.problems)
    expect(problem).toMatch(/^pageId: not a valid page id; a page id has 1 to 300/);
  for (const id of validIds) expect((await libraryServer.get(`/v1/pages/${encodeURIComponent(id)}`)).status).toBe(200);
});

test('the import report shows how many records were repeated or skipped', async ({ libraryServer }) => {
  const invalidRecords = Array.from({ length: 100 }, (_, index) => (index % 2 ? { id: `no uuid ${index}` } : 7));
  const report = await libraryServer.importRecords(createAd(1), createAd(1), createAd(2), ...invalidRecords);
  const lines = formatImportReport({ name: 'file', ...report }).split('\n');
  expect(lines[0]).toBe('file: 2 ads and 0 pages, 1 record with the id of another record of this import, 100 skipped:');
  expect(lines).toHaveLength(3 + 50 + 3);
  const [notAnObject, invalidId] = ['not a JSON object', "id: an ad's id is a UUID"].map(
    (reason) => `    25 × ${reason}`,
  );
  expect(lines.slice(-3)).toEqual(['  and 50 more:', notAnObject, invalidId]);
});

test('the import report shows at most 500 characters about each record', async ({ libraryServer }) => {
  const { problems } = await libraryServer.importRecords({ id: createUuid(1), countries: Array(50_000).fill(1) });
  expect(problems[0]?.problem).toMatch(/^countries\.0: /);
  expect(problems[0]?.problem.length).toBeLessThanOrEqual(500);
});

test('an imported advertiser page does not count as updated if the same import has just created the page from an ad', async ({
  libraryServer,
}) => {
  const page = { pageId: 'p', pageName: 'P' };
  expect(await libraryServer.importRecords({ ...createAd(1), pageId: 'p' }, page)).toMatchObject({
    ads: 1,
    pages: 1,
    updated: 0,
    repeated: 0,
  });
  expect(await libraryServer.importRecords(page, page)).toMatchObject({ pages: 1, updated: 1, repeated: 1 });
});

test.for([
  { startedAt: '05/04/2026' },
  { startedAt: '1234' },
  { startedAt: '2026-02-30' },
  { endDate: 'Feb 3, 2025' },
  { audienceReach: -5 },
  { duplicates: -1 },
  { adSpendMin: -0.5 },
])(
  '`library import` rejects an ad in the API format with the invalid field %j and names the key of the field',
  async (fields, { libraryServer }) => {
    const [key] = Object.keys(fields);
    const { ads, problems } = await libraryServer.importRecords({ ...createAd(1), ...fields }, createAd(2));
    expect({ ads, problems }).toEqual({
      ads: 1,
      problems: [{ line: 1, path: '', problem: expect.stringMatching(`^${key}: `) }],
    });
  },
);

test('ads that a local library returned are imported into another library without changes', async ({
  libraryServer,
}) => {
  await libraryServer.importRecords(
    { ad_archive_id: '1', snapshot: { title: 'Tea', images: [{ original_image_url: 'https://m.example/1.jpg' }] } },
    { creative_id: 'CR1', advertiser_id: 'AR1', region_stats: [{ region_code: 'DE', last_shown: '2026-01-31' }] },
    { ad: { id: 1, first_shown_date: 20260105, image_urls: ['https://m.example/2.jpg'] }, advertiser: {} },
    { adUrl: 'https://www.linkedin.com/ad-library/detail/1', details: { advertiser: { adPayer: 'Tea Ltd' } } },
    { 'Ad ID': '1', 'Ad name': 'Tea', 'Amount spent (EUR)': 3, Ends: 'Ongoing' },
  );
  const { body } = await libraryServer.search({});
  const otherServer = await startLibraryServer();
  onTestFinished(() => otherServer.close());
  const report = await otherServer.importRecords(JSON.stringify(body));
  expect(report).toMatchObject({ ads: 5, skipped: 0, formats: { api: { ads: 5 } } });
  expect(new Set((await otherServer.search({})).body.items)).toEqual(new Set(body.items));
});
