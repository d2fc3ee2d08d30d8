import { randomUUID } from 'node:crypto';
import { abortedError } from '../../api/abort.ts';
import type { Answer, Call } from '../../api/call.ts';
import { responseSchemas } from '../../api/client.ts';
import type { OperationName } from '../../api/operations.ts';
import type { AnswerCache, CachedAnswer, Claim, ClaimRequest, StateOptions } from '../call-state.ts';
import { createMemoryAnswers, isNewerThan } from '../memory-answers.ts';
import { markTtlMs, type StoreAccess } from './access.ts';
import type { LeaseHolder } from './leases.ts';

/** A call: its answer, the claim of the process that sends it, and the claim of the last process that died while sending. */
interface StoredCall {
  cached?: { operation: OperationName; answer: WrittenAnswer; at: number } | undefined;
  running?: StoredClaim;
  lost?: string | undefined;
}

interface StoredClaim extends LeaseHolder {
  id: string;
}

/** An answer without the value that its schema makes of it. */
type WrittenAnswer = Omit<Answer, 'value'>;

/** How long a claim lasts, and how long it is known that its process has died, in milliseconds. */
const claimMs = 3_600_000;
/** Bytes of answers that the store did not take. */
const maxLocalAnswers = 64 * 1024 * 1024;

interface SharedAnswersOptions extends Pick<StateOptions, 'ttlMs' | 'now'> {
  /** Whether a call whose process has died is sent again, although it may have been charged. */
  sendsAgain?: boolean;
}

/**
 * The answers of all replicas, and their calls in progress. A call is one document: a replica that claims it knows that
 * nobody has put its answer since, and one that waits for another finds the answer there. What the store does not take
 * is kept by this replica alone.
 */
export function openStoredAnswers(
  access: StoreAccess,
  { ttlMs, now, sendsAgain = false }: SharedAnswersOptions,
): AnswerCache {
  const { documents, store, leases, queue, keyOf } = access;
  const local = createMemoryAnswers({ maxBytes: maxLocalAnswers, ttlMs, now });
  const keyFor = (tenantId: string, name: string) => keyOf(tenantId, 'answer', name);
  const keyOfGroup = (tenantId: string, group: string) => keyOf(tenantId, 'removed', group);
  /** Groups that were forgotten here, and whose new mark the store has not taken: their answers are not cached. */
  const unmarkedGroups = new Set<string>();
  /** @param time by the clock of the store */
  const parseCachedAnswer = (doc: StoredCall | undefined, time: number): CachedAnswer | undefined => {
    const age = time - (doc?.cached?.at ?? Number.NEGATIVE_INFINITY);
    if (doc?.cached === undefined || Math.abs(age) >= ttlMs) return undefined;
    const { operation, answer } = doc.cached;
    const read = responseSchemas[operation].safeParse(answer.raw);
    return read.success ? { answer: { ...answer, value: read.data }, at: now() - age } : undefined;
  };

  const get = async (tenantId: string, name: string): Promise<CachedAnswer | undefined> => {
    const key = keyFor(tenantId, name);
    const read = await documents.read<StoredCall>(key).catch(() => undefined);
    // While the store is away, what was read there before still counts.
    const stored = read ?? documents.getCached<StoredCall>(key);
    const localAnswer = await local.get(tenantId, name);
    if (localAnswer && localAnswer.at >= (stored?.doc?.cached?.at ?? 0)) return localAnswer;
    return stored && parseCachedAnswer(stored.doc, stored.now + ('ageMs' in stored ? stored.ageMs : 0));
  };

  const claim = async (call: Call, name: string | undefined, request: ClaimRequest): Promise<Claim> => {
    if (name === undefined || !store.isUp()) return local.claim(call, name, request);
    const { tenantId, operation, signal } = call;
    const { after = Number.NEGATIVE_INFINITY, onLost } = request;
    const [id, key] = [randomUUID(), keyFor(tenantId, name)];
    leases.open(id);
    let isOpen = true;
    const close = () => {
      isOpen = false;
      leases.close(id);
    };
    const end = async (next = withoutClaim) => {
      if (!isOpen) return;
      close();
      const change = (doc: StoredCall | undefined) => ({
        ...(doc?.running?.id === id && { next: next(doc), ttlMs: Math.max(ttlMs, claimMs) }),
        result: undefined,
      });
      await queue.write(() => documents.update<StoredCall, void>(key, change));
    };
    const put = async (cached: CachedAnswer) => {
      const { value, ...answer } = cached.answer;
      const isTaken =
        !store.isNearlyFull() &&
        (await documents
          .write<StoredCall>(key, (at) => ({ cached: { operation: operation.name, answer, at } }), ttlMs)
          .then(() => true)
          .catch(() => false));
      if (isTaken) local.forget(tenantId, name);
      else local.put(tenantId, name, cached);
      if (isTaken) close();
      await end();
    };
    /** Whether another call sends the request. A claim of this process that has ended may still be in the store. */
    const isOtherClaim = (running: StoredClaim) => running.id !== id && !leases.isClosed(running.id, running);
    const granted: Claim = { kind: 'granted', put, forget: () => end(() => null), end: () => end() };
    try {
      for (let awaited: string | undefined; ; ) {
        const step = await documents.update<StoredCall, Step>(key, (doc, time, version) => {
          const { cached, lost } = doc ?? {};
          const running = doc?.running && isOtherClaim(doc.running) ? doc.running : undefined;
          const cachedAnswer = parseCachedAnswer(doc, time);
          if (cachedAnswer && isNewerThan(cachedAnswer, after, now()))
            return { result: { kind: 'cached', cachedAnswer } };
          const isAbandoned = running && leases.isAbandoned(running, time);
          if (isAbandoned && !sendsAgain)
            return {
              next: { cached, lost: running.id },
              ttlMs: claimMs,
              result: { kind: 'lost', id: running.id },
            };
          if (running && !isAbandoned) return { result: { kind: 'waits', id: running.id, version } };
          if (awaited !== undefined && lost === awaited) return { result: { kind: 'lost', id: lost } };
          const next = { ...(cachedAnswer && { cached }), lost, running: { id, owner: leases.owner, at: time } };
          return { next, ttlMs: Math.max(ttlMs, claimMs), result: { kind: 'granted' } };
        });
        if (step.kind === 'cached') {
          close();
          return step;
        }
        if (step.kind === 'granted') return granted;
        if (step.kind === 'lost') {
          close();
          await onLost(step.id);
          return { kind: 'lost' };
        }
        awaited = step.id;
        await documents.waitForChange(key, step.version, signal);
      }
    } catch {
      // The claim may still have been granted.
      if (!signal.aborted) return granted;
      void end();
      throw abortedError(signal, false);
    }
  };

  return {
    get,
    claim,
    resolveName: async (tenantId, { group, fingerprint }) => {
      if (group === undefined) return fingerprint;
      const key = keyOfGroup(tenantId, group);
      const mark = await documents.read(key).catch(() => undefined);
      return mark === undefined || unmarkedGroups.has(key) ? undefined : `${mark.version} ${fingerprint}`;
    },
    forgetGroup: async (tenantId, group) => {
      const key = keyOfGroup(tenantId, group);
      unmarkedGroups.add(key);
      await queue.write(async () => {
        await documents.write(key, () => ({}), markTtlMs);
        unmarkedGroups.delete(key);
      });
    },
  };
}

type Step =
  | Extract<Claim, { kind: 'cached' }>
  | { kind: 'granted' }
  | { kind: 'waits'; id: string; version: string }
  | { kind: 'lost'; id: string };

const withoutClaim = ({ cached, lost }: StoredCall): StoredCall | null => (cached || lost ? { cached, lost } : null);
