/** Types for the functions of `bidi-js` that this project uses. The package itself contains no types. */
declare module 'bidi-js' {
  interface EmbeddingLevels {
    levels: Uint8Array;
  }
  interface Bidi {
    /** @param direction direction of the text; `auto` takes it from the first letter that has a direction */
    getEmbeddingLevels(text: string, direction: 'ltr' | 'rtl' | 'auto'): EmbeddingLevels;
    /** Returns the indices of the UTF-16 code units in visual order, from left to right. */
    getReorderedIndices(text: string, levels: EmbeddingLevels): number[];
    getMirroredCharacter(character: string): string | null;
  }
  // biome-ignore lint/style/noDefaultExport: the package has no other export
  export default function createBidi(): Bidi;
}
