import type { StoreAccess } from './store/access.ts';

/** Returns whether this is the first use of an id of a tenant. Later uses of the same id return false until `ttlMs` is over. */
export type UseOnce = (tenantId: string, id: string, ttlMs: number) => Promise<boolean>;

/** Opens the ids that were used, for all processes of a store. */
export const openSingleUse =
  ({ documents, keyOf }: StoreAccess): UseOnce =>
  (tenantId, id, ttlMs) =>
    documents.update<Record<string, never>, boolean>(keyOf(tenantId, 'used', id), (used) =>
      used === undefined ? { next: {}, ttlMs, result: true } : { result: false },
    );
