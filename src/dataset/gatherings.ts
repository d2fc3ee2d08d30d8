import { hash } from 'node:crypto';
import { toCanonicalJson } from '../api/json.ts';
import { type DatasetContents, type Gathering, type GatheringState, normalizeAdId } from '../storage/dataset.ts';
import { findVersionAt, hasSameContent, readVersionCounters, type StoredItem } from '../storage/item-versions.ts';
import { type CounterName, type CounterValues, counterNames } from '../views/ad-changes.ts';
import { dayMs } from '../views/durations.ts';
import { formatCount, formatNumber, roundCredits, sumNumbers } from '../views/numbers.ts';

type Filters = Readonly<Record<string, unknown>>;

/**
 * A query for ads: either a search with `filters`, or a collection. `split` divides a search into parts (smaller
 * searches), each with additional filters. Results and messages call a query a "question".
 */
export interface AdQuery {
  filters?: Filters | undefined;
  split?: readonly Filters[] | undefined;
  collectionId?: string | undefined;
}

/** Returns a key that identifies a query. The order of the filters does not affect the key. */
export const getAdQueryKey = ({ filters = {}, split, collectionId }: AdQuery): string =>
  hash('sha256', toCanonicalJson([filters, split ?? null, collectionId?.toLowerCase() ?? null]), 'base64url');

const listPartQueries = ({ filters = {}, split, collectionId }: AdQuery): AdQuery[] =>
  split?.map((part) => ({ filters: { ...filters, ...part } })) ?? [{ filters, collectionId }];

/**
 * Removes duplicate parts from a split search. A part is a smaller search. Two parts are duplicates if they have equal
 * filters.
 */
export function removeDuplicateParts(adQuery: AdQuery): AdQuery {
  const partKeys = listPartQueries(adQuery).map(getAdQueryKey);
  const split = adQuery.split?.filter((_, index) => partKeys.indexOf(partKeys[index] ?? '') === index);
  return { ...adQuery, split };
}

/**
 * Creates the state of a new gathering (the stored ads of one search). The id is a hash of the search and the sequence
 * number, so two processes that start the same gathering create the same id.
 * @param startedAt time at which the gathering starts, in milliseconds since the Unix epoch
 * @param sequenceNumber higher than the sequence numbers of all earlier gatherings
 */
export function createGathering(
  adQuery: AdQuery,
  startedAt: number,
  sequenceNumber = startedAt,
  isFresh = false,
): GatheringState {
  const queryKey = getAdQueryKey(adQuery);
  const { filters = {}, split, collectionId = null } = adQuery;
  return {
    id: `g${hash('sha256', `${queryKey} ${sequenceNumber}`).slice(0, 10)}`,
    questionKey: queryKey,
    filters: collectionId === null ? { ...filters, ...(split && { split }) } : null,
    collectionId,
    isFresh,
    partGatheringIds: [],
    matchingCount: null,
    listedCount: 0,
    chargedCredits: 0,
    isStuck: false,
    hasReadLastPage: false,
    cursor: null,
    sequenceNumber,
    stepNumber: 0,
    responseSequenceNumber: 0,
    startedAt,
    gatheredAt: startedAt,
  };
}

/** One of the smaller searches into which a split search is divided, with the progress of reading its ads. */
export interface GatheringPart {
  adQuery: AdQuery;
  state: GatheringState;
  /** The stored ads of this part. Undefined if no ads are stored. */
  storedGathering: Gathering | undefined;
}

/**
 * Returns the newest gathering (the stored ads) of a search. If there is none, creates an empty gathering in memory.
 * Also returns the progress of each part (smaller search). A search without `split` has a single part.
 * @param shouldStartOver true to create a new gathering even if an earlier one exists
 */
export function findOrCreateGathering(
  adQuery: AdQuery,
  contents: DatasetContents,
  shouldStartOver: boolean,
  now: number,
) {
  const [newestGathering] = shouldStartOver ? [] : findGatherings(contents, adQuery);
  // A new gathering must sort after all other gatherings, even after gatherings of processes whose clocks are ahead.
  const sequenceNumber = contents.gatherings.reduce(
    (nextSequenceNumber, gathering) => Math.max(nextSequenceNumber, gathering.sequenceNumber + 1),
    now,
  );
  const state = newestGathering
    ? newestGathering.state
    : createGathering(adQuery, now, sequenceNumber, shouldStartOver);
  if (adQuery.split === undefined)
    return { gathering: state, parts: [{ adQuery, state, storedGathering: newestGathering }] };
  const parts = listPartQueries(adQuery).map((part) => findPartState(part, state, contents, now));
  const partIds = parts.map((part) => part.state.id);
  const hasOtherParts = state.hasReadLastPage && state.partGatheringIds.join() !== partIds.join();
  const currentState = hasOtherParts ? createGathering(adQuery, now, sequenceNumber) : state;
  return {
    gathering: {
      ...currentState,
      partGatheringIds: partIds,
      hasReadLastPage: currentState.hasReadLastPage && parts.every((part) => part.state.hasReadLastPage),
    },
    parts,
  };
}

/**
 * Determines the gathering (stored ads) from which to continue reading one part (smaller search) of a split search.
 * Uses the first that exists:
 *
 * - a complete gathering of the part, regardless of its age
 * - the gathering that the whole search started for the part
 * - the newest gathering of the part
 *
 * With `fresh`, gatherings older than the whole search are ignored. If none exists, starts a new gathering.
 */
function findPartState(
  adQuery: AdQuery,
  wholeGathering: GatheringState,
  contents: DatasetContents,
  now: number,
): GatheringPart {
  const { isFresh, sequenceNumber, startedAt, partGatheringIds: partIds } = wholeGathering;
  const candidates = findGatherings(contents, adQuery).filter(
    (gathering) => !isFresh || gathering.sequenceNumber >= sequenceNumber,
  );
  const storedGathering =
    candidates.find(({ isComplete }) => isComplete) ??
    candidates.find(({ id }) => partIds.includes(id)) ??
    candidates[0];
  const newState = () => createGathering(adQuery, isFresh ? startedAt : now, sequenceNumber, isFresh);
  return { adQuery, state: storedGathering ? storedGathering.state : newState(), storedGathering };
}

/** Returns the query of a gathering: the search or the collection whose ads the gathering contains. */
export function getAdQuery({ filters, collectionId, partGatheringIds }: Gathering): AdQuery {
  if (collectionId !== null) return { collectionId };
  if (partGatheringIds.length === 0) return { filters: filters ?? {} };
  const { split, ...commonFilters } = filters ?? {};
  return { filters: commonFilters, split: split as readonly Filters[] };
}

/**
 * Returns all gatherings of a query, newest first. Each gathering contains the ads that matched when the query was
 * read.
 */
export const findGatherings = ({ gatherings }: DatasetContents, adQuery: AdQuery): Gathering[] => {
  const queryKey = getAdQueryKey(adQuery);
  return gatherings.filter((gathering) => gathering.questionKey === queryKey).reverse();
};

/**
 * Returns the newest complete gathering (the stored ads) of a broader search. A search for `{countries: ["US"]}` is
 * broader than a search for `{countries: ["US"], active: true}`, so it finds all ads of the narrower search.
 */
export function findBroaderGathering(
  { gatherings }: Pick<DatasetContents, 'gatherings'>,
  adQuery: AdQuery,
): Gathering | undefined {
  const { filters = {}, collectionId } = adQuery;
  if (collectionId !== undefined) return undefined;
  const queryKey = getAdQueryKey(adQuery);
  return gatherings.findLast((gathering) => gathering.questionKey !== queryKey && hasAllMatches(gathering, filters));
}

/** Filters that change only the order of the ads. Searches that differ only in these filters find the same ads. */
const sortingFilterKeys = new Set(['sort', 'order']);

/**
 * Returns true if a gathering (the stored ads of a search) contains all ads that match `filters`. This is the case if
 * the gathering is complete and `filters` includes all filters of the gathering with the same values. A split search
 * never counts, because it contains only the ads of its parts.
 */
function hasAllMatches(
  { isComplete, filters: gatheringFilters, partGatheringIds }: Gathering,
  filters: Readonly<Record<string, unknown>>,
) {
  if (!isComplete || gatheringFilters === null || partGatheringIds.length > 0) return false;
  return Object.entries(gatheringFilters).every(
    ([name, value]) =>
      sortingFilterKeys.has(name) ||
      (Object.hasOwn(filters, name) && toCanonicalJson(filters[name]) === toCanonicalJson(value)),
  );
}

/** Returns the newest gathering (the stored ads) of each search. */
export const selectNewestGatherings = ({ gatherings }: Pick<DatasetContents, 'gatherings'>): Gathering[] => [
  ...new Map(gatherings.map((gathering) => [gathering.questionKey, gathering])).values(),
];

/**
 * Returns the newest complete gathering (stored result) of each search. These gatherings contain the ads that the
 * service listed most recently. Two kinds of gatherings are omitted:
 *
 * - gatherings that are older than a complete gathering of a broader search, or of the same search in another order.
 *   Otherwise, ads that the service no longer lists would count as current.
 * - gatherings of a split search, if one of its parts (smaller searches) was read again or is omitted. The gatherings
 *   of the other parts are still returned.
 */
export function selectCurrentGatherings({ gatherings }: Pick<DatasetContents, 'gatherings'>): Gathering[] {
  const newestByQuery = new Map(
    gatherings.filter(({ isComplete }) => isComplete).map((gathering) => [gathering.questionKey, gathering]),
  );
  const isNewestOfQuery = (gathering: Gathering) => newestByQuery.get(gathering.questionKey) === gathering;
  const candidates = [...newestByQuery.values()].filter(({ storedParts }) => storedParts.every(isNewestOfQuery));
  // Only a gathering without parts can contain all matches of another search. Leaving out split searches here matters
  // if a key has stored hundreds of them: otherwise, each part would be compared with all of them, which takes seconds.
  const unsplitCandidates = candidates.filter(({ partGatheringIds }) => partGatheringIds.length === 0);
  const isReplaced = ({ filters, gatheredAt, storedParts }: Gathering): boolean =>
    storedParts.length > 0
      ? storedParts.some(isReplaced)
      : filters !== null &&
        unsplitCandidates.some((newer) => getFirstReadingTime(newer) > gatheredAt && hasAllMatches(newer, filters));
  return candidates.filter((gathering) => !isReplaced(gathering));
}

/**
 * Counts the ads that do not belong to the newest gathering (the stored ads) of any search, e.g. ads that only the
 * `search_ads` tool returned. Returns 0 if the dataset has no gatherings.
 */
export function countAdsOutsideGatherings(contents: DatasetContents): number {
  if (contents.gatherings.length === 0) return 0;
  const gatheredIds = new Set(selectNewestGatherings(contents).flatMap(({ adIds }) => [...adIds]));
  return contents.ads.filter(({ id }) => !gatheredIds.has(normalizeAdId(id))).length;
}

/** Counts the ads of the dataset that belong to at least one gathering (the stored ads of one search). */
export function countGatheredAds({ ads, gatherings }: Pick<DatasetContents, 'ads' | 'gatherings'>): number {
  const gatheredIds = new Set(gatherings.flatMap(({ adIds }) => [...adIds]));
  return ads.filter(({ id }) => gatheredIds.has(normalizeAdId(id))).length;
}

/**
 * Adds up the credits that the service charged for all gatherings (the stored ads of each search). The sum is exact if
 * the service reported every charge and no gathering was evicted.
 */
export function sumGatheringCharges({
  gatherings,
  evictedCounts,
}: Pick<DatasetContents, 'gatherings' | 'evictedCounts'>) {
  const charges = gatherings.map(({ chargedCredits }) => chargedCredits);
  const isExact = evictedCounts.gatherings === 0 && !charges.includes(null);
  return { credits: roundCredits(sumNumbers(charges.map((chargedCredits) => chargedCredits ?? 0))), isExact };
}

/**
 * Returns the gatherings in which the ad ids are stored. For a split search, these are the gatherings of its parts
 * (smaller searches). For any other search, it is the gathering itself.
 */
const listGatheringsWithAdIds = (gathering: Gathering): readonly Gathering[] =>
  gathering.partGatheringIds.length === 0 ? [gathering] : gathering.storedParts;

/**
 * Returns the time at which the service sent the oldest page of a gathering, in milliseconds since the Unix epoch. For
 * a split search, this is the time of the part (smaller search) that was begun first. The time can be months before
 * `gatheredAt`, because `gather_ads` continues an unfinished gathering of any age.
 */
export const getFirstReadingTime = (gathering: Gathering): number =>
  Math.min(gathering.gatheredAt, ...listGatheringsWithAdIds(gathering).map(({ startedAt }) => startedAt));

/**
 * Returns true if the first page of a gathering was read more than a day before its last page. New ads may then be
 * missing, although all pages were read.
 */
export const hasOutdatedPages = (gathering: Gathering): boolean =>
  gathering.gatheredAt - getFirstReadingTime(gathering) > dayMs;

/**
 * Formats the number of ads that match a split search if only some of its parts (smaller searches) report a total, e.g.
 * `90 found in 2 of 3 parts`. Returns undefined in all other cases.
 */
export function formatSplitMatchingCount({
  matchingCount,
  partGatheringIds,
  storedParts,
}: Gathering): string | undefined {
  const partTotals = storedParts.flatMap((part) => part.matchingCount ?? []);
  if (matchingCount !== null || partTotals.length === 0) return undefined;
  return `${formatNumber(sumNumbers(partTotals))} found in ${partTotals.length} of ${partGatheringIds.length} parts`;
}

/**
 * Returns the number of ads that the total `matchingCount` counts repeatedly, because the ads match several parts
 * (smaller searches) of a split search.
 */
export const countAdRepetitions = ({ storedParts, adIds }: Gathering): number =>
  storedParts.length < 2 ? 0 : sumNumbers(storedParts.map((part) => part.adIds.size)) - adIds.size;

/** Returns the number of ads that the service counted but did not list. Returns 0 unless all pages were read. */
export const countUnlistedAds = (gathering: Gathering): number =>
  gathering.hasReadLastPage
    ? sumNumbers(
        listGatheringsWithAdIds(gathering).map((part) => Math.max(0, (part.matchingCount ?? 0) - part.listedCount)),
      )
    : 0;

/**
 * Returns true if all pages of a search were read and the ids of all listed ads are still stored, even if the ads
 * themselves were evicted.
 */
export const hasAllAdIds = (gathering: Gathering): boolean =>
  gathering.hasReadLastPage &&
  gathering.storedParts.length === new Set(gathering.partGatheringIds).size &&
  listGatheringsWithAdIds(gathering).every(
    ({ hasReadLastPage, adIds, listedCount }) => hasReadLastPage && adIds.size >= listedCount,
  );

/**
 * Returns, for each ad in a gathering (the stored ads of one search), the sequence number of the latest API response
 * that may have contained the ad. The keys are ad ids in lower case.
 */
export function findLastResponseSequenceNumbers(gathering: Gathering): ReadonlyMap<string, number> {
  const lastSequenceNumbers = new Map<string, number>();
  for (const { adIds, responseSequenceNumber } of listGatheringsWithAdIds(gathering))
    for (const id of adIds)
      lastSequenceNumbers.set(id, Math.max(responseSequenceNumber, lastSequenceNumbers.get(id) ?? 0));
  return lastSequenceNumbers;
}

/** A period of time, from `from` to `to`, both in milliseconds since the Unix epoch. */
interface Period {
  from: number;
  to: number;
}

/** Returns the period in which all stored searches were read, or undefined if no search is stored. */
export function getReadingPeriod({ gatherings }: Pick<DatasetContents, 'gatherings'>): Period | undefined {
  if (gatherings.length === 0) return undefined;
  const period = { from: Number.POSITIVE_INFINITY, to: 0 };
  // Use `state.gatheredAt`, which is the time of the last response. The `gatheredAt` property of a split search is the
  // time of its oldest part (smaller search).
  for (const { startedAt, state } of gatherings) {
    period.from = Math.min(period.from, startedAt, state.gatheredAt);
    period.to = Math.max(period.to, state.gatheredAt);
  }
  return period;
}

/**
 * Returns the times up to which the launches of ads are known, in milliseconds since the Unix epoch:
 *
 * - `completeUntil`: launches before this time are known for all searches. It is the earliest of the times at which
 *   the first page of each search was last read.
 * - `partialUntil`: the time of the latest API response. Between the two times, launches are known only for searches
 *   that were read again.
 *
 * Without any stored search, both are the time of the latest API response. Returns undefined for an empty dataset.
 */
export function getLaunchCoverage(contents: Pick<DatasetContents, 'gatherings' | 'ads'>) {
  const unsplitGatherings = contents.gatherings.filter(({ partGatheringIds }) => partGatheringIds.length === 0);
  const latestResponseAt = [
    ...unsplitGatherings.map(({ gatheredAt }) => gatheredAt),
    ...contents.ads.map(({ at }) => at),
  ].reduce((latest, time) => Math.max(latest, time), Number.NEGATIVE_INFINITY);
  if (latestResponseAt === Number.NEGATIVE_INFINITY) return undefined;
  const earliestReadingAt = selectNewestGatherings({ gatherings: unsplitGatherings }).reduce(
    (earliest, gathering) => Math.min(earliest, getFirstReadingTime(gathering)),
    latestResponseAt,
  );
  return { completeUntil: earliestReadingAt, partialUntil: latestResponseAt };
}

/**
 * Returns the newest gathering (the stored ads) of each search, newest first. A split search counts once. A part
 * (smaller search) of a split search is included only if the part was also charged separately.
 */
export function selectPaidGatherings(contents: DatasetContents): Gathering[] {
  const newestGatherings = selectNewestGatherings(contents);
  const partIds = new Set(newestGatherings.flatMap((gathering) => gathering.partGatheringIds));
  return newestGatherings
    .filter(({ id, chargedCredits }) => !partIds.has(id) || chargedCredits !== 0)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);
}

/**
 * Returns all gatherings (the stored ads of each search) except those that a split search read as its parts (smaller
 * searches). A part is included only if it was also charged separately.
 */
export function omitPartsOfSplits({ gatherings }: Pick<DatasetContents, 'gatherings'>): Gathering[] {
  const partIds = new Set(gatherings.flatMap((gathering) => gathering.partGatheringIds));
  return gatherings.filter(({ id, chargedCredits }) => !partIds.has(id) || chargedCredits !== 0);
}

/** Formats a search as JSON, e.g. `{"countries":["US"]}`, or a collection as text, e.g. `collection 12`. */
export const formatAdQueryJson = ({ filters, collectionId }: Pick<Gathering, 'filters' | 'collectionId'>): string =>
  collectionId === null ? toCanonicalJson(filters ?? {}) : `collection ${collectionId}`;

/** Formats a search or collection for people, e.g. `countries: US; active: true (in 3 parts)`. */
export function formatAdQuery(gathering: Pick<Gathering, 'filters' | 'collectionId' | 'partGatheringIds'>): string {
  const { filters, collectionId, partGatheringIds } = gathering;
  if (collectionId !== null) return `collection ${collectionId}`;
  const filterTexts = Object.entries(filters ?? {}).map(([key, value]) => `${key}: ${formatFilterValue(value)}`);
  return `${filterTexts.join('; ') || 'all ads'}${partGatheringIds.length > 0 ? ` (in ${formatCount(partGatheringIds.length, 'part')})` : ''}`;
}

function formatFilterValue(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatFilterValue).join(', ');
  return typeof value === 'object' && value !== null ? toCanonicalJson(value) : String(value);
}

/** The differences between two gatherings of the same search, which were read at different times. */
export interface GatheringDifferences {
  /** The ids of the ads that only the later gathering contains. */
  newIds: string[];
  /** The ads whose content changed after the earlier gathering was read, whichever tool call noticed the change. */
  updatedIds: string[];
  /** The ids of the ads that only the earlier gathering contains. */
  goneIds: string[];
  /** The changes of counters, such as reach, among the ads that belong to both gatherings. */
  counterChanges: CounterChanges;
}

/**
 * For each counter of the service, such as reach: the number of ads whose counter rose, and the number of ads whose
 * counter fell.
 */
export type CounterChanges = Partial<Record<CounterName, { rose: number; fell: number }>>;

/** Returns the latest complete gathering (the stored ads) of the same search that was read before this gathering. */
export function findPreviousCompleteGathering(gathering: Gathering, contents: DatasetContents): Gathering | undefined {
  const { questionKey, sequenceNumber } = gathering;
  const earlierGatherings = contents.gatherings.filter(
    (otherGathering) => otherGathering.questionKey === questionKey && otherGathering.sequenceNumber < sequenceNumber,
  );
  return earlierGatherings.findLast(({ isComplete }) => isComplete);
}

/**
 * Compares two gatherings (the stored ads at two times) of the same search. Returns the new, changed and gone ads, and
 * the changes of counters such as reach.
 */
export function compareGatherings(
  earlierGathering: Gathering,
  gathering: Gathering,
  contents: DatasetContents,
): GatheringDifferences {
  const { adIds: ids } = gathering;
  const gatheredItems = contents.ads.filter(({ id }) => ids.has(normalizeAdId(id)));
  const lastSequenceNumbers = findLastResponseSequenceNumbers(earlierGathering);
  const updatedItems: StoredItem[] = [];
  const counterChanges: CounterChanges = {};
  for (const item of gatheredItems) {
    const lastSequenceNumber = lastSequenceNumbers.get(normalizeAdId(item.id));
    // If an ad was evicted and read again, its earlier versions are lost. Skip such an ad, because its changes are
    // unknown.
    if (lastSequenceNumber === undefined || item.firstSequenceNumber > lastSequenceNumber) continue;
    const earlierVersion = findVersionAt(lastSequenceNumber, item);
    if (earlierVersion === undefined || !hasSameContent(earlierVersion, item)) updatedItems.push(item);
    if (earlierVersion !== undefined && earlierVersion !== item)
      addCounterChanges(counterChanges, readVersionCounters(earlierVersion), readVersionCounters(item));
  }
  return {
    newIds: listIds(gatheredItems.filter(({ id }) => !lastSequenceNumbers.has(normalizeAdId(id)))),
    updatedIds: listIds(updatedItems),
    goneIds: [...lastSequenceNumbers.keys()].filter((id) => !ids.has(id)),
    counterChanges,
  };
}

function addCounterChanges(
  counterChanges: CounterChanges,
  earlierValues: CounterValues,
  currentValues: CounterValues,
): void {
  for (const name of counterNames) {
    const difference = (currentValues[name] ?? Number.NaN) - (earlierValues[name] ?? Number.NaN);
    if (difference === 0 || Number.isNaN(difference)) continue;
    const { rose, fell } = counterChanges[name] ?? { rose: 0, fell: 0 };
    counterChanges[name] = difference > 0 ? { rose: rose + 1, fell } : { rose, fell: fell + 1 };
  }
}

/**
 * Formats changes of counters, e.g. `The service's counters: duplicates rose for 6 and fell for 1; reach rose for 12.`
 * Returns an empty string if no counter changed.
 */
export function formatCounterChanges(counterChanges: CounterChanges): string {
  const counterTexts = Object.entries(counterChanges).map(([name, { rose, fell }]) => {
    const changeTexts = [rose > 0 && `rose for ${formatNumber(rose)}`, fell > 0 && `fell for ${formatNumber(fell)}`];
    return `${name} ${changeTexts.filter(Boolean).join(' and ')}`;
  });
  return counterTexts.length === 0 ? '' : `The service's counters: ${counterTexts.join('; ')}.`;
}

const listIds = (ads: readonly StoredItem[]): string[] => ads.map(({ id }) => id);
