import type { ApiResponse } from './client.ts';

/** Returns a count from a response, or undefined if the count is missing, negative or not a whole number. */
export const parseCount = (count: number | undefined): number | undefined =>
  count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined;

/**
 * Returns the total number of ads that match a search. Returns undefined if the reported total is lower than the number
 * of ads in the response, and therefore wrong.
 */
export function readTotalHits({
  validatedBody: { items, totalHits },
}: Pick<ApiResponse<'searchAds'>, 'validatedBody'>): number | undefined {
  const matchingCount = parseCount(totalHits);
  return matchingCount !== undefined && matchingCount >= items.length ? matchingCount : undefined;
}

/** The total number of ads that match a search, from a cached response. */
export interface CachedTotal {
  matchingCount: number;
  /** The time at which the response arrived, in milliseconds since 1970. */
  countedAt: number;
  /** The sequence number of the response. The total with the highest number is the most recent one. */
  sequenceNumber: number;
}
