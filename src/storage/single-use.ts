import type { StoreAccess } from './store/access.ts';

/**
 * Marks an id as used, e.g. the id of a spending confirmation. Returns true for the first use, and false for any later
 * use within `ttlMs`.
 */
export type UseOnce = (tenantId: string, id: string, ttlMs: number) => Promise<boolean>;

/** Creates a function that marks ids as used. All processes with the same store share the record of used ids. */
export const createUseOnce =
  ({ documents, buildKey }: StoreAccess): UseOnce =>
  (tenantId, id, ttlMs) =>
    documents.update<Record<string, never>, boolean>(buildKey(tenantId, 'used', id), (usedDocument) =>
      usedDocument === undefined ? { next: {}, ttlMs, result: true } : { result: false },
    );
