/** Types for the functions of `opentype.js` that this project uses. The package itself contains no types. */
declare module 'opentype.js/dist/opentype.mjs' {
  export interface Glyph {
    advanceWidth: number;
    path: { commands: import('./canvas.ts').GlyphCommand[] };
  }
  export interface Font {
    unitsPerEm: number;
    charToGlyphIndex(letter: string): number;
    charToGlyph(letter: string): Glyph;
  }
  export function parse(bytes: ArrayBuffer): Font;
}
