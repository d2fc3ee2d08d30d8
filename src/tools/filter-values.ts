import { invalidRequest } from '../api/errors.ts';
import type { SearchFilter } from '../api/search-filters.ts';

type Filters = Record<string, unknown>;

const maxValues = 30;

export interface KeyValues {
  /** One filter object for each known value. */
  parts: Filters[];
  /** Whether an ad has one value at most, so that parts cannot overlap. */
  isSingle: boolean;
}

/** @throws AdLibraryError if the values of the key are not known, or too many */
export function valuesOf(key: string, described: readonly SearchFilter[], filters: Filters): KeyValues {
  const countable = described.filter(isCountable);
  const filter = countable.find((known) => known.key === key);
  if (filter === undefined) {
    const keys = countable.map((known) => known.key).join(', ');
    throw invalidRequest(
      keys === ''
        ? 'by: no values of any filter key are known here. List the parts in split instead.'
        : `by: takes one of ${keys}, whose values are known (at most ${maxValues}). For others list the parts in split.`,
    );
  }
  if (Object.hasOwn(filters, key)) throw invalidRequest(`filters already holds ${key}: leave it out to count by it.`);
  const isList = filter.type === 'strings';
  const parts = (knownValues(filter) ?? []).map((value) => ({ [key]: isList ? [value] : value }));
  return { parts, isSingle: filter.single === true };
}

/** A key with a default orders or pages results, and leaves none out. */
const isCountable = (filter: SearchFilter) =>
  filter.default === undefined && (knownValues(filter)?.length ?? Infinity) <= maxValues;

const knownValues = ({ type, values }: SearchFilter): readonly (string | boolean)[] | undefined =>
  type === 'boolean' ? [true, false] : values;

/** As much as the document allows for the items of a collection; for searches it shows no bound. */
const documentedMax = 100;

/** The largest page of a search that makes sense: what the service is said to allow. */
export function maxPageSize(filters: readonly SearchFilter[]): number {
  const described = filters.find(({ key }) => key === 'limit')?.maximum ?? documentedMax;
  return Math.max(1, Math.min(documentedMax, Math.floor(described)));
}
