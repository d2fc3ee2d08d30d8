import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Canvas, type Path, type Point, pathOf, stroke } from '../../src/raster/canvas.ts';
import type { Raster } from '../../src/raster/codecs.ts';

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
  const canvas = new Canvas(16, 16);
  canvas.draw(stripes, { x: 0, y: 0, width: 16, height: 16 });
  expect(Math.abs((pixel(canvas, 8, 8)[0] ?? 0) - 128)).toBeLessThan(3);
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

test('a picture may lie half outside', () => {
  const canvas = new Canvas(10, 10, black);
  canvas.draw(plain(3, 3, [255, 255, 255, 255]), { x: -5, y: -5, width: 10, height: 10 });
  expect([pixel(canvas, 0, 0)[0], pixel(canvas, 6, 6)[0]]).toEqual([255, 0]);
});
