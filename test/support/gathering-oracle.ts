import { toCanonicalJson } from '../../src/api/json.ts';
import type { Row } from '../../src/dataset/tables.ts';
import type { Call, Question } from './gathering-schedule.ts';
import type { AdFields, GatheringService, ServedPage } from './gathering-service.ts';
import type { Result } from './server.ts';

/** The tables of the dataset, which the oracle compares with its own records of the responses of the API. */
export interface DatasetView {
  ads: (Row<'ads'> & { id: string })[];
  ad_versions?: Row<'ad_versions'>[];
  gatherings?: (Row<'gatherings'> & { id: string })[];
  gathered?: Row<'gathered'>[];
}

/** A tool call in a schedule (a random sequence of events). `result` is set when the call has ended. */
export interface StartedCall {
  call: Call;
  /** The number of responses that had arrived when the call began. */
  responsesBefore: number;
  startedAt: number;
  completion?: Promise<void>;
  result?: Result;
}

/** The calls in one step of a schedule: the scheduled call, and the calls that began while it ran. */
interface StepOutcome {
  calls: StartedCall[];
  /** True if a caller cancelled its call or a response was lost. */
  isBroken: boolean;
  dataset: DatasetView;
}

interface ListedAds {
  ids: string[];
  found: number | null;
  /**
   * The arrival time of the last page, in milliseconds. For a search that is split into parts, the earliest of these
   * times.
   */
  oldestArrivalMs: number;
}

interface CompletedGathering {
  id: string;
  key: string;
  ids: Set<string>;
}

type Gather = Extract<Call, { gather: Question }>;

/** Returns true if the call only requests an estimate of its price. */
export const isEstimate = (call: Call) => 'gather' in call && call.maxCredits === 0;

/** The lifetime of cached responses in schedules with a cache, in seconds. */
export const cacheSeconds = 900;

const formatQuestionKey = ({ filters = {}, split, collectionId }: Question): string =>
  collectionId ?? toCanonicalJson({ ...filters, ...(split && { split: split.filter(isFirstOfItsKind) }) });

const isFirstOfItsKind = (part: object, index: number, all: object[]) =>
  all.findIndex((other) => toCanonicalJson(other) === toCanonicalJson(part)) === index;

const listParts = ({ filters = {}, split, collectionId }: Question): string[] =>
  collectionId ? [collectionId] : [...new Set((split ?? [{}]).map((part) => toCanonicalJson({ ...filters, ...part })))];

/** Records the responses of the API independently of the server, and computes the results that the server must return. */
export class GatheringOracle {
  readonly problems: string[] = [];
  hasClockJump = false;
  readonly #service: GatheringService;
  /**
   * The versions of each ad, the oldest first. `firstArrival` is the number of the first response that contained the
   * version.
   */
  readonly #ads = new Map<string, { fields: AdFields; firstArrival: number }[]>();
  readonly #callsByPage = new Map<ServedPage, StartedCall[]>();
  /** The result pages that `gather_ads` has read. If a part of a search is read again, its first page is removed. */
  readonly #readPages = new Set<string>();
  readonly #completedGatherings: CompletedGathering[] = [];
  readonly #storedGatherings = new Set<string>();
  #checkedPageCount = 0;

  constructor(service: GatheringService) {
    this.#service = service;
    service.onArrival = (ads, arrival) => {
      for (const ad of ads) this.#addVersion(ad, arrival);
    };
  }

  /**
   * Records a requested page and the tool calls that may have requested it. The one-ad search of an estimate belongs to
   * none.
   */
  addRequest(page: ServedPage, pageCallers: StartedCall[], madeCalls: StartedCall[]): void {
    const isSearch = page.limit === 1 && madeCalls.some(({ call }) => isEstimate(call));
    this.#callsByPage.set(page, isSearch ? [] : pageCallers);
  }

  check(outcome: StepOutcome): void {
    const pages = this.#service.pages.slice(this.#checkedPageCount);
    this.#checkedPageCount = this.#service.pages.length;
    this.#checkPaidOnce(pages, outcome);
    this.#checkCharges(pages, outcome);
    for (const madeCall of outcome.calls)
      if ('gather' in madeCall.call) this.#checkResult(madeCall, madeCall.call, outcome);
      else this.#checkCachedAge(madeCall);
    this.#checkGatherings(outcome.dataset);
    this.#checkAds(outcome.dataset);
  }

  #addVersion(ad: AdFields, arrival: number): void {
    const versions = this.#ads.get(ad.id) ?? [];
    this.#ads.set(ad.id, versions);
    const newest = versions.at(-1);
    const fields = { ...newest?.fields, ...ad };
    if (newest && formatTexts(fields) === formatTexts(newest.fields)) newest.fields = fields;
    else versions.push({ fields, firstArrival: arrival });
  }

  #listGatherCalls(page: ServedPage): Gather[] {
    const calls = (this.#callsByPage.get(page) ?? []).map(({ call }) => call);
    return calls.filter(
      (call): call is Gather =>
        'gather' in call && !isEstimate(call) && listParts(call.gather).includes(page.question ?? ''),
    );
  }

  /** Checks that no page is paid for twice, unless a call with `fresh` starts its search over. */
  #checkPaidOnce(pages: readonly ServedPage[], { calls }: StepOutcome): void {
    const restartedGathers = new Set<Gather>();
    const gatherCalls = calls.flatMap(({ call }) => ('gather' in call ? [call] : []));
    // If two calls read the same search at once, the oracle cannot tell which call started it over.
    const isRestartAmbiguous = gatherCalls.length > 1 && gatherCalls.some(({ fresh }) => fresh);
    for (const page of pages) {
      const gatherCallsOfPage = this.#listGatherCalls(page);
      const { question, cursor } = page;
      if (gatherCallsOfPage.length === 0) continue;
      const isFirst = cursor === null;
      for (const call of gatherCallsOfPage.filter((one) => isFirst && one.fresh && !restartedGathers.has(one))) {
        restartedGathers.add(call);
        for (const part of listParts(call.gather)) this.#readPages.delete(`${part} null`);
      }
      const name = `${question} ${cursor}`;
      if (this.#readPages.has(name) && !(isRestartAmbiguous && isFirst))
        this.problems.push(`the page ${name} was paid again`);
      // Skip first pages after an ambiguous restart, because they may belong to the other call.
      if (page.arrival > 0 && !(isRestartAmbiguous && isFirst)) this.#readPages.add(name);
    }
  }

  #checkCharges(pages: readonly ServedPage[], { calls, isBroken }: StepOutcome): void {
    const results = calls.map(({ result }) => result);
    if (isBroken || results.some((result) => result === undefined || result.isError)) return;
    const statedCharge = results.reduce((sum, result) => sum + (result?.data.receipt.charged ?? Number.NaN), 0);
    const charged = pages.reduce((sum, page) => sum + page.charged, 0);
    if (statedCharge !== charged)
      this.problems.push(`the service charged ${charged} credits, but the results state ${statedCharge}`);
  }

  /** Checks that a cached response is not older than the cache lifetime. Skipped if a clock was changed. */
  #checkCachedAge({ startedAt, result }: StartedCall): void {
    const { receipt = {}, items = [], ad } = result?.data ?? {};
    if (this.hasClockJump || !('cached' in receipt && receipt.cached)) return;
    const ids = ad ? [ad.id] : items.map(({ id }) => id);
    const isLate = (page: ServedPage) => page.arrival > 0 && page.arrivedAt >= startedAt - 1000 * cacheSeconds - 1000;
    if (!this.#service.pages.some((page) => isLate(page) && ids.every((id) => page.ids.includes(id))))
      this.problems.push(`${ids.length} ads came from a cached answer that had expired`);
  }

  /** Checks a result against the tables of the dataset and the pages that the API sent. */
  #checkResult(
    { responsesBefore, result }: StartedCall,
    call: Gather,
    { calls, isBroken, dataset }: StepOutcome,
  ): void {
    if (result === undefined || result.isError || result.data.gathering === null) return;
    const stated = result.data as unknown as StatedResult;
    const row = dataset.gatherings?.find(({ id }) => id === stated.gathering);
    const key = formatQuestionKey(call.gather);
    const reportDifference = (fieldName: string, actual: unknown, expected: unknown) =>
      this.problems.push(`${key}: ${fieldName} is ${actual} instead of ${expected}`);
    if (row === undefined) return void reportDifference('gathering', stated.gathering, 'a stored gathering');
    if (calls.length > 1) return;
    const ids = readGatheredIds(stated.gathering, dataset);
    const versions = [...ids].map((id) => this.#ads.get(id) ?? []);
    const addedAds = versions.filter(([first]) => (first?.firstArrival ?? 0) > responsesBefore).length;
    const changedAds = versions.filter((adVersions) => (adVersions.at(-1)?.firstArrival ?? 0) > responsesBefore).length;
    const { found, gatheredAt, complete, read } = stated;
    const expected = {
      read: ids.size,
      added: addedAds,
      updated: changedAds - addedAds,
      found: row.found,
      gatheredAt: row.gatheredAt,
    };
    for (const [name, value] of Object.entries(expected))
      if (value !== stated[name as keyof typeof expected])
        reportDifference(name, stated[name as keyof typeof expected], value);
    if (Boolean(row.complete) !== complete) reportDifference('complete', complete, row.complete);
    if (stated.stopped === 'end' && !complete)
      reportDifference('complete', false, `${read} of ${found} at ${gatheredAt}`);
    const previousGathering = complete
      ? this.#completedGatherings.findLast((one) => one.key === key && one.id !== stated.gathering)
      : undefined;
    if (!isBroken || previousGathering) this.#checkChanges(stated, ids, previousGathering, reportDifference);
  }

  /** Compares the changes in a result with the last time that the same search was read completely. */
  #checkChanges(
    { gone, sinceLast }: StatedResult,
    ids: Set<string>,
    previousGathering: CompletedGathering | undefined,
    reportDifference: (fieldName: string, actual: unknown, expected: unknown) => void,
  ): void {
    const expected = previousGathering && [...previousGathering.ids].filter((id) => !ids.has(id)).sort();
    if (`${gone && [...gone].sort()}` !== `${expected ?? null}`) reportDifference('gone', gone, expected);
    if (Boolean(sinceLast) !== Boolean(previousGathering))
      reportDifference('sinceLast', sinceLast, previousGathering?.id);
    if (previousGathering === undefined || sinceLast === undefined) return;
    const newAdCount = [...ids].filter((id) => !previousGathering.ids.has(id)).length;
    if (sinceLast.fresh !== newAdCount) reportDifference('sinceLast.fresh', sinceLast.fresh, newAdCount);
  }

  /**
   * Checks that each gathering (the stored ads of a search) has exactly the ads on some sequence of pages from a first
   * page on. A complete gathering must reach the last page, and the dataset must store all its ads.
   */
  #checkGatherings({ ads, gatherings = [], ...rest }: DatasetView): void {
    const storedIds = new Set(ads.map(({ id }) => id));
    for (const id of this.#storedGatherings)
      if (!gatherings.some((row) => row.id === id))
        this.problems.push(`gathering ${id}, which was paid for, is missing`);
    for (const row of gatherings) {
      this.#storedGatherings.add(row.id);
      const { filters, collectionId, found, gatheredAt } = row;
      const ids = readGatheredIds(row.id, rest);
      const isComplete = Boolean(row.complete);
      const name = `${row.id} of ${filters ?? collectionId}`;
      if (isComplete && [...ids].some((id) => !storedIds.has(id)))
        this.problems.push(`${name} is marked complete, but some of its ads are missing`);
      const question = filters === null ? { collectionId: collectionId ?? '' } : parseQuestion(filters);
      const possibleLists = this.#buildPossibleLists(listParts(question), isComplete).filter(
        (listed) => listed.ids.length === ids.size && listed.ids.every((id) => ids.has(id)),
      );
      if (possibleLists.length === 0)
        this.problems.push(`${name} with ${ids.size} ads matches no list that the service sent`);
      // If ads disappear while a search is read, the API's total is smaller than the number of listed ads.
      else if (!possibleLists.some((list) => list.found === found || (list.found !== null && list.found < ids.size)))
        this.problems.push(`${name}: found is ${found} instead of ${possibleLists.map((list) => list.found)}`);
      if (!isComplete || possibleLists.length === 0) continue;
      const at = Date.parse(gatheredAt ?? '');
      // gather_ads may use a cached page until the page expires.
      if (
        !this.hasClockJump &&
        !possibleLists.some(
          ({ oldestArrivalMs }) => at >= oldestArrivalMs && at <= oldestArrivalMs + 1000 * cacheSeconds + 1000,
        )
      )
        this.problems.push(`${name}: gatheredAt is ${gatheredAt}, outside the lifetime of the pages`);
      if (this.#completedGatherings.some(({ id }) => id === row.id)) continue;
      this.#completedGatherings.push({ id: row.id, key: formatQuestionKey(question), ids });
    }
  }

  /** Returns all possible lists of ads, for each way in which the pages that the API sent can follow each other. */
  #buildPossibleLists([firstPart, ...otherParts]: string[], isComplete: boolean): ListedAds[] {
    if (firstPart === undefined) return [{ ids: [], found: 0, oldestArrivalMs: Infinity }];
    const pages = this.#service.pages.filter(({ question, arrival }) => question === firstPart && arrival > 0);
    const partLists = pages.flatMap((last): ListedAds[] => {
      if (isComplete && last.nextCursor !== null) return [];
      const chain = [last];
      for (let first = last; first.cursor !== null; chain.unshift(first)) {
        const previousPage = pages.find(({ nextCursor }) => nextCursor === first.cursor);
        if (previousPage === undefined) return [];
        first = previousPage;
      }
      const statedTotal = chain.findLast(({ total }) => total !== undefined)?.total ?? null;
      const ids = chain.flatMap((page) => page.ids);
      return [{ ids, found: statedTotal, oldestArrivalMs: last.arrivedAt }];
    });
    if (!isComplete) partLists.push({ ids: [], found: null, oldestArrivalMs: Infinity });
    return this.#buildPossibleLists(otherParts, isComplete).flatMap((otherList) =>
      partLists.map((chain) => ({
        ids: [...new Set([...chain.ids, ...otherList.ids])],
        found: chain.found === null || otherList.found === null ? null : chain.found + otherList.found,
        oldestArrivalMs: Math.min(chain.oldestArrivalMs, otherList.oldestArrivalMs),
      })),
    );
  }

  /** Checks that the tables contain the newest and the earlier versions of every received ad. */
  #checkAds({ ads, ad_versions: versions = [] }: DatasetView): void {
    const rows = new Map(ads.map((row) => [row.id, row]));
    for (const [id, versionsOfAd] of this.#ads) {
      const [stored, newest] = [rows.get(id), versionsOfAd.at(-1)?.fields];
      const [storedText, expectedText] = [stored && formatAd(stored), newest && formatAd(newest)];
      if (storedText !== expectedText) this.problems.push(`the stored ad is ${storedText} instead of ${expectedText}`);
      const expectedVersions = versionsOfAd.slice(-11, -1).map(({ fields }) => formatTexts(fields));
      const storedVersions = versions
        .filter((row) => row.id === id)
        .map(({ json }) => formatTexts(JSON.parse(json ?? '{}')));
      if (`${expectedVersions}` !== `${storedVersions}`)
        this.problems.push(`the stored versions are ${storedVersions} instead of ${expectedVersions}`);
    }
  }
}

interface StatedResult {
  gathering: string;
  found: number | null;
  read: number;
  added: number;
  updated: number;
  gone: string[] | null;
  complete: boolean;
  stopped: string;
  gatheredAt: string;
  sinceLast?: { fresh: number };
}

function parseQuestion(json: string): Question {
  const { split, ...filters } = JSON.parse(json) as Record<string, unknown> & { split?: Record<string, unknown>[] };
  return { filters, ...(split && { split }) };
}

const readGatheredIds = (gathering: string, { gathered = [] }: Pick<DatasetView, 'gathered'>): Set<string> =>
  new Set(gathered.filter(({ gatheringId }) => gatheringId === gathering).map(({ adId }) => adId ?? ''));

interface AdTexts {
  headline?: unknown;
  body?: unknown;
  lastSeenAt?: unknown;
}

const formatTexts = ({ headline = null, body = null }: AdTexts = {}): string => `"${headline}, ${body}"`;
const formatAd = (ad: AdTexts): string => `${formatTexts(ad)}, last seen ${String(ad.lastSeenAt).slice(0, 10)}`;
