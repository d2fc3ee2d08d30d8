import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type CacheOptions, PaymentNeededError, type ServiceRequest, type ServiceResponse } from '../api/call.ts';
import type { Api } from '../api/client.ts';
import type { CachedTotal } from '../api/counts.ts';
import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { CallBudget } from '../credits/call-budget.ts';
import {
  type Dataset,
  type DatasetContents,
  type Gathering,
  type GatheringState,
  normalizeAdId,
} from '../storage/dataset.ts';
import { dayMs } from '../views/durations.ts';
import { maxNotes, readServiceNotes } from '../views/lists.ts';
import { formatCount, formatNumber, roundCredits } from '../views/numbers.ts';
import {
  type AdListResponse,
  buildPageRequest,
  getListOperationName,
  getResponseTime,
  type RequestedPage,
  readAdIdsAndMatchingCount,
} from './ad-list-page.ts';
import {
  type AdQuery,
  findGatherings,
  findOrCreateGathering,
  type GatheringPart,
  getAdQueryKey,
  removeDuplicateParts,
} from './gatherings.ts';
import { determineMaxPageSize, fallbackPageSizes } from './page-size.ts';
import {
  classifyFailure,
  createRepeatedPagesError,
  isCallAbandoned,
  isRequestRejection,
  type StopInfo,
  type StopSignals,
} from './stops.ts';

/** A request to read all ads that match a query, within the limits of the call. */
export interface GatherRequest {
  adQuery: AdQuery;
  maxAds: number;
  /**
   * The maximum number of credits that this call may spend. If undefined, the call stops after the first page that
   * costs credits.
   */
  maxCredits: number | undefined;
  /**
   * True to read all pages again instead of continuing where an earlier call stopped. The service then charges again
   * for pages that were read before.
   */
  fresh: boolean;
}

/** The dependencies and limits of a tool call that reads and stores ads, e.g. the API client and the deadline. */
export interface GatherContext extends StopSignals {
  api: Api;
  adFilters: readonly SearchFilter[];
  /** Opens the dataset (all stored ads) of the caller. The dataset includes ads that other processes have added. */
  openDataset(): Promise<Dataset>;
  /** Returns true if the response to a request is cached. Such a request costs nothing. */
  isCached(request: Omit<ServiceRequest, 'fingerprint'>): Promise<boolean>;
  /** Returns the total number of ads that match the filters, if a cached response states it. */
  findCachedTotal(filters: object): Promise<CachedTotal | undefined>;
  /**
   * Creates the credit budget that all API calls of this tool call share. Without `maxCredits`, the budget is 0
   * credits, so the tool call stops as soon as a response costs credits.
   */
  createCallBudget(maxCredits?: number): Promise<CallBudget>;
  /**
   * Waits until no other call of the same caller holds the lock called `lockName`. Resolves to a function that releases
   * the lock.
   */
  acquireLock(lockName: string): Promise<() => void>;
  /** The current time, fixed at the start of the call, in milliseconds since the Unix epoch. */
  now: number;
  /** Returns the current time in milliseconds since the Unix epoch. The time never goes backwards during a call. */
  getTime(): number;
  /** The time by which the call must end, on the same scale as `getTime()`. */
  deadline: number;
  /**
   * True if the user was asked to confirm the cost and chose "first page only". The call then requests only one page.
   */
  isFirstPageOnly: boolean;
  onProgress?: ReportProgress;
}

/** The progress of a long call, as in an MCP progress notification. `progress` must increase with each report. */
export interface Progress {
  progress: number;
  total?: number;
  message: string;
}

/** Sends a progress notification to the caller, e.g. with the message `120 ads read`. */
export type ReportProgress = (progress: Progress) => void;

/** The result of a call that reads ads from the service and stores them in the dataset. */
export interface GatherOutcome {
  /** Why the call stopped reading, e.g. it read the last page or reached a limit. */
  stopInfo: StopInfo;
  /** The stored ads of this search. Undefined if no ads are stored. */
  gathering: Gathering | undefined;
  contents: DatasetContents;
  /** The number of ads of this search that this call and earlier calls have read in total. */
  readCount: number;
  /** The ids of the ads that this call has read, in lower case. */
  idsReadByCall: ReadonlySet<string>;
  /** The notes of the service about the search, e.g. that no ad has the requested advertiser. */
  serviceNotes: readonly string[];
  /**
   * True if the call read all pages from the beginning although an earlier call with `fresh` had stopped early, because
   * this earlier call was too long ago to be continued.
   */
  hasStartedOver: boolean;
  /**
   * Records that the caller has received the result, so that the next call with `fresh` reads all ads again instead of
   * continuing.
   */
  markResultReturned(): Promise<void>;
}

/** A gathering (the stored ads of one search) that a call continues, together with a snapshot of the dataset. */
export type OpenedGathering = Awaited<ReturnType<typeof openCurrentGathering>>;

/**
 * Finds or creates the gathering (the stored ads) of a search and passes it to `useGathering`, which may read the
 * missing pages. Holds a lock, so that concurrent calls of one caller for the same search run one at a time.
 * @param contentsBefore snapshot of the dataset from the beginning of the call
 * @param useGathering receives the gathering, and a function that reads the missing pages
 */
export async function withOpenedGathering<Result>(
  { adQuery, ...limits }: GatherRequest,
  contentsBefore: DatasetContents,
  context: GatherContext,
  useGathering: (openedGathering: OpenedGathering, readMissingPages: () => Promise<GatherOutcome>) => Promise<Result>,
): Promise<Result> {
  const request = { ...limits, adQuery: removeDuplicateParts(adQuery) };
  const releaseLock = await context.acquireLock(getAdQueryKey(request.adQuery));
  try {
    const openLatestGathering = () => openCurrentGathering(request, contentsBefore, context);
    const openedGathering = await openLatestGathering();
    return await useGathering(openedGathering, () =>
      GatheringReader.readMissingPages(request, openedGathering, openLatestGathering, context),
    );
  } finally {
    releaseLock();
  }
}

/**
 * How long an unfinished gathering that was started with `fresh: true` can be continued, in milliseconds. After this
 * time, its first pages may be outdated, so a call with `fresh: true` reads all pages again.
 */
const maxFreshAgeMs = dayMs;

async function openCurrentGathering(
  { adQuery, fresh }: GatherRequest,
  contentsBefore: DatasetContents,
  context: GatherContext,
) {
  const contents = await (await context.openDataset()).readContents();
  const [newestGathering] = findGatherings(contents, adQuery);
  const shouldStartOver = fresh && findFreshGathering(adQuery, contents, contentsBefore, context.now) === undefined;
  const openedGathering = findOrCreateGathering(adQuery, contents, shouldStartOver, context.getTime());
  /**
   * True if an earlier call with `fresh` stopped early, and started too long ago (more than `maxFreshAgeMs`) to be
   * continued.
   */
  const isTooOldToContinue = shouldStartOver && newestGathering?.isFresh === true && !newestGathering.hasReadLastPage;
  return { ...openedGathering, contents, isTooOldToContinue };
}

/**
 * Returns the gathering (the stored ads of a search) that a call with `fresh` continues. Returns undefined if the call
 * reads all pages from the beginning.
 * @param contentsBefore the contents of the dataset when the call arrived
 */
export function findFreshGathering(
  adQuery: AdQuery,
  contents: DatasetContents,
  contentsBefore: DatasetContents,
  now: number,
): Gathering | undefined {
  const [newestGathering] = findGatherings(contents, adQuery);
  return newestGathering && canContinueFreshGathering(newestGathering, contentsBefore, now)
    ? newestGathering
    : undefined;
}

/**
 * Returns true if a call with `fresh` may continue a gathering (the stored ads of a search) instead of starting again.
 * A gathering can be continued in two situations:
 *
 * - The gathering started after the call arrived.
 * - Another call with `fresh` started the gathering less than a day ago, and no caller has received its final result
 * yet.
 */
function canContinueFreshGathering(
  { id, partGatheringIds }: Gathering,
  contentsBefore: DatasetContents,
  now: number,
): boolean {
  const gatheringsById = new Map(contentsBefore.gatherings.map((gathering) => [gathering.id, gathering]));
  const gathering = gatheringsById.get(id);
  if (gathering === undefined) return partGatheringIds.every((id) => !gatheringsById.has(id));
  return gathering.isFresh && Math.abs(now - gathering.startedAt) < maxFreshAgeMs;
}

/**
 * The number of ads after which further pages of a search are not cached. The dataset contains these ads anyway, and a
 * second copy in the cache would use too much memory.
 */
const maxAdsToCache = 1000;
/**
 * The maximum number of ad ids to read for one search. If the search is split into parts (smaller searches), an ad
 * counts once for each part that lists it. This is the number of ids that the dataset can hold without evicting ids of
 * the search that is being read.
 */
const maxListedAds = 100_000;
/**
 * The number of consecutive pages without a new ad after which reading stops, because the service probably repeats its
 * pages.
 */
const maxPagesWithoutNewAds = 3;
/**
 * The number of pages after which a search may have listed as many ads as its last known total, or more, and still have
 * further pages. If this happens more often, the service probably counts only the ads that it has listed so far. The
 * total then no longer limits the size of a page, because otherwise each request would be for only a few ads.
 */
const maxPagesBeyondTotal = 1;
/**
 * Another page is requested only if the remaining time is at least this many times as long as the slowest page has
 * taken so far, because the next page may be even slower.
 */
const minRemainingTimeFactor = 1.5;
/**
 * The time reserved for summarizing the ads at the end of the call, in milliseconds: a fixed amount, plus an amount for
 * each ad.
 */
const reservedSummaryMs = { fixed: 300, perAd: 0.6 };

/**
 * The progress of reading one part (smaller search) of a split search during this call. A search without `split`
 * consists of a single part.
 */
interface PartProgress extends GatheringPart {
  /** True to request pages from the service even if their responses are in the cache. */
  ignoresCache: boolean;
  /** The ids of all ads that this call or earlier calls have read for this part of the search, in lower case. */
  adIdsReadSoFar: Set<string>;
  /**
   * The ids of the ads on all pages that this call has read. If a page adds no id to this set, the service may be
   * repeating its pages.
   */
  adIdsListedByCall: Set<string>;
  /** The number of consecutive pages that contained only ads from earlier pages of this call. */
  pagesWithoutNewAds: number;
  /**
   * All requests for which the service may charge. Each promise settles when its request has finished, even if the call
   * was cancelled before.
   */
  chargeableRequests: Promise<unknown>[];
}

/**
 * Reads the missing pages of a search within the limits of one call. If the search is split into parts (smaller
 * searches), reads one part at a time.
 */
class GatheringReader {
  readonly #request: GatherRequest;
  readonly #context: GatherContext;
  readonly #reopenGathering: () => Promise<OpenedGathering>;
  readonly #dataset: Dataset;
  readonly #callBudget: CallBudget;
  /** The stored ads and the progress of the search and of each of its parts (smaller searches). */
  #openedGathering: OpenedGathering;
  /** The ids of all ads that this call or earlier calls have read for the whole search, in lower case. */
  readonly #adIds = new Set<string>();
  readonly #idsReadByCall = new Set<string>();
  readonly #serviceNotes = new Set<string>();
  /** The error of the storage if it could not store the ads of the latest page. */
  #storageError: AdLibraryError | undefined;
  /**
   * The number of ads that the service has listed for this search. An ad that two parts (smaller searches) list counts
   * twice.
   */
  #listedCount = 0;
  /** The maximum number of ads to read for this search. Never exceeds the number of ads that fit in the dataset. */
  #maxAds = 0;
  /** The largest page size to try, and the largest page size that the service has accepted so far. */
  readonly #pageSizes: { maxToTry: number; maxAccepted: number };
  #slowestPageMs = 0;
  /**
   * The number of pages that this call has read. If the user allowed only the first page, the call stops when this
   * number is 1.
   */
  #pagesRead = 0;

  private constructor(
    request: GatherRequest,
    openedGathering: OpenedGathering,
    reopenGathering: () => Promise<OpenedGathering>,
    { context, dataset, callBudget }: { context: GatherContext; dataset: Dataset; callBudget: CallBudget },
  ) {
    this.#request = request;
    this.#openedGathering = openedGathering;
    this.#reopenGathering = reopenGathering;
    this.#context = context;
    this.#dataset = dataset;
    this.#callBudget = callBudget;
    this.#pageSizes = { maxToTry: determineMaxPageSize(request.adQuery, context.adFilters), maxAccepted: 0 };
  }

  /**
   * Reads the missing pages of the gathering (the stored ads of one search). Returns which ads were read and why
   * reading stopped.
   */
  static async readMissingPages(
    request: GatherRequest,
    openedGathering: OpenedGathering,
    reopenGathering: () => Promise<OpenedGathering>,
    context: GatherContext,
  ): Promise<GatherOutcome> {
    const [dataset, callBudget] = [await context.openDataset(), await context.createCallBudget(request.maxCredits)];
    const reader = new GatheringReader(request, openedGathering, reopenGathering, { context, dataset, callBudget });
    return reader.#buildOutcome(await reader.#readParts(), openedGathering);
  }

  async #buildOutcome(stopInfo: StopInfo, { isTooOldToContinue }: OpenedGathering): Promise<GatherOutcome> {
    const contents = await this.#dataset.readContents();
    const { gathering, parts } = this.#openedGathering;
    return {
      stopInfo,
      gathering: contents.gatherings.find(({ id }) => id === gathering.id),
      contents,
      readCount: this.#adIds.size,
      idsReadByCall: this.#idsReadByCall,
      serviceNotes: [...this.#serviceNotes].slice(0, maxNotes),
      hasStartedOver: isTooOldToContinue && this.#idsReadByCall.size > 0,
      markResultReturned: () =>
        this.#markReturned(contents, new Set([...parts.map(({ state }) => state.id), gathering.id])),
    };
  }

  /**
   * Marks gatherings as returned, in the order of `gatheringIds`. If the caller cancels the call, the remaining
   * gatherings are not marked. Therefore the search as a whole must be the last, because its mark decides whether the
   * next call with `fresh` pays for all pages again.
   */
  async #markReturned({ gatherings }: DatasetContents, gatheringIds: ReadonlySet<string>): Promise<void> {
    const gatheringsById = new Map(gatherings.map((gathering) => [gathering.id, gathering]));
    for (const id of gatheringIds) {
      if (isCallAbandoned(this.#context.signal)) return;
      const { hasReadLastPage, isFresh, state } = gatheringsById.get(id) ?? {};
      if (state && hasReadLastPage && isFresh)
        await this.#dataset.saveGathering({ ...state, isFresh: false, stepNumber: state.stepNumber + 1, adIds: [] });
    }
  }

  async #readParts(): Promise<StopInfo> {
    this.#continueFromGathering(this.#openedGathering);
    await this.#updateMaxAds();
    let firstRepeatingPartStop: StopInfo | undefined;
    for (const { state } of this.#openedGathering.parts) {
      if (this.#findPart(state.questionKey)?.state.hasReadLastPage !== false) continue;
      const stopInfo = this.#findReachedLimit() ?? (await this.#readPartWithLock(state.questionKey));
      // If the service repeats the pages of one part (smaller search), the other parts of the split search can still be
      // read.
      if (stopInfo.resumptionBlocker === 'repeatedPages') firstRepeatingPartStop ??= stopInfo;
      else if (stopInfo.reason !== 'end') return stopInfo;
    }
    if (firstRepeatingPartStop) return firstRepeatingPartStop;
    if (!this.#openedGathering.gathering.hasReadLastPage)
      await this.#saveSplitGathering({ hasReadLastPage: true, gatheredAt: this.#context.getTime() });
    return { reason: 'end' };
  }

  /**
   * Reads one part (smaller search) of a split search while holding the lock of this part, so that no other call reads
   * the part at the same time. Releases the lock after the last request has finished.
   */
  async #readPartWithLock(queryKey: string): Promise<StopInfo> {
    const releaseLock = await this.#context
      .acquireLock(`pages of ${queryKey}`)
      .catch((error) => classifyFailure(error, this.#context));
    if (typeof releaseLock !== 'function') return releaseLock;
    const chargeableRequests: Promise<unknown>[] = [];
    try {
      // Load the progress again, because other calls may have read pages of this part while this call was waiting for
      // the lock.
      this.#continueFromGathering(await this.#reopenGathering());
      const part = this.#findPart(queryKey);
      if (part === undefined || part.state.hasReadLastPage) return { reason: 'end' };
      const adIdsReadSoFar = new Set(part.storedGathering?.adIds);
      const ignoresCache = this.#request.fresh || part.state.isFresh;
      const stopInfo = await this.#readPart({
        ...part,
        ignoresCache,
        adIdsReadSoFar,
        adIdsListedByCall: new Set(),
        pagesWithoutNewAds: 0,
        chargeableRequests,
      });
      if (stopInfo.resumptionBlocker) await this.#saveSplitGathering({ isFresh: false });
      return stopInfo;
    } finally {
      // Requests continue even if their caller disconnects. The lock is held until all requests have finished, so that
      // the next call continues after the pages of these requests.
      void Promise.all(chargeableRequests).then(releaseLock);
    }
  }

  /** Reads pages of one part (smaller search) of a split search until there are no more pages or a limit is reached. */
  async #readPart(part: PartProgress): Promise<StopInfo> {
    if (part.state.isStuck)
      return { reason: 'error', error: createRepeatedPagesError(), resumptionBlocker: 'repeatedPages' };
    const knownTotal = part.state.matchingCount === null ? await this.#findTotal(part) : undefined;
    const usedCursors = new Set([part.state.cursor]);
    const getMatchingCount = () => part.state.matchingCount ?? knownTotal?.matchingCount;
    let isTotalPlausible = true;
    let pagesBeyondTotal = 0;
    for (;;) {
      const reachedLimit = this.#findReachedLimit();
      if (reachedLimit) return reachedLimit;
      const matchingCount = getMatchingCount();
      // Some services charge for the requested number of ads, not for the returned number. Therefore never request more
      // ads than remain, which saves credits on the last page.
      const remainingAds =
        isTotalPlausible && matchingCount !== undefined
          ? Math.max(1, matchingCount - part.state.listedCount)
          : Infinity;
      try {
        await this.#readPage(part, remainingAds);
      } catch (error) {
        const stopInfo = classifyFailure(error, this.#context);
        return stopInfo.error && isRequestRejection(stopInfo.error)
          ? this.#markAsNotResumable(part, stopInfo.error, 'rejectedRequest')
          : stopInfo;
      }
      await this.#updateMaxAds();
      this.#reportProgress(part.state.matchingCount);
      // Yield to the event loop between pages. A local library (a server of imported ads) in this process
      // responds without any I/O, so reading many pages would otherwise block the event loop.
      await yieldToEventLoop();
      const { state } = part;
      if (state.hasReadLastPage) return { reason: 'end' };
      if (matchingCount !== undefined && state.listedCount >= matchingCount) pagesBeyondTotal++;
      isTotalPlausible &&=
        state.listedCount < (getMatchingCount() ?? Infinity) && pagesBeyondTotal <= maxPagesBeyondTotal;
      if (usedCursors.has(state.cursor) || part.pagesWithoutNewAds >= maxPagesWithoutNewAds)
        return this.#markAsNotResumable(part, createRepeatedPagesError(), 'repeatedPages');
      usedCursors.add(state.cursor);
    }
  }

  #findTotal({ adQuery }: PartProgress) {
    return findKnownTotal(adQuery, this.#openedGathering.contents, this.#context);
  }

  /**
   * Records that a part (smaller search) of a split search cannot be continued. A later call with `fresh` then reads
   * this part from the beginning.
   */
  async #markAsNotResumable(
    { state }: PartProgress,
    error: AdLibraryError,
    resumptionBlocker: 'repeatedPages' | 'rejectedRequest',
  ): Promise<StopInfo> {
    const isStuck = resumptionBlocker === 'repeatedPages';
    if ((state.isFresh || isStuck) && state.stepNumber > 0)
      await this.#dataset.saveGathering({
        ...state,
        isFresh: false,
        isStuck,
        stepNumber: state.stepNumber + 1,
        adIds: [],
      });
    return { reason: 'error', error, resumptionBlocker };
  }

  /**
   * Reads the next page of a part (smaller search) of a split search. If the service refuses the page size without a
   * charge, tries smaller page sizes.
   */
  async #readPage(part: PartProgress, remainingAds: number): Promise<void> {
    const { cursor } = part.state;
    const operation = getListOperationName(part.adQuery);
    const pageSizes = this.#pageSizes;
    const getMaxAllowedPageSize = () => Math.min(pageSizes.maxToTry, this.#maxAds - this.#adIds.size);
    const largestPage = buildPageRequest(part.adQuery, { limit: getMaxAllowedPageSize(), cursor });
    let isLargestPageCached =
      !part.ignoresCache && (await this.#context.isCached({ operation: operations[operation], ...largestPage }));
    let maxPageSize = isLargestPageCached ? getMaxAllowedPageSize() : remainingAds;
    for (;;) {
      const maxSize = Math.min(getMaxAllowedPageSize(), maxPageSize);
      // A cached page costs nothing, so the credit limits do not apply to it.
      const limit = isLargestPageCached ? maxSize : await this.#callBudget.choosePageSize({ operation, maxSize });
      const startedAt = this.#context.getTime();
      try {
        await this.#requestPage(part, { limit, cursor }, { forbidsPaidRequests: isLargestPageCached });
        this.#pagesRead++;
        pageSizes.maxAccepted = Math.max(pageSizes.maxAccepted, limit);
        return;
      } catch (error) {
        if (error instanceof PaymentNeededError && isLargestPageCached) {
          // The cached page has just expired. Choose a page size that the credit limits allow.
          isLargestPageCached = false;
          maxPageSize = remainingAds;
          continue;
        }
        if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') throw error;
        const { charged, isChargeUnreadable } = error.failure;
        // If the service charges for refused pages, each further attempt may cost credits, too.
        if (charged || isChargeUnreadable) throw error;
        const smallerSize = fallbackPageSizes.find((size) => size < limit);
        // The service may have refused the page size because it was too small, so try the largest page size once.
        if (limit === maxPageSize && limit < pageSizes.maxToTry) maxPageSize = Infinity;
        else if (smallerSize === undefined || limit <= pageSizes.maxAccepted) throw error;
        else pageSizes.maxToTry = smallerSize;
      } finally {
        this.#slowestPageMs = Math.max(this.#slowestPageMs, this.#context.getTime() - startedAt);
      }
    }
  }

  /** Requests a page of ads and stores it, even if the caller disconnects before the response arrives. */
  async #requestPage(
    part: PartProgress,
    position: RequestedPage,
    cacheOptions: Pick<CacheOptions, 'forbidsPaidRequests'>,
  ): Promise<void> {
    let pageStorage: Promise<void> | undefined;
    const storePageOnce = (response: AdListResponse) => {
      pageStorage ??= this.#storePage(part, response);
      return pageStorage;
    };
    // The service charges for every page that it sends, so store the page even if the caller has disconnected.
    const onSending = (pendingResponse: Promise<ServiceResponse>) => {
      // Ignore an error here, because the end of this method throws the same error.
      const chargeableRequest = pendingResponse
        .then((response) => storePageOnce(response as AdListResponse))
        .catch(() => {});
      part.chargeableRequests.push(chargeableRequest);
      return chargeableRequest;
    };
    const operation = getListOperationName(part.adQuery);
    const preventsCaching = this.#adIds.size >= maxAdsToCache;
    const callOptions = { ignoresCache: part.ignoresCache, preventsCaching, creditLimit: this.#callBudget, onSending };
    const response = await this.#context.api[operation]({
      ...buildPageRequest(part.adQuery, position),
      ...callOptions,
      ...cacheOptions,
    });
    // A response without a sequence number gets 0, so that it counts as older than all other responses.
    const { sequenceNumber = 0, receipt, rawBody } = response;
    for (const note of readServiceNotes(rawBody).notes ?? []) this.#serviceNotes.add(note);
    // A cached response costs nothing, but the dataset may have evicted the ads in this response, so add them again.
    if (receipt.ageMs !== undefined) {
      const { items } = rawBody as { items: readonly unknown[] };
      const { requestId } = receipt;
      const answeredAt = getResponseTime(response, this.#context.getTime());
      await this.#dataset.addItems({
        type: 'ads',
        parseItems: () => items,
        at: answeredAt,
        sequenceNumber,
        requestId,
        listedBy: operation,
      });
    }
    await storePageOnce(response);
    this.#storageError = response.storageError;
  }

  /**
   * Stores the progress of a part (smaller search) after a page was read. The progress includes the ad ids on this
   * page.
   */
  async #storePage(part: PartProgress, response: AdListResponse): Promise<void> {
    const { state, adIdsListedByCall } = part;
    const { ids, matchingCount } = await readAdIdsAndMatchingCount(part.adQuery, response);
    const { cursor, hasMore } = response.validatedBody;
    const { charged } = response.receipt;
    const [readCountBefore, listedCountBefore] = [part.adIdsReadSoFar.size, adIdsListedByCall.size];
    for (const id of ids.map(normalizeAdId))
      for (const idSet of [part.adIdsReadSoFar, adIdsListedByCall, this.#adIds, this.#idsReadByCall]) idSet.add(id);
    const newIdCount = part.adIdsReadSoFar.size - readCountBefore;
    // A cached page lists the ads that matched when the service sent it.
    const answeredAt = getResponseTime(response, this.#context.getTime());
    this.#listedCount += newIdCount;
    part.pagesWithoutNewAds = adIdsListedByCall.size > listedCountBefore ? 0 : part.pagesWithoutNewAds + 1;
    const nextState = {
      ...state,
      matchingCount: matchingCount ?? state.matchingCount,
      // `listedCount` can exceed the number of stored ids, because the dataset may have evicted ids of earlier pages.
      listedCount: Math.max(state.listedCount, readCountBefore) + newIdCount,
      ...(this.#request.adQuery.split === undefined && { chargedCredits: addCharge(state.chargedCredits, charged) }),
      hasReadLastPage: !hasMore,
      cursor: hasMore ? (cursor ?? state.cursor) : null,
      stepNumber: state.stepNumber + 1,
      responseSequenceNumber: Math.max(state.responseSequenceNumber, response.sequenceNumber ?? 0),
      startedAt: Math.min(state.startedAt, answeredAt),
      gatheredAt: answeredAt,
    };
    part.state = nextState;
    await this.#saveSplitGathering({
      chargedCredits: addCharge(this.#openedGathering.gathering.chargedCredits, charged),
    });
    await this.#dataset.saveGathering({ ...nextState, adIds: ids });
  }

  /**
   * Stores the state of a split search as a whole. Does nothing for a search without `split`, because the state of its
   * only part is stored instead. A split search is first stored after its first page, because a search without pages
   * must not replace an earlier result.
   */
  async #saveSplitGathering(changedFields: Partial<GatheringState>): Promise<void> {
    if (this.#request.adQuery.split === undefined) return;
    const { gathering } = this.#openedGathering;
    this.#openedGathering.gathering = { ...gathering, ...changedFields, stepNumber: gathering.stepNumber + 1 };
    await this.#dataset.saveGathering({ ...this.#openedGathering.gathering, adIds: [] });
  }

  #findPart(queryKey: string): GatheringPart | undefined {
    return this.#openedGathering.parts.find(({ state }) => state.questionKey === queryKey);
  }

  #continueFromGathering(openedGathering: OpenedGathering): void {
    this.#openedGathering = openedGathering;
    this.#listedCount = 0;
    for (const { storedGathering } of openedGathering.parts) {
      this.#listedCount += storedGathering?.adIds.size ?? 0;
      for (const id of storedGathering?.adIds ?? []) this.#adIds.add(id);
    }
  }

  async #updateMaxAds(): Promise<void> {
    this.#maxAds = Math.min(this.#request.maxAds, await this.#dataset.estimateMaxAds());
  }

  #findReachedLimit(): StopInfo | undefined {
    const { getTime, deadline, isDraining, isFirstPageOnly } = this.#context;
    if (isFirstPageOnly && this.#pagesRead > 0) return { reason: 'firstPage' };
    if (this.#adIds.size >= this.#maxAds) return { reason: 'maxAds', maxAds: this.#maxAds };
    if (this.#listedCount >= maxListedAds) return { reason: 'maxAds', maxListedAds };
    if (isDraining()) return { reason: 'shutdown' };
    // Do not pay for the next page, because its ads may not be stored either.
    if (this.#storageError) return { reason: 'error', error: this.#storageError };
    const remainingMs = deadline - getTime() - reservedSummaryMs.fixed - reservedSummaryMs.perAd * this.#adIds.size;
    return remainingMs < minRemainingTimeFactor * this.#slowestPageMs ? { reason: 'deadline' } : undefined;
  }

  #reportProgress(matchingCount: number | null): void {
    const { size } = this.#adIds;
    const isTotalKnown = matchingCount !== null && this.#openedGathering.parts.length === 1;
    const message = `${formatCount(size, 'ad')} read${isTotalKnown && matchingCount >= size ? ` of ${formatNumber(matchingCount)}` : ''}`;
    const totalField = isTotalKnown && { total: Math.max(size, Math.min(matchingCount, this.#maxAds)) };
    this.#context.onProgress?.({ progress: size, ...totalField, message });
  }
}

/**
 * Returns the number of ads that match a search, according to the stored result of the search or a cached response,
 * whichever is newer.
 */
export async function findKnownTotal(adQuery: AdQuery, contents: DatasetContents, context: GatherContext) {
  const cachedTotal =
    adQuery.collectionId === undefined ? await context.findCachedTotal(adQuery.filters ?? {}) : undefined;
  const gathering = findGatherings(contents, adQuery).find(
    ({ matchingCount, isComplete }) => matchingCount !== null || isComplete,
  );
  const gatheredTotal = gathering && {
    matchingCount: gathering.matchingCount ?? gathering.adIds.size,
    countedAt: gathering.gatheredAt,
  };
  return gathering && gathering.responseSequenceNumber > (cachedTotal?.sequenceNumber ?? 0)
    ? gatheredTotal
    : cachedTotal;
}

const addCharge = (previousCharge: number | null, addedCharge: number | null): number | null =>
  previousCharge === null || addedCharge === null ? null : roundCredits(previousCharge + addedCharge);
