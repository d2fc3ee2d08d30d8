import { randomUUID } from 'node:crypto';
import { abortedError } from '../../api/abort.ts';
import { type Answer, answerNameOf } from '../../api/call.ts';
import { AdLibraryError, type Failure } from '../../api/errors.ts';
import type { OperationName } from '../../api/operations.ts';
import type { CallClaims, CallOutcome, Claim, OnLost } from '../ports.ts';
import { memoryOf } from '../tenant-cache.ts';
import { readAnswer, type WrittenAnswer, writeAnswer } from './answers.ts';
import { stateUnavailable } from './guarded-store.ts';
import type { Shared } from './retries.ts';

/** A call in progress, if any, and the outcomes of earlier calls for a while. */
interface StoredClaim {
  running?: { id: string; owner: string; at: number; isAwaited: boolean };
  ended: Record<string, { at: number; outcome?: WrittenOutcome }>;
}

type WrittenOutcome = { failure: Failure } | { answer: WrittenAnswer } | { isLost: true };

/** How long the outcome of a call is known, and the death of its process, in milliseconds. */
const endedMs = 15_000;
const lostMs = 3_600_000;

interface Taken {
  /** The outcome of the call that this one waited for, or that its process has died. */
  outcome?: WrittenOutcome;
  /** The call that is in progress, as of a version. */
  other?: { id: string; version: string };
  lost: string[];
}

/** Gated calls in progress in all replicas: the first one sends the call, the others wait for its outcome. */
export function storeClaims(shared: Shared): CallClaims {
  const { store, documents, presence, retries, keyOf, stampOf } = shared;

  /** @param awaited the call that this one waited for */
  const take = (key: string, id: string, awaited: string | undefined) =>
    documents.update<StoredClaim, Taken>(key, (doc, now, version) => {
      const ended = recent(doc?.ended ?? {}, now);
      const { running } = doc ?? {};
      const outcome = awaited === undefined ? undefined : ended[awaited]?.outcome;
      if (outcome) return { result: { outcome, lost: lostIn(ended) } };
      if (running && running.id !== id && presence.isDead(running.owner, running.at)) {
        // A process that notices the death sends nothing either, because the call may have been charged.
        ended[running.id] = { at: now, outcome: { isLost: true } };
        return { next: { ended }, ttlMs: lostMs, result: { outcome: { isLost: true }, lost: lostIn(ended) } };
      }
      if (running && running.id !== id) {
        const next = { running: { ...running, isAwaited: true }, ended };
        const result = { other: { id: running.id, version }, lost: [] };
        return { ...(!running.isAwaited && { next, ttlMs: lostMs }), result };
      }
      const next: StoredClaim = { running: { id, owner: presence.id, at: now, isAwaited: false }, ended };
      return { next, ttlMs: lostMs, result: { lost: lostIn(ended) } };
    });

  /** Returns the claims of this call whose processes have died, and that it did not know of. */
  const end = (key: string, id: string, outcome: CallOutcome | undefined) =>
    documents.update<StoredClaim, string[]>(key, (doc, now) => {
      const ended = recent(doc?.ended ?? {}, now);
      const { running } = doc ?? {};
      if (running?.id !== id) return { result: lostIn(ended) };
      if (running.isAwaited) ended[id] = { at: now, ...(outcome && { outcome: written(outcome) }) };
      if (Object.keys(ended).length === 0) return { next: null, result: [] };
      return {
        next: { ended },
        ttlMs: Object.values(ended).some((one) => isLost(one.outcome)) ? lostMs : endedMs,
        result: [],
      };
    });

  const granted = (key: string, id: string, onLost: OnLost): Claim => ({
    kind: 'granted',
    end: async (outcome) => {
      const bytes = outcome && 'answer' in outcome ? memoryOf(outcome.answer.raw) : 1000;
      const work = async (handed: CallOutcome | undefined) =>
        void (await Promise.all((await end(key, id, handed)).map(onLost)));
      // The answer is too large to be stored, or nested too deep: those who wait make the call themselves.
      const giveUp = () => void retries.do(() => work(undefined));
      await retries.do(() => work(outcome), { bytes, giveUp });
    },
  });

  return {
    claim: async (call, onLost) => {
      const { signal, tenantId, fingerprint, operation } = call;
      const id = randomUUID();
      let key: string | undefined;
      try {
        if (!store.isUp()) throw stateUnavailable();
        const { group } = answerNameOf(call);
        // A call after a removal does not wait for a call before it, whose answer may be older.
        key = keyOf(tenantId, 'claim', fingerprint, await stampOf(tenantId, group));
        for (let awaited: string | undefined; ; ) {
          const { outcome, other, lost } = await take(key, id, awaited);
          await Promise.all(lost.map(onLost));
          if (isLost(outcome)) return { kind: 'lost' };
          if (outcome) return { kind: 'ended', outcome: readOutcome(outcome, operation.name) };
          if (other === undefined) return granted(key, id, onLost);
          awaited = other.id;
          await documents.changed(key, other.version, signal);
        }
      } catch {
        // The claim may still have been granted.
        const claim = key === undefined ? unknown : granted(key, id, onLost);
        if (!signal.aborted) return claim;
        if (claim.kind === 'granted') void claim.end(undefined);
        throw abortedError(signal, false);
      }
    },
  };
}

const unknown: Claim = { kind: 'granted', end: async () => {} };

const isLost = (outcome: WrittenOutcome | undefined): outcome is { isLost: true } =>
  outcome !== undefined && 'isLost' in outcome;

const lostIn = (ended: StoredClaim['ended']): string[] => Object.keys(ended).filter((id) => isLost(ended[id]?.outcome));

const recent = (ended: StoredClaim['ended'], now: number): StoredClaim['ended'] =>
  Object.fromEntries(
    Object.entries(ended).filter(([, { at, outcome }]) => now - at < (isLost(outcome) ? lostMs : endedMs)),
  );

function written(outcome: CallOutcome): WrittenOutcome {
  if ('answer' in outcome) return { answer: writeAnswer(outcome.answer as Answer) };
  return { failure: outcome.error instanceof AdLibraryError ? outcome.error.failure : { kind: 'internal' } };
}

const readOutcome = (outcome: Exclude<WrittenOutcome, { isLost: true }>, operation: OperationName): CallOutcome =>
  'failure' in outcome
    ? { error: new AdLibraryError(outcome.failure) }
    : { answer: readAnswer(operation, outcome.answer) };
