import type { ApiAnswer } from './client.ts';

/** Returns a count that the service stated; undefined if it is missing or not a whole number from 0 on. */
export const parseCount = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Returns how many ads match a search, as its answer states; undefined if the answer states fewer ads than it holds. */
export function readTotalHits({
  value: { items, totalHits },
}: Pick<ApiAnswer<'searchAds'>, 'value'>): number | undefined {
  const total = parseCount(totalHits);
  return total !== undefined && total >= items.length ? total : undefined;
}

/** The number of ads that match filters, as a cached answer states it. */
export interface CachedTotal {
  ads: number;
  /** When the service answered, in milliseconds since the epoch. */
  at: number;
  /** The sequence number of the answer. */
  order: number;
}
