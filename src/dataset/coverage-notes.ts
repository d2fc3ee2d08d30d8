import { formatPrice } from '../credits/credit-text.ts';
import { groupBy } from '../views/lists.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinNames, quote } from '../views/safe-text.ts';
import { truncateLine } from '../views/tokens.ts';
import type { ListingOrder } from './listing-order.ts';
import type { OneDayAdvertiser } from './one-day.ts';
import type { ReadField, ReadFields } from './sql/statement.ts';

/*
 * Notes that warn readers about gaps in the data: ads missing from a gathering, advertisers whose ads were nearly all
 * last seen on one day, and fields that many ads lack. Results, charts, reports, files and the board show these notes.
 * If nothing is missing, there is no note.
 */

/** How many ads of a search were read, and which ads are missing. */
export interface IncompleteReading {
  /** Number of ads that were read, and number of ads that match the search. `found` is null if unknown. */
  read: number;
  found: number | null;
  /** Number of matching ads as a phrase. Set if the service reports a total only for some parts of the search. */
  foundInParts?: string | undefined;
  /** How many ads `found` counts more than once, because the parts of the search overlap. */
  repeats: number;
  /** Number of ads that were read and later evicted to free space. */
  removed: number;
  /** True if the last page of results was read. */
  isEnded: boolean;
  /** True if the service returns the same pages again, so that the remaining ads cannot be read. */
  isStuck: boolean;
  order: ListingOrder | undefined;
  /** Descriptions of the parts of the search that are incomplete. */
  missingParts: readonly string[];
  /** True if no ads of some part were read. The order of the listed ads then says nothing about the missing ads. */
  hasUnreadPart: boolean;
  /** Day on which the same search was last read completely. Undefined if that never happened. */
  earlierCompleteDay: string | undefined;
  /** Price of reading the remaining ads. Undefined if unknown. */
  rest: RestPrice | undefined;
}

/** Lowest and highest price in credits. If `atMost` is undefined, the price is unknown. */
export interface RestPrice {
  atLeast: number;
  atMost?: number | undefined;
}

/**
 * Describes a search whose ads were not all read, e.g. `Read 4,000 of 5,437 ads, newest first: 2026-05-11 to
 * 2026-07-01. The missing ads are from 2026-05-11 or earlier, or have no date. Reading the rest costs 144 credits.`
 */
export function formatIncompleteReading(reading: IncompleteReading): string {
  const { read, removed, isEnded, order, missingParts, hasUnreadPart, earlierCompleteDay } = reading;
  const total = formatTotal(reading);
  const removedText = removed > 0 ? `${formatNumber(removed)} of them were removed to make room.` : undefined;
  if (isEnded) return [`Read ${total}.`, removedText].filter(Boolean).join(' ');
  const { phrase, missing } = read === 0 || hasUnreadPart ? noOrder : describeOrder(order);
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

const noOrder = { phrase: '', missing: undefined };

/** For each order by date: its name in descending and in ascending order, and how results describe a date. */
const dateOrders: Partial<Record<ListingOrder['field'], { names: readonly [string, string]; verb: string }>> = {
  startedAt: { names: ['newest first', 'oldest first'], verb: 'are from' },
  lastSeenAt: { names: ['the most recently seen first', 'the longest unseen first'], verb: 'were last seen on' },
  endDate: { names: ['the latest end first', 'the earliest end first'], verb: 'end on' },
};

/**
 * Describes the order in which the service listed the ads, and which ads are therefore missing. The value of the last
 * listed ad is included, because the missing ads may have the same value. Services list ads without a value last.
 */
function describeOrder(order: ListingOrder | undefined) {
  if (order === undefined)
    return { phrase: ', in no order that the fields show', missing: 'The missing ads may differ from these.' };
  const { field, isDescending, from, to, endsWithoutValue } = order;
  const range = from === to ? String(from) : `${formatValue(from)} to ${formatValue(to)}`;
  const last = formatValue(isDescending ? from : to);
  const dateOrder = dateOrders[field];
  const name = dateOrder?.names[isDescending ? 0 : 1] ?? `by ${field}, ${isDescending ? 'highest' : 'lowest'} first`;
  const missing = dateOrder
    ? `The missing ads ${dateOrder.verb} ${last} or ${isDescending ? 'earlier' : 'later'}, or have no date.`
    : `The missing ads have ${isDescending ? 'at most' : 'at least'} ${last}, or no ${field}.`;
  return { phrase: `, ${name}: ${range}`, missing: endsWithoutValue ? `The missing ads have no ${field}.` : missing };
}

const formatValue = (value: string | number): string => (typeof value === 'number' ? formatNumber(value) : value);

/** Formats what it costs to read the remaining ads, as a sentence. */
function formatRest({ isStuck, rest }: Pick<IncompleteReading, 'isStuck' | 'rest'>): string {
  if (isStuck) return 'The service repeats its pages, so the rest cannot be read.';
  const { atLeast = 0, atMost } = rest ?? {};
  if (atMost === undefined) return 'The price of the rest is not known.';
  if (atMost === 0) return 'Reading the rest is free.';
  return `Reading the rest costs ${formatPrice({ atLeast, atMost })}.`;
}

const maxNamedAdvertisers = 3;
const nameTokens = 20;

/** Quotes the name of an advertiser. If no ad contains its name, quotes its id. */
export const quoteAdvertiser = ({ pageName, pageId }: Pick<OneDayAdvertiser, 'pageName' | 'pageId'>): string =>
  quote(truncateLine(pageName ?? pageId ?? '', nameTokens));

/**
 * Lists the advertisers whose ads were nearly all last seen on the same day, and explains why their running times are
 * unreliable. Returns undefined if there are none.
 * @param options `hasNames`: false to count the advertisers without naming them, because the font of a chart may lack
 * letters of their names
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
  const namedAdvertisers = advertisers
    .slice(0, maxNamedAdvertisers)
    .map(
      ({ pageName, pageId, seenOnDay, ads, day }) =>
        `${formatNumber(seenOnDay)} of ${formatCount(ads, 'ad')} of ${quoteAdvertiser({ pageName, pageId })} on ${day}`,
    );
  const unnamedCount = advertisers.length - namedAdvertisers.length;
  const advertiserList = joinNames([
    ...namedAdvertisers,
    ...(unnamedCount > 0 ? [`nearly all ads of ${formatNumber(unnamedCount)} more`] : []),
  ]);
  return `Last seen on one day: ${advertiserList}. ${meaning}`;
}

/** If the share of ads with a value for a field is below this threshold, the field is reported as incomplete. */
const minKnownShare = 0.95;
const maxNamedFields = 5;
/**
 * An advertiser is mentioned for an incomplete field if it has at least this many ads and its share of ads with the
 * field is at most this fraction of the overall share.
 */
const minAdsOfWorst = 10;
const maxShareOfWorst = 0.5;
const maxWorstAdvertisers = 2;

/**
 * Selects the advertisers whose missing fields are reported. Advertisers are identified by the keys from
 * `createAdvertiserKeyFinder`.
 */
export interface GapScope {
  /**
   * The advertisers named in the SQL statement or in the rows of its result. If undefined, the ads of all advertisers
   * count.
   */
  named?: ReadonlySet<string> | undefined;
  /**
   * The advertisers in the rows of the result, if the rows identify any. Their missing fields are reported even if the
   * ads as a whole have few.
   */
  inRows?: ReadonlySet<string> | undefined;
  /** Returns the name of an advertiser. Undefined if the sentence should contain no names. */
  getName?: ((key: string) => string) | undefined;
}

/**
 * Lists the fields of an SQL statement that many ads lack, e.g. `Known for some of the 5,437 ads only: country (776; 0
 * of 1,963 of "EWA"), endDate (45) and 2 more fields.` The field that most ads lack comes first. Returns undefined if
 * no field is incomplete.
 */
export function formatFieldGaps(read: ReadFields, { named, inRows, getName }: GapScope = {}): string | undefined {
  const total = named ? sumCounts(read.adsByAdvertiser, named) : read.ads;
  const gaps = read.fields
    .map((field) => {
      const adsWithValue = named ? total - sumCounts(field.missingByAdvertiser, named) : field.ads;
      const hasGap = adsWithValue < minKnownShare * total;
      const candidates = hasGap ? (named ?? read.adsByAdvertiser.keys()) : (inRows ?? []);
      const worst = getName && adsWithValue > 0 ? findWorst([...candidates], adsWithValue / total, field, read) : [];
      return { name: field.name, known: adsWithValue, hasGap, worst };
    })
    .filter(({ hasGap, worst }) => hasGap || worst.length > 0)
    .sort((left, right) => left.known - right.known || (left.name < right.name ? -1 : 1));
  if (gaps.length === 0) return undefined;
  const texts = gaps.slice(0, maxNamedFields).map(({ name, known, worst }) => {
    const worstTexts = worst.map(
      ({ key, ads, missing }) => `${formatNumber(ads - missing)} of ${formatNumber(ads)} of ${getName?.(key)}`,
    );
    return `${name} (${[formatNumber(known), worstTexts.join(', ')].filter(Boolean).join('; ')})`;
  });
  const omittedCount = gaps.length - texts.length;
  const fieldList = joinNames([...texts, ...(omittedCount > 0 ? [formatCount(omittedCount, 'more field')] : [])]);
  return `Known for some of the ${formatCount(total, 'ad')}${named ? formatOwners([...named], getName) : ''} only: ${fieldList}.`;
}

const sumCounts = (counts: ReadonlyMap<string, number>, keys: ReadonlySet<string>): number =>
  [...keys].reduce((sum, key) => sum + (counts.get(key) ?? 0), 0);

/** Returns the advertisers whose ads lack a field most often, starting with the most incomplete one. */
function findWorst(
  candidates: readonly string[],
  knownShare: number,
  { missingByAdvertiser }: ReadField,
  { adsByAdvertiser }: ReadFields,
) {
  return candidates
    .map((key) => ({ key, ads: adsByAdvertiser.get(key) ?? 0, missing: missingByAdvertiser.get(key) ?? 0 }))
    .filter(({ ads, missing }) => ads >= minAdsOfWorst && (ads - missing) / ads <= maxShareOfWorst * knownShare)
    .sort((left, right) => right.missing - left.missing || (left.key < right.key ? -1 : 1))
    .slice(0, maxWorstAdvertisers);
}

const formatOwners = (keys: readonly string[], getName: GapScope['getName']): string =>
  getName === undefined || keys.length > maxNamedAdvertisers
    ? ` of ${formatCount(keys.length, 'advertiser')}`
    : ` of ${joinNames(keys.map(getName))}`;

/** Columns that are misleading for advertisers whose ads were nearly all last seen on the same day. */
const timeColumns = new Set(['startedAt', 'startedMonth', 'lastSeenAt', 'daysRunning', 'active', 'activeWhenLastRead']);

/** Returns true if an SQL statement reads when ads started or how long they ran. */
export const readsRunningTimes = ({ fields }: ReadFields): boolean => fields.some(({ name }) => timeColumns.has(name));

/**
 * Merges the fields that several SQL statements read, so that each field is listed once. Statements that read only
 * `current_ads` count fewer ads than others, so they are merged separately. A field that both kinds of statements read
 * is listed with the larger number of ads.
 */
export function mergeReadFields(statementReads: readonly (ReadFields | undefined)[]): ReadFields[] {
  const definedReads = statementReads.filter((read) => read !== undefined);
  const isLimited = definedReads.every(({ namedAdvertisers }) => namedAdvertisers.size > 0);
  const namedAdvertisers = new Set(isLimited ? definedReads.flatMap((read) => [...read.namedAdvertisers]) : []);
  const listedNames = new Set<string>();
  return [...groupBy(definedReads, ({ ads }) => ads).values()]
    .sort(([left], [right]) => (right?.ads ?? 0) - (left?.ads ?? 0))
    .flatMap((sameAds) => {
      const fields = new Map(sameAds.flatMap((read) => read.fields.map((field) => [field.name, field])));
      for (const name of listedNames) fields.delete(name);
      for (const name of fields.keys()) listedNames.add(name);
      return sameAds.slice(0, 1).map((read) => ({ ...read, fields: [...fields.values()], namedAdvertisers }));
    });
}
