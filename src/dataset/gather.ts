import { setImmediate as nextTurn } from 'node:timers/promises';
import { AdLibraryError, type Allowance, type Answer, type Call, operations } from '../api/call.ts';
import type { Api, ApiAnswer } from '../api/client.ts';
import type { CallAllowance } from '../credits/meter.ts';
import { type GatheringState, type GatheringStep, type ItemBatch, idKey } from '../state/dataset.ts';
import type { GatheringQuestion } from './gatherings.ts';

/** What all parts of a gathering share while it is made. */
export interface GatherRun extends StopSignals {
  allowance: CallAllowance;
  /** As many as there is room for, which changes with the size of the ads. */
  maxAds: number;
  askMaxAds(): Promise<number>;
  /** Ids of the ads that were read, in all parts, as `idKey` writes them. */
  read: Set<string>;
  /** How many that are, counted in each part. */
  listed: number;
  /** Milliseconds of the slowest page so far. */
  slowest: number;
  clock(): number;
  deadline: number;
  addItems(batch: ItemBatch): Promise<void>;
  save(step: GatheringStep): Promise<void>;
  /** Called with each page that is asked for: it goes on even if the caller leaves. */
  onRequest(settled: Promise<unknown>): void;
  /** Called after each page, with what the service says there is in this part. */
  onPage(found: number | null): void;
}

/** The first pages may be looked at as lists, too. Of a large gathering, two copies would take too much memory. */
const maxCachedAds = 1000;

/** Ids of one gathering that are surely kept while it is read. */
const maxInParts = 100_000;

/** So many pages without a new ad lead nowhere. */
const maxIdlePages = 3;

/** A page that is begun should be back in time, even if it is slower than all before. */
const slack = 1.5;
/** The time that the summary takes, in milliseconds, and that of each ad in it. */
const summaryMs = { all: 300, each: 0.6 };

/** Where one part stands: ids of the ads that it has read, as `idKey` writes them. */
interface PartState {
  state: GatheringState;
  adIds: ReadonlySet<string>;
  /** How many ads there are, by what is known before the first page. */
  found: number | undefined;
}

/** Reads one part page by page, from where it stands, until there is nothing more or a limit is reached. */
export async function gatherPart(start: PartState, list: AdList, run: GatherRun): Promise<Stop> {
  let { state } = start;
  const own = new Set(start.adIds);
  // The last page is asked for as many as are left, since a service may charge for what it is asked.
  let isFoundTrue = true;
  let idle = 0;
  const used = new Set([state.cursor]);
  const take = async ({ ids, found, hasMore, cursor, order = 0, charged }: AdPage) => {
    const before = own.size;
    for (const id of ids.map(idKey)) {
      own.add(id);
      run.read.add(id);
    }
    run.listed += own.size - before;
    idle = own.size > before ? 0 : idle + 1;
    state = {
      ...state,
      found: found ?? state.found,
      // Of what was forgotten since nobody knows whether it is listed again.
      listed: Math.max(state.listed, before) + own.size - before,
      charged: state.charged === null || charged === null ? null : state.charged + charged,
      ended: !hasMore,
      cursor: hasMore ? (cursor ?? state.cursor) : null,
      step: state.step + 1,
      answerOrder: Math.max(state.answerOrder, order),
      gatheredAt: run.clock(),
    };
    await run.save({ ...state, adIds: ids });
  };
  const deadEnd = async (error: AdLibraryError): Promise<Stop> => {
    // Whoever calls with `fresh` then begins anew.
    if (state.fresh && state.step > 0) await run.save({ ...state, fresh: false, step: state.step + 1, adIds: [] });
    return { reason: 'error', error, leadsNowhere: true };
  };
  for (;;) {
    const limit = reachedLimit(run);
    if (limit) return limit;
    const found = state.found ?? start.found;
    const left = isFoundTrue && found !== undefined ? Math.max(1, found - state.listed) : Infinity;
    let page: AdPage;
    try {
      page = await readPage({ cursor: state.cursor, left, take }, list, run);
    } catch (error) {
      const stop = stopOf(error, run);
      return stop.error && isRejected(stop.error) ? deadEnd(stop.error) : stop;
    }
    run.maxAds = await run.askMaxAds();
    if (run.read.size > maxCachedAds) await page.uncache?.();
    run.onPage(state.found);
    // A service inside this process leaves no time in between for anything else.
    await nextTurn();
    if (state.ended) return { reason: 'end' };
    isFoundTrue &&= found !== undefined ? idle === 0 && state.listed < found : true;
    if (used.has(state.cursor) || idle >= maxIdlePages) return deadEnd(pagesRepeat());
    used.add(state.cursor);
  }
}

/** The service does not take what a page was asked with. */
export const isRejected = ({ failure: { kind } }: AdLibraryError): boolean =>
  kind === 'invalid_request' || kind === 'not_found';

function addReplayed({ age, items, ...ads }: ReplayedAds, { operation }: AdList, { clock, addItems }: GatherRun) {
  return addItems({ ...ads, items: () => items, type: 'ads', at: clock() - age, listedBy: operation });
}

export function reachedLimit(run: GatherRun): Stop | undefined {
  const { read, listed, maxAds, clock, deadline, slowest, isDraining } = run;
  if (read.size >= maxAds) return { reason: 'maxAds', maxAds };
  if (listed >= maxInParts) return { reason: 'maxAds', maxInParts };
  if (isDraining()) return { reason: 'shutdown' };
  const left = deadline - clock() - summaryMs.all - summaryMs.each * read.size;
  return left < slack * slowest ? { reason: 'deadline' } : undefined;
}

interface WantedPage {
  cursor: string | null;
  /** How many ads are left, as far as is known. */
  left: number;
  /** Called once with the page, even if the caller has left: it was paid for. */
  take(page: AdPage): Promise<void>;
}

async function readPage({ cursor, left, take }: WantedPage, list: AdList, run: GatherRun): Promise<AdPage> {
  const { allowance, maxAds, read, clock } = run;
  let taken: Promise<void> | undefined;
  const takeOnce = (page: AdPage) => {
    taken ??= take(page);
    return taken;
  };
  const full = Math.min(list.maxLimit, maxAds - read.size);
  let largest = left < full && (await list.isCached({ limit: full, cursor })) ? full : left;
  for (;;) {
    const max = Math.min(list.maxLimit, maxAds - read.size, largest);
    const limit = await allowance.pageSize({ operation: list.operation, max });
    const began = clock();
    try {
      const page = await list.read({ limit, cursor, onPage: takeOnce, onRequest: run.onRequest });
      if (page.replayed) await addReplayed(page.replayed, list, run);
      await takeOnce(page);
      return page;
    } catch (error) {
      if (!refusesLimit(error)) throw error;
      // A service may have a smallest page, too.
      const isFewest = limit === largest && limit < list.maxLimit;
      const smaller = smallerLimit(limit);
      if (isFewest) largest = Infinity;
      else if (smaller === undefined) throw error;
      else list.maxLimit = smaller;
    } finally {
      run.slowest = Math.max(run.slowest, clock() - began);
    }
  }
}

const pagesRepeat = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they bring nothing new: its pages repeat.',
    status: 200,
    sent: true,
    charged: 0,
  });

/** Why a tool that makes several calls of the API made no more of them. */
export type StopReason =
  | 'end'
  | 'maxAds'
  | 'maxCredits'
  | 'budget'
  | 'usage_limit'
  | 'deadline'
  | 'estimate'
  | 'error'
  | 'shutdown';

export interface Stop {
  reason: StopReason;
  /** What was thrown. */
  error?: AdLibraryError;
  /** What it stopped at will not go away: to go on brings nothing. */
  leadsNowhere?: true;
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
export const isAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isLate(signal);

/** Why a failed call ends the tool call. Throws what ends it without a result: nobody reads it, or nobody may. */
export function stopOf(thrown: unknown, { signal, isDraining }: StopSignals): Stop {
  if (!(thrown instanceof AdLibraryError)) throw thrown;
  const { kind, maxCredits } = thrown.failure;
  if (kind === 'unauthorized' || kind === 'no_api_key') throw thrown;
  if (signal.aborted) {
    if (isDraining()) return { reason: 'shutdown', error: thrown };
    if (isLate(signal)) return { reason: 'deadline', error: thrown };
    throw thrown;
  }
  if (kind === 'credit_budget') return { reason: maxCredits === undefined ? 'budget' : 'maxCredits', error: thrown };
  return { reason: kind === 'usage_limit' ? 'usage_limit' : 'error', error: thrown };
}

/** Where a page of a list begins, and how many ads it may hold. */
interface PagePosition {
  limit: number;
  cursor: string | null;
}

interface PageRequest extends PagePosition {
  /** Called with the page as soon as the service has sent it, even if nobody waits for it any more. */
  onPage(page: AdPage): Promise<void>;
  /** Called with each request that may be paid for; it settles when that has ended. */
  onRequest(request: Promise<unknown>): void;
}

interface AdPage {
  ids: string[];
  cursor: string | null;
  hasMore: boolean;
  /** What the service says there is. */
  found: number | undefined;
  /** The place of its answer among all. */
  order: number | undefined;
  /** Credits that it cost; null where the service did not say so. */
  charged: number | null;
  /** Takes it out of the cache of answers. */
  uncache?: (() => Promise<void>) | undefined;
  /** Its ads, if it comes from that cache: the dataset may have lost them since. */
  replayed?: ReplayedAds | undefined;
}

interface ReplayedAds {
  items: readonly unknown[];
  requestId: string | null;
  /** Milliseconds since they came. */
  age: number;
  order: number | undefined;
}

/** Ads that the service lists page by page. */
interface AdList {
  operation: 'searchAds' | 'listCollectionItems';
  /** The largest page that the service gives, as far as is known. */
  maxLimit: number;
  read(page: PageRequest): Promise<AdPage>;
  isCached(page: PagePosition): Promise<boolean>;
}

interface AdListOptions {
  api: Api;
  allowance: Allowance;
  fresh: boolean;
  maxLimit: number;
  isCached: IsCached;
}

/** Whether a call has an answer that is cached: then it costs nothing. */
export type IsCached = (call: Pick<Call, 'operation' | 'path' | 'query' | 'body'>) => Promise<boolean>;

export function adListOf({ collectionId, filters = {} }: GatheringQuestion, options: AdListOptions): AdList {
  const { api, allowance, fresh, isCached } = options;
  const positionOf = ({ limit, cursor }: PagePosition) => ({ limit, ...(cursor !== null && { cursor }) });
  if (collectionId === undefined) {
    const bodyOf = (page: PagePosition) => ({ ...filters, ...positionOf(page) });
    const pageOf = async (answer: ApiAnswer<'searchAds'>): Promise<AdPage> => {
      const { items, cursor, hasMore } = answer.value;
      return { ids: idsOf(items), cursor, hasMore, found: totalOf(answer), ...copiesOf(answer) };
    };
    return {
      operation: 'searchAds',
      maxLimit: options.maxLimit,
      isCached: async (page) =>
        !fresh && isCached({ operation: operations.searchAds, path: {}, query: {}, body: bodyOf(page) }),
      read: async (page) =>
        pageOf(await api.searchAds({ body: bodyOf(page), fresh, allowance, around: handedTo(page, pageOf) })),
    };
  }
  const path = { collectionId };
  const queryOf = (page: PagePosition) => ({ itemType: 'ads', ...positionOf(page) });
  const pageOf = async (answer: ApiAnswer<'listCollectionItems'>): Promise<AdPage> => {
    // Loaded with the first call, like everything that reads answers.
    const { readAds } = await import('../api/client.ts');
    const { cursor, hasMore, collection } = answer.value;
    const found = wholeNumber(collection?.adCount);
    return { ids: idsOf(readAds(answer)), cursor, hasMore, found, ...copiesOf(answer) };
  };
  return {
    operation: 'listCollectionItems',
    maxLimit: 100,
    isCached: async (page) =>
      !fresh && isCached({ operation: operations.listCollectionItems, path, query: queryOf(page) }),
    read: async (page) => {
      const around = handedTo(page, pageOf);
      return pageOf(await api.listCollectionItems({ path, query: queryOf(page), fresh, allowance, around }));
    },
  };
}

/** What goes wrong with the page is for whoever waits for it. */
function handedTo<Received extends Answer>(
  { onPage, onRequest }: Pick<PageRequest, 'onPage' | 'onRequest'>,
  pageOf: (answer: Received) => Promise<AdPage>,
): Call['around'] {
  return (send) => {
    const request = send().then(async (answer) => {
      await pageOf(answer as Received)
        .then(onPage)
        .catch(() => {});
      return answer;
    });
    onRequest(request);
    return request;
  };
}

function copiesOf({
  uncache,
  raw,
  order,
  receipt: { age, requestId, charged },
}: Answer): Pick<AdPage, 'order' | 'charged' | 'uncache' | 'replayed'> {
  const { items } = raw as { items: readonly unknown[] };
  return { order, charged, uncache, ...(age !== undefined && { replayed: { items, requestId, age, order } }) };
}

/** An id is a UUID in the document. What is much longer is none, and would only take room. */
const maxIdLength = 200;

const idsOf = (items: readonly { id: string }[]): string[] =>
  items.map(({ id }) => id).filter((id) => id.length <= maxIdLength);

/** Pages that a service is asked for in turn when it refuses a larger one. */
const smallerLimits = [50, 20, 10];

/** The next page size to try where the service refuses one. */
const smallerLimit = (limit: number): number | undefined => smallerLimits.find((smaller) => smaller < limit);

/** Whether a failure is about the page size. */
function refusesLimit(error: unknown): boolean {
  if (!(error instanceof AdLibraryError) || error.failure.kind !== 'invalid_request') return false;
  const { serviceMessage = '', details } = error.failure;
  return isAboutLimit(`${serviceMessage} ${JSON.stringify(details ?? '')}`.slice(0, 2000));
}

/** Not where `limit` is only one of the keys that a service lists. */
const isAboutLimit = (text: string): boolean =>
  text.length < 100 ? /limit/i.test(text) : /limit[^.]{0,60}\d|\d[^.]{0,60}limit/i.test(text);

/** A number of things as a service states it; undefined for what cannot be one. */
export const wholeNumber = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** How many ads match, as the service says with some of them; undefined if it says fewer than came. */
export function totalOf({ value: { items, totalHits } }: Pick<ApiAnswer<'searchAds'>, 'value'>): number | undefined {
  const total = wholeNumber(totalHits);
  return total !== undefined && total >= items.length ? total : undefined;
}
