import { type DatasetContents, sumOf } from '../storage/dataset.ts';
import { findSeenDays, formatMinute, formatSeenDays } from '../views/dates.ts';
import { groupBy } from '../views/lists.ts';
import { computePercentile, formatCount, formatNumber } from '../views/numbers.ts';
import { joinLines, quote, quoteUnlessConstant, quoteUnlessWord } from '../views/safe-text.ts';
import { estimateTokens, sanitizeId, truncateLine } from '../views/tokens.ts';
import type { AdRowReader } from './ad-rows.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import { type Differences, formatCounterChanges } from './gatherings.ts';
import type { AdRow, Cell, Row } from './tables.ts';

/** The context in which the rows of a gathering are read. */
export interface RowContext {
  adRows(): AdRowReader;
}

/**
 * Replaces the long texts of an ad. All ads of a gathering are in memory at once, and a summary does not count these
 * texts.
 */
const noTexts = { headline: null, body: null, linkDescription: null, offerLink: null, text: null, json: null };

/** The rows from which a summary is computed. */
interface GatheredRows {
  ads: readonly AdRow[];
  countries: readonly Row<'ad_countries'>[];
}

/** Reads the rows of a gathering from which its summary is computed. */
export async function readGatheredRows(ids: ReadonlySet<string>, contents: DatasetContents, { adRows }: RowContext) {
  const ads: AdRow[] = [];
  const countryRows: Row<'ad_countries'>[] = [];
  for await (const part of adRows().readRows(contents, { json: false, ids }))
    for (const { ad, countries } of part) {
      ads.push({ ...ad, ...noTexts });
      countryRows.push(...countries);
    }
  return { ads, countries: countryRows };
}

/**
 * Formats what changed since the last complete gathering.
 * @param at when the last complete gathering was read, in milliseconds since the epoch
 */
export function formatDifferences(at: number, { newIds, updatedIds, goneIds, counters }: Differences): string {
  const counts = `${formatNumber(newIds.length)} new, ${formatNumber(updatedIds.length)} changed, ${formatNumber(goneIds.length)} no longer listed`;
  return joinLines([
    `Since the last complete gathering of ${formatMinute(at)}: ${counts}.`,
    formatIdsLine('New', newIds),
    formatIdsLine('Changed', updatedIds),
    formatIdsLine('No longer listed (they may still be running)', goneIds),
    formatCounterChanges(counters),
  ]);
}

const maxIdsInText = 12;

/** Formats a line of ids. The line names the first ids and counts the others. Returns undefined without ids. */
function formatIdsLine(label: string, ids: readonly string[]): string | undefined {
  if (ids.length === 0) return;
  const shownIds = ids.slice(0, maxIdsInText).map((id) => quoteUnlessWord(sanitizeId(id)));
  const remainingCount = ids.length - shownIds.length;
  return `${label}: ${shownIds.join(', ')}${remainingCount > 0 ? ` and ${formatNumber(remainingCount)} more` : ''}`;
}

/**
 * Formats the summary of a gathering: counts of ads by property, one property on each line. The values are third-party
 * texts, so they are cleaned and cut.
 */
export function formatSummary(rows: GatheredRows, maxTokens = 700): string {
  const lines = buildSummaryLines(rows);
  for (let share = 1; ; share *= 0.8) {
    const text = lines.map((line) => (typeof line === 'string' ? line : line(share))).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

/** A line of the summary, or a function that formats the line with a share of its values, from 0 to 1. */
type Line = string | ((share: number) => string);

function buildSummaryLines({ ads, countries }: GatheredRows): Line[] {
  const readValues = (name: keyof AdRow) => ads.map((ad) => toValue(ad[name]));
  const readCodes = (name: keyof AdRow) => ads.map((ad) => toCodeValue(ad[name]));
  const variants = ads.flatMap(({ variant }) => variant ?? []);
  const videoSeconds = ads.flatMap(({ videoSeconds, videoCount }) =>
    (videoSeconds ?? videoCount) ? [videoSeconds] : [],
  );
  const countWith = (value: (ad: AdRow) => number | null) =>
    formatNumber(ads.filter((ad) => value(ad) !== null).length);
  const selectAdsByState = (state: number | null) => ads.filter((ad) => ad.active === state);
  const [running, ended, unknown] = [
    selectAdsByState(1).length,
    selectAdsByState(0).length,
    selectAdsByState(null).length,
  ];
  const lastSeen = findSeenDays(selectAdsByState(null));
  const days = ads.map(({ daysRunning }) => daysRunning);
  const runningWhenLastRead = ads.filter(({ activeWhenLastRead }) => activeWhenLastRead === 1).length;
  // If the state of all ads is known, the number of running ads says the same.
  const runningText =
    unknown > 0 && runningWhenLastRead > 0 ? `; ${formatNumber(runningWhenLastRead)} running when last read` : '';
  const placeholders = ads.filter(({ hasPlaceholders }) => hasPlaceholders === 1).length;
  return [
    `${formatCount(ads.length, 'ad')}: ${formatNumber(running)} still running, ${formatNumber(ended)} ended, ${formatNumber(unknown)} unknown${lastSeen ? `, ${formatSeenDays(lastSeen)}` : ''}${runningText}.`,
    countValues('Advertisers', listAdvertisers(ads), 10, quote),
    countValues('Formats', readCodes('displayFormat'), 8, quoteUnlessConstant),
    countValues('Calls to action', readCodes('ctaType'), 8, quoteUnlessConstant),
    countValues('Months started, newest first', readValues('startedMonth'), 18, quoteUnlessWord, compareNewestFirst),
    countValues('Landing domains', readValues('landingDomain'), 10, quoteUnlessWord),
    ...(ads.some(({ landing }) => landing !== null)
      ? [countValues('Landing pages', readValues('landing'), 6, quoteUnlessWord)]
      : []),
    countValues('Countries (an ad may count for several)', listCountries(ads, countries), 12, quoteUnlessWord),
    countValues('Languages of the copy', readValues('language'), 12, quoteUnlessWord),
    formatNumbers('Days running', days),
    ...(videoSeconds.some((seconds) => seconds !== null) ? [formatNumbers('Seconds of video', videoSeconds)] : []),
    `Ads with data: reach ${countWith(({ audienceReach }) => audienceReach)}, spend ${countWith(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax)}, revenue ${countWith(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax)}`,
    // An ad has a variant exactly if it has visible text.
    `Groups of near-identical copy: ${formatNumber(new Set(variants).size)}; ads without copy: ${formatNumber(ads.length - variants.length)}`,
    countValues('First lines', readValues('firstLine'), 6, quote),
    ...(placeholders > 0
      ? [`Ads whose texts have placeholders such as {{product.name}}: ${formatNumber(placeholders)}`]
      : []),
    ...formatUnknownDates(ads),
    ...formatPictureStates(ads),
  ];
}

/** Formats how many ads lack a date. Returns no line if all ads have their dates. */
function formatUnknownDates(ads: GatheredRows['ads']): string[] {
  const counts = (['startedAt', 'lastSeenAt'] as const).flatMap((name) => {
    const unknown = ads.filter((ad) => ad[name] === null).length;
    return unknown > 0 ? `${name} ${formatNumber(unknown)}` : [];
  });
  return counts.length > 0 ? [`Unknown dates: ${counts.join(', ')}`] : [];
}

const pictureStates = ['available', 'expired', 'none', 'failed'];

/** Formats whether the pictures of ads can be shown. Returns no line if nothing is known against any of them. */
function formatPictureStates(ads: GatheredRows['ads']): string[] {
  const counts = new Map(pictureStates.map((state) => [state, ads.filter((ad) => ad.pictureState === state).length]));
  const tried = sumOf([...counts.values()]);
  if (tried === (counts.get('available') ?? 0)) return [];
  const known = [...counts].flatMap(([state, number]) => (number > 0 ? `${state} ${formatNumber(number)}` : []));
  const rest = ads.length - tried;
  return [`Pictures: ${[...known, ...(rest > 0 ? [`not tried ${formatNumber(rest)}`] : [])].join(', ')}`];
}

/** A value of an ad. Values with the same key count as one value, and the summary shows the most frequent spelling. */
type Value = { key: string; spelling: string } | null;

const toValue = (cell: Cell): Value => (cell === null ? null : { key: `${cell}`, spelling: `${cell}` });

/**
 * For codes such as `VIDEO` and `DE`, whose case does not matter. SQL and the filters of a local library ignore case,
 * too.
 */
const toCodeValue = (cell: Cell): Value =>
  cell === null ? null : { key: `${cell}`.toLowerCase(), spelling: `${cell}` };

/**
 * Returns the advertiser of each ad, named by the page name if any of its ads has one, and otherwise by the page id.
 */
function listAdvertisers(ads: GatheredRows['ads']): Value[] {
  const keyOf = createAdvertiserKeyFinder(ads);
  const named = new Set(ads.flatMap((ad) => (ad.pageName === null ? [] : (keyOf(ad) ?? []))));
  return ads.map((ad) => {
    const key = keyOf(ad);
    if (key === null) return null;
    // An empty spelling is never shown, so the id appears only if no ad of the page has the name.
    return { key, spelling: ad.pageName ?? (named.has(key) ? '' : (ad.pageId ?? '')) };
  });
}

/** Returns the countries of all ads, and null for each ad without a country. */
function listCountries(ads: GatheredRows['ads'], countries: GatheredRows['countries']): Value[] {
  const ids = new Set(ads.map(({ id }) => id));
  const known = countries.filter(({ id }) => id !== null && ids.has(id));
  const unknown = ids.size - new Set(known.map(({ id }) => id)).size;
  return [...known.map(({ country }) => toCodeValue(country)), ...Array.from({ length: unknown }, () => null)];
}

type Counted = [value: string, ads: number];
type Order = (left: Counted, right: Counted) => number;

const compareNames: Order = ([left], [right]) => (left < right ? -1 : 1);
const compareByFrequency: Order = (left, right) => right[1] - left[1] || compareNames(left, right);
const compareNewestFirst: Order = (left, right) => compareNames(right, left);

/** Returns a line that counts the ads of each value, for example `Formats (2): VIDEO 9, IMAGE 4, none 1`. */
function countValues(
  label: string,
  values: readonly Value[],
  max: number,
  show: (value: string) => string,
  order = compareByFrequency,
): Line {
  const known = values.filter((value) => value !== null);
  const sorted = [...groupBy(known, ({ key }) => key).values()]
    .map((same): Counted => [findMostFrequentSpelling(same), same.length])
    .sort(order);
  const none = values.length - known.length;
  return (share) => {
    const shownValues = selectShownValues(sorted, Math.round(share * Math.min(max, sorted.length)));
    const otherValues = sorted.filter((value) => !shownValues.includes(value));
    const parts = [
      // Values are cut after counting, because two values may differ only behind the cut.
      ...shownValues.map(([value, ads]) => `${show(truncateLine(value, valueTokens))} ${formatNumber(ads)}`),
      ...(otherValues.length > 0
        ? [`${formatCount(otherValues.length, 'other')} ${formatNumber(sumOf(otherValues.map(([, ads]) => ads)))}`]
        : []),
      ...(none > 0 ? [`none ${formatNumber(none)}`] : []),
    ];
    return `${label} (${formatNumber(sorted.length)}): ${parts.join(', ') || 'none'}`;
  };
}

/**
 * Returns the most frequent values in their order, so that no hidden value is more frequent than a shown one. A single
 * remaining value is shown, too, because its name is as short as "1 other".
 */
function selectShownValues(sorted: readonly Counted[], max: number): readonly Counted[] {
  if (max >= sorted.length - 1 && max > 0) return sorted;
  const mostFrequent = new Set(sorted.toSorted(([, left], [, right]) => right - left).slice(0, max));
  return sorted.filter((value) => mostFrequent.has(value));
}

function findMostFrequentSpelling(values: readonly NonNullable<Value>[]): string {
  const spelled = groupBy(
    values.filter(({ spelling }) => spelling !== ''),
    ({ spelling }) => spelling,
  );
  const [[spelling] = ['']] = [...spelled].map(([text, same]): Counted => [text, same.length]).sort(compareByFrequency);
  return spelling;
}

/** The most tokens of a value. */
const valueTokens = 24;

/** Formats the minimum, median, 90th percentile and maximum of the known values. */
function formatNumbers(label: string, values: readonly (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  const unknown = values.length - known.length;
  const unknownText = `unknown for ${formatCount(unknown, 'ad')}`;
  if (known.length === 0) return `${label}: ${unknownText}`;
  const formatPercentile = (percent: number) => Math.round(100 * computePercentile(known, percent)) / 100;
  const figures = `min ${formatPercentile(0)}, median ${formatPercentile(50)}, 90th percentile ${formatPercentile(90)}, max ${formatPercentile(100)}`;
  return `${label}: ${figures}${unknown > 0 ? `; ${unknownText}` : ''}`;
}
