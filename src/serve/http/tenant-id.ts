import { hash, randomBytes } from 'node:crypto';

/** Tenant id of a key: keeps what the process remembers of one key apart from all others, without keeping the key. */
export type TenantIdOf = (apiKey: string) => string;

/** A hash with a secret of the process, so that nobody else can make one. It is never shown. */
export function createTenantIds(): TenantIdOf {
  const secret = randomBytes(32).toString('hex');
  return (apiKey) => hash('sha256', `${secret}${apiKey}`, 'base64url');
}
