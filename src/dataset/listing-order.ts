import { parseTime } from '../views/dates.ts';
import { computeRun } from '../views/days-running.ts';
import { type Fields, readNumber } from '../views/view.ts';
import { formatIsoTime } from './tables.ts';

/** The field and direction by which the service sorted the ads of a search. */
export interface ListingOrder {
  field: OrderField;
  isDescending: boolean;
  /** The smallest and the largest value among the listed ads. Dates are ISO days. */
  from: string | number;
  to: string | number;
  /**
   * True if the list has reached the ads without a value, which come last. In that case, all ads with a value were
   * listed.
   */
  endsWithoutValue: boolean;
}

/**
 * The sort order that a search requests, with the filter keys of a local library. Other services may ignore or reject
 * these keys.
 */
interface RequestedOrder {
  sort?: unknown;
  order?: unknown;
}

type OrderField = (typeof orderFields)[number];

/**
 * The fields by which a service may sort. If the listed ads are in order by several of these fields, the first one is
 * reported. Start dates come first because they say most about which ads are missing.
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

/** The values of one ad for the fields in `orderFields`. Dates are in milliseconds since the Unix epoch. */
export type OrderValues = readonly (number | null)[];

/**
 * Reads an ad's values for the fields in `orderFields`.
 * @param readAt time at which the ad was read, in milliseconds since the Unix epoch
 */
export const readOrderValues = (ad: Fields, readAt: number): OrderValues =>
  orderFields.map((field) => {
    if (field === 'daysRunning') return computeRun(ad, readAt).daysRunning ?? null;
    return (dateFields.has(field) ? parseTime(ad[field]) : readNumber(ad[field])) ?? null;
  });

/** Minimum share of ads that must have a value, and maximum share of neighboring ads that may be out of order. */
const minKnownShare = 0.8;
const maxInversionShare = 0.01;
/**
 * An order is reported only if randomly ordered ads would show it with a probability of at most 1 in 1,000. Short
 * lists, and lists with mostly equal values, are often sorted by chance.
 */
const minSurprise = Math.log(1000);

/**
 * Finds the field by which the listed ads are sorted. If the search requests an order, the values only have to be
 * consistent with it. Otherwise the order must be evident from the values. Returns undefined if the ads are not sorted
 * by any field. Up to 1 % of neighboring ads may be out of order, because values can change after an ad was listed.
 * @param listing the values of each ad, in the order in which the service listed the ads
 */
export function findListingOrder(
  listing: readonly OrderValues[],
  { sort, order }: RequestedOrder = {},
): ListingOrder | undefined {
  const requestedField = orderFields.find((field) => field === sort);
  const requestedOrder = requestedField && describeListing(listing, requestedField);
  if (requestedOrder && agreesWith(requestedOrder, order))
    return toListingOrder({ ...requestedOrder, isDescending: requestedOrder.isDescending ?? order !== 'asc' });
  // If no order was requested, it is unknown where the service lists ads without a value.
  for (const field of orderFields) {
    const describedListing = describeListing(listing, field);
    if (!describedListing || describedListing.values.length < minKnownShare * listing.length) continue;
    if (measureSurprise(describedListing.values) >= minSurprise)
      return toListingOrder({ ...describedListing, endsWithoutValue: false });
  }
}

interface DescribedListing {
  field: OrderField;
  /** The values of the ads that have one. There is at least one. */
  values: readonly number[];
  /** Undefined if all values are equal, because the direction is then unknown. */
  isDescending: boolean | undefined;
  endsWithoutValue: boolean;
}

/**
 * Determines whether a list of ads is sorted by a field, and in which direction. Returns undefined if it is not sorted
 * by this field.
 */
function describeListing(listing: readonly OrderValues[], field: OrderField): DescribedListing | undefined {
  const index = orderFields.indexOf(field);
  const values = listing.flatMap((ad) => ad[index] ?? []);
  const hasValue = (ad: OrderValues | undefined) => (ad?.[index] ?? null) !== null;
  const endsWithoutValue = !hasValue(listing.at(-1)) && listing.slice(0, values.length).every(hasValue);
  const [rising, falling] = countSteps(values);
  const maxInversions = Math.floor(maxInversionShare * (values.length - 1));
  if (values.length === 0 || Math.min(rising, falling) > maxInversions) return undefined;
  const isDescending = rising === falling ? undefined : rising < falling;
  return { field, values, isDescending, endsWithoutValue };
}

/** Returns true if a list has the requested direction. A local library sorts in descending order by default. */
const agreesWith = ({ isDescending }: DescribedListing, order: unknown): boolean =>
  isDescending === undefined || order === undefined || isDescending === (order !== 'asc');

function toListingOrder({ field, values, isDescending = true, endsWithoutValue }: DescribedListing): ListingOrder {
  const [from, to] = findRange(values).map((value) =>
    dateFields.has(field) ? formatIsoTime(value).slice(0, 10) : value,
  );
  return { field, isDescending, from: from ?? '', to: to ?? '', endsWithoutValue };
}

/** Counts how often a value is larger than the previous value, and how often it is smaller. */
function countSteps(values: readonly number[]): [rising: number, falling: number] {
  let [rising, falling] = [0, 0];
  for (const [index, value] of values.entries()) {
    const previous = values[index - 1] ?? value;
    if (value > previous) rising++;
    if (value < previous) falling++;
  }
  return [rising, falling];
}

/**
 * Returns the natural logarithm of the number of different orders in which the values could be listed. The higher it
 * is, the less likely the list is sorted by chance. Swapping equal values does not count as a different order.
 */
function measureSurprise(values: readonly number[]): number {
  const counts = new Map<number, number>();
  let orders = 0;
  for (const [index, value] of values.entries()) {
    const equalValues = (counts.get(value) ?? 0) + 1;
    counts.set(value, equalValues);
    orders += Math.log((index + 1) / equalValues);
  }
  return orders;
}

const findRange = (values: readonly number[]): number[] => [
  values.reduce((lowest, value) => Math.min(lowest, value), Number.POSITIVE_INFINITY),
  values.reduce((highest, value) => Math.max(highest, value), Number.NEGATIVE_INFINITY),
];
