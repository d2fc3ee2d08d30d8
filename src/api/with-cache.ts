import { LRUCache } from 'lru-cache';
import { fingerprint } from './fingerprint.ts';
import type { Partition } from './partition.ts';
import type { Answer, Send } from './send.ts';

export interface CacheOptions {
  /** How long a paid answer is kept, in milliseconds; 0 keeps none. */
  ttl: number;
  now: () => number;
  partition: Partition;
  /** Told of every answer that saved a call. */
  onSaved(key: string, answer: Answer): void;
}

interface Kept {
  answer: Answer;
  at: number;
}

/** Most bytes of answers kept for all keys together. */
const largestCache = 64 * 1024 * 1024;

/** Keeps paid answers, each under its own key: never pay twice for the same question while the answer is fresh. */
export function withCache(send: Send, { ttl, now, partition, onSaved }: CacheOptions): Send {
  if (ttl === 0) return send;
  const kept = new LRUCache<string, Kept>({
    maxSize: largestCache,
    sizeCalculation: ({ answer }, name) => answer.size + name.length,
  });

  const dropItemsOf = (owner: string, collectionId: string | undefined) => {
    const prefix = `${owner} ["listCollectionItems",{"collectionId":${JSON.stringify(collectionId)}}`;
    for (const name of kept.keys()) if (name.startsWith(prefix)) kept.delete(name);
  };

  return async (call) => {
    const owner = partition(call.key);
    if (call.operation.name === 'addCollectionItem') {
      // Dropped even when the write fails: it may have been carried out all the same.
      return send(call).finally(() => dropItemsOf(owner, call.path.collectionId));
    }
    if (!call.operation.gated) return send(call);

    const name = `${owner} ${fingerprint(call)}`;
    const found = call.fresh ? undefined : kept.get(name);
    if (found && now() - found.at < ttl) {
      onSaved(call.key, found.answer);
      const receipt = { ...found.answer.receipt, charged: 0, cached: true, age: now() - found.at };
      return { ...found.answer, receipt };
    }
    const answer = await send(call);
    kept.set(name, { answer, at: now() });
    return answer;
  };
}
