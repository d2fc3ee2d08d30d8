/** Pictures of ads for one caller, fetched under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export interface Pictures {
  /**
   * The picture at the address, shrunk to fit a square of `side` pixels, as JPEG; or why it is not shown. Rejects only if
   * the signal aborts or too many pictures are waiting, never for what a host does.
   */
  thumbnail(address: string, options: ThumbnailOptions): Promise<Thumbnail>;
  /** One sheet of numbered pictures as JPEG. The same picture is fetched once. */
  sheet(tiles: readonly SheetTile[], options: SheetOptions): Promise<Sheet>;
}

export interface ThumbnailOptions {
  side: number;
  signal: AbortSignal;
  /** Aborts with `signal`, or sooner: then a picture that has not come is not shown. */
  timeUp?: AbortSignal;
}

export type Thumbnail = { jpeg: Uint8Array } | NotShown;

export interface NotShown {
  reason: string;
  /** It may come if it is asked for again. */
  isLate?: true;
}

/** A picture to fetch, or why there is none. The label stands beside the number. */
export type SheetTile = { number: number; label?: string | undefined } & ({ address: string } | { reason: string });

export interface SheetOptions {
  signal: AbortSignal;
  /** How long to wait for pictures, in milliseconds: those that have not come by then are not shown. */
  waitMs: number;
}

export interface Sheet {
  jpeg: Uint8Array;
  tiles: readonly TileOutcome[];
}

export interface TileOutcome {
  number: number;
  /** Why it is not shown. */
  reason?: string;
}
