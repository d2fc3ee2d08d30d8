import { invalidRequest } from '../api/errors.ts';
import type { SearchFilter } from '../api/search-filters.ts';

export type Filters = Readonly<Record<string, unknown>>;

const maxValues = 30;

/** Keys whose values the service counts, or whose values are known and few. One with a default orders or pages results. */
export const countableKeys = (described: readonly SearchFilter[]): SearchFilter[] =>
  described.filter(
    (filter) =>
      filter.default === undefined && (filter.counted || (knownValues(filter)?.length ?? Infinity) <= maxValues),
  );

const knownValues = ({ type, values }: SearchFilter): readonly (string | boolean)[] | undefined =>
  type === 'boolean' ? [true, false] : values;

/** @throws AdLibraryError if ads cannot be counted by the key */
export function countableKey(key: string, described: readonly SearchFilter[], filters: Filters): SearchFilter {
  const countable = countableKeys(described);
  const filter = countable.find((one) => one.key === key);
  if (filter === undefined) {
    const keys = countable.map((one) => one.key).join(', ');
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

export const partOf = ({ key, type }: SearchFilter, value: string | boolean): Filters => ({
  [key]: type === 'strings' ? [value] : value,
});

/** For each known value. */
export const partsOf = (filter: SearchFilter): Filters[] =>
  (knownValues(filter) ?? []).map((value) => partOf(filter, value));

/** `filters`, narrowed to ads without a value of the key; undefined if no described filter can say that. */
export function withMissing(filters: Filters, key: string, described: readonly SearchFilter[]): Filters | undefined {
  const missing = described.find((filter) => filter.key === 'missing' && filter.values?.includes(key));
  if (missing === undefined) return undefined;
  return { missing: [...new Set([filters.missing ?? [], key].flat())] };
}

/** Filters that find nothing where a part of one key finds all; undefined if no described filter says that. */
export function oppositeOf(part: Filters, filters: Filters, described: readonly SearchFilter[]): Filters | undefined {
  const [[key, value] = ['', undefined], ...others] = Object.entries(part);
  if (others.length > 0) return undefined;
  const not = described.find(({ type }) => type === 'filters')?.key;
  if (not !== undefined && key === not) {
    const { [not]: _, ...kept } = filters;
    const [only, ...more] = Object.keys(value ?? {});
    const isOne = only !== undefined && more.length === 0 && !Object.hasOwn(kept, only);
    return isOne ? { ...kept, ...(value as Filters) } : undefined;
  }
  if (not !== undefined) {
    const inner = (filters[not] ?? {}) as Filters;
    return Object.hasOwn(inner, key) ? undefined : { ...filters, [not]: { ...inner, [key]: value } };
  }
  const filter = described.find((one) => one.key === key);
  if (filter?.type === 'boolean') return { ...filters, [key]: !value };
  const remaining = filter?.open ? [] : (filter?.values ?? []).filter((one) => ![value].flat().includes(one));
  return filter?.type === 'strings' && remaining.length > 0 ? { ...filters, [key]: remaining } : undefined;
}
