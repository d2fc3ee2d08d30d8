import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/http.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { jpegClaiming, jpegOf, pngChunk, pngOf, scanBomb, webpOf } from './sample-pictures.ts';
import { openTestPictures } from './test-pictures.ts';

const host = await startPictureHost();
const opened = openTestPictures([host.host], { drawMs: 30_000 });
const pictures = opened.of('tenant');
const signal = new AbortController().signal;
const show = (bytes: Uint8Array) => pictures.thumbnail(host.serve(bytes), { side: 100, signal });

let good: Uint8Array;
beforeAll(async () => {
  good = await jpegOf();
});
afterAll(async () => {
  await opened.close();
  await host.close();
});

/** Never seen before, so that it has to be decoded. */
let number = 0;
const anotherPicture = () => jpegOf({ width: 100 + number++ });

const text = (content: string) => async () => Buffer.from(content);
const inAnyBox = (brand: string) =>
  Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from(`ftyp${brand}`), Buffer.alloc(40)]);
const cut = async (picture: Promise<Uint8Array> | Uint8Array) => (await picture).slice(0, -20);
const megabytes = (count: number) => deflateSync(Buffer.alloc(count * 1_000_000));

test.for<[name: string, make: () => Promise<Uint8Array> | Uint8Array, reason: string]>([
  [
    'a JPEG of 60,000 pixels a side',
    () => jpegClaiming(60_000, 60_000),
    'it has 60000 x 60000 pixels, which is too many',
  ],
  ['a PNG of 60,000 pixels a side', () => pngOf({ width: 60_000, height: 60_000, pixels: good }), '60000 x 60000'],
  ['a PNG of 20,001 by 10 pixels', () => pngOf({ width: 20_001, height: 10 }), '20001 x 10'],
  ['a PNG of 17 megapixels', () => pngOf({ width: 3400, height: 5000, pixels: good }), '3400 x 5000'],
  ['a PNG without pixels', () => pngOf({ width: 0, height: 10 }), 'the PNG is damaged'],
  ['HTML', text('<!doctype html><p>hello'), 'a web page, not a picture'],
  [
    'an SVG with a script',
    text('<?xml version="1.0"?><svg><script>alert(1)</script></svg>'),
    'an SVG, which is not shown',
  ],
  ['a GIF', text('GIF89a…'), 'a GIF, which is not shown'],
  ['an AVIF', () => inAnyBox('avif'), 'an AVIF, which is not shown'],
  ['a video', () => inAnyBox('isom'), 'a video, not a picture'],
  ['a text', text('hello'), 'not a picture'],
  ['nothing', text(''), 'its host sent nothing'],
  ['a cut JPEG', () => cut(jpegOf()), 'the JPEG is cut off'],
  ['a cut PNG', () => cut(pngOf()), 'the PNG is cut off'],
  ['a cut WebP', () => cut(webpOf()), 'the WebP is cut off'],
  ['the first bytes of a JPEG', () => good.slice(0, 3), 'the JPEG is cut off'],
])('%s is named, and never decoded', async ([, make, reason]) => {
  expect(await show(await make())).toEqual({ reason: expect.stringContaining(reason) });
});

const packedText = () => Buffer.concat([Buffer.from('a\0\0'), megabytes(100)]);

test.for<[name: string, make: () => Promise<Uint8Array> | Uint8Array, shown: boolean]>([
  ['pixels that are no pixels', () => pngOf({ pixels: Buffer.from('hello') }), false],
  [
    'pixels that unpack to far more than the picture',
    () => pngOf({ width: 10, height: 10, pixels: megabytes(100) }),
    true,
  ],
  ['a text that unpacks to 100 MB', () => pngOf({ extra: [pngChunk('zTXt', packedText())] }), true],
  ['a colour profile that unpacks to 100 MB', () => pngOf({ extra: [pngChunk('iCCP', packedText())] }), false],
  ['16 megapixels in 15 KB', () => pngOf({ width: 4000, height: 4000 }), true],
  ['a JPEG that promises more than it has', () => jpegClaiming(4000, 4000), true],
])('%s: decoded within bounds or refused, and the next picture is shown', async ([, make, shown]) => {
  expect(await show(await make())).toEqual(shown ? { jpeg: expect.anything() } : { reason: 'the picture is damaged' });
  expect(await show(await anotherPicture())).toHaveProperty('jpeg');
});

test('decoding that takes too long is ended, other tenants wait for nothing, and the next picture is shown', async () => {
  const hasty = openTestPictures([host.host], { drawMs: 4000 });
  const show = (tenantId: string, address: string) => hasty.of(tenantId).thumbnail(address, { side: 100, signal });
  const shown = (tenantId: string, bytes: Uint8Array) => show(tenantId, host.serve(bytes));
  const address = host.serve(scanBomb(20_000));
  const bomb = show('attacker', address);
  const first = await Promise.race([bomb, shown('other', await anotherPicture())]);
  expect(first).toHaveProperty('jpeg');
  expect(await bomb).toEqual({ reason: 'decoding it takes too long' });
  expect(await shown('attacker', await anotherPicture())).toHaveProperty('jpeg');
  // The same bomb is not decoded again: it does not wait for another one.
  const another = shown('other', scanBomb(20_001)).then(() => 'decoded');
  await until(() => host.open() === 0);
  expect(await Promise.race([another, show('attacker', address)])).toEqual({ reason: 'decoding it takes too long' });
  await hasty.close();
});
