import * as z from 'zod';
import { knownError } from './abort.ts';
import {
  type Answer,
  type CacheOptions,
  type Call,
  type CallOwner,
  fingerprint,
  type Receipt,
  type Send,
  type ServiceRequest,
} from './call.ts';
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

/** The arguments of an operation, and how the cache and the meter treat the call. */
type ApiArguments = Partial<Pick<ServiceRequest, 'path' | 'query' | 'body' | 'hasDefaultSize'>> &
  CacheOptions &
  Pick<Call, 'creditLimit'>;

/** The answer of an operation. `value` has the type of the operation's answer. */
export interface ApiAnswer<Name extends OperationName> extends Answer {
  value: AnswerOf<Name>;
}

/** The most entries of a page. The largest page in the document has 100 entries. */
const maxEntries = 1000;
/** The most entries of the list of collections, which has no pages. */
const maxCollections = 10_000;
/** Creates a schema of a list. It checks the length before the entries, because each wrong entry costs time and memory. */
const listOf = <Item extends z.ZodType>(item: Item, max = maxEntries) =>
  z.array(z.unknown()).max(max).pipe(z.array(item));

/**
 * The field that every ad must have. Views read the other fields from the received body and check them when they are shown.
 * Checking all fields here would take longer than parsing the JSON.
 */
export const AdAnswer = z.object({ id: z.string() });
const PageAnswer = z.object({ pageId: z.string() });

const AccountAnswer = lenient(Account, ['userId']);

const CreditStatusAnswer = lenient(CreditStatus.extend({ usageLimit: UsageLimitAnswer }), ['billingUserId']);
/** The credit status as it is read from an answer. */
export type CreditStatusAnswer = z.infer<typeof CreditStatusAnswer>;

const user = lenient(Identity.shape.user, []);
const apiKey = lenient(Identity.shape.apiKey, []);
const IdentityAnswer = lenient(Identity.extend({ user, apiKey }), ['authenticated']);

const CollectionAnswer = lenient(Collection, ['id']);

/** The fields of a page. If the service leaves `hasMore` out, a cursor means that there are more items. */
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
/** The schema does not check the items. `readAds` and `readPages` read them as the requested item type. */
const CollectionItemsAnswer = z
  .looseObject({ ...CollectionItemsResult.shape, items: listOf(z.looseObject({})), ...paging, collection, itemType })
  .transform(withHasMore);

const AddCollectionItemAnswer = lenient(AddCollectionItemResult.extend({ collection: CollectionAnswer }), ['added']);

/** The schemas of the answers, by operation. */
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

/** Returns the field that an item of a list must have. Without this field, the item cannot be shown, opened or stored. */
function essentialField({ operation: { name, list }, query }: Pick<ServiceRequest, 'operation' | 'query'>) {
  if (name === 'listCollections') return 'id';
  if (!list) return undefined;
  return name === 'searchPages' || query.itemType === 'pages' ? 'pageId' : 'id';
}

/**
 * Removes the items without an id from a list. One such item must not make a whole paid page unusable. If no item of a
 * collection has an id, all items stay: they probably have the other item type, and `readAds` and `readPages` report it.
 * @param plain the body as JavaScript parses it. The items are checked in this body
 * @param exact the same body with long numbers as strings, because JavaScript cannot represent them exactly
 */
export function withoutUnusableItems(
  request: Pick<ServiceRequest, 'operation' | 'query'>,
  plain: unknown,
  exact: unknown,
) {
  const unchanged = { checked: plain, raw: exact, unusable: 0 };
  const field = essentialField(request);
  const items = (plain as { items?: unknown } | null | undefined)?.items;
  if (field === undefined || !Array.isArray(items)) return unchanged;
  // The schema refuses a longer list as a whole, so its items need not be checked.
  if (items.length > (request.operation.list ? maxEntries : maxCollections)) return unchanged;
  const isUsable = items.map((item) => typeof item?.[field] === 'string' && item[field] !== '');
  const unusable = isUsable.filter((usable) => !usable).length;
  if (unusable === 0 || (unusable === items.length && request.operation.name === 'listCollectionItems'))
    return unchanged;
  const withUsable = (body: unknown) => {
    const page = body as { items: unknown[] };
    return { ...page, items: page.items.filter((_, index) => isUsable[index]) };
  };
  const checked = withUsable(plain);
  return { checked, raw: exact === plain ? checked : withUsable(exact), unusable };
}

type AnswerOf<Name extends OperationName> = z.output<(typeof responseSchemas)[Name]>;

/** The API client of one caller: a method for each operation. */
export type Api = { [Name in OperationName]: (request?: ApiArguments) => Promise<ApiAnswer<Name>> };

/** The API key that a call is made with. */
export interface Credentials extends Pick<CallOwner, 'tenantId' | 'connection'> {
  /** The key. If the key is undefined, every call fails before anything is sent. */
  apiKey: string | undefined;
}

/** The caller of the API, and the functions that receive the outcome of its calls. */
export interface Caller extends Credentials {
  signal: AbortSignal;
  /** Makes calls that send no paid request, to find out whether a tool call would cost credits. */
  storedOnly?: boolean;
  /** Receives the receipt of every answer, so that the result of a tool can state its cost. */
  onReceipt?: (receipt: Receipt) => void;
  /** Receives every failure, because the service may have charged for a failed call, too. */
  onFailure?: (failure: Failure) => void;
  /** Called when data is read from a dataset that the service could not confirm as the caller's own. */
  onUnconfirmed?: () => void;
}

/** Creates the API client. For each caller, it has one method for each operation. */
export function createApi(send: Send, baseUrl: string | undefined): (caller: Caller) => Api {
  return (caller) => {
    const methods = Object.values(operations).map((operation) => {
      const method = async (request: ApiArguments = {}) =>
        ask(send, operation, { ...caller, apiKey: keyOf(caller, baseUrl) }, request);
      return [operation.name, method] as const;
    });
    return Object.fromEntries(methods) as unknown as Api;
  };
}

async function ask(send: Send, operation: Operation, caller: Caller & { apiKey: string }, request: ApiArguments) {
  const { apiKey, tenantId, connection, signal, storedOnly, onReceipt, onFailure, onUnconfirmed } = caller;
  const { path = {}, query = {}, body, hasDefaultSize, creditLimit, ...cache } = request;
  try {
    const requested = { operation, path, query, ...(body && { body }) };
    const answer = await send({
      request: { fingerprint: fingerprint(requested), hasDefaultSize, ...requested },
      owner: { apiKey, tenantId, connection },
      signal,
      cache: { ...cache, storedOnly },
      creditLimit,
      progress: { sent: false },
    });
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

/** Returns the API key of a caller. @throws AdLibraryError `no_api_key` if the key or the base address is missing */
export function keyOf({ apiKey }: Credentials, baseUrl: string | undefined): string {
  if (apiKey !== undefined && baseUrl !== undefined) return apiKey;
  const missing = [
    apiKey === undefined && 'AD_LIBRARY_API_KEY (in the host\'s form: "API key")',
    baseUrl === undefined && 'AD_LIBRARY_BASE_URL (in the host\'s form: "API address")',
  ];
  const problem = `Missing: ${missing.filter(Boolean).join(' and ')}.`;
  throw new AdLibraryError({ kind: 'no_api_key', problem, sent: false });
}

/** Reads the items of a collection as ads. The caller chooses the type, because the answer does not state it reliably. */
export const readAds = (answer: Listed) => readItems(AdAnswer, answer);
/** Reads the items of a collection as pages. */
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
