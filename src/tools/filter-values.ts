import { invalidRequest } from '../api/errors.ts';
import type { SearchFilter } from '../api/search-filters.ts';

export type Filters = Readonly<Record<string, unknown>>;

const maxValues = 40;

/**
 * Returns the filter keys by which ads can be counted. These are keys whose values the service counts, and keys with a
 * short list of known values. A key with a default is left out, because such a key sorts or pages the results.
 */
export const listCountableFilters = (describedFilters: readonly SearchFilter[]): SearchFilter[] =>
  describedFilters.filter(
    (filter) =>
      filter.default === undefined && (filter.counted || (listKnownValues(filter)?.length ?? Infinity) <= maxValues),
  );

const listKnownValues = ({ type, values }: SearchFilter): readonly (string | boolean)[] | undefined =>
  type === 'boolean' ? [true, false] : values;

/**
 * Finds the description of a filter key by which ads can be counted.
 * @throws AdLibraryError if ads cannot be counted by this key, or if `filters` already contains it
 */
export function findCountableFilter(
  key: string,
  describedFilters: readonly SearchFilter[],
  filters: Filters,
): SearchFilter {
  const countableFilters = listCountableFilters(describedFilters);
  const filter = countableFilters.find((one) => one.key === key);
  if (filter === undefined) {
    const keys = countableFilters.map((one) => one.key).join(', ');
    throw invalidRequest(
      keys === ''
        ? 'by: no values of any filter key are known here. List the parts in split instead.'
        : `by: takes one of ${keys}, whose values are known (at most ${maxValues}). For others list the parts in split.`,
    );
  }
  if (Object.hasOwn(filters, key))
    throw invalidRequest(`filters already has ${key}: to count by ${key}, leave it out of filters.`);
  return filter;
}

export const buildPart = ({ key, type }: SearchFilter, value: string | boolean): Filters => ({
  [key]: type === 'strings' ? [value] : value,
});

/** Returns one filter object for each known value of the key. */
export const buildParts = (filter: SearchFilter): Filters[] =>
  (listKnownValues(filter) ?? []).map((value) => buildPart(filter, value));

/**
 * Adds a condition to `filters` that matches only ads without a value for the key. Returns undefined if the service
 * describes no filter for this condition.
 */
export function requireMissing(
  filters: Filters,
  key: string,
  describedFilters: readonly SearchFilter[],
): Filters | undefined {
  const missingFilter = describedFilters.find((filter) => filter.key === 'missing' && filter.values?.includes(key));
  if (missingFilter === undefined) return undefined;
  return { missing: [...new Set([filters.missing ?? [], key].flat())] };
}
