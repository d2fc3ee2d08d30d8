import { formatPrice } from '../credits/credit-text.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinNames, quote } from '../views/safe-text.ts';
import { truncateLine } from '../views/tokens.ts';
import type { ListingOrder } from './listing-order.ts';
import type { OneDayAdvertiser } from './one-day.ts';
import type { ReadFields } from './sql/statement.ts';

/*
 * The sentences that say what the ads cannot support: which part of a gathering is missing, which advertisers were seen
 * on one day only, and which fields are unknown for many ads. Results, charts, reports, files and the board use these
 * sentences. If nothing is missing, there is no sentence.
 */

/** The part of a gathering that was read. */
export interface IncompleteReading {
  /** The number of ads that were read, and of ads that match. Null if the number is unknown. */
  read: number;
  found: number | null;
  /** The number of matching ads in words, if only some parts of the question state theirs. */
  foundInParts?: string | undefined;
  /** How many ads `found` counts again, because parts of the question overlap. */
  repeats: number;
  /** How many ads were read and then removed to make room. */
  removed: number;
  /** True if the last page was reached. */
  isEnded: boolean;
  /** True if the service repeats its pages, so that no call can read the rest. */
  isStuck: boolean;
  order: ListingOrder | undefined;
  /** The parts of the question that are not complete, in words. */
  missingParts: readonly string[];
  /** The day of an earlier gathering of the same question that is complete. */
  earlierCompleteDay: string | undefined;
  /** The price of the rest. Undefined if it is unknown. */
  rest: RestPrice | undefined;
}

/** The bounds of a price in credits. Without `atMost`, the price is unknown. */
export interface RestPrice {
  atLeast: number;
  atMost?: number | undefined;
}

/**
 * Formats what was read of a gathering, for example `Read 4,000 of 5,437 ads, newest first: 2026-05-11 to 2026-07-01.
 * Older ads are missing. Reading the rest costs 144 credits.`
 */
export function formatIncompleteReading(reading: IncompleteReading): string {
  const { read, removed, isEnded, order, missingParts, earlierCompleteDay } = reading;
  const total = formatTotal(reading);
  const removedText = removed > 0 ? `${formatNumber(removed)} of them were removed to make room.` : undefined;
  if (isEnded) return [`Read ${total}.`, removedText].filter(Boolean).join(' ');
  const { phrase, missing } = read === 0 ? nothingRead : describeOrder(order);
  const earlier = earlierCompleteDay && `An earlier gathering, of ${earlierCompleteDay}, is complete.`;
  const parts = missingParts.length > 0 ? `Not complete: ${missingParts.join('; ')}.` : undefined;
  return [`Read ${total}${phrase}.`, earlier ?? missing, parts, removedText, formatRest(reading)]
    .filter(Boolean)
    .join(' ');
}

/** Formats how many of the matching ads were read. */
function formatTotal({ read, found, foundInParts, repeats }: IncompleteReading): string {
  const total = found === null ? foundInParts : formatCount(found, 'ad');
  if (total === undefined) return `${formatCount(read, 'ad')} of an unknown number`;
  const repeatsText = repeats > 0 ? ` (which counts ${formatCount(repeats, 'ad')} of several parts again)` : '';
  return `${formatNumber(read)} of ${total}${repeatsText}`;
}

const nothingRead = { phrase: '', missing: undefined };

/** The words for an order by date: how it is called, and which ads are missing. Descending orders come first. */
const dateOrders: Partial<Record<ListingOrder['field'], readonly [string, string][]>> = {
  startedAt: [
    ['newest first', 'Older ads are missing.'],
    ['oldest first', 'Newer ads are missing.'],
  ],
  lastSeenAt: [
    ['the most recently seen first', 'Ads that were last seen earlier are missing.'],
    ['the longest unseen first', 'Ads that were last seen later are missing.'],
  ],
  endDate: [
    ['the latest end first', 'Ads that ended earlier are missing.'],
    ['the earliest end first', 'Ads that end later are missing.'],
  ],
};

function describeOrder(order: ListingOrder | undefined) {
  if (order === undefined)
    return { phrase: ', in no order that the fields show', missing: 'The missing ads may differ from these.' };
  const { field, isDescending, from, to } = order;
  const range = from === to ? String(from) : `${formatValue(from)} to ${formatValue(to)}`;
  const [name, missing] = dateOrders[field]?.[isDescending ? 0 : 1] ?? [
    `by ${field}, ${isDescending ? 'highest' : 'lowest'} first`,
    `Ads with ${isDescending ? 'lower' : 'higher'} values are missing.`,
  ];
  return { phrase: `, ${name}: ${range}`, missing };
}

const formatValue = (value: string | number): string => (typeof value === 'number' ? formatNumber(value) : value);

/** Formats the price of the ads that were not read. */
function formatRest({ isStuck, rest }: Pick<IncompleteReading, 'isStuck' | 'rest'>): string {
  if (isStuck) return 'The service repeats its pages, so the rest cannot be read.';
  const { atLeast = 0, atMost } = rest ?? {};
  if (atMost === undefined) return 'The price of the rest is not known.';
  if (atMost === 0) return 'Reading the rest is free.';
  return `Reading the rest costs ${formatPrice({ atLeast, atMost })}.`;
}

const maxNamedAdvertisers = 3;
const nameTokens = 20;

/**
 * Formats which advertisers were seen on one day only, and what this means. Returns undefined if there are none.
 * @param options `hasNames`: whether to name the advertisers. A chart has no letters for some names.
 */
export function formatOneDayAdvertisers(
  advertisers: readonly OneDayAdvertiser[],
  { hasNames }: { hasNames: boolean },
): string | undefined {
  const [first] = advertisers;
  if (first === undefined) return undefined;
  const days = [...new Set(advertisers.map(({ day }) => day))];
  const meaning =
    'Their days running are their age on that day. Ads that ended earlier may be missing, so counts by start count survivors.';
  if (!hasNames) {
    const on = days.length === 1 ? `on ${first.day}` : 'on one day each';
    return `Nearly all ads of ${formatCount(advertisers.length, 'advertiser')} were last seen ${on}. ${meaning}`;
  }
  const named = advertisers
    .slice(0, maxNamedAdvertisers)
    .map(
      ({ pageName, pageId, seenOnDay, ads, day }) =>
        `${formatNumber(seenOnDay)} of ${formatCount(ads, 'ad')} of ${quote(truncateLine(pageName ?? pageId ?? '', nameTokens))} on ${day}`,
    );
  const more = advertisers.length - named.length;
  const all = joinNames([...named, ...(more > 0 ? [`nearly all ads of ${formatNumber(more)} more`] : [])]);
  return `Last seen on one day: ${all}. ${meaning}`;
}

/** A field that less than this share of the ads have is a gap. */
const minKnownShare = 0.95;
const maxNamedFields = 5;

/**
 * Formats which fields of a statement many ads lack, for example `Known for some of the 5,437 ads only: country (776),
 * endDate (45) and 2 more fields.` The largest gap comes first. Returns undefined if there is no gap.
 */
export function formatFieldGaps({ ads, fields }: ReadFields): string | undefined {
  const gaps = fields
    .filter((field) => field.ads < minKnownShare * ads)
    .sort((left, right) => left.ads - right.ads || (left.name < right.name ? -1 : 1));
  if (gaps.length === 0) return undefined;
  const named = gaps.slice(0, maxNamedFields).map((field) => `${field.name} (${formatNumber(field.ads)})`);
  const more = gaps.length - named.length;
  const all = joinNames([...named, ...(more > 0 ? [formatCount(more, 'more field')] : [])]);
  return `Known for some of the ${formatCount(ads, 'ad')} only: ${all}.`;
}

/** Columns whose meaning changes for ads that were seen on one day only. */
const timeColumns = new Set(['startedAt', 'startedMonth', 'lastSeenAt', 'daysRunning', 'active', 'activeWhenLastRead']);

/** Returns whether a statement reads how long ads ran or when they started. */
export const readsRunningTimes = ({ fields }: ReadFields): boolean => fields.some(({ name }) => timeColumns.has(name));

/** Returns the fields of several statements, each once. */
export function mergeReadFields(all: readonly (ReadFields | undefined)[]): ReadFields | undefined {
  const known = all.filter((read) => read !== undefined);
  if (known.length === 0) return undefined;
  // Statements over current_ads count fewer ads. The fields of all ads then describe the report best.
  const ads = Math.max(...known.map((read) => read.ads));
  const fields = new Map(
    known.filter((read) => read.ads === ads).flatMap((read) => read.fields.map((one) => [one.name, one])),
  );
  return { ads, fields: [...fields.values()] };
}
