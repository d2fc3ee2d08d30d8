import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../logging/log.ts';

export type KeyAttempts = ReturnType<typeof createKeyAttempts>;

interface KeyAttemptsOptions {
  /** How many unknown keys an address may try in a minute; 0 for no limit. */
  perMinute: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  isKnown(tenantId: string): Promise<boolean>;
}

const minute = 60_000;
const maxAddresses = 10_000;
/** Keys that wait for their first answer of the service. They are not counted again until it comes, or for a minute. */
const maxPending = 10_000;

/**
 * Limits the unknown keys that an address may try. A key counts from its first request until the service accepts it, so
 * that an invented key gets nothing for free.
 */
export function createKeyAttempts({ perMinute, now, isKnown }: KeyAttemptsOptions) {
  const addresses = new LRUCache<string, string>({ max: maxPending, ...expiresInMinute(now) });
  const deciding = new Map<string, Promise<number | undefined>>();
  const attempts = countPerMinute(now);

  const decide = async (tenantId: string, address: string): Promise<number | undefined> => {
    if (perMinute === 0 || addresses.has(tenantId) || (await isKnown(tenantId))) return undefined;
    const { count, remainingMs } = attempts.add(address, 1);
    if (count > perMinute) {
      attempts.add(address, -1);
      return Math.max(1, Math.ceil(remainingMs / 1000));
    }
    addresses.set(tenantId, address);
    return undefined;
  };

  return {
    isKnown,
    /** Counts a key that is not known yet. Returns the seconds to wait if the address has tried too many keys. */
    admit(tenantId: string, address: string): Promise<number | undefined> {
      // Concurrent calls with one key count once.
      const decision = deciding.get(tenantId) ?? decide(tenantId, address).finally(() => deciding.delete(tenantId));
      deciding.set(tenantId, decision);
      return decision;
    },
    /** Takes a key off the count once a call has shown that the service did not reject the key. */
    onCall(event: CallEvent): void {
      const address = addresses.get(event.tenantId);
      if (address === undefined || !showsKey(event)) return;
      addresses.delete(event.tenantId);
      if (event.kind !== 'unauthorized') attempts.add(address, -1);
    },
  };
}

/** Counts events by name. A count ends a minute after its first event. */
export function countPerMinute(now: () => number) {
  const counts = new LRUCache<string, number>({ max: maxAddresses, ...expiresInMinute(now) });
  return {
    /** Adds to a count. Returns the count, and the milliseconds until the count ends. */
    add(name: string, more: 1 | -1) {
      const count = Math.max(0, (counts.get(name) ?? 0) + more);
      counts.set(name, count);
      return { count, remainingMs: counts.getRemainingTTL(name) };
    },
  };
}

const expiresInMinute = (now: () => number) => ({ ttl: minute, ttlResolution: 0, noUpdateTTL: true, perf: { now } });

/** Returns whether a call shows if its key is valid. A call does not if it never reached the service or was cancelled. */
const showsKey = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);
