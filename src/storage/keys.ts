import { LRUCache } from 'lru-cache';
import type { AcceptedKeys } from './call-state.ts';
import { markTtlMs, type StoreAccess } from './store/access.ts';

/** How long an accepted key counts as one, in milliseconds, and how many do in one process: the least used go first. */
const acceptedMs = 15 * 60_000;
const maxAccepted = 10_000;

export function memoryKeys(elapsed: () => number): AcceptedKeys {
  const accepted = new LRUCache<string, true>({
    max: maxAccepted,
    ttl: acceptedMs,
    ttlResolution: 0,
    perf: { now: elapsed },
  });
  return {
    has: async (tenantId) => accepted.has(tenantId),
    add: async (tenantId) => void accepted.set(tenantId, true),
    remove: async (tenantId) => void accepted.delete(tenantId),
  };
}

/** The key of a person's own process, which is a good one until the service rejects it. */
export function ownKeys(): AcceptedKeys {
  const rejected = new Set<string>();
  return {
    has: async (tenantId) => !rejected.has(tenantId),
    add: async (tenantId) => void rejected.delete(tenantId),
    remove: async (tenantId) => void rejected.add(tenantId),
  };
}

interface Accepted {
  at: number;
}

export function sharedKeys({ documents, queue, keyOf, seal }: StoreAccess) {
  const heard = memoryKeys(() => performance.now());
  const keyOfTenant = (tenantId: string) => keyOf(tenantId, 'accepted');
  /** The register of all replicas. While the store is away, each replica knows what it heard last. */
  const keys: AcceptedKeys = {
    has: async (tenantId) => {
      const read = await documents.read<Accepted>(keyOfTenant(tenantId)).catch(() => undefined);
      if (read === undefined) return heard.has(tenantId);
      await (read.doc ? heard.add(tenantId) : heard.remove(tenantId));
      return read.doc !== undefined;
    },
    add: async (tenantId) => {
      await heard.add(tenantId);
      const key = keyOfTenant(tenantId);
      const remembered = documents.remembered<Accepted>(key);
      if (remembered?.doc && remembered.now + remembered.ageMs - remembered.doc.at < acceptedMs / 2) return;
      await documents.write<Accepted>(key, (at) => ({ at }), acceptedMs).catch(() => {});
    },
    remove: async (tenantId) => {
      await heard.remove(tenantId);
      await queue.write(() => documents.write(keyOfTenant(tenantId), () => null));
    },
  };
  return {
    /** The secret with which tenant ids are made. */
    tenantSecret: seal.name('tenant secret'),
    keys,
    /** Whether a key was accepted lately, as this replica heard last. */
    isKnownKey: async (tenantId: string) => (await heard.has(tenantId)) || keys.has(tenantId),
    /** The connections that people signed in with a key, as sign-in stores them. */
    connections: {
      read: async <Doc>(tenantId: string) => (await documents.read<Doc>(keyOf(tenantId, 'connections'))).doc,
      update: <Doc, Result>(tenantId: string, change: (doc?: Doc) => { next?: Doc; result: Result }) =>
        documents.update<Doc, Result>(keyOf(tenantId, 'connections'), (doc) => ({ ...change(doc), ttlMs: markTtlMs })),
    },
  };
}
