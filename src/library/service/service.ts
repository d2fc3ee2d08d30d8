import { randomBytes, randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import { type OperationName, operations } from '../../api/operations.ts';
import type { Account, ErrorBody, Identity, ItemType } from '../../api/schemas.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { createRecordStore, type ExternalRecords, type RecordStore } from '../database/records.ts';
import type { ImportOptions } from '../import/import.ts';
import { openStoredPictures, type StoredPictures } from '../import/stored-pictures.ts';
import { libraryFilters } from '../search/filters.ts';
import { parseSearchRequest, runSearch } from '../search/search-request.ts';
import {
  type Caller,
  createCollectionStore,
  createCreditMeter,
  createKeyStore,
  type KeyStore,
  operationRules,
  type RandomSource,
} from './accounts.ts';
import { createPresenter, type LibraryBaseUrls, type Presenter } from './presenter.ts';
import {
  ApiError,
  type ApiRequest,
  createCursorCodec,
  createNotFoundError,
  parseCollectionItem,
  parseCollectionItemsQuery,
  parsePageId,
  parseUuid,
  readJsonBody,
} from './request.ts';

/** The options of `openLibrary`. */
export type LibraryOptions = {
  /** The path of the database file, or `:memory:` for a database in memory. */
  database: string;
  /** Returns the current time in Unix milliseconds. */
  now: () => number;
  /** The base URLs of the HTML pages and pictures. By default, they start with the origin of the request. */
  baseUrls?: LibraryBaseUrls;
  /** The source of random ids and secrets. By default, this is Node's cryptographic random generator. */
  random?: RandomSource;
  /** Throws an error if another process may have started to use the database file. */
  checkLock?: () => void;
  /**
   * The path of the HTML pages, which need no API key. The path consists of `/p/` and a random word that nobody can
   * guess. Without this option, the library serves no HTML pages.
   */
  pagesPath?: string | undefined;
  /**
   * Only for a library with demo data. Its HTML pages say that the data is fictional, and its database is a temporary
   * file.
   */
  demo?: {
    /** Reads the demo picture with this file name. */
    readPicture: StoredPictures['readPicture'];
    /** A source of ads and advertiser pages whose JSON is not stored in the database. */
    externalRecords: ExternalRecords;
    /** The time in Unix milliseconds to which the dates in the database are relative. */
    dateOrigin: number;
  };
  /** Called for unexpected errors, e.g. to log them. The client only receives status 500 without details. */
  onError?: ((error: unknown) => void) | undefined;
};

/** An open library. Tests and the demo use its `context` to access the database and the stores directly. */
export type OpenLibrary = Awaited<ReturnType<typeof openLibrary>>;

/** The public interface of an open library: its HTTP API, keys, imports and pictures. */
export type Library = Omit<OpenLibrary, 'context'>;

/**
 * Opens a local library. The caller must first lock the file with `lockDatabase`, because two processes must not use it
 * at the same time.
 *
 * @throws Error if the file is not a library, was created by another version, or cannot be written
 */
export async function openLibrary(options: LibraryOptions) {
  const { now, random = { generateBytes: randomBytes, generateUuid: randomUUID } } = options;
  const { checkLock = () => {}, demo } = options;
  const dateOrigin = demo?.dateOrigin ?? 0;
  const database = await openDatabase(options.database, { checkLock, isTemporary: demo !== undefined, dateOrigin });
  const context = createContext(database, { now, random, demo });
  const keys = createKeyStore({ ...context, random });
  const serviceOptions = { ...options, context, keys, createRequestId: random.generateUuid };
  const service = createApp(serviceOptions);
  const countRecordsSql = 'SELECT (SELECT count(*) FROM ads) AS ads, (SELECT count(*) FROM pages) AS pages';
  return {
    /** Handles a request to the library's HTTP API or to one of its HTML pages. */
    fetch: async (request: Request): Promise<Response> => service.fetch(request),
    /**
     * Handles a request to the HTTP API within this process. Avoids the global classes `Request` and `Response`,
     * because their first use loads Node's HTTP client. In demo mode, loading this client would take a tenth of the
     * time of the first call.
     */
    callApi: (request: ApiRequest): Promise<ApiResponse> => handleApiRequest(request, serviceOptions),
    keys,
    /** Imports ads and advertiser pages from a source in any supported format. */
    import: async (source: AsyncIterable<string | Uint8Array>, importOptions?: ImportOptions) =>
      (await import('../import/import.ts')).importRecords(context, source, importOptions),
    /** Starts an import run, which may include several files. Returns the number of the run. */
    startImportRun: async () => (await import('../import/import.ts')).startImportRun(context),
    /**
     * Marks the ads that a saved search no longer finds as gone. `questionName` is the name of the search, and
     * `runNumber` is the number of an import run that has imported all current results of the search. An ad is gone if
     * an earlier import of the search contained the ad, but this run did not.
     */
    completeQuestion: async (completion: { runNumber: number; questionName: string }) =>
      (await import('../import/questions.ts')).completeQuestion(context, completion),
    pictures: context.pictures,
    /** Returns the number of ads and of advertiser pages in the library. */
    countRecords: () => database.get<{ ads: number; pages: number }>(countRecordsSql) ?? { ads: 0, pages: 0 },
    close: database.close,
    context,
  };
}

/** The open database of a library, and the stores of records, keys and collections in it. All requests share them. */
export type ServiceContext = ReturnType<typeof createContext>;

type ContextOptions = Required<Pick<LibraryOptions, 'now' | 'random'>> & { demo: LibraryOptions['demo'] | undefined };

const createContext = (database: Database, { now, random, demo }: ContextOptions) => ({
  database,
  recordStore: createRecordStore(database, demo?.externalRecords),
  pictures: openStoredPictures(database, now),
  collections: createCollectionStore(database, random.generateUuid),
  cursors: createCursorCodec(readCursorSecret(database, random)),
  meter: createCreditMeter(database, now),
  now,
});

/**
 * Returns the secret that signs cursors. The secret is stored in the database, so that cursors stay valid after a
 * restart.
 */
function readCursorSecret(database: Database, random: RandomSource): string {
  const secretRow = database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'cursor'");
  if (secretRow) return secretRow.value;
  const newSecret = Buffer.from(random.generateBytes(32)).toString('hex');
  database.run("INSERT INTO secrets VALUES ('cursor', ?)", [newSecret]);
  return newSecret;
}

/** The options and the open stores of a library, which all HTTP routes use. */
type ServiceOptions = LibraryOptions & { context: ServiceContext; keys: KeyStore; createRequestId: () => string };

/**
 * The paths of the HTTP API, with the operations of each path. The named groups of `pattern` match the path parameters,
 * e.g. `adId`.
 */
const apiPaths = [...new Set(Object.values(operations).map(({ path }) => path))].map((apiPath) => ({
  pattern: new RegExp(`^${apiPath.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}/?$`),
  operations: Object.values(operations).filter(({ path }) => path === apiPath),
}));

/** Creates the Hono app that serves the HTTP API, the pictures and the HTML pages. */
function createApp(options: ServiceOptions): Hono {
  const app = new Hono({ strict: false });
  app.all('/v1/*', async ({ req }) => toWebResponse(await handleApiRequest(req.raw, options)));
  app.get('/filters.json', () => Response.json(libraryFilters));
  // Pictures need no API key, because ads are public anyway.
  app.get('/media/:source{demo|kept}/:file', async ({ req }) => {
    const { source, file } = req.param();
    const readPicture = source === 'demo' ? options.demo?.readPicture : options.context.pictures.readPicture;
    const picture = await readPicture?.(file);
    if (picture === undefined) throw createNotFoundError('picture', file.slice(0, 100));
    return new Response(picture.bytes as Uint8Array<ArrayBuffer>, {
      headers: {
        'Content-Type': picture.mediaType,
        'X-Content-Type-Options': 'nosniff',
        'Content-Security-Policy': "default-src 'none'; sandbox",
      },
    });
  });
  const { pagesPath } = options;
  for (const path of pagesPath === undefined ? [] : ['', '/ads/:id', '/pages/:id'])
    app.get(`${pagesPath}${path}`, ({ req }) => handlePageRequest(req.raw, req.param('id'), options));
  app.notFound(({ req }) => toWebResponse(createErrorResponse(createNoSuchPathError(req.path), options)));
  app.onError((error) => toWebResponse(createErrorResponse(error, options)));
  return app;
}

const createNoSuchPathError = (path: string) =>
  new ApiError(404, 'no_such_path', `Nothing is served at ${path.slice(0, 200)}.`);

/** A response of the HTTP API. The body is JSON text. */
export interface ApiResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

const toWebResponse = ({ status, headers, body }: ApiResponse): Response => new Response(body, { status, headers });

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
async function handleApiRequest(request: ApiRequest, options: ServiceOptions): Promise<ApiResponse> {
  const path = new URL(request.url).pathname;
  try {
    const matchedPath = matchApiPath(path);
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
 * Returns the operations of a path, and the values of the path parameters. Returns undefined if the API has no such
 * path.
 */
function matchApiPath(path: string) {
  for (const { pattern, operations: matchedOperations } of apiPaths) {
    const match = pattern.exec(path);
    if (match) return { operations: matchedOperations, params: decodeParams(match.groups ?? {}) };
  }
  return undefined;
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
  } = operationRules[operationName];
  if (requiredScope !== undefined && !caller.scopes.includes(requiredScope)) {
    const message = `This API key lacks the scope ${requiredScope}, which ${operationName} needs.`;
    throw new ApiError(403, 'missing_scope', message, { requiredScope });
  }
  const { origin, searchParams } = new URL(request.url);
  const { method, requiresCredits } = operations[operationName];
  const requestBody = method === 'POST' ? await readJsonBody(request) : {};
  const presenter = createPresenterFor(origin, options);
  const operationCall = { params, query: searchParams, body: requestBody, caller, presenter };
  const { database, meter } = context;
  return database.transaction(() => {
    const { body, itemCount } = operationHandlers[operationName](operationCall, context);
    const isMetered = requiresCredits && !caller.unmetered;
    const price = isMetered ? credits * (perItems ? Math.ceil(itemCount / perItems) : 1) : 0;
    const remainingCredits = isMetered ? meter.charge(caller, price) : undefined;
    const getHeaderValue = {
      Charged: () => price,
      Remaining: () => remainingCredits ?? meter.getStatus(caller).credits ?? 0,
    };
    const headers = creditHeaders.map((header) => [`X-Service-Credits-${header}`, String(getHeaderValue[header]())]);
    headers.push(['X-Service-Request-Id', options.createRequestId()]);
    return createJsonResponse(200, Object.fromEntries(headers), body);
  });
}

const createPresenterFor = (origin: string, { context, baseUrls, pagesPath = '' }: ServiceOptions): Presenter =>
  createPresenter(context, baseUrls ?? { app: `${origin}${pagesPath}`, media: `${origin}/media` });

/**
 * Handles a request for an HTML page. `pagesPath` leads to the list of ads, and the paths of single ads and advertisers
 * start with `pagesPath`.
 */
async function handlePageRequest(
  request: Request,
  recordId: string | undefined,
  options: ServiceOptions,
): Promise<Response> {
  const { context, demo, pagesPath = '' } = options;
  context.database.checkLock();
  const [{ contentSecurityPolicy, renderListPage, renderMissingPage }, { renderAdPage, renderAdvertiserPage }] =
    await Promise.all([import('./pages.tsx'), import('./record-pages.tsx')]);
  const { origin, pathname, searchParams } = new URL(request.url);
  const { readItems } = createPresenterFor(origin, options);
  const pageContext = { ...context, origin, pagesPath, readItems, isDemo: demo !== undefined };

  async function renderPage(): Promise<string | undefined> {
    if (recordId === undefined) return renderListPage(searchParams, pageContext);
    const itemType = pathname.startsWith(`${pagesPath}/pages/`) ? 'pages' : 'ads';
    const rowNumber = context.recordStore.findRowNumber(itemType, recordId);
    const [record] = rowNumber === undefined ? [] : readItems(itemType, [rowNumber]);
    if (record === undefined) return undefined;
    if (itemType === 'ads') return renderAdPage(record, pageContext);
    return renderAdvertiserPage(record, pageContext, searchParams);
  }

  const html = await renderPage();
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `${contentSecurityPolicy}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  };
  return new Response(html ?? renderMissingPage(pageContext), { status: html === undefined ? 404 : 200, headers });
}

/**
 * Creates an error response in the format of the API document. Passes an unexpected error to `onError`, and keeps its
 * details out of the response.
 */
function createErrorResponse(
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
  whoami: ({ caller }) => createSingleResult(createIdentity(caller)),
  getAccount({ caller: { userId, billingUserId, planId, isTeamMember, subscriptionStatus } }) {
    const account: Account = { userId, billingUserId, planId, isTeamMember, subscriptionStatus };
    return createSingleResult(account);
  },
  getCredits: ({ caller }, { meter }) => createSingleResult(meter.getStatus(caller)),
  listCollections: ({ caller }, { collections }) => createSingleResult({ items: collections.listCollections(caller) }),
  listCollectionItems({ params, query, caller, presenter }, { collections, cursors }) {
    const id = parseUuid('The collection id', params.collectionId ?? '').toLowerCase();
    const { itemType, limit, cursor } = parseCollectionItemsQuery(query);
    const listName = `items ${id} ${itemType}`;
    const [after] = cursor === undefined ? [] : (cursors.decode(listName, cursor) as [after: number]);
    const { rowNumber, collection } = collections.getCollection(caller, id);
    const { rowNumbers, hasMore, position } = collections.listItems(rowNumber, itemType, limit, after);
    const nextCursor = hasMore ? cursors.encode(listName, [position]) : null;
    const items = presenter.listItems(itemType, rowNumbers);
    return { body: { collection, itemType, items, cursor: nextCursor, hasMore }, itemCount: items.length };
  },
  addCollectionItem({ params, body, caller }, { collections, recordStore }) {
    const id = parseUuid('The collection id', params.collectionId ?? '');
    const { itemType, itemId } = parseCollectionItem(body);
    const { rowNumber } = collections.getCollection(caller, id);
    const added = collections.addItem(rowNumber, itemType, requireRowNumber(recordStore, itemType, itemId));
    // Read the collection again, because its item counts have changed.
    const { collection } = collections.getCollection(caller, id);
    return createSingleResult({ collection, itemType, itemId, added });
  },
  searchAds: (call, context) => searchRecords('ads', call, context),
  searchPages: (call, context) => searchRecords('pages', call, context),
  getAd({ params, presenter }, { recordStore }) {
    const id = parseUuid('The ad id', params.adId ?? '');
    return createSingleResult(presenter.readItems('ads', [requireRowNumber(recordStore, 'ads', id)])[0]);
  },
  getPage({ params, presenter }, { recordStore }) {
    const id = parsePageId(params.pageId ?? '');
    return createSingleResult(presenter.readItems('pages', [requireRowNumber(recordStore, 'pages', id)])[0]);
  },
};

const createSingleResult = (body: unknown): OperationResult => ({ body, itemCount: 1 });

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
  return { body: { items: presenter.listItems(itemType, rowNumbers), ...envelope }, itemCount: rowNumbers.length };
}

/**
 * Creates the response of the operation `whoami`. Without a plan or subscription, `planId` or `subscriptionStatus` is
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
