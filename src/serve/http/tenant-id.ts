import { hash, randomBytes } from 'node:crypto';

/** Tenant id of a key: keeps what is remembered of one key apart from all others, without keeping the key. */
export type TenantIdOf = (apiKey: string) => string;

/**
 * A hash with a secret, so that nobody else can make one. It is never shown.
 * @param secret of all replicas; by default one of this process alone
 */
export function createTenantIds(secret = randomBytes(32).toString('hex')): TenantIdOf {
  return (apiKey) => hash('sha256', `${secret}${apiKey}`, 'base64url');
}
