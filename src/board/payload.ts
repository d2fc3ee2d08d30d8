import type { adFields, FieldValues } from '../views/fields.ts';
import type { BoardCheck } from '../watches/board-data.ts';

/*
 * The data that the server and the view of the board exchange. The view runs in a browser, so this file imports only
 * types.
 */

/**
 * The key of the board's data in the `_meta` field of a tool result. The host passes `_meta` to the ad board, which it
 * shows next to the result.
 */
export const boardMetaKey = 'ad-library/board';

/**
 * The fields of an ad that the ad board needs to show, filter and sort ad cards. They have the same names as in the
 * API. Fields without a value are omitted.
 */
export type BriefAd = FieldValues<typeof adFields, { board: 'brief' }> & {
  id: string;
  /** The id of the advertiser page. Different pages can have the same name. */
  pageId?: string;
  pageName?: string;
  /** The first line of the ad text. */
  firstLine?: string;
  daysRunning?: number;
  /** True if the ad is running, false if it has ended, absent if unknown. */
  active?: boolean;
  /** A description of the ad's media, e.g. `5 cards` for a carousel or `15 s` for a video. */
  creative?: string;
  labels?: { label: string; value?: string }[];
  /** True if the ad was new in the last check of a watch, i.e. of a search that is repeated to find new ads. */
  isNew?: boolean;
  /**
   * The id of the variant (a group of ads of one advertiser with nearly the same text) to which the ad belongs. It is the
   * id of the earliest ad in the variant. For the earliest ad, `variant` is undefined.
   */
  variant?: string;
  /**
   * The cards of a carousel ad. A `BriefAd` contains only the title of the first card, and a `FullAd` contains all
   * cards.
   */
  cards?: CarouselCard[];
  /** The host and path of the landing page, e.g. `shop.example/shoes`. */
  landing?: string;
};

/** An ad with all fields that the ad board can show, e.g. in the details of an ad or in a comparison of ads. */
export type FullAd = BriefAd &
  FieldValues<typeof adFields, { board: 'full' }> & {
    /** The URL of the landing page. Absent if the URL is not safe to open, e.g. because it does not use https. */
    landingUrl?: string;
    /** The changes between the stored versions of the ad, with the newest change first. */
    changes: BoardChange[];
  };

/** A change of an ad: the values of a field before and after the change. */
export interface BoardChange {
  /** The time at which the server first received the newer version of the ad, in ISO format. */
  at: string;
  field: string;
  from?: string;
  to?: string;
}

/** One card of a carousel ad (an ad with several pictures and texts). */
export interface CarouselCard {
  title?: string;
  body?: string;
}

/** The result of the `board_ads` tool, from which the ad board gets its ads. */
export interface BoardAdsResult<Ad extends BriefAd = BriefAd> {
  /** The time of the tool call, in ISO format. */
  asOf: string;
  /**
   * The time at which the service returned the ads, in ISO format. If the ads were read at different times, this is the
   * earliest time. Absent if there are no ads.
   */
  readAt?: string;
  /** The names of the tools that the board may call. The operator of the server can turn tools off. */
  offeredTools: string[];
  ads: Ad[];
  /**
   * The ids of ads that did not fit into this result. The board requests these ads in another call, with the `ids`
   * argument.
   */
  left: string[];
  /** The ids of requested ads that the server does not store, e.g. because it removed them to save memory. */
  missingIds: string[];
  gathering?: BoardGathering;
}

/**
 * The gathering whose ads the board shows. A gathering is the stored result of the `gather_ads` tool: all ads that
 * match a search. `found` is the number of matching ads, or null if it is unknown. `read` is the number of ads that the
 * server has read.
 */
export interface BoardGathering {
  id: string;
  found: number | null;
  read: number;
  complete: boolean;
  gatheredAt: string;
  /** Notes on missing data, e.g. that the server has not read some of the matching ads. */
  notes: string[];
}

/** The result of the `board_pictures` tool, from which the ad board gets the pictures of ads. */
export interface BoardPicturesResult {
  pictures: BoardPicture[];
  /** The ids of pictures that did not fit into this result. The board requests these pictures again. */
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
 * so it contains only ids, numbers and names that the user has chosen, and no ad texts.
 */
export interface BoardData {
  tool?: string;
  ids?: string[];
  gathering?: string;
  /** True if the listed items are advertiser pages, which the board cannot show. */
  isPages?: boolean;
  cursor?: string | null;
  /**
   * The price of the next page of results, if known. While the cache contains the page, `atLeast` is 0, because a
   * cached page costs nothing.
   */
  nextCredits?: PriceBounds;
  estimate?: BoardEstimate;
  /** The outcome of each checked watch. Set if the result is from `check_watches`. */
  checks?: readonly BoardCheck[];
  totalHits?: number;
  /** The collections to which the user can add ads. */
  collections?: { id: string; name?: string; ads?: number }[];
  added?: boolean;
  receipt?: { charged: number | null; remaining: number | null };
  isDemo?: boolean;
}

/** The estimated cost of reading ads, as returned by the tools `gather_ads` and `check_watches`. */
export interface BoardEstimate {
  /**
   * The number of matching ads, or null if the service does not report this number. Absent in an estimate of
   * `check_watches`.
   */
  ads?: number | null;
  /** The number of matching ads that the server has already read. */
  read?: number;
  /** The number of result pages that the server has not read yet, or null if this number is unknown. */
  pages: number | null;
  /** The exact price in credits, or null if it is unknown or only its bounds `atLeast` and `atMost` are known. */
  credits: number | null;
  /**
   * Bounds of the price in credits. Absent if the server knows no earlier charges from which it could derive bounds.
   */
  atLeast?: number;
  atMost?: number;
}

/** The lowest and the highest possible price in credits, e.g. `{ atLeast: 3, atMost: 146 }`. */
export interface PriceBounds {
  atLeast: number;
  atMost: number;
}
