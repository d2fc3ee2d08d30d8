import { getConnInfo } from '@hono/node-server/conninfo';
import { type Context, Hono } from 'hono';
import type { Credentials } from '../../api/client.ts';
import type { Log, OnCall } from '../../log/log.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { type CallLimits, LimitedCalls } from '../call-limits.ts';
import { isToolCall, messagesIn } from '../messages.ts';
import type { AuthRateLimit } from './auth-rate-limit.ts';
import { createDrain } from './drain.ts';
import { serveBothEras } from './eras.ts';
import type { Metrics } from './metrics.ts';
import { readJson } from './read-json.ts';
import { refuse } from './refuse.ts';
import { type Authenticated, createTenantIds, requireApiKey } from './require-api-key.ts';
import {
  type AllowedNames,
  corsFor,
  validateHostAndOrigin,
  validateHostUnlessAddress,
} from './validate-host-and-origin.ts';

export interface HttpOptions {
  catalog: Catalog;
  log: Log;
  now: () => number;
  onCall: OnCall;
  allowed: AllowedNames;
  /** Whose key a call is made with: the caller's own, or in demo mode one for all. */
  callers: { authRateLimit: AuthRateLimit } | { demo: Credentials };
  /** In demo mode, answers requests for the pictures of ads. */
  pictures?: ((request: Request) => Promise<Response>) | undefined;
  limits: CallLimits;
  metrics?: Metrics | undefined;
  /** What all replicas share, if anything. */
  replicas?: Replicas | undefined;
}

export interface Replicas {
  /** Makes tenant ids the same in all of them. */
  tenantSecret: string;
  /** Whether the shared state can be reached. */
  isUp(): boolean;
}

export interface HttpApp {
  fetch: Hono<Authenticated>['fetch'];
  /** Refuses new requests; resolves when the running ones are answered. */
  drain(): Promise<void>;
}

/**
 * Streamable HTTP without sessions: any replica can answer any request, in the revision and with the key of that
 * request. Only the answers that are cached for the key outlive it.
 */
export function createHttpApp(options: HttpOptions): HttpApp {
  const { catalog, log, metrics, allowed, callers, pictures, replicas } = options;
  const calls = new LimitedCalls(catalog, options);
  const serve = serveBothEras(calls.catalog, (error) => log.debug('refused', { error: error.message }));
  const drain = createDrain();
  const validate = validateHostAndOrigin(allowed);

  const app = new Hono<Authenticated>();
  for (const probe of ['/healthz', '/readyz']) app.use(probe, validateHostUnlessAddress(allowed));
  app.get('/healthz', ({ json }) => json({ status: 'ok', version: catalog.serverInfo.version }));
  app.get('/readyz', ({ json }) => {
    if (drain.hasBegun()) return json({ status: 'draining' }, 503);
    return replicas?.isUp() === false ? json({ status: 'state unavailable' }, 503) : json({ status: 'ready' });
  });
  if (metrics) {
    metrics.show(() => calls.counts());
    if (replicas) metrics.showState(replicas.isUp);
    app.get('/metrics', validate, metrics.page);
    app.use('/mcp', metrics.answers);
  }
  if (pictures) app.get('/media/*', validate, drain.middleware, ({ req }) => pictures(new Request(req.url)));
  app.use('/mcp', validate, drain.middleware);
  if (allowed.allowedOrigins.length > 0) app.use('/mcp', corsFor(allowed.allowedOrigins));
  if ('authRateLimit' in callers) app.post('/mcp', requireApiKey(createTenantIds(replicas?.tenantSecret)));
  app.post('/mcp', async (context) => {
    const body = await readJson(context);
    if (body instanceof Response) return body;
    const credentials = 'demo' in callers ? callers.demo : context.get('credentials');
    const admitted = 'demo' in callers || !messagesIn(body.value).some(isToolCall);
    const refused = admitted ? undefined : await tooManyKeys(context, callers.authRateLimit);
    return refused ?? serve({ request: context.req.raw, body: body.value, credentials });
  });
  answerErrors(app, log);
  return {
    fetch: app.fetch,
    drain: async () => {
      await drain.begin();
      await calls.idle();
    },
  };
}

/** Only calls send the key to the service, which is how one finds out whether it is valid. */
async function tooManyKeys(
  context: Context<Authenticated>,
  authRateLimit: AuthRateLimit,
): Promise<Response | undefined> {
  const address = getConnInfo(context).remote.address ?? '';
  const seconds = await authRateLimit.admit(context.get('credentials').tenantId, address);
  if (seconds === undefined) return undefined;
  context.header('Retry-After', String(seconds));
  return refuse(context, 429, 'Too many unknown keys came from this address.');
}

function answerErrors(app: Hono<Authenticated>, log: Log): void {
  app.all('/mcp', (context) => {
    context.header('Allow', 'POST');
    return refuse(context, 405, 'Only POST is served here: without sessions there is nothing to listen to or to end.');
  });
  app.notFound((context) => refuse(context, 404, 'Nothing is served here. The MCP endpoint is POST /mcp.'));
  app.onError((error, context) => {
    log.error('a request failed', { error: error.stack ?? error.message });
    return refuse(context, 500, 'Internal server error; see the server log.');
  });
}
