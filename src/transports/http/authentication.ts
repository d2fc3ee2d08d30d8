import { hash, randomBytes } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { refuse } from './refusals.ts';

/**
 * The form of an API key: the live prefix, then the characters of RFC 6750 (API document, *Authentication* 2). A text of
 * another form is sent nowhere.
 */
const keyForm = String.raw`svc_live_[\w.~+/-]{1,256}=*`;
const wholeKey = new RegExp(`^${keyForm}$`);
const bearerKey = new RegExp(`^[Bb][Ee][Aa][Rr][Ee][Rr] +(${keyForm})$`);
/** The form of an access token that sign-in issues. */
const bearerToken = /^bearer +([\w-]{40,4096})$/i;

export const isApiKey = (text: string): boolean => wholeKey.test(text);

export type Authenticated = { Variables: { credentials: Credentials } };

interface AccessTokens {
  challenge: string;
  credentials(token: string): Promise<Credentials | undefined>;
}

/**
 * Refuses requests without a well-formed API key or a valid access token. Also refuses a key in the address, where logs
 * would store it.
 */
export function requireApiKey(tenantIdOf: TenantIdOf, tokens?: AccessTokens): MiddlewareHandler<Authenticated> {
  return async (context, next) => {
    if (hasKeyInAddress(context)) {
      return refuse(context, 400, 'A key must not be in the address: send it in the header "Authorization: Bearer …".');
    }
    const header = context.req.header('authorization') ?? '';
    const apiKey = bearerKey.exec(header)?.[1];
    const token = bearerToken.exec(header)?.[1];
    try {
      const credentials = apiKey
        ? { apiKey, tenantId: tenantIdOf(apiKey) }
        : token && (await tokens?.credentials(token));
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

export function hasKeyInAddress({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((part) => ['access_token', 'api_key'].includes(part) || /svc_[a-z]+_/i.test(part));
}

function refuseUnauthorized(context: Context, tokens: AccessTokens | undefined) {
  // Node joins repeated headers with a comma and a space, and no key contains these.
  const problem = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer ${tokens?.challenge ?? 'realm="ad-library-mcp"'}${problem}`);
  const signIn = tokens ? ', or a token of its sign-in' : '';
  return refuse(
    context,
    401,
    `Every request needs your API key in one header "Authorization: Bearer svc_live_…"${signIn}.`,
  );
}

/** Returns the tenant id of a key. It separates the data of one key from the data of all others without storing the key. */
export type TenantIdOf = (apiKey: string) => string;

/**
 * Creates a function that hashes keys to tenant ids.
 * @param secret the secret that all replicas share; by default, a secret of this process
 */
export const createTenantIds =
  (secret = randomBytes(32).toString('hex')): TenantIdOf =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');
