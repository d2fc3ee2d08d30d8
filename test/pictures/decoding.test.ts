import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { decodeJpeg } from '../../src/drawing/codecs.ts';
import { readPictureHeader } from '../../src/pictures/fetch-picture.ts';
import { waitUntil } from '../support/deadline.ts';
import { startPictureHost } from '../support/picture-host.ts';
import {
  createJpeg,
  createJpegClaimingSize,
  createPng,
  createPngChunk,
  createScanBomb,
  createWebp,
  openTestPictures,
} from './sample-pictures.ts';

const host = await startPictureHost();
const opened = openTestPictures([host.host], { decodeTimeoutMs: 30_000 });
const { signal } = new AbortController();
const showPicture = (bytes: Uint8Array, pictures = opened.forTenant('tenant')) =>
  pictures.loadThumbnail(host.serve(bytes), { maxSide: 100, signal });
afterAll(async () => {
  await opened.close();
  await host.close();
});

/** Each picture has a new width, so that it is not in the cache. */
let number = 0;
const createUncachedPicture = () => createJpeg({ width: 100 + number++ });
const samplePictures = { jpeg: await createJpeg(), png: new Uint8Array(createPng()), webp: await createWebp() };
const hugeJpeg = await createJpegClaimingSize(60_000, 60_000);
const formats = ['jpeg', 'png', 'webp'] as const;

describe('Picture headers', () => {
  test.each(formats)('the size of a %s is read correctly, even if other bytes follow the picture', (format) => {
    for (const bytes of [samplePictures[format], Buffer.concat([samplePictures[format], Buffer.alloc(9)])])
      expect(readPictureHeader(bytes)).toEqual({ format, width: 300, height: 200 });
  });

  const createBoxFile = (brand: string) =>
    Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from(`ftyp${brand}`), Buffer.alloc(40)]);
  test.for<[name: string, bytes: Uint8Array | string, reason: string]>([
    ['a JPEG of 60,000 pixels a side', hugeJpeg, '60000 x 60000 pixels, which is too many'],
    [
      'a PNG of 60,000 pixels a side',
      createPng({ width: 60_000, height: 60_000, pixels: samplePictures.jpeg }),
      '60000 x 60000',
    ],
    ['a PNG of 20,001 by 10 pixels', createPng({ width: 20_001, height: 10 }), '20001 x 10'],
    ['a PNG of 17 megapixels', createPng({ width: 3400, height: 5000, pixels: samplePictures.jpeg }), '3400 x 5000'],
    ['a PNG without pixels', createPng({ width: 0, height: 10 }), 'the PNG is damaged'],
    ['HTML', '<!doctype html><p>hello', 'a web page, not a picture'],
    ['an SVG with a script', '<?xml version="1.0"?><svg><script>alert(1)</script></svg>', 'an SVG, which is not shown'],
    ['a GIF', 'GIF89a…', 'a GIF, which is not shown'],
    ['an AVIF', createBoxFile('avif'), 'an AVIF, which is not shown'],
    ['a video', createBoxFile('isom'), 'a video, not a picture'],
    ['a plain text', 'hello', 'not a picture'],
    ['an empty file', '', 'its host sent nothing'],
    ['a cut JPEG', samplePictures.jpeg.slice(0, -20), 'the JPEG is cut off'],
    ['a cut PNG', samplePictures.png.slice(0, -20), 'the PNG is cut off'],
    ['a cut WebP', samplePictures.webp.slice(0, -20), 'the WebP is cut off'],
    ['the first bytes of a JPEG', samplePictures.jpeg.slice(0, 3), 'the JPEG is cut off'],
  ])('the picture decoder rejects %s with a reason that names the type of the file', async ([, bytes, reason]) => {
    expect(await showPicture(Buffer.from(bytes))).toEqual({ reason: expect.stringContaining(reason) });
  });

  test('the picture decoder either decodes a damaged picture within the size limits or rejects it, and never crashes', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 8 });
    const keptShare = fc.double({ min: 0, max: 1, noNaN: true });
    const isRefusedOrBounded = (bytes: Uint8Array) => {
      const header = readPictureHeader(bytes);
      return 'reason' in header ? /^\S.*\S$/.test(header.reason) : header.width * header.height <= 40_000_000;
    };
    fc.assert(
      fc.property(fc.constantFrom(...formats), changes, keptShare, (format, all, kept) => {
        const bytes = samplePictures[format].slice(
          0,
          Math.ceil(samplePictures[format].length * Math.min(1, kept * 1.5)),
        );
        for (const [at, value] of all) bytes[at % Math.min(bytes.length || 1, at % 2 ? 64 : Infinity)] = value;
        return isRefusedOrBounded(bytes);
      }),
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), isRefusedOrBounded));
  });
});

/** Returns the size of the thumbnail and its center color, rounded to multiples of eight. */
async function readShownPicture(bytes: Uint8Array) {
  const thumbnail = await showPicture(bytes);
  if ('reason' in thumbnail) return thumbnail;
  const { width, height, data } = await decodeJpeg(thumbnail.jpeg);
  const middle = 4 * (Math.floor(height / 2) * width + Math.floor(width / 2));
  return { width, height, colour: [...data.slice(middle, middle + 3)].map((value) => Math.round(value / 8)) };
}

test.for([
  ['jpeg', [25, 8, 5]],
  ['png', [0, 0, 0]],
  ['webp', [5, 8, 25]],
] as const)('a picture of the type %s is decoded completely and in its original colors', async ([format, colour]) => {
  expect(await readShownPicture(samplePictures[format])).toEqual({ width: 100, height: 67, colour });
});

test('a JPEG is rotated as its EXIF orientation says', async () => {
  const turned = Buffer.from('45786966000049492a000800000001001201030001000000' + '0600000000000000', 'hex');
  const header = Buffer.from([0xff, 0xd8, 0xff, 0xe1, 0, turned.length + 2]);
  const size = { width: 67, height: 100 };
  expect(await readShownPicture(Buffer.concat([header, turned, samplePictures.jpeg.slice(2)]))).toMatchObject(size);
});

const createPngOfMegabytes = (count: number) => deflateSync(Buffer.alloc(count * 1_000_000));
const createCompressedText = () => Buffer.concat([Buffer.from('a\0\0'), createPngOfMegabytes(100)]);

test.for<[name: string, make: () => Promise<Uint8Array> | Uint8Array, shown: boolean]>([
  ['invalid pixel data', () => createPng({ pixels: Buffer.from('hello') }), false],
  [
    'pixel data that unpacks to too many pixels',
    () => createPng({ width: 10, height: 10, pixels: createPngOfMegabytes(100) }),
    true,
  ],
  ['a text that unpacks to 100 MB', () => createPng({ extra: [createPngChunk('zTXt', createCompressedText())] }), true],
  [
    'a colour profile that unpacks to 100 MB',
    () => createPng({ extra: [createPngChunk('iCCP', createCompressedText())] }),
    false,
  ],
  ['16 megapixels in 15 KB', () => createPng({ width: 4000, height: 4000 }), true],
  ['a JPEG with less data than it announces', () => createJpegClaimingSize(4000, 4000), true],
])('the next picture is decoded correctly after a harmful picture (%s)', async ([, make, isShown]) => {
  expect(await showPicture(await make())).toMatchObject(
    isShown ? { jpeg: expect.anything() } : { reason: 'the picture is damaged' },
  );
  expect(await showPicture(await createUncachedPicture())).toHaveProperty('jpeg');
});

test('decoding a picture stops at the time limit and does not delay the pictures of other API keys', async () => {
  const hastyPictures = openTestPictures([host.host], { decodeTimeoutMs: 4000 });
  const [attacker, other] = [hastyPictures.forTenant('attacker'), hastyPictures.forTenant('other')];
  const tooLong = { reason: 'decoding it takes too long' };
  // Start both worker threads first.
  const jpegs = await Promise.all([createUncachedPicture(), createUncachedPicture(), createUncachedPicture()]);
  await Promise.all([attacker, other].map((pictures, at) => showPicture(jpegs[at] as Uint8Array, pictures)));
  const address = host.serve(createScanBomb(20_000));
  const bomb = attacker.loadThumbnail(address, { maxSide: 100, signal });
  const first = await Promise.race([bomb, showPicture(jpegs[2] as Uint8Array, other)]);
  expect(first).toHaveProperty('jpeg');
  expect(await bomb).toEqual(tooLong);
  expect(await showPicture(await createUncachedPicture(), attacker)).toHaveProperty('jpeg');
  // The same bomb is rejected from the cache, so it does not wait for the bomb that is being decoded.
  const another = showPicture(createScanBomb(20_001), other).then(() => 'decoded');
  await waitUntil(() => host.countOpenRequests() === 0);
  expect(await Promise.race([another, attacker.loadThumbnail(address, { maxSide: 100, signal })])).toEqual(tooLong);
  await hastyPictures.close();
});
