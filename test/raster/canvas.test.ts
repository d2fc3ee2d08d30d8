import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Canvas,
  type Command,
  ellipse,
  type Path,
  type Point,
  pathOf,
  type Rect,
  stroke,
} from '../../src/raster/canvas.ts';
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

/** A rectangle with round corners. */
function roundedRect({ x, y, width, height }: Rect, radius: number): Path {
  const round = Math.min(radius, width / 2, height / 2);
  const corners = [
    [x + width - round, y + height - round],
    [x + round, y + height - round],
    [x + round, y + round],
    [x + width - round, y + round],
  ] as const;
  const quarter = 12;
  return [
    corners.flatMap(([centreX, centreY], corner) =>
      Array.from({ length: quarter + 1 }, (_, at): Point => {
        const angle = ((corner + at / quarter) * Math.PI) / 2;
        return [centreX + Math.cos(angle) * round, centreY + Math.sin(angle) * round];
      }),
    ),
  ];
}

describe('a path', () => {
  test('covers its area, wherever its edges lie', () => {
    const place = fc.double({ min: 0, max: 30, noNaN: true });
    const length = fc.double({ min: 0.5, max: 29, noNaN: true });
    fc.assert(
      fc.property(place, place, length, length, (x, y, width, height) => {
        const area = ink(drawn(roundedRect({ x, y, width, height }, 0)));
        // Each pixel of the edge is rounded to one of 255 greys.
        expect(Math.abs(area - width * height)).toBeLessThan((2 * (width + height) + 8) / 255);
      }),
    );
  });

  test('covers the same inside a canvas that cuts it', () => {
    const point = fc.tuple(fc.integer({ min: -90, max: 90 }), fc.integer({ min: -90, max: 90 }));
    fc.assert(
      fc.property(point, point, point, (...corners) => {
        const whole = new Canvas(180, 180, white);
        whole.fillPath([corners.map(([x, y]) => [x + 90, y + 90])], black);
        const part = drawn([corners], 90);
        for (const at of [0, 17, 44, 71])
          for (const across of [1, 30, 88])
            expect(
              Math.abs((pixel(part, across, at)[0] ?? 0) - (pixel(whole, 90 + across, 90 + at)[0] ?? 0)),
            ).toBeLessThan(2);
      }),
    );
  });

  test('has round, open and hollow forms', () => {
    expect(ink(drawn(ellipse(30, 30, [20, 10]))) / (Math.PI * 200)).toBeCloseTo(1, 2);
    expect(ink(drawn(roundedRect({ x: 10, y: 10, width: 40, height: 40 }, 99))) / (Math.PI * 400)).toBeCloseTo(1, 2);
    expect(
      ink(
        drawn(
          stroke(
            [
              [
                [10, 30],
                [50, 30],
              ],
            ],
            10,
          ),
        ),
      ) /
        (400 + Math.PI * 25),
    ).toBeCloseTo(1, 2);
    const square = (low: number, high: number): Path[number] => [
      [low, low],
      [high, low],
      [high, high],
      [low, high],
    ];
    expect(ink(drawn([square(10, 50), square(20, 40).toReversed()]))).toBeCloseTo(1200, 0);
    const end = { x: 60, y: 60 };
    const under = (curve: Command) =>
      drawn(pathOf([{ type: 'M', x: 0, y: 0 }, curve, { type: 'L', x: 0, y: 60 }, { type: 'Z' }]));
    expect(ink(under({ type: 'Q', x1: 60, y1: 0, ...end })) / 3000).toBeCloseTo(1, 1);
    expect(ink(under({ type: 'C', x1: 40, y1: 0, x2: 60, y2: 20, ...end })) / 2970).toBeCloseTo(1, 1);
  });

  test.each([
    ['outside', ellipse(-500, 30, [20, 20])],
    ['below', ellipse(30, 900, [20, 20])],
    ['without points', [[]]],
    [
      'without an area',
      [
        [
          [5, 5],
          [50, 5],
        ],
      ],
    ],
    [
      'not made of numbers',
      [
        [
          [Number.NaN, 0],
          [50, 0],
          [0, 50],
        ],
      ],
    ],
    [
      'endless',
      [
        [
          [Number.POSITIVE_INFINITY, 0],
          [50, 0],
          [0, 50],
        ],
      ],
    ],
  ] as [string, Path][])('%s leaves the canvas as it is', (_, path) => {
    expect(ink(drawn(path))).toBe(0);
  });

  test('of any size takes no longer than the canvas', () => {
    expect(
      ink(
        drawn([
          [
            [-1e12, -1e12],
            [1e12, -1e12],
            [1e12, 1e12],
            [-1e12, 1e12],
          ],
        ]),
      ),
    ).toBe(3600);
  });
});

describe('a colour', () => {
  test('lets through what is below as its opacity says', () => {
    const canvas = new Canvas(4, 4, [200, 100, 0]);
    canvas.fillRect({ x: 1, y: 1, width: 9, height: 9 }, [0, 0, 200, 0.5]);
    expect(pixel(canvas, 2, 2)).toEqual([100, 50, 100, 255]);
    expect(pixel(canvas, 0, 2)).toEqual([200, 100, 0, 255]);
  });
});

describe('a picture', () => {
  test('is shown whole in the middle of its place, or fills it', () => {
    const red = plain(200, 100, [255, 0, 0, 255]);
    const [whole, filling] = [new Canvas(40, 40, black), new Canvas(40, 40, black)];
    whole.draw(red, { x: 10, y: 10, width: 20, height: 20 }, 'contain');
    filling.draw(red, { x: 10, y: 10, width: 20, height: 20 }, 'cover');
    const reds = ({ data }: Raster) => data.filter((value, at) => at % 4 === 0 && value > 250).length;
    expect([reds(whole), reds(filling)]).toEqual([200, 400]);
    expect([pixel(whole, 11, 14)[0], pixel(whole, 11, 15)[0]]).toEqual([0, 255]);
  });

  test('becomes the mean of what is left out, and keeps its colour at every size', () => {
    const stripes = plain(256, 256, [0, 0, 0, 255]);
    stripes.data.forEach((_, at) => {
      if (at % 4 < 3 && Math.floor(at / 4) % 2 === 0) stripes.data[at] = 255;
    });
    const canvas = new Canvas(16, 16);
    canvas.draw(stripes, { x: 0, y: 0, width: 16, height: 16 }, 'cover');
    expect(Math.abs((pixel(canvas, 8, 8)[0] ?? 0) - 128)).toBeLessThan(3);
    const side = fc.integer({ min: 1, max: 70 });
    fc.assert(
      fc.property(side, side, side, fc.constantFrom('contain', 'cover'), (width, height, place, fit) => {
        const shown = new Canvas(70, 70, [10, 20, 30]);
        shown.draw(plain(width, height, [10, 20, 30, 255]), { x: 0, y: 0, width: place, height: place }, fit);
        expect(shown.data.every((value, at) => value === [10, 20, 30, 255][at % 4])).toBe(true);
      }),
    );
  });

  test('lets through what is below where it is clear, whatever colour it hides there', () => {
    const canvas = new Canvas(10, 10, [0, 0, 255]);
    const half = plain(20, 20, [255, 255, 255, 0]);
    half.data.fill(255, 20 * 10 * 4);
    canvas.draw(half, { x: 0, y: 0, width: 10, height: 10 }, 'cover');
    expect([pixel(canvas, 5, 1), pixel(canvas, 5, 8)]).toEqual([
      [0, 0, 255, 255],
      [255, 255, 255, 255],
    ]);
  });

  test('may lie half outside', () => {
    const canvas = new Canvas(10, 10, black);
    canvas.draw(plain(3, 3, [255, 255, 255, 255]), { x: -5, y: -5, width: 10, height: 10 }, 'cover');
    expect([pixel(canvas, 0, 0)[0], pixel(canvas, 6, 6)[0]]).toEqual([255, 0]);
  });
});
