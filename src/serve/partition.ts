import { createHmac, randomBytes } from 'node:crypto';

/** Names a key's share of what the process keeps, without keeping the key: a keyed hash nobody else can make. */
export type Partition = (key: string) => string;

export function createPartition(): Partition {
  const secret = randomBytes(32);
  return (key) => createHmac('sha256', secret).update(key).digest('base64url');
}
