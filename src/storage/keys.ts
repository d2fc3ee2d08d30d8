import { LRUCache } from 'lru-cache';
import type { AcceptedKeys } from './call-state.ts';
import { markTtlMs, type StoreAccess } from './store/access.ts';

/** How long a key counts as accepted, in milliseconds, and how many keys one process remembers. */
const acceptedTtlMs = 15 * 60_000;
const maxAccepted = 10_000;

/** Remembers accepted keys in this process. If there are too many keys, forgets the least recently used key. */
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

/** Remembers the keys of a process that serves one person. Such a key counts as accepted until the service rejects it. */
export function createSingleUserKeys(): AcceptedKeys {
  const rejected = new Set<string>();
  return {
    has: async (tenantId) => !rejected.has(tenantId),
    add: async (tenantId) => void rejected.delete(tenantId),
    remove: async (tenantId) => void rejected.add(tenantId),
  };
}

interface AcceptedKeyDocument {
  /** When the service accepted the key last, by the clock of the store. */
  at: number;
}

/** Opens the keys that replicas share, and the connections that people have signed in. */
export function openSharedKeys({ documents, queue, keyOf, encryption }: StoreAccess) {
  const localKeys = createMemoryKeys(() => performance.now());
  const documentKeyOf = (tenantId: string) => keyOf(tenantId, 'accepted');
  /** While the store is unreachable, each replica uses the last known state. */
  const keys: AcceptedKeys = {
    has: async (tenantId) => {
      const reply = await documents.read<AcceptedKeyDocument>(documentKeyOf(tenantId)).catch(() => undefined);
      if (reply === undefined) return localKeys.has(tenantId);
      await (reply.doc ? localKeys.add(tenantId) : localKeys.remove(tenantId));
      return reply.doc !== undefined;
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
    /** The secret from which tenant ids are derived. */
    tenantSecret: encryption.hashName('tenant secret'),
    keys,
    /** Returns whether a key was accepted recently. Asks the store only if this replica does not know the key. */
    isKnownKey: async (tenantId: string) => (await localKeys.has(tenantId)) || keys.has(tenantId),
    /** The connections that people have signed in with a key. Sign-in defines the form of the document. */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(keyOf(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(keyOf(tenantId, 'connections'), (doc) => ({ ...change(doc), ttlMs: markTtlMs })),
    },
  };
}
