import { LRUCache } from 'lru-cache';
import { createLruOptions } from '../lru-options.ts';
import type { AcceptedKeys } from './call-state.ts';
import { longTermTtlMs, type StoreAccess } from './store/access.ts';

/**
 * How long a process treats an API key as accepted after the service last accepted the key, in milliseconds, and how
 * many such keys the process remembers.
 */
const acceptedKeyTtlMs = 15 * 60_000;
const maxAcceptedKeys = 10_000;

/**
 * Creates an in-memory record of the API keys that the service has accepted. When the record is full, it forgets the
 * least recently used key.
 */
export function createMemoryAcceptedKeys(monotonicNow: () => number): AcceptedKeys {
  const acceptedTenantIds = new LRUCache<string, true>({
    ...createLruOptions(maxAcceptedKeys),
    ttl: acceptedKeyTtlMs,
    ttlResolution: 0,
    perf: { now: monotonicNow },
  });
  return {
    has: async (tenantId) => acceptedTenantIds.has(tenantId),
    add: async (tenantId) => void acceptedTenantIds.set(tenantId, true),
    remove: async (tenantId) => void acceptedTenantIds.delete(tenantId),
  };
}

/**
 * Creates a record of the API keys that the service has rejected, for a process with a single user. All other keys
 * count as accepted, because the stored data belongs to this user anyway.
 */
export function createSingleUserAcceptedKeys(): AcceptedKeys {
  const rejectedTenantIds = new Set<string>();
  return {
    has: async (tenantId) => !rejectedTenantIds.has(tenantId),
    add: async (tenantId) => void rejectedTenantIds.delete(tenantId),
    remove: async (tenantId) => void rejectedTenantIds.add(tenantId),
  };
}

interface AcceptedKeyDocument {
  /** The time at which the service last accepted the API key, by the store's clock. */
  acceptedAt: number;
}

/**
 * Opens the records of accepted API keys and of sign-in connections. All replicas of the server share these records.
 */
export function openSharedKeyRecords({ documents, queue, buildKey, encryption }: StoreAccess) {
  const localKeys = createMemoryAcceptedKeys(() => performance.now());
  const buildDocumentKey = (tenantId: string) => buildKey(tenantId, 'accepted');
  /**
   * The API keys that the service has accepted, identified by tenant id (a hash of the key). While the store is
   * unreachable, each replica uses the keys that it last read or wrote.
   */
  const acceptedKeys: AcceptedKeys = {
    has: async (tenantId) => {
      const document = await documents.read<AcceptedKeyDocument>(buildDocumentKey(tenantId)).catch(() => undefined);
      if (document === undefined) return localKeys.has(tenantId);
      await (document.doc ? localKeys.add(tenantId) : localKeys.remove(tenantId));
      return document.doc !== undefined;
    },
    add: async (tenantId) => {
      await localKeys.add(tenantId);
      const key = buildDocumentKey(tenantId);
      const cachedDocument = documents.getCached<AcceptedKeyDocument>(key);
      if (
        cachedDocument?.doc &&
        cachedDocument.readAt + cachedDocument.ageMs - cachedDocument.doc.acceptedAt < acceptedKeyTtlMs / 2
      )
        return;
      await documents
        .write<AcceptedKeyDocument>(key, (acceptedAt) => ({ acceptedAt }), acceptedKeyTtlMs)
        .catch(() => {});
    },
    remove: async (tenantId) => {
      await localKeys.remove(tenantId);
      await queue.write(() => documents.write(buildDocumentKey(tenantId), () => null));
    },
  };
  return {
    /** The secret for hashing API keys into tenant ids. It ensures that a tenant id does not reveal the API key. */
    tenantSecret: encryption.hashName('tenant secret'),
    keys: acceptedKeys,
    /**
     * Returns true if the service accepted the API key recently. Reads the shared store only if this replica does not
     * know the key.
     */
    isKnownKey: async (tenantId: string) => (await localKeys.has(tenantId)) || acceptedKeys.has(tenantId),
    /**
     * The sign-in connections of an API key. Each connection lets one app use the key. The sign-in code defines the
     * document format `Doc`.
     */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(buildKey(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(buildKey(tenantId, 'connections'), (doc) => ({
          ...change(doc),
          ttlMs: longTermTtlMs,
        })),
    },
  };
}
