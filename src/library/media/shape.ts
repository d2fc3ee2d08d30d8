import { ellipse, type Path, parsePath, roundedRect, stroke } from '../../raster/path.ts';

/** Which colour of a palette a part of a product has; `shade` and `shine` only darken or lighten what is below. */
export type Tone = 'body' | 'dark' | 'light' | 'accent' | 'shade' | 'shine';

/** The parts of a product from back to front. It stands on the ground at y 620 around x 540, about 480 wide and 400 high. */
export type Shape = readonly (readonly [Tone, Path])[];

type Pair = readonly [number, number];

export const box = ([x, y]: Pair, [width, height]: Pair, radius = 0): Path =>
  roundedRect({ x, y, width, height }, radius);
export const disc = (x: number, y: number, wide: number, high = wide): Path => ellipse(x, y, [wide, high]);
export const form = parsePath;
export const line = (path: string, width: number): Path => stroke(parsePath(path), width);
export const ring = (x: number, y: number, [radius, width]: Pair): Path => [
  ...ellipse(x, y, [radius + width / 2, radius + width / 2]),
  ...ellipse(x, y, [radius - width / 2, radius - width / 2]).map((hole) => hole.toReversed()),
];
