import { randomBytes, randomUUID } from 'node:crypto';
import { Hono } from 'hono';
import { type OperationName, operations } from '../../api/operations.ts';
import type { Account, ErrorBody, Identity, ItemType } from '../../api/schemas.ts';
import { type Database, openDatabase } from '../database/database.ts';
import { type OtherRecords, type Records, recordsIn } from '../database/records.ts';
import { openStoredPictures, type StoredPictures } from '../import/stored-pictures.ts';
import { libraryFilters } from '../search/filters.ts';
import { readSearch, runSearch } from '../search/search-request.ts';
import { type Caller, collectionsIn, type Keys, keysIn, meterIn, type Random, terms } from './accounts.ts';
import { type LibraryBases, type Presenter, presenterOf } from './presenter.ts';
import { ApiError, cursorsWith, notFound, readBody, readItem, readListQuery, readPageId, readUuid } from './request.ts';

export type LibraryOptions = {
  /** A file, or `:memory:`. */
  database: string;
  /** Unix milliseconds. */
  now: () => number;
  /** The start of the library's own addresses, where it differs from the address of the request. */
  bases?: LibraryBases;
  random?: Random;
  /** Throws when another process may have taken over the file. */
  checkLock?: () => void;
  /** Where people may look at the library in a browser, without a key: `/p/` and a word that nobody guesses. */
  pagesPath?: string | undefined;
  /** Present if the library has demo data. Its pages say so. Its file is deleted while it is open. */
  demo?: {
    /** Reads a picture by its name. */
    picture: StoredPictures['readPicture'];
    records: OtherRecords;
    /** The time from which dates in the database are counted, in Unix milliseconds. */
    dateOrigin: number;
  };
  /** Receives errors that callers only see as a 500. */
  onError?: ((error: unknown) => void) | undefined;
};

export type OpenLibrary = Awaited<ReturnType<typeof openLibrary>>;
export type Library = Omit<OpenLibrary, 'context'>;

/**
 * Opens a local library. No other process may use the file: the commands lock it first (database/database.ts).
 * @throws Error when the file is no library, or one of another version, or cannot be written
 */
export async function openLibrary(options: LibraryOptions) {
  const { now, random = { bytes: randomBytes, uuid: randomUUID } } = options;
  const { checkLock = () => {}, demo } = options;
  const dateOrigin = demo?.dateOrigin ?? 0;
  const database = await openDatabase(options.database, { checkLock, isTemporary: demo !== undefined, dateOrigin });
  const context = contextOf(database, { now, random, demo });
  const keys = keysIn({ ...context, random });
  const service = serviceOf({ ...options, context, keys, requestId: random.uuid });
  const sizes = 'SELECT (SELECT count(*) FROM ads) AS ads, (SELECT count(*) FROM pages) AS pages';
  return {
    fetch: async (request: Request): Promise<Response> => service.fetch(request),
    keys,
    import: async (source: AsyncIterable<string | Uint8Array>) =>
      (await import('../import/import.ts')).importRecords(context, source),
    pictures: context.pictures,
    size: () => database.get<{ ads: number; pages: number }>(sizes) ?? { ads: 0, pages: 0 },
    close: database.close,
    context,
  };
}

export type ServiceContext = ReturnType<typeof contextOf>;

type ContextParts = Required<Pick<LibraryOptions, 'now' | 'random'>> & { demo: LibraryOptions['demo'] | undefined };

const contextOf = (database: Database, { now, random, demo }: ContextParts) => ({
  database,
  records: recordsIn(database, demo?.records),
  pictures: openStoredPictures(database, now),
  collections: collectionsIn(database, random.uuid),
  cursors: cursorsWith(cursorSecret(database, random)),
  meter: meterIn(database, now),
  now,
});

/** Stored in the database, so that cursors outlive the process. */
function cursorSecret(database: Database, random: Random): string {
  const fresh = Buffer.from(random.bytes(32)).toString('hex');
  database.run("INSERT OR IGNORE INTO secrets VALUES ('cursor', ?)", [fresh]);
  return database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'cursor'")?.value ?? fresh;
}

type ServiceParts = LibraryOptions & { context: ServiceContext; keys: Keys; requestId: () => string };

/**
 * The HTTP API of the document as a fetch handler. The first check that fails decides the answer: path and method
 * (404, 405), lock (503), key (401), scope (403), request (422), existence (404), subscription, credits and usage
 * windows (402, 429). Only a 200 is charged.
 */
function serviceOf(parts: ServiceParts): Hono {
  const app = new Hono({ strict: false });
  for (const path of new Set(Object.values(operations).map((operation) => operation.path))) {
    const served = Object.values(operations).filter((operation) => operation.path === path);
    // Hono's own rule would answer HEAD by running GET, and so charge for a body that nobody sees.
    app.all(path.replace(/\{(\w+)\}/g, ':$1'), ({ req }) => {
      const operation = served.find(({ method }) => method === req.method);
      if (operation) return answer(operation.name, req.raw, req.param() as Record<string, string>, parts);
      const allowed = served.map(({ method }) => method);
      const message = `This path takes ${allowed.join(' and ')}; got ${req.method}.`;
      return errorResponse(new ApiError(405, 'method_not_allowed', message), parts, { Allow: allowed.join(', ') });
    });
  }
  app.get('/filters.json', () => Response.json(libraryFilters));
  // Pictures hold no secret and need no key.
  app.get('/media/:from{demo|kept}/:file', async ({ req }) => {
    const { from, file } = req.param();
    const picture = await (from === 'demo' ? parts.demo?.picture : parts.context.pictures.readPicture)?.(file);
    if (picture === undefined) throw notFound('picture', file.slice(0, 100));
    const sealed = { 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': "default-src 'none'; sandbox" };
    return new Response(picture.bytes as Uint8Array<ArrayBuffer>, {
      headers: { 'Content-Type': picture.type, ...sealed },
    });
  });
  const { pagesPath } = parts;
  for (const path of pagesPath === undefined ? [] : ['', '/ads/:id', '/pages/:id'])
    app.get(`${pagesPath}${path}`, ({ req }) => showPage(req.raw, req.param('id'), parts));
  app.notFound(({ req }) => {
    const message = `Nothing is served at ${req.path.slice(0, 200)}.`;
    return errorResponse(new ApiError(404, 'no_such_path', message), parts);
  });
  app.onError((error) => errorResponse(error, parts));
  return app;
}

async function answer(name: OperationName, request: Request, params: Record<string, string>, parts: ServiceParts) {
  const { context, keys } = parts;
  // First: a process that lost its database must not judge keys by stale data.
  context.database.checkLock();
  const caller = keys.authenticate(request.headers.get('authorization') ?? undefined);
  const { scope: requiredScope, states, price: { credits, perItems } = { credits: 0 } } = terms[name];
  if (requiredScope !== undefined && !caller.scopes.includes(requiredScope)) {
    const message = `This API key lacks the scope ${requiredScope}, which ${name} needs.`;
    throw new ApiError(403, 'missing_scope', message, { requiredScope });
  }
  const { origin, searchParams: query } = new URL(request.url);
  const { method, gated } = operations[name];
  const given = method === 'POST' ? await readBody(request) : {};
  const call = { params, query, body: given, caller, present: presenterAt(origin, parts) };
  const { database, meter } = context;
  return database.transaction(() => {
    const { body, items } = handlers[name](call, context);
    const isMetered = gated && !caller.unmetered;
    const price = isMetered ? credits * (perItems ? Math.ceil(items / perItems) : 1) : 0;
    const left = isMetered ? meter.charge(caller, price) : undefined;
    const amount = { Charged: () => price, Remaining: () => left ?? meter.status(caller).credits ?? 0 };
    const headers = states.map((one) => [`X-Service-Credits-${one}`, String(amount[one]())]);
    headers.push(['X-Service-Request-Id', parts.requestId()]);
    return Response.json(body, { headers: Object.fromEntries(headers) });
  });
}

const presenterAt = (origin: string, { context, bases, pagesPath = '' }: ServiceParts): Presenter =>
  presenterOf(context, bases ?? { app: `${origin}${pagesPath}`, media: `${origin}/media` });

/** `/`, `/ads/<id>` and `/pages/<id>` below the path of the pages. */
async function showPage(request: Request, id: string | undefined, parts: ServiceParts) {
  const { context, demo, pagesPath = '' } = parts;
  context.database.checkLock();
  const [{ listPage, missingPage, policy }, { advertiserPage, adPage }] = await Promise.all([
    import('./pages.tsx'),
    import('./record-pages.tsx'),
  ]);
  const { origin, pathname, searchParams } = new URL(request.url);
  const { read } = presenterAt(origin, parts);
  const shown = { ...context, origin, pagesPath, read, isDemo: demo !== undefined };
  const kind = pathname.startsWith(`${pagesPath}/pages/`) ? 'pages' : 'ads';
  const number = id === undefined ? undefined : context.records.find(kind, id);
  const [record] = number === undefined ? [] : read(kind, [number]);
  const pageOf = kind === 'ads' ? adPage : advertiserPage;
  const page = id === undefined ? listPage(searchParams, shown) : record && (await pageOf(record, shown, searchParams));
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': `${policy}; frame-ancestors 'none'`,
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  };
  return new Response(page ?? missingPage(shown), { status: page === undefined ? 404 : 200, headers });
}

function errorResponse(error: unknown, { requestId, onError }: ServiceParts, headers: Record<string, string> = {}) {
  const isKnown = error instanceof ApiError;
  if (!isKnown) onError?.(error);
  const hidden = { status: 500, code: 'internal_error', message: 'The library failed to answer; its log says why.' };
  const { status, code, message, details } = isKnown ? error : { ...hidden, details: undefined };
  const id = requestId();
  const body: ErrorBody = { error: { code, message, requestId: id, ...(details !== undefined && { details }) } };
  return Response.json(body, { status, headers: { ...headers, 'X-Service-Request-Id': id } });
}

type OperationCall = {
  params: Record<string, string>;
  query: URLSearchParams;
  /** Empty where the operation takes none. */
  body: Record<string, unknown>;
  caller: Caller;
  present: Presenter;
};

/** The body of a 200, and how many of its items the price counts. */
type OperationResult = { body: unknown; items: number };

/** Runs in one transaction with the charge, so an error is never charged and a charge never lost. */
type Handler = (call: OperationCall, context: ServiceContext) => OperationResult;

const handlers: Record<OperationName, Handler> = {
  whoami: ({ caller }) => single(identity(caller)),
  getAccount({ caller: { userId, billingUserId, planId, isTeamMember, subscriptionStatus } }) {
    const account: Account = { userId, billingUserId, planId, isTeamMember, subscriptionStatus };
    return single(account);
  },
  getCredits: ({ caller }, { meter }) => single(meter.status(caller)),
  listCollections: ({ caller }, { collections }) => single({ items: collections.list(caller) }),
  listCollectionItems({ params, query, caller, present }, { collections, cursors }) {
    const id = readUuid('The collection id', params.collectionId ?? '').toLowerCase();
    const { itemType, limit, cursor } = readListQuery(query);
    const list = `items ${id} ${itemType}`;
    const [after] = cursor === undefined ? [] : (cursors.read(list, cursor) as [after: number]);
    const { number, collection } = collections.open(caller, id);
    const { numbers, hasMore, position } = collections.items(number, itemType, limit, after);
    const next = hasMore ? cursors.write(list, [position]) : null;
    const items = present.list(itemType, numbers);
    return { body: { collection, itemType, items, cursor: next, hasMore }, items: items.length };
  },
  addCollectionItem({ params, body, caller }, { collections, records }) {
    const id = readUuid('The collection id', params.collectionId ?? '');
    const { itemType, itemId } = readItem(body);
    const { number } = collections.open(caller, id);
    const added = collections.add(number, itemType, found(records, itemType, itemId));
    const { collection } = collections.open(caller, id);
    return single({ collection, itemType, itemId, added });
  },
  searchAds: (call, context) => searchRecords('ads', call, context),
  searchPages: (call, context) => searchRecords('pages', call, context),
  getAd({ params, present }, { records }) {
    const id = readUuid('The ad id', params.adId ?? '');
    return single(present.read('ads', [found(records, 'ads', id)])[0]);
  },
  getPage({ params, present }, { records }) {
    const id = readPageId(params.pageId ?? '');
    return single(present.read('pages', [found(records, 'pages', id)])[0]);
  },
};

const single = (body: unknown): OperationResult => ({ body, items: 1 });

function found(records: Records, kind: ItemType, id: string): number {
  const number = records.find(kind, id);
  if (number === undefined) throw notFound(kind === 'ads' ? 'ad' : 'page', id);
  return number;
}

function searchRecords(kind: ItemType, { body, present }: OperationCall, context: ServiceContext): OperationResult {
  const { numbers, ...rest } = runSearch(readSearch(kind, body, context), context);
  return { body: { items: present.list(kind, numbers), ...rest }, items: numbers.length };
}

/** Unlike in Account, plan and subscription are never null here: if they are missing, they are `none`. */
function identity(caller: Caller): Identity {
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
