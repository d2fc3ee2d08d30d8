import { type Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { withDeadline } from '../../../api/abort.ts';
import type { Caller } from '../../../api/client.ts';
import { AdLibraryError } from '../../../api/errors.ts';
import { parseJson } from '../../../api/json.ts';
import type { CallEvent, Log, OnCall } from '../../../logging/log.ts';
import { Semaphore } from '../../../workers/semaphore.ts';
import { hasKeyInAddress, isApiKey } from '../authentication.ts';
import { readBody } from '../body-limit.ts';
import type { AddressOf } from '../client-addresses.ts';
import { corsForAnyOrigin } from '../cors.ts';
import type { KeyAttempts } from '../key-attempts.ts';
import { type ClientsOptions, createClients, mayRedirectTo } from './clients.ts';
import { createMetadata } from './metadata.ts';
import { type FormProblem, headers, hostOf, problemPage, signInPage } from './page.tsx';
import { createTokens, type TokensOptions } from './tokens.ts';

export type SignIn = ReturnType<typeof createSignIn>;

export interface SignInOptions extends Omit<TokensOptions, 'resource'>, Pick<ClientsOptions, 'openAgent'> {
  publicUrl: string;
  /** The host whose keys the page asks for. */
  service: string;
  userAgent: string;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
  keys: KeyAttempts;
  addressOf: AddressOf;
  log: Log;
  onCall: OnCall;
  /** Asks the service whether it accepts a key; rejects if not, or if there is no answer. */
  checkKey(caller: Caller): Promise<void>;
}

const maxBodyBytes = 16 * 1024;
const maxState = 4000;
/** How long the service may take to check a key, and how long keys wait for that, in milliseconds. */
const checkMs = 15_000;
/** How many keys the service checks at once, in all and for one address. */
const [checksAtOnce, checksPerAddress] = [8, 4];

/** OAuth 2.1 in front of the API key, for hosts that send no key of their own. */
export function createSignIn(options: SignInOptions) {
  const { publicUrl, service, keys, addressOf, elapsed } = options;
  const metadata = createMetadata(publicUrl);
  const { resource } = metadata;
  const tokens = createTokens({ ...options, resource });
  const clients = createClients({ ...options, now: elapsed });
  const checks = new Semaphore({ maxRunning: checksAtOnce, perKey: checksPerAddress, name: 'keys' });
  const routes = new Hono();
  routes.use(async (context, next) =>
    hasKeyInAddress(context) ? problem(context, { text: 'A key must not be in an address.' }) : next(),
  );

  for (const path of ['/.well-known/*', '/register', '/token', '/revoke'])
    routes.use(path, corsForAnyOrigin, async (context, next) => {
      await next();
      context.header('Cache-Control', 'no-store');
    });
  for (const [path, document] of Object.entries(metadata.documents)) routes.get(path, ({ json }) => json(document));

  routes.post('/register', async (context) => {
    const [status, answer] = clients.register(parseJson(await textOf(context, 'application/json')));
    return context.json(answer, status);
  });

  routes.get('/authorize', async (context) => {
    const authorization = await authorizationIn(new URL(context.req.url).searchParams, addressOf(context));
    return 'text' in authorization
      ? problem(context, authorization)
      : context.body(signInPage(service, authorization), 200, headers);
  });

  routes.post('/authorize', async (context) => {
    // Only the page itself may send the form, or a program that is no browser.
    const { origin = publicUrl, 'sec-fetch-site': site = 'same-origin' } = context.req.header();
    if (origin !== publicUrl || site !== 'same-origin')
      return problem(context, { text: 'This form was sent from another page.', status: 403 });
    const body = await readBody(context, { type: formType, maxBytes: maxBodyBytes });
    if ('status' in body)
      return problem(context, { text: `Send ${formType} of ${maxBodyBytes} bytes at most.`, ...body });
    const form = new URLSearchParams(body.text);
    const authorization = await authorizationIn(form, addressOf(context));
    if ('text' in authorization) return problem(context, authorization);
    const { fields, redirectUri, client } = authorization;
    const back = (answer: Record<string, string>) =>
      context.body(null, 303, {
        ...headers,
        location: withAnswer(redirectUri, { ...answer, ...stateParameter(fields) }),
      });
    if (form.has('cancel')) return back({ error: 'access_denied' });
    const apiKey = (form.get('api_key') ?? '').trim();
    const budget = (form.get('budget') ?? '').trim();
    const challenge = fields.code_challenge ?? '';
    const grant = { apiKey, budget: budget === '' ? undefined : Number(budget), clientId: client.id, redirectUri };
    const opened =
      whatIsWrong(apiKey, budget) ??
      (await checkKey(context, apiKey)) ??
      (await tokens.open({ ...grant, challenge }).catch(notReached));
    if (typeof opened === 'string') return back({ code: opened });
    const { status = 400, retryAfter, ...shown } = opened;
    if (retryAfter) context.header('Retry-After', String(retryAfter));
    // A text that is not a number may be a key in the wrong field.
    const digits = /^\d+$/.exec(budget)?.[0];
    return context.body(signInPage(service, authorization, { ...shown, budget: digits }), status, headers);
  });

  routes.post('/token', async (context) => {
    const form = await fieldsOf(context, ['grant_type', 'client_id']);
    const { grant_type: type, client_id: clientId = '', code = '', refresh_token: token = '' } = form;
    const { code_verifier: verifier = '', redirect_uri: redirectUri = '', resource: given } = form;
    const ofCode = ['code', 'redirect_uri', 'code_verifier'];
    refuseMissing(form, type === 'authorization_code' ? ofCode : type === 'refresh_token' ? ['refresh_token'] : []);
    refuseUnknown(clientId);
    if (!isAboutUs(given)) refuse('invalid_target', `Tokens are issued for ${resource} alone.`);
    if (type !== 'authorization_code' && type !== 'refresh_token')
      refuse('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
    if (type === 'authorization_code' && !/^[\w.~-]{43,128}$/.test(verifier))
      refuse('invalid_request', 'code_verifier must have 43 to 128 characters.');
    const made = await (type === 'refresh_token'
      ? tokens.refresh(token, clientId)
      : tokens.redeem(code, { clientId, verifier, redirectUri }));
    return made
      ? context.json(made)
      : refuse('invalid_grant', 'The code or token has expired, was already used, or belongs to another client.');
  });

  routes.post('/revoke', async (context) => {
    const { token = '', client_id: clientId = '' } = await fieldsOf(context, ['token', 'client_id']);
    refuseUnknown(clientId);
    if (await tokens.revoke(token, clientId)) return context.body(null, 200);
    return refuse('invalid_grant', 'This token belongs to another client.');
  });

  for (const path of ['/authorize', '/register', '/token', '/revoke']) {
    const allow = path === '/authorize' ? 'GET, POST' : 'POST';
    routes.all(path, (context) => context.text(`Only ${allow} is served here.`, 405, { allow }));
  }
  routes.onError((error, context) => {
    if (error instanceof HTTPException) {
      const { cause, message, status } = error;
      const more = status === 401 ? { 'WWW-Authenticate': 'Basic realm="ad-library-mcp"' } : {};
      return context.json({ error: cause, error_description: message }, status as 400, more);
    }
    if (isAway(error)) {
      const answer = { error: 'temporarily_unavailable', error_description: 'The shared state cannot be reached.' };
      return context.json(answer, 503, { 'Retry-After': '5' });
    }
    options.log.error('a request of sign-in failed', { error: error.stack ?? error.message });
    return context.json({ error: 'server_error' }, 500);
  });

  function refuseUnknown(id: string) {
    if (!clients.isPossible(id)) refuse('invalid_client', 'This server does not know the client.', 401);
  }

  /** Whether a client asks for this server's resource (RFC 8707), with or without a slash at the end. */
  function isAboutUs(given?: string): boolean {
    // A parameter without a value counts as omitted (RFC 6749, 3.1).
    const address = given || resource;
    return URL.canParse(address) && new URL(address).href.replace(/\/$/, '') === new URL(resource).href;
  }

  /** The request for authorization, or why it is refused. Nobody is redirected before a person has decided. */
  async function authorizationIn(params: URLSearchParams, address: string) {
    const fields = Object.fromEntries(passed.flatMap((name) => params.getAll(name).map((value) => [name, value])));
    const repeated = passed.find((name) => params.getAll(name).length > 1);
    if (repeated) return { text: `The request holds ${repeated} more than once.` };
    const { client_id: id = '', redirect_uri: redirectUri = '', state = '' } = fields;
    const client = await clients.find(id, address);
    if ('problem' in client) {
      const { problem: text, retryAfter } = client;
      return { text, ...(retryAfter && { retryAfter, status: 429 as const }) };
    }
    if (!mayRedirectTo(client, redirectUri))
      return { text: 'The app asks for its answer at an address that it did not register.' };
    const faulty = (error: string, text: string) => ({
      text,
      back: { href: withAnswer(redirectUri, { error, ...stateParameter(fields) }), host: hostOf(redirectUri) },
    });
    if (state.length > maxState) return { text: `The request holds more than ${maxState} characters of state.` };
    if (!fields.response_type) return faulty('invalid_request', 'The app must send response_type=code.');
    if (fields.response_type !== 'code')
      return faulty('unsupported_response_type', 'The app must ask for a code (response_type=code).');
    if (fields.code_challenge_method !== 'S256' || !/^[\w-]{43}$/.test(fields.code_challenge ?? ''))
      return faulty('invalid_request', 'The app must use PKCE with S256.');
    if (!isAboutUs(fields.resource)) return faulty('invalid_target', 'The app asks for access to another server.');
    return { client, redirectUri, fields };
  }

  /** Adds the issuer, so that a client of several servers does not confuse them (RFC 9207). */
  function withAnswer(redirectUri: string, answer: Record<string, string>): string {
    const query = new URLSearchParams({ ...answer, iss: publicUrl });
    return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
  }

  async function checkKey(context: Context, apiKey: string): Promise<Problem | undefined> {
    const tenantId = options.tenantIdOf(apiKey);
    // Tries on the page have a count of their own.
    const address = addressOf(context);
    const seconds = await keys.admit(tenantId, `sign-in ${address}`);
    const formProblem = (text: string, status: 429 | 503, retryAfter?: number) =>
      ({ field: 'form', text, status, retryAfter }) as const;
    if (seconds !== undefined)
      return formProblem(`Too many keys were tried from your address. Try again in ${seconds} s.`, 429, seconds);
    const started = elapsed();
    const report = (outcome: Partial<CallEvent>) =>
      options.onCall({ tool: 'sign_in', tenantId, ms: elapsed() - started, ...outcome });
    try {
      const within = { signals: [context.req.raw.signal], ms: checkMs };
      const end = await withDeadline(within, (signal) => checks.acquire(address, signal));
      await withDeadline(within, (signal) => options.checkKey({ apiKey, tenantId, signal })).finally(end);
      report({ cached: false });
      return undefined;
    } catch (error) {
      const { kind = 'internal', status, requestId } = error instanceof AdLibraryError ? error.failure : {};
      report({ kind, status, requestId });
      if (kind === 'unauthorized') return { field: 'api_key', text: 'The service does not accept this key.' };
      if (kind === 'busy') return formProblem('Too many keys are being checked. Try again.', 503, 5);
      if (kind === 'internal' && !context.req.raw.signal.aborted)
        options.log.error('a key could not be checked', { error: String(error) });
      return formProblem(
        'The key could not be checked, because the service did not answer as it should. Try again.',
        503,
      );
    }
  }

  return {
    routes,
    challenge: metadata.challenge,
    credentials: tokens.credentials,
    /** Ends the connections whose key the service rejects. */
    onCall: ({ kind, status, requestId, tenantId, connection }: CallEvent) => {
      if (kind !== 'unauthorized' || status !== 401 || !requestId || connection === undefined) return;
      tokens.end(tenantId, connection).catch(() => {});
    },
    close: clients.close,
  };
}

/** The parameters of the client that the form sends back. */
const passed = 'response_type client_id redirect_uri code_challenge code_challenge_method state resource scope'.split(
  ' ',
);

const stateParameter = ({ state }: Record<string, string>) => (state === undefined ? {} : { state });

interface RequestProblem {
  text: string;
  status?: 400 | 403 | 413 | 415 | 429;
  retryAfter?: number;
  back?: { href: string; host: string };
}

function problem(context: Context, { text, status = 400, retryAfter, back }: RequestProblem) {
  if (retryAfter) context.header('Retry-After', String(retryAfter));
  return context.body(problemPage(text, back), status, headers);
}

interface Problem extends FormProblem {
  status?: 400 | 429 | 503;
  retryAfter?: number | undefined;
}

const maxBudget = 1_000_000_000;

function whatIsWrong(apiKey: string, budget: string): Problem | undefined {
  if (apiKey === '') return { field: 'api_key', text: 'Enter your API key.' };
  if (!isApiKey(apiKey))
    return { field: 'api_key', text: 'This is not an API key: one begins with svc_live_, without spaces.' };
  if (budget === '' || (/^\d{1,10}$/.test(budget) && Number(budget) <= maxBudget)) return undefined;
  const text = 'Enter a whole number up to 1,000,000,000 as digits alone, such as 500, or leave it empty.';
  return { field: 'budget', text };
}

const isAway = (error: unknown) => error instanceof AdLibraryError && error.failure.kind === 'unavailable';

function notReached(error: unknown): Problem {
  if (!isAway(error)) throw error;
  return { field: 'form', text: 'This server cannot reach its shared state. Try again.', status: 503, retryAfter: 5 };
}

type OAuthError = 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'invalid_target' | 'unsupported_grant_type';

/** Ends a request with an error of OAuth (RFC 6749, 5.2). */
function refuse(error: OAuthError, message: string, status: 400 | 401 | 413 | 415 = 400): never {
  throw new HTTPException(status, { cause: error, message });
}

function refuseMissing(form: Record<string, string>, names: string[]) {
  const missing = names.find((name) => !form[name]);
  if (missing !== undefined) refuse('invalid_request', `${missing} is missing.`);
}

const formType = 'application/x-www-form-urlencoded';

/** Reads a body of sign-in. @throws HTTPException for a body of another type, or one that is too large */
async function textOf(context: Context, type: string): Promise<string> {
  const body = await readBody(context, { type, maxBytes: maxBodyBytes });
  if ('text' in body) return body.text;
  const { status } = body;
  return refuse('invalid_request', status === 415 ? `Send ${type}.` : `Send ${maxBodyBytes} bytes at most.`, status);
}

/** Reads the fields of a form. @throws HTTPException if a field is repeated or a needed field is missing */
async function fieldsOf(context: Context, needed: string[]): Promise<Record<string, string>> {
  const form = new URLSearchParams(await textOf(context, formType));
  if (new Set(form.keys()).size !== form.size) refuse('invalid_request', 'A field is repeated.');
  const fields = Object.fromEntries(form);
  refuseMissing(fields, needed);
  return fields;
}
