import { parseTime } from '../views/dates.ts';
import { computeRun } from '../views/days-running.ts';
import { type Fields, readNumber } from '../views/view.ts';
import { formatIsoTime } from './tables.ts';

/** The order in which the service listed the ads of a gathering. */
export interface ListingOrder {
  field: OrderField;
  isDescending: boolean;
  /** The smallest and the largest value among the listed ads. A date is an ISO day. */
  from: string | number;
  to: string | number;
}

type OrderField = (typeof orderFields)[number];

/**
 * The fields by which services sort. If several explain the order, the first one is named: a start says most about the
 * ads that are missing.
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

/** The values of one ad in the order of `orderFields`. Dates are milliseconds since the epoch. */
export type OrderValues = readonly (number | null)[];

/**
 * Reads the values by which services sort.
 * @param readAt when the ad was read, in milliseconds since the epoch
 */
export const readOrderValues = (ad: Fields, readAt: number): OrderValues =>
  orderFields.map((field) => {
    if (field === 'daysRunning') return computeRun(ad, readAt).daysRunning ?? null;
    return (dateFields.has(field) ? parseTime(ad[field]) : readNumber(ad[field])) ?? null;
  });

/** The share of the ads that must have a value, and the share of neighbours that may be out of order. */
const minKnownShare = 0.8;
const maxInversionShare = 0.01;
/**
 * An order counts only if ads in random order would show it in at most one of 1,000 cases. A few ads, or ads that nearly
 * all have the same value, are often sorted by chance.
 */
const minSurprise = Math.log(1000);

/**
 * Finds the field by which the ads of a listing are sorted. Returns undefined if no field explains the order. A value
 * may have changed since the ad was listed, so one in a hundred ads may be out of order.
 * @param listing the values of the ads as the service listed them
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

/** Counts the neighbours whose second value is larger, and those whose second value is smaller. */
function countSteps(values: readonly number[]): [rising: number, falling: number] {
  let [rising, falling] = [0, 0];
  for (const [index, value] of values.entries()) {
    const previous = values[index - 1] ?? value;
    if (value > previous) rising++;
    if (value < previous) falling++;
  }
  return [rising, falling];
}

/** Returns the logarithm of the number of different orders that the values have. Equal values can change places. */
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
