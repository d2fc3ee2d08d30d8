import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { freshLibraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, searchAll, uuid } from './support/served-library.ts';

async function* chunksOf(...chunks: (string | Uint8Array)[]) {
  yield* chunks;
}

const allAds = async (served: ServedLibrary, key: string) =>
  (await searchAll(served, '/v1/ads/search', key, { limit: 100 })).items
    .map(({ appUrl, ...ad }) => ad)
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));

const layouts: Record<string, (ads: unknown[], indent: number) => string> = {
  lines: (ads) => ads.map((ad) => JSON.stringify(ad)).join('\n'),
  'lines with a comma': (ads) => `${ads.map((ad) => JSON.stringify(ad)).join(',\n')},\n`,
  'lines with several': ([first, ...others]) =>
    `${JSON.stringify(first)}\n${others.map((ad) => JSON.stringify(ad)).join(',')}\n`,
  'one after another': (ads, indent) => ads.map((ad) => JSON.stringify(ad, null, indent)).join('\n'),
  'a list': (ads, indent) => JSON.stringify(ads, null, indent),
  'a list with a record on each line': (ads) => `[\n${ads.map((ad) => JSON.stringify(ad)).join(',\n')}\n]\n`,
  data: (data, indent) => JSON.stringify({ took: '"[', data, paging: { next: ']' } }, null, indent),
  items: (items, indent) => JSON.stringify({ items, cursor: null, hasMore: false }, null, indent),
  'a list of pages': (ads, indent) =>
    JSON.stringify([{ data: ads.slice(0, 1), paging: {} }, { data: ads.slice(1) }], null, indent),
};

const extra = fc.dictionary(
  fc.constantFrom('data', 'items', 'key', 'a"b', '[', '{"', 'note\n'),
  fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant([{ id: 'inner' }]), fc.constant('}]{["\\\n')),
);

test('every layout of JSON holds the same records, wherever its bytes are cut', async ({ served, key }) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(extra, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(...Object.keys(layouts)),
      fc.record({ indent: fc.nat(4), lineEnd: fc.constantFrom('\n', '\r\n'), cuts: fc.array(fc.nat(400)) }),
      async (extras, layout, { indent, lineEnd, cuts }) => {
        const ads = extras.map((one, at) => JSON.parse(JSON.stringify({ id: uuid(at), ...one })));
        const bytes = Buffer.from(layouts[layout]?.(ads, indent).replaceAll('\n', lineEnd) ?? '');
        const at = [0, ...cuts.sort((left, right) => left - right), bytes.length];
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
        expect(await served.library.import(chunksOf(...chunks))).toMatchObject({ ads: ads.length, problems: [] });
        for (const ad of ads) expect((await served.ask('GET', `/v1/ads/${ad.id}`, { key })).body).toEqual(ad);
      },
    ),
    { numRuns: 40 },
  );
});

describe('the encoding is found by content', () => {
  const ads = [
    { id: uuid(1), headline: '수분 크림 🔥' },
    // The second was lost before it was written here.
    { id: uuid(2), headline: 'Crème �' },
  ];
  const text = JSON.stringify(ads, null, 2);
  const swapped = (bytes: Buffer) => Buffer.from(bytes).swap16();

  test.for([
    ['UTF-8 with a byte order mark', Buffer.from(`\uFEFF${text}`)],
    ['UTF-16', Buffer.from(`\uFEFF${text}`, 'utf16le')],
    ['UTF-16 without a mark', Buffer.from(text, 'utf16le')],
    ['UTF-16, big end first', swapped(Buffer.from(`\uFEFF${text}`, 'utf16le'))],
    ['UTF-16, big end first, without a mark', swapped(Buffer.from(text, 'utf16le'))],
    ['gzip', gzipSync(text)],
    ['gzip in two parts', Buffer.concat([gzipSync(text.slice(0, 30)), gzipSync(text.slice(30))])],
    ['UTF-16 in gzip', gzipSync(Buffer.from(`\uFEFF${text}`, 'utf16le'))],
  ] as const)('%s', async ([_, bytes], { served, key }) => {
    for (const chunks of [[bytes], Array.from(bytes, (byte) => Buffer.of(byte))]) {
      expect(await served.library.import(chunksOf(...chunks))).toMatchObject({ ads: 2, skipped: 0, notes: [] });
      expect(await allAds(served, key)).toEqual(ads);
    }
  });

  test('bytes of another encoding are kept as they can be, and noted', async ({ served }) => {
    const bytes = Buffer.from(`{"id":"${uuid(1)}","headline":"Crème"}`, 'latin1');
    expect(await served.library.import(chunksOf(bytes))).toMatchObject({
      ads: 1,
      skipped: 0,
      notes: [expect.stringMatching(/^bytes that are not UTF-8 .* save the file as UTF-8/)],
    });
  });
});
