import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Canvas, type Path, type Point, pathOf, stroke } from '../../src/raster/canvas.ts';
import type { Raster } from '../../src/raster/codecs.ts';
import { canDraw, drawText, fontFiles, inDrawingOrder, linesOf, textWidth } from '../../src/raster/text.ts';

const white = [255, 255, 255] as const;
const black = [0, 0, 0] as const;

/** How dark a picture is: 1 for each black pixel. */
const ink = ({ data }: Raster) => data.reduce((sum, value, at) => sum + (at % 4 === 0 ? (255 - value) / 255 : 0), 0);
const drawn = (path: Path, side = 60) => {
  const canvas = new Canvas(side, side, white);
  canvas.fillPath(path, black);
  return canvas;
};
const pixel = ({ width, data }: Raster, x: number, y: number) => [...data.slice((y * width + x) * 4).slice(0, 4)];
const plain = (width: number, height: number, colour: number[]): Raster => ({
  width,
  height,
  data: Uint8ClampedArray.from({ length: width * height * 4 }, (_, at) => colour[at % 4] ?? 0),
});
// biome-ignore format: four corners
const rectangle = (x: number, y: number, [width, height]: Point): Path[number] =>
  [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];

test('a path covers its area, wherever its edges lie', () => {
  const place = fc.double({ min: 0, max: 30, noNaN: true });
  const length = fc.double({ min: 0.5, max: 29, noNaN: true });
  fc.assert(
    fc.property(place, place, length, length, (x, y, width, height) => {
      const area = ink(drawn([rectangle(x, y, [width, height])]));
      // Each pixel of the edge is rounded to one of 255 greys.
      expect(Math.abs(area - width * height)).toBeLessThan((2 * (width + height) + 8) / 255);
    }),
  );
});

test('a path covers the same inside a canvas that cuts it', () => {
  const point = fc.tuple(fc.integer({ min: -90, max: 90 }), fc.integer({ min: -90, max: 90 }));
  fc.assert(
    fc.property(point, point, point, (...corners) => {
      const whole = new Canvas(180, 180, white);
      whole.fillPath([corners.map(([x, y]) => [x + 90, y + 90])], black);
      const part = drawn([corners], 90);
      const grey = (canvas: Raster, x: number, y: number) => pixel(canvas, x, y)[0] ?? 0;
      for (const at of [0, 17, 44, 71])
        for (const across of [1, 30, 88])
          expect(Math.abs(grey(part, across, at) - grey(whole, 90 + across, 90 + at))).toBeLessThan(2);
    }),
  );
});

test('a path may be curved, hollow, or a line with round ends', () => {
  const curve = { type: 'Q', x1: 60, y1: 0, x: 60, y: 60 } as const;
  const under = pathOf([{ type: 'M', x: 0, y: 0 }, curve, { type: 'L', x: 0, y: 60 }, { type: 'Z' }]);
  expect(ink(drawn(under)) / 3000).toBeCloseTo(1, 1);
  expect(ink(drawn([rectangle(10, 10, [40, 40]), rectangle(20, 20, [20, 20]).toReversed()]))).toBeCloseTo(1200, 0);
  // biome-ignore format: two points
  const line: Point[] = [[10, 30], [50, 30]];
  expect(ink(drawn(stroke(line, 10))) / (400 + Math.PI * 25)).toBeCloseTo(1, 2);
});

test('outlines that lie on each other do not colour a pixel twice', () => {
  const canvas = new Canvas(60, 60, white);
  canvas.fillPath([rectangle(10, 10, [40, 40]), rectangle(20, 20, [20, 20])], [200, 100, 50]);
  for (const place of [15, 30]) expect(pixel(canvas, place, place)).toEqual([200, 100, 50, 255]);
});

test.each([
  ['outside', [rectangle(-500, 30, [20, 20])], 0],
  ['below', [rectangle(30, 900, [20, 20])], 0],
  ['without points', [[]], 0],
  ['without an area', [rectangle(5, 5, [45, 0])], 0],
  ['not made of numbers', [rectangle(Number.NaN, 0, [50, 50])], 0],
  ['endless', [rectangle(Number.POSITIVE_INFINITY, 0, [50, 50])], 0],
  ['far larger than the canvas', [rectangle(-1e12, -1e12, [2e12, 2e12])], 3600],
] as [string, Path, number][])('a path %s covers what is inside the canvas', (_, path, covered) => {
  expect(ink(drawn(path))).toBe(covered);
});

test('a picture becomes the mean of what is left out, and keeps its colour at every size', () => {
  const stripes = plain(256, 256, [0, 0, 0, 255]);
  stripes.data.forEach((_, at) => {
    if (at % 4 < 3 && Math.floor(at / 4) % 2 === 0) stripes.data[at] = 255;
  });
  const shownOf = (picture: Raster, side: number) => {
    const canvas = new Canvas(side, side);
    canvas.draw(picture, { x: 0, y: 0, width: side, height: side });
    return Array.from({ length: side }, (_, x) => pixel(canvas, x, side >> 1)[0] ?? 0);
  };
  expect(Math.abs((shownOf(stripes, 16)[8] ?? 0) - 128)).toBeLessThan(3);
  // One column of sixteen is black: wherever it lies, it darkens what becomes of it, and its mirror image as much.
  for (let at = 96; at < 112; at++) {
    const [line, mirrored] = [at, 255 - at].map((column) => {
      const picture = plain(256, 256, [255, 255, 255, 255]);
      for (let y = 0; y < 256; y++) picture.data.fill(0, (y * 256 + column) * 4, (y * 256 + column) * 4 + 3);
      return shownOf(picture, 16);
    });
    const darkness = line?.reduce((sum, grey) => sum + 255 - grey, 0) ?? 0;
    expect(Math.abs(darkness - 16)).toBeLessThan(4);
    expect(mirrored?.toReversed()).toEqual(line);
  }
  const side = fc.integer({ min: 1, max: 70 });
  fc.assert(
    fc.property(side, side, side, (width, height, place) => {
      const shown = new Canvas(70, 70, [10, 20, 30]);
      shown.draw(plain(width, height, [10, 20, 30, 255]), { x: 0, y: 0, width: place, height: place });
      expect(shown.data.every((value, at) => value === [10, 20, 30, 255][at % 4])).toBe(true);
    }),
  );
});

test('a picture lets through what is below where it is clear, whatever colour it hides there', () => {
  const canvas = new Canvas(10, 10, [0, 0, 255]);
  const half = plain(20, 20, [255, 255, 255, 0]);
  half.data.fill(255, 20 * 10 * 4);
  canvas.draw(half, { x: 0, y: 0, width: 10, height: 10 });
  expect([pixel(canvas, 5, 1), pixel(canvas, 5, 8)]).toEqual([
    [0, 0, 255, 255],
    [255, 255, 255, 255],
  ]);
});

/** The columns of a canvas that have ink: the first, the last, and how many. */
function inked(draw: (canvas: Canvas) => void) {
  const canvas = new Canvas(400, 60);
  draw(canvas);
  const columns = Array.from({ length: 400 }, (_, x) => x).filter((x) =>
    Array.from({ length: 60 }, (_, y) => canvas.data[(y * 400 + x) * 4] ?? 255).some((value) => value < 128),
  );
  return { first: columns[0] ?? -1, last: columns.at(-1) ?? -1, count: columns.length };
}

test('a text is as wide as it says, and its letters are not all the same', () => {
  const place = { x: 20, y: 40, size: 30, colour: black };
  const shown = inked((canvas) => drawText(canvas, 'Wool shoes', place));
  expect(shown.first).toBeGreaterThanOrEqual(20);
  expect(Math.abs(shown.last - 20 - textWidth('Wool shoes', place))).toBeLessThan(4);
  expect(textWidth('WWW', place)).toBeGreaterThan(2 * textWidth('iii', place));
  expect(textWidth('Wool', { size: 30, bold: true })).toBeGreaterThan(textWidth('Wool', { size: 30 }));
  expect(textWidth('Wool', { size: 60 })).toBeCloseTo(2 * textWidth('Wool', { size: 30 }));
  // An accent of its own is drawn as part of its letter.
  const accents = ['cafe\u0301', 'café'].map((text) => {
    const canvas = new Canvas(400, 60);
    drawText(canvas, text, place);
    return canvas.data;
  });
  expect(accents[0]).toEqual(accents[1]);
  expect(accents[0]?.some((value) => value === 0)).toBe(true);
});

test('letters stand upright on their line', () => {
  const canvas = new Canvas(60, 60);
  drawText(canvas, 'L', { x: 10, y: 40, size: 30, colour: black });
  const rows = Array.from({ length: 60 }, (_, y) =>
    Array.from({ length: 60 }, (_, x) => 255 - (pixel(canvas, x, y)[0] ?? 0)).reduce((sum, dark) => sum + dark, 0),
  );
  const inkedRows = [...rows.keys()].filter((y) => rows[y] !== 0);
  expect([inkedRows[0], inkedRows.at(-1)]).toEqual([expect.closeTo(18, -1), 39]);
  expect(rows[38]).toBeGreaterThan(3 * (rows[25] ?? 0));
});

test('what is too wide ends in an ellipsis, and never goes past its place', () => {
  const place = { x: 10, y: 40, size: 30, colour: black, maxWidth: 120 };
  const shown = inked((canvas) => drawText(canvas, 'W'.repeat(5000), place));
  expect(shown.last).toBeLessThanOrEqual(130);
  expect(shown.last).toBeGreaterThan(80);
  expect(inked((canvas) => drawText(canvas, '茶🎁\ud800', place)).count).toBeGreaterThan(10);
});

test('lines keep every word, fit, and end in an ellipsis only if something is left out', () => {
  const word = fc.string({ unit: fc.constantFrom(...'abcdeil'), minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (words, maxLines) => {
      const given = { size: 20, bold: true, maxWidth: 160, maxLines };
      const lines = linesOf(words.join(' '), given);
      expect(lines.length).toBeLessThanOrEqual(maxLines);
      for (const line of lines) expect(textWidth(line, given)).toBeLessThanOrEqual(160);
      const whole = lines.join(' ');
      if (whole.endsWith('…')) expect(words.join(' ')).toContain(whole.slice(0, -1).trim());
      else expect(whole).toBe(words.join(' '));
    }),
  );
  // A word that is wider than its line is broken, and loses no letter.
  const long = 'abcdeil'.repeat(9);
  const lines = linesOf(`${long} ${long}`, { size: 20, maxWidth: 160, maxLines: 99 });
  expect(lines.length).toBeGreaterThan(4);
  expect(lines.join('')).toBe(long + long);
});

test('names are written in the scripts that charts promise, and without what no font has', () => {
  const names = [
    'Łódź',
    'Ελληνικά',
    'Київ',
    '兒童英語',
    '广告主',
    '広告カタカナひらがな',
    '광고주',
    'ร้านกาแฟ',
    'מבצע',
    'بيت النخيلات',
    'فروشگاه',
  ];
  for (const name of names) {
    expect(canDraw(name)).toBe(true);
    expect(textWidth(name, { size: 20 }), name).toBeGreaterThan(20);
  }
  expect([canDraw('🔥🎁'), canDraw('🔥 Sale')]).toEqual([false, true]);
  expect(textWidth('🔥Sale', { size: 20 })).toBe(textWidth('Sale', { size: 20 }));
  const bytes = fontFiles.reduce((sum, file) => sum + statSync(createRequire(import.meta.url).resolve(file)).size, 0);
  expect(bytes).toBeLessThan(1_300_000);
});

test.each([
  ['שלום', 'םולש'],
  ['abc (שלום) 12', 'abc (םולש) 12'],
  ['שלום abc', 'abc םולש'],
  // Letters that join on both sides, one that joins only what is before it, a ligature, and two words.
  ['بيت', '\ufe96\ufef4\ufe91'],
  ['دار', '\ufead\ufe8d\ufea9'],
  ['سلام', '\ufee1\ufefc\ufeb3'],
  ['یک کتاب', '\ufe8f\ufe8e\ufe98\ufb90 \ufb8f\ufbfe'],
  ['بِت', '\ufe96\ufe91'],
])('%s is drawn from left to right as %s', (text, drawn) => {
  expect(inDrawingOrder(text).join('')).toBe(drawn);
});
