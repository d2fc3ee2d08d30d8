import { hash } from 'node:crypto';
import { canonical } from '../api/json.ts';
import { roundCredits } from '../credits/credit-text.ts';
import { type DatasetContents, type Gathering, type GatheringState, normalizeAdId, sumOf } from '../storage/dataset.ts';
import { findVersionAt, hasSameContent, readCounts, type StoredItem } from '../storage/item-versions.ts';
import { type Counter, type CounterValues, counterNames } from '../views/ad-changes.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';

type Filters = Readonly<Record<string, unknown>>;

export interface GatheringQuestion {
  filters?: Filters | undefined;
  split?: readonly Filters[] | undefined;
  collectionId?: string | undefined;
}

/** Equal for the same question, whatever the order of its filters. */
export const getQuestionKey = ({ filters = {}, split, collectionId }: GatheringQuestion): string =>
  hash('sha256', canonical([filters, split ?? null, collectionId?.toLowerCase() ?? null]), 'base64url');

const partsOfQuestion = ({ filters = {}, split, collectionId }: GatheringQuestion): GatheringQuestion[] =>
  split?.map((part) => ({ filters: { ...filters, ...part } })) ?? [{ filters, collectionId }];

export function removeDuplicateParts(question: GatheringQuestion): GatheringQuestion {
  const keys = partsOfQuestion(question).map(getQuestionKey);
  const split = question.split?.filter((_, index) => keys.indexOf(keys[index] ?? '') === index);
  return { ...question, split };
}

/** Two gatherings of a question that start at the same place in the order of the dataset are one. */
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

export interface GatheringPart {
  question: GatheringQuestion;
  state: GatheringState;
  /** What there is of it. */
  stored: Gathering | undefined;
}

/** @returns the gathering, which without `split` is its only part, and where it goes on in each of its parts */
export function openGathering(question: GatheringQuestion, contents: DatasetContents, fresh: boolean, now: number) {
  const [newest] = fresh ? [] : findGatherings(contents, question);
  // Later than all others, even if those began by a clock that was fast.
  const order = contents.gatherings.reduce((next, one) => Math.max(next, one.order + 1), now);
  const state = newest ? newest.state : createGathering(question, now, order, fresh);
  if (question.split === undefined) return { gathering: state, parts: [{ question, state, stored: newest }] };
  const parts = partsOfQuestion(question).map((part) => partOf(part, state, contents));
  const ids = parts.map((part) => part.state.id);
  const hasOthers = state.ended && state.parts.join() !== ids.join();
  const current = hasOthers ? createGathering(question, now, order) : state;
  return {
    gathering: { ...current, parts: ids, ended: current.ended && parts.every((part) => part.state.ended) },
    parts,
  };
}

/**
 * Where a part continues: with a complete gathering of the part, of any age, or otherwise with what the whole gathering
 * has begun. A gathering with `fresh` takes nothing that began before it.
 */
function partOf(question: GatheringQuestion, all: GatheringState, contents: DatasetContents): GatheringPart {
  const { fresh, order, startedAt, parts } = all;
  const begun = findGatherings(contents, question).filter((one) => !fresh || one.order >= order);
  const stored = begun.find(({ complete }) => complete) ?? begun.find(({ id }) => parts.includes(id)) ?? begun[0];
  return { question, state: stored ? stored.state : createGathering(question, startedAt, order, fresh), stored };
}

export const findGatherings = ({ gatherings }: DatasetContents, question: GatheringQuestion): Gathering[] => {
  const key = getQuestionKey(question);
  return gatherings.filter((gathering) => gathering.question === key).reverse();
};

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

/** How many ads came from searches or earlier gatherings only; 0 where nothing was gathered. */
export function countAdsOutsideGatherings(contents: DatasetContents): number {
  if (contents.gatherings.length === 0) return 0;
  const inside = new Set(selectNewestGatherings(contents).flatMap(({ adIds }) => [...adIds]));
  return contents.ads.filter(({ id }) => !inside.has(normalizeAdId(id))).length;
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

const partsRead = (gathering: Gathering): readonly Gathering[] =>
  gathering.parts.length === 0 ? [gathering] : gathering.storedParts;

/** The total in words, where it is known of some parts only. */
export function formatFoundInParts({ found, parts, storedParts }: Gathering): string | undefined {
  const totals = storedParts.flatMap((part) => part.found ?? []);
  if (found !== null || totals.length === 0) return undefined;
  return `${formatNumber(sumOf(totals))} found in ${totals.length} of ${parts.length} parts`;
}

/** Returns how often parts of a gathering list an ad that another part lists, too: `found` counts such an ad again. */
export const countRepeats = ({ storedParts, adIds }: Gathering): number =>
  storedParts.length < 2 ? 0 : sumOf(storedParts.map((part) => part.adIds.size)) - adIds.size;

/** How many ads the service counts and did not list while they were read, although its last page was reached. */
export const countUnlistedAds = (gathering: Gathering): number =>
  gathering.ended ? sumOf(partsRead(gathering).map((part) => Math.max(0, (part.found ?? 0) - part.listed))) : 0;

/** Whether all listed ids are still known, even if some of their ads were evicted. */
export const hasAllIds = (gathering: Gathering): boolean =>
  gathering.ended &&
  gathering.storedParts.length === new Set(gathering.parts).size &&
  partsRead(gathering).every(({ ended, adIds, listed }) => ended && adIds.size >= listed);

/** By ids, as `normalizeAdId` writes them: the number of the last answer that may have held the ad. */
export function findLastAnswers(gathering: Gathering): ReadonlyMap<string, number> {
  const orders = new Map<string, number>();
  for (const { adIds, answerOrder } of partsRead(gathering))
    for (const id of adIds) orders.set(id, Math.max(answerOrder, orders.get(id) ?? 0));
  return orders;
}

/** Times in milliseconds since the epoch. */
interface Period {
  from: number;
  to: number;
}

/** Returns when gatherings read their ads, from the first to the last reading; undefined if nothing was gathered. */
export function getReadingPeriod({ gatherings }: Pick<DatasetContents, 'gatherings'>): Period | undefined {
  if (gatherings.length === 0) return undefined;
  const period = { from: Number.POSITIVE_INFINITY, to: 0 };
  // A gathering of several parts has the time of its oldest part.
  for (const { startedAt, state } of gatherings) {
    period.from = Math.min(period.from, startedAt);
    period.to = Math.max(period.to, state.gatheredAt);
  }
  return period;
}

/**
 * Returns up to when the launches of ads are known, as milliseconds since the epoch: `complete`, the earliest time at
 * which a question was last read, and `partial`, when the last answer came. Between the two, the launches are missing of
 * all questions that were not read again. Without gatherings, both are the time of the last answer. Undefined for an
 * empty dataset.
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

/** The newest gatherings, the newest first. A part of another one stands for itself only if it was paid for by itself. */
export function selectPaidGatherings(contents: DatasetContents): Gathering[] {
  const newest = selectNewestGatherings(contents);
  const parts = new Set(newest.flatMap((gathering) => gathering.parts));
  return newest
    .filter(({ id, charged }) => !parts.has(id) || charged !== 0)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
}

export const formatQuestionJson = ({ filters, collectionId }: Pick<Gathering, 'filters' | 'collectionId'>): string =>
  collectionId === null ? canonical(filters ?? {}) : `collection ${collectionId}`;

/** `countries: US; active: true`, and into how many parts it was split. */
export function formatQuestion(gathering: Pick<Gathering, 'filters' | 'collectionId' | 'parts'>): string {
  const { filters, collectionId, parts } = gathering;
  if (collectionId !== null) return `collection ${collectionId}`;
  const each = Object.entries(filters ?? {}).map(([key, value]) => `${key}: ${valueText(value)}`);
  return `${each.join('; ') || 'all ads'}${parts.length > 0 ? ` (in ${formatCount(parts.length, 'part')})` : ''}`;
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(', ');
  return typeof value === 'object' && value !== null ? canonical(value) : String(value);
}

export interface Differences {
  newIds: string[];
  /** Ads whose content has changed since the earlier gathering read them, even if another call saw the change first. */
  updatedIds: string[];
  goneIds: string[];
  /** How many of the ads in both gatherings have a counter of the service that rose or fell. */
  counters: CounterChanges;
}

export type CounterChanges = Partial<Record<Counter, { rose: number; fell: number }>>;

export function findPreviousComplete(gathering: Gathering, contents: DatasetContents): Gathering | undefined {
  const { question, order } = gathering;
  const earlier = contents.gatherings.filter((other) => other.question === question && other.order < order);
  return earlier.findLast(({ complete }) => complete);
}

export function compareGatherings(before: Gathering, gathering: Gathering, contents: DatasetContents): Differences {
  const { adIds: ids } = gathering;
  const read = contents.ads.filter(({ id }) => ids.has(normalizeAdId(id)));
  const orders = findLastAnswers(before);
  const updated: StoredItem[] = [];
  const counters: CounterChanges = {};
  for (const item of read) {
    const order = orders.get(normalizeAdId(item.id));
    // The content of an ad that was evicted in between is unknown.
    if (order === undefined || item.firstOrder > order) continue;
    const then = findVersionAt(order, item);
    if (then === undefined || !hasSameContent(then, item)) updated.push(item);
    if (then !== undefined && then !== item) addCounterChanges(counters, readCounts(then), readCounts(item));
  }
  return {
    newIds: idsOf(read.filter(({ id }) => !orders.has(normalizeAdId(id)))),
    updatedIds: idsOf(updated),
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

/** Writes `The service's counters: duplicates rose for 6 and fell for 1; reach rose for 12.` Empty without any change. */
export function formatCounterChanges(counters: CounterChanges): string {
  const parts = Object.entries(counters).map(([name, { rose, fell }]) => {
    const moves = [rose > 0 && `rose for ${formatNumber(rose)}`, fell > 0 && `fell for ${formatNumber(fell)}`];
    return `${name} ${moves.filter(Boolean).join(' and ')}`;
  });
  return parts.length === 0 ? '' : `The service's counters: ${parts.join('; ')}.`;
}

const idsOf = (ads: readonly StoredItem[]): string[] => ads.map(({ id }) => id);
