import { randomUUID } from 'node:crypto';
import { type Answer, type Call, fingerprintStart, gatedOnly, replayed, type Send } from './send.ts';

export interface KeptAnswer {
  answer: Answer;
  /** When the service sent it, by a clock that only goes on. */
  at: number;
}

/** The name of an answer. */
export interface AnswerName {
  fingerprint: string;
  /** Answers of a group become stale together. */
  group?: string | undefined;
}

/** Stores paid answers, separately for each tenant, for a limited time and in limited memory. Never rejects. */
export interface KeptAnswers {
  get(tenantId: string, name: AnswerName): Promise<KeptAnswer | undefined>;
  /** Begins to ask for an answer, unless it was kept just now. A new one is kept unless it is dropped meanwhile. */
  begin(tenantId: string, name: AnswerName): Promise<{ kept: KeptAnswer | undefined; keep: Keep }>;
  remove(tenantId: string, name: AnswerName): Promise<void>;
  /** Removes a tenant's answers of a group, or all. */
  drop(tenantId: string, group?: string): Promise<void>;
}

export type Keep = (kept: KeptAnswer) => Promise<void>;

export interface CacheOptions {
  answers: KeptAnswers;
  /** A clock that only goes on. */
  now: () => number;
}

/** Answers a gated call from the cache, at no charge. */
export function withCache(send: Send, { answers, now }: CacheOptions): Send {
  return gatedOnly(send, async (call) => {
    const kept = call.fresh ? undefined : await answers.get(call.tenantId, answerNameOf(call));
    return kept ? replayed(kept.answer, now() - kept.at) : send(call);
  });
}

/**
 * Keeps every paid answer, even if its caller has left, so that nobody pays twice for the same call while the answer is
 * fresh.
 */
export function withKeeping(send: Send, { answers, now }: CacheOptions): Send {
  return gatedOnly(send, async (call) => {
    const name = answerNameOf(call);
    const { kept, keep } = await answers.begin(call.tenantId, name);
    if (kept && !call.fresh) return replayed(kept.answer, now() - kept.at);
    const answer = { ...(await send(call)), cacheId: randomUUID() };
    await keep({ answer, at: now() });
    return { ...answer, uncache: () => answers.remove(call.tenantId, name) };
  });
}

/** A write makes the kept items of its collection stale, and those that are being read: they may be the old ones. */
export function withWrites(send: Send, { drop }: Pick<KeptAnswers, 'drop'>): Send {
  // Even if the write fails, because it may have been carried out.
  const write: Send = (call) => send(call).finally(() => drop(call.tenantId, itemsOf(call)));
  return (call) => (call.operation.writes ? write(call) : send(call));
}

/** The group of the answers that hold items of the call's collection. */
export const itemsOf = ({ path }: Call): string =>
  fingerprintStart('listCollectionItems', { collectionId: (path.collectionId ?? '').toLowerCase() });

export const answerNameOf = (call: Call): AnswerName => ({
  fingerprint: call.fingerprint,
  group: call.operation.name === 'listCollectionItems' ? itemsOf(call) : undefined,
});
