import { Hono } from 'hono';
import type { ErrorBody } from '../api/schemas.ts';
import type { Caller } from './caller.ts';
import { endpoints, type OperationName, operationNames } from './endpoints.ts';
import type { KeyRing } from './keys.ts';
import { drawAd, drawLogo } from './media.ts';
import { priceOf } from './meter.ts';
import { openApiDocument } from './openapi.ts';
import { type Answer, operations } from './operations.ts';
import { presenterFor } from './presenter.ts';
import { notFound, Refusal } from './refusal.ts';
import type { Shop } from './shop.ts';

export type ServiceParts = {
  shop: Shop;
  keys: KeyRing;
  requestId: () => string;
  /** Told of what should not happen; the caller only sees a 500. */
  onError: (error: unknown) => void;
};

/**
 * The HTTP API of the document as a fetch handler. Checks run in this order, and the first that fails answers: path and
 * method (404, 405), key (401), scope (403), request (422), existence (404), subscription, credits and windows
 * (402, 429). Nothing is charged unless the answer is 200.
 */
export function serviceOf(parts: ServiceParts): Hono {
  const app = new Hono({ strict: false });
  for (const name of operationNames) {
    const { method, path } = endpoints[name];
    app.on(method, path, ({ req }) => answer(name, req.raw, req.param() as Record<string, string>, parts));
  }
  for (const path of new Set(operationNames.map((name) => endpoints[name].path))) {
    const allowed = operationNames.flatMap((name) => (endpoints[name].path === path ? endpoints[name].method : []));
    app.all(path, ({ req }) => refused(wrongMethod(req.method, allowed), parts, { Allow: allowed.join(', ') }));
  }
  app.get('/openapi.json', ({ req }) => Response.json(openApiDocument(parts.shop.config, new URL(req.url).origin)));
  app.get('/media/ads/:adId/:file{.+\\.svg}', ({ req }) =>
    picture(req.param('adId'), req.param('file'), req.url, parts),
  );
  app.notFound(({ req }) => refused(noSuchPath(req.path), parts));
  app.onError((error) => refused(error, parts));
  return app;
}

const wrongMethod = (method: string, allowed: string[]) =>
  new Refusal(405, 'method_not_allowed', `This path takes ${allowed.join(' and ')}; got ${method}.`);

const noSuchPath = (path: string) =>
  new Refusal(404, 'no_such_path', `Nothing is served at ${path.slice(0, 200)}. /openapi.json describes what is.`);

async function answer(name: OperationName, request: Request, params: Record<string, string>, parts: ServiceParts) {
  // Hono answers HEAD by running GET: a caller that sees no body must not pay for one.
  const { method } = endpoints[name];
  if (request.method !== method) return refused(wrongMethod(request.method, [method]), parts, { Allow: method });
  const { shop, keys } = parts;
  // First: a process that lost its database knows neither its keys nor what is in it any more.
  shop.database.checkLease();
  const caller = keys.authenticate(request.headers.get('authorization') ?? undefined);
  requireScope(caller, name, shop);
  const present = presenterFor(shop.records, shop.config, new URL(request.url).origin);
  const run = await operations[name]({ request, params, caller, present }, shop);
  const { body, headers } = shop.database.transaction(() => paid(name, run(), caller, shop));
  return Response.json(body, { headers: { ...headers, 'X-Service-Request-Id': parts.requestId() } });
}

function requireScope(caller: Caller, name: OperationName, { config }: Shop): void {
  const scope = config.scopes[name];
  if (scope === undefined || caller.scopes.includes(scope)) return;
  throw new Refusal(403, 'missing_scope', `This API key lacks the scope ${scope}, which ${name} needs.`, {
    requiredScope: scope,
  });
}

/** Takes the price of an answer, and gives it the credit headers that the document lists for its operation. */
function paid(name: OperationName, { body, items }: Answer, caller: Caller, { config, meter }: Shop) {
  const { gated, headers } = endpoints[name];
  const price = gated ? priceOf(config.prices[name], items) : 0;
  const remaining = gated ? meter.charge(caller, price) : headers.remaining && (meter.status(caller).credits ?? 0);
  return {
    body,
    headers: {
      ...(headers.charged && { 'X-Service-Credits-Charged': String(price) }),
      ...(headers.remaining && { 'X-Service-Credits-Remaining': String(remaining) }),
    },
  };
}

/** The library's own media, which carry no secret and take no key. */
function picture(adId: string, file: string, url: string, { shop: { records } }: ServiceParts): Response {
  const number = records.find('ads', adId);
  const [json] = number === undefined ? [] : records.read('ads', [number]);
  if (!json || !/^(logo|\d{1,3})\.svg$/.test(file)) throw notFound('picture', `${adId}/${file}`);
  const ad = JSON.parse(json);
  const drawn =
    file === 'logo.svg' ? drawLogo(ad) : drawAd(ad, Number.parseInt(file, 10), new URL(url).searchParams.has('play'));
  // The words in it are an advertiser's: should anything ever slip through the escaping, it must not run.
  const headers = { 'Content-Security-Policy': "default-src 'none'; sandbox", 'X-Content-Type-Options': 'nosniff' };
  return new Response(drawn, { headers: { ...headers, 'Content-Type': 'image/svg+xml' } });
}

function refused(error: unknown, { requestId, onError }: ServiceParts, headers: Record<string, string> = {}): Response {
  if (!(error instanceof Refusal)) onError(error);
  const { status, code, message, details } =
    error instanceof Refusal
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
