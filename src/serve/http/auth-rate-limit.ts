import { LRUCache } from 'lru-cache';
import type { CallEvent } from '../../log/log.ts';
import { isRefused, type KnownKeys } from './known-keys.ts';

/** Limits how many unknown keys one address may try in a minute. */
export interface AuthRateLimit {
  /** Counts a key that is not known yet; returns the seconds to wait if the address has tried too many. */
  admit(tenantId: string, address: string): Promise<number | undefined>;
  /** Takes a key off the count if the service was asked and did not reject it. */
  onCall(event: CallEvent): void;
}

/** How many unknown keys addresses have tried, in this process or at all replicas. */
export interface TriedKeys {
  /** Adds to the count of an address, which ends a minute after its first key. */
  add(address: string, more: 1 | -1): Promise<{ tried: number; msLeft: number }>;
}

export interface AuthRateLimitOptions {
  knownKeys: KnownKeys;
  tried?: TriedKeys | undefined;
  /** 0 for no limit. */
  perMinute: number;
  /** A clock that only goes on. */
  now: () => number;
}

const minute = 60_000;
const maxAddresses = 10_000;
/** Keys that wait for their first answer; until it comes, they are not counted again. */
const maxPending = 10_000;

export function createAuthRateLimit(options: AuthRateLimitOptions): AuthRateLimit {
  const { knownKeys, perMinute, now, tried = triedHere(now) } = options;
  const pending = new LRUCache<string, string>({ max: maxPending, ...forAMinute(now) });
  return {
    async admit(tenantId, address) {
      if (perMinute === 0 || pending.has(tenantId)) return undefined;
      // First of all, so that concurrent calls with one key count once.
      pending.set(tenantId, address);
      const isKnown = await knownKeys.has(tenantId);
      const count = isKnown ? undefined : await tried.add(address, 1);
      if (count !== undefined && count.tried <= perMinute) return undefined;
      pending.delete(tenantId);
      if (count === undefined) return undefined;
      await tried.add(address, -1);
      return Math.max(1, Math.ceil(count.msLeft / 1000));
    },
    onCall(event) {
      const address = pending.get(event.tenantId);
      if (address === undefined || !tellsOfKey(event)) return;
      pending.delete(event.tenantId);
      if (!isRefused(event)) void tried.add(address, -1);
    },
  };
}

/** The count of this process. */
export function triedHere(now: () => number): TriedKeys {
  const counts = new LRUCache<string, number>({ max: maxAddresses, ...forAMinute(now) });
  return {
    add: async (address, more) => {
      const tried = Math.max(0, (counts.get(address) ?? 0) + more);
      counts.set(address, tried);
      return { tried, msLeft: counts.getRemainingTTL(address) };
    },
  };
}

const forAMinute = (now: () => number) => ({ ttl: minute, ttlResolution: 0, noUpdateTTL: true, perf: { now } });

/** Whether a call shows if its key is valid: not if it never reached the service, or if its caller left. */
const tellsOfKey = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);
