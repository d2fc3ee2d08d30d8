import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { getPath } from 'hono/utils/url';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { endOfString, parseJson } from '../../api/json.ts';
import type { Log, OnCall } from '../../logging/log.ts';
import { type OutputSetting, outputSettings } from '../../mcp/hosts.ts';
import { isMessage, isWork, normalizeMessage, withoutProgressToken } from '../../mcp/protocol.ts';
import type { Catalog } from '../../mcp/served.ts';
import type { ReplicaState } from '../../storage/store/open-store.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { limitWork, type WorkLimits } from '../limits.ts';
import { admits } from './accept.ts';
import { type Authenticated, requireApiKey, type TenantIdOf } from './authentication.ts';
import { createLargeBodies, readBody } from './body-limit.ts';
import type { AddressOf } from './client-addresses.ts';
import { corsForOrigins } from './cors.ts';
import { type ServedFiles, serveFiles } from './files.ts';
import {
  type AllowedNames,
  allowedOriginsOf,
  notUnder,
  originOfHost,
  validateHost,
  validateHostAndOrigin,
} from './hosts-and-origins.ts';
import type { KeyAttempts } from './key-attempts.ts';
import { serveAllRevisions } from './mcp.ts';
import type { Metrics } from './metrics.ts';
import { jsonRpcError, refuse } from './refusals.ts';
import type { SignIn } from './sign-in/sign-in.ts';
import type { WelcomeOptions } from './welcome.tsx';

export interface HttpOptions {
  catalog: Catalog;
  log: Log;
  now: () => number;
  onCall: OnCall;
  allowed: AllowedNames;
  /** The key of a call: the caller's own, or in demo mode one key for all. */
  callers: Callers | { demo: Credentials };
  /** In demo mode, answers requests for the pictures of ads. */
  pictures?: ((request: Request) => Promise<Response>) | undefined;
  publicUrl?: string | undefined;
  /** Absent where there are no links to files. */
  files?: ServedFiles | undefined;
  limits: WorkLimits;
  metrics?: Metrics | undefined;
  replicas?: Pick<ReplicaState, 'isUp' | 'problem'> | undefined;
}

interface Callers {
  keys: KeyAttempts;
  tenantIdOf: TenantIdOf;
  addressOf: AddressOf;
  signIn?: SignIn | undefined;
}

/**
 * Streamable HTTP without sessions: any replica can answer any request, in the revision and with the key of that
 * request. Only the answers that are cached for the key outlive it.
 */
export function createHttpApp(options: HttpOptions) {
  const { catalog, log, metrics, callers, pictures, files, replicas, allowed, publicUrl } = options;
  const signIn = 'keys' in callers ? callers.signIn : undefined;
  // Lists are answered for any key, and a small request may ask for a long list. The number of connections bounds how
  // many requests wait.
  const lists = new Semaphore({ maxRunning: 8, name: 'lists', maxWaiting: Number.POSITIVE_INFINITY });
  const largeBodies = createLargeBodies();
  const calls = limitWork(catalog, options);
  const serve = serveAllRevisions(calls.catalog, (error) => log.debug('refused', { error: error.message }));
  let isDraining = false;
  const refuseWhenDraining: MiddlewareHandler = async (context, next) => {
    if (isDraining) context.header('Retry-After', '1');
    const refused = isDraining ? refuse(context, 503, 'This server is shutting down.') : await next();
    if (isDraining) context.header('Connection', 'close');
    return refused;
  };
  const validate = validateHostAndOrigin(allowed);

  // Some clients add a slash to the address of the endpoint. No other path has two forms.
  const app = new Hono<Authenticated>({
    getPath: (request) => {
      const path = getPath(request);
      return path === '/mcp/' ? '/mcp' : path;
    },
  });
  for (const probe of ['/healthz', '/readyz']) app.use(probe, validateHost(allowed, { addresses: true }));
  app.get('/healthz', ({ json }) => json({ status: 'ok', version: catalog.serverInfo.version }));
  app.get('/readyz', ({ json }) => {
    if (isDraining) return json({ status: 'draining' }, 503);
    const problem = replicas?.problem();
    return problem ? json({ status: problem }, 503) : json({ status: 'ready' });
  });
  if (metrics) {
    metrics.show(() => calls.counts());
    if (replicas) metrics.showState(replicas.isUp);
    app.get('/metrics', notUnder(allowed.publicHost), validate, metrics.page);
    app.use('/mcp', metrics.answers);
  }
  if (pictures) app.get('/media/*', validate, refuseWhenDraining, ({ req }) => pictures(new Request(req.url)));
  if (files) app.all('/files/:link/:name', validate, refuseWhenDraining, serveFiles(files));
  app.use('/mcp', validate, refuseWhenDraining);
  const page = welcome({ origin: publicUrl, hasSignIn: signIn !== undefined, isDemo: 'demo' in callers });
  app.get('/', validateHost(allowed), page);
  app.get('/mcp', page);
  const origins = allowedOriginsOf(allowed);
  if (origins.length > 0) app.use('/mcp', corsForOrigins(origins));
  if ('keys' in callers) app.post('/mcp', requireApiKey(callers.tenantIdOf, signIn));
  app.post('/mcp', async (context) => {
    const admitted = await admit(context, callers);
    if (admitted instanceof Response) return admitted;
    const { credentials, address, isKnown } = admitted;
    const accept = context.req.header('accept');
    if (!admits(accept, 'application/json'))
      return refuse(context, 406, 'The Accept header must admit application/json.');
    const { outgoing } = context.env as HttpBindings;
    // The promise must also resolve for a caller who disconnected before this line.
    const sent = new Promise<void>((resolve) => {
      if (outgoing.closed) resolve();
      else outgoing.once('close', resolve);
    });
    const length = Number(context.req.header('content-length') ?? 0);
    const limit = { type: 'application/json', maxBytes: isKnown ? maxBytes : maxSmallBytes, maxUnstatedBytes };
    const isLarge = length > maxSmallBytes && length <= limit.maxBytes;
    const read = await (isLarge
      ? largeBodies.read(context, credentials.tenantId, limit, sent)
      : readBody(context, limit));
    if ('status' in read) return refuseBody(context, read.status);
    const message = readMessage(context, read.text);
    if (message instanceof Response) return message;
    // An answer that reports progress is a stream of events.
    const body = admits(accept, 'text/event-stream') ? message.value : withoutProgressToken(message.value);
    const output = outputIn(context);
    if (output instanceof Response) return output;
    const linkOrigin = files?.originOf(context);
    const userAgent = context.req.header('user-agent');
    const request = acceptingBoth(context.req.raw);
    const answer = () => serve({ request, body, credentials, sent, linkOrigin, userAgent, output });
    if (isMessage(body) && isWork(body)) return answer();
    return lists.run(address, undefined, () => nextTurn().then(answer));
  });
  if (signIn) app.use('*', validateHost(allowed), refuseWhenDraining).route('/', signIn.routes);
  answerErrors(app, log);
  return {
    fetch: app.fetch,
    /** Refuses new requests; resolves when no call is running or waiting. */
    drain: (): Promise<void> => {
      isDraining = true;
      return calls.idle();
    },
  };
}

function outputIn(context: Context): OutputSetting | undefined | Response {
  const given = context.req.queries('output');
  const output = outputSettings.find((setting) => given?.length === 1 && setting === given[0]);
  if (given === undefined || output !== undefined) return output;
  return refuse(context, 400, `output takes one of ${outputSettings.join(', ')}, as in /mcp?output=text.`);
}

/** Answers browsers with a page about this server, and leaves any other request to what comes after it. */
function welcome({
  origin,
  ...options
}: Omit<WelcomeOptions, 'address'> & { origin: string | undefined }): MiddlewareHandler {
  return async ({ req, body }, next) => {
    if (!/\btext\/html\b/i.test(req.header('accept') ?? '')) return next();
    const { welcomePage } = await import('./welcome.tsx');
    const { html, headers } = welcomePage({ ...options, address: `${origin ?? originOfHost(req.header('host'))}/mcp` });
    return body(html, 200, headers);
  };
}

/** An invented key must not get anything for free: each new key counts until the service accepts it. */
async function admit(context: Context<Authenticated>, callers: HttpOptions['callers']) {
  if ('demo' in callers) return { credentials: callers.demo, address: '', isKnown: true };
  const credentials = context.get('credentials');
  const address = callers.addressOf(context);
  // Whether the service accepted the key lately, or before its connection began.
  const isKnown = credentials.connection !== undefined || (await callers.keys.isKnown(credentials.tenantId));
  const seconds = isKnown ? undefined : await callers.keys.admit(credentials.tenantId, address);
  if (seconds === undefined) return { credentials, address, isKnown };
  context.header('Retry-After', String(seconds));
  return refuse(context, 429, 'Too many unknown keys came from this address.');
}

function answerErrors(app: Hono<Authenticated>, log: Log): void {
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

/** Refuses a request for which there is no room, before its message is known. */
function refuseBusy(context: Context, { failure, message }: AdLibraryError): Response {
  const { retryAfterSeconds: seconds = 5 } = (failure.details ?? {}) as { retryAfterSeconds?: number };
  // The rest of the body may still be arriving. Only closing the connection stops it.
  const headers = { 'Retry-After': String(seconds), Connection: 'close' };
  const { error, ...rest } = jsonRpcError(message);
  return context.json({ ...rest, error: { ...error, data: { kind: 'busy', retryable: true } } }, 503, headers);
}

/** The most bytes of a body, and of a body whose key was not accepted yet. */
const [maxBytes, maxSmallBytes] = [1024 * 1024, 64 * 1024];
const maxUnstatedBytes = maxSmallBytes;
/** Maximum nesting of arrays and objects: code that parses or prints them may be recursive. */
const maxDepth = 64;

function refuseBody(context: Context, status: 413 | 415): Response {
  if (status === 415) return refuse(context, 415, 'The body must be application/json.');
  const small = `${maxSmallBytes / 1024} KB if its length is not stated or its key not known yet`;
  return refuse(context, 413, `A request may hold ${maxBytes / 1024} KB at most, ${small}.`);
}

/** Parses the JSON of a request within the limit of nesting. Returns a refusal if the text is not one message. */
function readMessage(context: Context, text: string): { value: unknown } | Response {
  if (nestsDeeper(text, maxDepth)) return refuse(context, 400, `JSON may nest ${maxDepth} levels at most.`, -32_600);
  const body = parseJson(text);
  if (body === undefined) return refuse(context, 400, 'The body is not JSON.', -32_700);
  if (Array.isArray(body))
    return refuse(context, 400, 'Send one message at a time: batches are not supported.', -32_600);
  return { value: normalizeMessage(body) };
}

/**
 * Returns the request with an `Accept` header that names JSON and event streams. The SDKs refuse clients that accept both
 * by a wildcard or without a header, and clients that accept only JSON, which is all that most answers need.
 */
function acceptingBoth(request: Request): Request {
  const accept = request.headers.get('accept') ?? '';
  if (accept.includes('application/json') && accept.includes('text/event-stream')) return request;
  const headers = new Headers(request.headers);
  headers.set('accept', 'application/json, text/event-stream');
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}

function nestsDeeper(text: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at) - 1;
    else if (character === '[' || character === '{') depth++;
    else if (character === ']' || character === '}') depth--;
    if (depth > max) return true;
  }
  return false;
}
