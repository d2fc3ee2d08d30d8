import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../logging/log.ts';

/** The limit on unknown keys, and the record of the keys that are not decided yet. */
export type KeyAttempts = ReturnType<typeof createKeyAttempts>;

interface KeyAttemptsOptions {
  /** How many unknown keys an address may try in a minute; 0 for no limit. */
  perMinute: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** Returns whether the service has accepted a key recently. */
  isKnown(tenantId: string): Promise<boolean>;
}

const minuteMs = 60_000;
const maxAddresses = 10_000;
/** The most keys that wait for their first answer from the service. A waiting key is not counted again for a minute. */
const maxPendingKeys = 10_000;

/**
 * Creates a limit on the unknown keys that an address may try in a minute. A key counts from its first request until the
 * service accepts it. Counting from the first request also limits requests that never reach the service.
 */
export function createKeyAttempts({ perMinute, now, isKnown }: KeyAttemptsOptions) {
  const addressByPendingKey = new LRUCache<string, string>({ max: maxPendingKeys, ...createMinuteExpiry(now) });
  const pendingDecisions = new Map<string, Promise<number | undefined>>();
  const attempts = createMinuteCounter(now);

  const decideAdmission = async (tenantId: string, address: string): Promise<number | undefined> => {
    if (perMinute === 0 || addressByPendingKey.has(tenantId) || (await isKnown(tenantId))) return undefined;
    const { count, remainingMs } = attempts.add(address, 1);
    if (count > perMinute) {
      attempts.add(address, -1);
      return Math.max(1, Math.ceil(remainingMs / 1000));
    }
    addressByPendingKey.set(tenantId, address);
    return undefined;
  };

  return {
    isKnown,
    /**
     * Counts a key, unless the service has accepted the key recently. Returns the seconds to wait if the address has tried
     * too many keys, and undefined if the request may continue.
     */
    admit(tenantId: string, address: string): Promise<number | undefined> {
      // Concurrent requests with the same key count once.
      const decision =
        pendingDecisions.get(tenantId) ??
        decideAdmission(tenantId, address).finally(() => pendingDecisions.delete(tenantId));
      pendingDecisions.set(tenantId, decision);
      return decision;
    },
    /** Removes a key from the count if its call has shown that the service accepts the key. */
    onCall(event: CallEvent): void {
      const address = addressByPendingKey.get(event.tenantId);
      if (address === undefined || !revealsKeyValidity(event)) return;
      addressByPendingKey.delete(event.tenantId);
      if (event.kind !== 'unauthorized') attempts.add(address, -1);
    },
  };
}

/** Creates a counter of events by name. A count starts again at zero one minute after its first event. */
export function createMinuteCounter(now: () => number) {
  const counts = new LRUCache<string, number>({ max: maxAddresses, ...createMinuteExpiry(now) });
  return {
    /** Changes a count. Returns the new count, and the milliseconds until the count starts again at zero. */
    add(name: string, change: 1 | -1) {
      const count = Math.max(0, (counts.get(name) ?? 0) + change);
      counts.set(name, count);
      return { count, remainingMs: counts.getRemainingTTL(name) };
    },
  };
}

const createMinuteExpiry = (now: () => number) => ({
  ttl: minuteMs,
  ttlResolution: 0,
  noUpdateTTL: true,
  perf: { now },
});

/**
 * Returns whether the outcome of a call shows if its key is valid. A call that was cancelled, or that never reached the
 * service, shows nothing.
 */
const revealsKeyValidity = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);
