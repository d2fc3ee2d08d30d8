import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../log/log.ts';

/** Keys that the service accepted recently, by tenant id. */
export interface KnownKeys {
  has(tenantId: string): Promise<boolean>;
  onCall(event: CallEvent): void;
}

/** What is known of keys, in this process or shared by all replicas. */
export interface KeyStore {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): void;
  remove(tenantId: string): void;
}

/** How long accepted keys are remembered, in milliseconds, and how many; the least used go first. */
const ttl = 15 * 60_000;
const maxKeys = 10_000;

export function createKnownKeys(now: () => number, keys: KeyStore = memoryKeys(now)): KnownKeys {
  return {
    has: (tenantId) => keys.has(tenantId),
    onCall(event) {
      if (isAccepted(event)) keys.add(event.tenantId);
      else if (isRefused(event)) keys.remove(event.tenantId);
    },
  };
}

function memoryKeys(now: () => number): KeyStore {
  const accepted = new LRUCache<string, true>({ max: maxKeys, ttl, ttlResolution: 0, perf: { now } });
  return {
    has: async (tenantId) => accepted.has(tenantId),
    add: (tenantId) => void accepted.set(tenantId, true),
    remove: (tenantId) => void accepted.delete(tenantId),
  };
}

/** The document's errors about the account or what was asked for: the service checks the key before. */
const authenticated = [402, 403, 404, 422, 429];

/**
 * An answer of the service to a good key: a success that is no kept answer, or an error. Only the service gives its
 * errors a request id: a gateway that answers 403 or 429 has not seen the key, and neither has a service that this
 * server did not ask.
 */
export const isAccepted = ({ kind, cached, status = 0, requestId }: CallEvent): boolean =>
  kind === undefined ? cached !== true : authenticated.includes(status) && Boolean(requestId);

export const isRefused = ({ kind }: CallEvent): boolean => kind === 'unauthorized';
