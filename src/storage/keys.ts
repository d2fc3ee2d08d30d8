import { LRUCache } from 'lru-cache';
import type { AcceptedKeys } from './call-state.ts';
import { markTtlMs, type StoreAccess } from './store/access.ts';

/** How long an accepted key counts as one, in milliseconds, and how many do in one process: the least used go first. */
const acceptedTtlMs = 15 * 60_000;
const maxAccepted = 10_000;

export function createMemoryKeys(monotonicNow: () => number): AcceptedKeys {
  const accepted = new LRUCache<string, true>({
    max: maxAccepted,
    ttl: acceptedTtlMs,
    ttlResolution: 0,
    perf: { now: monotonicNow },
  });
  return {
    has: async (tenantId) => accepted.has(tenantId),
    add: async (tenantId) => void accepted.set(tenantId, true),
    remove: async (tenantId) => void accepted.delete(tenantId),
  };
}

/** The key of a person's own process, which is a good one until the service rejects it. */
export function createSingleUserKeys(): AcceptedKeys {
  const rejected = new Set<string>();
  return {
    has: async (tenantId) => !rejected.has(tenantId),
    add: async (tenantId) => void rejected.delete(tenantId),
    remove: async (tenantId) => void rejected.add(tenantId),
  };
}

interface AcceptedKeyDocument {
  at: number;
}

export function openSharedKeys({ documents, queue, keyOf, encryption }: StoreAccess) {
  const localKeys = createMemoryKeys(() => performance.now());
  const documentKeyOf = (tenantId: string) => keyOf(tenantId, 'accepted');
  /** The register of all replicas. While the store is away, each replica knows what it heard last. */
  const keys: AcceptedKeys = {
    has: async (tenantId) => {
      const read = await documents.read<AcceptedKeyDocument>(documentKeyOf(tenantId)).catch(() => undefined);
      if (read === undefined) return localKeys.has(tenantId);
      await (read.doc ? localKeys.add(tenantId) : localKeys.remove(tenantId));
      return read.doc !== undefined;
    },
    add: async (tenantId) => {
      await localKeys.add(tenantId);
      const key = documentKeyOf(tenantId);
      const remembered = documents.getCached<AcceptedKeyDocument>(key);
      if (remembered?.doc && remembered.now + remembered.ageMs - remembered.doc.at < acceptedTtlMs / 2) return;
      await documents.write<AcceptedKeyDocument>(key, (at) => ({ at }), acceptedTtlMs).catch(() => {});
    },
    remove: async (tenantId) => {
      await localKeys.remove(tenantId);
      await queue.write(() => documents.write(documentKeyOf(tenantId), () => null));
    },
  };
  return {
    /** The secret with which tenant ids are made. */
    tenantSecret: encryption.hashName('tenant secret'),
    keys,
    /** Whether a key was accepted lately, as this replica heard last. */
    isKnownKey: async (tenantId: string) => (await localKeys.has(tenantId)) || keys.has(tenantId),
    /** The connections that people signed in with a key, as sign-in stores them. */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(keyOf(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(keyOf(tenantId, 'connections'), (doc) => ({ ...change(doc), ttlMs: markTtlMs })),
    },
  };
}
