import type { Canvas } from '../../raster/canvas.ts';
import { between, type Colour } from '../../raster/paint.ts';
import { ellipse, moved, parsePath, roundedRect } from '../../raster/path.ts';
import { drawText, linesOf, textWidth } from '../../raster/text.ts';
import type { Palette } from './palettes.ts';
import type { Shape } from './shape.ts';

export const white: Colour = [255, 255, 255];
export const black: Colour = [0, 0, 0];
export const faded = ([red, green, blue]: Colour, opacity: number): Colour => [red, green, blue, opacity];

/** What can be read on a colour. */
export const inkOn = (colour: Colour, { dark }: Palette): Colour =>
  colour[0] * 0.3 + colour[1] * 0.59 + colour[2] * 0.11 > 160 ? dark : white;

/** What an ad's picture shows. Texts that the font cannot draw are left out. */
export interface Scene {
  canvas: Canvas;
  palette: Palette;
  /** Numbers from 0 to 1 that are the same for the same picture. */
  chance: readonly number[];
  shape: Shape;
  brand: string;
  headline: string;
  /** What the button says. */
  action: string;
  /** As `-20%`; empty if there is none. */
  discount: string;
}

interface Stand {
  x: number;
  /** Of the ground. */
  y: number;
  scale: number;
}

/** The product with its shadow on the ground. Light falls on it from above on the left. */
export function drawProduct({ canvas, palette, shape }: Scene, { x, y, scale }: Stand): void {
  for (let ring = 1; ring <= 8; ring++)
    canvas.fillPath(ellipse(x, y, [ring * 31 * scale, ring * 4.5 * scale]), [0, 0, 0, 0.04]);
  const from = [x - 240 * scale, y - 400 * scale] as const;
  const to = [x + 240 * scale, y] as const;
  const transform = { x: x - 540 * scale, y: y - 620 * scale, scaleX: scale, scaleY: scale };
  for (const [tone, path] of shape) {
    const form = moved(path, transform);
    if (tone === 'shade') canvas.fillPath(form, [0, 0, 0, 0.14]);
    else if (tone === 'shine') canvas.fillPath(form, [255, 255, 255, 0.32]);
    else {
      const colour = palette[tone];
      const colours = [between(colour, white, 0.16), between(colour, black, 0.14)] as const;
      canvas.fillPath(form, { shape: 'linear', from, to, colours });
    }
  }
}

interface Paragraph {
  x: number;
  /** Of the top of the first line. */
  y: number;
  width: number;
  height: number;
  colour: Colour;
  sizes: readonly number[];
  align?: 'left' | 'centre';
}

/** From one line to the next, in sizes of the letters. */
const LINE = 1.16;

/** Bold lines in the first size in which all of the text fits, or in the last. */
export function drawParagraph(canvas: Canvas, text: string, { x, y, colour, align, ...room }: Paragraph): void {
  const { width, height, sizes } = room;
  const linesIn = (size: number) =>
    linesOf(text, { size, bold: true, maxWidth: width, maxLines: Math.floor(height / (size * LINE)) });
  const size = sizes.find((one) => !linesIn(one).at(-1)?.endsWith('…')) ?? Math.min(...sizes);
  const lettering = { size, bold: true };
  for (const [at, line] of linesIn(size).entries()) {
    const left = align === 'centre' ? (width - textWidth(line, lettering)) / 2 : 0;
    drawText(canvas, line, { ...lettering, x: x + left, y: y + (at * LINE + 0.92) * size, colour });
  }
}

interface Placement {
  x: number;
  y: number;
  colour: Colour;
  on: Colour;
}

interface Mark extends Placement {
  radius: number;
}

/** A button, as wide as what it says. */
export function drawButton(
  canvas: Canvas,
  text: string,
  { x, y, colour, on, align = 'left' }: Placement & { align?: 'left' | 'centre' | 'right' },
): void {
  const lettering = { size: 22, bold: true };
  const inner = Math.min(300, textWidth(text, lettering));
  const width = inner + 52;
  const left = x - { left: 0, centre: width / 2, right: width }[align];
  canvas.fillPath(roundedRect({ x: left, y, width, height: 52 }, 26), on);
  drawText(canvas, text, { ...lettering, x: left + 26, y: y + 34, colour, maxWidth: inner + 1 });
}

/** The advertiser's mark and name. */
export function drawBrand({ canvas, brand }: Scene, { x, y, colour, on }: Placement): void {
  drawMark(canvas, brand, { x: x + 20, y: y + 20, radius: 20, colour: on, on: colour });
  drawText(canvas, brand, { x: x + 52, y: y + 28, size: 22, bold: true, colour, maxWidth: 380 });
}

/** A disc with the first letter of a name; without a letter, a ring. */
export function drawMark(canvas: Canvas, name: string, { x, y, radius, colour, on }: Mark): void {
  canvas.fillPath(ellipse(x, y, [radius, radius]), on);
  const lettering = { size: radius * 1.15, bold: true };
  const letter = Array.from(name)[0]?.toUpperCase() ?? '';
  const left = x - textWidth(letter, lettering) / 2;
  if (letter) drawText(canvas, letter, { ...lettering, x: left, y: y + radius * 0.42, colour });
  else canvas.fillPath(ellipse(x, y, [radius * 0.5, radius * 0.5]), colour);
}

/** A round sticker with the discount. */
export function drawDiscount({ canvas, discount, palette }: Scene, { x, y }: { x: number; y: number }): void {
  if (discount === '') return;
  canvas.fillPath(ellipse(x, y, [52, 52]), palette.accent);
  const lettering = { size: 30, bold: true };
  drawText(canvas, discount, {
    ...lettering,
    x: x - textWidth(discount, lettering) / 2,
    y: y + 11,
    colour: inkOn(palette.accent, palette),
  });
}

/** Shown on the still of a video. */
export function drawPlay(canvas: Canvas, { x, y }: { x: number; y: number }): void {
  canvas.fillPath(ellipse(x, y, [54, 54]), [0, 0, 0, 0.55]);
  canvas.fillPath(ellipse(x, y, [48, 48]), [255, 255, 255, 0.18]);
  canvas.fillPath(moved(parsePath('M-16 -25 L28 0 L-16 25 Z'), { x, y, scaleX: 1, scaleY: 1 }), white);
}
