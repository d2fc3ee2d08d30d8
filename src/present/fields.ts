/**
 * The fields of ads and pages that the API sends, each once: its type, and where a reader finds it. The views and their
 * texts, the columns of SQL and of exports, and the board follow from these records, in their order.
 */
export interface SentField {
  is: 'text' | 'date' | 'number' | 'flag' | 'words' | 'id';
  /** Lists show the field: `true`, or the most tokens of its text. */
  brief?: number | true;
  /** A single ad or page shows the field, besides the fields of lists: `true`, or the most tokens of its text. */
  standard?: number | true;
  /** A column of the table `ads` or `pages`. */
  column?: true;
  /** Every ad on the board has the field, or only the drawer. */
  board?: 'brief' | 'full';
  /** The word before the number, where the word and the number say everything. */
  say?: string;
}

export const adFields = {
  headline: { is: 'text', standard: 150, column: true, board: 'brief' },
  body: { is: 'text', standard: 2000, column: true, board: 'full' },
  linkDescription: { is: 'text', standard: 300, column: true, board: 'full' },
  offerLink: { is: 'text', column: true },
  startedAt: { is: 'date', brief: true, column: true, board: 'brief' },
  lastSeenAt: { is: 'date', standard: true, column: true, board: 'brief' },
  endDate: { is: 'date', brief: true, column: true, board: 'brief' },
  duplicates: { is: 'number', brief: true, column: true, board: 'brief' },
  audienceReach: { is: 'number', brief: true, column: true, board: 'brief', say: 'reach' },
  adSpendMin: { is: 'number', brief: true, column: true, board: 'full' },
  adSpendMax: { is: 'number', brief: true, column: true, board: 'full' },
  revenueMin: { is: 'number', brief: true, column: true },
  revenueMax: { is: 'number', brief: true, column: true },
  ctaType: { is: 'text', brief: 12, column: true, board: 'brief' },
  displayFormat: { is: 'text', brief: 12, column: true, board: 'brief' },
  productTitle: { is: 'text', brief: 16, standard: 60, column: true },
  productPrice: { is: 'number', brief: true, column: true },
  trendPublic: { is: 'number', brief: true, column: true, say: 'trend' },
  performancePublic: { is: 'number', brief: true, column: true, say: 'performance' },
  // SQL has tables of its own for these two.
  publisherPlatform: { is: 'words', brief: true, board: 'full' },
  countries: { is: 'words', brief: true, board: 'brief' },
  /** An extra key that imported ads have. */
  currency: { is: 'text', brief: 8, board: 'full' },
  productCreatedAt: { is: 'date', standard: true },
  isStorePlatformBestSeller: { is: 'flag', standard: true },
  sourcePageExternalId: { is: 'id', standard: 40 },
  appUrl: { is: 'text', standard: 100 },
} as const satisfies Record<string, SentField>;

export const pageFields = {
  pageName: { is: 'text', brief: 20, standard: 100, column: true },
  sourcePageExternalId: { is: 'id', standard: 40, column: true },
  pageLikes: { is: 'number', brief: true, column: true },
  pageIgFollowers: { is: 'number', brief: true, column: true },
  adsAmount: { is: 'number', brief: true, column: true },
  adsTotalDuplicates: { is: 'number', brief: true, column: true },
  audienceReach: { is: 'number', brief: true, column: true, say: 'reach' },
  averageDuplicates: { is: 'number', brief: true, column: true },
  trend: { is: 'number', brief: true, column: true, say: 'trend' },
  performance: { is: 'number', brief: true, column: true, say: 'performance' },
  pageCreatedAt: { is: 'date', brief: true, column: true },
  createdAt: { is: 'date', standard: true, column: true },
  detailsEstimated: { is: 'flag', standard: true, column: true },
  technologySlugs: { is: 'words', standard: true, column: true },
  countries: { is: 'words', brief: true, column: true },
  languages: { is: 'words', brief: true, column: true },
  appUrl: { is: 'text', standard: 100 },
} as const satisfies Record<string, SentField>;

/** What each field means, for docs alone: only scripts read this, so that no bundle holds it. */
export const adMeanings: Record<keyof typeof adFields, string> = {
  headline: 'as data',
  body: 'as data; shortened in lists',
  linkDescription: 'the line beside the link',
  offerLink: 'the landing page, as the service sent it',
  startedAt: 'when it started',
  lastSeenAt: 'when the service last saw it',
  endDate: 'when it ended or is to end',
  duplicates: 'copies, the ad itself included',
  audienceReach: 'people reached, by the service’s count',
  adSpendMin: 'estimated spend, at least',
  adSpendMax: 'estimated spend, at most',
  revenueMin: 'estimated revenue, at least',
  revenueMax: 'estimated revenue, at most',
  ctaType: 'the button: SHOP_NOW, LEARN_MORE and others',
  displayFormat: 'IMAGE, VIDEO, CAROUSEL and others',
  productTitle: 'the product',
  productPrice: 'its price, in `currency`',
  trendPublic: 'a score of the service',
  performancePublic: 'a score of the service',
  publisherPlatform: 'where it is shown: FACEBOOK, INSTAGRAM and others',
  countries: 'ISO codes of countries in which it is shown',
  currency: 'ISO code, for spend, revenue and price',
  productCreatedAt: 'when the product was listed',
  isStorePlatformBestSeller: 'whether the shop calls it a best seller',
  sourcePageExternalId: 'the advertiser’s id on the ad platform',
  appUrl: 'its address in the service’s app',
};

/** As `adMeanings`. */
export const pageMeanings: Record<keyof typeof pageFields, string> = {
  pageName: 'as data',
  sourcePageExternalId: 'its id on the ad platform',
  pageLikes: 'likes',
  pageIgFollowers: 'followers on Instagram',
  adsAmount: 'ads that the service holds',
  adsTotalDuplicates: 'copies of all its ads',
  audienceReach: 'people reached, by the service’s count',
  averageDuplicates: 'copies of an ad on average',
  trend: 'a score of the service',
  performance: 'a score of the service',
  pageCreatedAt: 'when the page was made',
  createdAt: 'when the service first saw it',
  detailsEstimated: 'whether the service estimated the numbers',
  technologySlugs: 'what the shop is built with',
  countries: 'ISO codes of countries of its ads',
  languages: 'ISO codes of languages of its ads',
  appUrl: 'its address in the service’s app',
};

/** The names of the fields that have a property, such as `column`. */
export type NamesWith<Fields, Property> = {
  [Name in keyof Fields]: Fields[Name] extends Property ? Name : never;
}[keyof Fields];

/** What a view holds of a field. */
export type Shown<Field> = Field extends { is: 'number' }
  ? number
  : Field extends { is: 'flag' }
    ? boolean
    : Field extends { is: 'words' }
      ? string[]
      : string;

/** The fields that have a property, each left out where it is missing. */
export type ShownWith<Fields, Property> = {
  -readonly [Name in NamesWith<Fields, Property>]?: Shown<Fields[Name]>;
};
