import * as z from 'zod';
import { createLazyGetter } from '../lazy-getter.ts';
import { toAdLibraryError } from './abort.ts';
import {
  type ApiCall,
  type CacheOptions,
  type CallOwner,
  createFingerprint,
  type Receipt,
  type SendCall,
  type ServiceRequest,
  type ServiceResponse,
} from './call.ts';
import { AdLibraryError, type Failure } from './errors.ts';
import { maxResponseItems, type Operation, type OperationName, operations } from './operations.ts';
import {
  Account,
  AddCollectionItemResult,
  Collection,
  CollectionItemsResult,
  CreditStatus,
  createLenientSchema,
  Identity,
  ItemType,
  ParsedUsageLimit,
} from './schemas.ts';

/** The arguments of an operation, and the options of its call for the cache and the credit meter. */
type OperationOptions = Partial<Pick<ServiceRequest, 'path' | 'query' | 'body' | 'usesDefaultPageSize'>> &
  CacheOptions &
  Pick<ApiCall, 'creditLimit'>;

/** A response whose `validatedBody` has the type that the operation returns. */
export interface ApiResponse<Name extends OperationName> extends ServiceResponse {
  validatedBody: ResponseOf<Name>;
}

/** The maximum number of collections in a response. The service returns all collections at once and not in pages. */
const maxCollections = 10_000;
/**
 * Creates a schema for a list. The schema checks the length first, because checking many invalid items costs time and
 * memory.
 */
const createListSchema = <Item extends z.ZodType>(itemSchema: Item, maxItems = maxResponseItems) =>
  z.array(z.unknown()).max(maxItems).pipe(z.array(itemSchema));

/**
 * The schema of an ad. It checks only the id, which every ad must have. `src/views` reads and checks the other fields.
 * Checking them here would take longer than parsing the JSON.
 */
export const ParsedAd = z.object({ id: z.string() });
const ParsedPage = z.object({ pageId: z.string() });

const getCreditStatusSchema = createLazyGetter(() =>
  createLenientSchema(CreditStatus.extend({ usageLimit: ParsedUsageLimit }), ['billingUserId']),
);
/** The credit balance and the usage limits, from the response to `GET /v1/credits`. */
export type ParsedCreditStatus = z.infer<ReturnType<typeof getCreditStatusSchema>>;

const getIdentitySchema = createLazyGetter(() => {
  const user = createLenientSchema(Identity.shape.user, []);
  const apiKey = createLenientSchema(Identity.shape.apiKey, []);
  return createLenientSchema(Identity.extend({ user, apiKey }), ['authenticated']);
});

const getCollectionSchema = createLazyGetter(() => createLenientSchema(Collection, ['id']));

/**
 * Creates the schemas of the paging fields of a list. If the response lacks `hasMore`, `addHasMore` adds this field.
 * Its value is then true if the response has a cursor.
 */
const createPagingFields = () => ({
  cursor: z.string().min(1).nullable().catch(null),
  hasMore: z.boolean().optional().catch(undefined),
  totalHits: z.number().optional().catch(undefined),
});
const addHasMore = <Page extends { cursor: string | null; hasMore?: boolean | undefined }>(page: Page) => ({
  ...page,
  hasMore: page.hasMore ?? page.cursor !== null,
});

const createPageSchema = <Item extends z.ZodType>(itemSchema: Item) =>
  z.looseObject({ items: createListSchema(itemSchema), ...createPagingFields() }).transform(addHasMore);

/**
 * The schema of `listCollectionItems` does not check the items, because `parseAds` or `parsePages` later parses them as
 * ads or advertiser pages.
 */
const getCollectionItemsSchema = createLazyGetter(() =>
  z
    .looseObject({
      ...CollectionItemsResult.shape,
      items: createListSchema(z.looseObject({})),
      ...createPagingFields(),
      collection: getCollectionSchema().optional().catch(undefined),
      itemType: ItemType.optional().catch(undefined),
    })
    .transform(addHasMore),
);

/** For each operation, a function that returns the Zod schema of the response. */
const responseSchemaGetters = {
  whoami: getIdentitySchema,
  getAccount: createLazyGetter(() => createLenientSchema(Account, ['userId'])),
  getCredits: getCreditStatusSchema,
  listCollections: createLazyGetter(() =>
    z.looseObject({ items: createListSchema(getCollectionSchema(), maxCollections) }),
  ),
  listCollectionItems: getCollectionItemsSchema,
  addCollectionItem: createLazyGetter(() =>
    createLenientSchema(AddCollectionItemResult.extend({ collection: getCollectionSchema() }), ['added']),
  ),
  searchAds: createLazyGetter(() => createPageSchema(ParsedAd)),
  getAd: () => ParsedAd,
  searchPages: createLazyGetter(() => createPageSchema(ParsedPage)),
  getPage: () => ParsedPage,
} satisfies Record<OperationName, () => z.ZodType>;

/** Returns the Zod schema that validates the response of an operation. */
export const getResponseSchema = (operation: OperationName) => responseSchemaGetters[operation]();

/**
 * Returns the name of the field that contains the id of an item, e.g. `pageId`. Returns undefined if the operation does
 * not return a list. An item without an id cannot be displayed, opened or stored.
 */
function getIdField({ operation: { name, isList }, query }: Pick<ServiceRequest, 'operation' | 'query'>) {
  if (name === 'listCollections') return 'id';
  if (!isList) return undefined;
  return name === 'searchPages' || query.itemType === 'pages' ? 'pageId' : 'id';
}

/**
 * Removes items without an id from a list, so that one broken item does not make a whole paid page unusable. Keeps all
 * items of a collection if none has the expected id. These items probably have the other item type, and `parseAds` or
 * `parsePages` reports this error.
 * @param plainBody the body as `JSON.parse` returns it; the items in this body are checked
 * @param exactBody the same body with long numbers as strings, because JavaScript cannot represent them exactly
 */
export function removeItemsWithoutId(
  request: Pick<ServiceRequest, 'operation' | 'query'>,
  plainBody: unknown,
  exactBody: unknown,
) {
  const unchangedResult = { bodyToValidate: plainBody, rawBody: exactBody, unusableCount: 0 };
  const idField = getIdField(request);
  const items = (plainBody as { items?: unknown } | null | undefined)?.items;
  if (idField === undefined || !Array.isArray(items)) return unchangedResult;
  // Do not check the items of a list that is too long, because the schema rejects the list anyway.
  if (items.length > (request.operation.isList ? maxResponseItems : maxCollections)) return unchangedResult;
  const isUsableByIndex = items.map((item) => typeof item?.[idField] === 'string' && item[idField] !== '');
  const unusableCount = isUsableByIndex.filter((isUsable) => !isUsable).length;
  if (unusableCount === 0 || (unusableCount === items.length && request.operation.name === 'listCollectionItems'))
    return unchangedResult;
  const keepUsableItems = (body: unknown) => {
    const page = body as { items: unknown[] };
    return { ...page, items: page.items.filter((_, index) => isUsableByIndex[index]) };
  };
  const bodyToValidate = keepUsableItems(plainBody);
  const rawBody = exactBody === plainBody ? bodyToValidate : keepUsableItems(exactBody);
  return { bodyToValidate, rawBody, unusableCount };
}

type ResponseOf<Name extends OperationName> = z.output<ReturnType<(typeof responseSchemaGetters)[Name]>>;

/** The API client of a caller, with one method for each API operation, e.g. `searchAds`. */
export type Api = { [Name in OperationName]: (operationOptions?: OperationOptions) => Promise<ApiResponse<Name>> };

/** The API key of a caller, and the ids under which the caller's data and spending are stored. */
export interface Credentials extends Pick<CallOwner, 'tenantId' | 'connection'> {
  /** The API key of the caller. If undefined, every call fails without sending a request. */
  apiKey: string | undefined;
}

/** A caller of the API, with callbacks for the outcomes of its calls. */
export interface Caller extends Credentials {
  signal: AbortSignal;
  /**
   * True if no paid request may be sent. The server sets this option to find out whether a tool call would cost
   * credits.
   */
  forbidsPaidRequests?: boolean;
  /** Called with the receipt (the cost) of each response. A tool adds up the receipts to report its total cost. */
  onReceipt?: (receipt: Receipt) => void;
  /** Called for each failed call, because the service may also charge for failed calls. */
  onFailure?: (failure: Failure) => void;
  /**
   * Called if data was read from a dataset (stored ads), but the service could not confirm that this dataset belongs to
   * the caller.
   */
  onOwnerUnconfirmed?: () => void;
}

/**
 * Returns a function that creates the API client of a caller. All methods of the client pass their calls to `sendCall`.
 */
export function createApi(sendCall: SendCall, baseUrl: string | undefined): (caller: Caller) => Api {
  return (caller) => {
    const methodEntries = Object.values(operations).map((operation) => {
      const operationMethod = async (operationOptions: OperationOptions = {}) =>
        callOperation(sendCall, operation, { ...caller, apiKey: getApiKeyOrThrow(caller, baseUrl) }, operationOptions);
      return [operation.name, operationMethod] as const;
    });
    return Object.fromEntries(methodEntries) as unknown as Api;
  };
}

async function callOperation(
  sendCall: SendCall,
  operation: Operation,
  caller: Caller & { apiKey: string },
  operationOptions: OperationOptions,
) {
  const { apiKey, tenantId, connection, signal, onReceipt, onFailure, onOwnerUnconfirmed } = caller;
  const { path = {}, query = {}, body, usesDefaultPageSize, creditLimit, ...cacheOptions } = operationOptions;
  try {
    const request = { operation, path, query, ...(body && { body }) };
    const response = await sendCall({
      request: { fingerprint: createFingerprint(request), usesDefaultPageSize, ...request },
      owner: { apiKey, tenantId, connection },
      signal,
      cacheOptions: {
        ...cacheOptions,
        forbidsPaidRequests: caller.forbidsPaidRequests || cacheOptions.forbidsPaidRequests,
      },
      creditLimit,
      progress: { isSent: false },
    });
    onReceipt?.(response.receipt);
    if (response.isOwnerUnconfirmed) onOwnerUnconfirmed?.();
    return response;
  } catch (error) {
    const expectedError = toAdLibraryError(error, signal);
    if (expectedError === undefined) throw error;
    const failure = {
      isPaid: operation.requiresCredits,
      ...expectedError.failure,
      changesData: operation.changesData,
    };
    onFailure?.(failure);
    throw new AdLibraryError(failure, { cause: error });
  }
}

/**
 * Returns the API key of a caller.
 * @throws AdLibraryError `no_api_key` if the API key or the service's base URL is missing
 */
export function getApiKeyOrThrow({ apiKey }: Credentials, baseUrl: string | undefined): string {
  if (apiKey !== undefined && baseUrl !== undefined) return apiKey;
  const missingSettings = [
    apiKey === undefined && 'AD_LIBRARY_API_KEY (in the host\'s form: "API key")',
    baseUrl === undefined && 'AD_LIBRARY_BASE_URL (in the host\'s form: "API address")',
  ];
  const problem = `Missing: ${missingSettings.filter(Boolean).join(' and ')}.`;
  throw new AdLibraryError({ kind: 'no_api_key', problem, wasSent: false });
}

/**
 * Parses the items of a collection as ads. The caller must choose between `parseAds` and `parsePages`, because the item
 * type in the response is not reliable.
 */
export const parseAds = (response: ListResponse) => parseItems(ParsedAd, response);
/** Parses the items of a collection as advertiser pages. For ads, use `parseAds`. */
export const parsePages = (response: ListResponse) => parseItems(ParsedPage, response);

function parseItems<Item>(itemSchema: z.ZodType<Item>, { validatedBody, receipt }: ListResponse): Item[] {
  const parseResult = z.array(itemSchema).safeParse(validatedBody.items);
  if (parseResult.success) return parseResult.data;
  const { charged, requestId } = receipt;
  throw new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The items are not of the requested item type.',
    status: 200,
    requestId: requestId ?? undefined,
    charged: charged ?? undefined,
    wasSent: true,
    isPaid: true,
  });
}

interface ListResponse {
  validatedBody: { items: readonly unknown[] };
  receipt: Pick<Receipt, 'charged' | 'requestId'>;
}
