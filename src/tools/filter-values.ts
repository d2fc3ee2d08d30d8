import { createInvalidRequestError } from '../api/errors.ts';
import type { SearchFilter } from '../api/search-filters.ts';

/** The filters of a search, by their keys. */
export type Filters = Readonly<Record<string, unknown>>;

const maxKnownValues = 40;

/**
 * Returns the filter keys by which ads can be counted: keys whose values the service counts, and keys with only a few
 * known values. Excludes keys with a default value, such as the sort order, because they do not select ads.
 */
export const listCountableFilters = (describedFilters: readonly SearchFilter[]): SearchFilter[] =>
  describedFilters.filter(
    (filter) =>
      filter.default === undefined &&
      (filter.counted || (listKnownValues(filter)?.length ?? Infinity) <= maxKnownValues),
  );

const listKnownValues = ({ type, values }: SearchFilter): readonly (string | boolean)[] | undefined =>
  type === 'boolean' ? [true, false] : values;

/**
 * Returns the description of the filter key by which the caller wants to count ads.
 * @throws AdLibraryError if ads cannot be counted by this key, or if `filters` already contains it
 */
export function findCountableFilter(
  filterKey: string,
  describedFilters: readonly SearchFilter[],
  filters: Filters,
): SearchFilter {
  const countableFilters = listCountableFilters(describedFilters);
  const filter = countableFilters.find((candidate) => candidate.key === filterKey);
  if (filter === undefined) {
    const keys = countableFilters.map((candidate) => candidate.key).join(', ');
    throw createInvalidRequestError(
      keys === ''
        ? 'by: no values of any filter key are known here. List the parts in split instead.'
        : `by: takes one of ${keys}, whose values are known (at most ${maxKnownValues}). For others list the parts in split.`,
    );
  }
  if (Object.hasOwn(filters, filterKey))
    throw createInvalidRequestError(
      `filters already has ${filterKey}: to count by ${filterKey}, leave it out of filters, or list its values in split, one part for each.`,
    );
  return filter;
}

/** Builds the filter that selects the ads with one value of a filter key. */
export const buildValueFilter = ({ key, type }: SearchFilter, value: string | boolean): Filters => ({
  [key]: type === 'strings' ? [value] : value,
});

/** Returns one filter object for each known value of a filter key, e.g. `{ active: true }` and `{ active: false }`. */
export const buildValueFilters = (filter: SearchFilter): Filters[] =>
  (listKnownValues(filter) ?? []).map((value) => buildValueFilter(filter, value));

/**
 * Returns a filter that matches only ads without a value for `filterKey`, e.g. `{ missing: ['country'] }`. The filter
 * also contains the keys of `filters.missing`. Returns undefined if the service offers no such filter.
 */
export function buildMissingFilter(
  filters: Filters,
  filterKey: string,
  describedFilters: readonly SearchFilter[],
): Filters | undefined {
  const missingFilter = describedFilters.find(
    (filter) => filter.key === 'missing' && filter.values?.includes(filterKey),
  );
  if (missingFilter === undefined) return undefined;
  return { missing: [...new Set([filters.missing ?? [], filterKey].flat())] };
}
