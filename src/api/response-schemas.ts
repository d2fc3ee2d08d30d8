import * as z from 'zod';
import { ItemType } from './item-type.ts';
import { lenient } from './lenient.ts';
import type { OperationName } from './operations.ts';
import {
  Account,
  AddCollectionItemResult,
  Collection,
  CollectionItemsResult,
  CreditStatus,
  Identity,
  UsageLimit,
} from './schemas.ts';

/** The documented resources as they are read from an answer: see `lenient.ts` for what that forgives. */

/** Most entries of a list that are looked at; the document's largest page holds 100 items. */
const maxEntries = 1000;
/** A list whose entries are only read when there are not too many: each wrong one costs time and memory. */
const listOf = <Item extends z.ZodType>(item: Item, max = maxEntries) =>
  z.array(z.unknown()).max(max).pipe(z.array(item));

/**
 * What makes an object an ad or a page. Their other fields are shown from the body as it came, and whoever shows one
 * judges it: to read them all here would take longer than to parse them.
 */
export const AdAnswer = z.object({ id: z.string() });
export const PageAnswer = z.object({ pageId: z.string() });

export const AccountAnswer = lenient(Account, ['userId']);
export type AccountAnswer = z.infer<typeof AccountAnswer>;

export const UsageLimitAnswer = lenient(UsageLimit, ['isLimitReached']);
export type UsageLimitAnswer = z.infer<typeof UsageLimitAnswer>;

export const CreditStatusAnswer = lenient(CreditStatus.extend({ usageLimit: UsageLimitAnswer }), ['billingUserId']);
export type CreditStatusAnswer = z.infer<typeof CreditStatusAnswer>;

const user = lenient(Identity.shape.user, []);
const apiKey = lenient(Identity.shape.apiKey, []);
export const IdentityAnswer = lenient(Identity.extend({ user, apiKey }), ['authenticated']);
export type IdentityAnswer = z.infer<typeof IdentityAnswer>;

export const CollectionAnswer = lenient(Collection, ['id']);
export type CollectionAnswer = z.infer<typeof CollectionAnswer>;

/** Where the document promises `hasMore` and a service leaves it out, a cursor means that there is more. */
const paging = {
  cursor: z.string().min(1).nullable().catch(null),
  hasMore: z.boolean().optional().catch(undefined),
  totalHits: z.number().optional().catch(undefined),
};
const withHasMore = <Answer extends { cursor: string | null; hasMore?: boolean | undefined }>(answer: Answer) => ({
  ...answer,
  hasMore: answer.hasMore ?? answer.cursor !== null,
});

const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({ items: listOf(item), ...paging }).transform(withHasMore);

export const AdListAnswer = pageOf(AdAnswer);
export const PageListAnswer = pageOf(PageAnswer);
export const CollectionListAnswer = z.looseObject({ items: listOf(CollectionAnswer, 10_000) });

const collection = CollectionAnswer.optional().catch(undefined);
const itemType = ItemType.optional().catch(undefined);
/** Items are told apart by the item type that was asked for: see `read-items.ts`. */
export const CollectionItemsAnswer = z
  .looseObject({ ...CollectionItemsResult.shape, items: listOf(z.looseObject({})), ...paging, collection, itemType })
  .transform(withHasMore);

export const AddCollectionItemAnswer = lenient(AddCollectionItemResult.extend({ collection: CollectionAnswer }), [
  'added',
]);

/** What each operation answers with. */
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
