import { hash } from 'node:crypto';
import { toCanonicalJson } from '../api/json.ts';
import { roundCredits } from '../credits/credit-text.ts';
import { type DatasetContents, type Gathering, type GatheringState, normalizeAdId, sumOf } from '../storage/dataset.ts';
import { findVersionAt, hasSameContent, readCounts, type StoredItem } from '../storage/item-versions.ts';
import { type Counter, type CounterValues, counterNames } from '../views/ad-changes.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';

type Filters = Readonly<Record<string, unknown>>;

/** The question of a gathering: filters with an optional split into parts, or a collection. */
export interface GatheringQuestion {
  filters?: Filters | undefined;
  split?: readonly Filters[] | undefined;
  collectionId?: string | undefined;
}

/** Returns a key that is equal for equal questions. The order of filters does not matter. */
export const getQuestionKey = ({ filters = {}, split, collectionId }: GatheringQuestion): string =>
  hash('sha256', toCanonicalJson([filters, split ?? null, collectionId?.toLowerCase() ?? null]), 'base64url');

const listParts = ({ filters = {}, split, collectionId }: GatheringQuestion): GatheringQuestion[] =>
  split?.map((part) => ({ filters: { ...filters, ...part } })) ?? [{ filters, collectionId }];

/** Returns the question without repeated parts in its split. */
export function removeDuplicateParts(question: GatheringQuestion): GatheringQuestion {
  const keys = listParts(question).map(getQuestionKey);
  const split = question.split?.filter((_, index) => keys.indexOf(keys[index] ?? '') === index);
  return { ...question, split };
}

/**
 * Creates the state of a new gathering. Its id follows from the question and the sequence number, so two processes that
 * start the same gathering create the same id.
 * @param at when the gathering starts, in milliseconds since the epoch
 * @param order the sequence number of the gathering
 */
export function createGathering(question: GatheringQuestion, at: number, order = at, fresh = false): GatheringState {
  const key = getQuestionKey(question);
  const { filters = {}, split, collectionId = null } = question;
  return {
    id: `g${hash('sha256', `${key} ${order}`).slice(0, 10)}`,
    question: key,
    filters: collectionId === null ? { ...filters, ...(split && { split }) } : null,
    collectionId,
    fresh,
    parts: [],
    found: null,
    listed: 0,
    charged: 0,
    stuck: false,
    ended: false,
    cursor: null,
    order,
    step: 0,
    answerOrder: 0,
    startedAt: at,
    gatheredAt: at,
  };
}

/** A part of a gathering: its question and its progress. */
export interface GatheringPart {
  question: GatheringQuestion;
  state: GatheringState;
  /** The stored gathering of the part; undefined if nothing of it is stored. */
  stored: Gathering | undefined;
}

/**
 * Returns the gathering of a question, either the newest stored one or a new one, and the progress of each part. A
 * gathering without `split` is its own only part.
 * @param fresh whether to start a new gathering even if an earlier one exists
 */
export function openGathering(question: GatheringQuestion, contents: DatasetContents, fresh: boolean, now: number) {
  const [newest] = fresh ? [] : findGatherings(contents, question);
  // The new gathering sorts after all others, even if other processes have clocks that are ahead.
  const order = contents.gatherings.reduce((next, one) => Math.max(next, one.order + 1), now);
  const state = newest ? newest.state : createGathering(question, now, order, fresh);
  if (question.split === undefined) return { gathering: state, parts: [{ question, state, stored: newest }] };
  const parts = listParts(question).map((part) => findPartState(part, state, contents));
  const ids = parts.map((part) => part.state.id);
  const hasOtherParts = state.ended && state.parts.join() !== ids.join();
  const currentState = hasOtherParts ? createGathering(question, now, order) : state;
  return {
    gathering: { ...currentState, parts: ids, ended: currentState.ended && parts.every((part) => part.state.ended) },
    parts,
  };
}

/**
 * Returns where a part continues: at a complete gathering of the part, of any age, or otherwise at what the whole
 * gathering has begun. A gathering with `fresh` ignores everything that began before it.
 */
function findPartState(question: GatheringQuestion, all: GatheringState, contents: DatasetContents): GatheringPart {
  const { fresh, order, startedAt, parts } = all;
  const usableGatherings = findGatherings(contents, question).filter((one) => !fresh || one.order >= order);
  const stored =
    usableGatherings.find(({ complete }) => complete) ??
    usableGatherings.find(({ id }) => parts.includes(id)) ??
    usableGatherings[0];
  return { question, state: stored ? stored.state : createGathering(question, startedAt, order, fresh), stored };
}

/** Returns the question of a stored gathering. */
export function getQuestion({ filters, collectionId, parts }: Gathering): GatheringQuestion {
  if (collectionId !== null) return { collectionId };
  if (parts.length === 0) return { filters: filters ?? {} };
  const { split, ...commonFilters } = filters ?? {};
  return { filters: commonFilters, split: split as readonly Filters[] };
}

/** Returns the stored gatherings of a question, the newest first. */
export const findGatherings = ({ gatherings }: DatasetContents, question: GatheringQuestion): Gathering[] => {
  const key = getQuestionKey(question);
  return gatherings.filter((gathering) => gathering.question === key).reverse();
};

/**
 * Returns the newest complete gathering of a broader question, or undefined. A question is broader if each of its filters
 * is also a filter of this question, with the same value.
 */
export function findBroaderGathering(
  { gatherings }: Pick<DatasetContents, 'gatherings'>,
  question: GatheringQuestion,
): Gathering | undefined {
  const { filters = {}, collectionId } = question;
  if (collectionId !== undefined) return undefined;
  const key = getQuestionKey(question);
  const isSameFilter = ([name, value]: [string, unknown]) =>
    Object.hasOwn(filters, name) && toCanonicalJson(filters[name]) === toCanonicalJson(value);
  return gatherings.findLast(
    (one) =>
      one.complete && one.question !== key && one.filters !== null && Object.entries(one.filters).every(isSameFilter),
  );
}

/** Returns the newest gathering of each question. */
export const selectNewestGatherings = ({ gatherings }: Pick<DatasetContents, 'gatherings'>): Gathering[] => [
  ...new Map(gatherings.map((gathering) => [gathering.question, gathering])).values(),
];

/**
 * Returns the newest complete gathering of each question: the ads that they list are what the service listed last. A
 * gathering in parts is left out as soon as one of its parts was read again.
 */
export function selectCurrentGatherings({ gatherings }: Pick<DatasetContents, 'gatherings'>): Gathering[] {
  const newest = new Map(gatherings.filter(({ complete }) => complete).map((one) => [one.question, one]));
  const isNewest = (gathering: Gathering) => newest.get(gathering.question) === gathering;
  return [...newest.values()].filter(({ storedParts }) => storedParts.every(isNewest));
}

/** Returns the number of ads that only searches or earlier gatherings returned. Returns 0 if nothing was gathered. */
export function countAdsOutsideGatherings(contents: DatasetContents): number {
  if (contents.gatherings.length === 0) return 0;
  const gatheredIds = new Set(selectNewestGatherings(contents).flatMap(({ adIds }) => [...adIds]));
  return contents.ads.filter(({ id }) => !gatheredIds.has(normalizeAdId(id))).length;
}

/** Returns how many ads of the dataset a gathering has read. */
export function countGatheredAds({ ads, gatherings }: Pick<DatasetContents, 'ads' | 'gatherings'>): number {
  const gathered = new Set(gatherings.flatMap(({ adIds }) => [...adIds]));
  return ads.filter(({ id }) => gathered.has(normalizeAdId(id))).length;
}

/**
 * Returns the credits that all gatherings of the dataset cost. The sum is exact if the service stated all charges, and
 * no gathering was removed to make room.
 */
export function sumGatheringCosts({ gatherings, evicted }: Pick<DatasetContents, 'gatherings' | 'evicted'>) {
  const charges = gatherings.map(({ charged }) => charged);
  const isExact = evicted.gatherings === 0 && !charges.includes(null);
  return { credits: roundCredits(sumOf(charges.map((charged) => charged ?? 0))), isExact };
}

/** Returns the gatherings that hold the ids: the parts of a split gathering, or the gathering itself. */
const listReadParts = (gathering: Gathering): readonly Gathering[] =>
  gathering.parts.length === 0 ? [gathering] : gathering.storedParts;

/** Formats the total if only some parts state one. Returns undefined otherwise. */
export function formatFoundInParts({ found, parts, storedParts }: Gathering): string | undefined {
  const totals = storedParts.flatMap((part) => part.found ?? []);
  if (found !== null || totals.length === 0) return undefined;
  return `${formatNumber(sumOf(totals))} found in ${totals.length} of ${parts.length} parts`;
}

/** Returns how many listings of an ad repeat a listing of another part. `found` counts such an ad several times. */
export const countRepeats = ({ storedParts, adIds }: Gathering): number =>
  storedParts.length < 2 ? 0 : sumOf(storedParts.map((part) => part.adIds.size)) - adIds.size;

/** Returns how many ads the service counted but did not list, although its last page was reached. */
export const countUnlistedAds = (gathering: Gathering): number =>
  gathering.ended ? sumOf(listReadParts(gathering).map((part) => Math.max(0, (part.found ?? 0) - part.listed))) : 0;

/** Returns whether all listed ids are still stored, even if some of their ads were evicted. */
export const hasAllIds = (gathering: Gathering): boolean =>
  gathering.ended &&
  gathering.storedParts.length === new Set(gathering.parts).size &&
  listReadParts(gathering).every(({ ended, adIds, listed }) => ended && adIds.size >= listed);

/**
 * Returns, for each id as `normalizeAdId` writes it, the sequence number of the last answer that may contain the ad.
 */
export function findLastAnswers(gathering: Gathering): ReadonlyMap<string, number> {
  const orders = new Map<string, number>();
  for (const { adIds, answerOrder } of listReadParts(gathering))
    for (const id of adIds) orders.set(id, Math.max(answerOrder, orders.get(id) ?? 0));
  return orders;
}

/** A period between two times in milliseconds since the epoch. */
interface Period {
  from: number;
  to: number;
}

/** Returns the time of the first and the last reading of all gatherings. Returns undefined if nothing was gathered. */
export function getReadingPeriod({ gatherings }: Pick<DatasetContents, 'gatherings'>): Period | undefined {
  if (gatherings.length === 0) return undefined;
  const period = { from: Number.POSITIVE_INFINITY, to: 0 };
  // The time of a split gathering is the time of its oldest part, so the newest time is in its state.
  for (const { startedAt, state } of gatherings) {
    period.from = Math.min(period.from, startedAt);
    period.to = Math.max(period.to, state.gatheredAt);
  }
  return period;
}

/**
 * Returns the times up to which launches of ads are known, in milliseconds since the epoch. `complete` is the earliest
 * time at which a question was last read. `partial` is the time of the last answer. Between the two times, launches are
 * missing from questions that were not read again. Without gatherings, both are the time of the last answer. Returns
 * undefined for an empty dataset.
 */
export function getLaunchesKnownUntil(contents: Pick<DatasetContents, 'gatherings' | 'ads'>) {
  const readings = contents.gatherings.filter(({ parts }) => parts.length === 0);
  const partial = [...readings.map(({ gatheredAt }) => gatheredAt), ...contents.ads.map(({ at }) => at)].reduce(
    (latest, at) => Math.max(latest, at),
    Number.NEGATIVE_INFINITY,
  );
  if (partial === Number.NEGATIVE_INFINITY) return undefined;
  const complete = selectNewestGatherings({ gatherings: readings }).reduce(
    (earliest, { gatheredAt }) => Math.min(earliest, gatheredAt),
    partial,
  );
  return { complete, partial };
}

/**
 * Returns the newest gathering of each question, the newest first. A part of another gathering is included only if the
 * part was also paid for by itself.
 */
export function selectPaidGatherings(contents: DatasetContents): Gathering[] {
  const newest = selectNewestGatherings(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  return newest
    .filter(({ id, charged }) => !parts.has(id) || charged !== 0)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
}

/** Formats a question as JSON, or as the id of its collection. */
export const formatQuestionJson = ({ filters, collectionId }: Pick<Gathering, 'filters' | 'collectionId'>): string =>
  collectionId === null ? toCanonicalJson(filters ?? {}) : `collection ${collectionId}`;

/** Formats a question for people, for example `countries: US; active: true (in 3 parts)`. */
export function formatQuestion(gathering: Pick<Gathering, 'filters' | 'collectionId' | 'parts'>): string {
  const { filters, collectionId, parts } = gathering;
  if (collectionId !== null) return `collection ${collectionId}`;
  const filterTexts = Object.entries(filters ?? {}).map(([key, value]) => `${key}: ${formatFilterValue(value)}`);
  return `${filterTexts.join('; ') || 'all ads'}${parts.length > 0 ? ` (in ${formatCount(parts.length, 'part')})` : ''}`;
}

function formatFilterValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatFilterValue).join(', ');
  return typeof value === 'object' && value !== null ? toCanonicalJson(value) : String(value);
}

/** The differences between two gatherings of a question. All lists hold ids of ads. */
export interface Differences {
  newIds: string[];
  /**
   * Ids of ads whose content changed since the earlier gathering read them, even if another call saw the change first.
   */
  updatedIds: string[];
  goneIds: string[];
  /** How many of the ads in both gatherings have a counter of the service that rose or fell. */
  counters: CounterChanges;
}

/** For each counter, the number of ads for which it rose and fell. */
export type CounterChanges = Partial<Record<Counter, { rose: number; fell: number }>>;

/** Returns the last complete gathering of the same question before this one. */
export function findPreviousComplete(gathering: Gathering, contents: DatasetContents): Gathering | undefined {
  const { question, order } = gathering;
  const earlier = contents.gatherings.filter((other) => other.question === question && other.order < order);
  return earlier.findLast(({ complete }) => complete);
}

/** Compares a gathering with an earlier one of the same question. */
export function compareGatherings(before: Gathering, gathering: Gathering, contents: DatasetContents): Differences {
  const { adIds: ids } = gathering;
  const read = contents.ads.filter(({ id }) => ids.has(normalizeAdId(id)));
  const orders = findLastAnswers(before);
  const updated: StoredItem[] = [];
  const counters: CounterChanges = {};
  for (const item of read) {
    const order = orders.get(normalizeAdId(item.id));
    // An ad that was evicted and read again has lost its old version, so a change cannot be detected.
    if (order === undefined || item.firstOrder > order) continue;
    const then = findVersionAt(order, item);
    if (then === undefined || !hasSameContent(then, item)) updated.push(item);
    if (then !== undefined && then !== item) addCounterChanges(counters, readCounts(then), readCounts(item));
  }
  return {
    newIds: listIds(read.filter(({ id }) => !orders.has(normalizeAdId(id)))),
    updatedIds: listIds(updated),
    goneIds: [...orders.keys()].filter((id) => !ids.has(id)),
    counters,
  };
}

function addCounterChanges(counters: CounterChanges, before: CounterValues, now: CounterValues): void {
  for (const name of counterNames) {
    const difference = (now[name] ?? Number.NaN) - (before[name] ?? Number.NaN);
    if (difference === 0 || Number.isNaN(difference)) continue;
    const { rose, fell } = counters[name] ?? { rose: 0, fell: 0 };
    counters[name] = difference > 0 ? { rose: rose + 1, fell } : { rose, fell: fell + 1 };
  }
}

/**
 * Formats changed counters: `The service's counters: duplicates rose for 6 and fell for 1; reach rose for 12.` Returns
 * an empty text if no counter changed.
 */
export function formatCounterChanges(counters: CounterChanges): string {
  const parts = Object.entries(counters).map(([name, { rose, fell }]) => {
    const moves = [rose > 0 && `rose for ${formatNumber(rose)}`, fell > 0 && `fell for ${formatNumber(fell)}`];
    return `${name} ${moves.filter(Boolean).join(' and ')}`;
  });
  return parts.length === 0 ? '' : `The service's counters: ${parts.join('; ')}.`;
}

const listIds = (ads: readonly StoredItem[]): string[] => ads.map(({ id }) => id);
