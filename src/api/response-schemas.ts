import * as z from 'zod';
import { ItemType } from './item-type.ts';
import type { OperationName } from './operations.ts';
import {
  Account,
  AddCollectionItemResult,
  Collection,
  CollectionItemsResult,
  CreditStatus,
  Identity,
  UsageLimit,
} from './resource-schemas.ts';

type LenientShape<Shape extends z.ZodRawShape, Essential> = {
  [Key in keyof Shape]: Key extends Essential ? Shape[Key] : z.ZodCatch<z.ZodOptional<Shape[Key]>>;
};

/**
 * Reads an object as documented, but ignores fields of another type: a paid answer is not rejected because of one
 * field. Only the essential fields, which make the object what it is, must be as documented.
 */
export function lenient<Shape extends z.ZodRawShape, Essential extends keyof Shape & string>(
  schema: z.ZodObject<Shape, z.core.$loose>,
  essential: readonly Essential[],
) {
  const shape = Object.fromEntries(
    Object.entries(schema.shape).map(([key, field]) => [
      key,
      (essential as readonly string[]).includes(key) ? field : z.optional(field).catch(undefined),
    ]),
  );
  return z.looseObject(shape as LenientShape<Shape, Essential>);
}

/** Entries of a list; the largest page in the document has 100. */
const maxEntries = 1000;
/** Checks the length before the entries, because each wrong entry costs time and memory. */
const listOf = <Item extends z.ZodType>(item: Item, max = maxEntries) =>
  z.array(z.unknown()).max(max).pipe(z.array(item));

/**
 * What makes an object an ad or a page. Other fields are taken from the received body and checked when they are shown:
 * checking them all here would take longer than parsing the JSON.
 */
export const AdAnswer = z.object({ id: z.string() });
export const PageAnswer = z.object({ pageId: z.string() });

export const AccountAnswer = lenient(Account, ['userId']);

export const UsageLimitAnswer = lenient(UsageLimit, ['isLimitReached']);
export type UsageLimitAnswer = z.infer<typeof UsageLimitAnswer>;

export const CreditStatusAnswer = lenient(CreditStatus.extend({ usageLimit: UsageLimitAnswer }), ['billingUserId']);
export type CreditStatusAnswer = z.infer<typeof CreditStatusAnswer>;

const user = lenient(Identity.shape.user, []);
const apiKey = lenient(Identity.shape.apiKey, []);
export const IdentityAnswer = lenient(Identity.extend({ user, apiKey }), ['authenticated']);

export const CollectionAnswer = lenient(Collection, ['id']);

/** If a service leaves out `hasMore`, a cursor means that there is more. */
const paging = {
  cursor: z.string().min(1).nullable().catch(null),
  hasMore: z.boolean().optional().catch(undefined),
  totalHits: z.number().optional().catch(undefined),
};
const withHasMore = <Answer extends { cursor: string | null; hasMore?: boolean | undefined }>(answer: Answer) => ({
  ...answer,
  hasMore: answer.hasMore ?? answer.cursor !== null,
});

const listAnswer = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({ items: listOf(item), ...paging }).transform(withHasMore);

export const AdListAnswer = listAnswer(AdAnswer);
export const PageListAnswer = listAnswer(PageAnswer);
export const CollectionListAnswer = z.looseObject({ items: listOf(CollectionAnswer, 10_000) });

const collection = CollectionAnswer.optional().catch(undefined);
const itemType = ItemType.optional().catch(undefined);
/** Items are read by the requested item type: see `read-items.ts`. */
export const CollectionItemsAnswer = z
  .looseObject({ ...CollectionItemsResult.shape, items: listOf(z.looseObject({})), ...paging, collection, itemType })
  .transform(withHasMore);

export const AddCollectionItemAnswer = lenient(AddCollectionItemResult.extend({ collection: CollectionAnswer }), [
  'added',
]);

/** The schema of each operation's answer. */
export const responseSchemas = {
  whoami: IdentityAnswer,
  getAccount: AccountAnswer,
  getCredits: CreditStatusAnswer,
  listCollections: CollectionListAnswer,
  listCollectionItems: CollectionItemsAnswer,
  addCollectionItem: AddCollectionItemAnswer,
  searchAds: AdListAnswer,
  getAd: AdAnswer,
  searchPages: PageListAnswer,
  getPage: PageAnswer,
} satisfies Record<OperationName, z.ZodType>;

export type AnswerOf<Name extends OperationName> = z.output<(typeof responseSchemas)[Name]>;
