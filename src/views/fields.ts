import * as z from 'zod';

/**
 * Describes a field that the service sends. Views, texts, schemas, columns of SQL and exports, and the board follow
 * from these descriptions, in their order.
 */
export interface SentField {
  type: 'text' | 'date' | 'number' | 'flag' | 'words' | 'id';
  /** Set if lists show the field: `true`, or the most tokens of its text. */
  brief?: number | true;
  /**
   * Set if a single ad or page shows the field in addition to the fields of lists: `true`, or the most tokens of its
   * text.
   */
  standard?: number | true;
  /** Set if the field is a column of the table `ads` or `pages`. */
  column?: true;
  /** Set if the board shows the field: `brief` on every ad, `full` only in the details of an ad. */
  board?: 'brief' | 'full';
  /** The word before a number, if the word and the number are enough for a reader, such as `reach`. */
  phrase?: string;
  /** The meaning of the field for programs, if the name does not say it. */
  meaning?: string;
}

/** The fields of an ad. */
export const adFields = {
  headline: { type: 'text', standard: 150, column: true, board: 'brief' },
  body: { type: 'text', standard: 2000, column: true, board: 'full' },
  linkDescription: { type: 'text', standard: 300, column: true, board: 'full' },
  offerLink: { type: 'text', column: true },
  startedAt: { type: 'date', brief: true, column: true, board: 'brief' },
  lastSeenAt: { type: 'date', standard: true, column: true, board: 'brief', meaning: 'when the service last saw it' },
  endDate: { type: 'date', brief: true, column: true, board: 'brief', meaning: 'when it ended or is to end' },
  duplicates: { type: 'number', brief: true, column: true, board: 'brief', meaning: 'copies, itself included' },
  audienceReach: {
    type: 'number',
    brief: true,
    column: true,
    board: 'brief',
    phrase: 'reach',
    meaning: 'people reached, as the service counts',
  },
  adSpendMin: { type: 'number', brief: true, column: true, board: 'full', meaning: 'of an estimated range' },
  adSpendMax: { type: 'number', brief: true, column: true, board: 'full', meaning: 'of an estimated range' },
  revenueMin: { type: 'number', brief: true, column: true, meaning: 'of an estimated range' },
  revenueMax: { type: 'number', brief: true, column: true, meaning: 'of an estimated range' },
  ctaType: { type: 'text', brief: 12, column: true, board: 'brief', meaning: 'the button: SHOP_NOW, LEARN_MORE …' },
  displayFormat: { type: 'text', brief: 12, column: true, board: 'brief', meaning: 'IMAGE, VIDEO, CAROUSEL …' },
  productTitle: { type: 'text', brief: 16, standard: 60, column: true },
  productPrice: { type: 'number', brief: true, column: true, meaning: 'in currency' },
  trendPublic: { type: 'number', brief: true, column: true, phrase: 'trend', meaning: 'a score of the service' },
  performancePublic: {
    type: 'number',
    brief: true,
    column: true,
    phrase: 'performance',
    meaning: 'a score of the service',
  },
  // SQL has separate tables for the next two fields.
  publisherPlatform: { type: 'words', brief: true, board: 'full', meaning: 'FACEBOOK, INSTAGRAM …' },
  countries: { type: 'words', brief: true, board: 'brief', meaning: 'ISO codes' },
  /** Only imported ads have this field. */
  currency: { type: 'text', brief: 8, board: 'full', meaning: 'ISO code, for spend, revenue, price' },
  productCreatedAt: { type: 'date', standard: true, meaning: 'when the product was listed' },
  isStorePlatformBestSeller: { type: 'flag', standard: true },
  sourcePageExternalId: { type: 'id', standard: 40, meaning: 'the advertiser on the ad platform' },
  appUrl: { type: 'text', standard: 100, meaning: "in the service's app" },
} as const satisfies Record<string, SentField>;

/** The fields of an advertiser page. */
export const pageFields = {
  pageName: { type: 'text', brief: 20, standard: 100, column: true },
  sourcePageExternalId: { type: 'id', standard: 40, column: true, meaning: 'its id on the ad platform' },
  pageLikes: { type: 'number', brief: true, column: true },
  pageIgFollowers: { type: 'number', brief: true, column: true, meaning: 'followers on Instagram' },
  adsAmount: { type: 'number', brief: true, column: true, meaning: 'ads that the service has' },
  adsTotalDuplicates: { type: 'number', brief: true, column: true, meaning: 'copies of all its ads' },
  audienceReach: {
    type: 'number',
    brief: true,
    column: true,
    phrase: 'reach',
    meaning: 'people reached, as the service counts',
  },
  averageDuplicates: { type: 'number', brief: true, column: true, meaning: 'copies of an ad' },
  trend: { type: 'number', brief: true, column: true, phrase: 'trend', meaning: 'a score of the service' },
  performance: { type: 'number', brief: true, column: true, phrase: 'performance', meaning: 'a score of the service' },
  pageCreatedAt: { type: 'date', brief: true, column: true },
  createdAt: { type: 'date', standard: true, column: true, meaning: 'when the service first saw it' },
  detailsEstimated: { type: 'flag', standard: true, column: true, meaning: 'whether its numbers are estimates' },
  technologySlugs: { type: 'words', standard: true, column: true, meaning: 'what the shop is built with' },
  countries: { type: 'words', brief: true, column: true, meaning: 'ISO codes, of its ads' },
  languages: { type: 'words', brief: true, column: true, meaning: 'ISO codes, of its ads' },
  appUrl: { type: 'text', standard: 100, meaning: "in the service's app" },
} as const satisfies Record<string, SentField>;

/** The names of the fields that have a property. */
export type NamesWith<Fields, Property> = {
  [Name in keyof Fields]: Fields[Name] extends Property ? Name : never;
}[keyof Fields];

/** The type of a field in views. */
export type Shown<Field> = Field extends { type: 'number' }
  ? number
  : Field extends { type: 'flag' }
    ? boolean
    : Field extends { type: 'words' }
      ? string[]
      : string;

/** An object with the fields that have a property. Missing fields are left out. */
export type ShownWith<Fields, Property> = {
  -readonly [Name in NamesWith<Fields, Property>]?: Shown<Fields[Name]>;
};

/** The schema of each type of field. */
const schemaBuilders: Record<SentField['type'], () => z.ZodType> = {
  text: z.string,
  date: z.string,
  number: z.number,
  flag: z.boolean,
  words: () => z.array(z.string()),
  id: z.string,
};

/** Builds the Zod shape of fields. All fields are optional. */
export const buildShape = <Fields extends Record<string, SentField>>(fields: Fields) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { type, meaning, brief, standard }]) => {
      const scope = brief ? undefined : standard ? 'not in lists' : 'full only';
      const description = [meaning, scope].filter(Boolean).join('; ');
      const schema = schemaBuilders[type]().optional();
      return [name, description === '' ? schema : schema.describe(description)];
    }),
  ) as { -readonly [Name in keyof Fields]: z.ZodOptional<z.ZodType<Shown<Fields[Name]>>> };

/** The data that a schema describes, without the further fields that a loose object may have. */
export type DataOf<Schema extends z.ZodObject> = keyof Schema['shape'] extends never
  ? object
  : z.output<z.ZodObject<Schema['shape']>>;
