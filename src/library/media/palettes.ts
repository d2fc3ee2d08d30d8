import type { Colour } from '../../raster/paint.ts';
import type { Tone } from './shape.ts';

/** The colours of an advertiser. */
export type Palette = Record<'paper' | 'tint' | Exclude<Tone, 'shade' | 'shine'>, Colour>;

const table = [
  ['fbefe6', 'f3cdb4', 'd9683c', '6b2a14', '2f8f86'],
  ['eef3e8', 'cbddbe', '4e8b5a', '1f4733', 'e9a23b'],
  ['e8f2f8', 'b9dcee', '2b7bb9', '123f66', 'ff8a5b'],
  ['f6ecf4', 'e3c3de', '8e4a8b', '4a1f4c', 'f2b84b'],
  ['fff7dd', 'ffdf85', 'ee9b1a', '6b3d05', '2d6d9c'],
  ['fdedee', 'f8c4cb', 'e0566f', '741b34', '3c8a99'],
  ['eef1f4', 'cbd3dc', '55708e', '1e2936', 'ff6b4a'],
  ['e6f6f1', 'b4e4d4', '27a083', '0e4f42', 'f46d75'],
  ['f7f1e6', 'e4d2b4', 'b68a52', '53391c', '2e7ea0'],
  ['ecedfb', 'c5c9f5', '5a5de0', '27297a', 'ffb648'],
  ['fbeaf1', 'f3b9d3', 'c4327c', '5f0f3a', '38a3a5'],
  ['f3f4e4', 'd9dda9', '8a9a3b', '3f4b18', 'd9583b'],
] as const;

/** @param chance from 0 to 1 */
export function paletteAt(chance: number): Palette {
  const [paper, tint, body, dark, accent] = table[Math.floor(chance * (table.length - 1e-9))] ?? table[0];
  return {
    paper: colour(paper),
    tint: colour(tint),
    body: colour(body),
    dark: colour(dark),
    accent: colour(accent),
    light: [255, 252, 246],
  };
}

const colour = (hex: string): Colour => {
  const value = Number.parseInt(hex, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
};
