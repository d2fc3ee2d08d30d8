import { type DatasetContents, sumOf } from '../storage/dataset.ts';
import { selectPicture } from '../views/ad-media.ts';
import { findSeenDays, formatMinute, formatSeenDays } from '../views/dates.ts';
import { groupBy } from '../views/lists.ts';
import { computePercentile, formatCount, formatNumber } from '../views/numbers.ts';
import { joinLines, quote, quoteUnlessConstant, quoteUnlessWord } from '../views/safe-text.ts';
import { estimateTokens, sanitizeId, truncateLine } from '../views/tokens.ts';
import type { Fields } from '../views/view.ts';
import type { AdRowReader } from './ad-rows.ts';
import { createAdvertiserKeyFinder } from './advertisers.ts';
import { type Differences, formatCounterChanges } from './gatherings.ts';
import type { AdRow, Cell, Row } from './tables.ts';

export interface RowContext {
  adRows(): AdRowReader;
  /** Milliseconds since the epoch. Addresses of pictures expire. */
  now: number;
}

/** The ads of a gathering are held all at once, so their long texts are left out: a summary does not count them. */
const noTexts = { headline: null, body: null, linkDescription: null, offerLink: null, text: null, json: null };

interface GatheredRows {
  ads: readonly AdRow[];
  countries: readonly Row<'ad_countries'>[];
  /** How many ads have a picture that cannot be shown any more, because its address has expired. */
  expired?: number;
}

/** Reads the rows of a gathering from which its summary is computed. */
export async function readGatheredRows(
  ids: ReadonlySet<string>,
  contents: DatasetContents,
  { adRows, now }: RowContext,
) {
  let expired = 0;
  const ads: AdRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows().readRows(contents, { json: false, ids }))
    for (const { ad, countries, sent } of part) {
      const picture = selectPicture(sent as Fields, { now });
      if ('reason' in picture && picture.expired) expired++;
      ads.push({ ...ad, ...noTexts });
      places.push(...countries);
    }
  return { ads, countries: places, expired };
}

export function formatDifferences(at: number, { newIds, updatedIds, goneIds, counters }: Differences): string {
  const counts = `${formatNumber(newIds.length)} new, ${formatNumber(updatedIds.length)} changed, ${formatNumber(goneIds.length)} no longer listed`;
  return joinLines([
    `Since the last complete gathering of ${formatMinute(at)}: ${counts}.`,
    idsLine('New', newIds),
    idsLine('Changed', updatedIds),
    idsLine('No longer listed (they may still be running)', goneIds),
    formatCounterChanges(counters),
  ]);
}

const maxIdsInText = 12;

function idsLine(label: string, ids: readonly string[]): string | undefined {
  if (ids.length === 0) return;
  const shown = ids.slice(0, maxIdsInText).map((id) => quoteUnlessWord(sanitizeId(id)));
  const rest = ids.length - shown.length;
  return `${label}: ${shown.join(', ')}${rest > 0 ? ` and ${formatNumber(rest)} more` : ''}`;
}

/**
 * Returns the summary of a gathering: its ads counted by their properties, one property on each line. Values are texts
 * of third parties, so they are cleaned and bounded.
 */
export function formatSummary(rows: GatheredRows, maxTokens = 700): string {
  const lines = summaryLines(rows);
  for (let share = 1; ; share *= 0.8) {
    const text = lines.map((line) => (typeof line === 'string' ? line : line(share))).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

/** A line of the summary, or a function that writes it with a share of its values. */
type Line = string | ((share: number) => string);

function summaryLines({ ads, countries, expired = 0 }: GatheredRows): Line[] {
  const spelled = (name: keyof AdRow) => ads.map((ad) => asSpelled(ad[name]));
  const coded = (name: keyof AdRow) => ads.map((ad) => inAnyCase(ad[name]));
  const variants = ads.flatMap(({ variant }) => variant ?? []);
  const lengths = ads.flatMap(({ videoSeconds, videoCount }) => ((videoSeconds ?? videoCount) ? [videoSeconds] : []));
  const countWith = (value: (ad: AdRow) => number | null) =>
    formatNumber(ads.filter((ad) => value(ad) !== null).length);
  const active = (state: number | null) => ads.filter((ad) => ad.active === state);
  const [running, ended, unknown] = [active(1).length, active(0).length, active(null).length];
  const lastSeen = findSeenDays(active(null));
  const days = ads.map(({ daysRunning }) => daysRunning);
  return [
    `${formatCount(ads.length, 'ad')}: ${formatNumber(running)} still running, ${formatNumber(ended)} ended, ${formatNumber(unknown)} unknown${lastSeen ? `, ${formatSeenDays(lastSeen)}` : ''}.`,
    countValues('Advertisers', advertisersOf(ads), 10, quote),
    countValues('Formats', coded('displayFormat'), 8, quoteUnlessConstant),
    countValues('Calls to action', coded('ctaType'), 8, quoteUnlessConstant),
    countValues('Months started, newest first', spelled('startedMonth'), 18, quoteUnlessWord, newestFirst),
    countValues('Landing domains', spelled('landingDomain'), 10, quoteUnlessWord),
    ...(ads.some(({ landing }) => landing !== null)
      ? [countValues('Landing pages', spelled('landing'), 6, quoteUnlessWord)]
      : []),
    countValues('Countries (an ad may count for several)', countriesOf(ads, countries), 12, quoteUnlessWord),
    countValues('Languages of the copy', spelled('language'), 12, quoteUnlessWord),
    numbersText('Days running', days),
    ...(lengths.some((seconds) => seconds !== null) ? [numbersText('Seconds of video', lengths)] : []),
    `Ads with data: reach ${countWith(({ audienceReach }) => audienceReach)}, spend ${countWith(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax)}, revenue ${countWith(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax)}`,
    // Every ad with visible text has a variant.
    `Groups of near-identical copy: ${formatNumber(new Set(variants).size)}; ads without copy: ${formatNumber(ads.length - variants.length)}`,
    countValues('First lines', spelled('firstLine'), 6, quote),
    ...(expired > 0
      ? [`Pictures of ${formatCount(expired, 'ad')} cannot be shown any more: their addresses have expired.`]
      : []),
  ];
}

/** A value of an ad. Values with the same key count as one; the summary shows their most frequent spelling. */
type Value = { key: string; spelling: string } | null;

const asSpelled = (cell: Cell): Value => (cell === null ? null : { key: `${cell}`, spelling: `${cell}` });

/** For codes such as `VIDEO` and `DE`: SQL and the filters of a local library compare them in any case, too. */
const inAnyCase = (cell: Cell): Value => (cell === null ? null : { key: `${cell}`.toLowerCase(), spelling: `${cell}` });

function advertisersOf(ads: GatheredRows['ads']): Value[] {
  const keyOf = createAdvertiserKeyFinder(ads);
  const named = new Set(ads.flatMap((ad) => (ad.pageName === null ? [] : (keyOf(ad) ?? []))));
  return ads.map((ad) => {
    const key = keyOf(ad);
    if (key === null) return null;
    // An id is shown only if no ad of the page has its name.
    return { key, spelling: ad.pageName ?? (named.has(key) ? '' : (ad.pageId ?? '')) };
  });
}

function countriesOf(ads: GatheredRows['ads'], countries: GatheredRows['countries']): Value[] {
  const ids = new Set(ads.map(({ id }) => id));
  const known = countries.filter(({ id }) => id !== null && ids.has(id));
  const unknown = ids.size - new Set(known.map(({ id }) => id)).size;
  return [...known.map(({ country }) => inAnyCase(country)), ...Array.from({ length: unknown }, () => null)];
}

type Counted = [value: string, ads: number];
type Order = (left: Counted, right: Counted) => number;

const byName: Order = ([left], [right]) => (left < right ? -1 : 1);
const commonestFirst: Order = (left, right) => right[1] - left[1] || byName(left, right);
const newestFirst: Order = (left, right) => byName(right, left);

function countValues(
  label: string,
  values: readonly Value[],
  max: number,
  show: (value: string) => string,
  order = commonestFirst,
): Line {
  const known = values.filter((value) => value !== null);
  const sorted = [...groupBy(known, ({ key }) => key).values()]
    .map((same): Counted => [commonestSpelling(same), same.length])
    .sort(order);
  const none = values.length - known.length;
  return (share) => {
    const shown = sorted.slice(0, Math.round(share * Math.min(max, sorted.length)));
    const others = sorted.slice(shown.length);
    const parts = [
      // Values are cut only now, because two values that differ behind the cut are different.
      ...shown.map(([value, ads]) => `${show(truncateLine(value, valueTokens))} ${formatNumber(ads)}`),
      ...(others.length > 0
        ? [`${formatCount(others.length, 'other')} ${formatNumber(sumOf(others.map(([, ads]) => ads)))}`]
        : []),
      ...(none > 0 ? [`none ${formatNumber(none)}`] : []),
    ];
    return `${label} (${formatNumber(sorted.length)}): ${parts.join(', ') || 'none'}`;
  };
}

function commonestSpelling(values: readonly NonNullable<Value>[]): string {
  const spelled = groupBy(
    values.filter(({ spelling }) => spelling !== ''),
    ({ spelling }) => spelling,
  );
  const [[spelling] = ['']] = [...spelled].map(([text, same]): Counted => [text, same.length]).sort(commonestFirst);
  return spelling;
}

const valueTokens = 24;

function numbersText(label: string, values: readonly (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  const unknown = values.length - known.length;
  const without = `unknown for ${formatCount(unknown, 'ad')}`;
  if (known.length === 0) return `${label}: ${without}`;
  const at = (percent: number) => Math.round(100 * computePercentile(known, percent)) / 100;
  const figures = `min ${at(0)}, median ${at(50)}, 90th percentile ${at(90)}, max ${at(100)}`;
  return `${label}: ${figures}${unknown > 0 ? `; ${without}` : ''}`;
}
