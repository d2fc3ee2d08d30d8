import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Call } from '../api/call.ts';
import type { Api, ApiAnswer } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
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

export interface GatherRequest {
  question: GatheringQuestion;
  maxAds: number;
  /** Without it, the reading ends with the first charge. */
  maxCredits: number | undefined;
  fresh: boolean;
}

/** What gathering needs of a tool call. */
export interface GatherContext extends StopSignals {
  api: Api;
  adFilters: readonly SearchFilter[];
  /** The caller's dataset, with what other processes brought. */
  dataset(): Promise<Dataset>;
  /** Whether a call has an answer that is cached: then it costs nothing. */
  isCached(call: Pick<Call, 'operation' | 'path' | 'query' | 'body'>): Promise<boolean>;
  /** How many ads match, as a cached answer says. */
  cachedTotal(filters: object): Promise<CountedAds | undefined>;
  /** Opens a limit of credits for calls of the API that this tool call makes: without one, it ends with a charge. */
  callBudget(maxCredits?: number): Promise<CallBudget>;
  /** Waits until no other call of the caller has this turn; returns a function that ends it. */
  takeTurn(name: string): Promise<() => void>;
  /** Milliseconds since the epoch. */
  now: number;
  /** Milliseconds since the epoch that never go back, and the deadline of the call by them. */
  clock(): number;
  deadline: number;
  onProgress?: ReportProgress;
}

/** The progress of a long call. It grows with each report. */
export interface Progress {
  progress: number;
  total?: number;
  message: string;
}

export type ReportProgress = (progress: Progress) => void;

/** How many ads there are, when they were counted, in milliseconds since the epoch, and the number of the answer. */
interface CountedAds {
  ads: number;
  at: number;
  order: number;
}

/** What a call has gathered. */
export interface GatherOutcome {
  /** Why the call read no further. */
  stop: Stop;
  /** Undefined if nothing of the gathering is stored. */
  gathering: Gathering | undefined;
  contents: DatasetContents;
  /** How many ads of the gathering were read, by this call and those before. */
  readCount: number;
  /** Ids of the ads that this call read, as `normalizeAdId` writes them. */
  idsReadByCall: ReadonlySet<string>;
  /** Credits that this call spent on the gathering, or may have spent. */
  spentCredits: number;
  /** Whether the call started over, because an earlier gathering with `fresh` was stopped too long ago. */
  hasStartedOver: boolean;
  /** Stores that the result was returned: a later call with `fresh` starts over. */
  markReturned(): Promise<void>;
}

export type OpenedGathering = Awaited<ReturnType<typeof openNow>>;

/**
 * Opens the gathering of a question and hands it to `work`, which may read the rest. Calls of a caller with the same
 * question run one after the other.
 * @param before the contents of the dataset when the call arrived
 */
export async function withOpenedGathering<Result>(
  { question, ...limits }: GatherRequest,
  before: DatasetContents,
  context: GatherContext,
  work: (opened: OpenedGathering, read: () => Promise<GatherOutcome>) => Promise<Result>,
): Promise<Result> {
  const request = { ...limits, question: removeDuplicateParts(question) };
  const endTurn = await context.takeTurn(getQuestionKey(request.question));
  try {
    const open = () => openNow(request, before, context);
    const opened = await open();
    return await work(opened, () => GatheringRun.read(request, opened, open, context));
  } finally {
    endTurn();
  }
}

/** How long calls with `fresh` continue a gathering that such a call began, in milliseconds: a day. */
const maxFreshAge = dayMs;

async function openNow({ question, fresh }: GatherRequest, before: DatasetContents, context: GatherContext) {
  const contents = await (await context.dataset()).readContents();
  const [newest] = findGatherings(contents, question);
  const startsOver = fresh && !(newest && isFresh(newest, before, context.now));
  const open = openGathering(question, contents, startsOver, context.clock());
  /** An earlier gathering with `fresh` was stopped too long ago to be continued. */
  const isTooOld = startsOver && newest?.fresh === true && !newest.ended;
  return { ...open, contents, isTooOld };
}

/**
 * Whether a call with `fresh` takes a gathering as its own: one that began after the call came, or that such a call had
 * begun lately, and whose end no call has returned.
 */
function isFresh({ id, parts }: Gathering, before: DatasetContents, now: number): boolean {
  const byId = new Map(before.gatherings.map((gathering) => [gathering.id, gathering]));
  const gathering = byId.get(id);
  if (gathering === undefined) return parts.every((part) => !byId.has(part));
  return gathering.fresh && Math.abs(now - gathering.startedAt) < maxFreshAge;
}

/** Pages after this number of ads are not cached, because a second copy in the cache would take too much memory. */
const maxCachedAds = 1000;
/** The dataset never evicts ids of one gathering while it is read, up to this number, counted in each part. */
const maxInParts = 100_000;
/** After this number of pages without a new ad, the pages repeat. */
const maxIdlePages = 3;
/** The next page may take this many times as long as the slowest page before it. */
const slack = 1.5;
/** The time that the summary takes, in milliseconds: in all, and for each ad. */
const summaryMs = { all: 300, each: 0.6 };

interface PagePosition {
  limit: number;
  cursor: string | null;
}

interface PartRun extends GatheringPart {
  /** Requests pages again whose answers are cached. */
  fresh: boolean;
  /** Ids of the ads of the part. */
  ids: Set<string>;
  /** Ids that pages of this call list. To this call, ads that an earlier call read are new. */
  listedIds: Set<string>;
  /** How many of the last pages brought no new ad. */
  idlePages: number;
  /** Each request that may be charged. It settles when the request has ended, even if the caller has left. */
  requests: Promise<unknown>[];
}

type ListAnswer = ApiAnswer<'searchAds'> | ApiAnswer<'listCollectionItems'>;

/** Reads the pages that a gathering still lacks, part after part, within the limits of one call. */
class GatheringRun {
  readonly #request: GatherRequest;
  readonly #context: GatherContext;
  readonly #reopen: () => Promise<OpenedGathering>;
  readonly #dataset: Dataset;
  readonly #callBudget: CallBudget;
  /** The gathering and its parts, as far as they are known to be read. */
  #open: OpenedGathering;
  /** Ids of the ads that any call has read, in all parts, as `normalizeAdId` writes them. */
  readonly #ids = new Set<string>();
  /** Ids of the ads that this call has read. */
  readonly #idsOfCall = new Set<string>();
  /** How many ads the parts have listed, each part counted by itself. */
  #listed = 0;
  /** How many ads the call may read. The size of ads decides for how many the dataset has room. */
  #maxAds = 0;
  /** The largest page that the service may give, as far as is known, and the largest that it gave. */
  readonly #pageSize: { max: number; given: number };
  #slowestPageMs = 0;

  private constructor(
    request: GatherRequest,
    opened: OpenedGathering,
    reopen: () => Promise<OpenedGathering>,
    { context, dataset, callBudget }: { context: GatherContext; dataset: Dataset; callBudget: CallBudget },
  ) {
    this.#request = request;
    this.#open = opened;
    this.#reopen = reopen;
    this.#context = context;
    this.#dataset = dataset;
    this.#callBudget = callBudget;
    this.#pageSize = { max: getMaxPageSize(request.question, context.adFilters), given: 0 };
  }

  static async read(
    request: GatherRequest,
    opened: OpenedGathering,
    reopen: () => Promise<OpenedGathering>,
    context: GatherContext,
  ): Promise<GatherOutcome> {
    const [dataset, callBudget] = [await context.dataset(), await context.callBudget(request.maxCredits)];
    const run = new GatheringRun(request, opened, reopen, { context, dataset, callBudget });
    return run.#result(await run.#readParts(), opened);
  }

  async #result(stop: Stop, { isTooOld }: OpenedGathering): Promise<GatherOutcome> {
    const contents = await this.#dataset.readContents();
    const { gathering, parts } = this.#open;
    return {
      stop,
      gathering: contents.gatherings.find(({ id }) => id === gathering.id),
      contents,
      readCount: this.#ids.size,
      idsReadByCall: this.#idsOfCall,
      spentCredits: await this.#callBudget.used(),
      hasStartedOver: isTooOld && this.#idsOfCall.size > 0,
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
    this.#continueFrom(this.#open);
    await this.#updateMaxAds();
    let stuck: Stop | undefined;
    for (const { state } of this.#open.parts) {
      if (this.#partOf(state.question)?.state.ended !== false) continue;
      const stop = this.#limitReached() ?? (await this.#readPartInTurn(state.question));
      // Pages of one part that repeat are no reason to leave out the other parts.
      if (stop.deadEnd === 'repeats') stuck ??= stop;
      else if (stop.reason !== 'end') return stop;
    }
    if (stuck) return stuck;
    if (!this.#open.gathering.ended) await this.#saveWhole({ ended: true, gatheredAt: this.#context.clock() });
    return { reason: 'end' };
  }

  /** Reads a part while no other call reads it. The lock ends when the last request has ended. */
  async #readPartInTurn(question: string): Promise<Stop> {
    const endTurn = await this.#context
      .takeTurn(`pages of ${question}`)
      .catch((error) => classifyFailure(error, this.#context));
    if (typeof endTurn !== 'function') return endTurn;
    const requests: Promise<unknown>[] = [];
    try {
      // The dataset now also holds what other calls have read.
      this.#continueFrom(await this.#reopen());
      const part = this.#partOf(question);
      if (part === undefined || part.state.ended) return { reason: 'end' };
      const ids = new Set(part.stored?.adIds);
      const fresh = this.#request.fresh || part.state.fresh;
      const stop = await this.#readPart({ ...part, fresh, ids, listedIds: new Set(), idlePages: 0, requests });
      if (stop.deadEnd) await this.#saveWhole({ fresh: false });
      return stop;
    } finally {
      // The next call waits for pages whose caller has left, and continues after them.
      void Promise.all(requests).then(endTurn);
    }
  }

  async #readPart(part: PartRun): Promise<Stop> {
    if (part.state.stuck) return { reason: 'error', error: pagesRepeat(), deadEnd: 'repeats' };
    const total = part.state.found === null ? await this.#totalOf(part) : undefined;
    const cursors = new Set([part.state.cursor]);
    let isTotalTrue = true;
    for (;;) {
      const limit = this.#limitReached();
      if (limit) return limit;
      const found = part.state.found ?? total?.ads;
      // A service may charge for what it is asked for, so the last page asks for as many ads as remain.
      const remainingAds = isTotalTrue && found !== undefined ? Math.max(1, found - part.state.listed) : Infinity;
      try {
        await this.#readPage(part, remainingAds);
      } catch (error) {
        const stop = classifyFailure(error, this.#context);
        return stop.error && isRejected(stop.error) ? this.#endPart(part, stop.error, 'rejected') : stop;
      }
      await this.#updateMaxAds();
      this.#reportProgress(part.state.found);
      // A service inside this process leaves no time in between for anything else.
      await nextTurn();
      const { state } = part;
      if (state.ended) return { reason: 'end' };
      isTotalTrue &&= found === undefined || state.listed < found;
      if (cursors.has(state.cursor) || part.idlePages >= maxIdlePages)
        return this.#endPart(part, pagesRepeat(), 'repeats');
      cursors.add(state.cursor);
    }
  }

  #totalOf({ question }: PartRun) {
    return findKnownTotal(question, this.#open.contents, this.#context);
  }

  /** Stores that continuing the part brings nothing, so that a later call with `fresh` starts over. */
  async #endPart({ state }: PartRun, error: AdLibraryError, deadEnd: 'repeats' | 'rejected'): Promise<Stop> {
    const stuck = deadEnd === 'repeats';
    if ((state.fresh || stuck) && state.step > 0)
      await this.#dataset.saveGathering({ ...state, fresh: false, stuck, step: state.step + 1, adIds: [] });
    return { reason: 'error', error, deadEnd };
  }

  /** Reads the next page of a part, in a smaller size if the service refuses the first one. */
  async #readPage(part: PartRun, remainingAds: number): Promise<void> {
    const { cursor } = part.state;
    const operation = getListOperation(part.question);
    const sizes = this.#pageSize;
    const largest = () => Math.min(sizes.max, this.#maxAds - this.#ids.size);
    const largestPage = requestOf(part.question, { limit: largest(), cursor });
    const isFree =
      remainingAds < largest() &&
      !part.fresh &&
      (await this.#context.isCached({ operation: operations[operation], ...largestPage }));
    let max = isFree ? largest() : remainingAds;
    for (;;) {
      const limit = await this.#callBudget.pageSize({ operation, max: Math.min(largest(), max) });
      const startedAt = this.#context.clock();
      try {
        await this.#requestPage(part, { limit, cursor });
        sizes.given = Math.max(sizes.given, limit);
        return;
      } catch (error) {
        if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') throw error;
        const smaller = smallerPageSizes.find((size) => size < limit);
        // A service may have a smallest page, too.
        if (limit === max && limit < sizes.max) max = Infinity;
        else if (smaller === undefined || limit <= sizes.given) throw error;
        else sizes.max = smaller;
      } finally {
        this.#slowestPageMs = Math.max(this.#slowestPageMs, this.#context.clock() - startedAt);
      }
    }
  }

  /** Requests a page and stores it. It is stored even if the caller leaves before the service answers. */
  async #requestPage(part: PartRun, position: PagePosition): Promise<void> {
    let added: Promise<void> | undefined;
    const addOnce = (answer: ListAnswer) => {
      added ??= this.#addPage(part, answer);
      return added;
    };
    // A page was paid for when the service has sent it, even if the caller has left.
    const wrapSend: Call['wrapSend'] = (send) => {
      const request = send().then(async (answer) => {
        // The caller reads an error of this below.
        await addOnce(answer as ListAnswer).catch(() => {});
        return answer;
      });
      part.requests.push(request.catch(() => {}));
      return request;
    };
    const listedBy = getListOperation(part.question);
    const uncached = this.#ids.size >= maxCachedAds;
    const settings = { fresh: part.fresh, uncached, callBudget: this.#callBudget, wrapSend };
    const answer = await this.#context.api[listedBy]({ ...requestOf(part.question, position), ...settings });
    const { order, receipt, raw } = answer;
    // The dataset may have evicted the ads of a cached answer.
    if (receipt.age !== undefined) {
      const { items } = raw as { items: readonly unknown[] };
      const { requestId } = receipt;
      const at = getAnswerTime(answer, this.#context.clock());
      await this.#dataset.addItems({ type: 'ads', items: () => items, at, order, requestId, listedBy });
    }
    await addOnce(answer);
  }

  /** Stores how far a part is after a page, with the ids of the page. */
  async #addPage(part: PartRun, answer: ListAnswer): Promise<void> {
    const { state, listedIds } = part;
    const { ids, found } = await contentOf(part.question, answer);
    const { cursor, hasMore } = answer.value;
    const { charged } = answer.receipt;
    const [idsBefore, listedBefore] = [part.ids.size, listedIds.size];
    for (const id of ids.map(normalizeAdId))
      for (const all of [part.ids, listedIds, this.#ids, this.#idsOfCall]) all.add(id);
    const added = part.ids.size - idsBefore;
    this.#listed += added;
    part.idlePages = listedIds.size > listedBefore ? 0 : part.idlePages + 1;
    const saved = {
      ...state,
      found: found ?? state.found,
      // An evicted ad may be listed again, or not.
      listed: Math.max(state.listed, idsBefore) + added,
      ...(this.#request.question.split === undefined && { charged: plus(state.charged, charged) }),
      ended: !hasMore,
      cursor: hasMore ? (cursor ?? state.cursor) : null,
      step: state.step + 1,
      answerOrder: Math.max(state.answerOrder, answer.order ?? 0),
      gatheredAt: this.#context.clock(),
    };
    part.state = saved;
    await this.#saveWhole({ charged: plus(this.#open.gathering.charged, charged) });
    await this.#dataset.saveGathering({ ...saved, adIds: ids });
  }

  /**
   * Stores a gathering of several parts; a gathering of one part is its part. It is stored with its first page, because a
   * gathering that has read nothing replaces no earlier one.
   */
  async #saveWhole(change: Partial<GatheringState>): Promise<void> {
    if (this.#request.question.split === undefined) return;
    const { gathering } = this.#open;
    this.#open.gathering = { ...gathering, ...change, step: gathering.step + 1 };
    await this.#dataset.saveGathering({ ...this.#open.gathering, adIds: [] });
  }

  #partOf(question: string): GatheringPart | undefined {
    return this.#open.parts.find(({ state }) => state.question === question);
  }

  #continueFrom(open: OpenedGathering): void {
    this.#open = open;
    this.#listed = 0;
    for (const { stored } of open.parts) {
      this.#listed += stored?.adIds.size ?? 0;
      for (const id of stored?.adIds ?? []) this.#ids.add(id);
    }
  }

  async #updateMaxAds(): Promise<void> {
    this.#maxAds = Math.min(this.#request.maxAds, await this.#dataset.estimateMaxAds());
  }

  #limitReached(): Stop | undefined {
    const { clock, deadline, isDraining } = this.#context;
    if (this.#ids.size >= this.#maxAds) return { reason: 'maxAds', maxAds: this.#maxAds };
    if (this.#listed >= maxInParts) return { reason: 'maxAds', maxInParts };
    if (isDraining()) return { reason: 'shutdown' };
    const remainingMs = deadline - clock() - summaryMs.all - summaryMs.each * this.#ids.size;
    return remainingMs < slack * this.#slowestPageMs ? { reason: 'deadline' } : undefined;
  }

  #reportProgress(found: number | null): void {
    const { size } = this.#ids;
    const isWhole = found !== null && this.#open.parts.length === 1;
    const message = `${formatCount(size, 'ad')} read${isWhole && found >= size ? ` of ${formatNumber(found)}` : ''}`;
    const total = isWhole && { total: Math.max(size, Math.min(found, this.#maxAds)) };
    this.#context.onProgress?.({ progress: size, ...total, message });
  }
}

/** The total by a gathering of the question or by a cached answer, whichever is newer. */
export async function findKnownTotal(question: GatheringQuestion, contents: DatasetContents, context: GatherContext) {
  const cached = question.collectionId === undefined ? await context.cachedTotal(question.filters ?? {}) : undefined;
  const gathering = findGatherings(contents, question).find(({ found, complete }) => found !== null || complete);
  const gathered = gathering && { ads: gathering.found ?? gathering.adIds.size, at: gathering.gatheredAt };
  return gathering && gathering.answerOrder > (cached?.order ?? 0) ? gathered : cached;
}

export const getListOperation = ({ collectionId }: GatheringQuestion) =>
  collectionId === undefined ? 'searchAds' : 'listCollectionItems';

function requestOf({ collectionId, filters }: GatheringQuestion, { limit, cursor }: PagePosition) {
  const position = { limit, ...(cursor !== null && { cursor }) };
  if (collectionId === undefined) return { path: {}, query: {}, body: { ...filters, ...position } };
  return { path: { collectionId }, query: { itemType: 'ads', ...position } };
}

async function contentOf({ collectionId }: GatheringQuestion, answer: ListAnswer) {
  // Loaded with the first call, like everything that reads answers.
  const { readAds } = await import('../api/client.ts');
  const ofCollection = answer as ApiAnswer<'listCollectionItems'>;
  const ids = readAds(ofCollection).map(({ id }) => id);
  return {
    ids: ids.filter(({ length }) => length <= maxIdLength),
    found:
      collectionId === undefined
        ? readTotalHits(answer as ApiAnswer<'searchAds'>)
        : parseCount(ofCollection.value.collection?.adCount),
  };
}

export const parseCount = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** How many ads match, as the service says with some of them; undefined if it states fewer ads than it sent. */
export function readTotalHits({
  value: { items, totalHits },
}: Pick<ApiAnswer<'searchAds'>, 'value'>): number | undefined {
  const total = parseCount(totalHits);
  return total !== undefined && total >= items.length ? total : undefined;
}

/** A cached answer is from earlier. */
export const getAnswerTime = ({ receipt }: Pick<ListAnswer, 'receipt'>, now: number): number =>
  now - (receipt.age ?? 0);

/** The largest page that the document allows for items of a collection. For searches, the document shows no bound. */
const documentedMax = 100;

export function getMaxPageSize({ collectionId }: GatheringQuestion, filters: readonly SearchFilter[]): number {
  if (collectionId !== undefined) return documentedMax;
  const described = filters.find(({ key }) => key === 'limit')?.maximum ?? documentedMax;
  return Math.max(1, Math.min(documentedMax, Math.floor(described)));
}

/** What a service that refuses a page size is asked for instead, in turn. A refusal costs nothing. */
const smallerPageSizes = [50, 20, 10];

const isRejected = ({ failure: { kind } }: AdLibraryError): boolean =>
  kind === 'invalid_request' || kind === 'not_found';

const plus = (sum: number | null, charged: number | null): number | null =>
  sum === null || charged === null ? null : sum + charged;

const pagesRepeat = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they repeat ads of this gathering.',
    status: 200,
    sent: true,
    charged: 0,
  });

/** Why a tool that makes several calls of the API made no more of them. */
export const stopReasons = [
  'end',
  'maxAds',
  'maxCredits',
  'budget',
  'usage_limit',
  'deadline',
  'estimate',
  'error',
  'shutdown',
] as const;

export interface Stop {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /** The cause will not go away, so continuing brings nothing: the pages repeat, or the service rejects the request. */
  deadEnd?: 'repeats' | 'rejected';
  /** How many ads there was room for, if that stopped it: in all, or counted in each part. */
  maxAds?: number;
  maxInParts?: number;
}

interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

const isLate = ({ reason }: AbortSignal): boolean => reason instanceof DOMException && reason.name === 'TimeoutError';

/** Whether nobody may receive a result any more. One that is late is still sent. */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isLate(signal);

/** Why a failed call ends the tool call. Throws what ends it without a result: nobody reads it, or nobody may. */
export function classifyFailure(thrown: unknown, { signal, isDraining }: StopSignals): Stop {
  if (!(thrown instanceof AdLibraryError)) throw thrown;
  const { failure } = thrown;
  const { kind } = failure;
  if (kind === 'unauthorized' || kind === 'no_api_key') throw thrown;
  if (signal.aborted) {
    if (isDraining()) return { reason: 'shutdown', error: thrown };
    if (isLate(signal)) return { reason: 'deadline', error: thrown };
    throw thrown;
  }
  if (failure.kind === 'credit_budget')
    return { reason: failure.limit === 'tool call' ? 'maxCredits' : 'budget', error: thrown };
  return { reason: kind === 'usage_limit' ? 'usage_limit' : 'error', error: thrown };
}
