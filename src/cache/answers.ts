import { abortedError } from '../api/abort.ts';
import {
  type Answer,
  type Call,
  type CallOwner,
  createFingerprint,
  getAnswerName,
  getItemsGroup,
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
  /** False if caching is turned off. */
  isCached: boolean;
  keys: AcceptedKeys;
  /** In milliseconds since the epoch. */
  now: () => number;
  /**
   * Called with an error that occurred while the items of a response were added to the dataset. The caller still
   * receives the response.
   */
  onError(error: unknown): void;
}

interface SharedCall extends InFlightCall {
  /** True after one caller has received a receipt that shows the charge. The other callers' receipts show no charge. */
  isChargeShown: boolean;
}

export type Answers = ReturnType<typeof openAnswers>;

/**
 * Opens the cache in front of the meter. The cache avoids paying twice for a call while its response is fresh:
 *
 * - It returns a cached response, or an ad that is already in the dataset (option `seen`), without sending anything.
 * - It sends equal calls only once, within this process and across all replicas. All callers receive the same response.
 * - It caches each new response and adds the items of the response to the dataset.
 */
export function openAnswers(
  meter: Pick<Meter, 'send' | 'addBalance' | 'settleLost' | 'prices'>,
  options: AnswersOptions,
) {
  const { datasets, cache, isCached, keys, now, onError } = options;
  const inFlight = trackInFlightCalls(options);
  const sharedCalls = new Map<string, SharedCall>();

  async function answerCall(call: Call): Promise<Answer> {
    const { request, owner, signal } = call;
    if (request.operation.writes) return write(call);
    if (!request.operation.gated) return meter.send(call);
    // With a remote store, each lookup is a network round trip, so both lookups run in parallel.
    const [storedAnswer, isAccepted] = await Promise.all([findStored(call), keys.has(owner.tenantId)]);
    if (storedAnswer && !isAccepted) assertIdentity(await whoami(owner, signal));
    if (storedAnswer) return storedAnswer;
    if (call.cache.storedOnly) throw new PaymentNeeded(request);
    if (signal.aborted) throw abortedError(signal, false);
    // If an equal call is in progress, join that call instead of sending another one.
    const name = `${owner.tenantId} ${request.fingerprint}`;
    for (;;) {
      const running = sharedCalls.get(name);
      if (running === undefined || running.isAborted()) return receive(startSharedCall(name, call, pay), signal);
      try {
        return await receive(running, signal);
      } catch (error) {
        if (!isRefusedByOwnLimit(error)) throw error;
        forgetSharedCall(name, running);
      }
    }
  }

  async function findStored({ request, owner, cache: { fresh, seen } }: Call): Promise<Answer | undefined> {
    if (fresh) return undefined;
    const listedAd =
      seen && request.operation.name === 'getAd' ? await findListedAd(owner, request.path.adId) : undefined;
    if (listedAd !== undefined || !isCached) return listedAd;
    const name = await cache.resolveName(owner.tenantId, getAnswerName(request));
    const cached = name === undefined ? undefined : await cache.get(owner.tenantId, name);
    return cached && replayCached(cached);
  }

  const replayCached = ({ answer, at }: CachedAnswer) => replay(answer, Math.max(0, now() - at));

  /**
   * Sends a call unless another replica is already sending an equal one. The response is stored even if all callers
   * have left.
   */
  async function pay(call: Call): Promise<Answer> {
    const { request, owner, cache: options } = call;
    const name = await cache.resolveName(owner.tenantId, getAnswerName(request));
    const onLost = (id: string) => meter.settleLost(call, id);
    const claim = await cache.claim(call, name, { after: options.fresh ? now() : undefined, onLost });
    if (claim.kind === 'cached') return replayCached(claim.cachedAnswer);
    // The service may have charged for the lost call, so the call is sent again only if the caller asks again.
    if (claim.kind === 'lost') throw createLostCallError();
    try {
      const sending = sendAndStore(call, claim);
      await options.onSending?.(sending);
      return await sending;
    } finally {
      await claim.end();
    }
  }

  /** Sends a call, caches the response, and adds the items of the response to the dataset. */
  async function sendAndStore(call: Call, claim: GrantedClaim): Promise<Answer> {
    const { request, owner } = call;
    const { text, ...sentAnswer } = await meter.send(call);
    const at = now();
    const report = (error: unknown): undefined => void onError(error);
    const dataset = await datasets.open(owner, { toAdd: true }).catch(report);
    // Responses are numbered in the order in which they arrived. The cache and the dataset store the same number.
    const order = await dataset?.nextSequenceNumber().catch(report);
    const isCacheable = isCached && !call.cache.uncached;
    const answer = {
      ...sentAnswer,
      ...(order !== undefined && { order }),
      ...(isCacheable && { isCached: true as const }),
    };
    const items =
      text === undefined
        ? () => extractItems(request.operation, sentAnswer.raw)
        : createItemParser(request.operation, text);
    const source = { at, listedBy: request.operation.name, requestId: sentAnswer.receipt.requestId };
    await Promise.all([
      isCacheable ? claim.put({ answer, at }) : claim.forget(),
      order !== undefined &&
        dataset?.addItems({ type: getItemType(request), items, text, order, ...source }).catch(report),
    ]);
    return answer;
  }

  function startSharedCall(name: string, call: Call, send: Send): SharedCall {
    const started = { ...inFlight.start(call, send), isChargeShown: false };
    sharedCalls.set(name, started);
    void started.settled.then(() => forgetSharedCall(name, started));
    return started;
  }

  function forgetSharedCall(name: string, shared: SharedCall): void {
    if (sharedCalls.get(name) === shared) sharedCalls.delete(name);
  }

  /** Calls `whoami` with the caller's API key. The receipt of the tool call does not include this request. */
  function whoami({ tenantId, apiKey }: CallOwner, signal: AbortSignal): Promise<Answer> {
    const request = requestWithoutArguments(operations.whoami);
    return meter.send({ request, owner: { tenantId, apiKey }, signal, cache: {}, progress: { sent: false } });
  }

  /**
   * Resolves if the service accepts the API key now, or accepted it recently.
   * @throws AdLibraryError if the service does not accept the key. Data stored for the key must then not be shown.
   */
  async function confirmKey(owner: CallOwner, signal: AbortSignal): Promise<void> {
    if (!(await keys.has(owner.tenantId))) assertIdentity(await whoami(owner, signal));
  }

  /**
   * Returns an ad from the dataset, as a list call returned it. Returns undefined if the dataset does not have the ad.
   *
   * The API document uses one schema for list items and for the response of `getAd`, but only `id` is required. So a
   * list item may lack fields that `getAd` would return. For this reason, only calls with the option `seen` use this
   * copy, and the result states the age and the source of the copy.
   */
  async function findListedAd(owner: CallOwner, adId = ''): Promise<Answer | undefined> {
    const dataset = await datasets.open(owner);
    const item = await dataset.findItem('ads', adId);
    if (item === undefined) return undefined;
    const raw = parseItem(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const source = { seenIn: item.listedBy, ...(dataset.isUnconfirmed && { isUnconfirmed: true as const }) };
    return replayCached({ answer: { raw, value: AdAnswer.parse(raw), receipt, ...source }, at: item.at });
  }

  /**
   * Sends a call that changes a collection. Later callers must see the change. Therefore they do not join reads of the
   * collection that are already in progress, and cached lists of the collection are dropped.
   */
  async function write(call: Call): Promise<Answer> {
    forgetReadsOfCollection(call);
    const send: Send = async (sentCall) => {
      const forget = () => cache.forgetGroup(sentCall.owner.tenantId, getItemsGroup(sentCall.request));
      const answer = await meter.send(sentCall).catch(async (error) => {
        // The service may have applied the change before the call failed, so cached lists of the collection may be
        // outdated.
        if (!isRejected(error)) await forget();
        throw error;
      });
      await forget();
      return answer;
    };
    const started = inFlight.start(call, send);
    void started.settled.then(() => forgetReadsOfCollection(call));
    return started.join(call.signal);
  }

  function forgetReadsOfCollection(write: Call): void {
    const items = getItemsGroup(write.request);
    for (const [name, { call }] of sharedCalls)
      if (call.owner.tenantId === write.owner.tenantId && getAnswerName(call.request).group === items)
        sharedCalls.delete(name);
  }

  /** Returns true if the response to a request is cached, so that repeating the request costs nothing. */
  async function hasCachedAnswer(tenantId: string, request: Omit<ServiceRequest, 'fingerprint'>): Promise<boolean> {
    return (await cache.get(tenantId, createFingerprint(request))) !== undefined;
  }

  /**
   * Returns the most recent cached total of a search. The total does not depend on the page size, so the cache entries
   * of all known page sizes are searched.
   */
  async function findCachedTotal(tenantId: string, filters: object): Promise<CachedTotal | undefined> {
    const prices = await meter.prices(tenantId);
    // Page sizes that were paid for before, the default size, and 1. Calls that only need the total request one item.
    const limits = new Set([undefined, 1, ...(prices.get('searchAds')?.bySize.keys() ?? [])]);
    const names = [...limits].map((limit) => {
      const body = { ...filters, ...(limit !== undefined && { limit }) };
      return createFingerprint({ operation: operations.searchAds, path: {}, query: {}, body });
    });
    const cachedAnswers = await Promise.all(names.map((name) => cache.get(tenantId, name)));
    const totals = cachedAnswers.flatMap((cached) => {
      const ads = cached && readTotalHits(cached.answer as ApiAnswer<'searchAds'>);
      return cached && ads !== undefined ? { ads, at: cached.at, order: cached.answer.order ?? 0 } : [];
    });
    return totals.sort((left, right) => right.order - left.order)[0];
  }

  return {
    send: async (call: Call) => meter.addBalance(call, answerCall(call)),
    close: inFlight.close,
    confirmKey,
    hasCachedAnswer,
    findCachedTotal,
    /** Opens the dataset of an API key, after checking that the service accepts the key. */
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
 * Returns true if a call was refused by the credit limit of one tool call or one connection. Other callers waiting for
 * the same call have limits of their own, so they may still send it. The server's budget applies to all callers.
 */
const isRefusedByOwnLimit = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.kind === 'credit_budget' && error.failure.limit !== 'server';

/**
 * Returns true if the service certainly did not apply a change, for example because the key was rejected or the
 * collection does not exist. Cached lists then stay valid.
 */
const isRejected = (error: unknown) =>
  error instanceof AdLibraryError &&
  !error.failure.repeated &&
  (error.failure.sent === false || ['unauthorized', 'forbidden', 'not_found'].includes(error.failure.kind));

const getItemType = ({ operation: { name }, query }: ServiceRequest): ItemType =>
  name === 'searchPages' || name === 'getPage' || query.itemType === 'pages' ? 'pages' : 'ads';

const extractItems = ({ name }: Operation, raw: unknown): readonly unknown[] =>
  name === 'getAd' || name === 'getPage' ? [raw] : (raw as { items: readonly unknown[] }).items;

/**
 * Returns a function that parses the items when they are needed. Until then only the text is in memory, because the
 * parsed response may take twenty times as much.
 */
const createItemParser = (operation: Operation, text: string) => () => extractItems(operation, JSON.parse(text));

const createLostCallError = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'Another replica of this server had sent the same call and ended before the response arrived.',
    paid: true,
  });
