import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import { decodeJpeg } from '../../../src/raster/codecs.ts';
import { libraryTest as test } from '../support/fixtures.ts';
import { type ServedLibrary, uuid } from '../support/served-library.ts';

/** A picture as a browser gets it, and what is in it. */
async function pictureOf({ base }: ServedLibrary, id: string, file: string) {
  const response = await fetch(`${base}/media/ads/${id}/${file}`);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, raster: await decodeJpeg(bytes) };
}

let ads = 0;

/** Tells whether pictures of an ad with these fields differ. They depend on its id as well, so it is always the same one. */
async function drawn(served: ServedLibrary, ad: Record<string, unknown>, file = '0.jpg') {
  await served.load({ id: uuid(1), ...ad });
  const { bytes } = await pictureOf(served, uuid(1), file);
  return createHash('sha256').update(bytes).digest('hex');
}

test('a picture is a small JPEG, and the same every time', async ({ served }) => {
  await served.load({ id: uuid(2), headline: 'Wool shoes that last', productTitle: 'Trail shoe', body: 'Now -20 %' });
  const { bytes, raster } = await pictureOf(served, uuid(2), '0.jpg');
  expect([raster.width, raster.height]).toEqual([600, 600]);
  expect(bytes.length).toBeGreaterThan(8_000);
  expect(bytes.length).toBeLessThan(40_000);
  expect((await pictureOf(served, uuid(2), '0.jpg')).bytes).toEqual(bytes);
  const logo = await pictureOf(served, uuid(2), 'logo.jpg');
  expect([logo.raster.width, logo.raster.height]).toEqual([240, 240]);
});

test('it shows the headline where the font has its letters, and leaves it out where not', async ({ served }) => {
  const without = await drawn(served, {});
  expect(await drawn(served, { headline: '毎日が楽しく' })).toEqual(without);
  const first = await drawn(served, { headline: 'Crème brûlée' });
  expect(first).not.toEqual(without);
  expect(await drawn(served, { headline: 'Crème glacée' })).not.toEqual(first);
  expect(await drawn(served, { headline: 'Cre\u0300me bru\u0302le\u0301e' })).toEqual(first);
});

test.for([
  ['the product', { productTitle: 'Breakfast tea' }],
  ['the call to action', { ctaType: 'SHOP_NOW' }],
  ['the advertiser', { displayUrl: 'tea.example' }],
  ['the advertiser’s colours', { pageId: '7' }],
  ['a discount', { body: 'Only today: 25% off' }],
  ['that it is a video', { media: [{ type: 'VID', url: 'https://media.example/v.mp4' }] }],
] as const)('it shows %s', async ([, fields], { served }) => {
  expect(await drawn(served, fields)).not.toEqual(await drawn(served, {}));
});

test('a number in the copy that is no discount is not shown as one', async ({ served }) => {
  const without = await drawn(served, {});
  for (const body of ['98 % natural', '100% wool', '1,20 % more', '12 countries'])
    expect(await drawn(served, { body }), body).toEqual(without);
});

test('the cards of a carousel differ, even if they name the same product', async ({ served }) => {
  const cards = [{ title: 'Trail shoe' }, { title: 'Trail shoe' }, { title: 'Rain jacket' }];
  const pictures = await Promise.all(
    ['1.jpg', '2.jpg', '3.jpg'].map((file) => drawn(served, { headline: 'New', cards }, file)),
  );
  expect(new Set(pictures).size).toBe(3);
});

test('whatever an ad contains, it has a picture', async ({ served }) => {
  const text = fc.oneof(
    fc.constantFrom('</text><script>', '\u0000\ud800\u202e', 'W'.repeat(9000), ' ', 'a '.repeat(4000), '🎁', null),
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
  );
  const loose = fc.oneof(text, fc.double(), fc.constant([]), fc.constant({ deep: true }));
  const ad = fc.record(
    {
      headline: text,
      body: text,
      productTitle: text,
      ctaType: text,
      displayUrl: text,
      page: fc.record({ pageName: text }),
      cards: fc.array(fc.record({ title: loose, body: loose })),
      media: fc.array(fc.record({ type: fc.constantFrom('VID', 'THUMB'), url: fc.constant('') })),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(ad, fc.constantFrom('0.jpg', '1.jpg', '999.jpg', 'logo.jpg'), async (fields, file) => {
      const id = uuid(100 + ads++);
      await served.load({ id, ...fields });
      await pictureOf(served, id, file);
    }),
    { numRuns: 30 },
  );
});

test.for(['x.jpg', '0.svg', '1000.jpg', '0.jpg.jpg', '-1.jpg', '0x1.jpg'])('%s is a 404', async (file, { served }) => {
  await served.load({ id: uuid(1) });
  const { status, body } = await served.ask('GET', `/media/ads/${uuid(1)}/${file}`);
  expect(status).toBe(404);
  expect(body.error.message).toContain(file.endsWith('jpg') ? 'picture' : 'Nothing is served at');
});
