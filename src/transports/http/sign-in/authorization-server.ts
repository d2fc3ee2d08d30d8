import { type Context, Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { withDeadline } from '../../../api/abort.ts';
import type { Caller } from '../../../api/client.ts';
import { AdLibraryError, type Failure } from '../../../api/errors.ts';
import { parseJson } from '../../../api/json.ts';
import { type CallEvent, type Logger, type OnCall, signInToolName } from '../../../logging/log.ts';
import { Semaphore } from '../../../workers/semaphore.ts';
import { hasKeyInUrl, isApiKey } from '../authentication.ts';
import { readBody } from '../body-limit.ts';
import type { GetClientAddress } from '../client-addresses.ts';
import { allowAnyOrigin } from '../cors.ts';
import type { KeyAttemptLimiter } from '../key-attempts.ts';
import { type ClientsOptions, canRedirectTo, createClientRegistry } from './clients.ts';
import { createOAuthMetadata } from './metadata.ts';
import {
  describeRedirectHost,
  type FormProblem,
  renderProblemPage,
  renderSignInPage,
  signInPageHeaders,
} from './page.tsx';
import { createTokenIssuer, type TokensOptions } from './tokens.ts';

/**
 * An OAuth authorization server: the HTTP routes on which users sign in, and the functions that check access tokens.
 */
export type AuthorizationServer = ReturnType<typeof createAuthorizationServer>;

/** The options of `createAuthorizationServer`: settings, limits, and the function that checks API keys. */
export interface AuthorizationServerOptions extends Omit<TokensOptions, 'resource'>, Pick<ClientsOptions, 'openAgent'> {
  /**
   * The origin at which users reach this server, e.g. `https://ads.example.com`. The server is also the issuer of the
   * tokens under this URL.
   */
  publicUrl: string;
  /** The host of the ad service, e.g. `api.example.com`. The sign-in page asks for an API key of this service. */
  serviceHost: string;
  userAgent: string;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  /**
   * Limits the number of unknown API keys that an IP address may try. A key is unknown until the service accepts it.
   */
  keyAttemptLimiter: KeyAttemptLimiter;
  getClientAddress: GetClientAddress;
  log: Logger;
  onCall: OnCall;
  /**
   * Asks the service whether it accepts the caller's API key. Rejects if the service refuses the key or cannot be
   * reached.
   */
  checkKey(caller: Caller): Promise<void>;
}

const maxBodyBytes = 16 * 1024;
/** The maximum length of the OAuth parameter `state`, in characters. */
const maxStateLength = 4000;
/**
 * How long the check of an API key may wait for a free slot, in milliseconds. After this wait, the service has the same
 * time again to respond.
 */
const keyCheckTimeoutMs = 15_000;
/** The maximum number of API keys that are checked at the same time, in total and per IP address. */
const [maxConcurrentKeyChecks, maxConcurrentKeyChecksPerIp] = [8, 4];

/**
 * Creates an OAuth 2.1 authorization server for MCP hosts that cannot send an API key in a header. The user enters the
 * key on a sign-in page, and the host receives tokens instead of the key.
 */
export function createAuthorizationServer(options: AuthorizationServerOptions) {
  const { publicUrl, serviceHost, keyAttemptLimiter, getClientAddress, monotonicNow } = options;
  const metadata = createOAuthMetadata(publicUrl);
  const { resource } = metadata;
  const tokens = createTokenIssuer({ ...options, resource });
  const clients = createClientRegistry(options);
  const keyCheckSlots = new Semaphore({
    maxRunningCalls: maxConcurrentKeyChecks,
    maxRunningCallsPerKey: maxConcurrentKeyChecksPerIp,
    workName: 'keys',
  });
  const routes = new Hono();
  routes.use(async (context, next) =>
    hasKeyInUrl(context) ? respondWithProblem(context, { text: 'A key must not be in a URL.' }) : next(),
  );

  for (const path of ['/.well-known/*', '/register', '/token', '/revoke'])
    routes.use(path, allowAnyOrigin, async (context, next) => {
      await next();
      context.header('Cache-Control', 'no-store');
    });
  for (const [path, document] of Object.entries(metadata.documents)) routes.get(path, ({ json }) => json(document));

  routes.post('/register', async (context) => {
    const [status, responseBody] = clients.registerClient(parseJson(await readBodyText(context, 'application/json')));
    return context.json(responseBody, status);
  });

  routes.get('/authorize', async (context) => {
    const { searchParams } = new URL(context.req.url);
    const authorizationRequest = await parseAuthorizationRequest(searchParams, getClientAddress(context));
    return 'text' in authorizationRequest
      ? respondWithProblem(context, authorizationRequest)
      : context.body(renderSignInPage(serviceHost, authorizationRequest), 200, signInPageHeaders);
  });

  routes.post('/authorize', async (context) => {
    // Reject forms that other web pages submit. Browsers always send `Origin` and `Sec-Fetch-Site`. Other programs may
    // omit these headers.
    const { origin = publicUrl, 'sec-fetch-site': fetchSite = 'same-origin' } = context.req.header();
    if (origin !== publicUrl || fetchSite !== 'same-origin')
      return respondWithProblem(context, { text: 'This form was sent from another page.', status: 403 });
    const formBody = await readBody(context, { requiredMediaType: formType, maxBytes: maxBodyBytes });
    if ('status' in formBody)
      return respondWithProblem(context, { text: `Send ${formType} of at most ${maxBodyBytes} bytes.`, ...formBody });
    const form = new URLSearchParams(formBody.text);
    const authorizationRequest = await parseAuthorizationRequest(form, getClientAddress(context));
    if ('text' in authorizationRequest) return respondWithProblem(context, authorizationRequest);
    const { fields, redirectUri, client } = authorizationRequest;
    const redirectToClient = (parameters: Record<string, string>) =>
      context.body(null, 303, {
        ...signInPageHeaders,
        location: addResponseParameters(redirectUri, { ...parameters, ...pickStateParameter(fields) }),
      });
    if (form.has('cancel')) return redirectToClient({ error: 'access_denied' });
    const apiKey = (form.get('api_key') ?? '').trim();
    const budget = (form.get('budget') ?? '').trim();
    const codeChallenge = fields.code_challenge ?? '';
    const grant = { apiKey, budget: budget === '' ? undefined : Number(budget), clientId: client.id, redirectUri };
    const codeOrProblem =
      findInputProblem(apiKey, budget) ??
      (await findKeyProblem(context, apiKey)) ??
      (await tokens.openConnection({ ...grant, codeChallenge }).catch(toSharedStateProblem));
    if (typeof codeOrProblem === 'string') return redirectToClient({ code: codeOrProblem });
    const { status = 400, retryAfterSeconds, ...formProblem } = codeOrProblem;
    if (retryAfterSeconds) context.header('Retry-After', String(retryAfterSeconds));
    // Show the budget again only if it is a number. Any other text may be an API key that the user entered in the wrong
    // field.
    const budgetDigits = /^\d+$/.exec(budget)?.[0];
    const page = renderSignInPage(serviceHost, authorizationRequest, { ...formProblem, budget: budgetDigits });
    return context.body(page, status, signInPageHeaders);
  });

  routes.post('/token', async (context) => {
    const form = await readFormFields(context, ['grant_type', 'client_id']);
    const { grant_type: grantType, client_id: clientId = '', code = '', refresh_token: refreshToken = '' } = form;
    const { code_verifier: verifier = '', redirect_uri: redirectUri, resource: requestedResource } = form;
    const codeFields = ['code', 'code_verifier'];
    rejectMissingField(
      form,
      grantType === 'authorization_code' ? codeFields : grantType === 'refresh_token' ? ['refresh_token'] : [],
    );
    rejectUnknownClient(clientId);
    if (!isOwnResource(requestedResource)) rejectRequest('invalid_target', `Tokens are issued only for ${resource}.`);
    if (grantType !== 'authorization_code' && grantType !== 'refresh_token')
      rejectRequest('unsupported_grant_type', 'grant_type must be authorization_code or refresh_token.');
    if (grantType === 'authorization_code' && !/^[\w.~-]{43,128}$/.test(verifier))
      rejectRequest('invalid_request', 'code_verifier must have 43 to 128 characters.');
    const tokenResponse = await (grantType === 'refresh_token'
      ? tokens.refreshTokens(refreshToken, clientId)
      : tokens.redeemCode(code, { clientId, verifier, redirectUri }));
    return tokenResponse
      ? context.json(tokenResponse)
      : rejectRequest(
          'invalid_grant',
          'The code or token has expired, was already used, or belongs to another client.',
        );
  });

  routes.post('/revoke', async (context) => {
    const { token = '', client_id: clientId = '' } = await readFormFields(context, ['token', 'client_id']);
    rejectUnknownClient(clientId);
    if (await tokens.revokeToken(token, clientId)) return context.body(null, 200);
    return rejectRequest('invalid_grant', 'This token belongs to another client.');
  });

  for (const path of ['/authorize', '/register', '/token', '/revoke']) {
    const allowedMethods = path === '/authorize' ? 'GET, POST' : 'POST';
    routes.all(path, (context) =>
      context.text(`Only ${allowedMethods} is served here.`, 405, { allow: allowedMethods }),
    );
  }
  routes.onError((error, context) => {
    if (error instanceof HTTPException) {
      const { cause, message, status } = error;
      const headers = status === 401 ? { 'WWW-Authenticate': 'Basic realm="ad-library-mcp"' } : {};
      return context.json({ error: cause, error_description: message }, status as 400, headers);
    }
    if (isSharedStateUnavailable(error)) {
      const errorBody = { error: 'temporarily_unavailable', error_description: 'The shared state cannot be reached.' };
      return context.json(errorBody, 503, { 'Retry-After': '5' });
    }
    options.log.error('a sign-in request failed', { error: error.stack ?? error.message });
    return context.json({ error: 'server_error' }, 500);
  });

  function rejectUnknownClient(id: string) {
    if (!clients.canBeClientId(id)) rejectRequest('invalid_client', 'This server does not know the client.', 401);
  }

  /**
   * Returns true if the `resource` parameter of a request is the URL of this server's MCP endpoint or is missing (RFC
   * 8707). A trailing slash makes no difference.
   */
  function isOwnResource(requestedResource?: string): boolean {
    // Treat an empty parameter as missing, as RFC 6749 (section 3.1) requires.
    const resourceUrl = requestedResource || resource;
    return URL.canParse(resourceUrl) && new URL(resourceUrl).href.replace(/\/$/, '') === new URL(resource).href;
  }

  /**
   * Parses the parameters of an authorization request. Returns a problem if the request is invalid. The problem may
   * contain a link back to the client, but the server redirects only after the user has made a decision.
   */
  async function parseAuthorizationRequest(parameters: URLSearchParams, ipAddress: string) {
    const fields = Object.fromEntries(
      forwardedParameterNames.flatMap((name) => parameters.getAll(name).map((value) => [name, value])),
    );
    const repeatedName = forwardedParameterNames.find((name) => parameters.getAll(name).length > 1);
    if (repeatedName) return { text: `The request contains ${repeatedName} more than once.` };
    const { client_id: id = '', redirect_uri: redirectUri = '', state = '' } = fields;
    const client = await clients.findClient(id, ipAddress);
    if ('problem' in client) {
      const { problem: text, retryAfterSeconds } = client;
      return { text, ...(retryAfterSeconds && { retryAfterSeconds, status: 429 as const }) };
    }
    if (!canRedirectTo(client, redirectUri))
      return { text: 'The app asks for an answer at an address that it did not register.' };
    const createClientProblem = (error: string, text: string) => ({
      text,
      returnLink: {
        href: addResponseParameters(redirectUri, { error, ...pickStateParameter(fields) }),
        host: describeRedirectHost(redirectUri),
      },
    });
    if (state.length > maxStateLength)
      return { text: `The state of the request is longer than ${maxStateLength} characters.` };
    if (!fields.response_type) return createClientProblem('invalid_request', 'The app must send response_type=code.');
    if (fields.response_type !== 'code')
      return createClientProblem('unsupported_response_type', 'The app must ask for a code (response_type=code).');
    if (fields.code_challenge_method !== 'S256' || !/^[\w-]{43}$/.test(fields.code_challenge ?? ''))
      return createClientProblem('invalid_request', 'The app must use PKCE with S256.');
    if (!isOwnResource(fields.resource))
      return createClientProblem('invalid_target', 'The app asks for access to another server.');
    return { client, redirectUri, fields };
  }

  /**
   * Adds response parameters and the issuer to a redirect URI. Some clients use several authorization servers, and the
   * issuer prevents them from confusing the responses (RFC 9207).
   */
  function addResponseParameters(redirectUri: string, parameters: Record<string, string>): string {
    const query = new URLSearchParams({ ...parameters, iss: publicUrl });
    return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${query}`;
  }

  /**
   * Asks the service whether it accepts an API key. Returns undefined if the service accepts the key, and otherwise the
   * problem to show on the sign-in page.
   */
  async function findKeyProblem(context: Context, apiKey: string): Promise<SubmissionProblem | undefined> {
    const tenantId = options.getTenantId(apiKey);
    const ipAddress = getClientAddress(context);
    // The prefix gives the sign-in page a separate limit. Keys that the same IP address sends in headers do not count
    // toward this limit.
    const retryAfterSeconds = await keyAttemptLimiter.checkAttemptLimit(tenantId, `sign-in ${ipAddress}`);
    const createFormProblem = (text: string, status: 429 | 503, retryAfterSeconds?: number) =>
      ({ field: 'form', text, status, retryAfterSeconds }) as const;
    if (retryAfterSeconds !== undefined) {
      const text = `Too many keys were tried from your address. Try again in ${retryAfterSeconds} s.`;
      return createFormProblem(text, 429, retryAfterSeconds);
    }
    const startedAt = monotonicNow();
    const reportCall = (outcome: Partial<CallEvent>) =>
      options.onCall({ tool: signInToolName, tenantId, ms: monotonicNow() - startedAt, ...outcome });
    try {
      const timeLimit = { signals: [context.req.raw.signal], timeoutMs: keyCheckTimeoutMs };
      const releaseSlot = await withDeadline(timeLimit, (signal) => keyCheckSlots.acquire(ipAddress, signal));
      await withDeadline(timeLimit, (signal) => options.checkKey({ apiKey, tenantId, signal })).finally(releaseSlot);
      reportCall({ cached: false });
      return undefined;
    } catch (error) {
      const failure: Failure = error instanceof AdLibraryError ? error.failure : { kind: 'internal' };
      const { kind, status, requestId, isUndocumented } = failure;
      reportCall({ kind, status, requestId, isUndocumented });
      if (kind === 'unauthorized') return { field: 'api_key', text: 'The service does not accept this key.' };
      if (kind === 'busy') return createFormProblem('Too many keys are being checked. Try again.', 503, 5);
      if (kind === 'internal' && !context.req.raw.signal.aborted)
        options.log.error('a key could not be checked', { error: String(error) });
      return createFormProblem(
        'The key could not be checked, because the service did not answer as it should. Try again.',
        503,
      );
    }
  }

  return {
    routes,
    challenge: metadata.challenge,
    findCredentials: tokens.findCredentials,
    /**
     * Ends a sign-in connection when the service rejects its API key. Ignores a 401 response without a request id,
     * because a gateway in front of the service may have sent it.
     */
    onCall: ({ kind, status, requestId, tenantId, connection }: CallEvent) => {
      if (kind !== 'unauthorized' || status !== 401 || !requestId || connection === undefined) return;
      tokens.endConnection(tenantId, connection).catch(() => {});
    },
    close: clients.close,
  };
}

/** The names of the authorization request parameters that the sign-in form submits again. */
const forwardedParameterNames =
  'response_type client_id redirect_uri code_challenge code_challenge_method state resource scope'.split(' ');

const pickStateParameter = ({ state }: Record<string, string>) => (state === undefined ? {} : { state });

/**
 * The reason why the server rejects an authorization request. `returnLink` is the link with which the user returns to
 * the client. The URL of the link reports the error to the client.
 */
interface RequestProblem {
  text: string;
  status?: 400 | 403 | 413 | 415 | 429;
  retryAfterSeconds?: number;
  returnLink?: { href: string; host: string };
}

function respondWithProblem(context: Context, { text, status = 400, retryAfterSeconds, returnLink }: RequestProblem) {
  if (retryAfterSeconds) context.header('Retry-After', String(retryAfterSeconds));
  return context.body(renderProblemPage(text, returnLink), status, signInPageHeaders);
}

/** The reason why the sign-in page shows a submitted form again, e.g. because the API key is invalid. */
interface SubmissionProblem extends FormProblem {
  status?: 400 | 429 | 503;
  retryAfterSeconds?: number | undefined;
}

const maxBudget = 1_000_000_000;

/** Returns the problem with the submitted API key or credit budget. Returns undefined if both are valid. */
function findInputProblem(apiKey: string, budget: string): SubmissionProblem | undefined {
  if (apiKey === '') return { field: 'api_key', text: 'Enter your API key.' };
  if (!isApiKey(apiKey))
    return { field: 'api_key', text: 'This is not an API key. An API key begins with svc_live_ and has no spaces.' };
  if (budget === '' || (/^\d{1,10}$/.test(budget) && Number(budget) <= maxBudget)) return undefined;
  const text = 'Enter a whole number up to 1,000,000,000 in digits only, such as 500, or leave the field empty.';
  return { field: 'budget', text };
}

const isSharedStateUnavailable = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.kind === 'unavailable';

/**
 * Converts the error of an unreachable shared store to a problem that the sign-in page can show. Rethrows all other
 * errors.
 */
function toSharedStateProblem(error: unknown): SubmissionProblem {
  if (!isSharedStateUnavailable(error)) throw error;
  return {
    field: 'form',
    text: 'This server cannot reach its shared state. Try again.',
    status: 503,
    retryAfterSeconds: 5,
  };
}

type OAuthError = 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'invalid_target' | 'unsupported_grant_type';

/** Rejects the request with an OAuth error response (RFC 6749, section 5.2). */
function rejectRequest(error: OAuthError, message: string, status: 400 | 401 | 413 | 415 = 400): never {
  throw new HTTPException(status, { cause: error, message });
}

function rejectMissingField(form: Record<string, string>, requiredFields: string[]) {
  const missingField = requiredFields.find((name) => !form[name]);
  if (missingField !== undefined) rejectRequest('invalid_request', `${missingField} is missing.`);
}

const formType = 'application/x-www-form-urlencoded';

/**
 * Reads the body of a request as text.
 * @throws HTTPException if the body is too large or has a media type other than `mediaType`
 */
async function readBodyText(context: Context, mediaType: string): Promise<string> {
  const bodyResult = await readBody(context, { requiredMediaType: mediaType, maxBytes: maxBodyBytes });
  if ('text' in bodyResult) return bodyResult.text;
  const { status } = bodyResult;
  return rejectRequest(
    'invalid_request',
    status === 415 ? `Send ${mediaType}.` : `Send at most ${maxBodyBytes} bytes.`,
    status,
  );
}

/**
 * Reads the fields of a submitted form.
 * @throws HTTPException if a field is repeated or a required field is missing
 */
async function readFormFields(context: Context, requiredFields: string[]): Promise<Record<string, string>> {
  const form = new URLSearchParams(await readBodyText(context, formType));
  if (new Set(form.keys()).size !== form.size) rejectRequest('invalid_request', 'A field is repeated.');
  const fields = Object.fromEntries(form);
  rejectMissingField(fields, requiredFields);
  return fields;
}
