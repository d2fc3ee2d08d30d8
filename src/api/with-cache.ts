import { LRUCache } from 'lru-cache';
import { fingerprint, fingerprintStart } from './fingerprint.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';

export interface CacheOptions {
  /** How long a paid answer is kept, in milliseconds; 0 keeps none. */
  ttl: number;
  now: () => number;
}

interface Kept {
  answer: Answer;
  at: number;
}

/** Most characters of answers kept for all keys together. As objects they take two bytes each, or four where not Latin. */
const largestCache = 32 * 1024 * 1024;

/** Keeps paid answers, each under its own key: never pay twice for the same question while the answer is fresh. */
export function withCache(send: Send, { ttl, now }: CacheOptions): Send {
  if (ttl === 0) return send;
  const kept = new LRUCache<string, Kept>({
    maxSize: largestCache,
    sizeCalculation: ({ answer }, name) => answer.size + name.length,
  });
  let writes = 0;
  let lastId = 0;

  const dropItemsOf = (owner: string, collectionId: string) => {
    writes++;
    const prefix = `${owner} ${fingerprintStart('listCollectionItems', { collectionId })}`;
    // The ids are UUIDs, which are the same in either case.
    const same = (name: string) => name.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase();
    for (const name of kept.keys()) if (same(name)) kept.delete(name);
  };

  // Dropped even when the write fails: it may have been carried out all the same.
  const write = (call: Call) => send(call).finally(() => dropItemsOf(call.tenantId, call.path.collectionId ?? ''));

  const ask = gatedOnly(send, async (call) => {
    const name = `${call.tenantId} ${fingerprint(call)}`;
    const found = call.fresh ? undefined : kept.get(name);
    if (found && now() - found.at < ttl) return replayed(found.answer, now() - found.at);
    const before = writes;
    const answer = await send(call);
    // Items of a collection that were read while it was being written to may be those from before.
    const stale = call.operation.name === 'listCollectionItems' && writes !== before;
    if (stale) return answer;
    const cacheable = { ...answer, cacheId: ++lastId };
    kept.set(name, { answer: cacheable, at: now() });
    return cacheable;
  });

  return (call) => (call.operation.writes ? write(call) : ask(call));
}
