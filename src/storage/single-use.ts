import type { StoreAccess } from './store/access.ts';

/** Returns true on the first use of an id by a tenant. Later uses return false until `ttlMs` have passed. */
export type UseOnce = (tenantId: string, id: string, ttlMs: number) => Promise<boolean>;

/** Opens the record of used ids, which all processes of a store share. */
export const openSingleUse =
  ({ documents, keyOf }: StoreAccess): UseOnce =>
  (tenantId, id, ttlMs) =>
    documents.update<Record<string, never>, boolean>(keyOf(tenantId, 'used', id), (used) =>
      used === undefined ? { next: {}, ttlMs, result: true } : { result: false },
    );
