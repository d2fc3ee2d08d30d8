import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HttpBindings } from '@hono/node-server';
import {
  isJsonContentType,
  localhostAllowedHostnames,
  readRequestBody,
  validateHostHeader,
} from '@modelcontextprotocol/server';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import type { Credentials } from '../../api/client.ts';
import { endOfString, parseJson } from '../../api/json.ts';
import type { Log, OnCall } from '../../logging/log.ts';
import { type OutputSetting, outputSettings } from '../../mcp/hosts.ts';
import { isMessage, isWork, withoutNulls } from '../../mcp/protocol.ts';
import type { Catalog } from '../../mcp/served.ts';
import type { ReplicaState } from '../../storage/store/open-store.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { limitWork, type WorkLimits } from '../limits.ts';
import {
  type AddressOf,
  type AllowedNames,
  type Authenticated,
  type CallerKeys,
  corsFor,
  notUnder,
  originsOf,
  refuse,
  requireApiKey,
  type TenantIdOf,
  validateHost,
  validateHostAndOrigin,
} from './access.ts';
import { type ServedFiles, serveFiles } from './files.ts';
import { serveAllRevisions } from './mcp.ts';
import type { Metrics } from './metrics.ts';
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
  keys: CallerKeys;
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
  // Those who wait are as many as there are connections.
  const waiting = { maxWaiting: Number.POSITIVE_INFINITY };
  // Requests that need no work are answered for any key, and a small one may ask for a long answer.
  const lists = new Semaphore({ maxRunning: 8, name: 'lists', ...waiting });
  const largeBodies = new Semaphore({ maxRunning: 8, perKey: 2, name: 'requests', ...waiting });
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

  const app = new Hono<Authenticated>();
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
  const origins = originsOf(allowed);
  if (origins.length > 0) app.use('/mcp', corsFor(origins));
  if ('keys' in callers) app.post('/mcp', requireApiKey(callers.tenantIdOf, signIn));
  app.post('/mcp', async (context) => {
    const admitted = await admit(context, callers);
    if (admitted instanceof Response) return admitted;
    const { credentials, address, isKnown } = admitted;
    const { outgoing } = context.env as HttpBindings;
    // A turn must end, too, for a caller who left before this.
    const sent = new Promise<void>((resolve) => {
      if (outgoing.closed) resolve();
      else outgoing.once('close', resolve);
    });
    const length = Number(context.req.header('content-length') ?? 0);
    // Until it is answered: to read, check and hand on a large message takes as long as ten calls.
    if (isKnown && length > maxSmallBytes && length <= maxBytes)
      void sent.then(await largeBodies.acquire(credentials.tenantId));
    const body = await readJson(context, isKnown ? maxBytes : maxSmallBytes);
    if (body instanceof Response) return body;
    const output = outputIn(context);
    if (output instanceof Response) return output;
    const linkOrigin = files?.originOf(context);
    const answer = () => serve({ request: context.req.raw, body: body.value, credentials, sent, linkOrigin, output });
    if (isMessage(body.value) && isWork(body.value)) return answer();
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
    const { html, headers } = welcomePage({ ...options, address: `${origin ?? originIn(req)}/mcp` });
    return body(html, 200, headers);
  };
}

/** The origin that a request was sent to. Beyond this machine, keys travel over TLS, which a proxy speaks. */
function originIn(req: Context['req']): string {
  const host = req.header('host') ?? '';
  return `${validateHostHeader(host, localhostAllowedHostnames()).ok ? 'http' : 'https'}://${host}`;
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
    log.error('a request failed', { error: error.stack ?? error.message });
    return refuse(context, 500, 'Internal server error; see the server log.');
  });
}

/** Bytes of a body, and of one whose key was not accepted yet or whose length is not stated. */
const [maxBytes, maxSmallBytes] = [1024 * 1024, 64 * 1024];
/** Maximum nesting of arrays and objects: code that parses or prints them may be recursive. */
const maxDepth = 64;

/** Reads a request's JSON once, within bounds. If something is wrong with the JSON, answers that. */
async function readJson(context: Context, maxLength: number): Promise<{ value: unknown } | Response> {
  const { req } = context;
  if (!isJsonContentType(req.header('content-type') ?? null)) {
    return refuse(context, 415, 'The body must be application/json.');
  }
  const text = await readText(req.raw, maxLength).catch(() => '');
  if (text === undefined) {
    // The rest of the body is still on its way: only closing the connection stops it.
    context.header('Connection', 'close');
    const small = `${maxSmallBytes / 1024} KB if its length is not stated or its key not known yet`;
    return refuse(context, 413, `A request may hold ${maxBytes / 1024} KB at most, ${small}.`);
  }
  if (nestsDeeper(text, maxDepth)) return refuse(context, 400, `JSON may nest ${maxDepth} levels at most.`, -32_600);
  const body = parseJson(text);
  if (body === undefined) return refuse(context, 400, 'The body is not JSON.', -32_700);
  if (Array.isArray(body))
    return refuse(context, 400, 'Send one message at a time: batches are not supported.', -32_600);
  return { value: withoutNulls(body) };
}

async function readText(request: Request, maxLength: number): Promise<string | undefined> {
  const { headers } = request;
  if (headers.has('transfer-encoding')) {
    const read = await readRequestBody(request, maxSmallBytes);
    return read.tooLarge ? undefined : read.text;
  }
  // The HTTP parser enforces a stated length, so such a body is read without a stream in between.
  return Number(headers.get('content-length') ?? 0) > maxLength ? undefined : request.text();
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
