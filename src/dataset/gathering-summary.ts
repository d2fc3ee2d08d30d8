import type { DatasetContents, Gathering } from '../storage/dataset.ts';
import { formatDay, formatLastSeenDays, formatMinute, summarizeLastSeenDays } from '../views/dates.ts';
import { groupBy } from '../views/group-by.ts';
import { computePercentile, formatCount, formatNumber, sumNumbers } from '../views/numbers.ts';
import { joinLines, quote, quoteUnlessConstant, quoteUnlessWord } from '../views/safe-text.ts';
import { estimateTokens, sanitizeId, truncateLine } from '../views/tokens.ts';
import type { AdRowReader } from './ad-rows.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import {
  formatCounterChanges,
  type GatheringDifferences,
  getFirstReadingTime,
  hasOutdatedPages,
} from './gatherings.ts';
import type { AdRow, Cell, Row } from './tables.ts';

/** The part of a tool call's context that is needed to convert stored ads to table rows. */
export interface AdRowContext {
  getAdRowReader(): AdRowReader;
}

/**
 * Values that replace the long texts of an ad with null. A summary does not need these texts, and the texts of all ads
 * of a search would take too much memory.
 */
const nullsForLongTexts = {
  headline: null,
  body: null,
  linkDescription: null,
  offerLink: null,
  text: null,
  json: null,
};

/** The table rows from which a summary is computed. */
interface GatheredRows {
  ads: readonly AdRow[];
  countries: readonly Row<'ad_countries'>[];
}

/**
 * Reads the table rows of the ads to summarize.
 * @param ids ids of these ads, in lower case
 */
export async function readGatheredRows(
  ids: ReadonlySet<string>,
  contents: DatasetContents,
  { getAdRowReader }: AdRowContext,
) {
  const ads: AdRow[] = [];
  const countryRows: Row<'ad_countries'>[] = [];
  for await (const adRowsBatch of getAdRowReader().readRows(contents, { includeJson: false, ids }))
    for (const { ad, countries } of adRowsBatch) {
      ads.push({ ...ad, ...nullsForLongTexts });
      countryRows.push(...countries);
    }
  return { ads, countries: countryRows };
}

/**
 * Formats the changes of the ads of a search since the search was last read completely, e.g. `12 new, 3 changed, 1 no
 * longer listed`. If the previous gathering was begun more than a day before its end, states the day on which it was
 * begun, because the new ads may have appeared since then.
 */
export function formatDifferences(
  previousGathering: Gathering,
  { newIds, updatedIds, goneIds, counterChanges }: GatheringDifferences,
  filters: Gathering['filters'],
): string {
  const counts = `${formatNumber(newIds.length)} new, ${formatNumber(updatedIds.length)} changed, ${formatNumber(goneIds.length)} no longer listed`;
  const beginning = hasOutdatedPages(previousGathering)
    ? `, begun on ${formatDay(getFirstReadingTime(previousGathering))}`
    : '';
  return joinLines([
    `Since the last complete gathering of ${formatMinute(previousGathering.gatheredAt)}${beginning}: ${counts}.`,
    formatIdsLine('New', newIds),
    formatIdsLine('Changed', updatedIds),
    formatIdsLine(formatGoneAdsTitle(filters), goneIds),
    formatCounterChanges(counterChanges),
  ]);
}

/**
 * Returns the title for ads that a search no longer lists. With most filters, such ads may still be running. Such ads
 * have ended if the `active` filter selects only running ads, or if the `question` filter selects imported ads, because
 * a complete import removes ads that are gone.
 */
export const formatGoneAdsTitle = (filters: Gathering['filters']): string =>
  filters?.question === undefined && filters?.active !== true
    ? 'No longer listed (they may still be running)'
    : 'No longer listed';

const maxIdsInText = 12;

/** Formats ad ids as a line, e.g. `New: 101, 102 and 5 more`. Returns undefined if there are no ids. */
function formatIdsLine(label: string, ids: readonly string[]): string | undefined {
  if (ids.length === 0) return;
  const shownIds = ids.slice(0, maxIdsInText).map((id) => quoteUnlessWord(sanitizeId(id)));
  const remainingCount = ids.length - shownIds.length;
  return `${label}: ${shownIds.join(', ')}${remainingCount > 0 ? ` and ${formatNumber(remainingCount)} more` : ''}`;
}

/**
 * Summarizes ads as text, with one line per property, such as country or language. Each line states the number of ads
 * for each value. The values are third-party text, so they are sanitized and shortened.
 */
export function formatSummary(rows: GatheredRows, maxTokens = 700): string {
  const summaryLines = buildSummaryLines(rows);
  for (let share = 1; ; share *= 0.8) {
    const text = summaryLines
      .map((summaryLine) => (typeof summaryLine === 'string' ? summaryLine : summaryLine(share)))
      .join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

/**
 * A line of the summary, or a function that formats the line with only a share (0 to 1) of its values. The share is
 * reduced until the summary fits its token budget.
 */
type SummaryLine = string | ((share: number) => string);

function buildSummaryLines({ ads, countries }: GatheredRows): SummaryLine[] {
  const listValues = (name: keyof AdRow) => ads.map((ad) => toCountedValue(ad[name]));
  const listCodes = (name: keyof AdRow) => ads.map((ad) => toCountedCode(ad[name]));
  const variants = ads.flatMap(({ variant }) => variant ?? []);
  const videoSeconds = ads.flatMap(({ videoSeconds, videoCount }) =>
    (videoSeconds ?? videoCount) ? [videoSeconds] : [],
  );
  const countAdsWith = (getValue: (ad: AdRow) => number | null) =>
    formatNumber(ads.filter((ad) => getValue(ad) !== null).length);
  const selectAdsByActivity = (active: number | null) => ads.filter((ad) => ad.active === active);
  const adsWithUnknownActivity = selectAdsByActivity(null);
  const [runningCount, endedCount, unknownCount] = [
    selectAdsByActivity(1).length,
    selectAdsByActivity(0).length,
    adsWithUnknownActivity.length,
  ];
  const lastSeenDays = summarizeLastSeenDays(adsWithUnknownActivity);
  const daysRunningPerAd = ads.map(({ daysRunning }) => daysRunning);
  const runningWhenLastReadCount = adsWithUnknownActivity.filter(
    ({ activeWhenLastRead }) => activeWhenLastRead === 1,
  ).length;
  // Omit this text if some ads are still running, because two different numbers of running ads would contradict each
  // other.
  const runningWhenLastReadText =
    runningCount === 0 && runningWhenLastReadCount > 0
      ? `; ${formatNumber(runningWhenLastReadCount)} running when last read`
      : '';
  const placeholderCount = ads.filter(({ hasPlaceholders }) => hasPlaceholders === 1).length;
  return [
    `${formatCount(ads.length, 'ad')}: ${formatNumber(runningCount)} still running, ${formatNumber(endedCount)} ended, ${formatNumber(unknownCount)} unknown${lastSeenDays ? `, ${formatLastSeenDays(lastSeenDays)}` : ''}${runningWhenLastReadText}.`,
    formatValueCounts('Advertisers', listAdvertisers(ads), 10, quote),
    formatValueCounts('Formats', listCodes('displayFormat'), 8, quoteUnlessConstant),
    formatValueCounts('Calls to action', listCodes('ctaType'), 8, quoteUnlessConstant),
    formatValueCounts('Months started, newest first', listValues('startedMonth'), 18, quoteUnlessWord, newestFirst),
    formatValueCounts('Landing domains', listValues('landingDomain'), 10, quoteUnlessWord),
    ...(ads.some(({ landing }) => landing !== null)
      ? [formatValueCounts('Landing pages', listValues('landing'), 6, quoteUnlessWord)]
      : []),
    formatValueCounts('Countries (an ad may count for several)', listCountries(ads, countries), 12, quoteUnlessWord),
    formatValueCounts('Languages of the copy', listValues('language'), 12, quoteUnlessWord),
    formatDistribution('Days running', daysRunningPerAd),
    ...(videoSeconds.some((seconds) => seconds !== null) ? [formatDistribution('Seconds of video', videoSeconds)] : []),
    `Ads with data: reach ${countAdsWith(({ audienceReach }) => audienceReach)}, spend ${countAdsWith(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax)}, revenue ${countAdsWith(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax)}`,
    // Each ad with visible text belongs to a variant, which is a group of ads with nearly the same text.
    `Groups of near-identical copy: ${formatNumber(new Set(variants).size)}; ads without copy: ${formatNumber(ads.length - variants.length)}`,
    formatValueCounts('First lines', listValues('firstLine'), 6, quote),
    ...(placeholderCount > 0
      ? [`Ads whose texts have placeholders such as {{product.name}}: ${formatNumber(placeholderCount)}`]
      : []),
    ...formatUnknownDates(ads),
    ...formatPictureStates(ads),
  ];
}

/** Formats the number of ads for which each date is unknown. Returns an empty list if no date is missing. */
function formatUnknownDates(ads: GatheredRows['ads']): string[] {
  const unknownDateTexts = (['startedAt', 'lastSeenAt'] as const).flatMap((name) => {
    const unknownCount = ads.filter((ad) => ad[name] === null).length;
    return unknownCount > 0 ? `${name} ${formatNumber(unknownCount)}` : [];
  });
  return unknownDateTexts.length > 0 ? [`Unknown dates: ${unknownDateTexts.join(', ')}`] : [];
}

const pictureStates = ['available', 'expired', 'none', 'failed'];

/** Formats the number of ads whose picture can be shown. Returns an empty list if no picture is known to be missing. */
function formatPictureStates(ads: GatheredRows['ads']): string[] {
  const countsByState = new Map(
    pictureStates.map((state) => [state, ads.filter((ad) => ad.pictureState === state).length]),
  );
  const checkedCount = sumNumbers([...countsByState.values()]);
  if (checkedCount === (countsByState.get('available') ?? 0)) return [];
  const stateTexts = [...countsByState].flatMap(([state, adCount]) =>
    adCount > 0 ? `${state} ${formatNumber(adCount)}` : [],
  );
  const uncheckedCount = ads.length - checkedCount;
  return [
    `Pictures: ${[...stateTexts, ...(uncheckedCount > 0 ? [`not tried ${formatNumber(uncheckedCount)}`] : [])].join(', ')}`,
  ];
}

/**
 * A field value of an ad, such as a format, that the summary counts. Values with the same `key` are counted together
 * and shown in their most frequent spelling.
 */
type CountedValue = { key: string; spelling: string } | null;

const toCountedValue = (cell: Cell): CountedValue => (cell === null ? null : { key: `${cell}`, spelling: `${cell}` });

/**
 * Converts a code such as `VIDEO` or `DE` to a value that the summary counts. Codes that differ only in case are
 * counted together, as in SQL and in the filters of a local library (a server of imported ads).
 */
const toCountedCode = (cell: Cell): CountedValue =>
  cell === null ? null : { key: `${cell}`.toLowerCase(), spelling: `${cell}` };

/** Lists the advertiser of each ad by page name, or by page id if no ad of the advertiser has a page name. */
function listAdvertisers(ads: GatheredRows['ads']): CountedValue[] {
  const findAdvertiserKey = createAdvertiserKeyFinder(ads);
  const namedKeys = new Set(ads.flatMap((ad) => (ad.pageName === null ? [] : (findAdvertiserKey(ad) ?? []))));
  return ads.map((ad) => {
    const key = findAdvertiserKey(ad);
    if (key === null) return null;
    // Leave the spelling empty if another ad of this advertiser has a page name. `formatValueCounts` then shows this
    // name.
    return { key, spelling: ad.pageName ?? (namedKeys.has(key) ? '' : (ad.pageId ?? '')) };
  });
}

/**
 * Lists the countries of all ads, with null for each ad without a country. An ad with several countries counts for each
 * of them.
 */
function listCountries(ads: GatheredRows['ads'], countries: GatheredRows['countries']): CountedValue[] {
  const adIds = new Set(ads.map(({ id }) => id));
  const countryRowsOfAds = countries.filter(({ id }) => id !== null && adIds.has(id));
  const adsWithoutCountryCount = adIds.size - new Set(countryRowsOfAds.map(({ id }) => id)).size;
  return [
    ...countryRowsOfAds.map(({ country }) => toCountedCode(country)),
    ...Array.from({ length: adsWithoutCountryCount }, () => null),
  ];
}

type ValueCount = [value: string, ads: number];
type CompareValueCounts = (left: ValueCount, right: ValueCount) => number;

const compareByValue: CompareValueCounts = ([left], [right]) => (left < right ? -1 : 1);
const compareByFrequency: CompareValueCounts = (left, right) => right[1] - left[1] || compareByValue(left, right);

/** The order of the values in a line of the summary, and the text for the values that the line omits. */
interface ValueOrder {
  compare: CompareValueCounts;
  formatOmittedCount(omittedCount: number): string;
}

const mostFrequentFirst: ValueOrder = {
  compare: compareByFrequency,
  formatOmittedCount: (omittedCount) => formatCount(omittedCount, 'other'),
};
/** Omits the oldest months. A gap between two months would look like a month in which no ad started. */
const newestFirst: ValueOrder = {
  compare: (left, right) => compareByValue(right, left),
  formatOmittedCount: (omittedCount) => `${formatNumber(omittedCount)} older`,
};

/** Formats a line with the number of ads for each value, e.g. `Formats (2): VIDEO 9, IMAGE 4, none 1`. */
function formatValueCounts(
  label: string,
  values: readonly CountedValue[],
  maxShownValues: number,
  formatValue: (value: string) => string,
  { compare, formatOmittedCount } = mostFrequentFirst,
): SummaryLine {
  const knownValues = values.filter((value) => value !== null);
  const valueCounts = [...groupBy(knownValues, ({ key }) => key).values()]
    .map((equalValues): ValueCount => [findMostFrequentSpelling(equalValues), equalValues.length])
    .sort(compare);
  const missingCount = values.length - knownValues.length;
  return (share) => {
    const shownValues = selectShownValues(
      valueCounts,
      Math.round(share * Math.min(maxShownValues, valueCounts.length)),
    );
    const omittedValues = valueCounts.slice(shownValues.length);
    const valueTexts = [
      // The values are shortened only after counting, because different values may have the same beginning.
      ...shownValues.map(
        ([value, adCount]) => `${formatValue(truncateLine(value, maxValueTokens))} ${formatNumber(adCount)}`,
      ),
      ...(omittedValues.length > 0
        ? [
            `${formatOmittedCount(omittedValues.length)} ${formatNumber(sumNumbers(omittedValues.map(([, adCount]) => adCount)))}`,
          ]
        : []),
      ...(missingCount > 0 ? [`none ${formatNumber(missingCount)}`] : []),
    ];
    return `${label} (${formatNumber(valueCounts.length)}): ${valueTexts.join(', ') || 'none'}`;
  };
}

/**
 * Returns the first values. If only one value would be omitted, returns this value too, because its name takes no more
 * space than "1 other".
 */
const selectShownValues = (valueCounts: readonly ValueCount[], maxShownValues: number): readonly ValueCount[] =>
  maxShownValues >= valueCounts.length - 1 ? valueCounts : valueCounts.slice(0, maxShownValues);

function findMostFrequentSpelling(values: readonly NonNullable<CountedValue>[]): string {
  const valuesBySpelling = groupBy(
    values.filter(({ spelling }) => spelling !== ''),
    ({ spelling }) => spelling,
  );
  const [[spelling] = ['']] = [...valuesBySpelling]
    .map(([text, equalSpellings]): ValueCount => [text, equalSpellings.length])
    .sort(compareByFrequency);
  return spelling;
}

/** The maximum length, in tokens, of a value in the summary, e.g. the name of an advertiser. */
const maxValueTokens = 24;

/** Formats the minimum, median, 90th percentile and maximum of the values, and the number of ads without a value. */
function formatDistribution(label: string, values: readonly (number | null)[]): string {
  const knownValues = values.filter((value) => value !== null);
  const unknownCount = values.length - knownValues.length;
  const unknownText = `unknown for ${formatCount(unknownCount, 'ad')}`;
  if (knownValues.length === 0) return `${label}: ${unknownText}`;
  const formatPercentile = (percent: number) => Math.round(100 * computePercentile(knownValues, percent)) / 100;
  const figureTexts = `min ${formatPercentile(0)}, median ${formatPercentile(50)}, 90th percentile ${formatPercentile(90)}, max ${formatPercentile(100)}`;
  return `${label}: ${figureTexts}${unknownCount > 0 ? `; ${unknownText}` : ''}`;
}
