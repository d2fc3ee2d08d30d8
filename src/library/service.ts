import { Hono } from 'hono';
import { type OperationName, operations } from '../api/call.ts';
import type { ErrorBody } from '../api/schemas.ts';
import { ApiError, notFound } from './api-error.ts';
import type { Caller } from './caller.ts';
import type { KeyRing } from './keys.ts';
import { creditHeaders, priceOf } from './meter.ts';
import { openApiDocument } from './openapi.ts';
import { handlers, type OperationResult } from './operations.ts';
import { presenterFor } from './presenter.ts';
import type { ServiceContext } from './service-context.ts';

export type ServiceParts = {
  context: ServiceContext;
  keys: KeyRing;
  requestId: () => string;
  /** Receives unexpected errors; callers only see a 500. */
  onError: (error: unknown) => void;
};

/** The operations, with their paths in Hono's form. */
const endpoints = Object.values(operations).map(({ path, ...operation }) => ({
  ...operation,
  path: path.replace(/\{(\w+)\}/g, ':$1'),
}));

/**
 * The HTTP API of the document as a fetch handler. The first check that fails decides the answer: path and method
 * (404, 405), lock (503), key (401), scope (403), request (422), existence (404), subscription, credits and usage
 * windows (402, 429). Only a 200 is charged.
 */
export function serviceOf(parts: ServiceParts): Hono {
  const app = new Hono({ strict: false });
  for (const { name, method, path } of endpoints)
    app.on(method, path, ({ req }) => answer(name, req.raw, req.param() as Record<string, string>, parts));
  for (const path of new Set(endpoints.map((endpoint) => endpoint.path))) {
    const allowed = endpoints.flatMap((endpoint) => (endpoint.path === path ? endpoint.method : []));
    app.all(path, ({ req }) => errorResponse(wrongMethod(req.method, allowed), parts, { Allow: allowed.join(', ') }));
  }
  app.get('/openapi.json', ({ req }) => Response.json(openApiDocument(parts.context.config, new URL(req.url).origin)));
  app.get('/media/ads/:adId/:file{.+\\.jpg}', async ({ req }) => {
    const picture = await pictureOfAd(req.param('adId'), req.param('file'), parts);
    return new Response(picture, { headers: { 'Content-Type': 'image/webp', 'X-Content-Type-Options': 'nosniff' } });
  });
  app.notFound(({ req }) => errorResponse(noSuchPath(req.path), parts));
  app.onError((error) => errorResponse(error, parts));
  return app;
}

const wrongMethod = (method: string, allowed: string[]) =>
  new ApiError(405, 'method_not_allowed', `This path takes ${allowed.join(' and ')}; got ${method}.`);

const noSuchPath = (path: string) =>
  new ApiError(404, 'no_such_path', `Nothing is served at ${path.slice(0, 200)}. /openapi.json describes what is.`);

async function answer(name: OperationName, request: Request, params: Record<string, string>, parts: ServiceParts) {
  // Hono answers HEAD by running GET, which would charge for a body that nobody sees.
  const { method } = operations[name];
  if (request.method !== method) return errorResponse(wrongMethod(request.method, [method]), parts, { Allow: method });
  const { context, keys } = parts;
  // First: a process that lost its database must not judge keys by stale data.
  context.database.checkLock();
  const caller = keys.authenticate(request.headers.get('authorization') ?? undefined);
  requireScope(caller, name, context);
  const present = presenterFor(context.records, context.config, new URL(request.url).origin);
  const run = await handlers[name]({ request, params, caller, present }, context);
  const { body, headers } = context.database.transaction(() => paid(name, run(), caller, context));
  return Response.json(body, { headers: { ...headers, 'X-Service-Request-Id': parts.requestId() } });
}

function requireScope(caller: Caller, name: OperationName, { config }: ServiceContext): void {
  const scope = config.scopes[name];
  if (scope === undefined || caller.scopes.includes(scope)) return;
  throw new ApiError(403, 'missing_scope', `This API key lacks the scope ${scope}, which ${name} needs.`, {
    requiredScope: scope,
  });
}

/** Charges for an answer and adds the credit headers that the document lists for the operation. */
function paid(
  name: OperationName,
  { body, items }: OperationResult,
  caller: Caller,
  { config, meter }: ServiceContext,
) {
  const headers = creditHeaders[name];
  const isMetered = operations[name].gated && !caller.unmetered;
  const price = isMetered ? priceOf(config.prices[name], items) : 0;
  const remaining = isMetered ? meter.charge(caller, price) : headers.remaining && (meter.status(caller).credits ?? 0);
  return {
    body,
    headers: {
      ...(headers.charged && { 'X-Service-Credits-Charged': String(price) }),
      ...(headers.remaining && { 'X-Service-Credits-Remaining': String(remaining) }),
    },
  };
}

/** Pictures of the demo's ads. They hold no secret and need no key. */
async function pictureOfAd(adId: string, file: string, { context: { records } }: ServiceParts) {
  const number = records.find('ads', adId);
  const [json] = number === undefined ? [] : records.read('ads', [number]);
  const { pictureOf, readPicture } = await import('./demo/pictures.ts');
  const picture = json && pictureOf(JSON.parse(json), file);
  if (!picture) throw notFound('picture', `${adId}/${file}`);
  return readPicture(picture);
}

function errorResponse(
  error: unknown,
  { requestId, onError }: ServiceParts,
  headers: Record<string, string> = {},
): Response {
  if (!(error instanceof ApiError)) onError(error);
  const { status, code, message, details } =
    error instanceof ApiError
      ? error
      : {
          status: 500,
          code: 'internal_error',
          message: 'The library failed to answer; its log says why.',
          details: undefined,
        };
  const id = requestId();
  const body: ErrorBody = { error: { code, message, requestId: id, ...(details !== undefined && { details }) } };
  return Response.json(body, { status, headers: { ...headers, 'X-Service-Request-Id': id } });
}
