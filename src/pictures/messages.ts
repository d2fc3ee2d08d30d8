import type { PictureFormat } from './picture-header.ts';

/** To the worker; it answers each before it takes the next. */
export type DrawRequest =
  /** Shrinks a picture to fit a square. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; side: number }
  | { type: 'sheet'; word: string; tiles: readonly DrawnTile[] };

/** A tile of a sheet, with the picture as `thumbnail` made it or the reason why there is none. */
export type DrawnTile = { number: number; label?: string | undefined } & ({ jpeg: Uint8Array } | { reason: string });

/** Undefined where the picture cannot be decoded. */
export type DrawReply = Uint8Array | undefined;
