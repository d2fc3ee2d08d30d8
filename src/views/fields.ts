import * as z from 'zod';

/**
 * The description of a field that the service sends. Results, schemas, SQL columns, exports and the board (our view in
 * MCP hosts) are generated from these descriptions and contain the fields in this order.
 */
export interface ApiField {
  type: 'text' | 'date' | 'number' | 'boolean' | 'textList' | 'id';
  /** Set if lists of ads or pages contain the field. A number is the maximum length of a text in tokens. */
  brief?: number | true;
  /**
   * Set if a result with a single ad or page contains the field. A number is the maximum length of a text in tokens. If
   * only `brief` is set, it applies to such results too.
   */
  standard?: number | true;
  /** Set if the SQL table `ads` or `pages` has a column with this field. */
  hasColumn?: true;
  /**
   * Where the board, our view in MCP hosts, shows the field: on every ad card (`brief`), or only in the details of an
   * ad (`full`).
   */
  board?: 'brief' | 'full';
  /** Set if the field is an amount of money. The `currency` field names its currency. */
  isAmount?: true;
  /**
   * The phrase that precedes the value of the field in a text, e.g. `reach` in `reach 800000`. Set only if the phrase
   * needs no explanation.
   */
  phrase?: string;
  /**
   * The description of the field in result schemas. It must be a noun phrase that ends with a period, e.g. `Headline of
   * the ad.`
   */
  description: string;
}

/** The descriptions of all fields of an ad that results, SQL tables and exports can contain. */
export const adFields = {
  headline: { type: 'text', standard: 150, hasColumn: true, board: 'brief', description: 'Headline of the ad.' },
  body: { type: 'text', standard: 2000, hasColumn: true, board: 'full', description: 'Text of the ad.' },
  linkDescription: {
    type: 'text',
    standard: 300,
    hasColumn: true,
    board: 'full',
    description: 'Description below the headline.',
  },
  offerLink: { type: 'text', hasColumn: true, description: 'URL that the ad opens.' },
  startedAt: { type: 'date', brief: true, hasColumn: true, board: 'brief', description: 'Time when the ad started.' },
  lastSeenAt: {
    type: 'date',
    standard: true,
    hasColumn: true,
    board: 'brief',
    description: 'Time when the service last saw the ad.',
  },
  endDate: {
    type: 'date',
    brief: true,
    hasColumn: true,
    board: 'brief',
    description: 'Time when the ad ended or will end.',
  },
  duplicates: {
    type: 'number',
    brief: true,
    hasColumn: true,
    board: 'brief',
    description: 'Number of copies of the ad, including the ad itself.',
  },
  audienceReach: {
    type: 'number',
    brief: true,
    hasColumn: true,
    board: 'brief',
    phrase: 'reach',
    description: 'Number of people reached, as the service counts them.',
  },
  adSpendMin: {
    type: 'number',
    brief: true,
    hasColumn: true,
    board: 'full',
    isAmount: true,
    description: 'Least estimated spend, in currency.',
  },
  adSpendMax: {
    type: 'number',
    brief: true,
    hasColumn: true,
    board: 'full',
    isAmount: true,
    description: 'Most estimated spend, in currency.',
  },
  revenueMin: {
    type: 'number',
    brief: true,
    hasColumn: true,
    isAmount: true,
    description: 'Least estimated revenue, in currency.',
  },
  revenueMax: {
    type: 'number',
    brief: true,
    hasColumn: true,
    isAmount: true,
    description: 'Most estimated revenue, in currency.',
  },
  ctaType: {
    type: 'text',
    brief: 12,
    hasColumn: true,
    board: 'brief',
    description: 'Button of the ad, such as SHOP_NOW.',
  },
  displayFormat: {
    type: 'text',
    brief: 12,
    hasColumn: true,
    board: 'brief',
    description: 'Format, such as IMAGE, VIDEO or CAROUSEL.',
  },
  /** Only imported ads have this field. The API does not return it. */
  adLibrary: {
    type: 'text',
    brief: 8,
    hasColumn: true,
    board: 'brief',
    description: 'Library of an imported ad: meta, google, tiktok, linkedin or own.',
  },
  productTitle: {
    type: 'text',
    brief: 16,
    standard: 60,
    hasColumn: true,
    description: 'Name of the advertised product.',
  },
  productPrice: {
    type: 'number',
    brief: true,
    hasColumn: true,
    isAmount: true,
    description: 'Price of the product, in currency.',
  },
  trendPublic: {
    type: 'number',
    brief: true,
    hasColumn: true,
    phrase: 'trend',
    description: 'Trend score, computed by the service.',
  },
  performancePublic: {
    type: 'number',
    brief: true,
    hasColumn: true,
    phrase: 'performance',
    description: 'Performance score, computed by the service.',
  },
  // The next two fields are not SQL columns, because they can have several values. SQL has separate tables for them.
  publisherPlatform: { type: 'textList', brief: true, board: 'full', description: 'Platforms, such as FACEBOOK.' },
  countries: {
    type: 'textList',
    brief: true,
    board: 'brief',
    description: 'ISO codes of the countries where the ad runs.',
  },
  /** Only imported ads have this field. The API document does not define it. */
  currency: {
    type: 'text',
    brief: 8,
    hasColumn: true,
    board: 'full',
    description: 'ISO code of the currency of spend, revenue and price.',
  },
  productCreatedAt: { type: 'date', standard: true, description: 'Time when the product was listed.' },
  isStorePlatformBestSeller: {
    type: 'boolean',
    standard: true,
    description: 'true for a best seller of its shop platform.',
  },
  sourcePageExternalId: { type: 'id', standard: 40, description: 'Id of the advertiser on the ad platform.' },
  appUrl: { type: 'text', standard: 100, description: 'URL in the app of the service.' },
} as const satisfies Record<string, ApiField>;

/** The descriptions of all fields of an advertiser page that results, SQL tables and exports can contain. */
export const pageFields = {
  pageName: { type: 'text', brief: 20, standard: 100, hasColumn: true, description: 'Name of the advertiser.' },
  sourcePageExternalId: {
    type: 'id',
    standard: 40,
    hasColumn: true,
    description: 'Id of the page on the ad platform.',
  },
  pageLikes: { type: 'number', brief: true, hasColumn: true, description: 'Number of likes of the page.' },
  pageIgFollowers: { type: 'number', brief: true, hasColumn: true, description: 'Number of followers on Instagram.' },
  adsAmount: {
    type: 'number',
    brief: true,
    hasColumn: true,
    description: 'Number of ads that the service has of the page.',
  },
  adsTotalDuplicates: {
    type: 'number',
    brief: true,
    hasColumn: true,
    description: 'Number of copies of all ads of the page.',
  },
  audienceReach: {
    type: 'number',
    brief: true,
    hasColumn: true,
    phrase: 'reach',
    description: 'Number of people reached, as the service counts them.',
  },
  adSpendMin: {
    type: 'number',
    brief: true,
    hasColumn: true,
    description: 'Least spend for political ads of an imported page.',
  },
  adSpendMax: {
    type: 'number',
    brief: true,
    hasColumn: true,
    description: 'Most spend for political ads of an imported page.',
  },
  averageDuplicates: {
    type: 'number',
    brief: true,
    hasColumn: true,
    description: 'Average number of copies of an ad.',
  },
  trend: {
    type: 'number',
    brief: true,
    hasColumn: true,
    phrase: 'trend',
    description: 'Trend score, computed by the service.',
  },
  performance: {
    type: 'number',
    brief: true,
    hasColumn: true,
    phrase: 'performance',
    description: 'Performance score, computed by the service.',
  },
  pageCreatedAt: { type: 'date', brief: true, hasColumn: true, description: 'Time when the page was created.' },
  createdAt: {
    type: 'date',
    standard: true,
    hasColumn: true,
    description: 'Time when the service first saw the page.',
  },
  detailsEstimated: {
    type: 'boolean',
    standard: true,
    hasColumn: true,
    description: 'true if the numbers of the page are estimates.',
  },
  technologySlugs: {
    type: 'textList',
    standard: true,
    hasColumn: true,
    description: 'Technologies of the shop, such as shopify.',
  },
  countries: { type: 'textList', brief: true, hasColumn: true, description: 'ISO codes of the countries of its ads.' },
  languages: { type: 'textList', brief: true, hasColumn: true, description: 'ISO codes of the languages of its ads.' },
  appUrl: { type: 'text', standard: 100, description: 'URL in the app of the service.' },
} as const satisfies Record<string, ApiField>;

/**
 * The names of all fields whose description has a certain property. For example,
 * `FieldNamesWith<typeof adFields, { hasColumn: true }>` contains the names of all fields that are SQL columns.
 */
export type FieldNamesWith<FieldDescriptions, Property> = {
  [Name in keyof FieldDescriptions]: FieldDescriptions[Name] extends Property ? Name : never;
}[keyof FieldDescriptions];

/** The TypeScript type of a field's value in results, e.g. `boolean` for a field whose `type` is `boolean`. */
export type FieldValue<Field> = Field extends { type: 'number' }
  ? number
  : Field extends { type: 'boolean' }
    ? boolean
    : Field extends { type: 'textList' }
      ? string[]
      : string;

/**
 * An object type with the values of all fields whose description has a certain property, e.g. `{ hasColumn: true }` for
 * SQL columns. All properties of the object are optional.
 */
export type FieldValues<FieldDescriptions, Property> = {
  -readonly [Name in FieldNamesWith<FieldDescriptions, Property>]?: FieldValue<FieldDescriptions[Name]>;
};

/** For each type of field, a function that creates the Zod schema of the field. */
const schemaBuilders: Record<ApiField['type'], () => z.ZodType> = {
  text: z.string,
  date: z.string,
  number: z.number,
  boolean: z.boolean,
  textList: () => z.array(z.string()),
  id: z.string,
};

/** The sentence that the description of a field ends with if lists do not contain the field. */
export const notInListsNote = 'Not in lists.';
/** The sentence that the description of a field ends with if only results with `detail: 'full'` contain the field. */
export const onlyInFullNote = 'Only with detail full.';

/** Creates the shape of a Zod object from descriptions of fields. All fields of the object are optional. */
export const buildFieldSchemas = <FieldDescriptions extends Record<string, ApiField>>(fields: FieldDescriptions) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { type, description, brief, standard }]) => {
      const availabilityNote = brief ? undefined : standard ? notInListsNote : onlyInFullNote;
      const fullDescription = [description, availabilityNote].filter(Boolean).join(' ');
      return [name, schemaBuilders[type]().optional().describe(fullDescription)];
    }),
  ) as { -readonly [Name in keyof FieldDescriptions]: z.ZodOptional<z.ZodType<FieldValue<FieldDescriptions[Name]>>> };

/**
 * The output type of a Zod schema, limited to its declared fields. The inferred type of a loose object would also allow
 * undeclared fields, so TypeScript would not detect a misspelled field name.
 */
export type DataOf<Schema extends z.ZodObject> = keyof Schema['shape'] extends never
  ? object
  : z.output<z.ZodObject<Schema['shape']>>;
