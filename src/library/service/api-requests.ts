import { type OperationName, operations } from '../../api/operations.ts';
import type { Account, ErrorBody, Identity, ItemType } from '../../api/schemas.ts';
import type { RecordStore } from '../database/records.ts';
import { parseSearchRequest, runSearch } from '../search/search-request.ts';
import { type Caller, type KeyStore, operationPolicies } from './accounts.ts';
import type { LibraryOptions, ServiceContext } from './context.ts';
import { createPresenter, type Presenter } from './presenter.ts';
import {
  ApiError,
  type ApiRequest,
  createNotFoundError,
  parseCollectionItem,
  parseCollectionItemsQuery,
  parsePageId,
  parseUuid,
  readJsonBody,
} from './request.ts';

/** The options, the open stores and the keys of a library. Both `callApi` and the web app use them. */
export type ServiceOptions = LibraryOptions & {
  context: ServiceContext;
  keys: KeyStore;
  createRequestId: () => string;
};

/**
 * The paths of the HTTP API, with the operations of each path. The named groups of `pattern` match the path parameters,
 * e.g. `adId`.
 */
const apiPaths = [...new Set(Object.values(operations).map(({ path }) => path))].map((apiPath) => ({
  pattern: new RegExp(`^${apiPath.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`),
  operations: Object.values(operations).filter(({ path }) => path === apiPath),
}));

/** Creates the error for a path that the library does not serve. */
export const createNoSuchPathError = (path: string) =>
  new ApiError(404, 'no_such_path', `Nothing is served at ${path.slice(0, 200)}.`);

/** A response of the HTTP API. The body is JSON text. */
export interface ApiResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const createJsonResponse = (status: number, headers: Record<string, string>, body: unknown): ApiResponse => ({
  status,
  headers: { 'Content-Type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/**
 * Handles a request to the HTTP API. The first failed check determines the response. The checks run in this order: path
 * and method (404, 405), lock (503), key (401), scope (403), request (422), existence (404), and finally subscription,
 * credits and usage limits (402, 429). Only responses with status 200 cost credits.
 */
export async function handleApiRequest(request: ApiRequest, options: ServiceOptions): Promise<ApiResponse> {
  const path = new URL(request.url).pathname;
  try {
    const matchedPath = matchApiPath(path, request.method);
    if (matchedPath === undefined) throw createNoSuchPathError(path);
    // Do not answer HEAD requests like GET requests, because the caller would pay for a body that is not sent.
    const operation = matchedPath.operations.find(({ method }) => method === request.method);
    if (operation) return await handleOperation(operation.name, request, matchedPath.params, options);
    const allowedMethods = matchedPath.operations.map(({ method }) => method);
    const message = `This path takes ${allowedMethods.join(' and ')}; got ${request.method}.`;
    const error = new ApiError(405, 'method_not_allowed', message);
    return createErrorResponse(error, options, { Allow: allowedMethods.join(', ') });
  } catch (error) {
    return createErrorResponse(error, options);
  }
}

/**
 * Returns the operations of a path, and the values of the path parameters. If several patterns match the path, prefers
 * one with an operation for the method: `GET /v1/pages/search` returns the page with the id `search`. If no operation
 * has the method, returns the operations of all these patterns. Returns undefined if the API has no such path.
 */
function matchApiPath(path: string, requestMethod: string) {
  const matchedPaths = apiPaths.flatMap(({ pattern, operations: matchedOperations }) => {
    const match = pattern.exec(path);
    return match ? [{ operations: matchedOperations, params: decodeParams(match.groups ?? {}) }] : [];
  });
  const hasMethod = ({ operations: matchedOperations }: (typeof matchedPaths)[number]) =>
    matchedOperations.some(({ method }) => method === requestMethod);
  const [firstMatch] = matchedPaths;
  return (
    matchedPaths.find(hasMethod) ??
    (firstMatch && { ...firstMatch, operations: matchedPaths.flatMap((matchedPath) => matchedPath.operations) })
  );
}

/** Decodes the percent-encoded parameters of a path. Returns a parameter with an invalid encoding unchanged. */
const decodeParams = (params: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)];
      } catch {
        return [name, value];
      }
    }),
  );

/**
 * Authenticates the caller, runs an operation, charges its price and returns the response.
 *
 * @throws ApiError if a check fails, in which case nothing is charged
 */
async function handleOperation(
  operationName: OperationName,
  request: ApiRequest,
  params: Record<string, string>,
  options: ServiceOptions,
): Promise<ApiResponse> {
  const { context, keys } = options;
  // Check the database lock before the API key. If another process has taken over the database, this process may read
  // outdated keys.
  context.database.checkLock();
  const caller = keys.authenticate(request.headers.get('authorization') ?? undefined);
  const {
    scope: requiredScope,
    creditHeaders,
    price: { credits, perItems } = { credits: 0 },
  } = operationPolicies[operationName];
  if (requiredScope !== undefined && !caller.scopes.includes(requiredScope)) {
    const message = `This API key lacks the scope ${requiredScope}, which ${operationName} needs.`;
    throw new ApiError(403, 'missing_scope', message, { requiredScope });
  }
  const { origin, searchParams } = new URL(request.url);
  const { method, requiresCredits } = operations[operationName];
  const requestBody = method === 'POST' ? await readJsonBody(request) : {};
  const presenter = createRequestPresenter(origin, options);
  const operationCall = { params, query: searchParams, body: requestBody, caller, presenter };
  const { database, meter } = context;
  return database.transaction(() => {
    const { body, itemCount } = operationHandlers[operationName](operationCall, context);
    const isMetered = requiresCredits && !caller.unmetered;
    const price = isMetered ? credits * (perItems ? Math.ceil(itemCount / perItems) : 1) : 0;
    const remainingCredits = isMetered ? meter.charge(caller, price) : undefined;
    const headerValueGetters = {
      Charged: () => price,
      Remaining: () => remainingCredits ?? meter.getCreditStatus(caller).credits ?? 0,
    };
    const headers = creditHeaders.map((header) => [
      `X-Service-Credits-${header}`,
      String(headerValueGetters[header]()),
    ]);
    headers.push(['X-Service-Request-Id', options.createRequestId()]);
    return createJsonResponse(200, Object.fromEntries(headers), body);
  });
}

/**
 * Creates the presenter for a request. Its URLs start with `baseUrls`, or with the origin of the request by default.
 */
export const createRequestPresenter = (
  origin: string,
  { context, baseUrls, htmlPagesPath = '' }: ServiceOptions,
): Presenter => createPresenter(context, baseUrls ?? { app: `${origin}${htmlPagesPath}`, media: `${origin}/media` });

/**
 * Creates an error response in the format of the API document. Passes an unexpected error to `onError`, and keeps its
 * details out of the response.
 */
export function createErrorResponse(
  error: unknown,
  { createRequestId, onError }: ServiceOptions,
  headers: Record<string, string> = {},
): ApiResponse {
  const isApiError = error instanceof ApiError;
  if (!isApiError) onError?.(error);
  const internalError = {
    status: 500,
    code: 'internal_error',
    message: 'The library failed to answer; its log says why.',
    details: undefined,
  };
  const { status, code, message, details } = isApiError ? error : internalError;
  const requestId = createRequestId();
  const body: ErrorBody = { error: { code, message, requestId, ...(details !== undefined && { details }) } };
  return createJsonResponse(status, { ...headers, 'X-Service-Request-Id': requestId }, body);
}

/** The parts of an authenticated request that an operation handler needs. */
type OperationCall = {
  /** The decoded path parameters, e.g. the id of an ad. */
  params: Record<string, string>;
  query: URLSearchParams;
  /** The parsed request body, or an empty object if the request has no body. */
  body: Record<string, unknown>;
  caller: Caller;
  presenter: Presenter;
};

/** The body of a successful response, and the number of items in it, on which the price may depend. */
type OperationResult = { body: unknown; itemCount: number };

/**
 * Handles an operation of the API. The operation and its charge share one transaction, so the caller is charged only if
 * the operation succeeds.
 */
type OperationHandler = (call: OperationCall, context: ServiceContext) => OperationResult;

const operationHandlers: Record<OperationName, OperationHandler> = {
  whoami: ({ caller }) => createSingleItemResult(createIdentity(caller)),
  getAccount({ caller: { userId, billingUserId, planId, isTeamMember, subscriptionStatus } }) {
    const account: Account = { userId, billingUserId, planId, isTeamMember, subscriptionStatus };
    return createSingleItemResult(account);
  },
  getCredits: ({ caller }, { meter }) => createSingleItemResult(meter.getCreditStatus(caller)),
  listCollections: ({ caller }, { collections }) =>
    createSingleItemResult({ items: collections.listCollections(caller) }),
  listCollectionItems({ params, query, caller, presenter }, { collections, cursors }) {
    const id = parseUuid('The collection id', params.collectionId ?? '').toLowerCase();
    const { itemType, limit, cursor } = parseCollectionItemsQuery(query);
    const listName = `items ${id} ${itemType}`;
    const [previousPosition] =
      cursor === undefined ? [] : (cursors.decode(listName, cursor) as [previousPosition: number]);
    const { rowNumber, collection } = collections.getCollection(caller, id);
    const { rowNumbers, hasMore, position } = collections.listItems(rowNumber, itemType, limit, previousPosition);
    const nextCursor = hasMore ? cursors.encode(listName, [position]) : null;
    const items = presenter.readListItems(itemType, rowNumbers);
    return { body: { collection, itemType, items, cursor: nextCursor, hasMore }, itemCount: items.length };
  },
  addCollectionItem({ params, body, caller }, { collections, recordStore }) {
    const id = parseUuid('The collection id', params.collectionId ?? '');
    const { itemType, itemId } = parseCollectionItem(body);
    const { rowNumber } = collections.getCollection(caller, id);
    const added = collections.addItem(rowNumber, itemType, requireRowNumber(recordStore, itemType, itemId));
    // Read the collection again, because its item counts have changed.
    const { collection } = collections.getCollection(caller, id);
    return createSingleItemResult({ collection, itemType, itemId, added });
  },
  searchAds: (call, context) => searchRecords('ads', call, context),
  searchPages: (call, context) => searchRecords('pages', call, context),
  getAd({ params, presenter }, { recordStore }) {
    const id = parseUuid('The ad id', params.adId ?? '');
    return createSingleItemResult(presenter.readItems('ads', [requireRowNumber(recordStore, 'ads', id)])[0]);
  },
  getPage({ params, presenter }, { recordStore }) {
    const id = parsePageId(params.pageId ?? '');
    return createSingleItemResult(presenter.readItems('pages', [requireRowNumber(recordStore, 'pages', id)])[0]);
  },
};

const createSingleItemResult = (body: unknown): OperationResult => ({ body, itemCount: 1 });

/**
 * Returns the database row number of an ad or advertiser page.
 *
 * @throws ApiError 404 if the library has no record with this id
 */
function requireRowNumber(recordStore: RecordStore, itemType: ItemType, id: string): number {
  const rowNumber = recordStore.findRowNumber(itemType, id);
  if (rowNumber === undefined) throw createNotFoundError(itemType === 'ads' ? 'ad' : 'page', id);
  return rowNumber;
}

function searchRecords(
  itemType: ItemType,
  { body, presenter }: OperationCall,
  context: ServiceContext,
): OperationResult {
  const { rowNumbers, ...envelope } = runSearch(parseSearchRequest(itemType, body, context), context);
  return { body: { items: presenter.readListItems(itemType, rowNumbers), ...envelope }, itemCount: rowNumbers.length };
}

/**
 * Creates the response of the `whoami` operation. Without a plan or subscription, `planId` or `subscriptionStatus` is
 * the text `none`. In the response of `getAccount`, these fields are null instead.
 */
function createIdentity(caller: Caller): Identity {
  const { userId, billingUserId, name, emailAddress, isTeamMember, keyId, keyName, keyPrefix } = caller;
  const [planId, subscriptionStatus] = [caller.planId ?? 'none', caller.subscriptionStatus ?? 'none'];
  return {
    authenticated: true,
    authSource: 'api_key',
    user: { userId, billingUserId, name, emailAddress, planId, isTeamMember, subscriptionStatus },
    apiKey: { id: keyId, name: keyName, keyPrefix },
    oauthClientId: null,
  };
}
