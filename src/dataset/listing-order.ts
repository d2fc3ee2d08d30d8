import { parseTime } from '../views/dates.ts';
import { computeRun } from '../views/days-running.ts';
import { type Fields, readNumber } from '../views/view.ts';
import { formatIsoTime } from './tables.ts';

/** The order in which the service listed the ads of a gathering. */
export interface ListingOrder {
  field: OrderField;
  isDescending: boolean;
  /** The smallest and the largest value among the listed ads. Dates are ISO days. */
  from: string | number;
  to: string | number;
}

type OrderField = (typeof orderFields)[number];

/**
 * The fields by which a service may sort. If several fields match the order, the first one in this list is reported.
 * Start dates come first because they say most about which ads are missing.
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

/** The values of one ad, one per field in `orderFields`. Dates are in milliseconds since the epoch. */
export type OrderValues = readonly (number | null)[];

/**
 * Reads the values of the fields in `orderFields`.
 * @param readAt when the ad was read, in milliseconds since the epoch
 */
export const readOrderValues = (ad: Fields, readAt: number): OrderValues =>
  orderFields.map((field) => {
    if (field === 'daysRunning') return computeRun(ad, readAt).daysRunning ?? null;
    return (dateFields.has(field) ? parseTime(ad[field]) : readNumber(ad[field])) ?? null;
  });

/** The fraction of ads that must have a value, and the fraction of neighboring ads that may be out of order. */
const minKnownShare = 0.8;
const maxInversionShare = 0.01;
/**
 * An order is reported only if a random order of the ads would show it with a probability of at most 1 in 1,000. Lists
 * of a few ads, or of ads with mostly equal values, are often sorted by chance.
 */
const minSurprise = Math.log(1000);

/**
 * Finds the field by which the listed ads are sorted. Returns undefined if no field matches the order. A value may have
 * changed since the ad was listed, so 1 % of neighboring ads may be out of order.
 * @param listing the values of each ad, in the order in which the service listed the ads
 */
export function findListingOrder(listing: readonly OrderValues[]): ListingOrder | undefined {
  for (const [index, field] of orderFields.entries()) {
    const values = listing.flatMap((ad) => ad[index] ?? []);
    if (values.length < minKnownShare * listing.length || measureSurprise(values) < minSurprise) continue;
    const [rising, falling] = countSteps(values);
    const maxInversions = Math.floor(maxInversionShare * (values.length - 1));
    if (Math.min(rising, falling) > maxInversions) continue;
    const [from, to] = findRange(values).map((value) =>
      dateFields.has(field) ? formatIsoTime(value).slice(0, 10) : value,
    );
    return { field, isDescending: rising <= falling, from: from ?? '', to: to ?? '' };
  }
}

/** Counts how often a value is larger, and how often it is smaller, than the value before it. */
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
 * Returns the natural logarithm of the number of distinct orders of the values. Swapping equal values does not count as
 * another order.
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
  values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY),
  values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY),
];
