import { abortedError } from '../api/abort.ts';
import {
  type Answer,
  answerNameOf,
  type Call,
  type CallOwner,
  fingerprint,
  itemsGroup,
  PaymentNeeded,
  replay,
  requestWithoutArguments,
  type Send,
  type ServiceRequest,
} from '../api/call.ts';
import { AdAnswer, type ApiAnswer } from '../api/client.ts';
import { type CachedTotal, readTotalHits } from '../api/counts.ts';
import { AdLibraryError } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import type { ItemType } from '../api/schemas.ts';
import type { Meter } from '../credits/meter.ts';
import type { AcceptedKeys, AnswerCache, CachedAnswer, GrantedClaim } from '../storage/call-state.ts';
import type { Dataset, Datasets } from '../storage/dataset.ts';
import { parseItem } from '../storage/item-versions.ts';
import { assertIdentity } from './accepted-keys.ts';
import { type InFlightCall, type InFlightOptions, trackInFlightCalls } from './in-flight-calls.ts';

interface AnswersOptions extends InFlightOptions {
  datasets: Datasets;
  cache: AnswerCache;
  /** Whether answers are cached at all. */
  isCached: boolean;
  keys: AcceptedKeys;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** Receives an error that occurred while an answer was added to the dataset. The answer is returned nevertheless. */
  onError(error: unknown): void;
}

interface SharedCall extends InFlightCall {
  /** Whether the receipt of one caller already shows the charge. */
  isChargeShown: boolean;
}

export type Answers = ReturnType<typeof openAnswers>;

/**
 * Answers a call without sending it where possible: with the copy of an ad in the dataset (`seen`), or with a cached
 * answer. Sends equal calls once, in this process and over all replicas (singleflight). Caches the answer, adds its items
 * to the dataset, and returns it to every caller that waits. So nobody pays twice for a call while its answer is fresh.
 */
export function openAnswers(
  meter: Pick<Meter, 'send' | 'addBalance' | 'settleLost' | 'prices'>,
  options: AnswersOptions,
) {
  const { datasets, cache, isCached, keys, now, onError } = options;
  const inFlight = trackInFlightCalls(options);
  const sharedCalls = new Map<string, SharedCall>();

  async function answer(call: Call): Promise<Answer> {
    const { request, owner, signal } = call;
    if (request.operation.writes) return write(call);
    if (!request.operation.gated) return meter.send(call);
    // With a remote store, each lookup is a round trip, so both run at the same time.
    const [stored, isAccepted] = await Promise.all([findStored(call), keys.has(owner.tenantId)]);
    if (stored && !isAccepted) assertIdentity(await whoami(owner, signal));
    if (stored) return stored;
    if (call.cache.storedOnly) throw new PaymentNeeded(request);
    if (signal.aborted) throw abortedError(signal, false);
    // An equal call in progress is joined. The receipt of one of its callers shows the charge.
    const name = `${owner.tenantId} ${request.fingerprint}`;
    for (;;) {
      const running = sharedCalls.get(name);
      if (running === undefined || running.isAborted()) return receive(start(name, call, pay), signal);
      try {
        return await receive(running, signal);
      } catch (error) {
        if (!isRefusedByOwnLimit(error)) throw error;
        leave(name, running);
      }
    }
  }

  async function findStored({ request, owner, cache: { fresh, seen } }: Call): Promise<Answer | undefined> {
    if (fresh) return undefined;
    const copy = seen && request.operation.name === 'getAd' ? await listedAd(owner, request.path.adId) : undefined;
    if (copy !== undefined || !isCached) return copy;
    const name = await cache.resolveName(owner.tenantId, answerNameOf(request));
    const cached = name === undefined ? undefined : await cache.get(owner.tenantId, name);
    return cached && replayCached(cached);
  }

  const replayCached = ({ answer, at }: CachedAnswer) => replay(answer, Math.max(0, now() - at));

  /** Sends a call unless another replica is sending it, and stores the answer even if all callers have left. */
  async function pay(call: Call): Promise<Answer> {
    const { request, owner, cache: options } = call;
    const name = await cache.resolveName(owner.tenantId, answerNameOf(request));
    const onLost = (id: string) => meter.settleLost(call, id);
    const claim = await cache.claim(call, name, { after: options.fresh ? now() : undefined, onLost });
    if (claim.kind === 'cached') return replayCached(claim.cachedAnswer);
    // The service may have charged for the lost call, so only a new request of the caller sends it again.
    if (claim.kind === 'lost') throw lostCall();
    try {
      const sending = sendAndStore(call, claim);
      await options.onSending?.(sending);
      return await sending;
    } finally {
      await claim.end();
    }
  }

  /** Sends a call, caches its answer, and adds the items of the answer to the dataset. */
  async function sendAndStore(call: Call, claim: GrantedClaim): Promise<Answer> {
    const { request, owner } = call;
    const { text, ...sent } = await meter.send(call);
    const at = now();
    const report = (error: unknown): undefined => void onError(error);
    const dataset = await datasets.open(owner, { toAdd: true }).catch(report);
    // Answers are numbered in the order in which they arrived. The cache and the dataset store the same number.
    const order = await dataset?.nextSequenceNumber().catch(report);
    const isCacheable = isCached && !call.cache.uncached;
    const answer = {
      ...sent,
      ...(order !== undefined && { order }),
      ...(isCacheable && { isCached: true as const }),
    };
    const items =
      text === undefined ? () => itemsIn(request.operation, sent.raw) : itemsInText(request.operation, text);
    const source = { at, listedBy: request.operation.name, requestId: sent.receipt.requestId };
    await Promise.all([
      isCacheable ? claim.put({ answer, at }) : claim.forget(),
      order !== undefined &&
        dataset?.addItems({ type: itemTypeOf(request), items, text, order, ...source }).catch(report),
    ]);
    return answer;
  }

  function start(name: string, call: Call, send: Send): SharedCall {
    const started = { ...inFlight.start(call, send), isChargeShown: false };
    sharedCalls.set(name, started);
    void started.settled.then(() => leave(name, started));
    return started;
  }

  function leave(name: string, shared: SharedCall): void {
    if (sharedCalls.get(name) === shared) sharedCalls.delete(name);
  }

  /** Requests the account of a key. The receipt of a tool call does not count this request. */
  function whoami({ tenantId, apiKey }: CallOwner, signal: AbortSignal): Promise<Answer> {
    const request = requestWithoutArguments(operations.whoami);
    return meter.send({ request, owner: { tenantId, apiKey }, signal, cache: {}, progress: { sent: false } });
  }

  /**
   * Resolves if the service accepts the key, or accepted it lately.
   * @throws AdLibraryError if it does not: nothing that is stored for the key may be shown
   */
  async function confirmKey(owner: CallOwner, signal: AbortSignal): Promise<void> {
    if (!(await keys.has(owner.tenantId))) assertIdentity(await whoami(owner, signal));
  }

  /**
   * Returns the ad as a list showed it. List items and `getAd` share one schema in the document, but every key except
   * `id` may be absent, and nothing says that a list item is as complete as the answer of `getAd`. So only callers that
   * ask for a copy get one, and the result states its age and source.
   */
  async function listedAd(owner: CallOwner, adId = ''): Promise<Answer | undefined> {
    const dataset = await datasets.open(owner);
    const item = await dataset.findItem('ads', adId);
    if (item === undefined) return undefined;
    const raw = parseItem(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const source = { seenIn: item.listedBy, ...(dataset.isUnconfirmed && { isUnconfirmed: true as const }) };
    return replayCached({ answer: { raw, value: AdAnswer.parse(raw), receipt, ...source }, at: item.at });
  }

  /**
   * Sends a call that changes a collection. Callers that come later must see the change, so they neither join reads of
   * the collection that began before it, nor get cached ones.
   */
  async function write(call: Call): Promise<Answer> {
    leaveReadsOf(call);
    const send: Send = async (sent) => {
      const forget = () => cache.forgetGroup(sent.owner.tenantId, itemsGroup(sent.request));
      const answer = await meter.send(sent).catch(async (error) => {
        // The service may have carried out the call before it failed, so cached lists of the collection may be outdated.
        if (!isRejected(error)) await forget();
        throw error;
      });
      await forget();
      return answer;
    };
    const started = inFlight.start(call, send);
    void started.settled.then(() => leaveReadsOf(call));
    return started.join(call.signal);
  }

  function leaveReadsOf(write: Call): void {
    const items = itemsGroup(write.request);
    for (const [name, { call }] of sharedCalls)
      if (call.owner.tenantId === write.owner.tenantId && answerNameOf(call.request).group === items)
        sharedCalls.delete(name);
  }

  /** Returns whether a request has a cached answer, so that repeating it costs nothing. */
  async function isAnswered(tenantId: string, request: Omit<ServiceRequest, 'fingerprint'>): Promise<boolean> {
    return (await cache.get(tenantId, fingerprint(request))) !== undefined;
  }

  /** Returns the newest total of a search that is cached, whatever the size of its page. */
  async function cachedTotal(tenantId: string, filters: object): Promise<CachedTotal | undefined> {
    const prices = await meter.prices(tenantId);
    // The page sizes that were paid for, and a page of one item, which is requested where only the total is needed.
    const limits = new Set([undefined, 1, ...(prices.get('searchAds')?.bySize.keys() ?? [])]);
    const names = [...limits].map((limit) => {
      const body = { ...filters, ...(limit !== undefined && { limit }) };
      return fingerprint({ operation: operations.searchAds, path: {}, query: {}, body });
    });
    const cached = await Promise.all(names.map((name) => cache.get(tenantId, name)));
    const totals = cached.flatMap((one) => {
      const ads = one && readTotalHits(one.answer as ApiAnswer<'searchAds'>);
      return one && ads !== undefined ? { ads, at: one.at, order: one.answer.order ?? 0 } : [];
    });
    return totals.sort((left, right) => right.order - left.order)[0];
  }

  return {
    send: async (call: Call) => meter.addBalance(call, answer(call)),
    close: inFlight.close,
    confirmKey,
    isAnswered,
    cachedTotal,
    /** Returns the dataset of a key that the service accepts. */
    async dataset(owner: CallOwner, signal: AbortSignal): Promise<Dataset> {
      await confirmKey(owner, signal);
      return datasets.open(owner);
    },
  };
}

async function receive(shared: SharedCall, signal: AbortSignal): Promise<Answer> {
  const answer = await shared.join(signal);
  if (shared.isChargeShown) return replay(answer);
  shared.isChargeShown = true;
  return answer;
}

/**
 * Returns whether the limit of a tool call or a connection refused a call. Other callers of the same call have limits of
 * their own, while the server's budget is the same for all.
 */
const isRefusedByOwnLimit = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.kind === 'credit_budget' && error.failure.limit !== 'server';

/**
 * Returns whether no attempt of a call was carried out. For a key or a collection that does not exist, the cache then
 * stores nothing.
 */
const isRejected = (error: unknown) =>
  error instanceof AdLibraryError &&
  !error.failure.repeated &&
  (error.failure.sent === false || ['unauthorized', 'forbidden', 'not_found'].includes(error.failure.kind));

const itemTypeOf = ({ operation: { name }, query }: ServiceRequest): ItemType =>
  name === 'searchPages' || name === 'getPage' || query.itemType === 'pages' ? 'pages' : 'ads';

const itemsIn = ({ name }: Operation, raw: unknown): readonly unknown[] =>
  name === 'getAd' || name === 'getPage' ? [raw] : (raw as { items: readonly unknown[] }).items;

/** Keeps only the text in memory, because the parsed answer may take twenty times as much. */
const itemsInText = (operation: Operation, text: string) => () => itemsIn(operation, JSON.parse(text));

const lostCall = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'A replica of this server that had sent the same call ended before its answer arrived.',
    paid: true,
  });
