import * as z from 'zod';
import { PaymentNeededError } from '../api/call.ts';
import type { ApiResponse } from '../api/client.ts';
import { readTotalHits } from '../api/counts.ts';
import { ignoreUnavailableStorage } from '../api/errors.ts';
import { toCanonicalJson } from '../api/json.ts';
import { operations } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { CallBudget } from '../credits/call-budget.ts';
import { formatPrice } from '../credits/credit-text.ts';
import { getResponseTime } from '../dataset/ad-list-page.ts';
import { buildCreditRange, creditDescriptions, errorFieldSchemas } from '../dataset/gathering-output.ts';
import { findGatherings, hasOutdatedPages } from '../dataset/gatherings.ts';
import { classifyFailure, type StopInfo } from '../dataset/stops.ts';
import { formatIsoTime } from '../dataset/tables.ts';
import { type DatasetContents, pickAdsById } from '../storage/dataset.ts';
import { parseItem } from '../storage/item-versions.ts';
import {
  type AdDates,
  formatLastSeenDays,
  formatMinute,
  type LastSeenDays,
  summarizeLastSeenDays,
} from '../views/dates.ts';
import { dayMs } from '../views/durations.ts';
import type { DataOf } from '../views/fields.ts';
import { formatServiceNotes, readServiceNotes } from '../views/lists.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinLines, quote, sanitizeLine } from '../views/safe-text.ts';
import { truncate } from '../views/tokens.ts';
import {
  adFiltersSchema,
  checkExclusiveArguments,
  checkFilterArguments,
  freshSchema,
  splitSchema,
} from './arguments.ts';
import {
  buildMissingFilter,
  buildValueFilter,
  buildValueFilters,
  type Filters,
  findCountableFilter,
} from './filter-values.ts';
import { getMaxItemTokens } from './pager.ts';
import { defineTool, readOnlyAnnotations, type ToolContext } from './tool.ts';

const CountFields = z.looseObject({
  total: z.number().nullable().describe('Number of matching ads. null if unknown.'),
  gatheredAt: z
    .string()
    .optional()
    .describe('Time of the gathering that the number comes from. Missing if a search counted the ads.'),
  note: z
    .string()
    .optional()
    .describe('Caution about the number, for example that the service may have ignored a filter.'),
  notes: z.array(z.string()).optional().describe('Notes from the service.'),
});

const PartCountView = z
  .looseObject({
    filters: z.looseObject({}).describe('Filters of this part, combined with the filters of the call.'),
    value: z.string().optional().describe('The counted value. unknown stands for ads whose running state is unknown.'),
    ...CountFields.shape,
  })
  .meta({ title: 'Count' });
type PartCountView = DataOf<typeof PartCountView>;

const CountEstimate = z
  .looseObject({
    calls: z.number().describe('Highest number of searches.'),
    credits: z.number().nullable().describe(creditDescriptions.credits),
    atLeast: z.number().describe(creditDescriptions.atLeast),
    atMost: z.number().optional().describe(creditDescriptions.atMost),
  })
  .meta({ title: 'CountEstimate' });
type CountEstimate = DataOf<typeof CountEstimate>;

/** The most credits that a call may spend if the caller sets no `maxCredits`. */
const defaultMaxCredits = 50;

export const countAds = defineTool({
  name: 'count_ads',
  title: 'Count ads',
  description:
    'Count how many ads match, in total and for each value of a filter: active ads of a brand, ads for each keyword, format (image, video, carousel), country or language. Answers which format or country is dominant without reading the ads.',
  usageHint: 'How many, or which share: count_ads.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({
    filters: { countries: ['DE'] },
    split: [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }],
  }),
  operations: ['searchAds'],
  makesSeveralApiCalls: true,
  defaultMaxCredits,
  inputSchema: z.strictObject({
    filters: adFiltersSchema,
    split: splitSchema,
    by: z.string().optional().describe('Filter key whose values are counted.'),
    maxCredits: z
      .number()
      .min(0)
      .optional()
      .describe(`Most credits to spend. Default ${defaultMaxCredits}. 0 returns an estimate.`),
    fresh: freshSchema.describe('true ignores earlier answers and pays again.'),
  }),
  createOutputSchema: () =>
    z.looseObject({
      ...CountFields.shape,
      counts: z
        .array(PartCountView)
        .describe('One entry for each part, in the order of split. With by, one for each existing value.'),
      none: z.number().optional().describe('With by: number of ads without a value.'),
      rest: z.number().optional().describe('With by: number of ads with other values.'),
      restHoldsNone: z.boolean().optional().describe('true if rest includes the ads without a value.'),
      leftOut: z.string().optional().describe('With by: which ads no count includes, and why.'),
      estimate: CountEstimate.optional().describe('Estimate, with maxCredits 0.'),
      stopped: z.string().optional().describe('Why the call stopped, as in gather_ads.'),
      ...errorFieldSchemas,
      next: z.string().optional().describe('How to continue.'),
    }),
  async run({ filters = {}, split = [], by, maxCredits = defaultMaxCredits, fresh = false }, context) {
    checkFilterArguments(filters, split);
    checkExclusiveArguments({ split: split[0], by });
    const countedFilter = by === undefined ? undefined : findCountableFilter(by, context.adFilters, filters);
    const callBudget = await context.createCallBudget(maxCredits);
    // If the dataset (the stored ads) is unavailable, count with a search instead of failing.
    const contents = fresh ? undefined : await readContents(context).catch(ignoreUnavailableStorage);
    const countContext = { ...context, callBudget, fresh, contents, pendingCounts: new Map() };
    if (maxCredits === 0 || context.isEstimate)
      return { data: await estimateCount(countedFilter, filters, split, countContext) };
    const { stopInfo, ...counts } = await (countedFilter === undefined
      ? countSplit(filters, split, countContext)
      : countByValue(countedFilter, filters, countContext));
    if (stopInfo === undefined) return { data: counts };
    const problem =
      stopInfo.error && stopInfo.reason !== 'maxCredits' ? context.explainError(stopInfo.error) : undefined;
    const data = {
      ...counts,
      stopped: stopInfo.reason,
      ...(problem && { error: problem.kind, problem: problem.text }),
      ...(stopInfo.reason === 'error' && !stopInfo.error && { problem: noTotalText }),
      ...(stopInfo.reason === 'maxCredits' && { next: raiseMaxCreditsHint }),
    };
    return { data };
  },
  render: ({ counts, none, rest, restHoldsNone, leftOut, estimate, stopped, problem, next, ...total }, _, context) => {
    if (estimate?.calls === 0)
      return 'Estimate: free, because earlier answers are enough. Call again without maxCredits to read the counts.';
    if (estimate)
      return `Estimate: ${formatCount(estimate.calls, 'search', 'searches')} of one ad each, ${formatPrice(estimate)}. Nothing was sent.`;
    const totalNotes = total.notes ?? [];
    const maxFilterTokens = Math.max(8, getMaxItemTokens(context) / counts.length - lineTokensWithoutFilters);
    return joinLines([
      total.total === null ? noTotalText : `${formatCount(total.total, 'ad')} in all${formatRemarks(total)}.`,
      ...formatServiceNotes(total),
      ...(total.total === null
        ? []
        : counts.flatMap((partCount) => formatPartCount(partCount, { totalNotes, maxFilterTokens }))),
      none === undefined ? '' : `none: ${formatNumber(none)}`,
      rest === undefined
        ? ''
        : `${restHoldsNone ? 'none or other values' : 'rest (other values)'}: ${formatNumber(rest)}`,
      leftOut,
      stopped && `Stopped (${stopped}) before all parts were counted.`,
      problem,
      next,
    ]);
  },
});

const readContents = async ({ openDataset }: ToolContext): Promise<DatasetContents> =>
  (await openDataset()).readContents();

const noTotalText = 'The service does not say how many ads match.';
const raiseMaxCreditsHint = 'To count the rest, call again with a larger maxCredits.';

interface CountContext extends ToolContext {
  callBudget: CallBudget;
  fresh: boolean;
  contents: DatasetContents | undefined;
  /** The counts of this call by their filters, so that the call does not pay twice for parts with equal filters. */
  pendingCounts: Map<string, Promise<AdCount>>;
}

interface AdCount {
  total: number | null;
  /** The time at which the service reported the count, in milliseconds since 1970. */
  countedAt: number;
  gatheredAt?: string;
  notes?: string[];
  lastSeenDays?: LastSeenDays | undefined;
  /** The number of ads for each value of a filter key. Undefined if the service cannot count by value. */
  valueCounts?: ReturnType<typeof parseValueCounts> | undefined;
}

/**
 * Counts the matching ads. If there is a complete and recent gathering (the stored ads of one search) for the same
 * filters, uses its count. Otherwise, sends one search to the service. Filters that this call has already counted are
 * not counted again.
 */
function countMatchingAds(filters: Filters, countContext: CountContext): Promise<AdCount> {
  const { pendingCounts } = countContext;
  const key = toCanonicalJson(filters);
  const count =
    pendingCounts.get(key) ??
    Promise.resolve(findGatheredCount(filters, countContext) ?? requestMatchingCount(filters, countContext));
  pendingCounts.set(key, count);
  return count;
}

/**
 * Counts the matching ads with a search for one ad, because the response also contains the total.
 * @param countBy a filter key, e.g. `active`. The service then also counts the ads for each value of this key.
 */
async function requestMatchingCount(
  filters: Filters,
  { api, callBudget, now, fresh: ignoresCache }: CountContext,
  { countBy, forbidsPaidRequests }: { countBy?: string; forbidsPaidRequests?: boolean } = {},
) {
  const body = { ...filters, limit: 1, ...(countBy !== undefined && { countBy }) };
  const response: ApiResponse<'searchAds'> = await api.searchAds({
    body,
    ignoresCache,
    forbidsPaidRequests,
    creditLimit: callBudget,
  });
  const { items, counts } = response.rawBody as { items: readonly AdDates[]; counts?: unknown };
  return {
    total: readTotalHits(response) ?? null,
    countedAt: getResponseTime(response, now),
    ...readServiceNotes(response.rawBody),
    lastSeenDays: summarizeLastSeenDays(items),
    valueCounts: countBy === undefined ? undefined : parseValueCounts(counts),
  };
}

/**
 * The schema of the `counts` field in a search response. `values` contains the number of ads for each value of a filter
 * key, and `none` is the number of ads without a value. `more` is the number of values that are not listed.
 */
const ValueCounts = z.object({
  values: z.array(z.unknown()),
  none: z.int().min(0),
  more: z.int().min(0).optional().catch(undefined),
});
const ValueCount = z.object({ value: z.union([z.string(), z.boolean()]), total: z.int().min(0) });

/**
 * Parses the number of ads for each value of a filter key. Returns undefined if the response has no such numbers. Only
 * a local library (a server of imported ads) sends them.
 */
function parseValueCounts(counts: unknown) {
  const { data } = ValueCounts.safeParse(counts);
  return data && { ...data, values: data.values.flatMap((value) => ValueCount.safeParse(value).data ?? []) };
}

/**
 * The maximum age of a gathering (a stored search result) whose count is used. If the gathering is older, a new search
 * counts the ads.
 */
const maxGatheringAgeMs = dayMs;
/**
 * The tolerated difference between the clocks of server replicas, in milliseconds. If the time of a gathering is even
 * further in the future, it comes from a wrong clock. The age is then unknown, so the gathering is not used.
 */
const maxClockDifferenceMs = 60_000;

function findGatheredCount(filters: Filters, { contents, now }: CountContext): AdCount | undefined {
  if (contents === undefined) return;
  const isRecent = (ageMs: number) => ageMs >= -maxClockDifferenceMs && ageMs <= maxGatheringAgeMs;
  const gathering = findGatherings(contents, { filters }).find(
    (candidate) => candidate.isComplete && isRecent(now - candidate.gatheredAt) && !hasOutdatedPages(candidate),
  );
  if (gathering === undefined) return;
  const { gatheredAt, adIds, matchingCount } = gathering;
  const needsDates = Object.hasOwn(filters, 'active');
  const ads = needsDates ? [...pickAdsById(contents, adIds).values()] : [];
  return {
    // The reported total may be smaller than the number of ads that were read. Therefore, return at least the number of
    // read ads.
    total: Math.max(matchingCount ?? 0, adIds.size),
    countedAt: gatheredAt,
    gatheredAt: formatIsoTime(gatheredAt),
    lastSeenDays: summarizeLastSeenDays(ads.map((item) => parseItem(item) as AdDates)),
  };
}

/**
 * The maximum time between two counts that are subtracted from each other, in milliseconds. If more time has passed,
 * the ads may have changed in between.
 */
const maxCountIntervalMs = 60_000;

/**
 * Returns the number of ads that belong to no part of a split search: the total minus the counts of all parts. Returns
 * undefined if a count is unknown, if the parts overlap, or if the counts were taken at different times.
 */
function countAdsOutsideParts(
  { total, countedAt }: AdCount,
  partCounts: readonly Partial<AdCount>[],
): number | undefined {
  const isTooFarApart = (partCount: Partial<AdCount>) =>
    Math.abs((partCount.countedAt ?? countedAt) - countedAt) > maxCountIntervalMs;
  if (total === null || partCounts.some(isTooFarApart)) return undefined;
  const remainingCount = partCounts.reduce(
    (countSoFar, partCount) => countSoFar - (partCount.total ?? Number.NaN),
    total,
  );
  return remainingCount >= 0 ? remainingCount : undefined;
}

/**
 * Estimates the cost of a count without calling the service, as the number of paid searches times the price of one
 * search. A search is free if its response is cached or its count is in the dataset. A count by value is never in the
 * dataset. If the total is known without a paid search, the estimate leaves out parts that the count does not search. The
 * count searches no part if the service states no total, or if the total is 0 and every part finds only ads of the total.
 */
async function estimateCount(
  countedFilter: SearchFilter | undefined,
  filters: Filters,
  split: readonly Filters[],
  countContext: CountContext,
): Promise<{ total: null; counts: PartCountView[]; stopped: string; estimate: CountEstimate }> {
  const { adFilters, isCached, fresh, callBudget } = countContext;
  const valueFilters =
    countedFilter && !countedFilter.counted ? listPartsToSearch(countedFilter, filters, adFilters) : [];
  const filtersByPart = [...split, ...valueFilters];
  const freeCount = filtersByPart.length > 0 && !fresh ? await findFreeCount(filters, countContext) : undefined;
  const isEmptyTotal = freeCount?.total === 0 && isEveryPartNarrower(filters, filtersByPart, adFilters);
  const partsToSearch = freeCount?.total === null || isEmptyTotal ? [] : filtersByPart;
  const allFilters: Filters[] = [filters, ...partsToSearch.map((partFilters) => ({ ...filters, ...partFilters }))];
  // Parts with equal filters share one search.
  const filtersBySearch = [
    ...new Map(allFilters.map((searchFilters) => [toCanonicalJson(searchFilters), searchFilters])).values(),
  ];
  const isFreeBySearch = await Promise.all(
    filtersBySearch.map(async (searchFilters) => {
      if (fresh) return false;
      const countBy = countedFilter?.counted && { countBy: countedFilter.key };
      if (!countBy && findGatheredCount(searchFilters, countContext) !== undefined) return true;
      const body = { ...searchFilters, limit: 1, ...countBy };
      return isCached({ operation: operations.searchAds, path: {}, query: {}, body });
    }),
  );
  const calls = isFreeBySearch.filter((isFree) => !isFree).length;
  const countingSearch = { operation: 'searchAds', totalItems: 1, pageSize: 1, isTotalKnown: true } as const;
  const price = calls === 0 ? { atLeast: 0, atMost: 0 } : await callBudget.estimateCost(countingSearch);
  const credits = buildCreditRange(calls * (price?.atLeast ?? 0), price && calls * price.atMost);
  return { total: null, counts: [], stopped: 'estimate', estimate: { calls, ...credits } };
}

/** Returns the number of matching ads if no paid search is needed, or undefined otherwise. */
async function findFreeCount(filters: Filters, countContext: CountContext): Promise<AdCount | undefined> {
  const gatheredCount = findGatheredCount(filters, countContext);
  if (gatheredCount !== undefined) return gatheredCount;
  try {
    return await requestMatchingCount(filters, countContext, { forbidsPaidRequests: true });
  } catch (error) {
    if (error instanceof PaymentNeededError) return undefined;
    throw error;
  }
}

/**
 * Returns the filters of the searches that count ads by the values of `countedFilter`. There is one search for each
 * known value, and one for ads without a value if the service offers such a filter.
 */
function listPartsToSearch(
  countedFilter: SearchFilter,
  filters: Filters,
  adFilters: readonly SearchFilter[],
): Filters[] {
  const missingValueFilters = buildMissingFilter(filters, countedFilter.key, adFilters);
  return [...buildValueFilters(countedFilter), ...(missingValueFilters ? [missingValueFilters] : [])];
}

/**
 * Returns true if each part finds only ads that the total includes. If the total is 0, the parts then need no searches.
 *
 * A part that sets a key with a default value may find ads that the total leaves out. Without the key `active`, a
 * service may find only running ads, so this key counts as a key with a default value. The same applies to keys that the
 * service does not describe.
 */
const isEveryPartNarrower = (
  filters: Filters,
  filtersByPart: readonly Filters[],
  adFilters: readonly SearchFilter[],
): boolean =>
  filtersByPart
    .flatMap((partFilters) => Object.keys(partFilters))
    .filter((key) => !Object.hasOwn(filters, key))
    .every((key) => {
      const describedFilter = adFilters.find((filter) => filter.key === key);
      return describedFilter && describedFilter.default === undefined && key !== 'active';
    });

const buildEmptyParts = (filtersByPart: readonly Filters[], totalCount: AdCount): CountedPart[] =>
  filtersByPart.map((partFilters) => ({
    view: { filters: partFilters, total: 0, ...(totalCount.gatheredAt && { gatheredAt: totalCount.gatheredAt }) },
    adCount: totalCount,
  }));

async function countSplit(filters: Filters, split: readonly Filters[], countContext: CountContext) {
  const totalCount = await countMatchingAds(filters, countContext);
  const { parts, stopInfo } = await countParts(filters, totalCount, split, countContext);
  return { ...buildCountView(totalCount, filters, countContext), counts: parts.map((part) => part.view), stopInfo };
}

/**
 * Counts the ads for each value of a filter key. If the service can count values, sends only one search. Otherwise,
 * sends one search per value.
 */
const countByValue = (countedFilter: SearchFilter, filters: Filters, countContext: CountContext) =>
  countedFilter.counted
    ? countValuesByService(countedFilter, filters, countContext)
    : countValuesBySearches(countedFilter, filters, countContext);

async function countValuesByService(countedFilter: SearchFilter, filters: Filters, countContext: CountContext) {
  const totalCount = await requestMatchingCount(filters, countContext, { countBy: countedFilter.key });
  const totalView = { ...buildCountView(totalCount, filters, countContext), stopInfo: undefined };
  if (totalCount.valueCounts === undefined)
    return { ...totalView, counts: [], leftOut: explainMissingValueCounts(countedFilter) };
  const { values, none, more = 0 } = totalCount.valueCounts;
  const counts: PartCountView[] = values.map(({ value, total }) => ({
    filters: buildValueFilter(countedFilter, value),
    total,
  }));
  if (countedFilter.key === 'active') {
    const unknownStateView = buildUnknownCount(
      none,
      buildMissingFilter(filters, countedFilter.key, countContext.adFilters),
    );
    return { ...totalView, counts: [...counts, unknownStateView] };
  }
  const otherAdCount = countedFilter.single
    ? countAdsOutsideParts(totalCount, [...values, { total: none }])
    : undefined;
  const leftOut =
    more > 0 && `${formatOmittedValueCount(more)}${otherAdCount === undefined ? '' : ' Their ads are in rest.'}`;
  return {
    ...totalView,
    counts,
    none,
    ...(otherAdCount !== undefined && { rest: otherAdCount }),
    ...(leftOut && { leftOut }),
  };
}

const explainMissingValueCounts = ({ key }: SearchFilter) =>
  `The service did not count the values of ${key}, although its description says that it does. List the parts in split instead.`;

const formatOmittedValueCount = (omittedValueCount: number) =>
  omittedValueCount === 1
    ? '1 rarer value is not listed.'
    : `${formatNumber(omittedValueCount)} rarer values are not listed.`;

async function countValuesBySearches(countedFilter: SearchFilter, filters: Filters, countContext: CountContext) {
  const totalCount = await countMatchingAds(filters, countContext);
  const totalView = buildCountView(totalCount, filters, countContext);
  const missingValueFilters = buildMissingFilter(filters, countedFilter.key, countContext.adFilters);
  const filtersByPart = listPartsToSearch(countedFilter, filters, countContext.adFilters);
  const { parts, stopInfo } = await countParts(filters, totalCount, filtersByPart, countContext);
  const partWithoutValue = missingValueFilters && parts.at(-1);
  const counts = parts.filter((part) => part !== partWithoutValue).map((part) => part.view);
  const remainingAdCount = countAdsOutsideParts(
    totalCount,
    parts.map(({ adCount = {} }) => adCount),
  );
  if (countedFilter.key === 'active') {
    const unknownStateCount = partWithoutValue ? partWithoutValue.view.total : (remainingAdCount ?? null);
    return {
      ...totalView,
      counts: [...counts, { ...partWithoutValue?.view, ...buildUnknownCount(unknownStateCount, missingValueFilters) }],
      stopInfo,
    };
  }
  // Omit the values that no ad has.
  const nonZeroCounts = counts.filter((part) => part.total !== 0);
  const adCountWithoutValue = partWithoutValue?.view.total ?? undefined;
  const otherAdCount = countedFilter.single ? remainingAdCount : undefined;
  const hasCountedAds = totalCount.total !== null && totalCount.total > 0 && stopInfo === undefined;
  return {
    ...totalView,
    counts: nonZeroCounts,
    ...(adCountWithoutValue !== undefined && { none: adCountWithoutValue }),
    ...(otherAdCount !== undefined && {
      rest: otherAdCount,
      ...(!partWithoutValue && { restHoldsNone: true as const }),
    }),
    ...(hasCountedAds &&
      otherAdCount === undefined && { leftOut: explainUncountedAds(countedFilter, partWithoutValue !== undefined) }),
    stopInfo,
  };
}

/** Names the ads that are not included in any count, and explains why. Used if the number of these ads is unknown. */
function explainUncountedAds(
  { key, single: hasSingleValue, open: hasOtherValues }: SearchFilter,
  countsAdsWithoutValue: boolean,
): string {
  if (key === 'missing')
    return 'An ad may lack values for several keys, so the counts may add up to more than the total. Not counted: ads that have a value for each of these keys.';
  const adsWithOtherValues = hasOtherValues || hasSingleValue ? 'ads with other values' : undefined;
  const adsWithoutValue = countsAdsWithoutValue ? undefined : 'ads without a value';
  const uncountedAdsText = [adsWithOtherValues, adsWithoutValue].filter(Boolean).join(' and ');
  const explanation = hasSingleValue
    ? 'The counts overlap or are of different times, so what they leave of the total is not known.'
    : 'An ad may have several values, so the counts may add up to more than the total.';
  return uncountedAdsText === '' ? explanation : `${explanation} Not counted: ${uncountedAdsText}.`;
}

const buildUnknownCount = (total: number | null, filters: Filters | undefined): PartCountView => ({
  filters: filters ?? { active: null },
  value: 'unknown',
  total,
});

interface CountedPart {
  view: PartCountView;
  adCount: AdCount | undefined;
}

const maxConcurrentSearches = 4;
/**
 * The note for a count that equals the total, e.g. if all 50 ads seem to be videos. A service that ignores the filter
 * would return the same number.
 */
const equalToTotalNote = 'equal to the total; not verified';

/**
 * Counts the ads of each part of a search, several parts at a time. A part is a search with the caller's filters and
 * one filter object, e.g. of `split`. Starts no further searches after a failure or when a limit is reached. Sends
 * nothing if the total already tells that no part has ads.
 */
async function countParts(
  filters: Filters,
  totalCount: AdCount,
  filtersByPart: readonly Filters[],
  countContext: CountContext,
) {
  const countedParts: CountedPart[] = filtersByPart.map((partFilters) => ({
    view: { filters: partFilters, total: null },
    adCount: undefined,
  }));
  if (totalCount.total === null) return { parts: countedParts, stopInfo: undefined };
  if (totalCount.total === 0 && isEveryPartNarrower(filters, filtersByPart, countContext.adFilters))
    return { parts: buildEmptyParts(filtersByPart, totalCount), stopInfo: undefined };
  let stopInfo: StopInfo | undefined;
  let nextIndex = 0;
  const countNextParts = async () => {
    while (stopInfo === undefined && nextIndex < filtersByPart.length) {
      const index = nextIndex++;
      const partFilters = filtersByPart[index] ?? {};
      try {
        const combinedFilters = { ...filters, ...partFilters };
        const adCount = await countMatchingAds(combinedFilters, countContext);
        countedParts[index] = {
          view: { filters: partFilters, ...buildCountView(adCount, combinedFilters, countContext) },
          adCount,
        };
        if (adCount.total === null) stopInfo ??= { reason: 'error' };
      } catch (error) {
        const failureStop = classifyFailure(error, countContext);
        stopInfo ??= failureStop;
      }
    }
  };
  await Promise.all(Array.from({ length: maxConcurrentSearches }, countNextParts));
  for (const { view } of countedParts)
    if (view.total === totalCount.total && view.total !== 0 && Object.keys(view.filters).length > 0)
      view.note = [equalToTotalNote, view.note].filter(Boolean).join('; ');
  return { parts: countedParts, stopInfo };
}

function buildCountView(
  { total, gatheredAt, notes, lastSeenDays }: AdCount,
  filters: Filters,
  { adFilters }: CountContext,
) {
  const usesServiceRule = Object.hasOwn(filters, 'active') && buildMissingFilter({}, 'active', adFilters) === undefined;
  return {
    total,
    ...(gatheredAt && { gatheredAt }),
    ...(usesServiceRule && { note: formatRunningNote(lastSeenDays, gatheredAt !== undefined) }),
    ...(notes && { notes }),
  };
}

/**
 * Returns the note for counts with the `active` filter. The service decides by an unknown rule which ads are active, so
 * the note says when these ads were last seen running.
 */
function formatRunningNote(lastSeenDays: AdCount['lastSeenDays'], isFromGathering: boolean): string {
  const adsText = isFromGathering ? 'these ads' : 'the ad that it sent';
  const lastSeenText = lastSeenDays ? formatLastSeenDays(lastSeenDays) : 'no last-seen date';
  return `the service decides what is active; ${adsText}: ${lastSeenText}`;
}

interface PartFormat {
  /** Notes on the total count. They are part of the text already, so they are not repeated for each part. */
  totalNotes: readonly string[];
  /** The maximum number of tokens for the filters of a part. */
  maxFilterTokens: number;
}

function formatPartCount(partCount: PartCountView, { totalNotes, maxFilterTokens }: PartFormat): string[] {
  const name = partCount.value ?? formatFilters(partCount.filters, maxFilterTokens);
  const notes = (partCount.notes ?? []).filter((note) => !totalNotes.includes(note));
  return [
    `${name}: ${partCount.total === null ? 'not counted' : formatNumber(partCount.total)}${formatRemarks(partCount)}`,
    ...formatServiceNotes({ notes }).map((note) => `  ${note}`),
  ];
}

function formatRemarks({ gatheredAt, note }: Pick<PartCountView, 'gatheredAt' | 'note'>): string {
  const gatheredText = gatheredAt && `gathered ${formatMinute(gatheredAt)}`;
  const remarks = [gatheredText, note].filter(Boolean).join('; ');
  return remarks && ` (${remarks})`;
}

/**
 * Formats filters as sanitized JSON. Sanitizing is necessary because the caller may have copied values from an ad, and
 * texts from ads are not trusted.
 */
function formatFilters(filters: Filters, maxTokens: number): string {
  const filtersJson = sanitizeLine(JSON.stringify(filters));
  const hiddenChars = Math.max(0, filtersJson.length - maxFiltersChars);
  const shownJson = truncate(filtersJson.slice(0, maxFiltersChars), maxTokens, hiddenChars);
  return shownJson === filtersJson ? filtersJson : quote(shownJson);
}

const maxFiltersChars = 300;
/** The number of tokens that a line of the result needs in addition to the filters, e.g. for the number of ads. */
const lineTokensWithoutFilters = 10;
