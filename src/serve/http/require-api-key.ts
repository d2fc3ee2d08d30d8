import { hash, randomBytes } from 'node:crypto';
import type { Context, MiddlewareHandler } from 'hono';
import type { Credentials } from '../../api/client.ts';
import { refuse } from './refuse.ts';

/** What a key must look like before it is sent anywhere: the live prefix, then RFC 6750's characters (document, *Authentication* 2). */
const keyShape = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(svc_live_[\w.~+/-]{1,256}=*)$/;

/** Whose request it is, once its key has been read. */
export type Authenticated = { Variables: { credentials: Credentials } };

/** Refuses requests without a well-formed key, and keys in the address, where logs would keep them. */
export function requireApiKey(tenantIdOf: TenantIdOf): MiddlewareHandler<Authenticated> {
  return async (context, next) => {
    if (hasKeyInQuery(context)) {
      return refuse(context, 400, 'A key must not be in the address: send it in the header "Authorization: Bearer …".');
    }
    const apiKey = keyShape.exec(context.req.header('authorization') ?? '')?.[1];
    if (apiKey === undefined) return unauthorized(context);
    context.set('credentials', { apiKey, tenantId: tenantIdOf(apiKey) });
    return next();
  };
}

function hasKeyInQuery({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((part) => part === 'access_token' || /svc_[a-z]+_/i.test(part));
}

function unauthorized(context: Context) {
  // Several such headers are joined with a comma and a space, which no key contains.
  const given = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer realm="ad-library-mcp"${given}`);
  return refuse(context, 401, 'Every request needs your API key in one header "Authorization: Bearer svc_live_…".');
}

/** Tenant id of a key: keeps what is remembered of one key apart from all others, without keeping the key. */
type TenantIdOf = (apiKey: string) => string;

/**
 * A hash with a secret, so that nobody else can make one. It is never shown.
 * @param secret of all replicas; by default one of this process alone
 */
export const createTenantIds =
  (secret = randomBytes(32).toString('hex')): TenantIdOf =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');
