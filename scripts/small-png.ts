import { decodePng } from '../src/raster/codecs.ts';
import { pngOf } from './png.ts';

/** Colours are rounded to what no eye tells apart, which halves a picture with gradients in it. */
const step = 4;

/** A PNG of the same picture with fewer bytes (PNG specification: true colour, 8 bits, filter *Sub*). */
export async function smallPng(png: Uint8Array): Promise<Uint8Array> {
  const { width, height, data } = await decodePng(png);
  const rounded = (index: number) => Math.min(255, Math.round((data[index] ?? 0) / step) * step);
  const lines = Buffer.alloc((3 * width + 1) * height);
  let at = 0;
  for (let y = 0; y < height; y++) {
    lines[at++] = 1;
    for (let x = 0; x < width; x++)
      for (let channel = 0; channel < 3; channel++) {
        const index = 4 * (y * width + x) + channel;
        lines[at++] = rounded(index) - (x === 0 ? 0 : rounded(index - 4));
      }
  }
  return pngOf({ width, height, pixel: 'rgb' }, lines);
}
