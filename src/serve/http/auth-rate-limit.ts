import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../log/log.ts';
import { isRefused, type KnownKeys } from './known-keys.ts';

/** Bounds how many keys the service does not know one address may try in a minute. */
export interface AuthRateLimit {
  /** Counts a key that is not known yet; returns the seconds to wait where the address has tried too many. */
  admit(tenantId: string, address: string): number | undefined;
  /** Gives the count back where the service was asked and did not refuse the key. */
  onCall(event: CallEvent): void;
}

export interface AuthRateLimitOptions {
  knownKeys: KnownKeys;
  /** 0 for any number. */
  perMinute: number;
  now: () => number;
}

const minute = 60_000;
const maxAddresses = 10_000;
/** Keys whose answer is awaited; one that is counted is not counted again until then. */
const maxPending = 10_000;

export function createAuthRateLimit({ knownKeys, perMinute, now }: AuthRateLimitOptions): AuthRateLimit {
  const perf = { now };
  const tried = new LRUCache<string, number>({
    max: maxAddresses,
    ttl: minute,
    ttlResolution: 0,
    noUpdateTTL: true,
    perf,
  });
  const pending = new LRUCache<string, string>({
    max: maxPending,
    ttl: minute,
    ttlResolution: 0,
    noUpdateTTL: true,
    perf,
  });
  const count = (address: string, more: 1 | -1) => tried.set(address, Math.max(0, (tried.get(address) ?? 0) + more));
  return {
    admit(tenantId, address) {
      if (perMinute === 0 || knownKeys.has(tenantId) || pending.has(tenantId)) return undefined;
      if ((tried.get(address) ?? 0) >= perMinute) return Math.max(1, Math.ceil(tried.getRemainingTTL(address) / 1000));
      count(address, 1);
      pending.set(tenantId, address);
      return undefined;
    },
    onCall(event) {
      const address = pending.get(event.tenantId);
      if (address === undefined || !tellsOfKey(event)) return;
      pending.delete(event.tenantId);
      if (!isRefused(event)) count(address, -1);
    },
  };
}

/** A call that the service was not asked for, or whose caller left, says nothing of the key, and must not end its count. */
const tellsOfKey = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);
