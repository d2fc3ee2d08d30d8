import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../log/log.ts';

/** Keys that the service accepted recently, by tenant id. */
export interface KnownKeys {
  has(tenantId: string): boolean;
  onCall(event: CallEvent): void;
}

/** How long accepted keys are remembered, in milliseconds, and how many; the least used go first. */
const ttl = 15 * 60_000;
const maxKeys = 10_000;

export function createKnownKeys(now: () => number): KnownKeys {
  const accepted = new LRUCache<string, true>({ max: maxKeys, ttl, ttlResolution: 0, perf: { now } });
  return {
    has: (tenantId) => accepted.has(tenantId),
    onCall(event) {
      if (isAccepted(event)) accepted.set(event.tenantId, true);
      else if (isRefused(event)) accepted.delete(event.tenantId);
    },
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
