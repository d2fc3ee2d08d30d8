import { type DatasetContents, sumOf } from '../storage/dataset.ts';
import { pictureOf } from '../views/ad-media.ts';
import { minute, seenDays, seenText } from '../views/dates.ts';
import { count, numberText } from '../views/lists.ts';
import { constant, linesOf, quote, word } from '../views/safe-text.ts';
import { estimateTokens, lineWithin, untrustedId } from '../views/tokens.ts';
import type { Fields } from '../views/view.ts';
import type { AdRowReader } from './ad-rows.ts';
import type { Differences } from './gatherings.ts';
import type { AdRow, Row } from './tables.ts';

export interface RowContext {
  adRows(): AdRowReader;
  /** Milliseconds since the epoch. Addresses of pictures expire. */
  now: number;
}

/** All ads of a gathering are held at once: without their long texts, which a summary does not count. */
const noTexts = { headline: null, body: null, linkDescription: null, offerLink: null, text: null, json: null };

interface GatheredRows {
  ads: readonly AdRow[];
  countries: readonly Row<'ad_countries'>[];
  /** Ads whose picture cannot be shown any more, because its address has expired. */
  expired?: number;
}

export async function gatheredRows(ids: ReadonlySet<string>, contents: DatasetContents, { adRows, now }: RowContext) {
  let expired = 0;
  const ads: AdRow[] = [];
  const places: Row<'ad_countries'>[] = [];
  for await (const part of adRows().read(contents, { json: false, ids }))
    for (const { ad, countries, sent } of part) {
      const picture = pictureOf(sent as Fields, { now });
      if ('reason' in picture && picture.expired) expired++;
      ads.push({ ...ad, ...noTexts });
      places.push(...countries);
    }
  return { ads, countries: places, expired };
}

export function changesText(at: number, { fresh, updated, gone }: Differences): string {
  const counts = `${numberText(fresh.length)} new, ${numberText(updated.length)} changed, ${numberText(gone.length)} no longer listed`;
  return linesOf([
    `Since the last complete gathering of ${minute(at)}: ${counts}.`,
    idsLine('New', fresh),
    idsLine('Changed', updated),
    idsLine('No longer listed (they may still be running)', gone),
  ]);
}

const maxIdsInText = 12;

function idsLine(label: string, ids: readonly string[]): string | undefined {
  if (ids.length === 0) return;
  const shown = ids.slice(0, maxIdsInText).map((id) => word(untrustedId(id)));
  const rest = ids.length - shown.length;
  return `${label}: ${shown.join(', ')}${rest > 0 ? ` and ${numberText(rest)} more` : ''}`;
}

/** The ads of a gathering in counts. Values are texts of third parties, cleaned and bounded. */
export function summaryText(rows: GatheredRows, maxTokens = 700): string {
  const lines = summaryLines(rows);
  for (let share = 1; ; share *= 0.8) {
    const text = lines.map((line) => (typeof line === 'string' ? line : line(share))).join('\n');
    if (estimateTokens(text) <= maxTokens || share < 0.01) return text;
  }
}

type Line = string | ((share: number) => string);

function summaryLines({ ads, countries, expired = 0 }: GatheredRows): Line[] {
  const column = (name: keyof AdRow) => ads.map((ad) => ad[name] as string | null);
  const ids = new Set(ads.map(({ id }) => id));
  const placed = countries.filter(({ id }) => id !== null && ids.has(id));
  const nowhere = ids.size - new Set(placed.map(({ id }) => id)).size;
  const places = [...placed.map(({ country }) => country), ...Array.from({ length: nowhere }, () => null)];
  const variants = ads.flatMap(({ variant }) => variant ?? []);
  const lengths = ads.flatMap(({ videoSeconds, videoCount }) => ((videoSeconds ?? videoCount) ? [videoSeconds] : []));
  const countWith = (value: (ad: AdRow) => number | null) => numberText(ads.filter((ad) => value(ad) !== null).length);
  const active = (state: number | null) => ads.filter((ad) => ad.active === state);
  const [running, ended, unknown] = [active(1).length, active(0).length, active(null).length];
  const lastSeen = seenDays(active(null));
  const advertisers = ads.map(({ pageName, pageId }) => pageName ?? pageId);
  const days = ads.map(({ daysRunning }) => daysRunning);
  return [
    `${count(ads.length, 'ad')}: ${numberText(running)} still running, ${numberText(ended)} ended, ${numberText(unknown)} unknown${lastSeen ? `, ${seenText(lastSeen)}` : ''}.`,
    countValues('Advertisers', advertisers, 10, quote),
    countValues('Formats', column('displayFormat'), 8, constant),
    countValues('Calls to action', column('ctaType'), 8, constant),
    countValues('Months started, newest first', column('startedMonth'), 18, word, newestFirst),
    countValues('Landing domains', column('landingDomain'), 10, word),
    ...(ads.some(({ landing }) => landing !== null) ? [countValues('Landing pages', column('landing'), 6, word)] : []),
    countValues('Countries (an ad may count for several)', places, 12, word),
    countValues('Languages of the copy', column('language'), 12, word),
    numbersText('Days running', days),
    ...(lengths.some((seconds) => seconds !== null) ? [numbersText('Seconds of video', lengths)] : []),
    `Ads with data: reach ${countWith(({ audienceReach }) => audienceReach)}, spend ${countWith(({ adSpendMin, adSpendMax }) => adSpendMin ?? adSpendMax)}, revenue ${countWith(({ revenueMin, revenueMax }) => revenueMin ?? revenueMax)}`,
    `Groups of near-identical copy: ${numberText(new Set(variants).size)}; ads without copy: ${numberText(ads.length - variants.length)}`,
    countValues('First lines', column('firstLine'), 6, quote),
    ...(expired > 0
      ? [`Pictures of ${count(expired, 'ad')} cannot be shown any more: their addresses have expired.`]
      : []),
  ];
}

type Order = (left: [value: string, ads: number], right: [value: string, ads: number]) => number;

const byName: Order = ([left], [right]) => (left < right ? -1 : 1);
const commonestFirst: Order = (left, right) => right[1] - left[1] || byName(left, right);
const newestFirst: Order = (left, right) => byName(right, left);

function countValues(
  label: string,
  values: readonly (string | null)[],
  max: number,
  show: (value: string) => string,
  order = commonestFirst,
): Line {
  const numbers = new Map<string, number>();
  for (const value of values) if (value !== null) numbers.set(value, (numbers.get(value) ?? 0) + 1);
  const sorted = [...numbers].sort(order);
  const none = values.length - sumOf(sorted.map(([, ads]) => ads));
  return (share) => {
    const shown = sorted.slice(0, Math.round(share * Math.min(max, sorted.length)));
    const others = sorted.slice(shown.length);
    const parts = [
      // Values are cut only now, because two values that differ behind the cut are different.
      ...shown.map(([value, ads]) => `${show(lineWithin(value, valueTokens))} ${numberText(ads)}`),
      ...(others.length > 0
        ? [`${count(others.length, 'other')} ${numberText(sumOf(others.map(([, ads]) => ads)))}`]
        : []),
      ...(none > 0 ? [`none ${numberText(none)}`] : []),
    ];
    return `${label} (${numberText(sorted.length)}): ${parts.join(', ') || 'none'}`;
  };
}

const valueTokens = 24;

function numbersText(label: string, values: readonly (number | null)[]): string {
  const inOrder = values.filter((value) => value !== null).sort((left, right) => left - right);
  const unknown = values.length - inOrder.length;
  const without = `unknown for ${count(unknown, 'ad')}`;
  if (inOrder.length === 0) return `${label}: ${without}`;
  const at = (index: number) => inOrder[index] ?? 0;
  const highest = `90th percentile ${at(Math.ceil(0.9 * inOrder.length) - 1)}, max ${at(inOrder.length - 1)}`;
  return `${label}: min ${at(0)}, median ${medianOf(inOrder)}, ${highest}${unknown > 0 ? `; ${without}` : ''}`;
}

/** Of numbers in order. */
export function medianOf(inOrder: readonly number[]): number {
  const middle = (inOrder.length - 1) / 2;
  return ((inOrder[Math.floor(middle)] ?? 0) + (inOrder[Math.ceil(middle)] ?? 0)) / 2;
}
