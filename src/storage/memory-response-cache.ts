import { LRUCache } from 'lru-cache';
import type { CachedResponse, Claim, ResponseCache } from './call-state.ts';
import { estimateJsonMemory, TenantCache, type TenantCacheOptions } from './tenant-cache.ts';

/** The memory overhead of a cached response in bytes, for its receipt (charge and balance) and its parsed value. */
const answerBytes = 3 * 1024;

/**
 * The maximum number of forgotten groups that are remembered. All responses of a forgotten group, e.g. the lists of one
 * collection, were removed from the cache. The cache must not store responses to calls that were sent before that.
 */
const maxForgottenGroups = 10_000;

/** Creates a cache of API responses in the memory of this process. Its content is lost when the process ends. */
export function createMemoryResponseCache(options: TenantCacheOptions) {
  const cache = new TenantCache<CachedResponse>(options);
  const forgottenGroups = new LRUCache<string, number>({ max: maxForgottenGroups });
  let forgetCount = 0;
  const put = (tenantId: string, name: string, value: CachedResponse) =>
    cache.set(tenantId, name, { value, bytes: estimateJsonMemory(value.response.raw) + answerBytes });
  const forget = (tenantId: string, name: string) => cache.remove(tenantId, name);
  const answers: ResponseCache = {
    resolveName: async (tenantId, { group, fingerprint }) =>
      group === undefined ? fingerprint : `${group} ${forgottenGroups.get(`${tenantId} ${group}`) ?? 0} ${fingerprint}`,
    get: async (tenantId, name) => cache.get(tenantId, name),
    claim: async ({ owner: { tenantId } }, name, { after = Number.NEGATIVE_INFINITY }) => {
      if (name === undefined) return uncachedClaim;
      const cachedResponse = cache.get(tenantId, name);
      if (cachedResponse && isNewerThan(cachedResponse, after, options.now()))
        return { kind: 'cached', cachedResponse };
      return {
        ...uncachedClaim,
        put: async (answer) => put(tenantId, name, answer),
        forget: async () => forget(tenantId, name),
      };
    },
    forgetGroup: async (tenantId, group) => {
      forgottenGroups.set(`${tenantId} ${group}`, ++forgetCount);
      cache.removeByPrefix(tenantId, `${group} `);
    },
  };
  return { ...answers, put, forget };
}

/**
 * Returns true if a response arrived after `time`. A response dated in the future counts as older, because it arrived
 * before the clock was set back.
 */
export const isNewerThan = ({ arrivedAt }: CachedResponse, time: number, now: number): boolean =>
  arrivedAt > time && (arrivedAt <= now || time === Number.NEGATIVE_INFINITY);

/** The right to send a call without using the cache. Its methods do nothing. */
const uncachedClaim: Extract<Claim, { kind: 'granted' }> = {
  kind: 'granted',
  put: async () => {},
  forget: async () => {},
  end: async () => {},
};
