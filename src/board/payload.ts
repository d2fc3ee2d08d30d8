import type { adFields, ShownWith } from '../views/fields.ts';

/** What the server and the view of the board agree on. The view runs in a browser, so this file imports types alone. */

/** Where a result holds what the board reads: in its `_meta`, under this key. */
export const boardKey = 'ad-library/board';

/**
 * The facts by which the board filters, sorts and draws an ad. Fields of the API have its names; a missing field is left
 * out.
 */
export type BriefAd = ShownWith<typeof adFields, { board: 'brief' }> & {
  id: string;
  pageName?: string;
  /** The line of the ad text that a reader sees first. */
  firstLine?: string;
  daysRunning?: number;
  /** Absent if it is unknown whether the ad runs. */
  active?: boolean;
  /** Pictures, videos and cards in words, such as `15 s` or `5 cards`. */
  creative?: string;
  labels?: { label: string; value?: string }[];
  /** The last check of a watch saw it, and the one before did not. */
  isNew?: boolean;
  /** The earliest ad of the same page whose copy is nearly the same; absent if this ad is the earliest. */
  variant?: string;
  /** At most one, for its title; all in full. */
  cards?: BoardCard[];
  /** The landing page of the ad, as host and path. */
  landing?: string;
};

/** An ad with everything that the drawer shows. */
export type FullAd = BriefAd &
  ShownWith<typeof adFields, { board: 'full' }> & {
    /** Only an https address. */
    landingUrl?: string;
    /** The differences between versions of the ad, the newest first. */
    changes: BoardChange[];
  };

/** A field of an ad that has one value in one version, and another in the next. */
export interface BoardChange {
  /** When the newer version first came, in ISO text. */
  at: string;
  field: string;
  from?: string;
  to?: string;
}

export interface BoardCard {
  title?: string;
  body?: string;
}

export interface BoardAds<Ad extends BriefAd = BriefAd> {
  /** The time of the call, in ISO text. */
  asOf: string;
  /** When the ads were read from the service, in ISO text: the earliest of several times. Absent without ads. */
  readAt?: string;
  /** The tools that the view may call and that this server offers. */
  offered: string[];
  ads: Ad[];
  /** Ids that did not fit into this call, to be asked for by `ids`. */
  left: string[];
  missing: string[];
  gathering?: BoardGathering;
}

export interface BoardGathering {
  id: string;
  found: number | null;
  read: number;
  complete: boolean;
  gatheredAt: string;
}

/** What `board_pictures` gives: a `data:` address, or why there is no picture. */
export interface BoardPictures {
  pictures: BoardPicture[];
  left: string[];
}

export interface BoardPicture {
  /** As asked for: the id of an ad, and after `#` the number of a card. */
  id: string;
  src?: string;
  reason?: string;
  /** The picture may come if it is asked for again. */
  isLate?: true;
}

/** What a tool that shows the board says to it: ids and numbers, since some clients hand it to their model. */
export interface BoardContext {
  tool?: string;
  ids?: string[];
  gathering?: string;
  /** The items are pages, which the board does not show. */
  isPages?: boolean;
  cursor?: string | null;
  /** What the next page costs, where that is known: at least nothing, if it is cached now. */
  nextCredits?: PriceBounds;
  estimate?: BoardEstimate;
  totalHits?: number;
  /** Collections that take ads. */
  collections?: { id: string; name?: string; ads?: number }[];
  added?: boolean;
  receipt?: { charged: number | null; remaining: number | null };
  isDemo?: boolean;
}

/** What reading all ads would cost, for a call that only estimates. */
export interface BoardEstimate {
  ads: number | null;
  /** The number of `ads` that are read already. */
  read?: number;
  /** Pages of the ads that are not read. */
  pages: number | null;
  credits: number | null;
  /** The bounds of the price, where the charges seen tell them. */
  atLeast?: number;
  atMost?: number;
}

/** Credits. The price is known where both are equal. */
export interface PriceBounds {
  atLeast: number;
  atMost: number;
}
