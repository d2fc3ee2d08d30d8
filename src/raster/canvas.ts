import { coverageOf } from './coverage.ts';
import type { Path } from './path.ts';
import type { Raster, Rect } from './raster.ts';
import { resampled } from './resample.ts';

/** Red, green and blue from 0 to 255, and opacity from 0 to 1. */
export type Colour = readonly [red: number, green: number, blue: number, opacity?: number];

/** From one colour to another: along the line between two points, or outwards from the first to the second. */
export interface Gradient {
  shape: 'linear' | 'radial';
  from: readonly [x: number, y: number];
  to: readonly [x: number, y: number];
  colours: readonly [Colour, Colour];
}

export type Paint = Colour | Gradient;

/** `contain` shows the whole picture, in the middle of the place; `cover` fills the place, and cuts what stands out. */
export type Fit = 'contain' | 'cover';

/** An opaque picture to draw on. What lies outside of it is left out. */
export class Canvas implements Raster {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray;

  constructor(width: number, height: number, background: Colour = [255, 255, 255]) {
    this.width = width;
    this.height = height;
    this.data = new Uint8ClampedArray(width * height * 4).fill(255);
    this.fillRect({ x: 0, y: 0, width, height }, background);
  }

  /** Whole pixels. */
  fillRect({ x, y, width, height }: Rect, colour: Paint): void {
    const [left, top] = [Math.max(0, Math.round(x)), Math.max(0, Math.round(y))];
    const right = Math.min(this.width, Math.round(x + width));
    const bottom = Math.min(this.height, Math.round(y + height));
    const paint = painter(colour);
    for (let row = top; row < bottom; row++)
      for (let column = left; column < right; column++) this.#blend(column, row, paint, 1);
  }

  /** The inside of a path, with smooth edges. */
  fillPath(path: Path, colour: Paint): void {
    const covered = coverageOf(path, this.width, this.height);
    if (covered === undefined) return;
    const paint = painter(colour);
    const { x, y, width, height, coverage } = covered;
    for (let row = 0; row < height; row++)
      for (let column = 0; column < width; column++) {
        const share = coverage[row * width + column] ?? 0;
        if (share > 0) this.#blend(x + column, y + row, paint, share);
      }
  }

  /** A picture, made smaller or larger to fit. */
  draw(raster: Raster, place: Rect, fit: Fit): void {
    const { from, to } = placed(raster, place, fit);
    const [left, top] = [Math.round(to.x), Math.round(to.y)];
    const size = { width: Math.max(1, Math.round(to.width)), height: Math.max(1, Math.round(to.height)) };
    const { rows, pixels } = resampled(raster, from, size);
    const paint = { colours: pixels, at: (x: number) => (x - left) * 4 };
    let y = top;
    for (const _ of rows) {
      const right = Math.min(this.width, left + size.width);
      if (y >= 0 && y < this.height) for (let x = Math.max(0, left); x < right; x++) this.#blend(x, y, paint, 1);
      y++;
    }
  }

  #blend(x: number, y: number, { colours, at }: Painter, share: number): void {
    const pixel = (y * this.width + x) * 4;
    const colour = at(x, y);
    const left = 1 - ((colours[colour + 3] as number) / 255) * share;
    const { data } = this;
    data[pixel] = (data[pixel] as number) * left + (colours[colour] as number) * share;
    data[pixel + 1] = (data[pixel + 1] as number) * left + (colours[colour + 1] as number) * share;
    data[pixel + 2] = (data[pixel + 2] as number) * left + (colours[colour + 2] as number) * share;
  }
}

/** Which part of a picture is shown where. */
function placed(raster: Raster, place: Rect, fit: Fit): { from: Rect; to: Rect } {
  const whole = { x: 0, y: 0, width: raster.width, height: raster.height };
  const scales = [place.width / raster.width, place.height / raster.height] as const;
  const scale = fit === 'contain' ? Math.min(...scales) : Math.max(...scales);
  if (fit === 'contain') return { from: whole, to: centred(place, raster.width * scale, raster.height * scale) };
  return { from: centred(whole, place.width / scale, place.height / scale), to: place };
}

const centred = (outer: Rect, width: number, height: number): Rect => ({
  x: outer.x + (outer.width - width) / 2,
  y: outer.y + (outer.height - height) / 2,
  width,
  height,
});

/** Colours with their opacity from 0 to 255, weighed by it, and where the one of a pixel begins. */
interface Painter {
  colours: Float32Array;
  at(x: number, y: number): number;
}

/** Colours on the way from one end of a gradient to the other. */
const STEPS = 512;

function painter(paint: Paint): Painter {
  if (!('shape' in paint)) return { colours: Float32Array.from(weighed(paint)), at: () => 0 };
  const {
    shape,
    from: [fromX, fromY],
    to: [toX, toY],
    colours: [start, end],
  } = paint;
  const [acrossX, acrossY] = [toX - fromX, toY - fromY];
  const square = acrossX ** 2 + acrossY ** 2 || 1;
  return {
    colours: Float32Array.from(
      Array.from({ length: STEPS }, (_, at) => weighed(between(start, end, at / STEPS))).flat(),
    ),
    at(x, y) {
      const [dx, dy] = [x + 0.5 - fromX, y + 0.5 - fromY];
      const way = shape === 'linear' ? (dx * acrossX + dy * acrossY) / square : Math.sqrt((dx * dx + dy * dy) / square);
      return 4 * Math.max(0, Math.min(STEPS - 1, Math.floor(way * STEPS)));
    },
  };
}

const weighed = ([red, green, blue, opacity = 1]: Colour) =>
  [red, green, blue, 255].map((channel) => channel * opacity);

/** A colour on the way from one to another. */
export function between(start: Colour, end: Colour, way: number): Colour {
  const mix = (channel: 0 | 1 | 2 | 3, absent: number) =>
    (start[channel] ?? absent) * (1 - way) + (end[channel] ?? absent) * way;
  return [mix(0, 0), mix(1, 0), mix(2, 0), mix(3, 1)];
}
