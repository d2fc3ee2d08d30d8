import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildStroke, Canvas, type Path, type Point } from '../../src/drawing/canvas.ts';
import type { Raster } from '../../src/drawing/codecs.ts';
import {
  breakIntoLines,
  canDrawText,
  drawText,
  fontFiles,
  measureText,
  orderLettersForDrawing,
} from '../../src/drawing/text.ts';

const white = [255, 255, 255] as const;
const black = [0, 0, 0] as const;

/** Returns the amount of ink in an image: 1 for each black pixel, less for lighter ones. */
const measureInk = ({ data }: Raster) =>
  data.reduce((sum, value, at) => sum + (at % 4 === 0 ? (255 - value) / 255 : 0), 0);
const drawPath = (path: Path, side = 60) => {
  const canvas = new Canvas(side, side, white);
  canvas.fillPath(path, black);
  return canvas;
};
const readPixel = ({ width, data }: Raster, x: number, y: number) => [...data.slice((y * width + x) * 4).slice(0, 4)];
const createPlainPicture = (width: number, height: number, colour: number[]): Raster => ({
  width,
  height,
  data: Uint8ClampedArray.from({ length: width * height * 4 }, (_, at) => colour[at % 4] ?? 0),
});
// biome-ignore format: four corners
const createRectangle = (x: number, y: number, [width, height]: Point): Path[number] =>
  [[x, y], [x + width, y], [x + width, y + height], [x, y + height]];

test('a filled path colors exactly the pixels of its own area', () => {
  const place = fc.double({ min: 0, max: 30, noNaN: true });
  const length = fc.double({ min: 0.5, max: 29, noNaN: true });
  fc.assert(
    fc.property(place, place, length, length, (x, y, width, height) => {
      const area = measureInk(drawPath([createRectangle(x, y, [width, height])]));
      // Each edge pixel is rounded to one of 255 shades of gray.
      expect(Math.abs(area - width * height)).toBeLessThan((2 * (width + height) + 8) / 255);
    }),
  );
});

test('a path that extends beyond the canvas colors the same pixels as if the canvas were larger', () => {
  const point = fc.tuple(fc.integer({ min: -90, max: 90 }), fc.integer({ min: -90, max: 90 }));
  fc.assert(
    fc.property(point, point, point, (...corners) => {
      const largeCanvas = new Canvas(180, 180, white);
      largeCanvas.fillPath([corners.map(([x, y]) => [x + 90, y + 90])], black);
      const cutDrawing = drawPath([corners], 90);
      const createGreyPicture = (canvas: Raster, x: number, y: number) => readPixel(canvas, x, y)[0] ?? 0;
      for (const at of [0, 17, 44, 71])
        for (const across of [1, 30, 88])
          expect(
            Math.abs(createGreyPicture(cutDrawing, across, at) - createGreyPicture(largeCanvas, 90 + across, 90 + at)),
          ).toBeLessThan(2);
    }),
  );
});

test('a filled path can contain a hole, and a stroked line has round ends', () => {
  expect(
    measureInk(drawPath([createRectangle(10, 10, [40, 40]), createRectangle(20, 20, [20, 20]).toReversed()])),
  ).toBeCloseTo(1200, 0);
  // biome-ignore format: two points
  const line: Point[] = [[10, 30], [50, 30]];
  expect(measureInk(drawPath(buildStroke(line, 10))) / (400 + Math.PI * 25)).toBeCloseTo(1, 2);
});

test('overlapping outlines of one path color each pixel only once', () => {
  const canvas = new Canvas(60, 60, white);
  canvas.fillPath([createRectangle(10, 10, [40, 40]), createRectangle(20, 20, [20, 20])], [200, 100, 50]);
  for (const place of [15, 30]) expect(readPixel(canvas, place, place)).toEqual([200, 100, 50, 255]);
});

test.each([
  ['outside', [createRectangle(-500, 30, [20, 20])], 0],
  ['below', [createRectangle(30, 900, [20, 20])], 0],
  ['without points', [[]], 0],
  ['without an area', [createRectangle(5, 5, [45, 0])], 0],
  ['not made of numbers', [createRectangle(Number.NaN, 0, [50, 50])], 0],
  ['endless', [createRectangle(Number.POSITIVE_INFINITY, 0, [50, 50])], 0],
  ['far larger than the canvas', [createRectangle(-1e12, -1e12, [2e12, 2e12])], 3600],
] as [string, Path, number][])('a path that is %s colors only pixels inside the canvas', (_, path, covered) => {
  expect(measureInk(drawPath(path))).toBe(covered);
});

test('an image that is scaled down has the average colors of its original pixels', () => {
  const readShownPart = (picture: Raster, side: number) => {
    const canvas = new Canvas(side, side);
    canvas.drawRaster(picture, { x: 0, y: 0, width: side, height: side });
    return Array.from({ length: side }, (_, x) => readPixel(canvas, x, side >> 1)[0] ?? 0);
  };
  // Draw one black column and its mirror image. Both must darken the scaled image equally, wherever the column is.
  for (let at = 96; at < 112; at++) {
    const [line, mirrored] = [at, 255 - at].map((column) => {
      const picture = createPlainPicture(256, 256, [255, 255, 255, 255]);
      for (let y = 0; y < 256; y++) picture.data.fill(0, (y * 256 + column) * 4, (y * 256 + column) * 4 + 3);
      return readShownPart(picture, 16);
    });
    const darkness = line?.reduce((sum, grey) => sum + 255 - grey, 0) ?? 0;
    expect(Math.abs(darkness - 16)).toBeLessThan(4);
    expect(mirrored?.toReversed()).toEqual(line);
  }
  const side = fc.integer({ min: 1, max: 70 });
  fc.assert(
    fc.property(side, side, side, (width, height, place) => {
      const scaledImage = new Canvas(70, 70, [10, 20, 30]);
      scaledImage.drawRaster(createPlainPicture(width, height, [10, 20, 30, 255]), {
        x: 0,
        y: 0,
        width: place,
        height: place,
      });
      expect(scaledImage.data.every((value, at) => value === [10, 20, 30, 255][at % 4])).toBe(true);
    }),
  );
});

test('a transparent pixel shows the color of the background', () => {
  const canvas = new Canvas(10, 10, [0, 0, 255]);
  const half = createPlainPicture(20, 20, [255, 255, 255, 0]);
  half.data.fill(255, 20 * 10 * 4);
  canvas.drawRaster(half, { x: 0, y: 0, width: 10, height: 10 });
  expect([readPixel(canvas, 5, 1), readPixel(canvas, 5, 8)]).toEqual([
    [0, 0, 255, 255],
    [255, 255, 255, 255],
  ]);
});

/** Formats a canvas as text. Each character shows the darkness of a block of two by four pixels. */
function formatPictureAsText({ width, height, data }: Raster): string {
  const measureDarkness = (x: number, y: number) => 255 - (data[(y * width + x) * 4] ?? 255);
  const renderCharacter = (x: number, y: number) => {
    const sum = Array.from({ length: 8 }, (_, at) => measureDarkness(x + (at % 2), y + (at >> 1))).reduce(
      (a, b) => a + b,
    );
    return ' .:-=+*#%@'[Math.round((9 * sum) / (8 * 255))];
  };
  const rows = Array.from({ length: height / 4 }, (_, y) =>
    Array.from({ length: width / 2 }, (_, x) => renderCharacter(2 * x, 4 * y)).join(''),
  );
  return rows.map((row) => row.trimEnd()).join('\n');
}

test('texts are rendered exactly as in the snapshot file drawings.txt', async () => {
  const drawnLines = [
    ...[{ text: 'Wool shoes' }, { text: 'Wool', bold: true }, { text: 'WWW' }, { text: 'iii' }],
    { text: 'Wool', size: 40 },
    ...[{ text: 'W'.repeat(5000), maxWidth: 120 }, { text: '茶🎁\ud800', maxWidth: 120 }, { text: 'cafe\u0301' }],
  ].map(({ text, ...style }) => {
    const place = { x: 20, y: 40, size: 30, color: black, ...style };
    const canvas = new Canvas(240, 56);
    drawText(canvas, text, place);
    const inked = Array.from({ length: 240 }, (_, x) => x).filter((x) =>
      Array.from({ length: 56 }, (_, y) => canvas.data[(y * 240 + x) * 4] ?? 255).some((value) => value < 128),
    );
    const width = Math.min(measureText(text, place), place.maxWidth ?? Number.POSITIVE_INFINITY);
    expect(inked[0]).toBeGreaterThanOrEqual(20);
    expect((inked.at(-1) ?? 0) - 20).toBeLessThanOrEqual(width);
    return `${text.slice(0, 20).toWellFormed()} ${width.toFixed(1)}\n${formatPictureAsText(canvas)}`;
  });
  await expect(`${drawnLines.join('\n')}\n`).toMatchFileSnapshot('drawings.txt');
});

test('lines of wrapped text fit the width and contain every word', () => {
  const word = fc.string({ unit: fc.constantFrom(...'abcdeil'), minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), (words, maxLines) => {
      const textOptions = { size: 20, bold: true, maxWidth: 160, maxLines };
      const lines = breakIntoLines(words.join(' '), textOptions);
      expect(lines.length).toBeLessThanOrEqual(maxLines);
      for (const line of lines) expect(measureText(line, textOptions)).toBeLessThanOrEqual(160);
      const joinedLines = lines.join(' ');
      if (joinedLines.endsWith('…')) expect(words.join(' ')).toContain(joinedLines.slice(0, -1).trim());
      else expect(joinedLines).toBe(words.join(' '));
    }),
  );
  // A word that is wider than the line is split without losing letters.
  const long = 'abcdeil'.repeat(9);
  const lines = breakIntoLines(`${long} ${long}`, { size: 20, maxWidth: 160, maxLines: 99 });
  expect(lines.length).toBeGreaterThan(4);
  expect(lines.join('')).toBe(long + long);
});

test('text can be drawn in every script that the documentation lists', () => {
  const names = 'Łódź Ελληνικά Київ 兒童英語 广告主 広告カタカナひらがな 광고주 ร้านกาแฟ מבצע النخيلات فروشگاه';
  for (const name of names.split(' ')) {
    expect(canDrawText(name)).toBe(true);
    expect(measureText(name, { size: 20 }), name).toBeGreaterThan(20);
  }
  expect([canDrawText('🔥🎁'), canDrawText('🔥 Sale')]).toEqual([false, true]);
  expect(measureText('🔥Sale', { size: 20 })).toBe(measureText('Sale', { size: 20 }));
  const bytes = fontFiles.reduce((sum, file) => sum + statSync(createRequire(import.meta.url).resolve(file)).size, 0);
  expect(bytes).toBeLessThan(1_300_000);
});

test.each([
  ['שלום', 'םולש'],
  ['abc (שלום) 12', 'abc (םולש) 12'],
  ['שלום abc', 'abc םולש'],
  // Arabic letters that join on both sides or only on the right, a ligature, and two words.
  ['بيت', '\ufe96\ufef4\ufe91'],
  ['دار', '\ufead\ufe8d\ufea9'],
  ['سلام', '\ufee1\ufefc\ufeb3'],
  ['یک کتاب', '\ufe8f\ufe8e\ufe98\ufb90 \ufb8f\ufbfe'],
  ['بِت', '\ufe96\ufe91'],
  // Digits are drawn from left to right in every script.
  ['خصم ٥٠', '٥٠ \ufee2\ufebc\ufea7'],
  ['دار ۱۲۳', '۱۲۳ \ufead\ufe8d\ufea9'],
  ['דגם 2026-11', '2026-11 םגד'],
  ['דגם (2026)', '(2026) םגד'],
  ['abc ٢٠٢٦', 'abc ٢٠٢٦'],
  ['שלום 🔥 א', 'א 🔥 םולש'],
])('the characters of the text %s are drawn from left to right in the order %s', (text, drawn) => {
  expect(orderLettersForDrawing(text).join('')).toBe(drawn);
});

const lettersOfScripts = {
  latin: [...'abcXYZéß'],
  hebrew: [...'אבגדשלום'],
  digits: [...'0123456789'],
  arabicDigits: [...'٠١٢٣٤٥٦٧٨٩'],
  persianDigits: [...'۰۱۲۳۴۵۶۷۸۹'],
  others: [...' .-()[]«»%!', '茶', 'ก', '🔥', '\ud800'],
};

test('the reordering of right-to-left text keeps every character and mirrors only brackets', () => {
  const removeMirroring = (letter: string) => ({ ')': '(', ']': '[', '»': '«' })[letter] ?? letter;
  const text = fc.string({ unit: fc.constantFrom(...Object.values(lettersOfScripts).flat()), maxLength: 40 });
  fc.assert(
    fc.property(text, (text) => {
      const drawn = orderLettersForDrawing(text);
      expect(drawn.map(removeMirroring).sort()).toEqual([...text].map(removeMirroring).sort());
    }),
  );
});

test('digits are drawn from left to right in every script', () => {
  const word = fc.string({
    unit: fc.constantFrom(...lettersOfScripts.latin, ...lettersOfScripts.hebrew),
    minLength: 1,
  });
  const { digits, arabicDigits, persianDigits } = lettersOfScripts;
  const number = fc
    .constantFrom(digits, arabicDigits, persianDigits)
    .chain((script) => fc.string({ unit: fc.constantFrom(...script), minLength: 1, maxLength: 9 }));
  fc.assert(
    fc.property(word, number, word, (before, number, after) => {
      expect(orderLettersForDrawing(`${before} ${number} ${after}`).join('')).toContain(number);
      expect(orderLettersForDrawing(`${before}${number}`).join('')).toContain(number);
    }),
  );
});
