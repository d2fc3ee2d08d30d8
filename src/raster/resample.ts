import type { Raster, Rect, Size } from './raster.ts';

/** Of the pixels of a picture, which count how much for one pixel of the smaller or larger one. */
interface Share {
  from: number;
  weights: Float32Array;
}

/**
 * The rows of a part of a picture made smaller, as the mean of the pixels that become one, or larger, with colours that
 * pass into each other. They are weighed by their opacity. Only one is kept at a time, however large the picture.
 */
export function* resampled({ width, height, data }: Raster, part: Rect, size: Size): Generator<Float32Array> {
  const columns = sharesOf({ start: part.x, length: part.width, limit: width, count: size.width });
  const rows = sharesOf({ start: part.y, length: part.height, limit: height, count: size.height });
  const sums = new Float32Array(width * 4);
  const pixels = new Float32Array(size.width * 4);
  for (const { from, weights } of rows) {
    sums.fill(0);
    weights.forEach((weight, at) => {
      addRow(sums, data, { start: (from + at) * width * 4, weight });
    });
    columns.forEach((share, column) => {
      for (let channel = 0; channel < 4; channel++) pixels[column * 4 + channel] = mean(sums, channel, share);
    });
    yield pixels;
  }
}

function addRow(sums: Float32Array, data: Uint8ClampedArray, { start, weight }: { start: number; weight: number }) {
  for (let at = 0; at < sums.length; at += 4) {
    const opacity = data[start + at + 3] ?? 0;
    const counts = (weight * opacity) / 255;
    sums[at] = (sums[at] ?? 0) + (data[start + at] ?? 0) * counts;
    sums[at + 1] = (sums[at + 1] ?? 0) + (data[start + at + 1] ?? 0) * counts;
    sums[at + 2] = (sums[at + 2] ?? 0) + (data[start + at + 2] ?? 0) * counts;
    sums[at + 3] = (sums[at + 3] ?? 0) + opacity * weight;
  }
}

function mean(sums: Float32Array, channel: number, { from, weights }: Share): number {
  let sum = 0;
  for (let at = 0; at < weights.length; at++) sum += (sums[(from + at) * 4 + channel] ?? 0) * (weights[at] ?? 0);
  return sum;
}

interface Span {
  /** The part of the picture, which may begin and end within a pixel. */
  start: number;
  length: number;
  /** Pixels of the whole picture. */
  limit: number;
  /** Pixels it becomes. */
  count: number;
}

/** Each pixel counts the more the nearer its middle is. */
function sharesOf({ start, length, limit, count }: Span): Share[] {
  const scale = length / count;
  const reach = Math.max(1, scale);
  return Array.from({ length: count }, (_, at) => {
    const middle = start + (at + 0.5) * scale - 0.5;
    const from = Math.min(limit - 1, Math.max(0, Math.ceil(middle - reach)));
    const to = Math.max(from, Math.min(limit - 1, Math.floor(middle + reach)));
    const weights = Float32Array.from({ length: to - from + 1 }, (_, nr) =>
      Math.max(1e-6, 1 - Math.abs(from + nr - middle) / reach),
    );
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { from, weights: weights.map((weight) => weight / sum) };
  });
}
