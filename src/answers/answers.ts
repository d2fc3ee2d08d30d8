import { randomUUID } from 'node:crypto';
import {
  type Answer,
  abortedError,
  answerNameOf,
  type Call,
  fingerprint,
  gatedOnly,
  itemsOf,
  operations,
  replayed,
  type Send,
} from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { AdAnswer, type ItemType } from '../api/schemas.ts';
import type { Datasets } from '../state/dataset.ts';
import { objectOf } from '../state/item-history.ts';
import type { AnswerCache, CallClaims, RejectedKeys } from '../state/state.ts';
import type { InFlightCall, InFlightCalls } from './in-flight-calls.ts';

/** Learns from every answer whether the key is accepted. A gateway that rejects it has no more power than the service. */
export function withVerdicts(send: Send, keys: RejectedKeys): Send {
  return async (call) => {
    try {
      const answer = await send(call);
      keys.answered(call.tenantId, Boolean(answer.receipt.requestId));
      return answer;
    } catch (error) {
      if (error instanceof AdLibraryError && error.failure.kind === 'unauthorized') await keys.add(call.tenantId);
      throw error;
    }
  };
}

/** Asks whose key it is before a rejected one is answered from what is kept, or charged for it again. */
export function withAcceptedKeys(send: Send, keys: RejectedKeys): Send {
  return gatedOnly(send, async (call) => {
    const { tenantId, apiKey, signal } = call;
    const whoami = { operation: operations.whoami, path: {}, query: {} };
    const ask = () => send({ ...whoami, fingerprint: fingerprint(whoami), tenantId, apiKey, signal });
    await untilAccepted(keys, tenantId, ask);
    return send(call);
  });
}

/** Throws unless the service accepts the key again, if it was rejected. */
export async function untilAccepted(keys: RejectedKeys, tenantId: string, ask: () => Promise<unknown>): Promise<void> {
  if (!(await keys.has(tenantId))) return;
  await ask();
  if (await keys.has(tenantId)) throw notAccepted();
}

const notAccepted = () =>
  new AdLibraryError({
    kind: 'unauthorized',
    problem: 'The key was rejected, and the answers since then do not say that they come from the service.',
    sent: false,
  });

interface ClaimOptions {
  claims: CallClaims;
  /** Counts what a call may have cost whose process has died, once for each id. */
  onLost(call: Call, id: string): Promise<void>;
}

/**
 * Has one of several replicas send a call, and the others wait for its answer, at no charge. If that replica dies, they
 * do not send it again: it may have been charged.
 */
export function withClaims(send: Send, { claims, onLost }: ClaimOptions): Send {
  return gatedOnly(send, async (call) => {
    const claim = await claims.claim(call, (id) => onLost(call, id));
    if (claim.kind === 'lost') throw lost();
    if (claim.kind === 'ended') {
      if ('error' in claim.outcome) throw claim.outcome.error;
      return replayed(claim.outcome.answer);
    }
    try {
      const answer = await send(call);
      await claim.end({ answer });
      return answer;
    } catch (error) {
      // What did not reach the service says nothing about the calls of others.
      const isUnsent = error instanceof AdLibraryError && error.failure.sent === false;
      await claim.end(isUnsent ? undefined : { error });
      throw error;
    }
  });
}

const lost = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'A replica of this server that had sent the same call ended before its answer arrived.',
    paid: true,
  });

interface Shared extends InFlightCall {
  call: Call;
  /** Whether one caller's receipt shows the charge. */
  isPaid: boolean;
}

/**
 * Merges concurrent equal gated calls of one tenant into one. The receipt of one remaining caller shows the charge,
 * those of the others show none. Writes are not merged, but they are also completed once they were sent.
 */
export function withCoalescing(send: Send, inFlight: InFlightCalls): Send {
  const shared = new Map<string, Shared>();

  /** Later callers must see a write, so they do not join requests for the items of its collection. */
  const leaveAlone = (written: Call) => {
    const { tenantId } = written;
    const items = itemsOf(written);
    for (const [name, { call }] of shared)
      if (call.tenantId === tenantId && answerNameOf(call).group === items) shared.delete(name);
  };

  const write: Send = async (call) => {
    leaveAlone(call);
    const inFlightCall = inFlight.start(call, send);
    void inFlightCall.settled.then(() => leaveAlone(call));
    return inFlightCall.join(call.signal);
  };

  const read = gatedOnly(send, async (call) => {
    const { signal } = call;
    if (signal.aborted) throw abortedError(signal, false);
    const name = `${call.tenantId} ${call.fingerprint}`;
    for (;;) {
      const known = shared.get(name);
      if (known === undefined || known.isAborted()) return join(start(name, call), signal);
      try {
        return await join(known, signal);
      } catch (error) {
        if (!isOverMaxCredits(error)) throw error;
        leave(name, known);
      }
    }
  });

  function start(name: string, call: Call): Shared {
    const inFlightCall: Shared = { ...inFlight.start(call, send), call, isPaid: false };
    shared.set(name, inFlightCall);
    void inFlightCall.settled.then(() => leave(name, inFlightCall));
    return inFlightCall;
  }

  const leave = (name: string, inFlightCall: Shared) => {
    if (shared.get(name) === inFlightCall) shared.delete(name);
  };

  return (call) => (call.operation.writes ? write(call) : read(call));
}

async function join(inFlightCall: Shared, signal: AbortSignal): Promise<Answer> {
  const answer = await inFlightCall.join(signal);
  if (inFlightCall.isPaid) return replayed(answer);
  inFlightCall.isPaid = true;
  return answer;
}

/** What another tool call may spend says nothing about this one. The budget of the server is the same for both. */
const isOverMaxCredits = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.maxCredits !== undefined && error.failure.sent === false;

interface CacheOptions {
  answers: AnswerCache;
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
    const { cached, store } = await answers.begin(call.tenantId, name);
    if (cached && !call.fresh) return replayed(cached.answer, now() - cached.at);
    const answer = { ...(await send(call)), cacheId: randomUUID() };
    await store({ answer, at: now() });
    return { ...answer, uncache: () => answers.remove(call.tenantId, name) };
  });
}

/** A write makes the kept items of its collection stale, and those that are being read: they may be the old ones. */
export function withWrites(send: Send, { invalidate }: Pick<AnswerCache, 'invalidate'>): Send {
  // Even if the write fails, because it may have been carried out.
  const write: Send = (call) => send(call).finally(() => invalidate(call.tenantId, itemsOf(call)));
  return (call) => (call.operation.writes ? write(call) : send(call));
}

interface DatasetOptions {
  datasets: Datasets;
  now: () => number;
  /** Receives what went wrong while an answer was added. The answer is returned all the same: it was paid for. */
  onError(error: unknown): void;
}

/** Gives every answer its place among all that came, which it keeps wherever it is kept. */
export function withOrder(send: Send, { datasets, onError }: Omit<DatasetOptions, 'now'>): Send {
  return gatedOnly(send, async (call) => {
    const answer = await send(call);
    try {
      return { ...answer, order: await (await datasets.of(call, { toAdd: true })).order() };
    } catch (error) {
      onError(error);
      return answer;
    }
  });
}

/** Adds the ads and pages of every answer that the service sent to the caller's dataset. */
export function withDataset(send: Send, { datasets, now, onError }: DatasetOptions): Send {
  const sendAndAdd: Send = async (call) => {
    const answer = await send(call);
    const { type, items } = itemsIn(call, answer);
    try {
      const dataset = await datasets.of(call, { toAdd: true });
      const { order, receipt } = answer;
      const { requestId, age = 0 } = receipt;
      await dataset.addItems({ type, items, at: now() - age, order, listedBy: call.operation.name, requestId });
    } catch (error) {
      onError(error);
    }
    return answer;
  };
  return gatedOnly(send, (call) => (call.around ? call.around(() => sendAndAdd(call)) : sendAndAdd(call)));
}

/**
 * Answers `getAd` with the ad as the dataset has it, if the caller asks for that.
 *
 * Only then: list items and `getAd` share one schema in the document, but every key except `id` may be absent, and
 * nothing says that a list item is as complete as the answer of `getAd`. So the result states the age and the source of
 * the copy.
 */
export function withSeenAds(send: Send, { datasets, now }: Pick<DatasetOptions, 'datasets' | 'now'>): Send {
  return async (call) => {
    if (!call.seen || call.fresh || call.operation.name !== 'getAd') return send(call);
    const item = await (await datasets.of(call)).item('ads', call.path.adId ?? '');
    if (item === undefined) return send(call);
    const raw = objectOf(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const answer = { raw, value: AdAnswer.parse(raw), receipt, seenIn: item.listedBy };
    return replayed(answer, Math.max(0, now() - item.at));
  };
}

function itemsIn({ operation: { name }, query }: Call, { raw }: Answer): { type: ItemType; items: readonly unknown[] } {
  const isPages = name === 'searchPages' || name === 'getPage' || query.itemType === 'pages';
  const isOne = name === 'getAd' || name === 'getPage';
  return { type: isPages ? 'pages' : 'ads', items: isOne ? [raw] : (raw as { items: readonly unknown[] }).items };
}
