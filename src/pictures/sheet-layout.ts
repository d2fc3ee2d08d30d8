/** Pixels. */
export const sheetWidth = 1100;
export const gap = 14;
export const headHeight = 58;
export const labelHeight = 34;

/** The larger the pictures the fewer they are; they shall fill the sheet and stay about as high as wide. */
const columnsFor = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

export interface Grid {
  columns: number;
  /** The longest side of a picture. */
  side: number;
}

export function gridOf(tiles: number): Grid {
  const columns = Math.min(columnsFor[tiles] ?? 4, sheetWidth);
  return { columns, side: Math.floor((sheetWidth - gap * (columns + 1)) / columns) };
}
