import * as z from 'zod';

/** The type of the items in a collection (API document, *Result envelopes*). */
export const ItemType = z.enum(['ads', 'pages']);
export type ItemType = z.infer<typeof ItemType>;

/*
 * The resources, envelopes and bodies of the API, with the same fields as in the API document.
 *
 * Every object is loose. The API document allows extra keys on Ad, Page and MediaAsset, and a key that the service adds
 * later must not turn a paid response into an error. Parsing responses is even more tolerant: see
 * `createLenientSchema`.
 */

const optionalText = z.string().nullish();
const optionalNumber = z.number().nullish();
const optionalBoolean = z.boolean().nullish();
/** An ISO 8601 date and time, exactly as the service sent it. */
const optionalDateTime = z.string().nullish();
const anyObjectSchema = z.record(z.string(), z.unknown());

/** The account that an API key belongs to. */
export const Account = z.looseObject({
  userId: z.string(),
  billingUserId: z.string(),
  planId: z.string().nullable(),
  isTeamMember: z.boolean(),
  subscriptionStatus: z.string().nullable(),
});
export type Account = z.infer<typeof Account>;

/** The hourly and daily limits on the credits of an API key, and the number of these credits that are used. */
export const UsageLimit = z.looseObject({
  isLimitReached: z.boolean(),
  /** The limit that was reached. Known values: `none`, `hourly`, `daily`. */
  limitType: z.string(),
  hourlyCredits: z.number().describe('credits used in the hourly window'),
  hourlyLimit: z.number(),
  dailyCredits: z.number().describe('credits used in the daily window'),
  dailyLimit: z.number(),
});
export type UsageLimit = z.infer<typeof UsageLimit>;

/** The credits of the current billing period, and the hourly and daily limits of the API key. */
export const CreditStatus = z.looseObject({
  planId: z.string().nullable(),
  billingUserId: z.string(),
  periodStart: z.number().nullable().describe('unix seconds'),
  periodEnd: z.number().nullable().describe('unix seconds'),
  credits: z.number().nullable().describe('credits remaining'),
  creditsMax: z.number().nullable(),
  usageLimit: UsageLimit,
});
export type CreditStatus = z.infer<typeof CreditStatus>;

/** An image or video of an ad or an advertiser page. */
export const MediaAsset = z.looseObject({
  /**
   * The kind of file. Known values are `THUMB`, `VID`, `PA_PP`, `CARD_THUMB` and `CARD_VID`. Other values are possible.
   */
  type: z.string(),
  url: z.string(),
  nr: optionalNumber,
  referenceId: optionalText,
  mediaFormat: optionalText,
  filename: optionalText,
  width: optionalNumber,
  height: optionalNumber,
  durationSeconds: optionalNumber,
  urls: z.record(z.string(), z.string()).optional(),
});
export type MediaAsset = z.infer<typeof MediaAsset>;

/** An ad, with all fields that the API document lists. */
export const Ad = z.looseObject({
  id: z.string(),
  pageId: optionalText,
  sourcePageExternalId: optionalText,
  headline: optionalText,
  body: optionalText,
  linkDescription: optionalText,
  productTitle: optionalText,
  offerLink: optionalText,
  displayUrl: optionalText,
  startedAt: optionalDateTime,
  lastSeenAt: optionalDateTime,
  endDate: optionalDateTime,
  productCreatedAt: optionalDateTime,
  productPrice: optionalNumber,
  duplicates: optionalNumber,
  trendPublic: optionalNumber,
  performancePublic: optionalNumber,
  audienceReach: optionalNumber,
  adSpendMin: optionalNumber,
  adSpendMax: optionalNumber,
  revenueMin: optionalNumber,
  revenueMax: optionalNumber,
  isStorePlatformBestSeller: optionalBoolean,
  ctaType: optionalText,
  displayFormat: optionalText,
  countries: z.array(z.string()).optional(),
  publisherPlatform: z.array(z.string()).optional(),
  media: z.array(MediaAsset).optional(),
  cards: z.array(anyObjectSchema).optional(),
  changes: anyObjectSchema.optional(),
  page: z.looseObject({ pageName: optionalText, adsAmount: optionalNumber }).optional(),
  website: z.looseObject({ siteDomain: optionalText }).optional(),
  appUrl: z.string().optional(),
});
export type Ad = z.infer<typeof Ad>;

/** An advertiser page, on which an advertiser publishes its ads. */
export const Page = z.looseObject({
  pageId: z.string(),
  pageName: z.string(),
  sourcePageExternalId: optionalText,
  pageLikes: optionalNumber,
  pageIgFollowers: optionalNumber,
  adsAmount: optionalNumber,
  adsTotalDuplicates: optionalNumber,
  audienceReach: optionalNumber,
  averageDuplicates: optionalNumber,
  trend: optionalNumber,
  performance: optionalNumber,
  pageCreatedAt: optionalDateTime,
  createdAt: optionalDateTime,
  detailsEstimated: optionalBoolean,
  technologySlugs: z.array(z.string()).optional(),
  countries: z.array(z.string()).optional(),
  languages: z.array(z.string()).optional(),
  media: z.array(MediaAsset).optional(),
  thumbnails: z.array(z.looseObject({ url: optionalText, isVideo: optionalBoolean })).optional(),
  appUrl: z.string().optional(),
});
export type Page = z.infer<typeof Page>;

/** A collection: a list of ads or advertiser pages that a user has saved on the service. */
export const Collection = z.looseObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  isDefault: z.boolean(),
  defaultType: z.string().nullable(),
  isOwner: z.boolean(),
  adCount: z.number(),
  pageCount: z.number(),
});
export type Collection = z.infer<typeof Collection>;

/** The response of `whoami`: the user to whom the API key belongs. */
export const Identity = z.looseObject({
  authenticated: z.boolean(),
  /** How the caller was authenticated, e.g. `api_key`. */
  authSource: z.string(),
  user: z.looseObject({
    userId: z.string(),
    billingUserId: z.string(),
    name: z.string().nullable(),
    emailAddress: z.string().nullable(),
    planId: z.string(),
    isTeamMember: z.boolean(),
    subscriptionStatus: z.string(),
  }),
  apiKey: z.looseObject({ id: z.string(), name: z.string(), keyPrefix: z.string() }),
  oauthClientId: z.string().nullable(),
});
export type Identity = z.infer<typeof Identity>;

/** A page of a collection's items, as the service returns it. */
export const CollectionItemsResult = z.looseObject({
  collection: Collection,
  itemType: ItemType,
  /** The ads or advertiser pages, depending on `itemType`. */
  items: z.array(z.looseObject({})),
  cursor: z.string().nullable(),
  hasMore: z.boolean(),
});

/** The body of a request that adds an item to a collection. */
export const AddCollectionItemRequest = z.looseObject({ itemType: ItemType, itemId: z.string().min(1) });
/** The response to a request that adds an item to a collection. */
export const AddCollectionItemResult = z.looseObject({
  collection: Collection,
  itemType: ItemType,
  itemId: z.string(),
  added: z.boolean(),
});

/** The JSON body of an error response from the service. */
export const ErrorBody = z.looseObject({
  error: z.looseObject({
    code: z.string(),
    message: z.string(),
    requestId: z.string(),
    details: z.unknown().optional(),
  }),
});
export type ErrorBody = z.infer<typeof ErrorBody>;

type LenientShape<Shape extends z.ZodRawShape, Essential> = {
  [Key in keyof Shape]: Key extends Essential ? Shape[Key] : z.ZodCatch<z.ZodOptional<Shape[Key]>>;
};

/**
 * Returns a variant of `schema` that ignores fields of the wrong type, so that such a field does not turn a paid
 * response into an error. Only the `essentialFields` must match the schema.
 */
export function createLenientSchema<Shape extends z.ZodRawShape, Essential extends keyof Shape & string>(
  schema: z.ZodObject<Shape, z.core.$loose>,
  essentialFields: readonly Essential[],
) {
  const shape = Object.fromEntries(
    Object.entries(schema.shape).map(([key, field]) => [
      key,
      (essentialFields as readonly string[]).includes(key) ? field : z.optional(field).catch(undefined),
    ]),
  );
  return z.looseObject(shape as LenientShape<Shape, Essential>);
}

/** The schema of the hourly and daily limits in a response. It ignores fields of the wrong type. */
export const ParsedUsageLimit = createLenientSchema(UsageLimit, ['isLimitReached']);
export type ParsedUsageLimit = z.infer<typeof ParsedUsageLimit>;
