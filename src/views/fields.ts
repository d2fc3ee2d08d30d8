import * as z from 'zod';

/** Views, texts, schemas, columns of SQL and exports, and the board follow from these records, in their order. */
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
  /** The meaning, where the name does not say it: for programs that read the field. */
  means?: string;
}

export const adFields = {
  headline: { is: 'text', standard: 150, column: true, board: 'brief' },
  body: { is: 'text', standard: 2000, column: true, board: 'full' },
  linkDescription: { is: 'text', standard: 300, column: true, board: 'full' },
  offerLink: { is: 'text', column: true },
  startedAt: { is: 'date', brief: true, column: true, board: 'brief' },
  lastSeenAt: { is: 'date', standard: true, column: true, board: 'brief', means: 'when the service last saw it' },
  endDate: { is: 'date', brief: true, column: true, board: 'brief', means: 'when it ended or is to end' },
  duplicates: { is: 'number', brief: true, column: true, board: 'brief', means: 'copies, itself included' },
  audienceReach: {
    is: 'number',
    brief: true,
    column: true,
    board: 'brief',
    say: 'reach',
    means: 'people reached, as the service counts',
  },
  adSpendMin: { is: 'number', brief: true, column: true, board: 'full', means: 'of an estimated range' },
  adSpendMax: { is: 'number', brief: true, column: true, board: 'full', means: 'of an estimated range' },
  revenueMin: { is: 'number', brief: true, column: true, means: 'of an estimated range' },
  revenueMax: { is: 'number', brief: true, column: true, means: 'of an estimated range' },
  ctaType: { is: 'text', brief: 12, column: true, board: 'brief', means: 'the button: SHOP_NOW, LEARN_MORE …' },
  displayFormat: { is: 'text', brief: 12, column: true, board: 'brief', means: 'IMAGE, VIDEO, CAROUSEL …' },
  productTitle: { is: 'text', brief: 16, standard: 60, column: true },
  productPrice: { is: 'number', brief: true, column: true, means: 'in currency' },
  trendPublic: { is: 'number', brief: true, column: true, say: 'trend', means: 'a score of the service' },
  performancePublic: { is: 'number', brief: true, column: true, say: 'performance', means: 'a score of the service' },
  // SQL has tables of its own for these two.
  publisherPlatform: { is: 'words', brief: true, board: 'full', means: 'FACEBOOK, INSTAGRAM …' },
  countries: { is: 'words', brief: true, board: 'brief', means: 'ISO codes' },
  /** An extra key that imported ads have. */
  currency: { is: 'text', brief: 8, board: 'full', means: 'ISO code, for spend, revenue, price' },
  productCreatedAt: { is: 'date', standard: true, means: 'when the product was listed' },
  isStorePlatformBestSeller: { is: 'flag', standard: true },
  sourcePageExternalId: { is: 'id', standard: 40, means: 'the advertiser on the ad platform' },
  appUrl: { is: 'text', standard: 100, means: "in the service's app" },
} as const satisfies Record<string, SentField>;

export const pageFields = {
  pageName: { is: 'text', brief: 20, standard: 100, column: true },
  sourcePageExternalId: { is: 'id', standard: 40, column: true, means: 'its id on the ad platform' },
  pageLikes: { is: 'number', brief: true, column: true },
  pageIgFollowers: { is: 'number', brief: true, column: true, means: 'followers on Instagram' },
  adsAmount: { is: 'number', brief: true, column: true, means: 'ads that the service has' },
  adsTotalDuplicates: { is: 'number', brief: true, column: true, means: 'copies of all its ads' },
  audienceReach: {
    is: 'number',
    brief: true,
    column: true,
    say: 'reach',
    means: 'people reached, as the service counts',
  },
  averageDuplicates: { is: 'number', brief: true, column: true, means: 'copies of an ad' },
  trend: { is: 'number', brief: true, column: true, say: 'trend', means: 'a score of the service' },
  performance: { is: 'number', brief: true, column: true, say: 'performance', means: 'a score of the service' },
  pageCreatedAt: { is: 'date', brief: true, column: true },
  createdAt: { is: 'date', standard: true, column: true, means: 'when the service first saw it' },
  detailsEstimated: { is: 'flag', standard: true, column: true, means: 'whether its numbers are estimates' },
  technologySlugs: { is: 'words', standard: true, column: true, means: 'what the shop is built with' },
  countries: { is: 'words', brief: true, column: true, means: 'ISO codes, of its ads' },
  languages: { is: 'words', brief: true, column: true, means: 'ISO codes, of its ads' },
  appUrl: { is: 'text', standard: 100, means: "in the service's app" },
} as const satisfies Record<string, SentField>;

export type NamesWith<Fields, Property> = {
  [Name in keyof Fields]: Fields[Name] extends Property ? Name : never;
}[keyof Fields];

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

const schemas: Record<SentField['is'], () => z.ZodType> = {
  text: z.string,
  date: z.string,
  number: z.number,
  flag: z.boolean,
  words: () => z.array(z.string()),
  id: z.string,
};

export const buildShape = <Fields extends Record<string, SentField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { is, means, brief, standard }]) => {
      const where = brief ? undefined : standard ? 'not in lists' : 'full only';
      const meaning = [means, where].filter(Boolean).join('; ');
      const schema = schemas[is]().optional();
      return [name, meaning === '' ? schema : schema.describe(meaning)];
    }),
  ) as { -readonly [Name in keyof Fields]: z.ZodOptional<z.ZodType<Shown<Fields[Name]>>> };

/** Data that fits a schema, without the fields that may come besides. */
export type DataOf<Schema extends z.ZodObject> = keyof Schema['shape'] extends never
  ? object
  : z.output<z.ZodObject<Schema['shape']>>;
