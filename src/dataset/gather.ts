import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Answer, ServiceRequest } from '../api/call.ts';
import type { Api, ApiAnswer } from '../api/client.ts';
import { type CachedTotal, parseCount, readTotalHits } from '../api/counts.ts';
import { AdLibraryError } from '../api/errors.ts';
import { maxPageSize, operations } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import { maxIdLength } from '../api/url.ts';
import type { CallBudget } from '../credits/call-budget.ts';
import {
  type Dataset,
  type DatasetContents,
  type Gathering,
  type GatheringState,
  normalizeAdId,
} from '../storage/dataset.ts';
import { dayMs } from '../views/durations.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import {
  findGatherings,
  type GatheringPart,
  type GatheringQuestion,
  getQuestionKey,
  openGathering,
  removeDuplicateParts,
} from './gatherings.ts';
import { classifyFailure, isCallAbandoned, type Stop, type StopSignals } from './stops.ts';

/** The request of a call: its question and its limits. */
export interface GatherRequest {
  question: GatheringQuestion;
  maxAds: number;
  /** The most credits of this call. If undefined, reading ends with the first page that the service charges for. */
  maxCredits: number | undefined;
  /** Whether to read all pages again instead of continuing an earlier gathering. */
  fresh: boolean;
}

/** The parts of a tool call that gathering uses. */
export interface GatherContext extends StopSignals {
  api: Api;
  adFilters: readonly SearchFilter[];
  /** Returns the caller's dataset, including what other processes added. */
  dataset(): Promise<Dataset>;
  /** Returns whether the answer of a call is cached. A cached answer costs nothing. */
  isCached(request: Omit<ServiceRequest, 'fingerprint'>): Promise<boolean>;
  /** Returns how many ads match, if a cached answer states it. */
  cachedTotal(filters: object): Promise<CachedTotal | undefined>;
  /**
   * Opens a credit limit for the API calls of this tool call. Without `maxCredits`, the limit is reached with the first
   * charge.
   */
  callBudget(maxCredits?: number): Promise<CallBudget>;
  /** Waits for a lock of the caller by its name. Returns a function that releases the lock. */
  acquireLock(name: string): Promise<() => void>;
  /** Milliseconds since the epoch. */
  now: number;
  /** Returns milliseconds since the epoch that never go backwards. */
  clock(): number;
  /** The deadline of the call, in the milliseconds of `clock`. */
  deadline: number;
  onProgress?: ReportProgress;
}

/** The progress of a long call. `progress` grows with each report. */
export interface Progress {
  progress: number;
  total?: number;
  message: string;
}

/** Reports progress to the caller. */
export type ReportProgress = (progress: Progress) => void;

/** The outcome of a call that gathered ads. */
export interface GatherOutcome {
  /** Why the call stopped reading. */
  stop: Stop;
  /** Undefined if nothing of the gathering is stored. */
  gathering: Gathering | undefined;
  contents: DatasetContents;
  /** The number of ads that this call and earlier calls read for the gathering. */
  readCount: number;
  /** Ids of the ads that this call read, as `normalizeAdId` writes them. */
  idsReadByCall: ReadonlySet<string>;
  /** Credits that this call spent on the gathering. A charge that is not known yet counts with its highest value. */
  spentCredits: number;
  /**
   * Whether the call started the gathering again, because an earlier gathering with `fresh` stopped too long ago to be
   * continued.
   */
  hasStartedOver: boolean;
  /** Stores that the caller received the result, so that a later call with `fresh` starts over. */
  markReturned(): Promise<void>;
}

/** A gathering that is ready to be read, with the contents of the dataset at that moment. */
export type OpenedGathering = Awaited<ReturnType<typeof openCurrentGathering>>;

/**
 * Opens the gathering of a question and passes it to `work`, which may read the missing pages. Calls of one caller for
 * the same question run one after another.
 * @param before the contents of the dataset when the call arrived
 * @param work receives the gathering and a function that reads the missing pages
 */
export async function withOpenedGathering<Result>(
  { question, ...limits }: GatherRequest,
  before: DatasetContents,
  context: GatherContext,
  work: (opened: OpenedGathering, read: () => Promise<GatherOutcome>) => Promise<Result>,
): Promise<Result> {
  const request = { ...limits, question: removeDuplicateParts(question) };
  const releaseLock = await context.acquireLock(getQuestionKey(request.question));
  try {
    const open = () => openCurrentGathering(request, before, context);
    const opened = await open();
    return await work(opened, () => GatheringRun.read(request, opened, open, context));
  } finally {
    releaseLock();
  }
}

/** The longest age at which a call with `fresh` continues a gathering that such a call began: one day. */
const maxFreshAge = dayMs;

async function openCurrentGathering(
  { question, fresh }: GatherRequest,
  before: DatasetContents,
  context: GatherContext,
) {
  const contents = await (await context.dataset()).readContents();
  const [newest] = findGatherings(contents, question);
  const startsOver = fresh && !(newest && isFresh(newest, before, context.now));
  const open = openGathering(question, contents, startsOver, context.clock());
  /** True if an earlier gathering with `fresh` stopped too long ago to be continued. */
  const isTooOld = startsOver && newest?.fresh === true && !newest.ended;
  return { ...open, contents, isTooOld };
}

/**
 * Returns whether a call with `fresh` may continue a gathering. It may if the gathering began after the call arrived.
 * It also may if another call with `fresh` began the gathering within a day, and no call has returned its end yet.
 */
function isFresh({ id, parts }: Gathering, before: DatasetContents, now: number): boolean {
  const byId = new Map(before.gatherings.map((gathering) => [gathering.id, gathering]));
  const gathering = byId.get(id);
  if (gathering === undefined) return parts.every((part) => !byId.has(part));
  return gathering.fresh && Math.abs(now - gathering.startedAt) < maxFreshAge;
}

/**
 * After this number of ads, pages are not cached: the dataset holds the ads already, and a second copy would take too
 * much memory.
 */
const maxCachedAds = 1000;
/**
 * The most ids of one gathering, counted in each part. Up to this number, the dataset evicts no id of a gathering that
 * is being read.
 */
const maxInParts = 100_000;
/** The number of consecutive pages without a new ad after which a part counts as repeating itself. */
const maxIdlePages = 3;
/** A page is requested only if the remaining time is this many times the duration of the slowest page so far. */
const slowestPageFactor = 1.5;
/** The time to reserve for the summary, in milliseconds: a constant part, and a part for each ad. */
const summaryMs = { all: 300, each: 0.6 };

/** Where a page starts and how many ads it may have. */
interface PagePosition {
  limit: number;
  cursor: string | null;
}

/** A part of a gathering while this call reads it. */
interface PartRun extends GatheringPart {
  /** Whether to request pages again although their answers are cached. */
  fresh: boolean;
  /** Ids of all ads of the part, as `normalizeAdId` writes them. */
  ids: Set<string>;
  /** Ids on the pages that this call read. An ad that only an earlier call read still counts as new to this call. */
  listedIds: Set<string>;
  /** The number of consecutive pages that contained only known ads. */
  idlePages: number;
  /** All requests that may be charged. Each promise settles when its request ends, even after the call was cancelled. */
  requests: Promise<unknown>[];
}

type ListAnswer = ApiAnswer<'searchAds'> | ApiAnswer<'listCollectionItems'>;

/** Reads the missing pages of a gathering, part after part, within the limits of one call. */
class GatheringRun {
  readonly #request: GatherRequest;
  readonly #context: GatherContext;
  readonly #reopen: () => Promise<OpenedGathering>;
  readonly #dataset: Dataset;
  readonly #callBudget: CallBudget;
  /** The gathering and its parts, with the last known progress of each. */
  #openedGathering: OpenedGathering;
  /** Ids of the ads that any call read, in all parts, as `normalizeAdId` writes them. */
  readonly #adIds = new Set<string>();
  /** Ids of the ads that this call read, as `normalizeAdId` writes them. */
  readonly #idsReadByCall = new Set<string>();
  /** The number of ads that the parts listed. An ad of two parts counts twice. */
  #listedCount = 0;
  /**
   * The most ads that the gathering may have. Besides the request, the size of the stored ads limits it, because the
   * dataset has a fixed number of bytes.
   */
  #maxAds = 0;
  /** The largest page size that may be accepted, and the largest page size that the service has accepted so far. */
  readonly #pageSizes: { max: number; accepted: number };
  #slowestPageMs = 0;

  private constructor(
    request: GatherRequest,
    opened: OpenedGathering,
    reopen: () => Promise<OpenedGathering>,
    { context, dataset, callBudget }: { context: GatherContext; dataset: Dataset; callBudget: CallBudget },
  ) {
    this.#request = request;
    this.#openedGathering = opened;
    this.#reopen = reopen;
    this.#context = context;
    this.#dataset = dataset;
    this.#callBudget = callBudget;
    this.#pageSizes = { max: getMaxPageSize(request.question, context.adFilters), accepted: 0 };
  }

  /** Reads the missing pages and returns the outcome. */
  static async read(
    request: GatherRequest,
    opened: OpenedGathering,
    reopen: () => Promise<OpenedGathering>,
    context: GatherContext,
  ): Promise<GatherOutcome> {
    const [dataset, callBudget] = [await context.dataset(), await context.callBudget(request.maxCredits)];
    const run = new GatheringRun(request, opened, reopen, { context, dataset, callBudget });
    return run.#buildOutcome(await run.#readParts(), opened);
  }

  async #buildOutcome(stop: Stop, { isTooOld }: OpenedGathering): Promise<GatherOutcome> {
    const contents = await this.#dataset.readContents();
    const { gathering, parts } = this.#openedGathering;
    return {
      stop,
      gathering: contents.gatherings.find(({ id }) => id === gathering.id),
      contents,
      readCount: this.#adIds.size,
      idsReadByCall: this.#idsReadByCall,
      spentCredits: await this.#callBudget.readUsedCredits(),
      hasStartedOver: isTooOld && this.#idsReadByCall.size > 0,
      markReturned: () => this.#markReturned(contents, new Set([gathering.id, ...parts.map(({ state }) => state.id)])),
    };
  }

  async #markReturned({ gatherings }: DatasetContents, ids: ReadonlySet<string>): Promise<void> {
    if (isCallAbandoned(this.#context.signal)) return;
    for (const { id, ended, fresh, state } of gatherings)
      if (ids.has(id) && ended && fresh)
        await this.#dataset.saveGathering({ ...state, fresh: false, step: state.step + 1, adIds: [] });
  }

  async #readParts(): Promise<Stop> {
    this.#continueFrom(this.#openedGathering);
    await this.#updateMaxAds();
    let repeatingStop: Stop | undefined;
    for (const { state } of this.#openedGathering.parts) {
      if (this.#findPart(state.question)?.state.ended !== false) continue;
      const stop = this.#findReachedLimit() ?? (await this.#readPartWithLock(state.question));
      // If one part repeats its pages, the other parts can still be read.
      if (stop.deadEnd === 'repeats') repeatingStop ??= stop;
      else if (stop.reason !== 'end') return stop;
    }
    if (repeatingStop) return repeatingStop;
    if (!this.#openedGathering.gathering.ended)
      await this.#saveSplitGathering({ ended: true, gatheredAt: this.#context.clock() });
    return { reason: 'end' };
  }

  /** Reads a part while no other call reads it. The lock is released when the last request of the part has ended. */
  async #readPartWithLock(question: string): Promise<Stop> {
    const releaseLock = await this.#context
      .acquireLock(`pages of ${question}`)
      .catch((error) => classifyFailure(error, this.#context));
    if (typeof releaseLock !== 'function') return releaseLock;
    const requests: Promise<unknown>[] = [];
    try {
      // While this call waited for the lock, other calls may have read pages of the part.
      this.#continueFrom(await this.#reopen());
      const part = this.#findPart(question);
      if (part === undefined || part.state.ended) return { reason: 'end' };
      const ids = new Set(part.stored?.adIds);
      const fresh = this.#request.fresh || part.state.fresh;
      const stop = await this.#readPart({ ...part, fresh, ids, listedIds: new Set(), idlePages: 0, requests });
      if (stop.deadEnd) await this.#saveSplitGathering({ fresh: false });
      return stop;
    } finally {
      // Requests continue after their caller has left. The lock makes the next call wait for them and continue after
      // their pages.
      void Promise.all(requests).then(releaseLock);
    }
  }

  /** Reads pages of a part until the part ends or a limit is reached. */
  async #readPart(part: PartRun): Promise<Stop> {
    if (part.state.stuck) return { reason: 'error', error: createRepeatedPagesError(), deadEnd: 'repeats' };
    const total = part.state.found === null ? await this.#findTotal(part) : undefined;
    const cursors = new Set([part.state.cursor]);
    let isTotalTrue = true;
    for (;;) {
      const limit = this.#findReachedLimit();
      if (limit) return limit;
      const totalAds = part.state.found ?? total?.ads;
      // Some services charge for the requested number of ads, so the last page requests only as many as remain.
      const remainingAds = isTotalTrue && totalAds !== undefined ? Math.max(1, totalAds - part.state.listed) : Infinity;
      try {
        await this.#readPage(part, remainingAds);
      } catch (error) {
        const stop = classifyFailure(error, this.#context);
        return stop.error && isRejected(stop.error) ? this.#endPart(part, stop.error, 'rejected') : stop;
      }
      await this.#updateMaxAds();
      this.#reportProgress(part.state.found);
      // A service inside this process answers without waiting, so other work would never run between two pages.
      await nextTurn();
      const { state } = part;
      if (state.ended) return { reason: 'end' };
      isTotalTrue &&= totalAds === undefined || state.listed < totalAds;
      if (cursors.has(state.cursor) || part.idlePages >= maxIdlePages)
        return this.#endPart(part, createRepeatedPagesError(), 'repeats');
      cursors.add(state.cursor);
    }
  }

  #findTotal({ question }: PartRun) {
    return findKnownTotal(question, this.#openedGathering.contents, this.#context);
  }

  /** Stores that continuing the part is useless, so that a later call with `fresh` starts over. */
  async #endPart({ state }: PartRun, error: AdLibraryError, deadEnd: 'repeats' | 'rejected'): Promise<Stop> {
    const stuck = deadEnd === 'repeats';
    if ((state.fresh || stuck) && state.step > 0)
      await this.#dataset.saveGathering({ ...state, fresh: false, stuck, step: state.step + 1, adIds: [] });
    return { reason: 'error', error, deadEnd };
  }

  /** Reads the next page of a part. If the service refuses the page size, smaller sizes are tried. */
  async #readPage(part: PartRun, remainingAds: number): Promise<void> {
    const { cursor } = part.state;
    const operation = getListOperation(part.question);
    const sizes = this.#pageSizes;
    const getLargestSize = () => Math.min(sizes.max, this.#maxAds - this.#adIds.size);
    const largestPage = buildPageRequest(part.question, { limit: getLargestSize(), cursor });
    const isLargestPageCached =
      remainingAds < getLargestSize() &&
      !part.fresh &&
      (await this.#context.isCached({ operation: operations[operation], ...largestPage }));
    let max = isLargestPageCached ? getLargestSize() : remainingAds;
    for (;;) {
      const limit = await this.#callBudget.choosePageSize({ operation, max: Math.min(getLargestSize(), max) });
      const startedAt = this.#context.clock();
      try {
        await this.#requestPage(part, { limit, cursor });
        sizes.accepted = Math.max(sizes.accepted, limit);
        return;
      } catch (error) {
        if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') throw error;
        const smaller = smallerPageSizes.find((size) => size < limit);
        // The service may refuse a page because it is too small, so the largest size is tried once.
        if (limit === max && limit < sizes.max) max = Infinity;
        else if (smaller === undefined || limit <= sizes.accepted) throw error;
        else sizes.max = smaller;
      } finally {
        this.#slowestPageMs = Math.max(this.#slowestPageMs, this.#context.clock() - startedAt);
      }
    }
  }

  /** Requests a page and stores it. The page is stored even if the caller leaves before the service answers. */
  async #requestPage(part: PartRun, position: PagePosition): Promise<void> {
    let added: Promise<void> | undefined;
    const storePageOnce = (answer: ListAnswer) => {
      added ??= this.#storePage(part, answer);
      return added;
    };
    // The service charges for a page that it has sent, even if the caller has left. So the page is stored in any case.
    const onSending = (sending: Promise<Answer>) => {
      // If storing fails here, the call to `storePageOnce` at the end of this method throws the same error.
      const stored = sending.then((answer) => storePageOnce(answer as ListAnswer)).catch(() => {});
      part.requests.push(stored);
      return stored;
    };
    const listedBy = getListOperation(part.question);
    const uncached = this.#adIds.size >= maxCachedAds;
    const callOptions = { fresh: part.fresh, uncached, creditLimit: this.#callBudget, onSending };
    const answer = await this.#context.api[listedBy]({ ...buildPageRequest(part.question, position), ...callOptions });
    // An answer without a number counts as older than every numbered one.
    const { order = 0, receipt, raw } = answer;
    // The dataset may have evicted the ads of a cached answer, so they are added again.
    if (receipt.age !== undefined) {
      const { items } = raw as { items: readonly unknown[] };
      const { requestId } = receipt;
      const at = getAnswerTime(answer, this.#context.clock());
      await this.#dataset.addItems({ type: 'ads', items: () => items, at, order, requestId, listedBy });
    }
    await storePageOnce(answer);
  }

  /** Stores the progress of a part after a page, with the ids of the page. */
  async #storePage(part: PartRun, answer: ListAnswer): Promise<void> {
    const { state, listedIds } = part;
    const { ids, found } = await readListAnswer(part.question, answer);
    const { cursor, hasMore } = answer.value;
    const { charged } = answer.receipt;
    const [idsBefore, listedBefore] = [part.ids.size, listedIds.size];
    for (const id of ids.map(normalizeAdId))
      for (const idSet of [part.ids, listedIds, this.#adIds, this.#idsReadByCall]) idSet.add(id);
    const added = part.ids.size - idsBefore;
    this.#listedCount += added;
    part.idlePages = listedIds.size > listedBefore ? 0 : part.idlePages + 1;
    const nextState = {
      ...state,
      found: found ?? state.found,
      // Earlier pages may have listed ads that were evicted since, so the number of stored ids can be too low.
      listed: Math.max(state.listed, idsBefore) + added,
      ...(this.#request.question.split === undefined && { charged: addCharge(state.charged, charged) }),
      ended: !hasMore,
      cursor: hasMore ? (cursor ?? state.cursor) : null,
      step: state.step + 1,
      answerOrder: Math.max(state.answerOrder, answer.order ?? 0),
      gatheredAt: this.#context.clock(),
    };
    part.state = nextState;
    await this.#saveSplitGathering({ charged: addCharge(this.#openedGathering.gathering.charged, charged) });
    await this.#dataset.saveGathering({ ...nextState, adIds: ids });
  }

  /**
   * Stores the state of a gathering with several parts. A gathering without `split` is its own only part and needs no
   * second record. The first page stores the record, because a gathering without any page must not replace an earlier
   * gathering.
   */
  async #saveSplitGathering(change: Partial<GatheringState>): Promise<void> {
    if (this.#request.question.split === undefined) return;
    const { gathering } = this.#openedGathering;
    this.#openedGathering.gathering = { ...gathering, ...change, step: gathering.step + 1 };
    await this.#dataset.saveGathering({ ...this.#openedGathering.gathering, adIds: [] });
  }

  #findPart(question: string): GatheringPart | undefined {
    return this.#openedGathering.parts.find(({ state }) => state.question === question);
  }

  #continueFrom(open: OpenedGathering): void {
    this.#openedGathering = open;
    this.#listedCount = 0;
    for (const { stored } of open.parts) {
      this.#listedCount += stored?.adIds.size ?? 0;
      for (const id of stored?.adIds ?? []) this.#adIds.add(id);
    }
  }

  async #updateMaxAds(): Promise<void> {
    this.#maxAds = Math.min(this.#request.maxAds, await this.#dataset.estimateMaxAds());
  }

  #findReachedLimit(): Stop | undefined {
    const { clock, deadline, isDraining } = this.#context;
    if (this.#adIds.size >= this.#maxAds) return { reason: 'maxAds', maxAds: this.#maxAds };
    if (this.#listedCount >= maxInParts) return { reason: 'maxAds', maxInParts };
    if (isDraining()) return { reason: 'shutdown' };
    const remainingMs = deadline - clock() - summaryMs.all - summaryMs.each * this.#adIds.size;
    return remainingMs < slowestPageFactor * this.#slowestPageMs ? { reason: 'deadline' } : undefined;
  }

  #reportProgress(found: number | null): void {
    const { size } = this.#adIds;
    const isWhole = found !== null && this.#openedGathering.parts.length === 1;
    const message = `${formatCount(size, 'ad')} read${isWhole && found >= size ? ` of ${formatNumber(found)}` : ''}`;
    const total = isWhole && { total: Math.max(size, Math.min(found, this.#maxAds)) };
    this.#context.onProgress?.({ progress: size, ...total, message });
  }
}

/** Returns the total of a question, from a stored gathering or from a cached answer, whichever is newer. */
export async function findKnownTotal(question: GatheringQuestion, contents: DatasetContents, context: GatherContext) {
  const cachedTotal =
    question.collectionId === undefined ? await context.cachedTotal(question.filters ?? {}) : undefined;
  const gathering = findGatherings(contents, question).find(({ found, complete }) => found !== null || complete);
  const gatheredTotal = gathering && { ads: gathering.found ?? gathering.adIds.size, at: gathering.gatheredAt };
  return gathering && gathering.answerOrder > (cachedTotal?.order ?? 0) ? gatheredTotal : cachedTotal;
}

/** Returns the API operation that lists the ads of a question. */
export const getListOperation = ({ collectionId }: GatheringQuestion) =>
  collectionId === undefined ? 'searchAds' : 'listCollectionItems';

/** Builds the API request for a page of a question. */
function buildPageRequest({ collectionId, filters }: GatheringQuestion, { limit, cursor }: PagePosition) {
  const position = { limit, ...(cursor !== null && { cursor }) };
  if (collectionId === undefined) return { path: {}, query: {}, body: { ...filters, ...position } };
  return { path: { collectionId }, query: { itemType: 'ads', ...position } };
}

async function readListAnswer({ collectionId }: GatheringQuestion, answer: ListAnswer) {
  // The API client is loaded with the first call, which keeps the start of the process short.
  const { readAds } = await import('../api/client.ts');
  const collectionAnswer = answer as ApiAnswer<'listCollectionItems'>;
  const ids = readAds(collectionAnswer).map(({ id }) => id);
  return {
    ids: ids.filter(({ length }) => length <= maxIdLength),
    found:
      collectionId === undefined
        ? readTotalHits(answer as ApiAnswer<'searchAds'>)
        : parseCount(collectionAnswer.value.collection?.adCount),
  };
}

/** Returns when the service gave an answer, in milliseconds since the epoch. A cached answer has an age. */
export const getAnswerTime = ({ receipt }: Pick<ListAnswer, 'receipt'>, now: number): number =>
  now - (receipt.age ?? 0);

/**
 * Returns the largest page size for a question, from the description of the filter `limit` or from the API document.
 */
export function getMaxPageSize({ collectionId }: GatheringQuestion, filters: readonly SearchFilter[]): number {
  if (collectionId !== undefined) return maxPageSize;
  const describedMax = filters.find(({ key }) => key === 'limit')?.maximum ?? maxPageSize;
  return Math.max(1, Math.min(maxPageSize, Math.floor(describedMax)));
}

/** The page sizes to try in turn after the service refused a larger one. A refusal costs nothing. */
const smallerPageSizes = [50, 20, 10];

const isRejected = ({ failure: { kind } }: AdLibraryError): boolean =>
  kind === 'invalid_request' || kind === 'not_found';

const addCharge = (sum: number | null, charged: number | null): number | null =>
  sum === null || charged === null ? null : sum + charged;

const createRepeatedPagesError = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they repeat ads of this gathering.',
    status: 200,
    sent: true,
    charged: 0,
  });
