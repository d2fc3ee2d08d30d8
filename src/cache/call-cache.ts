import { createAbortError } from '../api/abort.ts';
import {
  type ApiCall,
  type CallOwner,
  createFingerprint,
  createRequestWithoutArguments,
  getCachedResponseName,
  getCollectionCacheGroup,
  markAsCached,
  PaymentNeededError,
  type SendCall,
  type ServiceRequest,
  type ServiceResponse,
} from '../api/call.ts';
import { type ApiResponse, ParsedAd } from '../api/client.ts';
import { type CachedTotal, readTotalHits } from '../api/counts.ts';
import { AdLibraryError } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import type { ItemType } from '../api/schemas.ts';
import type { Meter } from '../credits/meter.ts';
import { isPaidOperation } from '../credits/prices.ts';
import type { AcceptedKeys, CachedResponse, GrantedClaim, ResponseCache } from '../storage/call-state.ts';
import type { Dataset, DatasetStore } from '../storage/dataset.ts';
import { parseItem } from '../storage/item-versions.ts';
import { assertKeyAccepted } from './accepted-keys.ts';
import { createInFlightCallTracker, type InFlightCall, type InFlightCallOptions } from './in-flight-calls.ts';

interface CallCacheOptions extends InFlightCallOptions {
  datasets: DatasetStore;
  responseCache: ResponseCache;
  /** How long responses are cached, in milliseconds. 0 if the server sends every call to the service. */
  cacheMs: number;
  acceptedKeys: AcceptedKeys;
  /** Returns the current time in milliseconds since 1970. Used to measure the age of cached responses. */
  now: () => number;
  /**
   * Called if the ads or pages of a response could not be added to the dataset (the stored ads). The response is still
   * returned to the caller.
   */
  onDatasetError(error: unknown): void;
}

interface SharedCall extends InFlightCall {
  /**
   * True once one of the callers that share the call has received the charge, with the response or with the error. The
   * receipts of the other callers show no charge, so that the charge is not counted twice.
   */
  hasCallerReceivedCharge: boolean;
}

/** The step that returns cached responses, and sends all other calls to the meter. */
export type CallCache = ReturnType<typeof openCallCache>;

/**
 * Creates the cache in front of the credit meter, so that callers do not pay twice for the same data.
 *
 * - It returns cached responses without sending a request. With the `acceptsListedAd` option, it also returns ads that
 * are already in the dataset.
 * - It sends identical calls only once, within this process and across all replicas. All callers get the same response.
 * - It caches each new response and adds the ads and pages of the response to the dataset.
 */
export function openCallCache(
  meter: Pick<Meter, 'send' | 'addBalance' | 'settleLostCall' | 'readPrices'>,
  options: CallCacheOptions,
) {
  const { datasets, responseCache, cacheMs, acceptedKeys, now, onDatasetError } = options;
  const isCachingEnabled = cacheMs > 0;
  const inFlightCalls = createInFlightCallTracker(options);
  const sharedCalls = new Map<string, SharedCall>();

  async function handleCall(call: ApiCall): Promise<ServiceResponse> {
    const { request, owner, signal } = call;
    const { operation } = request;
    if (!operation.requiresCredits) {
      if (call.cacheOptions.forbidsPaidRequests && (operation.changesData || (await hasCostCredits(call))))
        throw new PaymentNeededError(request);
      return operation.changesData ? sendCollectionChange(call) : meter.send(call);
    }
    // Run both lookups at the same time, because each lookup is a network round trip if the store is remote.
    const [storedResponse, isKeyAccepted] = await Promise.all([
      findStoredResponse(call),
      acceptedKeys.has(owner.tenantId),
    ]);
    if (storedResponse && !isKeyAccepted) assertKeyAccepted(await callWhoami(owner, signal));
    if (storedResponse) return storedResponse;
    if (call.cacheOptions.forbidsPaidRequests) throw new PaymentNeededError(request);
    if (signal.aborted) throw createAbortError(signal, false);
    // If an identical call is in progress, wait for its response instead of sending another call.
    const callKey = `${owner.tenantId} ${request.fingerprint}`;
    for (;;) {
      const sharedCall = sharedCalls.get(callKey);
      if (sharedCall === undefined || sharedCall.isAborted())
        return awaitSharedCall(startSharedCall(callKey, call, sendOnce), signal);
      try {
        return await awaitSharedCall(sharedCall, signal);
      } catch (error) {
        if (!isRefusedByCallerLimit(error)) throw error;
        forgetSharedCall(callKey, sharedCall);
      }
    }
  }

  /** Returns true if the service has charged the API key for this operation before, although it is normally free. */
  const hasCostCredits = async ({ request, owner }: ApiCall): Promise<boolean> =>
    isPaidOperation(request.operation, await meter.readPrices(owner.tenantId));

  async function findStoredResponse({
    request,
    owner,
    cacheOptions: { ignoresCache, acceptsListedAd },
  }: ApiCall): Promise<ServiceResponse | undefined> {
    if (ignoresCache) return undefined;
    const listedAd =
      acceptsListedAd && request.operation.name === 'getAd' ? await findListedAd(owner, request.path.adId) : undefined;
    if (listedAd !== undefined || !isCachingEnabled) return listedAd;
    const name = await responseCache.resolveName(owner.tenantId, getCachedResponseName(request));
    const cachedResponse = name === undefined ? undefined : await responseCache.get(owner.tenantId, name);
    return cachedResponse && toCachedServiceResponse(cachedResponse);
  }

  const computeAgeMs = (arrivedAt: number) => Math.max(0, now() - arrivedAt);

  /** Adds the age and the remaining cache time to a cached response, and marks the response as free of charge. */
  const toCachedServiceResponse = ({ response, arrivedAt }: CachedResponse) => {
    const ageMs = computeAgeMs(arrivedAt);
    return {
      ...markAsCached(response, ageMs),
      ...(isCachingEnabled && { remainingCacheMs: Math.max(0, cacheMs - ageMs) }),
    };
  };

  /**
   * Sends a call. If another replica (another process of this server) is already sending an identical call, waits for
   * the response to that call instead. The response is stored even if all callers have disconnected.
   */
  async function sendOnce(call: ApiCall): Promise<ServiceResponse> {
    const { request, owner, cacheOptions } = call;
    const responseName = await responseCache.resolveName(owner.tenantId, getCachedResponseName(request));
    const onProcessDied = (id: string) => meter.settleLostCall(call, id);
    const claim = await responseCache.claim(call, responseName, {
      arrivedAfter: cacheOptions.ignoresCache ? now() : undefined,
      onProcessDied,
    });
    if (claim.kind === 'cached') return toCachedServiceResponse(claim.cachedResponse);
    // The call is `lost` if another process died while it was sending the call. The service may have charged for the
    // call, so do not send it a second time unless the caller asks again.
    if (claim.kind === 'lost') throw createLostCallError();
    try {
      const pendingResponse = sendAndStore(call, claim);
      await cacheOptions.onSending?.(pendingResponse);
      return await pendingResponse;
    } finally {
      await claim.endClaim();
    }
  }

  /** Sends a call, caches the response, and adds its ads or pages to the dataset (the stored ads of the API key). */
  async function sendAndStore(call: ApiCall, claim: GrantedClaim): Promise<ServiceResponse> {
    const { request, owner } = call;
    const { bodyText: responseText, ...receivedResponse } = await meter.send(call);
    const arrivedAt = now();
    let storageError: AdLibraryError | undefined;
    const reportDatasetError = (error: unknown): undefined => {
      if (error instanceof AdLibraryError) storageError = error;
      onDatasetError(error);
    };
    const dataset = await datasets.open(owner, { toAdd: true }).catch(reportDatasetError);
    // Number the responses in the order of their arrival. The cache and the dataset store this number, so that newer
    // data replaces older data.
    const sequenceNumber = await dataset?.nextSequenceNumber().catch(reportDatasetError);
    const isCacheable = isCachingEnabled && !call.cacheOptions.preventsCaching;
    const response = { ...receivedResponse, ...(sequenceNumber !== undefined && { sequenceNumber }) };
    const parseItems =
      responseText === undefined
        ? () => extractItems(request.operation, receivedResponse.rawBody)
        : createItemParser(request.operation, responseText);
    const source = { at: arrivedAt, listedBy: request.operation.name, requestId: receivedResponse.receipt.requestId };
    const [isCached] = await Promise.all([
      isCacheable ? claim.cacheResponse({ response, arrivedAt }) : claim.removeResponse(),
      sequenceNumber !== undefined &&
        dataset
          ?.addItems({
            type: getItemType(request),
            parseItems,
            text: responseText,
            sequenceNumber,
            ...source,
          })
          .catch(reportDatasetError),
    ]);
    return {
      ...response,
      ...(isCached && { remainingCacheMs: cacheMs }),
      ...(storageError && { storageError }),
    };
  }

  function startSharedCall(callKey: string, call: ApiCall, send: SendCall): SharedCall {
    const startedCall = { ...inFlightCalls.startCall(call, send), hasCallerReceivedCharge: false };
    sharedCalls.set(callKey, startedCall);
    void startedCall.completion.then(() => forgetSharedCall(callKey, startedCall));
    return startedCall;
  }

  function forgetSharedCall(callKey: string, sharedCall: SharedCall): void {
    if (sharedCalls.get(callKey) === sharedCall) sharedCalls.delete(callKey);
  }

  /**
   * Calls the `whoami` API operation to find out whether the service accepts the caller's API key. The receipt (the
   * recorded cost) of the tool call does not include this request.
   */
  function callWhoami({ tenantId, apiKey }: CallOwner, signal: AbortSignal): Promise<ServiceResponse> {
    const request = createRequestWithoutArguments(operations.whoami);
    return meter.send({ request, owner: { tenantId, apiKey }, signal, cacheOptions: {}, progress: { isSent: false } });
  }

  /**
   * Checks that the service accepts the API key, unless it accepted the key recently.
   * @throws AdLibraryError if the service rejects the key; data stored for the key must then not be shown
   */
  async function confirmKey(owner: CallOwner, signal: AbortSignal): Promise<void> {
    if (!(await acceptedKeys.has(owner.tenantId))) assertKeyAccepted(await callWhoami(owner, signal));
  }

  /**
   * Returns an ad from the dataset (the stored ads of the API key), as an earlier search or list returned it. Returns
   * undefined if the dataset does not contain the ad.
   *
   * In the API document, list items and responses of `getAd` have the same schema, in which only `id` is required. A
   * list item may therefore lack fields that `getAd` returns. For this reason, only calls with the
   * `acceptsListedAd` option get the stored ad, and the result mentions its age and source.
   */
  async function findListedAd(owner: CallOwner, adId = ''): Promise<ServiceResponse | undefined> {
    const dataset = await datasets.open(owner);
    const item = await dataset.findItem('ads', adId);
    if (item === undefined) return undefined;
    const rawBody = parseItem(item);
    const receipt = { charged: null, remaining: null, cached: true, requestId: item.requestId };
    const source = {
      listedBy: item.listedBy,
      ...(dataset.isOwnerUnconfirmed && { isOwnerUnconfirmed: true as const }),
    };
    return markAsCached({ rawBody, validatedBody: ParsedAd.parse(rawBody), receipt, ...source }, computeAgeMs(item.at));
  }

  /**
   * Sends a call that changes a collection, and deletes the cached lists of the collection. Later callers that read the
   * collection do not share a call that is already in progress, because its response may lack the change.
   */
  async function sendCollectionChange(call: ApiCall): Promise<ServiceResponse> {
    forgetReadsOfCollection(call);
    const send: SendCall = async (sentCall) => {
      const forgetCachedLists = () =>
        responseCache.forgetGroup(sentCall.owner.tenantId, getCollectionCacheGroup(sentCall.request));
      const response = await meter.send(sentCall).catch(async (error) => {
        // The service may have made the change before the call failed. Therefore delete the cached lists, which may be
        // outdated.
        if (!isCollectionUnchanged(error)) await forgetCachedLists();
        throw error;
      });
      await forgetCachedLists();
      return response;
    };
    const startedCall = inFlightCalls.startCall(call, send);
    void startedCall.completion.then(() => forgetReadsOfCollection(call));
    return startedCall.joinCall(call.signal);
  }

  function forgetReadsOfCollection(writeCall: ApiCall): void {
    const group = getCollectionCacheGroup(writeCall.request);
    for (const [name, { call }] of sharedCalls)
      if (call.owner.tenantId === writeCall.owner.tenantId && getCachedResponseName(call.request).group === group)
        sharedCalls.delete(name);
  }

  /** Returns true if the response to a request is cached, so that repeating the request costs nothing. */
  async function hasCachedResponse(tenantId: string, request: Omit<ServiceRequest, 'fingerprint'>): Promise<boolean> {
    const fingerprint = createFingerprint(request);
    const name = await responseCache.resolveName(tenantId, getCachedResponseName({ ...request, fingerprint }));
    return name !== undefined && (await responseCache.get(tenantId, name)) !== undefined;
  }

  /**
   * Returns the number of matching ads from the most recent cached response of a search. This number does not depend on
   * the page size, so the function looks for responses of all known page sizes.
   */
  async function findCachedTotal(tenantId: string, filters: object): Promise<CachedTotal | undefined> {
    const prices = await meter.readPrices(tenantId);
    // Try the page sizes of earlier paid calls, the default page size (undefined), and 1, because calls that need only
    // the total request one ad.
    const pageSizes = new Set([undefined, 1, ...(prices.get('searchAds')?.bySize.keys() ?? [])]);
    const fingerprints = [...pageSizes].map((pageSize) => {
      const body = { ...filters, ...(pageSize !== undefined && { limit: pageSize }) };
      return createFingerprint({ operation: operations.searchAds, path: {}, query: {}, body });
    });
    const cachedResponses = await Promise.all(
      fingerprints.map((fingerprint) => responseCache.get(tenantId, fingerprint)),
    );
    const totals = cachedResponses.flatMap((cached) => {
      const matchingCount = cached && readTotalHits(cached.response as ApiResponse<'searchAds'>);
      if (cached === undefined || matchingCount === undefined) return [];
      return { matchingCount, countedAt: cached.arrivedAt, sequenceNumber: cached.response.sequenceNumber ?? 0 };
    });
    return totals.sort((left, right) => right.sequenceNumber - left.sequenceNumber)[0];
  }

  return {
    send: async (call: ApiCall) => meter.addBalance(call, handleCall(call)),
    close: inFlightCalls.close,
    confirmKey,
    hasCachedResponse,
    findCachedTotal,
    /** Opens the dataset (the stored ads) of an API key after checking that the service accepts the key. */
    async openDataset(owner: CallOwner, signal: AbortSignal): Promise<Dataset> {
      await confirmKey(owner, signal);
      return datasets.open(owner);
    },
  };
}

async function awaitSharedCall(sharedCall: SharedCall, signal: AbortSignal): Promise<ServiceResponse> {
  try {
    const response = await sharedCall.joinCall(signal);
    if (sharedCall.hasCallerReceivedCharge) return markAsCached(response);
    sharedCall.hasCallerReceivedCharge = true;
    return response;
  } catch (error) {
    if (!(error instanceof AdLibraryError) || !error.failure.charged) throw error;
    if (sharedCall.hasCallerReceivedCharge)
      throw new AdLibraryError({ ...error.failure, isChargeShared: true }, { cause: error });
    sharedCall.hasCallerReceivedCharge = true;
    throw error;
  }
}

/**
 * Returns true if a call was refused by the credit limit of its tool call or of its sign-in connection. Another caller
 * that waits for the same call may still send it, because this limit does not apply to the other caller. The server's
 * budget applies to all callers.
 */
const isRefusedByCallerLimit = (error: unknown) =>
  error instanceof AdLibraryError && error.failure.kind === 'credit_budget' && error.failure.limit !== 'server';

/**
 * Returns true if an error proves that the service did not change a collection, e.g. because the service rejected the
 * API key. The cached lists of the collection are then still valid.
 */
const isCollectionUnchanged = (error: unknown) =>
  error instanceof AdLibraryError &&
  !error.failure.mayHaveBeenPerformed &&
  (error.failure.wasSent === false || ['unauthorized', 'forbidden', 'not_found'].includes(error.failure.kind));

const getItemType = ({ operation: { name }, query }: ServiceRequest): ItemType =>
  name === 'searchPages' || name === 'getPage' || query.itemType === 'pages' ? 'pages' : 'ads';

const extractItems = ({ name }: Operation, rawBody: unknown): readonly unknown[] =>
  name === 'getAd' || name === 'getPage' ? [rawBody] : (rawBody as { items: readonly unknown[] }).items;

/**
 * Returns a function that parses the ads or pages of a response. Until this function is called, only the text is in
 * memory, because the parsed response may take up twenty times as much space.
 */
const createItemParser = (operation: Operation, text: string) => () => extractItems(operation, JSON.parse(text));

const createLostCallError = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'Another replica of this server had sent the same call and ended before the response arrived.',
    isPaid: true,
  });
