import type { Answer, AnswerName } from '../../api/call.ts';
import { responseSchemas } from '../../api/client.ts';
import type { OperationName } from '../../api/operations.ts';
import { type MemoryStateOptions, memoryAnswers } from '../drivers/memory.ts';
import type { AnswerCache, CachedAnswer } from '../ports.ts';
import { memoryOf } from '../tenant-cache.ts';
import type { Documents } from './documents.ts';
import { stateUnavailable } from './guarded-store.ts';
import { markTtlMs, type Retries, type Shared, smallBytes } from './retries.ts';

/**
 * How far the clock of the store may be set back, in milliseconds, before an answer from later does not count: it lives
 * longer by as much. After a small correction, nothing has to be paid for twice.
 */
const maxBackMs = 60_000;
/** Bytes of answers that the store did not take. */
const maxOwnAnswers = 64 * 1024 * 1024;
/** From how many bytes on such an answer is shared after all that is small. */
const largeAnswer = 64 * 1024;
/** Bytes that it takes to remember that such an answer is to be shared later. */
const sharingBytes = 2000;

export type Removals = ReturnType<typeof removalsIn>;

export function removalsIn(documents: Documents, keyOf: Shared['keyOf']) {
  const keyOfGroup = (tenantId: string, group: string) => keyOf(tenantId, 'removed', group);
  /** Removals that the store does not know of yet. */
  const pending = new Map<string, number>();
  return {
    stampOf: async (tenantId: string, group: string | undefined): Promise<string> => {
      if (group === undefined) return '';
      const key = keyOfGroup(tenantId, group);
      if (pending.has(key)) throw stateUnavailable();
      return (await documents.read(key)).version;
    },
    add: async (retries: Retries, tenantId: string, group: string) => {
      const key = keyOfGroup(tenantId, group);
      const done = () => {
        const left = (pending.get(key) ?? 1) - 1;
        if (left === 0) pending.delete(key);
        else pending.set(key, left);
      };
      pending.set(key, (pending.get(key) ?? 0) + 1);
      await retries.do(() => documents.write(key, () => ({}), markTtlMs).then(done), { giveUp: done });
    },
  };
}

interface WrittenCache {
  /** The removals that it has seen. */
  seen: string;
  answer: WrittenAnswer;
  at: number;
}

/**
 * The cached answers of all replicas. While the store is away, this process uses answers that it has seen there and
 * caches its own new answers, except for answers that a write at another replica may have made stale.
 */
export function sharedAnswers(shared: Shared, removals: Removals, { ttl, now }: MemoryStateOptions): AnswerCache {
  const { documents, store, retries, keyOf, stampOf } = shared;
  const keyFor = (tenantId: string, { group = '', fingerprint }: AnswerName) =>
    keyOf(tenantId, 'answer', group, fingerprint);
  /** Answers that the store did not take. */
  const own = memoryAnswers({ maxBytes: maxOwnAnswers, ttl, now });
  const newer = async (tenantId: string, name: AnswerName, finding: Promise<CachedAnswer | undefined>) => {
    // Both are asked at once: what is no longer here was in the store before.
    const [kept, found] = await Promise.all([own.get(tenantId, name), finding]);
    if (kept === undefined || found === undefined) return kept ?? found;
    return (kept.answer.order ?? 0) > (found.answer.order ?? 0) ? kept : found;
  };
  /** The parsed values of answers that this process knows. */
  const opened = new WeakMap<WrittenCache, Answer>();
  const answerIn = (written: WrittenCache, { fingerprint }: AnswerName): Answer => {
    const [operation] = JSON.parse(fingerprint) as [OperationName];
    const answer = opened.get(written) ?? readAnswer(operation, written.answer);
    opened.set(written, answer);
    return answer;
  };
  const cachedIn = (written: WrittenCache, name: AnswerName, time: number): CachedAnswer | undefined => {
    const age = time - written.at;
    return age < ttl && age > -maxBackMs
      ? { answer: answerIn(written, name), at: now() - Math.max(0, age) }
      : undefined;
  };
  const look = async (tenantId: string, name: AnswerName) => {
    const [stamp, { doc, now: time }] = await Promise.all([
      stampOf(tenantId, name.group),
      documents.read<WrittenCache>(keyFor(tenantId, name)),
    ]);
    return { stamp, cached: doc?.seen === stamp ? cachedIn(doc, name, time) : undefined };
  };
  const seenBefore = (tenantId: string, name: AnswerName): CachedAnswer | undefined => {
    const known = documents.known<WrittenCache>(keyFor(tenantId, name));
    if (known?.doc === undefined || name.group !== undefined) return undefined;
    return cachedIn(known.doc, name, known.now + known.ageMs);
  };
  /**
   * Shares such an answer once the store takes it, unless the store has a newer one. Work that waits holds no answer: it
   * finds the answer among those that this process has room for.
   */
  const sharing = (tenantId: string, name: AnswerName) => async () => {
    const kept = await own.get(tenantId, name);
    if (kept === undefined || store.isTight()) return;
    const { order = 0 } = kept.answer;
    await documents.update<WrittenCache, void>(keyFor(tenantId, name), (doc, time) => {
      if (doc && (doc.answer.order ?? 0) >= order) return { result: undefined };
      const age = now() - kept.at;
      const next = { seen: '', answer: writeAnswer(kept.answer), at: time - age };
      return { next, ttlMs: ttl - age, result: undefined };
    });
    await own.remove(tenantId, name, kept.answer);
  };
  return {
    get: (tenantId, name) => {
      const found = look(tenantId, name).then(
        ({ cached }) => cached,
        () => seenBefore(tenantId, name),
      );
      return newer(tenantId, name, found);
    },
    begin: async (tenantId, name) => {
      const away = () => ({ cached: seenBefore(tenantId, name), stamp: name.group === undefined ? '' : undefined });
      const looking = look(tenantId, name).catch(away);
      const cached = await newer(
        tenantId,
        name,
        looking.then((found) => found.cached),
      );
      const { stamp } = await looking;
      return {
        cached,
        store: async (kept: CachedAnswer) => {
          if (stamp === undefined) return;
          const next = (at: number): WrittenCache => ({ seen: stamp, answer: writeAnswer(kept.answer), at });
          const { store: keep } = await own.begin(tenantId, name);
          try {
            if (store.isTight()) throw stateUnavailable();
            await documents.write(keyFor(tenantId, name), next, ttl);
            await own.remove(tenantId, name, kept.answer);
          } catch {
            // The store does not take it, has little room, or it is nested too deep.
            if (name.group !== undefined) return;
            await keep(kept);
            const bytes = memoryOf(kept.answer.raw);
            await retries.do(sharing(tenantId, name), {
              bytes: sharingBytes,
              size: bytes > largeAnswer ? bytes : smallBytes,
            });
          }
        },
      };
    },
    remove: async (tenantId, name, upTo) => {
      await own.remove(tenantId, name, upTo);
      const { order = Infinity } = upTo;
      const work = () =>
        documents.update<WrittenCache, void>(keyFor(tenantId, name), (doc) => {
          const isRemoved = doc && (doc.answer.order ?? 0) <= order;
          return { ...(isRemoved && { next: null }), result: undefined };
        });
      await retries.do(work);
    },
    invalidate: (tenantId, group) => removals.add(retries, tenantId, group),
  };
}

/** An answer without the value that its schema makes of it. */
export type WrittenAnswer = Omit<Answer, 'value'>;

export const writeAnswer = ({ value, ...rest }: Answer): WrittenAnswer => rest;

export const readAnswer = (operation: OperationName, answer: WrittenAnswer): Answer => ({
  ...answer,
  value: responseSchemas[operation].parse(answer.raw),
});
