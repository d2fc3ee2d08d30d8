import type { adFields, ShownWith } from '../views/fields.ts';

/*
 * The data that the server and the view of the board exchange. The view runs in a browser, so this file imports only
 * types.
 */

/** The key in the `_meta` of a result under which the board finds its data. */
export const boardKey = 'ad-library/board';

/**
 * The facts with which the board filters, sorts and draws an ad. Fields of the API keep their names. Fields without a
 * value are left out.
 */
export type BriefAd = ShownWith<typeof adFields, { board: 'brief' }> & {
  id: string;
  pageName?: string;
  /** The first line of the ad text. */
  firstLine?: string;
  daysRunning?: number;
  /** Absent if it is unknown whether the ad runs. */
  active?: boolean;
  /** A description of the pictures, videos and cards, such as `15 s` or `5 cards`. */
  creative?: string;
  labels?: { label: string; value?: string }[];
  /** True if the last check of a watch listed the ad, and the check before did not. */
  isNew?: boolean;
  /** The id of the earliest ad of the same page with nearly the same text; absent if this ad is the earliest. */
  variant?: string;
  /** The title of the first card. A `FullAd` has all cards. */
  cards?: BoardCard[];
  /** The host and path of the landing page. */
  landing?: string;
};

/** An ad with everything that the drawer and the comparison show. */
export type FullAd = BriefAd &
  ShownWith<typeof adFields, { board: 'full' }> & {
    /** The URL of the landing page, if it is an https URL. */
    landingUrl?: string;
    /** The changes between versions of the ad, the newest first. */
    changes: BoardChange[];
  };

/** A field that differs between two successive versions of an ad. */
export interface BoardChange {
  /** When the newer version was first read, in ISO text. */
  at: string;
  field: string;
  from?: string;
  to?: string;
}

/** A card of a carousel ad. */
export interface BoardCard {
  title?: string;
  body?: string;
}

/** The result of `board_ads`. */
export interface BoardAds<Ad extends BriefAd = BriefAd> {
  /** The time of the call, in ISO text. */
  asOf: string;
  /** When the ads were read from the service, in ISO text. The earliest time, if they differ. Absent without ads. */
  readAt?: string;
  /** The tools that the view may call and that this server offers. */
  offeredTools: string[];
  ads: Ad[];
  /** Ids of ads that did not fit into this result. The view requests them with `ids`. */
  left: string[];
  /** Ids of ads that the server does not store. */
  missingIds: string[];
  gathering?: BoardGathering;
}

/** The gathering that the board shows. */
export interface BoardGathering {
  id: string;
  found: number | null;
  read: number;
  complete: boolean;
  gatheredAt: string;
  /** Sentences about conclusions that the ads do not support. */
  notes: string[];
}

/** The result of `board_pictures`. */
export interface BoardPictures {
  pictures: BoardPicture[];
  /** Ids of pictures that did not fit into this result. */
  left: string[];
}

/** A picture as a data URL, or the reason why there is none. */
export interface BoardPicture {
  /** The id as requested: the id of an ad, optionally followed by `#` and the number of a card. */
  id: string;
  src?: string;
  reason?: string;
  /** True if another request for the picture may succeed. */
  isLate?: true;
}

/**
 * The data for the board in the result of a tool that shows the board. Some clients pass this data to their model, so it
 * holds only ids and numbers, and no texts of ads.
 */
export interface BoardContext {
  tool?: string;
  ids?: string[];
  gathering?: string;
  /** True if the items are pages, which the board does not show. */
  isPages?: boolean;
  cursor?: string | null;
  /** The price of the next page, if known. `atLeast` is 0 if the page is cached now. */
  nextCredits?: PriceBounds;
  estimate?: BoardEstimate;
  totalHits?: number;
  /** The collections to which ads can be added. */
  collections?: { id: string; name?: string; ads?: number }[];
  added?: boolean;
  receipt?: { charged: number | null; remaining: number | null };
  isDemo?: boolean;
}

/** The price of reading all ads, in the result of a call that only estimates. */
export interface BoardEstimate {
  /** The number of matching ads; null if the service does not tell it. */
  ads: number | null;
  /** The number of ads that have already been read. */
  read?: number;
  /** The number of pages that have not been read. */
  pages: number | null;
  /** The price in credits; null if it is known only in bounds, or not at all. */
  credits: number | null;
  /** The bounds of the price, if earlier charges tell them. */
  atLeast?: number;
  atMost?: number;
}

/** The bounds of a price in credits. If both are equal, the price is known exactly. */
export interface PriceBounds {
  atLeast: number;
  atMost: number;
}
