import { formatPrice } from '../credits/credit-text.ts';
import { groupBy } from '../views/group-by.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinNames, quote, quoteUnlessCurrency } from '../views/safe-text.ts';
import { truncateLine } from '../views/tokens.ts';
import type { ListingOrder } from './listing-order.ts';
import type { OneDayAdvertiser } from './one-day.ts';
import type { StatementField, StatementFields } from './sql/statement.ts';

/*
 * Notes that warn readers about gaps in the data: ads missing from a gathering, advertisers whose ads were nearly all
 * last seen on one day, and fields that many ads lack. Results, charts, reports, files and the board show these notes.
 * If nothing is missing, there is no note.
 */

/** The progress of a search whose ads were not all read. A note about the missing ads is written from these facts. */
export interface GatheringProgress {
  readCount: number;
  /** The number of ads that match the search, or null if it is unknown. */
  matchingCount: number | null;
  /**
   * The number of matching ads in words, e.g. `90 found in 2 of 3 parts`. Set only if a search is split into parts
   * (smaller searches) and only some of the parts report a total.
   */
  matchingCountText?: string | undefined;
  /**
   * The number of ads that `matchingCount` counts more than once. The parts (smaller searches) of a split search may
   * match the same ad, and `matchingCount` is the sum of all parts.
   */
  repeatedCount: number;
  /** The number of ads that were read and later removed from the dataset to free space. */
  evictedCount: number;
  hasReadLastPage: boolean;
  /** True if the service keeps returning the same pages, so that the remaining ads cannot be read. */
  isRepeatingPages: boolean;
  listingOrder: ListingOrder | undefined;
  /**
   * Descriptions of the incomplete parts (smaller searches) of a split search, e.g. `"{"countries":["FR"]}" 40 of 90
   * ads`.
   */
  incompletePartTexts: readonly string[];
  /**
   * True if at least one part (smaller search) of a split search was read completely. `listingOrder` then does not
   * contain the values of all ads that were read, so the note shows no range.
   */
  hasCompletePart: boolean;
  /**
   * True if at least one part (smaller search) of a split search was not read at all. `listingOrder` then says nothing
   * about the missing ads, because they may belong anywhere in this order.
   */
  hasUnreadPart: boolean;
  /** The last day on which the same search was read completely. Undefined if there is no such day. */
  earlierCompleteDay: string | undefined;
  remainingPrice: RemainingPrice | undefined;
}

/**
 * The lowest and the highest possible price of reading the remaining ads, in credits. The price is unknown if `atMost`
 * is undefined.
 */
export interface RemainingPrice {
  atLeast: number;
  atMost?: number | undefined;
}

/**
 * Describes an incomplete search in words, e.g. `Read 4,000 of 5,437 ads, newest first: 2026-05-11 to 2026-07-01. The
 * missing ads are from 2026-05-11 or earlier, or have no date. Reading the rest costs 144 credits.`
 */
export function formatIncompleteGathering(incompleteGathering: GatheringProgress): string {
  const {
    readCount,
    evictedCount,
    hasReadLastPage,
    listingOrder,
    incompletePartTexts,
    hasCompletePart,
    hasUnreadPart,
    earlierCompleteDay,
  } = incompleteGathering;
  const readCountText = formatReadCount(incompleteGathering);
  const notStoredText =
    evictedCount > 0
      ? `${formatNumber(evictedCount)} of them were removed to make room, or could not be stored.`
      : undefined;
  if (hasReadLastPage) return [`Read ${readCountText}.`, notStoredText].filter(Boolean).join(' ');
  const { orderPhrase, missingAdsSentence } =
    readCount === 0 || hasUnreadPart ? emptyOrderTexts : describeListingOrder(listingOrder);
  const earlierCompleteText = earlierCompleteDay && `An earlier gathering, of ${earlierCompleteDay}, is complete.`;
  const parts = incompletePartTexts.length > 0 ? `Not complete: ${incompletePartTexts.join('; ')}.` : undefined;
  return [
    `Read ${readCountText}${hasCompletePart ? '' : orderPhrase}.`,
    earlierCompleteText ?? missingAdsSentence,
    parts,
    notStoredText,
    formatRemainingPrice(incompleteGathering),
  ]
    .filter(Boolean)
    .join(' ');
}

/** Formats the number of matching ads that were read, e.g. `4,000 of 5,437 ads`. */
function formatReadCount({ readCount, matchingCount, matchingCountText, repeatedCount }: GatheringProgress): string {
  const totalText = matchingCount === null ? matchingCountText : formatCount(matchingCount, 'ad');
  if (totalText === undefined) return `${formatCount(readCount, 'ad')} of an unknown number`;
  const repeatsText =
    repeatedCount > 0 ? ` (which counts ${formatCount(repeatedCount, 'ad')} of several parts again)` : '';
  return `${formatNumber(readCount)} of ${totalText}${repeatsText}`;
}

const emptyOrderTexts = { orderPhrase: '', missingAdsSentence: undefined };

/**
 * Phrases for each date field by which a service may sort ads. `orderNames` describe the descending and the ascending
 * order. `verb` precedes a date, as in `The missing ads are from 2026-05-11`.
 */
const dateOrderTexts: Partial<Record<ListingOrder['field'], { orderNames: readonly [string, string]; verb: string }>> =
  {
    startedAt: { orderNames: ['newest first', 'oldest first'], verb: 'are from' },
    lastSeenAt: { orderNames: ['the most recently seen first', 'the longest unseen first'], verb: 'were last seen on' },
    endDate: { orderNames: ['the latest end first', 'the earliest end first'], verb: 'end on' },
  };

/**
 * Describes the order in which the service listed the ads, and the ads that are therefore missing. The missing ads may
 * have the same value as the last listed ad, or no value at all, because services list ads without a value last.
 */
function describeListingOrder(listingOrder: ListingOrder | undefined) {
  if (listingOrder === undefined)
    return {
      orderPhrase: ', in no order that the fields show',
      missingAdsSentence: 'The missing ads may differ from these.',
    };
  const { field, isDescending, minValue, maxValue, lastValue, hasListedAllValues } = listingOrder;
  const range =
    minValue === maxValue ? String(minValue) : `${formatOrderValue(minValue)} to ${formatOrderValue(maxValue)}`;
  const lastValueText = formatOrderValue(lastValue);
  const dateOrder = dateOrderTexts[field];
  const orderName =
    dateOrder?.orderNames[isDescending ? 0 : 1] ?? `by ${field}, ${isDescending ? 'highest' : 'lowest'} first`;
  const missingAdsSentence = dateOrder
    ? `The missing ads ${dateOrder.verb} ${lastValueText} or ${isDescending ? 'earlier' : 'later'}, or have no date.`
    : `The missing ads have ${isDescending ? 'at most' : 'at least'} ${lastValueText}, or no ${field}.`;
  return {
    orderPhrase: `, ${orderName}: ${range}`,
    missingAdsSentence: hasListedAllValues ? `The missing ads have no ${field}.` : missingAdsSentence,
  };
}

const formatOrderValue = (value: string | number): string => (typeof value === 'number' ? formatNumber(value) : value);

/** Formats the price of reading the remaining ads, e.g. `Reading the rest costs 144 credits.` */
function formatRemainingPrice({
  isRepeatingPages,
  remainingPrice,
}: Pick<GatheringProgress, 'isRepeatingPages' | 'remainingPrice'>): string {
  if (isRepeatingPages) return 'The service repeats its pages, so the rest cannot be read.';
  const { atLeast = 0, atMost } = remainingPrice ?? {};
  if (atMost === undefined) return 'The price of the rest is not known.';
  if (atMost === 0) return 'Reading the rest is free.';
  return `Reading the rest costs ${formatPrice({ atLeast, atMost })}.`;
}

const maxNamedAdvertisers = 3;
const maxNameTokens = 20;

/** Returns the name of an advertiser in quotation marks, or its page id if the name is unknown. */
export const quoteAdvertiserName = ({ pageName, pageId }: Pick<OneDayAdvertiser, 'pageName' | 'pageId'>): string =>
  quote(truncateLine(pageName ?? pageId ?? '', maxNameTokens));

/**
 * Lists the advertisers whose ads were nearly all last seen on the same day, and explains why the running times of
 * these ads are unreliable. Returns undefined if there are no such advertisers.
 * @param options `hasNames`: false to state only the number of advertisers, e.g. for a chart, because its font may lack
 * letters of their names
 */
export function formatOneDayAdvertisersNote(
  advertisers: readonly OneDayAdvertiser[],
  { hasNames }: { hasNames: boolean },
): string | undefined {
  const [firstAdvertiser] = advertisers;
  if (firstAdvertiser === undefined) return undefined;
  const days = [...new Set(advertisers.map(({ day }) => day))];
  const explanation =
    'Their days running are their age on that day. Ads that ended earlier may be missing, so counts by start count survivors.';
  if (!hasNames) {
    const dayPhrase = days.length === 1 ? `on ${firstAdvertiser.day}` : 'on one day each';
    return `Nearly all ads of ${formatCount(advertisers.length, 'advertiser')} were last seen ${dayPhrase}. ${explanation}`;
  }
  const namedAdvertisers = advertisers
    .slice(0, maxNamedAdvertisers)
    .map(
      ({ pageName, pageId, adsSeenOnDay, adCount, day }) =>
        `${formatNumber(adsSeenOnDay)} of ${formatCount(adCount, 'ad')} of ${quoteAdvertiserName({ pageName, pageId })} on ${day}`,
    );
  const unnamedCount = advertisers.length - namedAdvertisers.length;
  const advertiserList = joinNames([
    ...namedAdvertisers,
    ...(unnamedCount > 0 ? [`nearly all ads of ${formatNumber(unnamedCount)} more`] : []),
  ]);
  return `Last seen on one day: ${advertiserList}. ${explanation}`;
}

/** If fewer than this share of the ads (0 to 1) have a value for a field, a note reports the field as incomplete. */
const minShareWithValue = 0.95;
const maxNamedFields = 5;
/** The minimum number of ads that an advertiser must have to be mentioned in a note about an incomplete field. */
const minAdsOfMentionedAdvertiser = 10;
/**
 * An advertiser is mentioned in a note about an incomplete field if the share of its ads with a value is at most half
 * of the share among all ads.
 */
const maxRelativeShareWithValue = 0.5;
const maxMentionedAdvertisers = 2;

/**
 * The advertisers that a note about field gaps covers. A field gap is a field that many ads lack. The keys of the
 * advertisers come from `createAdvertiserKeyFinder`.
 */
export interface FieldGapAdvertisers {
  /**
   * The advertisers that the SQL statement names or that occur in the rows of its result. Only their ads are counted.
   * If undefined, the ads of all advertisers are counted.
   */
  namedAdvertiserKeys?: ReadonlySet<string> | undefined;
  /**
   * The advertisers in the rows of the result. The note mentions an advertiser whose ads often lack a field, even if
   * most of the counted ads have this field.
   */
  advertiserKeysInRows?: ReadonlySet<string> | undefined;
  /** Returns the name of an advertiser. If this function is undefined, the note contains no names. */
  getAdvertiserName?: ((key: string) => string) | undefined;
}

/**
 * Lists the fields that an SQL statement reads and that many ads lack, e.g. `Known for some of the 5,437 ads only:
 * country (776; 0 of 1,963 of "EWA"), endDate (45) and 2 more fields.` The field that most ads lack comes first.
 * Returns undefined if no field is incomplete.
 */
export function formatFieldGaps(
  statementFields: StatementFields,
  { namedAdvertiserKeys, advertiserKeysInRows, getAdvertiserName }: FieldGapAdvertisers = {},
): string | undefined {
  const adCount = namedAdvertiserKeys
    ? sumCounts(statementFields.adCountByAdvertiser, namedAdvertiserKeys)
    : statementFields.adCount;
  const fieldGaps = statementFields.fields
    .map((field) => {
      const adsWithValue = namedAdvertiserKeys
        ? adCount - sumCounts(field.missingCountByAdvertiser, namedAdvertiserKeys)
        : field.adsWithValue;
      const hasGap = adsWithValue < minShareWithValue * adCount;
      const candidates = hasGap
        ? (namedAdvertiserKeys ?? statementFields.adCountByAdvertiser.keys())
        : (advertiserKeysInRows ?? []);
      const mentionedAdvertisers =
        getAdvertiserName && adsWithValue > 0
          ? findAdvertisersToMention([...candidates], adsWithValue / adCount, field, statementFields)
          : [];
      return { name: field.name, adsWithValue, hasGap, mentionedAdvertisers };
    })
    .filter(({ hasGap, mentionedAdvertisers }) => hasGap || mentionedAdvertisers.length > 0)
    .sort((left, right) => left.adsWithValue - right.adsWithValue || (left.name < right.name ? -1 : 1));
  if (fieldGaps.length === 0) return undefined;
  const fieldTexts = fieldGaps.slice(0, maxNamedFields).map(({ name, adsWithValue, mentionedAdvertisers }) => {
    const mentionedTexts = mentionedAdvertisers.map(
      ({ key, ads, missing }) =>
        `${formatNumber(ads - missing)} of ${formatNumber(ads)} of ${getAdvertiserName?.(key)}`,
    );
    return `${name} (${[formatNumber(adsWithValue), mentionedTexts.join(', ')].filter(Boolean).join('; ')})`;
  });
  const omittedCount = fieldGaps.length - fieldTexts.length;
  const fieldList = joinNames([...fieldTexts, ...(omittedCount > 0 ? [formatCount(omittedCount, 'more field')] : [])]);
  return `Known for some of the ${formatCount(adCount, 'ad')}${namedAdvertiserKeys ? formatAdvertiserList([...namedAdvertiserKeys], getAdvertiserName) : ''} only: ${fieldList}.`;
}

const sumCounts = (counts: ReadonlyMap<string, number>, keys: ReadonlySet<string>): number =>
  [...keys].reduce((sum, key) => sum + (counts.get(key) ?? 0), 0);

/**
 * Returns the advertisers to mention in a note about an incomplete field, starting with the advertiser that has the
 * most ads without a value for the field.
 */
function findAdvertisersToMention(
  advertiserKeys: readonly string[],
  shareWithValue: number,
  { missingCountByAdvertiser }: StatementField,
  { adCountByAdvertiser }: StatementFields,
) {
  return advertiserKeys
    .map((key) => ({ key, ads: adCountByAdvertiser.get(key) ?? 0, missing: missingCountByAdvertiser.get(key) ?? 0 }))
    .filter(
      ({ ads, missing }) =>
        ads >= minAdsOfMentionedAdvertiser && (ads - missing) / ads <= maxRelativeShareWithValue * shareWithValue,
    )
    .sort((left, right) => right.missing - left.missing || (left.key < right.key ? -1 : 1))
    .slice(0, maxMentionedAdvertisers);
}

const formatAdvertiserList = (
  keys: readonly string[],
  getAdvertiserName: FieldGapAdvertisers['getAdvertiserName'],
): string =>
  getAdvertiserName === undefined || keys.length > maxNamedAdvertisers
    ? ` of ${formatCount(keys.length, 'advertiser')}`
    : ` of ${joinNames(keys.map(getAdvertiserName))}`;

/**
 * The columns that say when ads started or how long they ran. These values are misleading if nearly all ads of an
 * advertiser were last seen on the same day.
 */
const runningTimeColumns = new Set([
  'startedAt',
  'startedMonth',
  'lastSeenAt',
  'daysRunning',
  'active',
  'activeWhenLastRead',
]);

/** The maximum number of currencies that a note names. */
const maxNamedCurrencies = 5;

/**
 * Warns that a statement reads amounts in several currencies without reading their currency, so that a sum or a
 * comparison of these amounts is meaningless. Returns undefined if there are not several currencies.
 */
export function formatMixedCurrenciesNote({ mixedCurrencies }: StatementFields): string | undefined {
  if (mixedCurrencies.length < 2) return undefined;
  const namedCurrencies = mixedCurrencies.slice(0, maxNamedCurrencies);
  const unnamedCount = mixedCurrencies.length - namedCurrencies.length;
  const currencyList = joinNames([
    ...namedCurrencies.map(quoteUnlessCurrency),
    ...(unnamedCount > 0 ? [`${formatNumber(unnamedCount)} more`] : []),
  ]);
  return `The ads have amounts in several currencies: ${currencyList}. Group or filter by the column currency before you add up or compare amounts.`;
}

/** Formats the number of ads that the service counted but did not list, as a sentence without its final period. */
export const formatUnlistedAds = (adCount: number): string =>
  `The service counts ${formatCount(adCount, 'ad')} more, which it did not list`;

/** Returns true if an SQL statement reads a column that says when ads started or how long they ran. */
export const hasRunningTimeColumn = ({ fields }: StatementFields): boolean =>
  fields.some(({ name }) => runningTimeColumns.has(name));

/**
 * Merges the fields that several SQL statements read, so that each field is listed once. Statements that read only the
 * view `current_ads` cover fewer ads and are merged separately. A field that both kinds of statements read is listed
 * only for the larger number of ads.
 */
export function mergeStatementFields(fieldsByStatement: readonly (StatementFields | undefined)[]): StatementFields[] {
  const knownStatementFields = fieldsByStatement.filter((statementFields) => statementFields !== undefined);
  const areAdvertisersNamed = knownStatementFields.every(({ namedAdvertiserKeys }) => namedAdvertiserKeys.size > 0);
  const namedAdvertiserKeys = new Set(
    areAdvertisersNamed ? knownStatementFields.flatMap((read) => [...read.namedAdvertiserKeys]) : [],
  );
  const listedFieldNames = new Set<string>();
  return [...groupBy(knownStatementFields, ({ adCount }) => adCount).values()]
    .sort(([left], [right]) => (right?.adCount ?? 0) - (left?.adCount ?? 0))
    .flatMap((statementFieldsOfSameAds) => {
      const fields = new Map(
        statementFieldsOfSameAds.flatMap((read) => read.fields.map((field) => [field.name, field])),
      );
      const mixedCurrencies = [...new Set(statementFieldsOfSameAds.flatMap((read) => read.mixedCurrencies))].sort();
      for (const name of listedFieldNames) fields.delete(name);
      for (const name of fields.keys()) listedFieldNames.add(name);
      return statementFieldsOfSameAds
        .slice(0, 1)
        .map((read) => ({ ...read, fields: [...fields.values()], namedAdvertiserKeys, mixedCurrencies }));
    });
}
