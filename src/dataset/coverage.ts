import * as z from 'zod';
import { toCanonicalJson } from '../api/json.ts';
import { type DatasetContents, type Gathering, normalizeAdId } from '../storage/dataset.ts';
import { formatDay } from '../views/dates.ts';
import type { DataOf } from '../views/fields.ts';
import { groupBy } from '../views/group-by.ts';
import { formatCount, formatNumber, sumNumbers } from '../views/numbers.ts';
import { quote } from '../views/safe-text.ts';
import { sanitizeId, truncateLine } from '../views/tokens.ts';
import { type AdFacts, chartedFields } from './ad-rows.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import {
  type FieldGapAdvertisers,
  formatFieldGaps,
  formatIncompleteGathering,
  formatMixedCurrenciesNote,
  formatOneDayAdvertisersNote,
  formatUnlistedAds,
  type GatheringProgress,
  hasRunningTimeColumn,
  quoteAdvertiserName,
  type RemainingPrice,
} from './coverage-notes.ts';
import {
  countAdRepetitions,
  countAdsOutsideGatherings,
  countUnlistedAds,
  findPreviousCompleteGathering,
  formatAdQueryJson,
  formatSplitMatchingCount,
  getAdQuery,
  getFirstReadingTime,
  selectCurrentGatherings,
  selectNewestGatherings,
} from './gatherings.ts';
import type { ListingOrder } from './listing-order.ts';
import { findOneDayAdvertisers } from './one-day.ts';
import { cleanCell, type StatementFields } from './sql/statement.ts';

/**
 * Schema of a text such as `90 found in 2 of 3 parts`. The text is set only if a search is split into parts (smaller
 * searches) and only some of the parts report a total.
 */
export const SplitMatchingCountText = z
  .string()
  .optional()
  .describe('If found is null: the number of ads in the parts whose number is known, in words.');

/** Schema of an incomplete gathering: a search of which only some of the matching ads were read. */
const IncompleteGatheringView = z
  .looseObject({
    gathering: z.string().describe('Id of the gathering.'),
    about: z.string().describe('Question of the gathering.'),
    found: z.number().nullable().describe('Number of matching ads. null if unknown.'),
    foundInParts: SplitMatchingCountText,
    read: z.number().describe('Number of ads that were read.'),
    removed: z.number().optional().describe('Number of ads that were read and then removed to make room.'),
    repeats: z.number().optional().describe('Number of ads that found counts again, because parts overlap.'),
    gatheredAt: z.string().describe('Day of the gathering.'),
    earlierComplete: z.string().optional().describe('Day of an earlier gathering of this question that is complete.'),
    note: z.string().describe('What was read, what is missing, and the price of the rest, in words.'),
  })
  .meta({ title: 'Partial' });
type IncompleteGatheringView = DataOf<typeof IncompleteGatheringView>;

/** Schema of an advertiser with ads that belong to no completely read search. */
const UncoveredAdvertiserView = z
  .looseObject({
    pageId: z.string().optional().describe('Id of the advertiser page.'),
    pageName: z.string().optional().describe('Name of the advertiser.'),
    ads: z.number().describe('Number of its ads in the dataset.'),
    outside: z.number().describe('Number of its ads that no complete gathering read.'),
  })
  .meta({ title: 'Uncovered' });
type UncoveredAdvertiserView = DataOf<typeof UncoveredAdvertiserView>;

/**
 * Schema of the ads in the `current_ads` SQL view: their number, and the first and last day on which they were read.
 */
const CurrentAdsView = z
  .looseObject({
    ads: z.number().describe('Number of ads.'),
    firstDay: z.string().describe('Day on which the oldest of them was read.'),
    lastDay: z.string().describe('Day on which the newest of them was read.'),
  })
  .meta({ title: 'Current' });

/**
 * Schema of the result field `coverage`, which says which ads and searches a result is based on and which data is
 * missing.
 */
export const CoverageView = z
  .looseObject({
    ads: z.number().describe('Number of ads in the dataset.'),
    gatherings: z.number().describe('Number of gatherings in the dataset.'),
    outsideAds: z.number().optional().describe('Number of ads that only searches or earlier gatherings returned.'),
    current: CurrentAdsView.optional().describe('The ads of the SQL view current_ads.'),
    partial: z.array(IncompleteGatheringView).optional().describe('Gatherings that are not complete, newest first.'),
    morePartial: z.number().optional().describe('Number of further gatherings that are not complete.'),
    uncovered: z
      .array(UncoveredAdvertiserView)
      .optional()
      .describe('Advertisers in the rows that no complete gathering covers.'),
    moreUncovered: z.number().optional().describe('Number of further advertisers that no complete gathering covers.'),
    unlisted: z.number().optional().describe('Number of ads that the service counts and did not list.'),
    removedAds: z.number().optional().describe('Number of ads that were removed to make room.'),
    notes: z.array(z.string()).optional().describe('What the ads cannot support, in words.'),
  })
  .meta({ title: 'Coverage' });
export type CoverageView = DataOf<typeof CoverageView>;

/**
 * Schema of the result field `coverage` for tools that write files. Only the `query_ads` tool describes the fields of
 * `coverage`, to keep the list of tools short.
 */
export const FileCoverageView = z
  .looseObject({})
  .describe('Which ads the file is based on, and what is missing. The fields are as in query_ads.');

/**
 * The input for computing the coverage of a query result. The coverage says which ads the result is based on, and which
 * ads are missing.
 */
export interface CoverageInput {
  contents: DatasetContents;
  /** Facts about all ads of the dataset, by ad id in lower case. */
  adFacts: ReadonlyMap<string, AdFacts>;
  /** The columns and rows of the query result. If undefined, the coverage describes the whole dataset. */
  columns?: readonly string[];
  rows?: readonly (readonly unknown[])[];
  /** The length, in characters, to which longer cells in `rows` were cut. */
  maxCellChars?: number;
  /** The ad fields that each SQL statement reads. The coverage reports which of these fields many ads lack. */
  fieldsByStatement?: readonly StatementFields[];
  /**
   * True if an SQL statement reads the table `pages`. The coverage then says how many of the advertisers this table
   * contains.
   */
  readsPages?: boolean;
  /** The order in which the service listed the ads of each gathering, by gathering id. */
  listingOrders?: ReadonlyMap<string, ListingOrder | undefined>;
  /** The price of reading the remaining ads of each gathering, by gathering id. */
  remainingPrices?: ReadonlyMap<string, RemainingPrice | undefined>;
}

/**
 * The maximum number of incomplete gatherings that the result lists in `partial`. Further gatherings are only counted
 * in `morePartial`.
 */
export const maxListedGatherings = 5;
const maxNamedAdvertisers = 10;
const maxNameTokens = 20;
const maxQueryTokens = 40;

/**
 * Computes the coverage of a query result: the ads on which the result is based, and the ads that are missing. If a
 * search was read several times, only the ads of its latest reading count. The parts (smaller searches) of a split
 * search are not listed separately.
 */
export function buildCoverageView(input: CoverageInput): CoverageView {
  const { contents } = input;
  const { ads, gatherings, evictedCounts } = contents;
  const outsideAds = countAdsOutsideGatherings(contents);
  const current = buildCurrentAdsView(contents);
  const unlisted = sumNumbers(selectTopLevelGatherings(contents).map(countUnlistedAds));
  const incomplete = selectIncompleteGatherings(contents);
  const advertisers = collectAdvertisers(input);
  const { namedAdvertisers: namedAdvertiserKeys, omittedCount } = findUncoveredAdvertisers(input, advertisers);
  const notes = [
    formatUnreadPagesNote(input, advertisers),
    formatOneDayAdvertisersNote(listOneDayAdvertisers(input, advertisers), { hasNames: true }),
    ...(input.fieldsByStatement ?? []).flatMap((statementFields) => [
      formatMixedCurrenciesNote(statementFields),
      formatFieldGaps(statementFields, {
        ...selectFieldGapAdvertisers(statementFields, advertisers),
        getAdvertiserName: advertisers.getAdvertiserName,
      }),
    ]),
  ].filter((note) => note !== undefined);
  return {
    ads: ads.length,
    gatherings: gatherings.length,
    ...(outsideAds > 0 && { outsideAds }),
    ...(current && { current }),
    ...(incomplete.length > 0 && {
      partial: incomplete
        .slice(0, maxListedGatherings)
        .map((gathering) => buildIncompleteGatheringView(gathering, input)),
    }),
    ...(incomplete.length > maxListedGatherings && { morePartial: incomplete.length - maxListedGatherings }),
    ...(namedAdvertiserKeys.length > 0 && { uncovered: namedAdvertiserKeys.map(buildUncoveredAdvertiserView) }),
    ...(omittedCount > 0 && { moreUncovered: omittedCount }),
    ...(unlisted > 0 && { unlisted }),
    ...(evictedCounts.ads > 0 && { removedAds: evictedCounts.ads }),
    ...(notes.length > 0 && { notes: [...new Set(notes)] }),
  };
}

/**
 * Returns the coverage for a result that is not about ads, such as a list of searches. This coverage contains only the
 * number of stored ads and gatherings, because missing ads cannot make such a result wrong.
 */
export const buildCoverageWithoutAds = ({ ads, gatherings }: DatasetContents): CoverageView => ({
  ads: ads.length,
  gatherings: gatherings.length,
});

/**
 * Returns the newest gathering (the stored ads) of each search. Omits the parts (smaller searches) of a split search.
 */
function selectTopLevelGatherings(contents: DatasetContents): Gathering[] {
  const newestGatherings = selectNewestGatherings(contents);
  const partIds = new Set(newestGatherings.flatMap((gathering) => gathering.partGatheringIds));
  return newestGatherings.filter(({ id }) => !partIds.has(id));
}

/**
 * Returns the incomplete gatherings, newest first. A gathering consists of the stored ads of one search, and is
 * incomplete if not all matching ads were read.
 */
export const selectIncompleteGatherings = (contents: DatasetContents): Gathering[] =>
  selectTopLevelGatherings(contents)
    .filter(({ isComplete }) => !isComplete)
    .sort((left, right) => right.gatheredAt - left.gatheredAt);

/**
 * Describes each incomplete gathering among these gatherings, newest first. Unlike `partial` of the coverage, the list
 * has no maximum length.
 */
export const describeIncompleteGatherings = (input: CoverageInput, gatheringIds: ReadonlySet<string>): string[] =>
  selectIncompleteGatherings(input.contents)
    .filter(({ id }) => gatheringIds.has(id))
    .map((gathering) => `${gathering.id}: ${formatIncompleteGathering(computeGatheringProgress(gathering, input))}`);

/**
 * Returns the advertisers whose ads were nearly all last seen on the same day, or none if no SQL statement reads how
 * long ads ran. If the statement or the rows mention advertisers, considers only these advertisers.
 */
function listOneDayAdvertisers({ adFacts, fieldsByStatement = [] }: CoverageInput, { keysInRows }: AdvertiserIndex) {
  const statementFields = fieldsByStatement.find(hasRunningTimeColumn);
  if (statementFields === undefined) return [];
  const advertiserKeys = selectFieldGapAdvertisers(statementFields, { keysInRows }).namedAdvertiserKeys ?? keysInRows;
  const oneDayAdvertisers = [...findOneDayAdvertisers([...adFacts.values()])];
  return oneDayAdvertisers.flatMap(([key, advertiser]) =>
    advertiserKeys && !advertiserKeys.has(key) ? [] : advertiser,
  );
}

/**
 * Says how many of the advertisers with a page id the table `pages` contains, because it has only the advertiser pages
 * that a call has read. Returns undefined if it contains all of them, or if no SQL statement reads this table.
 */
function formatUnreadPagesNote(
  { contents, readsPages }: CoverageInput,
  { advertisersByKey }: Pick<AdvertiserIndex, 'advertisersByKey'>,
): string | undefined {
  if (!readsPages) return undefined;
  const readPageIds = new Set(contents.pages.map(({ id }) => id));
  // Advertisers without a page id can never be in the table.
  const pageIds = [...advertisersByKey.values()].flatMap(({ pageId }) => pageId ?? []);
  const readCount = pageIds.filter((pageId) => readPageIds.has(pageId)).length;
  if (readCount === pageIds.length) return undefined;
  return `The table pages contains ${formatNumber(readCount)} of the ${formatCount(pageIds.length, 'advertiser')} with a page id. To list all advertisers of the ads, group the table ads by pageId and pageName.`;
}

/**
 * Selects the advertisers whose missing field values are reported: the advertisers in the rows of the result, and the
 * advertisers that the SQL statement names. A named advertiser may have no rows because a condition removed exactly its
 * ads that lack a field.
 */
const selectFieldGapAdvertisers = (
  { namedAdvertiserKeys }: StatementFields,
  { keysInRows }: Pick<AdvertiserIndex, 'keysInRows'>,
): FieldGapAdvertisers => ({
  advertiserKeysInRows: keysInRows,
  ...(namedAdvertiserKeys.size > 0 && {
    namedAdvertiserKeys: new Set([...namedAdvertiserKeys, ...(keysInRows ?? [])]),
  }),
});

/**
 * Returns notes on missing data for the caption of a chart. The notes contain no advertiser names, because the font of
 * the chart may lack letters of these names.
 */
export function listCaptionNotes(input: CoverageInput): string[] {
  const incompleteGatherings = selectIncompleteGatherings(input.contents);
  const [newestGathering] = incompleteGatherings;
  const otherCount = incompleteGatherings.length - 1;
  const advertisers = collectAdvertisers(input);
  const notes = [
    newestGathering &&
      formatIncompleteGathering({ ...computeGatheringProgress(newestGathering, input), incompletePartTexts: [] }),
    otherCount > 0 && `${formatCount(otherCount, 'other gathering')} ${otherCount === 1 ? 'is' : 'are'} not complete.`,
    formatUnreadPagesNote(input, advertisers),
    formatOneDayAdvertisersNote(listOneDayAdvertisers(input, advertisers), { hasNames: false }),
    ...(input.fieldsByStatement ?? []).flatMap((statementFields) => [
      formatMixedCurrenciesNote(statementFields),
      formatFieldGaps(statementFields, selectFieldGapAdvertisers(statementFields, advertisers)),
    ]),
  ];
  return [...new Set(notes.filter((note) => typeof note === 'string'))];
}

/**
 * Returns notes about a gathering (the stored ads of one search):
 *
 * - `missingAdsNote`: set if not all ads were read.
 * - `oneDayNote`: set if nearly all ads of some advertisers were last seen on the same day.
 * - `fieldGapsNote`: set if many ads lack a field that the board (the interactive view of ads) shows in charts and
 * filters.
 */
export function buildGatheringNotes(gathering: Gathering, input: CoverageInput) {
  const { isComplete, adIds } = gathering;
  const ads = [...input.adFacts].flatMap(([id, ad]) => (adIds.has(id) ? ad : []));
  return {
    missingAdsNote: isComplete ? undefined : formatIncompleteGathering(computeGatheringProgress(gathering, input)),
    oneDayNote: formatOneDayAdvertisersNote([...findOneDayAdvertisers(ads).values()], { hasNames: true }),
    fieldGapsNote: formatFieldGaps(countChartedFields(ads), collectAdvertisers(input)),
  };
}

/**
 * Counts the ads that have a value for each field that the board (the interactive view of ads) shows in charts and
 * filters.
 */
function countChartedFields(ads: readonly AdFacts[]): StatementFields {
  const findAdvertiserKey = createAdvertiserKeyFinder(ads);
  const countByAdvertiser = (countedAds: readonly AdFacts[]) => {
    const adsByKey = groupBy(countedAds, findAdvertiserKey);
    return new Map(
      [...adsByKey].flatMap(([key, adsOfAdvertiser]) => (key === null ? [] : [[key, adsOfAdvertiser.length]])),
    );
  };
  const fields = chartedFields.map((name) => {
    const adsWithoutField = ads.filter((ad) => !ad.filledChartedFields.includes(name));
    return {
      name,
      adsWithValue: ads.length - adsWithoutField.length,
      missingCountByAdvertiser: countByAdvertiser(adsWithoutField),
    };
  });
  return {
    adCount: ads.length,
    adCountByAdvertiser: countByAdvertiser(ads),
    fields,
    namedAdvertiserKeys: new Set(),
    mixedCurrencies: [],
  };
}

/** Computes the number of ads of a search that were read, and determines which ads are missing. */
function computeGatheringProgress(
  gathering: Gathering,
  { contents, listingOrders, remainingPrices }: Pick<CoverageInput, 'contents' | 'listingOrders' | 'remainingPrices'>,
): GatheringProgress {
  const { id, matchingCount, adIds, evictedCount, hasReadLastPage, storedParts, partGatheringIds, state } = gathering;
  const readParts = partGatheringIds.length === 0 ? [gathering] : storedParts;
  const earlierGathering = findPreviousCompleteGathering(gathering, contents);
  return {
    readCount: adIds.size,
    matchingCount,
    matchingCountText: formatSplitMatchingCount(gathering),
    repeatedCount: countAdRepetitions(gathering),
    evictedCount,
    hasReadLastPage,
    isRepeatingPages: state.isStuck || readParts.some((part) => part.state.isStuck),
    listingOrder: combineListingOrders(
      readParts
        .filter(({ isComplete, adIds }) => !isComplete && adIds.size > 0)
        .map((part) => listingOrders?.get(part.id)),
    ),
    incompletePartTexts: describeIncompleteParts(gathering),
    hasCompletePart: partGatheringIds.length > 0 && readParts.some(({ isComplete }) => isComplete),
    hasUnreadPart:
      readParts.length < partGatheringIds.length ||
      readParts.some(({ isComplete, adIds }) => !isComplete && adIds.size === 0),
    earlierCompleteDay: earlierGathering && formatDay(earlierGathering.gatheredAt),
    remainingPrice: remainingPrices?.get(id),
  };
}

/**
 * Combines the orders in which the service listed the ads of several parts (smaller searches) of a split search.
 * Returns undefined unless all parts were listed in the same order. The part whose list ended first determines
 * `lastValue`, because its missing ads can have any later value.
 */
function combineListingOrders(listingOrders: readonly (ListingOrder | undefined)[]): ListingOrder | undefined {
  const [firstListingOrder, ...otherListingOrders] = listingOrders;
  if (firstListingOrder === undefined) return undefined;
  const { field, isDescending } = firstListingOrder;
  let combinedOrder = firstListingOrder;
  for (const order of otherListingOrders) {
    if (order?.field !== field || order.isDescending !== isDescending) return undefined;
    const { minValue, maxValue } = combinedOrder;
    const { lastValue, hasListedAllValues } = selectOrderThatEndsFirst(combinedOrder, order);
    combinedOrder = {
      ...combinedOrder,
      minValue: order.minValue < minValue ? order.minValue : minValue,
      maxValue: order.maxValue > maxValue ? order.maxValue : maxValue,
      lastValue,
      hasListedAllValues,
    };
  }
  return combinedOrder;
}

/**
 * Returns the order of the list that ended first. A list that contains all ads with a value ends after every other
 * list.
 */
function selectOrderThatEndsFirst(left: ListingOrder, right: ListingOrder): ListingOrder {
  if (left.hasListedAllValues !== right.hasListedAllValues) return left.hasListedAllValues ? right : left;
  const isLeftFirstToEnd = left.isDescending ? left.lastValue > right.lastValue : left.lastValue < right.lastValue;
  return isLeftFirstToEnd ? left : right;
}

const maxMissingParts = 3;

/** Describes the incomplete parts (smaller searches) of a split search, e.g. `"{"countries":["FR"]}" 40 of 90 ads`. */
function describeIncompleteParts(gathering: Gathering): string[] {
  const { split } = getAdQuery(gathering);
  if (split === undefined) return [];
  const storedPartsById = new Map(gathering.storedParts.map((part) => [part.id, part]));
  const partTexts = gathering.partGatheringIds.flatMap((id, index) => {
    const part = storedPartsById.get(id);
    if (part?.isComplete) return [];
    const quotedFilters = quote(truncateLine(toCanonicalJson(split[index] ?? {}), maxQueryTokens));
    if (part === undefined) return `${quotedFilters} not begun`;
    return `${quotedFilters} ${formatNumber(part.adIds.size)} of ${part.matchingCount === null ? 'an unknown number' : formatCount(part.matchingCount, 'ad')}`;
  });
  const omittedCount = partTexts.length - maxMissingParts;
  return omittedCount > 0
    ? [...partTexts.slice(0, maxMissingParts), `${formatCount(omittedCount, 'more part')}`]
    : partTexts;
}

/**
 * Returns the number of ads in completely read searches, and the first and the last day on which these ads were read.
 */
function buildCurrentAdsView(contents: DatasetContents): DataOf<typeof CurrentAdsView> | undefined {
  const gatherings = selectCurrentGatherings(contents);
  const readingDays = gatherings
    .flatMap((gathering) => [getFirstReadingTime(gathering), gathering.gatheredAt].map((time) => formatDay(time) ?? ''))
    .sort();
  const [firstDay, lastDay] = [readingDays[0], readingDays.at(-1)];
  if (firstDay === undefined || lastDay === undefined) return;
  return { ads: new Set(gatherings.flatMap(({ adIds }) => [...adIds])).size, firstDay, lastDay };
}

/** Builds the result fields that describe a search of which only some of the matching ads were read. */
function buildIncompleteGatheringView(gathering: Gathering, input: CoverageInput): IncompleteGatheringView {
  const { id, matchingCount, adIds, evictedCount, gatheredAt } = gathering;
  const gatheringProgress = computeGatheringProgress(gathering, input);
  const { matchingCountText, repeatedCount } = gatheringProgress;
  return {
    gathering: id,
    about: truncateLine(formatAdQueryJson(gathering), maxQueryTokens),
    found: matchingCount,
    ...(matchingCountText && { foundInParts: matchingCountText }),
    read: adIds.size,
    ...(evictedCount > 0 && { removed: evictedCount }),
    ...(repeatedCount > 0 && { repeats: repeatedCount }),
    gatheredAt: formatDay(gatheredAt) ?? '',
    ...(gatheringProgress.earlierCompleteDay && { earlierComplete: gatheringProgress.earlierCompleteDay }),
    note: formatIncompleteGathering(gatheringProgress),
  };
}

interface Advertiser extends Pick<AdFacts, 'pageId' | 'pageName'> {
  adCount: number;
  /** The number of the advertiser's ads that belong to no completely read search. */
  uncoveredCount: number;
}

interface AdvertiserIndex {
  advertisersByKey: ReadonlyMap<string, Advertiser>;
  /**
   * Keys of the advertisers in the rows of the query result. Undefined if the rows mention neither ads nor advertisers
   * of the dataset.
   */
  keysInRows: ReadonlySet<string> | undefined;
  /** Returns the name of the advertiser with this key, in quotation marks. */
  getAdvertiserName(advertiserKey: string): string;
}

/**
 * Groups the ads of the dataset by advertiser, and determines which advertisers occur in the rows of the query result.
 */
function collectAdvertisers({
  contents,
  adFacts,
  columns = [],
  rows = [],
  maxCellChars = 0,
}: CoverageInput): AdvertiserIndex {
  const coveredIds = new Set(
    contents.gatherings.flatMap((gathering) => (gathering.isComplete ? [...gathering.adIds] : [])),
  );
  const listCells = (...names: string[]): unknown[] =>
    columns.flatMap((column, index) => (names.includes(column) ? rows.map((row) => row[index]) : []));
  // Compare advertiser names without regard to case, because an SQL statement may change the case.
  const namesInRows = new Set(listCells('pageId', 'pageName').map((cell) => String(cell).toLowerCase()));
  const idsInRows = new Set(listCells('id', 'adId').map((id) => normalizeAdId(String(id))));
  const findAdvertiserKey = createAdvertiserKeyFinder(adFacts.values());
  const isNameInRows = (text: string | null) =>
    text !== null && namesInRows.size > 0 && namesInRows.has(cleanCell(text, maxCellChars).toLowerCase());
  const advertisersByKey = new Map<string, Advertiser>();
  const keysInRows = new Set<string>();
  for (const [key, { pageId, pageName }] of adFacts) {
    const advertiserKey = findAdvertiserKey({ pageId, pageName });
    if (advertiserKey === null) continue;
    const advertiser = advertisersByKey.get(advertiserKey) ?? { pageId, pageName, adCount: 0, uncoveredCount: 0 };
    // The newest ad comes last and sets the name, so that an advertiser page that was renamed gets its current name.
    advertiser.pageId ??= pageId;
    advertiser.pageName = pageName ?? advertiser.pageName;
    advertiser.adCount++;
    if (!coveredIds.has(key)) advertiser.uncoveredCount++;
    if (idsInRows.has(key) || isNameInRows(pageId) || isNameInRows(pageName)) keysInRows.add(advertiserKey);
    advertisersByKey.set(advertiserKey, advertiser);
  }
  // The ids in the rows may come from another table, such as `gatherings`. Only ids of ads identify an advertiser.
  const hasAdIds = [...idsInRows].some((id) => adFacts.has(id));
  const getAdvertiserName = (key: string) =>
    quoteAdvertiserName(advertisersByKey.get(key) ?? { pageId: null, pageName: null });
  return { advertisersByKey, keysInRows: hasAdIds || keysInRows.size > 0 ? keysInRows : undefined, getAdvertiserName };
}

/**
 * Finds advertisers that have ads outside of all completely read searches. If the rows mention ads or advertisers,
 * returns the names of the affected advertisers among them. Otherwise only counts the affected advertisers of the whole
 * dataset.
 */
function findUncoveredAdvertisers(
  { columns = [], rows = [] }: CoverageInput,
  { advertisersByKey, keysInRows }: AdvertiserIndex,
) {
  const uncoveredAdvertisers = [...advertisersByKey].filter(([, { uncoveredCount }]) => uncoveredCount > 0);
  const isEmptyAdList = rows.length === 0 && columns.some((column) => advertiserColumns.has(column));
  if (keysInRows === undefined)
    return { namedAdvertisers: [], omittedCount: isEmptyAdList ? 0 : uncoveredAdvertisers.length };
  const uncoveredInRows = uncoveredAdvertisers
    .flatMap(([key, advertiser]) => (keysInRows.has(key) ? advertiser : []))
    .sort((left, right) => right.uncoveredCount - left.uncoveredCount);
  return {
    namedAdvertisers: uncoveredInRows.slice(0, maxNamedAdvertisers),
    omittedCount: Math.max(0, uncoveredInRows.length - maxNamedAdvertisers),
  };
}

/** The columns of a query result that identify ads or advertisers. */
const advertiserColumns = new Set(['id', 'adId', 'pageId', 'pageName']);

const buildUncoveredAdvertiserView = ({
  pageId,
  pageName,
  adCount,
  uncoveredCount,
}: Advertiser): UncoveredAdvertiserView => ({
  ...(pageId !== null && { pageId: sanitizeId(pageId) }),
  ...(pageName !== null && { pageName: truncateLine(pageName, maxNameTokens) }),
  ads: adCount,
  outside: uncoveredCount,
});

/**
 * Formats the coverage as text: which ads a result is based on, and which ads are missing.
 * @param notesStatedAbove the notes at the beginning of the result; the text refers to these notes instead of repeating
 * them
 */
export const formatCoverage = (coverage: CoverageView, notesStatedAbove: readonly string[] = []): string =>
  [
    `${formatGatherings(coverage, notesStatedAbove)}${formatCurrentAds(coverage)}${formatUncoveredAdvertisers(coverage)}`,
    ...(coverage.notes ?? []),
  ].join(' ');

function formatCurrentAds({ current, gatherings }: CoverageView): string {
  if (gatherings === 0) return '';
  if (current === undefined) return ' No gathering is complete, so current_ads is empty.';
  const { ads, firstDay, lastDay } = current;
  const dayText = firstDay === lastDay ? `on ${firstDay}` : `from ${firstDay} to ${lastDay}`;
  return ` current_ads: ${formatCount(ads, 'ad')} that the newest complete gathering of each question listed, read ${dayText}.`;
}

/**
 * Formats a list of the advertisers with ads outside of all completely read searches. Returns an empty string if there
 * are no such advertisers.
 */
export function formatUncoveredAdvertisers({ uncovered = [], moreUncovered = 0 }: CoverageView): string {
  if (uncovered.length + moreUncovered === 0) return '';
  const names = uncovered.map(
    ({ pageName, pageId = '', ads, outside }) =>
      `${quote(pageName ?? pageId)} (${outside === ads ? '' : `${formatNumber(outside)} of `}${formatCount(ads, 'ad')})`,
  );
  if (names.length === 0)
    return ` No complete gathering covers ${formatCount(moreUncovered, 'advertiser')} of the dataset, so there may be more of their ads.`;
  const moreText = moreUncovered > 0 ? `, and ${formatNumber(moreUncovered)} more` : '';
  return ` No complete gathering covers these advertisers, so there may be more of their ads: ${names.join(', ')}${moreText}.`;
}

function formatGatherings(coverage: CoverageView, notesStatedAbove: readonly string[]): string {
  const { ads, gatherings, outsideAds = 0, partial = [], morePartial = 0, unlisted = 0, removedAds = 0 } = coverage;
  const prefix = `Coverage: ${formatCount(ads, 'ad')}`;
  const unlistedText = unlisted > 0 ? ` ${formatUnlistedAds(unlisted)}.` : '';
  const notes = `${unlistedText}${removedAds > 0 ? ` ${formatCount(removedAds, 'ad')} removed to make room.` : ''}`;
  if (ads === 0 && gatherings === 0)
    return `${prefix}: nothing is gathered yet. gather_ads and the searches fill the dataset.${notes}`;
  if (gatherings === 0) return `${prefix} from searches; no gathering covers them.${notes}`;
  const outside = outsideAds > 0 ? `, ${formatUncoveredCount(outsideAds)}` : '';
  if (partial.length === 0) return `${prefix}${outside}; every gathering is complete.${notes}`;
  const moreText = morePartial > 0 ? ` And ${morePartial} more that are not complete.` : '';
  return `${prefix}${outside}. Not complete: ${partial.map((partialGathering) => formatPartialGathering(partialGathering, notesStatedAbove)).join(' ')}${moreText}${notes}`;
}

const formatUncoveredCount = (adCount: number) =>
  `${formatNumber(adCount)} of them only from searches or earlier gatherings`;

const formatPartialGathering = (
  { gathering, about, gatheredAt, note }: IncompleteGatheringView,
  notesStatedAbove: readonly string[],
): string =>
  `${gathering} ${quote(about)}, ${gatheredAt}${notesStatedAbove.includes(note) ? ', as stated above.' : `: ${note}`}`;

/**
 * Returns the notes to show at the beginning of an empty result. The notes name the searches that were not read
 * completely, because the expected rows may be among their missing ads. A search that was read completely earlier needs
 * no note.
 */
export const listNotesOfEmptyResult = ({ partial = [] }: CoverageView): string[] =>
  partial.filter(({ earlierComplete }) => earlierComplete === undefined).map(({ note }) => note);
