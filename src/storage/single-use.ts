import type { StoreAccess } from './store/access.ts';

/**
 * Marks an id as used, e.g. the id of a spending confirmation. Returns true for the first use, and false for any later
 * use within `ttlMs`.
 */
export type UseOnce = (tenantId: string, id: string, ttlMs: number) => Promise<boolean>;

/** Opens the record of used ids. All processes with the same store share this record. */
export const openSingleUse =
  ({ documents, buildKey }: StoreAccess): UseOnce =>
  (tenantId, id, ttlMs) =>
    documents.update<Record<string, never>, boolean>(buildKey(tenantId, 'used', id), (usedDocument) =>
      usedDocument === undefined ? { next: {}, ttlMs, result: true } : { result: false },
    );
