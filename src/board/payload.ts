import type { adFields, FieldValues } from '../views/fields.ts';

/*
 * The data that the server and the view of the board exchange. The view runs in a browser, so this file imports only
 * types.
 */

/**
 * The key of the board's data in the `_meta` field of a tool result. The host passes `_meta` to the ad board, which it
 * shows next to the result.
 */
export const boardKey = 'ad-library/board';

/**
 * The fields of an ad that the board needs to show, filter and sort ad cards. Fields of the API keep their names, and
 * fields without a value are left out.
 */
export type BriefAd = FieldValues<typeof adFields, { board: 'brief' }> & {
  id: string;
  pageName?: string;
  /** First line of the ad text. */
  firstLine?: string;
  daysRunning?: number;
  /** True if the ad is running, false if it has ended, absent if unknown. */
  active?: boolean;
  /** The number or the length of the media, e.g. `5 cards` or `15 s`. */
  creative?: string;
  labels?: { label: string; value?: string }[];
  /** True if the ad is new since the previous check of a watch. */
  isNew?: boolean;
  /**
   * Id of the variant to which the ad belongs. A variant is a group of ads of one page with nearly the same text, and
   * its id is the id of its earliest ad. The earliest ad itself has no `variant`.
   */
  variant?: string;
  /** Contains only the title of the first carousel card. In a `FullAd`, it contains all cards. */
  cards?: BoardCard[];
  /** Host and path of the landing page, e.g. `shop.example/shoes`. */
  landing?: string;
};

/** An ad with all fields that the board shows, e.g. in the details of an ad or in a comparison. */
export type FullAd = BriefAd &
  FieldValues<typeof adFields, { board: 'full' }> & {
    /** URL of the landing page. Absent unless it uses https. */
    landingUrl?: string;
    /** Changes between versions of the ad, the newest first. */
    changes: BoardChange[];
  };

/** A change of an ad: the values of a field before and after the change. */
export interface BoardChange {
  /** Time at which the newer version was first read, in ISO format. */
  at: string;
  field: string;
  from?: string;
  to?: string;
}

/** One card of a carousel ad (an ad with several pictures and texts). */
export interface BoardCard {
  title?: string;
  body?: string;
}

/** The result of the tool `board_ads`, which returns ads to the ad board. */
export interface BoardAds<Ad extends BriefAd = BriefAd> {
  /** Time of the tool call, in ISO format. */
  asOf: string;
  /**
   * Time at which the service returned the ads, in ISO format. If the ads were read at different times, this is the
   * earliest time. Absent if there are no ads.
   */
  readAt?: string;
  /** The tools that the board may call. The operator of the server can turn tools off. */
  offeredTools: string[];
  ads: Ad[];
  /** Ids of ads that did not fit into this result. The board requests them with the argument `ids`. */
  left: string[];
  /** Ids of requested ads that the server does not store, e.g. because it removed them to save memory. */
  missingIds: string[];
  gathering?: BoardGathering;
}

/** The gathering (stored result of the tool `gather_ads`) whose ads the board shows. */
export interface BoardGathering {
  id: string;
  found: number | null;
  read: number;
  complete: boolean;
  gatheredAt: string;
  /** Notes on missing data, e.g. that some of the matching ads were not read. */
  notes: string[];
}

/** The result of the tool `board_pictures`, which returns pictures of ads to the ad board. */
export interface BoardPictures {
  pictures: BoardPicture[];
  /** Ids of pictures that did not fit into this result. The board requests them again. */
  left: string[];
}

/** A picture as a data URL, or the reason why there is no picture. */
export interface BoardPicture {
  /** The id from the request: an ad id, optionally followed by `#` and a card number. */
  id: string;
  src?: string;
  reason?: string;
  /** True if the picture was not ready in time, so that another request may succeed. */
  isLate?: true;
}

/**
 * The board's data in the result of a tool for models, e.g. `search_ads`. Some clients pass this data to their model,
 * so it contains only ids and numbers and no ad texts.
 */
export interface BoardContext {
  tool?: string;
  ids?: string[];
  gathering?: string;
  /** True if the listed items are advertiser pages, which the board cannot show. */
  isPages?: boolean;
  cursor?: string | null;
  /** Price of the next page, if known. `atLeast` is 0 as long as the page is in the cache. */
  nextCredits?: PriceBounds;
  estimate?: BoardEstimate;
  totalHits?: number;
  /** Collections to which the user can add ads. */
  collections?: { id: string; name?: string; ads?: number }[];
  added?: boolean;
  receipt?: { charged: number | null; remaining: number | null };
  isDemo?: boolean;
}

/** The cost of reading all matching ads. Present only if the result of the tool contains an estimate. */
export interface BoardEstimate {
  /** Number of matching ads. null if the service does not state it. */
  ads: number | null;
  /** Number of matching ads that were already read. */
  read?: number;
  /** Number of result pages that were not read yet. */
  pages: number | null;
  /** Price in credits. null if the price is unknown or only `atLeast` and `atMost` are known. */
  credits: number | null;
  /** Bounds of the price. Absent if the server has no earlier charges to derive them from. */
  atLeast?: number;
  atMost?: number;
}

/** The lowest and the highest possible price in credits, e.g. `{ atLeast: 3, atMost: 146 }`. */
export interface PriceBounds {
  atLeast: number;
  atMost: number;
}
