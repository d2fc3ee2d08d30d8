import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { getPath } from 'hono/utils/url';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { findStringEnd, parseJson } from '../../api/json.ts';
import type { Logger, OnCall } from '../../logging/log.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { type OutputSetting, outputSettings } from '../../mcp/hosts.ts';
import { isJsonRpcMessage, needsCallSlot, normalizeMessage, removeProgressToken } from '../../mcp/protocol.ts';
import type { ReplicaState } from '../../storage/store/open-store.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { type ConcurrencyLimits, createConcurrencyLimiter } from '../limits.ts';
import { acceptsMediaType } from './accept.ts';
import { type AuthenticatedEnvironment, type GetTenantId, requireCredentials } from './authentication.ts';
import { bodyLimits, createLargeBodyReader, readBody } from './body-limit.ts';
import type { GetClientAddress } from './client-addresses.ts';
import { allowOrigins } from './cors.ts';
import { createFileHandler, type LinkedFileFinder } from './files.ts';
import {
  type AllowedNames,
  getOriginOfHost,
  hideFromPublicHost,
  listAllowedOrigins,
  validateHost,
  validateHostAndOrigin,
} from './hosts-and-origins.ts';
import type { KeyAttemptLimiter } from './key-attempts.ts';
import { createMcpRequestHandler } from './mcp.ts';
import type { Metrics } from './metrics.ts';
import { createJsonRpcError, refuse } from './refusals.ts';
import type { AuthorizationServer } from './sign-in/authorization-server.ts';
import type { WelcomePageContent } from './welcome.tsx';

/** The options of `createHttpApp`. `catalog` contains the tools and resources that the server offers. */
export interface HttpOptions {
  catalog: Catalog;
  log: Logger;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  onCall: OnCall;
  /** The host names and origins that requests may use. Requests with any other host or origin are rejected. */
  allowedNames: AllowedNames;
  /** How callers authenticate. In demo mode, no authentication is needed, because all callers share one API key. */
  authentication: CallerAuthentication | { demo: Credentials };
  /** Serves the pictures of demo ads. Only set in demo mode. */
  serveDemoPicture?: ((request: Request) => Promise<Response>) | undefined;
  /** The origin under which users reach the server from outside, e.g. `https://ads.example.com`. */
  publicUrl?: string | undefined;
  /** Serves exported files. Undefined if results must not contain links to files. */
  files?: LinkedFileFinder | undefined;
  limits: ConcurrencyLimits;
  metrics?: Metrics | undefined;
  /** Reports whether the store that all replicas share is reachable. Undefined if this server is the only replica. */
  replicaState?: Pick<ReplicaState, 'isUp'> | undefined;
  /**
   * Returns `up` if the service responded to the latest call, and `away` if it did not respond. Returns undefined
   * before the first call.
   */
  getServiceState?: () => 'up' | 'away' | undefined;
}

/** The functions that authenticate callers and limit their attempts with unknown API keys. Not used in demo mode. */
interface CallerAuthentication {
  /**
   * Limits the number of unknown API keys that an IP address may try. A key is unknown until the service accepts it.
   */
  keyAttemptLimiter: KeyAttemptLimiter;
  getTenantId: GetTenantId;
  getClientAddress: GetClientAddress;
  authorizationServer?: AuthorizationServer | undefined;
}

/**
 * Creates the HTTP server, which serves MCP over streamable HTTP at `/mcp`.
 *
 * The server has no sessions. Each request states its MCP protocol revision and carries the caller's API key, so any
 * replica can serve the request. Between requests, the server stores cached responses and gathered ads, separately for
 * each key.
 */
export function createHttpApp(options: HttpOptions) {
  const {
    catalog,
    log,
    metrics,
    authentication,
    serveDemoPicture,
    files,
    replicaState,
    allowedNames,
    publicUrl,
    getServiceState,
  } = options;
  const authorizationServer = 'keyAttemptLimiter' in authentication ? authentication.authorizationServer : undefined;
  // Any API key may request a list of tools, and a small request can produce a large list. Therefore, only a few lists
  // are in memory at the same time. The queue of waiting requests needs no limit here, because the number of
  // connections is limited.
  const listSlots = new Semaphore({
    maxRunningCalls: 8,
    workName: 'lists',
    maxWaitingCalls: Number.POSITIVE_INFINITY,
  });
  const largeBodyReader = createLargeBodyReader();
  const concurrencyLimiter = createConcurrencyLimiter(catalog, options);
  const serveMcp = createMcpRequestHandler(concurrencyLimiter.limitedCatalog, (error) =>
    log.debug('refused', { error: error.message }),
  );
  let lifecyclePhase: 'serving' | 'stopping' | 'draining' = 'serving';
  const refuseWhenDraining: MiddlewareHandler = async (context, next) => {
    const isRefused = lifecyclePhase === 'draining';
    if (isRefused) context.header('Retry-After', '1');
    const refusal = isRefused ? refuse(context, 503, 'This server is shutting down.') : await next();
    // The server may have started to shut down while this request was running. If so, ask the client to open a new
    // connection for its next request.
    if (lifecyclePhase === 'draining') context.header('Connection', 'close');
    return refusal;
  };
  const checkHostAndOrigin = validateHostAndOrigin(allowedNames);

  // Some clients add a slash to the URL of the endpoint, so treat `/mcp/` like `/mcp`.
  const app = new Hono<AuthenticatedEnvironment>({
    getPath: (request) => {
      const path = getPath(request);
      return path === '/mcp/' ? '/mcp' : path;
    },
  });
  for (const probe of ['/healthz', '/readyz']) app.use(probe, validateHost(allowedNames, { allowIpAddresses: true }));
  app.get('/healthz', ({ json }) => json({ status: 'ok', version: catalog.serverInfo.version }));
  app.get('/readyz', ({ json }) => {
    if (lifecyclePhase !== 'serving') return json({ status: 'draining' }, 503);
    // The readiness probe succeeds even if the state that replicas share is unreachable. Otherwise, all replicas would
    // fail the probe at once, and callers would get no responses at all.
    const serviceState = getServiceState?.();
    return json({
      status: 'ready',
      ...(replicaState && { state: replicaState.isUp() ? 'up' : 'away' }),
      ...(serviceState && { service: serviceState }),
    });
  });
  if (metrics) {
    metrics.addCallGauges(() => concurrencyLimiter.countCalls());
    if (replicaState) metrics.addReplicaStateGauge(replicaState.isUp);
    // Allow IP addresses as the host, because Prometheus often knows a replica only by its IP address.
    const validateMetricsHost = validateHost(allowedNames, { allowIpAddresses: true });
    app.get('/metrics', hideFromPublicHost(allowedNames.publicHost), validateMetricsHost, metrics.serveMetrics);
    app.use('/mcp', metrics.countResponse);
  }
  if (serveDemoPicture)
    app.get('/media/*', checkHostAndOrigin, refuseWhenDraining, ({ req }) => serveDemoPicture(new Request(req.url)));
  if (files) app.all('/files/:link/:name', checkHostAndOrigin, refuseWhenDraining, createFileHandler(files));
  app.use('/mcp', logForbiddenRequests(log), checkHostAndOrigin, refuseWhenDraining);
  const serveWelcomePage = createWelcomeHandler({
    origin: publicUrl,
    hasSignIn: authorizationServer !== undefined,
    isDemo: 'demo' in authentication,
  });
  app.get('/', validateHost(allowedNames), serveWelcomePage);
  app.get('/mcp', serveWelcomePage);
  const allowedOrigins = listAllowedOrigins(allowedNames);
  if (allowedOrigins.length > 0) app.use('/mcp', allowOrigins(allowedOrigins));
  if ('keyAttemptLimiter' in authentication)
    app.post('/mcp', requireCredentials(authentication.getTenantId, authorizationServer));
  app.post('/mcp', async (context) => {
    const admission = await admitCaller(context, authentication, log);
    if (admission instanceof Response) return admission;
    const { credentials, clientAddress, isKnownKey } = admission;
    const acceptHeader = context.req.header('accept');
    if (!acceptsMediaType(acceptHeader, 'application/json'))
      return refuse(context, 406, 'The Accept header must admit application/json.');
    const { outgoing } = context.env as HttpBindings;
    // If the connection is already closed, do not add a listener. Node emits `close` only once, so the listener would
    // never be called.
    const responseSent = new Promise<void>((resolve) => {
      if (outgoing.closed) resolve();
      else outgoing.once('close', resolve);
    });
    const contentLength = Number(context.req.header('content-length') ?? 0);
    const maxBytes = isKnownKey ? bodyLimits.maxBytes : bodyLimits.maxUnknownCallerBytes;
    const { maxStreamedBytes } = bodyLimits;
    const bodyLimit = { requiredMediaType: 'application/json', maxBytes, maxStreamedBytes };
    const isLargeBody = contentLength > bodyLimits.maxUnknownCallerBytes && contentLength <= maxBytes;
    const bodyResult = await (isLargeBody
      ? largeBodyReader.read(context, credentials.tenantId, bodyLimit, responseSent)
      : readBody(context, bodyLimit));
    if ('status' in bodyResult) return refuseBody(context, bodyResult.status);
    const messageResult = parseMessage(context, bodyResult.text);
    if (messageResult instanceof Response) return messageResult;
    // The server can report progress only in an event stream. A client that does not accept event streams receives
    // plain JSON without progress.
    const acceptsStream = acceptsMediaType(acceptHeader, 'text/event-stream');
    const message = acceptsStream ? messageResult.message : removeProgressToken(messageResult.message);
    const outputSetting = readOutputSetting(context);
    if (outputSetting instanceof Response) return outputSetting;
    const linkOrigin = files?.findLinkOrigin(context);
    const userAgent = context.req.header('user-agent');
    const request = addAcceptedTypes(context.req.raw);
    const serveRequest = () =>
      serveMcp({ request, body: message, credentials, responseSent, linkOrigin, userAgent, output: outputSetting });
    // `concurrencyLimiter` limits tool calls and resource reads (`needsCallSlot`). All other requests wait for one of
    // the few `listSlots`.
    if (isJsonRpcMessage(message) && needsCallSlot(message)) return serveRequest();
    return listSlots.runInSlot(clientAddress, undefined, () => yieldToEventLoop().then(serveRequest));
  });
  if (authorizationServer)
    app.use('*', validateHost(allowedNames), refuseWhenDraining).route('/', authorizationServer.routes);
  addErrorHandlers(app, log);
  return {
    fetch: app.fetch,
    /**
     * Makes the readiness probe fail, so that load balancers stop sending requests. The server still serves requests
     * that arrive anyway.
     */
    announceStop: () => {
      lifecyclePhase = 'stopping';
    },
    /** Rejects new requests, for a graceful shutdown. Resolves when all running and waiting calls have ended. */
    drain: (): Promise<void> => {
      lifecyclePhase = 'draining';
      return concurrencyLimiter.waitUntilIdle();
    },
  };
}

/**
 * Returns the output format from the URL, e.g. `text` for `/mcp?output=text`. Returns an error response if the format
 * is unknown.
 */
function readOutputSetting(context: Context): OutputSetting | undefined | Response {
  const requestedOutputs = context.req.queries('output');
  const output = outputSettings.find((setting) => requestedOutputs?.length === 1 && setting === requestedOutputs[0]);
  if (requestedOutputs === undefined || output !== undefined) return output;
  return refuse(context, 400, `output takes one of ${outputSettings.join(', ')}, as in /mcp?output=text.`);
}

/**
 * Creates a middleware that sends the welcome page to browsers. If the `Accept` header of a request does not list
 * `text/html`, the next handler serves the request.
 */
function createWelcomeHandler({
  origin,
  ...options
}: Omit<WelcomePageContent, 'endpointUrl'> & { origin: string | undefined }): MiddlewareHandler {
  return async ({ req, body }, next) => {
    if (!/\btext\/html\b/i.test(req.header('accept') ?? '')) return next();
    const { renderWelcomePage } = await import('./welcome.tsx');
    const endpointUrl = `${origin ?? getOriginOfHost(req.header('host'))}/mcp`;
    const { html, headers } = renderWelcomePage({ ...options, endpointUrl });
    return body(html, 200, headers);
  };
}

/**
 * Returns the credentials of a request, or a 429 response if its IP address has tried too many unknown API keys. A key
 * is unknown until the service accepts it. Without this limit, anyone could use the resources of the server with
 * made-up keys.
 */
async function admitCaller(
  context: Context<AuthenticatedEnvironment>,
  authentication: HttpOptions['authentication'],
  log: Logger,
) {
  if ('demo' in authentication) return { credentials: authentication.demo, clientAddress: '', isKnownKey: true };
  const { keyAttemptLimiter, getClientAddress } = authentication;
  const credentials = context.get('credentials');
  const clientAddress = getClientAddress(context);
  // If the caller has signed in, do not check its API key, because the service accepted the key during sign-in.
  const isKnownKey = credentials.connection !== undefined || (await keyAttemptLimiter.isKnownKey(credentials.tenantId));
  const retryAfterSeconds = isKnownKey
    ? undefined
    : await keyAttemptLimiter.checkAttemptLimit(credentials.tenantId, clientAddress);
  if (retryAfterSeconds === undefined) return { credentials, clientAddress, isKnownKey };
  log.info('too many unknown keys came from an address', { address: clientAddress });
  context.header('Retry-After', String(retryAfterSeconds));
  return refuse(context, 429, 'Too many unknown keys came from this address.');
}

/**
 * Creates a middleware that logs requests with a forbidden host or origin, so that operators notice a missing setting.
 */
const logForbiddenRequests =
  (log: Logger): MiddlewareHandler =>
  async (context, next) => {
    await next();
    if (context.res.status !== 403) return;
    const { req } = context;
    const [host, origin] = [req.header('host')?.slice(0, 100), req.header('origin')?.slice(0, 100)];
    log.info('a request was refused, because its host or origin is not allowed', { host, origin });
  };

function addErrorHandlers(app: Hono<AuthenticatedEnvironment>, log: Logger): void {
  app.all('/mcp', (context) => {
    context.header('Allow', 'POST');
    return refuse(context, 405, 'Only POST is supported: this server is stateless.');
  });
  app.notFound((context) => refuse(context, 404, 'Nothing is served here. The MCP endpoint is POST /mcp.'));
  app.onError((error, context) => {
    if (error instanceof AdLibraryError && error.failure.kind === 'busy') return refuseBusy(context, error);
    log.error('a request failed', { error: error.stack ?? error.message });
    return refuse(context, 500, 'Internal server error; see the server log.');
  });
}

/**
 * Rejects a request because the server is busy. The JSON-RPC id of the response is null, because the message of the
 * request has not been parsed yet.
 */
function refuseBusy(context: Context, { failure, message }: AdLibraryError): Response {
  const { retryAfterSeconds = 5 } = (failure.details ?? {}) as { retryAfterSeconds?: number };
  // Close the connection, because the client may still be sending the rest of the body. Nothing else would stop the
  // client.
  const headers = { 'Retry-After': String(retryAfterSeconds), Connection: 'close' };
  const { error, ...otherFields } = createJsonRpcError(message);
  return context.json({ ...otherFields, error: { ...error, data: { kind: 'busy', retryable: true } } }, 503, headers);
}

/**
 * The maximum nesting depth of arrays and objects in a request. The limit protects recursive functions, e.g. for
 * printing JSON, from a stack overflow.
 */
const maxNestingDepth = 64;

function refuseBody(context: Context, status: 413 | 415): Response {
  if (status === 415) return refuse(context, 415, 'The body must be application/json.');
  const [maxKb, maxSmallKb] = [bodyLimits.maxBytes / 1024, bodyLimits.maxUnknownCallerBytes / 1024];
  const exceptions = `without a Content-Length header, or with a key that the service has not accepted yet, ${maxSmallKb} KB`;
  return refuse(context, 413, `A request may have at most ${maxKb} KB; ${exceptions}.`);
}

/**
 * Parses the JSON-RPC message in the body of a request. Returns an error response if the body is not a single JSON
 * message or is nested too deeply.
 */
function parseMessage(context: Context, bodyText: string): { message: unknown } | Response {
  if (isJsonDeeperThan(maxNestingDepth, bodyText))
    return refuse(context, 400, `JSON may be nested at most ${maxNestingDepth} levels deep.`, -32_600);
  const parsedBody = parseJson(bodyText);
  if (parsedBody === undefined) return refuse(context, 400, 'The body is not JSON.', -32_700);
  if (Array.isArray(parsedBody))
    return refuse(context, 400, 'Send one message at a time: batches are not supported.', -32_600);
  return { message: normalizeMessage(parsedBody) };
}

/**
 * Returns the request with an `Accept` header that lists both JSON and event streams. The SDKs require both types by
 * name and reject a wildcard, a missing header, and a header that lists only JSON.
 */
function addAcceptedTypes(request: Request): Request {
  const acceptHeader = request.headers.get('accept') ?? '';
  if (acceptHeader.includes('application/json') && acceptHeader.includes('text/event-stream')) return request;
  const headers = new Headers(request.headers);
  headers.set('accept', 'application/json, text/event-stream');
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}

/** Returns true if arrays and objects in JSON text are nested more than `maxLevels` deep. Does not parse the text. */
function isJsonDeeperThan(maxLevels: number, jsonText: string): boolean {
  let depth = 0;
  for (let index = 0; index < jsonText.length; index++) {
    const character = jsonText[index];
    if (character === '"') index = findStringEnd(jsonText, index) - 1;
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > maxLevels) return true;
  }
  return false;
}
