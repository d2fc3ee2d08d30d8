import * as z from 'zod';
import type { CardView } from './cards.ts';
import type { Kept } from './copy-fields.ts';
import type { MediaLink } from './media-links.ts';
import type { Run } from './running.ts';

/**
 * The schema of an ad that clients see. More would cost every conversation tokens, and clients would reject a paid
 * answer as soon as the service changed the type of a field.
 */
export const AdView = z.looseObject({ id: z.string() });

/** The maximum tokens of a text, or the type of a field. Views show the fields in this order. */
export const BRIEF_FACTS = {
  displayFormat: 12,
  ctaType: 12,
  publisherPlatform: 'words',
  countries: 'words',
  startedAt: 20,
  endDate: 20,
  duplicates: 'number',
  audienceReach: 'number',
  adSpendMin: 'number',
  adSpendMax: 'number',
  revenueMin: 'number',
  revenueMax: 'number',
  trendPublic: 'number',
  performancePublic: 'number',
  productTitle: 16,
  productPrice: 'number',
  /** An extra key that imported ads have. */
  currency: 8,
} as const;

export const STANDARD_COPY = { headline: 150, body: 2000, linkDescription: 300 } as const;
export const STANDARD_FACTS = {
  ...BRIEF_FACTS,
  lastSeenAt: 20,
  productTitle: 60,
  productCreatedAt: 20,
  isStorePlatformBestSeller: 'flag',
  sourcePageExternalId: 40,
  appUrl: 100,
} as const;

/** API fields keep their names and values, with texts shortened; the other fields are derived. */
export type AdView = Kept<typeof STANDARD_COPY & typeof STANDARD_FACTS> & {
  id: string;
  pageName?: string;
  pageId?: string;
  adsAmount?: number;
  /** Copy of the first card, if headline or body is missing or an unfilled template. */
  firstCard?: string;
  /** The same for bodies that are the same, if this one is cut. */
  bodyHash?: number;
  cardViews?: CardView[];
  moreCards?: number;
  /** The pictures, videos and cards, as far as `displayFormat` does not name them. */
  creative?: string;
  /** Media that do not belong to a card. */
  mediaLinks?: MediaLink[];
  /** Pictures and videos whose addresses did not fit. */
  moreMedia?: number;
  landingDomain?: string;
  landingUrl?: string;
  displayUrl?: string;
  /** The day of `lastSeenAt`, in brief views: the time is not worth ten tokens for each ad. */
  lastSeen?: string;
  /** Names of the fields that only `full` shows. */
  onlyInFull?: string[];
} & Run;
