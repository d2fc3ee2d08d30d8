import { maxDocumentedPageSize } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { AdQuery } from './gatherings.ts';

/**
 * Returns the maximum number of ads per page. This is the maximum of the service's filter `limit`, if the service
 * describes one, but never more than the API document allows.
 */
export function determineMaxPageSize({ collectionId }: AdQuery, searchFilters: readonly SearchFilter[]): number {
  if (collectionId !== undefined) return maxDocumentedPageSize;
  const serviceMaxPageSize = searchFilters.find(({ key }) => key === 'limit')?.maximum ?? maxDocumentedPageSize;
  return Math.max(1, Math.min(maxDocumentedPageSize, Math.floor(serviceMaxPageSize)));
}

/** The page sizes to try, in this order, after the service has refused a larger page without a charge. */
export const fallbackPageSizes = [50, 20, 10];
