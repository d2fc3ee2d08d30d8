import { maskOf } from './mask.ts';
import type { Path } from './path.ts';
import type { Colour, Raster, Rect } from './raster.ts';
import { resampled } from './resample.ts';

/** `contain` shows the whole picture, in the middle of its frame; `cover` fills the frame, and cuts what stands out. */
export type Fit = 'contain' | 'cover';

/** An opaque picture to draw on. What lies outside of it is left out. */
export class Canvas implements Raster {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray;

  /** White, or of another colour. */
  constructor(width: number, height: number, background?: Colour) {
    this.width = width;
    this.height = height;
    this.data = new Uint8ClampedArray(width * height * 4).fill(255);
    if (background) this.fillRect({ x: 0, y: 0, width, height }, background);
  }

  /** Whole pixels. */
  fillRect({ x, y, width, height }: Rect, colour: Colour): void {
    const left = Math.max(0, Math.round(x));
    const shown = Math.min(this.width, Math.round(x + width)) - left;
    const bottom = Math.min(this.height, Math.round(y + height));
    if (shown <= 0) return;
    const pixels = rowOf(colour, shown);
    for (let row = Math.max(0, Math.round(y)); row < bottom; row++) this.#blend(left, row, pixels);
  }

  /** The inside of a path, with smooth edges. */
  fillPath(path: Path, colour: Colour): void {
    const mask = maskOf(path, this.width, this.height);
    if (mask === undefined) return;
    const { x, y, width, height, coverage } = mask;
    const pixels = rowOf(colour, width);
    for (let row = 0; row < height; row++)
      this.#blend(x, y + row, pixels, coverage.subarray(row * width, (row + 1) * width));
  }

  /** A picture, made smaller or larger to fit. */
  draw(raster: Raster, frame: Rect, fit: Fit): void {
    const { from, to } = placed(raster, frame, fit);
    const size = { width: Math.max(1, Math.round(to.width)), height: Math.max(1, Math.round(to.height)) };
    const left = Math.round(to.x);
    let row = Math.round(to.y);
    for (const pixels of resampled(raster, from, size)) {
      const hidden = Math.max(0, -left);
      const shown = pixels.subarray(hidden * 4, Math.max(hidden, this.width - left) * 4);
      if (row >= 0 && row < this.height) this.#blend(left + hidden, row, shown);
      row++;
    }
  }

  /** Lays pixels over those of a row; of each as much as is covered. */
  #blend(left: number, y: number, pixels: Float32Array, coverage?: Float32Array): void {
    const { data, width } = this;
    let at = (y * width + left) * 4;
    for (let from = 0; from < pixels.length; from += 4, at += 4) {
      const share = coverage === undefined ? 1 : (coverage[from / 4] as number);
      if (share === 0) continue;
      const below = 1 - ((pixels[from + 3] as number) / 255) * share;
      data[at] = (data[at] as number) * below + (pixels[from] as number) * share;
      data[at + 1] = (data[at + 1] as number) * below + (pixels[from + 1] as number) * share;
      data[at + 2] = (data[at + 2] as number) * below + (pixels[from + 2] as number) * share;
    }
  }
}

/** The pixels of a row in one colour, weighed by its opacity, which is from 0 to 255. */
function rowOf([red, green, blue, opacity = 1]: Colour, width: number): Float32Array {
  const weighed = [red * opacity, green * opacity, blue * opacity, 255 * opacity];
  return Float32Array.from({ length: width * 4 }, (_, at) => weighed[at % 4] as number);
}

/** Which part of a picture is shown where. */
function placed(raster: Raster, frame: Rect, fit: Fit): { from: Rect; to: Rect } {
  const whole = { x: 0, y: 0, width: raster.width, height: raster.height };
  const scales = [frame.width / raster.width, frame.height / raster.height] as const;
  if (fit === 'cover') {
    const scale = Math.max(...scales);
    return { from: centred(whole, frame.width / scale, frame.height / scale), to: frame };
  }
  const scale = Math.min(...scales);
  return { from: whole, to: centred(frame, raster.width * scale, raster.height * scale) };
}

const centred = (outer: Rect, width: number, height: number): Rect => ({
  x: outer.x + (outer.width - width) / 2,
  y: outer.y + (outer.height - height) / 2,
  width,
  height,
});
