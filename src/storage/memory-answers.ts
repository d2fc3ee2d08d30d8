import { LRUCache } from 'lru-cache';
import type { AnswerCache, CachedAnswer, Claim } from './call-state.ts';
import { estimateJsonMemory, TenantCache, type TenantCacheOptions } from './tenant-cache.ts';

/** The overhead of a cached answer: its receipt, and the value that its schema has parsed. */
const answerBytes = 3 * 1024;

/**
 * The largest number of tombstones. A tombstone marks a forgotten group, so that an answer to a call from before is not
 * served afterwards.
 */
const maxForgottenGroups = 10_000;

/** Creates a cache of answers in the memory of this process. */
export function createMemoryAnswers(options: TenantCacheOptions) {
  const cache = new TenantCache<CachedAnswer>(options);
  const forgottenGroups = new LRUCache<string, number>({ max: maxForgottenGroups });
  let forgetCount = 0;
  const put = (tenantId: string, name: string, value: CachedAnswer) =>
    cache.set(tenantId, name, { value, bytes: estimateJsonMemory(value.answer.raw) + answerBytes });
  const forget = (tenantId: string, name: string) => cache.remove(tenantId, name);
  const answers: AnswerCache = {
    resolveName: async (tenantId, { group, fingerprint }) =>
      group === undefined ? fingerprint : `${group} ${forgottenGroups.get(`${tenantId} ${group}`) ?? 0} ${fingerprint}`,
    get: async (tenantId, name) => cache.get(tenantId, name),
    claim: async ({ owner: { tenantId } }, name, { after = Number.NEGATIVE_INFINITY }) => {
      if (name === undefined) return uncachedClaim;
      const cachedAnswer = cache.get(tenantId, name);
      if (cachedAnswer && isNewerThan(cachedAnswer, after, options.now())) return { kind: 'cached', cachedAnswer };
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
 * Returns whether an answer came after a time. An answer with a time in the future is older: it came before the clock was
 * set back.
 */
export const isNewerThan = ({ at }: CachedAnswer, time: number, now: number): boolean =>
  at > time && (at <= now || time === Number.NEGATIVE_INFINITY);

/** The claim of a call whose answer is not cached. */
const uncachedClaim: Extract<Claim, { kind: 'granted' }> = {
  kind: 'granted',
  put: async () => {},
  forget: async () => {},
  end: async () => {},
};
