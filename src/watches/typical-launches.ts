import * as z from 'zod';
import type { SearchFilter } from '../api/search-filters.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import { type AdQuery, findGatherings } from '../dataset/gatherings.ts';
import { type DatasetContents, normalizeAdId } from '../storage/dataset.ts';
import { dayMs } from '../views/durations.ts';
import type { DataOf } from '../views/fields.ts';
import { computeMedian, formatCount } from '../views/numbers.ts';
import type { WatchCheck } from './check.ts';

/**
 * Schema of a comparison: the number of ads that started since the last check, and the numbers for earlier intervals of
 * the same length, e.g. weeks.
 */
export const TypicalLaunchesView = z
  .looseObject({
    started: z.number().describe('Number of new ads that started since the last check.'),
    weeks: z.number().describe('Number of full weeks before the last check that are compared.'),
    days: z.number().optional().describe('Days of an interval, if it is not a week.'),
    intervals: z.number().optional().describe('Number of intervals that are compared, if an interval is not a week.'),
    median: z.number().describe('Median number of launches in an interval.'),
    least: z.number().describe('Smallest number of launches in an interval.'),
    most: z.number().describe('Largest number of launches in an interval.'),
  })
  .meta({ title: 'Usual' });
export type TypicalLaunchesView = DataOf<typeof TypicalLaunchesView>;

/**
 * The maximum number of days before the last check whose launches are compared. The days are divided into intervals as
 * long as the time since the last check. If an interval is longer than a week, up to eight intervals are compared, even
 * if they cover more days.
 */
const maxComparedDays = 56;
/** The minimum number of days before the last check whose launches must be known. Otherwise, nothing is compared. */
const minComparedDays = 28;
/**
 * The limits of the number of compared intervals if an interval is longer than a week. For shorter intervals,
 * `maxComparedDays` and `minComparedDays` apply instead.
 */
const intervalCountLimits = { maxCount: 8, minCount: 4 };
/**
 * The minimum time between two checks whose launches are compared, in milliseconds. The API states only the day of a
 * launch, so shorter intervals cannot be compared.
 */
const minCheckIntervalMs = 20 * 3_600_000;

/**
 * Counts the ads that started since the last check, and the launches in earlier intervals of the same length.
 *
 * Returns undefined if the launches cannot be compared. This is the case in the following situations:
 *
 * - The check is incomplete, or there is no earlier check.
 * - The launches of fewer than four intervals, or of less than four weeks, are known.
 * - The filters select ads by running state or by date, so they omit ads that have ended.
 */
export async function computeTypicalLaunches(
  adQuery: AdQuery,
  { previousCheck, changes, gathering }: WatchCheck,
  contents: DatasetContents,
  { getAdRowReader, adFilters }: { getAdRowReader(): AdRowReader; adFilters: readonly SearchFilter[] },
): Promise<TypicalLaunchesView | undefined> {
  if (!gathering.isComplete || !previousCheck || !changes) return;
  if (adQuery.collectionId !== undefined || selectsAdsByTime(adQuery, adFilters)) return;
  const elapsedMs = gathering.gatheredAt - previousCheck.readAt;
  if (elapsedMs < minCheckIntervalMs) return;
  const intervalDays = Math.max(1, Math.round(elapsedMs / dayMs));
  const listedIds = new Set(findGatherings(contents, adQuery).flatMap(({ adIds }) => [...adIds]));
  const newIds = new Set(changes.newIds.map(normalizeAdId));
  const lastDay = getDayNumber(previousCheck.readAt);
  /** The number of launches in each interval before the last check. The most recent interval comes first. */
  const launchesByInterval: number[] = [];
  let launchCountSinceLastCheck = 0;
  let earliestDay = lastDay;
  for await (const adRowsBatch of getAdRowReader().readRows(contents, { includeJson: false, ids: listedIds }))
    for (const { ad } of adRowsBatch) {
      if (ad.startedAt === null || ad.id === null) continue;
      const day = getDayNumber(Date.parse(ad.startedAt));
      earliestDay = Math.min(earliestDay, day);
      if (day >= lastDay) launchCountSinceLastCheck += newIds.has(normalizeAdId(ad.id)) ? 1 : 0;
      else {
        const intervalIndex = Math.floor((lastDay - 1 - day) / intervalDays);
        launchesByInterval[intervalIndex] = (launchesByInterval[intervalIndex] ?? 0) + 1;
      }
    }
  const knownIntervals = Math.floor((lastDay - earliestDay) / intervalDays);
  const intervals = Math.min(
    knownIntervals,
    Math.max(intervalCountLimits.maxCount, Math.floor(maxComparedDays / intervalDays)),
  );
  if (intervals < Math.max(intervalCountLimits.minCount, Math.ceil(minComparedDays / intervalDays))) return;
  const sortedCounts = Array.from(
    { length: intervals },
    (_, intervalIndex) => launchesByInterval[intervalIndex] ?? 0,
  ).sort((left, right) => left - right);
  return {
    started: launchCountSinceLastCheck,
    weeks: Math.floor((intervals * intervalDays) / 7),
    ...(intervalDays !== 7 && { days: intervalDays, intervals }),
    median: computeMedian(sortedCounts),
    least: sortedCounts[0] ?? 0,
    most: sortedCounts.at(-1) ?? 0,
  };
}

const getDayNumber = (timeMs: number): number => Math.floor(timeMs / dayMs);

const numberWords: Record<number, string> = { 4: 'four', 5: 'five', 6: 'six', 7: 'seven', 8: 'eight' };

/**
 * Formats the comparison as a sentence, e.g. `Of 14 new, 9 started since 16 Nov; in the eight weeks before 3 to 9 a
 * week (median 5).` For intervals other than weeks, the sentence ends, for example, with `in the 18 intervals of 3 days
 * before 0 to 4 each (median 1).`
 */
export function formatTypicalLaunches(
  typicalLaunches: TypicalLaunchesView,
  { previousCheck, changes }: Pick<WatchCheck, 'previousCheck' | 'changes'>,
): string {
  const { started, weeks, days = 7, intervals = weeks, median, least, most } = typicalLaunches;
  const countText = numberWords[intervals] ?? String(intervals);
  const [earlierIntervals, perInterval] =
    days === 7
      ? [`${countText} weeks`, 'a week']
      : days === 1
        ? [`${countText} days`, 'a day']
        : [`${countText} intervals of ${formatCount(days, 'day')}`, 'each'];
  const range = least === most ? String(least) : `${least} to ${most}`;
  const day = dayFormat.format(previousCheck?.readAt);
  return `Of ${changes?.newIds.length} new, ${started} started since ${day}; in the ${earlierIntervals} before ${range} ${perInterval} (median ${median}).`;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/**
 * Returns true if a search selects ads by running state or by date. Decides this from the names and the described types
 * of its filters.
 */
function selectsAdsByTime({ filters = {}, split = [] }: AdQuery, adFilters: readonly SearchFilter[]): boolean {
  const dateFilterKeys = new Set(adFilters.flatMap(({ key, type }) => (type === 'date' ? key : [])));
  return [filters, ...split].some(function hasTimeFilter(value: unknown): boolean {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    return Object.entries(value).some(
      ([key, innerValue]) => dateFilterKeys.has(key) || isTimeFilter(key) || hasTimeFilter(innerValue),
    );
  });
}

const isTimeFilter = (key: string) =>
  key.split(/[^A-Za-z]|(?=[A-Z])/).some((word) => timeWords.has(word.toLowerCase()));

const timeWords = new Set(
  'active inactive status state running run live date dates day days week month year time since until before after start started starts end ended ends seen launch launched created published age missing'.split(
    ' ',
  ),
);
