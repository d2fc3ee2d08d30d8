import type { SearchFilter, SearchFilters } from '../../api/search-filters.ts';
import { libraryFilters } from './filter-keys.ts';

/** Bounds of a search's page; the document leaves them open. */
export const searchLimit = { default: 20, maximum: 100 };

/** Whether `not` takes the key. */
export const isCondition = ({ key, type }: SearchFilter): boolean =>
  type !== 'filters' && key !== 'sort' && key !== 'order';

/** The same with the page size, as `library filters` and the OpenAPI document show them. */
export function describedFilters(): SearchFilters {
  const limit: SearchFilter = { key: 'limit', type: 'integer', minimum: 1, ...searchLimit };
  const { ads, pages } = libraryFilters;
  return { inclusive: true, ignoresCase: true, ads: [limit, ...ads], pages: [limit, ...pages] };
}

/**
 * The filters of another version of this library, described in the words of this version: the other's words are never
 * shown to a model.
 */
export function withNotes(served: SearchFilters): SearchFilters {
  const noted = (kind: 'ads' | 'pages') =>
    served[kind].map((filter) => {
      const own = libraryFilters[kind].find(({ key, type }) => key === filter.key && type === filter.type);
      const { note, example } = own ?? {};
      return { ...filter, ...(note !== undefined && { note }), ...(example !== undefined && { example }) };
    });
  return { ...served, ads: noted('ads'), pages: noted('pages') };
}
