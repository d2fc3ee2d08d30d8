import type { SearchFilter, SearchFilters } from '../../api/search-filters.ts';
import { type Measure, type RecordType, recordTypes, type TagFilter, type TextFilter } from './searchable-records.ts';

/**
 * The search filters of this library, computed from the descriptions of the record types (ads and advertiser pages).
 * They are used to validate requests, in the text of 422 errors, by the `library filters` command, and in tool
 * descriptions. The build replaces this module with the computed list.
 */

/** The maximum number of characters in a text filter, and of texts in a list filter. */
const maxFilterLength = { text: 300, list: 50 };

function describeBoundFilters({ key, description, isDate }: Measure): SearchFilter[] {
  const type = isDate ? 'date' : 'number';
  const wholeDay = isDate ? '; a date without a time includes its whole day' : '';
  return [
    { key: `${key}From`, type, description: `Lower bound, inclusive: ${description}` },
    { key: `${key}To`, type, description: `Upper bound, inclusive: ${description}${wholeDay}` },
  ];
}

function describeTextFilter({ key, description, columns: _, ...options }: TextFilter): SearchFilter {
  const text = `Words that must all occur in ${description}. Use "…" for an exact phrase and -word for a word that must not occur; a query may consist of excluded words alone`;
  return { key, type: 'query', description: text, maxLength: maxFilterLength.text, ...options };
}

function describeTagFilter(tagFilter: TagFilter): SearchFilter {
  const {
    key,
    description,
    isBoolean,
    mustMatchAll,
    isId,
    hasSingleValue,
    getValues: _,
    getExtraValues: __,
    valuesFromColumns: ___,
    isDomain: ____,
    ...options
  } = tagFilter;
  const flags = { ...(hasSingleValue && { single: true }), ...(!isId && !mustMatchAll && { counted: true }) };
  if (isBoolean) return { key, type: 'boolean', description: `True or false: ${description}`, ...options, ...flags };
  const text = mustMatchAll ? description : `Any of the listed values: ${description}`;
  return { key, type: 'strings', description: text, maxLength: maxFilterLength.list, ...options, ...flags };
}

/**
 * Describes the `not` filter. Its value is an object with other filters, e.g. `{ countries: ['DE'] }`. The search
 * excludes all records that match at least one of these filters.
 */
const describeNotFilter = (filters: SearchFilter[]): SearchFilter => ({
  key: 'not',
  type: 'filters',
  description: `Excludes records that match any of these filters; each key of missing counts as a filter of its own. Records without a value stay in the result. Takes all other keys except limit, sort and order: ${filters[0]?.key} …`,
  note: 'without sort and order; excludes records that match any of its filters',
});

function describeFilters(
  { textFilters, tagFilters, measures }: RecordType,
  otherFilters: SearchFilter[] = [],
): SearchFilter[] {
  const filters = [
    ...textFilters.map(describeTextFilter),
    ...otherFilters,
    ...tagFilters.map(describeTagFilter),
    ...measures.flatMap(describeBoundFilters),
  ];
  const sortKeys = measures.map(({ key }) => key);
  const [defaultSortKey] = sortKeys;
  return [
    { key: 'limit', type: 'integer', minimum: 1, ...resultsPerPage },
    ...filters,
    describeNotFilter(filters),
    {
      key: 'sort',
      type: 'string',
      description: 'The value by which records are sorted. Records without this value come last',
      values: sortKeys,
      ...(defaultSortKey && { default: defaultSortKey }),
    },
    {
      key: 'order',
      type: 'string',
      description: 'The direction of the sort',
      values: ['desc', 'asc'],
      default: 'desc',
    },
  ];
}

/**
 * The number of results per page of a search. The API document does not specify these numbers, so they may differ in
 * another service.
 */
export const resultsPerPage = { default: 20, maximum: 100 };

/** Describes the search filters of the library, in the format of the `AD_LIBRARY_SEARCH_FILTERS` setting. */
export const libraryFilters = {
  inclusive: true,
  ignoresCase: true,
  ads: describeFilters(recordTypes.ads, [
    {
      key: 'active',
      type: 'boolean',
      description:
        'true: endDate is in the future, or the ad has no endDate and was seen in the last two days. false: endDate is past. For all other ads the state is unknown; only the filter missing with active finds them',
      note: 'true: seen in the last 2 days or endDate ahead; false: endDate past; unknown: missing active',
      single: true,
      counted: true,
    },
  ]),
  pages: describeFilters(recordTypes.pages),
} satisfies SearchFilters;
