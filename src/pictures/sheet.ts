import type { Chart } from '../charts/chart.ts';
import type { PictureFormat } from './fetch-picture.ts';

/** To the worker; it answers each before it takes the next. */
export type DrawRequest =
  /** Shrinks a picture to fit a square. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; side: number }
  | { type: 'sheet'; word: string; tiles: readonly DrawnTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a sheet, with the picture as `thumbnail` made it or the reason why there is none. */
export type DrawnTile = { number: number; label?: string | undefined } & ({ jpeg: Uint8Array } | { reason: string });

/** Undefined where the picture cannot be decoded. */
export type DrawReply = Uint8Array | undefined;

/** Pixels. */
export const sheetWidth = 1100;
export const gap = 14;
export const headHeight = 58;
export const labelHeight = 34;

/** The larger the pictures the fewer they are; they shall fill the sheet and stay about as high as wide. */
const columnsFor = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

interface Grid {
  columns: number;
  /** The longest side of a picture. */
  side: number;
}

export function gridOf(tiles: number): Grid {
  const columns = Math.min(columnsFor[tiles] ?? 4, sheetWidth);
  return { columns, side: Math.floor((sheetWidth - gap * (columns + 1)) / columns) };
}
