import type { ApiAnswer } from './client.ts';

/** Returns a count from a response. Returns undefined if the count is missing or not a whole number of at least 0. */
export const parseCount = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/**
 * Returns the total number of ads that match a search. Returns undefined if the response states fewer ads than it
 * contains.
 */
export function readTotalHits({
  value: { items, totalHits },
}: Pick<ApiAnswer<'searchAds'>, 'value'>): number | undefined {
  const total = parseCount(totalHits);
  return total !== undefined && total >= items.length ? total : undefined;
}

/** The number of ads that match a search, taken from a cached response. */
export interface CachedTotal {
  ads: number;
  /** When the service sent the response, in milliseconds since the epoch. */
  at: number;
  /** The sequence number of the response. */
  order: number;
}
