import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readHeader } from '../../src/pictures/fetch-picture.ts';
import { jpegOf, pngOf, webpOf } from './sample-pictures.ts';

const samples = { jpeg: await jpegOf(), png: pngOf(), webp: await webpOf() };
const formats = ['jpeg', 'png', 'webp'] as const;

test.each(formats)('reads the size of a %s', (format) => {
  expect(readHeader(samples[format])).toEqual({ format, width: 300, height: 200 });
});

test.each(formats)('a %s with bytes after its end is whole', (format) => {
  expect(readHeader(Buffer.concat([samples[format], Buffer.alloc(9)]))).toHaveProperty('width', 300);
});

test('whatever is changed in a picture, its size stays within the bounds, or it is named', () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 8 });
  fc.assert(
    fc.property(
      fc.constantFrom(...formats),
      changes,
      fc.double({ min: 0, max: 1, noNaN: true }),
      (format, all, kept) => {
        const bytes = samples[format].slice(0, Math.ceil(samples[format].length * Math.min(1, kept * 1.5)));
        for (const [at, value] of all) bytes[at % Math.min(bytes.length || 1, at % 2 ? 64 : Infinity)] = value;
        const header = readHeader(bytes);
        if ('reason' in header) expect(header.reason).toMatch(/^\S.*\S$/);
        else expect(header.width * header.height).toBeLessThanOrEqual(40_000_000);
      },
    ),
  );
});

test('any bytes are named', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(readHeader(bytes)).toHaveProperty('reason');
    }),
  );
});
