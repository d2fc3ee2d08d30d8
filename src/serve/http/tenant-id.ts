import { hash, randomBytes } from 'node:crypto';

/**
 * Names a key's share of what the process keeps, without keeping the key: a hash with a secret of the process, so
 * that nobody else can make it. It is never shown, so a keyed hash would protect nothing more.
 */
export type Partition = (key: string) => string;

export function createPartition(): Partition {
  const secret = randomBytes(32).toString('hex');
  return (key) => hash('sha256', `${secret}${key}`, 'base64url');
}
