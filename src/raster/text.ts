/// <reference path="./opentype.d.ts" />
import { readFileSync } from 'node:fs';
import { type Font, type Glyph, parse } from 'opentype.js/dist/opentype.mjs';
import { type Canvas, type Colour, moved, type Path, pathOf } from './canvas.ts';
import { packagedFile } from './codecs.ts';

export interface Lettering {
  /** Height of the font, in pixels. */
  size: number;
  bold?: boolean;
}

export interface TextPosition extends Lettering {
  x: number;
  /** Of the line the letters stand on. */
  y: number;
  colour: Colour;
  /** Text that is wider ends in an ellipsis. */
  maxWidth?: number;
}

const fonts: Partial<Record<'regularFont' | 'boldFont', Font>> = {};

function fontOf(bold = false): Font {
  const name = bold ? 'boldFont' : 'regularFont';
  fonts[name] ??= parse(new Uint8Array(readFileSync(packagedFile(name))).buffer);
  return fonts[name];
}

/** No more than the font has. */
const outlines = new WeakMap<Glyph, Path>();

function outlineOf(glyph: Glyph): Path {
  const outline = outlines.get(glyph) ?? pathOf(glyph.path.commands);
  outlines.set(glyph, outline);
  return outline;
}

/** Accents as one letter with what they stand on: the font has no others. */
const lettersOf = (text: string) => text.normalize('NFC');

export const textWidth = (text: string, lettering: Lettering): number =>
  cut(text, lettering, Number.POSITIVE_INFINITY).width;

/** Whether the font has every letter of the text. */
export const canDraw = (text: string): boolean =>
  [...lettersOf(text)].every((letter) => fontOf().charToGlyphIndex(letter) > 0);

/** Draws one line; a letter that the font lacks becomes a box. */
export function drawText(canvas: Canvas, text: string, position: TextPosition): void {
  const { size, bold, maxWidth = Number.POSITIVE_INFINITY, colour } = position;
  const font = fontOf(bold);
  const scale = size / font.unitsPerEm;
  let { x } = position;
  for (const letter of shortened(text, position, maxWidth)) {
    const glyph = font.charToGlyph(letter);
    canvas.fillPath(moved(outlineOf(glyph), { x, y: position.y, scaleX: scale, scaleY: -scale }), colour);
    x += glyph.advanceWidth * scale;
  }
}

export interface Lines extends Lettering {
  maxWidth: number;
  maxLines: number;
}

/** Breaks a text at its spaces; the last line ends in an ellipsis if something is left out. */
export function linesOf(text: string, { maxWidth, maxLines, ...lettering }: Lines): string[] {
  const lines: string[] = [];
  let rest = lettersOf(text).trim();
  while (rest !== '' && lines.length < maxLines) {
    const { kept } = cut(rest, lettering, maxWidth);
    const space = kept === rest ? kept.length : kept.lastIndexOf(' ');
    const isLast = lines.length === maxLines - 1;
    const line = isLast ? shortened(rest, lettering, maxWidth) : rest.slice(0, space > 0 ? space : kept.length || 1);
    lines.push(line);
    rest = isLast ? '' : rest.slice(line.length).trimStart();
  }
  return lines;
}

function shortened(text: string, lettering: Lettering, maxWidth: number): string {
  const { kept, isWhole } = cut(text, lettering, maxWidth);
  if (isWhole) return kept;
  return `${cut(text, lettering, maxWidth - textWidth('…', lettering)).kept.trimEnd()}…`;
}

/** As many letters as fit, and their width. */
function cut(text: string, { size, bold }: Lettering, maxWidth: number) {
  const font = fontOf(bold);
  const scale = size / font.unitsPerEm;
  let [kept, width] = ['', 0];
  for (const letter of lettersOf(text)) {
    const wider = width + font.charToGlyph(letter).advanceWidth * scale;
    if (wider > maxWidth) return { kept, width, isWhole: false };
    kept += letter;
    width = wider;
  }
  return { kept, width, isWhole: true };
}
