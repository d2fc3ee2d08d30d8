import { formatPrice } from '../credits/credit-text.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinNames, quote } from '../views/safe-text.ts';
import { truncateLine } from '../views/tokens.ts';
import type { ListingOrder } from './listing-order.ts';
import type { OneDayAdvertiser } from './one-day.ts';
import type { ReadFields } from './sql/statement.ts';

/*
 * Notes that warn readers about gaps in the data: ads missing from a gathering, advertisers whose ads were nearly all
 * last seen on one day, and fields that many ads lack. Results, charts, reports, files and the board show these notes.
 * If nothing is missing, there is no note.
 */

/** How much of a gathering was read, and what is missing. */
export interface IncompleteReading {
  /** The number of ads that were read, and the number of ads that match. `found` is null if unknown. */
  read: number;
  found: number | null;
  /** The number of matching ads as a phrase, if only some parts of the question state a total. */
  foundInParts?: string | undefined;
  /** How many ads `found` counts more than once, because parts of the question overlap. */
  repeats: number;
  /** The number of ads that were read and later evicted to make room. */
  removed: number;
  /** True if the last result page was reached. */
  isEnded: boolean;
  /** True if the service repeats result pages, so that the remaining ads cannot be read. */
  isStuck: boolean;
  order: ListingOrder | undefined;
  /** Descriptions of the parts of the question that are not complete. */
  missingParts: readonly string[];
  /** The day of an earlier complete gathering of the same question, if there is one. */
  earlierCompleteDay: string | undefined;
  /** The price of reading the remaining ads. Undefined if unknown. */
  rest: RestPrice | undefined;
}

/** The lowest and the highest price, in credits. If `atMost` is undefined, the price is unknown. */
export interface RestPrice {
  atLeast: number;
  atMost?: number | undefined;
}

/**
 * Describes an incomplete gathering, e.g. `Read 4,000 of 5,437 ads, newest first: 2026-05-11 to 2026-07-01. Older ads
 * are missing. Reading the rest costs 144 credits.`
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

/** Formats how many of the matching ads were read, e.g. `4,000 of 5,437 ads`. */
function formatTotal({ read, found, foundInParts, repeats }: IncompleteReading): string {
  const total = found === null ? foundInParts : formatCount(found, 'ad');
  if (total === undefined) return `${formatCount(read, 'ad')} of an unknown number`;
  const repeatsText = repeats > 0 ? ` (which counts ${formatCount(repeats, 'ad')} of several parts again)` : '';
  return `${formatNumber(read)} of ${total}${repeatsText}`;
}

const nothingRead = { phrase: '', missing: undefined };

/** Phrases for an order by date: the name of the order, and which ads are missing. Descending orders come first. */
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

/** Formats the price of reading the remaining ads. */
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
 * Names the advertisers whose ads were nearly all last seen on one day, and explains the consequence. Returns undefined
 * if there are none.
 * @param options `hasNames`: false to count the advertisers without naming them, because the font of a chart may lack
 *   the letters of a name
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

/** If fewer ads than this fraction have a value for a field, the field counts as a gap. */
const minKnownShare = 0.95;
const maxNamedFields = 5;

/**
 * Lists the fields of a statement that many ads lack, the largest gap first. Example: `Known for some of the 5,437 ads
 * only: country (776), endDate (45) and 2 more fields.` Returns undefined if there is no gap.
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

/** Columns that are misleading for advertisers whose ads were nearly all last seen on one day. */
const timeColumns = new Set(['startedAt', 'startedMonth', 'lastSeenAt', 'daysRunning', 'active', 'activeWhenLastRead']);

/** Returns true if a statement reads when ads started or how long they ran. */
export const readsRunningTimes = ({ fields }: ReadFields): boolean => fields.some(({ name }) => timeColumns.has(name));

/** Merges the fields that several statements read. Each field is listed once. */
export function mergeReadFields(all: readonly (ReadFields | undefined)[]): ReadFields | undefined {
  const known = all.filter((read) => read !== undefined);
  if (known.length === 0) return undefined;
  // Statements over `current_ads` read fewer ads. Use the statements that read the most ads: they describe the report
  // best.
  const ads = Math.max(...known.map((read) => read.ads));
  const fields = new Map(
    known.filter((read) => read.ads === ads).flatMap((read) => read.fields.map((one) => [one.name, one])),
  );
  return { ads, fields: [...fields.values()] };
}
