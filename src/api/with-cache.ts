import { AdLibraryError } from './errors.ts';
import { fingerprintStart } from './fingerprint.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';

export interface KeptAnswer {
  answer: Answer;
  /** When the service sent it, in milliseconds since the epoch. */
  at: number;
}

/** Stores paid answers, separately for each tenant, for a limited time and in limited memory. */
export interface KeptAnswers {
  get(tenantId: string, name: string): Promise<KeptAnswer | undefined>;
  set(tenantId: string, name: string, kept: KeptAnswer): Promise<void>;
  /** Removes a tenant's answers whose names begin with `start`. */
  drop(tenantId: string, start: string): Promise<void>;
}

export interface CacheOptions {
  answers: KeptAnswers;
  now: () => number;
}

/** Answers a gated call from the cache, at no charge. */
export function withCache(send: Send, { answers, now }: CacheOptions): Send {
  return gatedOnly(send, async (call) => {
    const kept = call.fresh ? undefined : await answers.get(call.tenantId, call.fingerprint);
    return kept ? replayed(kept.answer, now() - kept.at) : send(call);
  });
}

/**
 * Keeps every paid answer, even if its caller has left, so that nobody pays twice for the same call while the answer is
 * fresh. A write makes the kept items of its collection stale.
 */
export function withKeeping(send: Send, { answers, now }: CacheOptions): Send {
  /** Reads of collection items in progress, by tenant and collection. */
  const reads = new Map<string, Set<{ isStale: boolean }>>();

  const dropItems = (tenantId: string, start: string) => {
    // A read during a write may return the old items.
    for (const read of reads.get(`${tenantId} ${start}`) ?? []) read.isStale = true;
    return answers.drop(tenantId, start);
  };
  // Even if the write fails, because it may have been carried out.
  const write: Send = (call) => send(call).finally(() => dropItems(call.tenantId, itemsOf(call)));

  const readItems: Send = async (call) => {
    const name = `${call.tenantId} ${itemsOf(call)}`;
    const read = { isStale: false };
    const others = reads.get(name) ?? new Set();
    reads.set(name, others.add(read));
    try {
      const answer = await send(call);
      return read.isStale ? answer : await keep(call, answer);
    } finally {
      others.delete(read);
      if (others.size === 0 && reads.get(name) === others) reads.delete(name);
    }
  };

  let lastId = 0;
  const keep = async (call: Call, answer: Answer): Promise<Answer> => {
    const kept = { ...answer, cacheId: ++lastId };
    await answers.set(call.tenantId, call.fingerprint, { answer: kept, at: now() });
    return kept;
  };

  const read = gatedOnly(send, async (call) => {
    if (call.operation.name === 'listCollectionItems') return readItems(call);
    return keep(call, await send(call));
  });

  return (call) => (call.operation.writes ? write(call) : read(call));
}

const itemsOf = ({ path }: Call) =>
  fingerprintStart('listCollectionItems', { collectionId: (path.collectionId ?? '').toLowerCase() });

/** Removes all that is kept for a key when the service rejects it: its holder has lost the right to it. */
export function withRefusedKeys(send: Send, forget: (tenantId: string) => Promise<void>): Send {
  return async (call) => {
    try {
      return await send(call);
    } catch (error) {
      if (error instanceof AdLibraryError && error.failure.kind === 'unauthorized') await forget(call.tenantId);
      throw error;
    }
  };
}
