import { createHmac, hash, randomBytes } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { refuse } from './refusals.ts';

/**
 * The form of an API key: the live prefix, then the characters of RFC 6750 (API document, *Authentication* 2). The server
 * never sends a text of another form to the service.
 */
const keySource = String.raw`svc_live_[\w.~+/-]{1,256}=*`;
const keyPattern = new RegExp(`^${keySource}$`);
const bearerKeyPattern = new RegExp(`^[Bb][Ee][Aa][Rr][Ee][Rr] +(${keySource})$`);
/** The form of an access token that sign-in issues. */
const bearerTokenPattern = /^bearer +([\w-]{40,4096})$/i;

/** Returns whether a text has the form of an API key. The service may still reject the key. */
export const isApiKey = (text: string): boolean => keyPattern.test(text);

/** The Hono environment of requests that have passed `requireApiKey`. */
export type Authenticated = { Variables: { credentials: Credentials } };

/** The access tokens of sign-in. */
interface AccessTokens {
  /** The parameter of `WWW-Authenticate` that tells clients where to sign in. */
  challenge: string;
  /** Returns the credentials in a token. Returns undefined if the token is not valid. */
  findCredentials(token: string): Promise<Credentials | undefined>;
}

/**
 * Creates a middleware that refuses requests without a well-formed API key or a valid access token. It also refuses a key
 * in the URL, because logs store URLs.
 */
export function requireApiKey(getTenantId: GetTenantId, tokens?: AccessTokens): MiddlewareHandler<Authenticated> {
  return async (context, next) => {
    if (hasKeyInAddress(context)) {
      return refuse(context, 400, 'A key must not be in the URL. Send it in the header "Authorization: Bearer …".');
    }
    const header = context.req.header('authorization') ?? '';
    const apiKey = bearerKeyPattern.exec(header)?.[1];
    const token = bearerTokenPattern.exec(header)?.[1];
    try {
      const credentials = apiKey
        ? { apiKey, tenantId: getTenantId(apiKey) }
        : token && (await tokens?.findCredentials(token));
      if (!credentials) return refuseUnauthorized(context, tokens);
      context.set('credentials', credentials);
    } catch (error) {
      if (!(error instanceof AdLibraryError) || error.failure.kind !== 'unavailable') throw error;
      context.header('Retry-After', '5');
      return refuse(context, 503, 'The shared state of this server cannot be reached, so no token can be checked.');
    }
    return next();
  };
}

/** Returns whether the URL of a request contains a parameter that is, or that names, a key or token. */
export function hasKeyInAddress({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((text) => ['access_token', 'api_key'].includes(text) || /svc_[a-z]+_/i.test(text));
}

function refuseUnauthorized(context: Context, tokens: AccessTokens | undefined) {
  // `invalid_token` only fits if the request had a header (RFC 6750, 3.1). Node joins repeated headers with a comma and a
  // space. No key contains these characters, so two keys are refused here, too.
  const errorParameter = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer ${tokens?.challenge ?? 'realm="ad-library-mcp"'}${errorParameter}`);
  const tokenHint = tokens ? ', or a token of its sign-in' : '';
  return refuse(
    context,
    401,
    `Every request needs your API key in one header "Authorization: Bearer svc_live_…"${tokenHint}.`,
  );
}

/** Returns the tenant id of a key. The server stores the data of a key under the tenant id and never stores the key. */
export type GetTenantId = (apiKey: string) => string;

/**
 * Creates a function that hashes API keys to tenant ids.
 * @param secret the secret that all replicas share. By default, a random secret of this process
 */
export const createGetTenantId =
  (secret = randomBytes(32).toString('hex')): GetTenantId =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');

/**
 * Creates a function that hashes a tenant id for the log. Operators can attribute calls to a caller without learning the
 * key or the name of the stored data.
 * @param secret the secret that all replicas share. By default, a random secret of this process
 */
export const createTenantHash =
  (secret = randomBytes(32).toString('hex')) =>
  (tenantId: string): string =>
    createHmac('sha256', secret).update(`log ${tenantId}`).digest('hex').slice(0, 16);
