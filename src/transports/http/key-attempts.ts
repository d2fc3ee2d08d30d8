import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../logging/log.ts';

/** Limits the number of unknown API keys that an IP address may try. A key is unknown until the service accepts it. */
export type KeyAttemptLimiter = ReturnType<typeof createKeyAttemptLimiter>;

interface KeyAttemptLimiterOptions {
  /** The maximum number of unknown API keys that an IP address may try per minute. 0 means no limit. */
  maxKeysPerMinute: number;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  /** Returns true if the service recently accepted the API key. `tenantId` is a hash of the key. */
  isKnownKey(tenantId: string): Promise<boolean>;
}

const minuteMs = 60_000;
const maxCounters = 10_000;
/**
 * The maximum number of unknown API keys that the server remembers after counting them. A remembered key counts only
 * once per minute.
 */
const maxRememberedKeys = 10_000;

/**
 * Creates the limit on unknown API keys. A key counts as an attempt from its first request until the service accepts
 * the key. The limit therefore also applies to requests that never reach the service.
 */
export function createKeyAttemptLimiter({ maxKeysPerMinute, monotonicNow, isKnownKey }: KeyAttemptLimiterOptions) {
  const addressByUnknownKey = new LRUCache<string, string>({
    max: maxRememberedKeys,
    ...createMinuteExpiry(monotonicNow),
  });
  const pendingAttempts = new Map<string, Promise<number | undefined>>();
  const attemptCounter = createMinuteCounter(monotonicNow);

  /**
   * Counts an attempt unless the key is known. Returns the number of seconds to wait if there are too many attempts.
   */
  const checkLimitUnlessKnown = async (tenantId: string, ipAddress: string): Promise<number | undefined> => {
    if (maxKeysPerMinute === 0 || addressByUnknownKey.has(tenantId) || (await isKnownKey(tenantId))) return undefined;
    const { count, remainingMs } = attemptCounter.add(ipAddress, 1);
    if (count > maxKeysPerMinute) {
      attemptCounter.add(ipAddress, -1);
      return Math.max(1, Math.ceil(remainingMs / 1000));
    }
    addressByUnknownKey.set(tenantId, ipAddress);
    return undefined;
  };

  return {
    isKnownKey,
    /**
     * Counts an API key as an attempt, unless the service has recently accepted the key, and checks the count against
     * the limit. Returns undefined if the request may continue. If the IP address has tried too many keys, returns the
     * number of seconds to wait.
     */
    checkAttemptLimit(tenantId: string, ipAddress: string): Promise<number | undefined> {
      // Concurrent requests with the same key count only once.
      const attempt =
        pendingAttempts.get(tenantId) ??
        checkLimitUnlessKnown(tenantId, ipAddress).finally(() => pendingAttempts.delete(tenantId));
      pendingAttempts.set(tenantId, attempt);
      return attempt;
    },
    /**
     * Updates the count if a call has shown whether the service accepts the API key. An accepted key no longer counts
     * as an attempt.
     */
    onCall(event: CallEvent): void {
      const ipAddress = addressByUnknownKey.get(event.tenantId);
      if (ipAddress === undefined || !revealsKeyValidity(event)) return;
      addressByUnknownKey.delete(event.tenantId);
      if (event.kind !== 'unauthorized') attemptCounter.add(ipAddress, -1);
    },
  };
}

/** Creates a set of named counters. Each counter restarts at zero one minute after its first event. */
export function createMinuteCounter(monotonicNow: () => number) {
  const countsByName = new LRUCache<string, number>({ max: maxCounters, ...createMinuteExpiry(monotonicNow) });
  return {
    /**
     * Adds 1 to the counter with this name (e.g. an IP address), or subtracts 1. Returns the new count, and the number
     * of milliseconds until the counter restarts at zero.
     */
    add(counterName: string, change: 1 | -1) {
      const count = Math.max(0, (countsByName.get(counterName) ?? 0) + change);
      countsByName.set(counterName, count);
      return { count, remainingMs: countsByName.getRemainingTTL(counterName) };
    },
  };
}

const createMinuteExpiry = (monotonicNow: () => number) => ({
  ttl: minuteMs,
  ttlResolution: 0,
  noUpdateTTL: true,
  perf: { now: monotonicNow },
});

/**
 * Returns true if the outcome of a call shows whether its API key is valid. Returns false for cancelled calls and for
 * calls that never reached the service.
 */
const revealsKeyValidity = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);
