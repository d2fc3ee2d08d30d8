import type { SearchFilter } from '../api/search-filters.ts';

/** As much as the document allows for the items of a collection; for searches it shows no bound. */
const usual = 100;

/** The largest page of a search that makes sense: what the service is said to allow. */
export function maxPageSize(filters: readonly SearchFilter[]): number {
  const described = filters.find(({ key }) => key === 'limit')?.maximum ?? usual;
  return Math.max(1, Math.min(usual, Math.floor(described)));
}
