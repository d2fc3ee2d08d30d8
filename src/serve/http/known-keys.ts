import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../log/log.ts';

/** Keys the service accepted lately, by tenant id. */
export interface KnownKeys {
  has(tenantId: string): boolean;
  onCall(event: CallEvent): void;
}

/** How long an accepted key is known, in milliseconds, and how many are; the least used go first. */
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

/** A success that is no kept answer, or an error about the account or what was asked for: all need a good key. */
export const isAccepted = ({ kind, cached, status = 0 }: CallEvent): boolean =>
  kind === undefined ? cached !== true : [402, 403, 404, 422, 429].includes(status);

export const isRefused = ({ kind }: CallEvent): boolean => kind === 'unauthorized';
