import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { abortedError, raceAbort, timeIsUp } from '../api/abort.ts';
import {
  type Answer,
  answerNameOf,
  type Call,
  fingerprint,
  itemsGroup,
  replay,
  type Send,
  type Transit,
} from '../api/call.ts';
import { AdAnswer } from '../api/client.ts';
import { AdLibraryError, type Failure, type FailureFacts } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import { Identity, type ItemType } from '../api/schemas.ts';
import type { Meter } from '../credits/meter.ts';
import type { AcceptedKeys, AnswerCache, CachedAnswer } from '../storage/call-state.ts';
import type { Dataset, DatasetCaller, Datasets } from '../storage/dataset.ts';
import { parseItem } from '../storage/item-versions.ts';

interface AnswersOptions extends InFlightOptions {
  datasets: Datasets;
  cache: AnswerCache;
  isCached: boolean;
  keys: AcceptedKeys;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** Receives what went wrong while an answer was added to the dataset. The answer is returned: it was paid for. */
  onError(error: unknown): void;
}

type InFlightCall = ReturnType<ReturnType<typeof trackInFlightCalls>['start']>;

interface SharedCall extends InFlightCall {
  /** Whether one caller's receipt shows the charge. */
  isPaid: boolean;
}

/**
 * Answers a call without sending it where that is possible: with the ad in the dataset (`seen`), or with the cached
 * answer. Equal calls are sent once, here and at other replicas (singleflight). The answer of the service is cached,
 * added to the dataset, and given to all callers that wait. So nobody pays twice for a call while its answer is fresh.
 */
export function openAnswers(meter: Pick<Meter, 'send' | 'stateCharge' | 'settleLost'>, options: AnswersOptions) {
  const { datasets, cache, isCached, keys, now, onError } = options;
  const inFlight = trackInFlightCalls(options);
  const shared = new Map<string, SharedCall>();

  async function answer(call: Call): Promise<Answer> {
    const { operation, tenantId, signal } = call;
    if (operation.writes) return write(call);
    if (!operation.gated) return meter.send(call);
    // Where the state is elsewhere, both are asked for at once.
    const [stored, isAccepted] = await Promise.all([findStored(call), keys.has(tenantId)]);
    if (stored && !isAccepted) assertIdentity(await whoami(call));
    if (stored) return stored;
    if (signal.aborted) throw abortedError(signal, false);
    // The same call in progress is joined. The receipt of one remaining caller shows the charge.
    const name = `${tenantId} ${call.fingerprint}`;
    for (;;) {
      const running = shared.get(name);
      if (running === undefined || running.isAborted()) return receive(start(name, call, pay), signal);
      try {
        return await receive(running, signal);
      } catch (error) {
        if (!isOverOwnLimit(error)) throw error;
        leave(name, running);
      }
    }
  }

  async function findStored(call: Call): Promise<Answer | undefined> {
    if (call.fresh) return undefined;
    const fromDataset = call.seen && call.operation.name === 'getAd' ? await seenAd(call) : undefined;
    if (fromDataset !== undefined || !isCached) return fromDataset;
    const name = await cache.resolveName(call.tenantId, answerNameOf(call));
    const cached = name === undefined ? undefined : await cache.get(call.tenantId, name);
    return cached && replayCached(cached);
  }

  const replayCached = ({ answer, at }: CachedAnswer) => replay(answer, Math.max(0, now() - at));

  /** Sends a call if no replica does, and stores its answer even if all callers have left. */
  async function pay(call: Call): Promise<Answer> {
    const { operation, tenantId, wrapSend = (send) => send() } = call;
    const name = await cache.resolveName(tenantId, answerNameOf(call));
    const onLost = (id: string) => meter.settleLost(call, id);
    const claim = await cache.claim(call, name, { after: call.fresh ? now() : undefined, onLost });
    if (claim.kind === 'cached') return replayCached(claim.cachedAnswer);
    // The call may have been charged, so nobody sends it again unless somebody asks for it.
    if (claim.kind === 'lost') throw lostCall();
    const report = (error: unknown): undefined => void onError(error);
    try {
      return await wrapSend(async () => {
        const { text, ...sent } = await meter.send(call);
        const at = now();
        const dataset = await datasets.open(call, { toAdd: true }).catch(report);
        // All answers are numbered in the order in which they came. This one has its number wherever it is stored.
        const order = sent.order ?? (await dataset?.nextSequenceNumber().catch(report));
        const isCacheable = isCached && !call.uncached;
        const answer = {
          ...sent,
          ...(order !== undefined && { order }),
          ...(isCacheable && { isCached: true as const }),
        };
        const items = text === undefined ? () => itemsIn(operation, sent.raw) : itemsInText(operation, text);
        const source = { at, order, listedBy: operation.name, requestId: sent.receipt.requestId };
        await Promise.all([
          isCacheable ? claim.put({ answer, at }) : claim.forget(),
          dataset?.addItems({ type: itemTypeOf(call), items, text, ...source }).catch(report),
        ]);
        return answer;
      });
    } finally {
      await claim.end();
    }
  }

  function start(name: string, call: Call, send: Send): SharedCall {
    const started = { ...inFlight.start(call, send), isPaid: false };
    shared.set(name, started);
    void started.settled.then(() => leave(name, started));
    return started;
  }

  function leave(name: string, left: SharedCall): void {
    if (shared.get(name) === left) shared.delete(name);
  }

  function whoami({ tenantId, apiKey, signal }: Call): Promise<Answer> {
    const call = { operation: operations.whoami, path: {}, query: {} };
    return meter.send({ fingerprint: fingerprint(call), tenantId, apiKey, signal, ...call });
  }

  /** Resolves if the service accepts the key, or did lately. Nothing that is stored for another key is served. */
  async function untilAccepted(tenantId: string, ask: () => Promise<Answer>): Promise<void> {
    if (!(await keys.has(tenantId))) assertIdentity(await ask());
  }

  /**
   * The ad as the dataset has it, only if the caller asks for that: list items and `getAd` share one schema in the
   * document, but every key except `id` may be absent, and nothing says that a list item is as complete as the answer
   * of `getAd`. So the result states the age and the source of the copy.
   */
  async function seenAd(call: Call): Promise<Answer | undefined> {
    const dataset = await datasets.open(call);
    const item = await dataset.findItem('ads', call.path.adId ?? '');
    if (item === undefined) return undefined;
    const raw = parseItem(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const source = { seenIn: item.listedBy, ...(dataset.isUnconfirmed && { isUnconfirmed: true as const }) };
    const answer = { raw, value: AdAnswer.parse(raw), receipt, ...source };
    return replayCached({ answer, at: item.at });
  }

  /** Later callers must see a write, so they neither join reads of its collection that began before it, nor use cached ones. */
  async function write(call: Call): Promise<Answer> {
    leaveItemsAlone(call);
    const send: Send = async (one) => {
      const forget = () => cache.forgetGroup(one.tenantId, itemsGroup(one));
      const answer = await meter.send(one).catch(async (error) => {
        // It may have been carried out.
        if (!isRejected(error)) await forget();
        throw error;
      });
      await forget();
      return answer;
    };
    const started = inFlight.start(call, send);
    void started.settled.then(() => leaveItemsAlone(call));
    return started.join(call.signal);
  }

  function leaveItemsAlone(write: Call): void {
    const items = itemsGroup(write);
    for (const [name, { call }] of shared)
      if (call.tenantId === write.tenantId && answerNameOf(call).group === items) shared.delete(name);
  }

  return {
    send: (call: Call) => meter.stateCharge(call, answer(call)),
    close: inFlight.close,
    untilAccepted,
    async dataset(caller: DatasetCaller, whoami: () => Promise<Answer>): Promise<Dataset> {
      await untilAccepted(caller.tenantId, whoami);
      return datasets.open(caller);
    },
  };
}

export type Answers = ReturnType<typeof openAnswers>;

/** Keys whose last rejection is remembered, for answers to calls that were sent before. */
const maxRejections = 10_000;

/** Learns from what the service answers which keys it accepts. */
export function learnKeys(service: Send, keys: AcceptedKeys): Send {
  /** The number of the last call that was sent before the key was rejected. */
  const rejections = new LRUCache<string, number>({ max: maxRejections });
  let calls = 0;
  return async (call) => {
    const { tenantId } = call;
    const number = ++calls;
    const accept = () => (number > (rejections.get(tenantId) ?? 0) ? keys.add(tenantId) : undefined);
    try {
      const answer = await service(call);
      const isFromService = call.operation.name === 'whoami' ? isIdentity(answer) : Boolean(answer.receipt.requestId);
      if (isFromService) await accept();
      return answer;
    } catch (error) {
      const { kind, status = 0, code, requestId } = error instanceof AdLibraryError ? error.failure : noFailure;
      // A gateway that answers with such a status has not seen the key.
      const isFromService = code !== undefined && requestId !== undefined;
      if (isFromService && kind === 'unauthorized') {
        rejections.set(tenantId, calls);
        await keys.remove(tenantId);
      } else if (isFromService && checkedBefore.includes(status)) await accept();
      throw error;
    }
  };
}

const noFailure: Partial<Pick<Failure, 'kind'> & FailureFacts> = {};

/** The document's errors about the account or what was asked for: the service checks the key before. */
const checkedBefore = [402, 403, 404, 422, 429];

const identity = z.looseObject({
  authenticated: z.literal(true),
  user: Identity.shape.user.pick({ userId: true }),
});

/** Whether it is the document of *Identity*, for a good key: a gateway may answer anything with 200. */
const isIdentity = ({ raw }: Answer): boolean => identity.safeParse(raw).success;

function assertIdentity(whoami: Answer): void {
  if (!isIdentity(whoami)) throw notAccepted();
}

async function receive(inFlightCall: SharedCall, signal: AbortSignal): Promise<Answer> {
  const answer = await inFlightCall.join(signal);
  if (inFlightCall.isPaid) return replay(answer);
  inFlightCall.isPaid = true;
  return answer;
}

/** The limit of another tool call or connection says nothing about this call. The budget of the server is the same for all. */
const isOverOwnLimit = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.kind === 'credit_budget' && error.failure.limit !== 'server';

/** Nothing was carried out, by no attempt. Of a key or a collection that somebody made up, nothing is stored. */
const isRejected = (error: unknown) =>
  error instanceof AdLibraryError &&
  !error.failure.repeated &&
  (error.failure.sent === false || ['unauthorized', 'forbidden', 'not_found'].includes(error.failure.kind));

const itemTypeOf = ({ operation: { name }, query }: Call): ItemType =>
  name === 'searchPages' || name === 'getPage' || query.itemType === 'pages' ? 'pages' : 'ads';

const itemsIn = ({ name }: Operation, raw: unknown): readonly unknown[] =>
  name === 'getAd' || name === 'getPage' ? [raw] : (raw as { items: readonly unknown[] }).items;

/** Keeps the text alone in memory: the parsed answer and the call may take twenty times as much. */
const itemsInText = (operation: Operation, text: string) => () => itemsIn(operation, JSON.parse(text));

const notAccepted = () =>
  new AdLibraryError({
    kind: 'unauthorized',
    problem: 'The service does not say whose key this is (whoami), so nothing that is stored for the key is shown.',
    sent: false,
  });

const lostCall = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'A replica of this server that had sent the same call ended before its answer arrived.',
    paid: true,
  });

interface InFlightOptions {
  /** Calls in progress, of a tenant and in all. They count until they end, even without a caller. */
  maxCallsEach: number;
  maxCalls: number;
  /** How long a call may continue without a caller, in milliseconds: as long as a tool call. */
  timeoutMs: number;
  /** Receives the calls that were still unanswered at `close`. */
  onLost(call: Call): void;
}

/** How long an aborted call may take to settle, in milliseconds. After that, the ledger is closed. */
const maxSettleMs = 1000;

interface TrackedCall {
  call: Call;
  transit: Transit;
  abort: AbortController;
  callers: number;
  settled: Promise<void>;
}

/**
 * Continues calls that were sent until their answer arrives, even if all their callers have left: the service carries
 * them out and charges for them anyway, and a repeated call finds the answer in the cache. A call that was not sent yet
 * ends with its last caller.
 */
function trackInFlightCalls({ maxCallsEach, maxCalls, timeoutMs, onLost }: InFlightOptions) {
  const tracked = new Set<TrackedCall>();
  const ofTenant = (tenantId: string) => [...tracked].filter(({ call }) => call.tenantId === tenantId).length;

  const run = async (entry: TrackedCall, send: Send): Promise<Answer> => {
    const { call, abort, transit } = entry;
    tracked.add(entry);
    const timer = setTimeout(() => abort.abort(timeIsUp()), timeoutMs).unref();
    try {
      if (tracked.size > maxCalls || ofTenant(call.tenantId) > maxCallsEach) throw tooMany();
      // In Node 20, a spread with new fields behind it takes several times as long.
      return await send(Object.assign({}, call, { signal: abort.signal, transit }));
    } finally {
      clearTimeout(timer);
      tracked.delete(entry);
    }
  };

  const drained = async (limit: number) => {
    let timer: NodeJS.Timeout | undefined;
    const isLate = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, limit);
    });
    const all = Promise.all([...tracked].map(({ settled }) => settled));
    await Promise.race([all, isLate]).finally(() => clearTimeout(timer));
  };

  return {
    /** The answer is a `busy` error if too many are in progress. */
    start(call: Call, send: Send) {
      const abort = new AbortController();
      const transit: Transit = { sent: false, isWanted: () => entry.callers > 0 };
      const entry: TrackedCall = { call, abort, transit, callers: 0, settled: Promise.resolve() };
      const answer = run(entry, send);
      entry.settled = answer.then(
        () => {},
        () => {},
      );
      return {
        call,
        settled: entry.settled,
        /** Returns the answer to one more caller. Rejects if that caller leaves first. */
        join: (signal: AbortSignal) => receiveFrom(entry, answer, signal),
        isAborted: () => abort.signal.aborted,
      };
    },
    /** Waits up to `ms` for calls that were sent, aborts the rest, and lets them settle what they may have cost. */
    async close(ms: number) {
      if (ms > 0) await drained(ms);
      for (const { abort, call, transit } of tracked) {
        if (transit.sent || transit.mayBeDone) onLost(call);
        abort.abort();
      }
      await drained(maxSettleMs);
    },
  };
}

async function receiveFrom(entry: TrackedCall, answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const { abort, transit } = entry;
  entry.callers++;
  try {
    return await raceAbort(answer, signal);
  } catch (error) {
    throw signal.aborted && error === signal.reason
      ? abortedError(signal, transit.sent || transit.mayBeDone === true)
      : error;
  } finally {
    entry.callers--;
    if (entry.callers === 0 && !transit.sent) abort.abort(signal.reason);
  }
}

const tooMany = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many cancelled calls are still waiting for the service.',
    sent: false,
    details: { retryAfterSeconds: 10 },
  });
