import { LRUCache } from 'lru-cache';
import { createLruOptions } from '../lru-options.ts';
import type { CachedResponse, ClaimResult, ResponseCache } from './call-state.ts';
import { estimateJsonMemory, TenantCache, type TenantCacheOptions } from './tenant-cache.ts';

/**
 * The estimated memory overhead of a cached response, in bytes. It covers the charge, the credit balance and the parsed
 * value.
 */
const responseOverheadBytes = 3 * 1024;

/**
 * The maximum number of removed groups that the cache remembers. A group is a set of responses, e.g. all lists of one
 * collection. The cache remembers a removal so that responses to calls that were sent before the removal are not used
 * afterwards.
 */
const maxRememberedRemovals = 10_000;

/** Creates a cache of API responses in the memory of this process. */
export function createMemoryResponseCache(options: TenantCacheOptions) {
  const cache = new TenantCache<CachedResponse>(options);
  const removalNumberByGroup = new LRUCache<string, number>(createLruOptions(maxRememberedRemovals));
  let removalCount = 0;
  const cacheResponse = (tenantId: string, name: string, value: CachedResponse) =>
    cache.set(tenantId, name, { value, bytes: estimateJsonMemory(value.response.rawBody) + responseOverheadBytes });
  const removeResponse = (tenantId: string, name: string) => cache.remove(tenantId, name);
  const responseCache: ResponseCache = {
    resolveName: async (tenantId, { group, fingerprint }) =>
      group === undefined
        ? fingerprint
        : `${group} ${removalNumberByGroup.get(`${tenantId} ${group}`) ?? 0} ${fingerprint}`,
    get: async (tenantId, name) => cache.get(tenantId, name),
    claim: async ({ owner: { tenantId } }, name, { arrivedAfter = Number.NEGATIVE_INFINITY }) => {
      if (name === undefined) return uncachedClaim;
      const cachedResponse = cache.get(tenantId, name);
      if (cachedResponse && isNewerThan(cachedResponse, arrivedAfter, options.now()))
        return { kind: 'cached', cachedResponse };
      return {
        ...uncachedClaim,
        cacheResponse: async (newResponse) => cacheResponse(tenantId, name, newResponse),
        removeResponse: async () => removeResponse(tenantId, name),
      };
    },
    forgetGroup: async (tenantId, group) => {
      removalNumberByGroup.set(`${tenantId} ${group}`, ++removalCount);
      cache.removeByPrefix(tenantId, `${group} `);
    },
  };
  return { ...responseCache, put: cacheResponse, forget: removeResponse };
}

/**
 * Returns true if a response arrived after `referenceTime`. An arrival time in the future means that the clock was set
 * back, so such a response counts as older.
 */
export const isNewerThan = ({ arrivedAt }: CachedResponse, referenceTime: number, now: number): boolean =>
  arrivedAt > referenceTime && (arrivedAt <= now || referenceTime === Number.NEGATIVE_INFINITY);

/**
 * A claim (the right to send an API call) for a call whose response is not cached. Its methods therefore do nothing.
 */
const uncachedClaim: Extract<ClaimResult, { kind: 'granted' }> = {
  kind: 'granted',
  cacheResponse: async () => false,
  removeResponse: async () => {},
  endClaim: async () => {},
};
