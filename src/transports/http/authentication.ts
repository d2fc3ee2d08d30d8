import { createHmac, hash, randomBytes } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { refuse } from './refusals.ts';

/**
 * Matches an API key: the prefix `svc_live_`, followed by characters that RFC 6750 allows (API document,
 * *Authentication* 2). The server rejects any other text before it reaches the service.
 */
const apiKeyPatternSource = String.raw`svc_live_[\w.~+/-]{1,256}=*`;
const apiKeyPattern = new RegExp(`^${apiKeyPatternSource}$`);
const bearerApiKeyPattern = new RegExp(`^[Bb][Ee][Aa][Rr][Ee][Rr] +(${apiKeyPatternSource})$`);
/**
 * Matches the `Authorization: Bearer …` header with an access token. The server issues an access token when a user
 * signs in.
 */
const bearerTokenPattern = /^bearer +([\w-]{40,4096})$/i;

/** Returns true if the text has the format of an API key. Only the service knows whether the key is valid. */
export const isApiKey = (text: string): boolean => apiKeyPattern.test(text);

/** The Hono environment of requests that have passed `requireCredentials`. */
export type AuthenticatedEnvironment = { Variables: { credentials: Credentials } };

/**
 * Checks access tokens. Users obtain an access token when they sign in on a web page instead of configuring an API key.
 */
interface AccessTokenChecker {
  /** The `WWW-Authenticate` parameter that tells clients where to sign in. */
  challenge: string;
  /**
   * Returns the API key and the tenant id that belong to an access token. Returns undefined if the token is invalid or
   * expired.
   */
  findCredentials(accessToken: string): Promise<Credentials | undefined>;
}

/**
 * Creates a middleware that rejects requests without a well-formed API key or a valid access token. Also rejects
 * requests with an API key in the URL, because URLs end up in logs.
 */
export function requireCredentials(
  getTenantId: GetTenantId,
  accessTokenChecker?: AccessTokenChecker,
): MiddlewareHandler<AuthenticatedEnvironment> {
  return async (context, next) => {
    if (hasKeyInUrl(context)) {
      return refuse(context, 400, 'A key must not be in the URL. Send it in the header "Authorization: Bearer …".');
    }
    const authorizationHeader = context.req.header('authorization') ?? '';
    const apiKey = bearerApiKeyPattern.exec(authorizationHeader)?.[1];
    const accessToken = bearerTokenPattern.exec(authorizationHeader)?.[1];
    try {
      const credentials = apiKey
        ? { apiKey, tenantId: getTenantId(apiKey) }
        : accessToken && (await accessTokenChecker?.findCredentials(accessToken));
      if (!credentials) return refuseUnauthorized(context, accessTokenChecker);
      context.set('credentials', credentials);
    } catch (error) {
      if (!(error instanceof AdLibraryError) || error.failure.kind !== 'unavailable') throw error;
      context.header('Retry-After', '5');
      return refuse(context, 503, 'The shared state of this server cannot be reached, so no token can be checked.');
    }
    return next();
  };
}

/** Returns true if the query string of a request contains an API key, or a parameter such as `api_key`. */
export function hasKeyInUrl({ req }: Context): boolean {
  const namesAndValues = Object.entries(req.queries()).flat(2);
  return namesAndValues.some((text) => ['access_token', 'api_key'].includes(text) || /svc_[a-z]+_/i.test(text));
}

function refuseUnauthorized(context: Context, accessTokenChecker: AccessTokenChecker | undefined) {
  // `invalid_token` is only correct if the request has an `Authorization` header (RFC 6750, section 3.1). Node joins
  // repeated headers with a comma and a space. API keys contain neither character, so a request with two keys is also
  // rejected here.
  const errorParameter = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header(
    'WWW-Authenticate',
    `Bearer ${accessTokenChecker?.challenge ?? 'realm="ad-library-mcp"'}${errorParameter}`,
  );
  const tokenHint = accessTokenChecker ? ', or a token of its sign-in' : '';
  return refuse(
    context,
    401,
    `Every request needs your API key in one header "Authorization: Bearer svc_live_…"${tokenHint}.`,
  );
}

/**
 * Returns the tenant id, which is a hash of an API key. The server stores data under the tenant id and never stores the
 * key itself.
 */
export type GetTenantId = (apiKey: string) => string;

/**
 * Creates a function that hashes API keys into tenant ids.
 * @param secret a secret that all replicas share. The default is a random secret of this process.
 */
export const createTenantIdGetter =
  (secret = randomBytes(32).toString('hex')): GetTenantId =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');

/**
 * Creates a function that hashes a tenant id for the log. The hash shows operators which calls come from the same
 * caller, but does not reveal the API key or the tenant id.
 * @param secret a secret that all replicas share. The default is a random secret of this process.
 */
export const createLogTenantHasher =
  (secret = randomBytes(32).toString('hex')) =>
  (tenantId: string): string =>
    createHmac('sha256', secret).update(`log ${tenantId}`).digest('hex').slice(0, 16);
