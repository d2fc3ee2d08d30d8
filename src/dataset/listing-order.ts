import { parseTime } from '../views/dates.ts';
import { computeRunningTime } from '../views/days-running.ts';
import { readNumber, type UntypedFields } from '../views/view.ts';
import { formatIsoTime } from './tables.ts';

/** The sort order of a list of ads, e.g. by `startedAt`, newest first. */
export interface ListingOrder {
  field: OrderField;
  isDescending: boolean;
  /**
   * The lowest and the highest value of the ads that are in order. Dates are ISO days such as `2026-05-11`. Values that
   * are out of order do not count, because a single wrong value must not determine which ads are missing. A wrong value
   * at the end of the list is only detected if it is on the wrong side of the value before it.
   */
  minValue: string | number;
  maxValue: string | number;
  /** The value at which the list ends. Ads that are missing from the list have this value or come after it. */
  lastValue: string | number;
  /**
   * True if the list ends with ads that have no value. The service lists such ads last, so all ads with a value are
   * then in the list.
   */
  hasListedAllValues: boolean;
}

/**
 * The sort order that a search requests with the filters `sort` and `order`. Only a local library (a server of imported
 * ads) is certain to have these filters.
 */
interface RequestedOrder {
  sort?: unknown;
  order?: unknown;
}

type OrderField = (typeof orderFields)[number];

/**
 * The fields by which a service may sort ads. If a list is sorted by several of these fields, the first one is
 * reported. Start dates come first, because they say most about the missing ads.
 */
export const orderFields = [
  'startedAt',
  'lastSeenAt',
  'endDate',
  'duplicates',
  'audienceReach',
  'adSpendMax',
  'adSpendMin',
  'revenueMax',
  'revenueMin',
  'trendPublic',
  'performancePublic',
  'daysRunning',
] as const;

const dateFields = new Set<string>(['startedAt', 'lastSeenAt', 'endDate']);

/**
 * The values of one ad for the fields in `orderFields`, in the same order. Dates are in milliseconds since the Unix
 * epoch.
 */
export type OrderValues = readonly (number | null)[];

/**
 * Reads the values of an ad for the fields in `orderFields`.
 * @param readAt time at which the ad was read, in milliseconds since the Unix epoch
 */
export const readOrderValues = (ad: UntypedFields, readAt: number): OrderValues =>
  orderFields.map((field) => {
    if (field === 'daysRunning') return computeRunningTime(ad, readAt).daysRunning ?? null;
    return (dateFields.has(field) ? parseTime(ad[field]) : readNumber(ad[field])) ?? null;
  });

/**
 * The minimum share (0 to 1) of ads with a value for a field. If fewer ads have a value, the list does not count as
 * sorted by this field.
 */
const minShareWithValue = 0.8;
/**
 * The maximum share (0 to 1) of neighboring ads that may be out of order in a sorted list, because values can change
 * after an ad was listed.
 */
const maxInversionShare = 0.01;
/**
 * The minimum result of `measureOrderEvidence` (the logarithm of the number of possible orders) for a list to count as
 * sorted. Randomly ordered ads reach this result with a probability of at most 1 in 1,000. Short lists, and lists with
 * mostly equal values, are often sorted by chance.
 */
const minOrderEvidence = Math.log(1000);

/**
 * Finds the field by which the listed ads are sorted. If the search requests an order, the values only have to be
 * consistent with this order. Otherwise, the order must be very unlikely to be a coincidence. Returns undefined if
 * there is no such field.
 * @param valuesOfListedAds the values of each ad, in the order in which the service listed the ads
 */
export function findListingOrder(
  valuesOfListedAds: readonly OrderValues[],
  { sort, order }: RequestedOrder = {},
): ListingOrder | undefined {
  const requestedField = orderFields.find((field) => field === sort);
  const requestedListing = requestedField && describeListing(valuesOfListedAds, requestedField);
  if (requestedListing && hasRequestedDirection(requestedListing, order))
    return buildListingOrder({ ...requestedListing, isDescending: requestedListing.isDescending ?? order !== 'asc' });
  // The search requests no known order, so ads without a value may be anywhere in the list. Therefore
  // `hasListedAllValues` is false.
  for (const field of orderFields) {
    const sortedListing = describeListing(valuesOfListedAds, field);
    if (!sortedListing || sortedListing.values.length < minShareWithValue * valuesOfListedAds.length) continue;
    if (measureOrderEvidence(sortedListing.values) >= minOrderEvidence)
      return buildListingOrder({ ...sortedListing, hasListedAllValues: false });
  }
}

interface SortedListing {
  field: OrderField;
  /** The values of all ads that have a value for the field, in the order of the list. Never empty. */
  values: readonly number[];
  /** True if the values decrease from the first ad to the last. Undefined if all values are equal. */
  isDescending: boolean | undefined;
  hasListedAllValues: boolean;
}

/** Describes how a list of ads is sorted by a field. Returns undefined if the list is not sorted by this field. */
function describeListing(valuesOfListedAds: readonly OrderValues[], field: OrderField): SortedListing | undefined {
  const fieldIndex = orderFields.indexOf(field);
  const values = valuesOfListedAds.flatMap((orderValues) => orderValues[fieldIndex] ?? []);
  const hasValue = (orderValues: OrderValues | undefined) => (orderValues?.[fieldIndex] ?? null) !== null;
  const hasListedAllValues =
    !hasValue(valuesOfListedAds.at(-1)) && valuesOfListedAds.slice(0, values.length).every(hasValue);
  const [risingSteps, fallingSteps] = countRisesAndFalls(values);
  const maxInversions = Math.floor(maxInversionShare * (values.length - 1));
  if (values.length === 0 || Math.min(risingSteps, fallingSteps) > maxInversions) return undefined;
  const isDescending = risingSteps === fallingSteps ? undefined : risingSteps < fallingSteps;
  return { field, values, isDescending, hasListedAllValues };
}

/**
 * Returns true if a list is sorted in the requested direction, or if no direction is requested. Any value except `asc`
 * means descending, as in a local library (a server of imported ads).
 */
const hasRequestedDirection = ({ isDescending }: SortedListing, requestedDirection: unknown): boolean =>
  isDescending === undefined || requestedDirection === undefined || isDescending === (requestedDirection !== 'asc');

function buildListingOrder({ field, values, isDescending = true, hasListedAllValues }: SortedListing): ListingOrder {
  const valuesInOrder = findLongestSortedSubsequence(values, isDescending);
  const [firstValue = '', lastValue = ''] = [valuesInOrder.at(0), valuesInOrder.at(-1)].map((value = 0) =>
    dateFields.has(field) ? formatIsoTime(value).slice(0, 10) : value,
  );
  const [minValue, maxValue] = isDescending ? [lastValue, firstValue] : [firstValue, lastValue];
  return { field, isDescending, minValue, maxValue, lastValue, hasListedAllValues };
}

/**
 * Returns the longest subsequence of the values that never rises (if `isDescending`) or never falls. It omits the
 * values that are out of order.
 */
function findLongestSortedSubsequence(values: readonly number[], isDescending: boolean): number[] {
  const sortKeys = isDescending ? values.map((value) => -value) : values;
  /**
   * For each length, the index at which a sorted subsequence of this length ends. Of several such subsequences, it is
   * the one with the smallest last key. The keys at these indexes never fall, so they can be searched by bisection.
   */
  const endIndexes: number[] = [];
  const previousIndexes: (number | undefined)[] = [];
  for (const [index, sortKey] of sortKeys.entries()) {
    let [low, high] = [0, endIndexes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sortKeys[endIndexes[middle] ?? 0] ?? 0) <= sortKey) low = middle + 1;
      else high = middle;
    }
    previousIndexes.push(endIndexes[low - 1]);
    endIndexes[low] = index;
  }
  const sortedValues: number[] = [];
  for (let index = endIndexes.at(-1); index !== undefined; index = previousIndexes[index])
    sortedValues.push(values[index] ?? 0);
  return sortedValues.reverse();
}

/** Counts the values that are larger than the previous value, and the values that are smaller. */
function countRisesAndFalls(values: readonly number[]): [rising: number, falling: number] {
  let [risingSteps, fallingSteps] = [0, 0];
  for (const [index, value] of values.entries()) {
    const previousValue = values[index - 1] ?? value;
    if (value > previousValue) risingSteps++;
    if (value < previousValue) fallingSteps++;
  }
  return [risingSteps, fallingSteps];
}

/**
 * Returns the natural logarithm of the number of different orders in which the values could be listed. The larger this
 * number is, the less likely the list is sorted by chance. Swapping equal values does not count as a different order.
 */
function measureOrderEvidence(values: readonly number[]): number {
  const countsByValue = new Map<number, number>();
  let orderCountLog = 0;
  for (const [index, value] of values.entries()) {
    const equalValueCount = (countsByValue.get(value) ?? 0) + 1;
    countsByValue.set(value, equalValueCount);
    orderCountLog += Math.log((index + 1) / equalValueCount);
  }
  return orderCountLog;
}
