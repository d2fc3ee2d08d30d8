import * as z from 'zod';
import { knownError } from './abort.ts';
import { type Answer, type Call, fingerprint, type Receipt, type Send } from './call.ts';
import { AdLibraryError, type Failure } from './errors.ts';
import { type Operation, type OperationName, operations } from './operations.ts';
import {
  Account,
  AddCollectionItemResult,
  Collection,
  CollectionItemsResult,
  CreditStatus,
  Identity,
  ItemType,
  lenient,
  UsageLimitAnswer,
} from './schemas.ts';

type ApiRequest = Partial<
  Pick<Call, 'path' | 'query' | 'body' | 'fresh' | 'uncached' | 'seen' | 'usualSize' | 'callBudget' | 'wrapSend'>
>;

export interface ApiAnswer<Name extends OperationName> extends Answer {
  value: AnswerOf<Name>;
}

/** Entries of a page; the largest page in the document has 100. */
const maxEntries = 1000;
/** Entries of the list of collections, which has no pages. */
const maxCollections = 10_000;
/** Checks the length before the entries, because each wrong entry costs time and memory. */
const listOf = <Item extends z.ZodType>(item: Item, max = maxEntries) =>
  z.array(z.unknown()).max(max).pipe(z.array(item));

/**
 * What makes an object an ad or a page. Other fields are taken from the received body and checked when they are shown:
 * checking them all here would take longer than parsing the JSON.
 */
export const AdAnswer = z.object({ id: z.string() });
const PageAnswer = z.object({ pageId: z.string() });

const AccountAnswer = lenient(Account, ['userId']);

const CreditStatusAnswer = lenient(CreditStatus.extend({ usageLimit: UsageLimitAnswer }), ['billingUserId']);
export type CreditStatusAnswer = z.infer<typeof CreditStatusAnswer>;

const user = lenient(Identity.shape.user, []);
const apiKey = lenient(Identity.shape.apiKey, []);
const IdentityAnswer = lenient(Identity.extend({ user, apiKey }), ['authenticated']);

const CollectionAnswer = lenient(Collection, ['id']);

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

const AdListAnswer = listAnswer(AdAnswer);
const PageListAnswer = listAnswer(PageAnswer);
const CollectionListAnswer = z.looseObject({ items: listOf(CollectionAnswer, maxCollections) });

const collection = CollectionAnswer.optional().catch(undefined);
const itemType = ItemType.optional().catch(undefined);
/** Items are read by the requested item type: see `readAds`. */
const CollectionItemsAnswer = z
  .looseObject({ ...CollectionItemsResult.shape, items: listOf(z.looseObject({})), ...paging, collection, itemType })
  .transform(withHasMore);

const AddCollectionItemAnswer = lenient(AddCollectionItemResult.extend({ collection: CollectionAnswer }), ['added']);

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

/** The field without which an item of a list cannot be shown, opened or stored. */
function essentialField({ operation: { name, list }, query }: Pick<Call, 'operation' | 'query'>) {
  if (name === 'listCollections') return 'id';
  if (!list) return undefined;
  return name === 'searchPages' || query.itemType === 'pages' ? 'pageId' : 'id';
}

/**
 * Removes the items of a list that lack their id, so that one of them does not hide a whole paid page. Items of a
 * collection stay as they are if none has its id: then they are probably of the other item type, which `readAds` and
 * `readPages` report.
 * @param plain the body as JavaScript parses it, by which items are judged
 * @param exact the same body, with numbers that JavaScript cannot hold as texts
 */
export function withoutUnusableItems(call: Pick<Call, 'operation' | 'query'>, plain: unknown, exact: unknown) {
  const unchanged = { checked: plain, raw: exact, unusable: 0 };
  const field = essentialField(call);
  const items = (plain as { items?: unknown } | null | undefined)?.items;
  if (field === undefined || !Array.isArray(items)) return unchanged;
  // A longer list is refused as a whole, before its items are looked at.
  if (items.length > (call.operation.list ? maxEntries : maxCollections)) return unchanged;
  const isUsable = items.map((item) => typeof item?.[field] === 'string' && item[field] !== '');
  const unusable = isUsable.filter((usable) => !usable).length;
  if (unusable === 0 || (unusable === items.length && call.operation.name === 'listCollectionItems')) return unchanged;
  const withUsable = (body: unknown) => {
    const page = body as { items: unknown[] };
    return { ...page, items: page.items.filter((_, index) => isUsable[index]) };
  };
  const checked = withUsable(plain);
  return { checked, raw: exact === plain ? checked : withUsable(exact), unusable };
}

type AnswerOf<Name extends OperationName> = z.output<(typeof responseSchemas)[Name]>;

export type Api = { [Name in OperationName]: (request?: ApiRequest) => Promise<ApiAnswer<Name>> };

/** The API key that pays for a call. */
export interface Credentials extends Pick<Call, 'tenantId' | 'connection'> {
  /** If undefined, every call fails without being sent. */
  apiKey: string | undefined;
}

export interface Caller extends Credentials {
  signal: AbortSignal;
  /** Receives the receipt of every answer, so that a result can state its cost. */
  onReceipt?: (receipt: Receipt) => void;
  /** Receives every failure: it may have cost something, too. */
  onFailure?: (failure: Failure) => void;
  /** Runs when data are read from a dataset whose owner the service could not confirm. */
  onUnconfirmed?: () => void;
}

export function createApi(send: Send, baseUrl: string | undefined): (caller: Caller) => Api {
  return (caller) => {
    const methods = Object.values(operations).map((operation) => {
      const method = async (request: ApiRequest = {}) =>
        ask(send, operation, { ...caller, apiKey: keyOf(caller, baseUrl) }, request);
      return [operation.name, method] as const;
    });
    return Object.fromEntries(methods) as unknown as Api;
  };
}

async function ask(send: Send, operation: Operation, caller: Caller & { apiKey: string }, request: ApiRequest) {
  const { apiKey, tenantId, connection, signal, onReceipt, onFailure, onUnconfirmed } = caller;
  const { path = {}, query = {}, body, fresh = false, seen = false, ...settings } = request;
  try {
    const called = { operation, path, query, ...(body && { body }) };
    const identity = { fingerprint: fingerprint(called), apiKey, tenantId, connection };
    // Named fields come first: in Node 20, one that is added after a spread takes microseconds.
    const answer = await send({ signal, fresh, seen, ...called, ...identity, ...settings });
    onReceipt?.(answer.receipt);
    if (answer.isUnconfirmed) onUnconfirmed?.();
    return answer;
  } catch (error) {
    const explained = knownError(error, signal);
    if (explained === undefined) throw error;
    const failure = { paid: operation.gated, ...explained.failure, writes: operation.writes };
    onFailure?.(failure);
    throw new AdLibraryError(failure, { cause: error });
  }
}

export function keyOf({ apiKey }: Credentials, baseUrl: string | undefined): string {
  if (apiKey !== undefined && baseUrl !== undefined) return apiKey;
  const missing = [
    apiKey === undefined && 'AD_LIBRARY_API_KEY (in the host\'s form: "API key")',
    baseUrl === undefined && 'AD_LIBRARY_BASE_URL (in the host\'s form: "API address")',
  ];
  const problem = `Missing: ${missing.filter(Boolean).join(' and ')}.`;
  throw new AdLibraryError({ kind: 'no_api_key', problem, sent: false });
}

/** Reads the items of a collection as the requested type, because the answer does not state it reliably. */
export const readAds = (answer: Listed) => readItems(AdAnswer, answer);
export const readPages = (answer: Listed) => readItems(PageAnswer, answer);

function readItems<Item>(item: z.ZodType<Item>, { value, receipt }: Listed): Item[] {
  const parsed = z.array(item).safeParse(value.items);
  if (parsed.success) return parsed.data;
  const { charged, requestId } = receipt;
  throw new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The items are not of the requested item type.',
    status: 200,
    requestId: requestId ?? undefined,
    charged: charged ?? undefined,
    sent: true,
    paid: true,
  });
}

interface Listed {
  value: { items: readonly unknown[] };
  receipt: Pick<Receipt, 'charged' | 'requestId'>;
}
