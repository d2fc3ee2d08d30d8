import { maxPageSize } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { GatheringQuestion } from './gatherings.ts';

/**
 * Returns the maximum number of ads per page: the maximum that the service describes for the filter `limit`, but never
 * more than the API document allows.
 */
export function determineMaxPageSize({ collectionId }: GatheringQuestion, filters: readonly SearchFilter[]): number {
  if (collectionId !== undefined) return maxPageSize;
  const describedMax = filters.find(({ key }) => key === 'limit')?.maximum ?? maxPageSize;
  return Math.max(1, Math.min(maxPageSize, Math.floor(describedMax)));
}

/** Page sizes to try, in this order, after the service has refused a larger one. A refused request costs nothing. */
export const smallerPageSizes = [50, 20, 10];
