/** Declares the used part of a package without types. */
declare module 'bidi-js' {
  interface EmbeddingLevels {
    levels: Uint8Array;
  }
  interface Bidi {
    /** @param direction of the text; `auto` takes the direction of the first letter that has one */
    getEmbeddingLevels(text: string, direction: 'ltr' | 'rtl' | 'auto'): EmbeddingLevels;
    /** Returns the indices of UTF-16 units from left to right. */
    getReorderedIndices(text: string, levels: EmbeddingLevels): number[];
    getMirroredCharacter(character: string): string | null;
  }
  // biome-ignore lint/style/noDefaultExport: the package has no other export
  export default function createBidi(): Bidi;
}
