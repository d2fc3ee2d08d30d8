import { sortBySimilarity } from '../../api/nearest.ts';
import type { Database } from '../database/database.ts';
import { findCountryCode } from '../import/values/countries.ts';
import { buildSearchSql, countHits, type FilterValue, type FilterValues, parseBound, type Search } from './search.ts';
import type { RecordType, TagFilter } from './searchable-records.ts';
import { normalizeTagValue } from './tags.ts';

/**
 * The maximum number of notes in a response, and of notes of the same kind. The limit is small, because each note may
 * need a separate database query.
 */
const maxNotes = 5;

/**
 * Creates the notes for the first result page of a search. A note explains why a search has fewer or more results than
 * the reader may expect, e.g. because a filter value is misspelled.
 */
export const createSearchNotes = (search: Search, database: Database): string[] =>
  [
    ...new Set([
      ...createReversedBoundsNotes(search),
      ...createUnknownValueNotes(search, database),
      ...createMissingValueNotes(search, database),
    ]),
  ].slice(0, maxNotes);

/**
 * Creates a note for each number or date whose lower bound is above its upper bound, so that no record can match. Omits
 * measures that a record may state as a range, because a wide range can contain both bounds.
 */
const createReversedBoundsNotes = ({ recordType, filters }: Search): string[] =>
  recordType.measures.flatMap(({ key, getLowerBound }) => {
    const [from, to] = [parseBound(filters, key, 'From'), parseBound(filters, key, 'To')];
    if (getLowerBound || from === undefined || to === undefined || from <= to) return [];
    return `Nothing can match, because the bounds ${key}From and ${key}To are reversed.`;
  });

const listFilterValues = (filter: FilterValue | undefined): string[] => [filter ?? []].flat().map(String);

/**
 * Creates a note for each filter value that does not occur in the library. The note suggests existing values with a
 * similar spelling.
 */
function createUnknownValueNotes({ recordType, filters }: Search, database: Database): string[] {
  const { itemType, tagFilters } = recordType;
  const excludedFilters = (filters.not ?? {}) as FilterValues;
  const tagValues = createTagValueLookup(recordType, database);
  const messageStart = `No ${itemType === 'ads' ? 'ad' : 'page'} in this library has`;
  const createNote = (tagFilter: TagFilter, value: string): string => {
    const { nearestSpellings, valueCount } = tagValues.findNearestSpellings(tagFilter, value);
    if (valueCount === 0) return `${messageStart} a value for ${tagFilter.key}.`;
    const note = `${messageStart} ${tagFilter.key} "${shortenValue(value)}".`;
    const countryCode = tagFilter.key === 'countries' && value.length > 2 ? findCountryCode(value) : undefined;
    if (countryCode !== undefined) return `${note} This filter takes country codes; use "${countryCode}".`;
    if (tagFilter.key === 'pageId' && itemType === 'ads')
      return `${note} The filter advertiserExact finds an advertiser by name.`;
    if (tagFilter.isId) return note;
    const selection =
      nearestSpellings.length === valueCount ? ', nearest in spelling first' : `, nearest of ${valueCount}`;
    return `${note} Values there are${selection}: ${nearestSpellings.map(shortenValue).join(', ')}.`;
  };
  return tagFilters.flatMap((tagFilter) => {
    const filterValues = tagFilter.mustMatchAll
      ? []
      : [...listFilterValues(filters[tagFilter.key]), ...listFilterValues(excludedFilters[tagFilter.key])];
    const unknownValues = filterValues.filter((value) => !tagValues.hasValue(tagFilter, value));
    return unknownValues.slice(0, maxNotes).map((value) => createNote(tagFilter, value));
  });
}

const maxValueLength = 60;
const shortenValue = (value: string) => (value.length > maxValueLength ? `${value.slice(0, maxValueLength)}…` : value);

/** Adds a key to the `missing` filter, so that only records without a value for the key match. */
const addKeyToMissingFilter = (key: string, { missing, ...filters }: FilterValues): FilterValues => ({
  ...filters,
  missing: [...new Set([...listFilterValues(missing), key])],
});

/**
 * Creates notes about records without a value for a filtered key. An ordinary filter excludes these records, but a
 * filter inside `not` keeps them. Each note states the number of these records.
 */
function createMissingValueNotes(search: Search, database: Database): string[] {
  const { recordType, filters } = search;
  const tagKeys = recordType.tagFilters.flatMap(({ key, mustMatchAll, isId }) => (mustMatchAll || isId ? [] : key));
  const keys = [...tagKeys, ...recordType.measures.map(({ key }) => key), 'active'];
  const removeBoundSuffix = (filterKey: string) => filterKey.replace(/(From|To)$/, '');
  /**
   * For each key in `comparedFilters`, counts the records that match the other filters but have no value for the key.
   */
  const countRecordsWithoutValue = (comparedFilters: object, getOtherFilters: (key: string) => FilterValues) =>
    keys
      .filter((key) => Object.keys(comparedFilters).map(removeBoundSuffix).includes(key))
      .slice(0, maxNotes)
      .map((key) => {
        const filtersWithMissingKey = addKeyToMissingFilter(key, getOtherFilters(key));
        return { key, hitCount: countHits(database, { ...search, filters: filtersWithMissingKey }) };
      })
      .filter(({ hitCount }) => hitCount > 0);
  const getFiltersWithoutKey = (key: string) =>
    Object.fromEntries(Object.entries(filters).filter(([filterKey]) => removeBoundSuffix(filterKey) !== key));
  return [
    ...countRecordsWithoutValue(filters, getFiltersWithoutKey).map(
      ({ key, hitCount }) =>
        `Left out because they have no value for ${key}: ${hitCount}. The filter missing with ${key} finds these.`,
    ),
    ...countRecordsWithoutValue((filters.not ?? {}) as object, () => filters).map(
      ({ key, hitCount }) =>
        `Found although they have no value for ${key}: ${hitCount}. The filter missing with ${key} inside not leaves these out.`,
    ),
  ];
}

/** The maximum number of values of a key for which records are counted, e.g. of the countries. */
const maxCountedValues = 30;
/**
 * The maximum number of stored values to compare with a misspelled value. Values that start with the same letters are
 * compared first, and then other values in alphabetical order.
 */
const maxComparedValues = 500;
/** The maximum number of similar values that a note suggests. */
const maxSuggestions = 12;

/**
 * Creates functions that look up the tag values in a library, e.g. the countries, domains and languages that its
 * records have.
 */
function createTagValueLookup({ itemType }: RecordType, database: Database) {
  const selectValuesSql = `SELECT value, spelling FROM ${itemType}_tag_values AS stored`;
  // Ignore values that no longer belong to any record. The table of tag values keeps a value even after its last record
  // was replaced.
  const buildInUseCondition = (condition: string) =>
    `EXISTS (SELECT 1 FROM ${itemType}_tags WHERE tag = stored.number AND ${condition})`;
  const readValues = (sql: string, parameters: (string | number)[]) =>
    database.all<{ value: string; spelling: string }>(sql, parameters);

  return {
    /** Returns true if at least one record in the library has the value. */
    hasValue(tagFilter: TagFilter, value: string): boolean {
      const sql = `${selectValuesSql} WHERE key = ? AND value = ? AND ${buildInUseCondition('1')}`;
      return database.all(sql, [tagFilter.key, normalizeTagValue(tagFilter, value)]).length > 0;
    },
    /** Returns the most common values of a tag filter in their original spelling. */
    listCommonSpellings: (tagFilter: TagFilter): string[] =>
      readValues(
        `SELECT value, spelling FROM (
           SELECT value, spelling,
             (SELECT count(*) FROM ${itemType}_tags WHERE tag = stored.number AND isCounted) AS records
           FROM ${itemType}_tag_values AS stored WHERE key = ?)
         WHERE records > 0 ORDER BY records DESC, value LIMIT ${maxCountedValues}`,
        [tagFilter.key],
      ).map(({ spelling }) => spelling),
    /**
     * Returns the existing values whose spelling is most similar to `misspelledValue`. `valueCount` is the number of
     * existing values, or `many` if there were too many to compare.
     */
    findNearestSpellings(
      tagFilter: TagFilter,
      misspelledValue: string,
    ): { nearestSpellings: string[]; valueCount: number | 'many' } {
      const firstLetters = normalizeTagValue(tagFilter, misspelledValue.slice(0, 2));
      const candidates = [firstLetters, ''].flatMap((valueStart) =>
        readValues(
          `${selectValuesSql} WHERE key = ? AND value >= ? AND value < ? AND ${buildInUseCondition('isCounted')} ORDER BY value LIMIT ?`,
          [tagFilter.key, valueStart, `${valueStart}\u{10ffff}`, maxComparedValues],
        ),
      );
      const spellingByValue = new Map(candidates.map((candidate) => [candidate.value, candidate.spelling]));
      const nearestValues = sortBySimilarity(misspelledValue, [...spellingByValue.keys()]).slice(0, maxSuggestions);
      return {
        nearestSpellings: nearestValues.map((nearestValue) => spellingByValue.get(nearestValue) ?? nearestValue),
        valueCount: spellingByValue.size < maxComparedValues ? spellingByValue.size : 'many',
      };
    },
  };
}

/** Returns the most common values of a tag filter in the whole library, in their original spelling. */
export function listCommonValues(filterKey: string, recordType: RecordType, database: Database): string[] {
  const tagFilter = recordType.tagFilters.find((candidate) => candidate.key === filterKey);
  return tagFilter ? createTagValueLookup(recordType, database).listCommonSpellings(tagFilter) : [];
}

/**
 * Counts the results of a search for each of the most common values of a key, e.g. for each country. `none` counts the
 * records without a value, and `more` is the number of values that are not counted. A search with one of the values as
 * an additional filter finds exactly the counted records.
 */
export function countHitsByValue(key: string, search: Search, database: Database) {
  const { recordType, filters } = search;
  const countWithFilters = (countedFilters: FilterValues) =>
    countHits(database, { ...search, filters: countedFilters });
  const none = countWithFilters(addKeyToMissingFilter(key, filters));
  const tagFilter = recordType.tagFilters.find((candidate) => candidate.key === key);
  if (tagFilter === undefined) {
    const values = [true, false].map((value) => ({ value, total: countWithFilters({ ...filters, [key]: value }) }));
    return { by: key, values, none, more: 0 };
  }
  const { itemType } = recordType;
  const { fromClause, whereClause, parameters } = buildSearchSql(database, search);
  // Write `+record`, so that SQLite does not use an index on this column. With the index, SQLite would look up each
  // value for every matching record, which is slower than reading the records of each value.
  const countRows = database.all<{ value: string; total: number; valueCount: number }>(
    `WITH found AS MATERIALIZED (SELECT ${itemType}.number FROM ${fromClause} WHERE ${whereClause})
     SELECT spelling AS value, count(*) AS total, count(*) OVER () AS valueCount
     FROM ${itemType}_tag_values AS stored JOIN ${itemType}_tags ON tag = stored.number
     WHERE key = ? AND +record IN (SELECT number FROM found)
     GROUP BY tag HAVING max(isCounted) ORDER BY total DESC, stored.value LIMIT ?`,
    [...parameters, tagFilter.key, maxCountedValues],
  );
  const counts = countRows.map(({ value, total }) => ({ value, total }));
  const booleanCounts = counts.map(({ value, total }) => ({ value: value === 'true', total }));
  const more = (countRows[0]?.valueCount ?? 0) - countRows.length;
  return { by: key, values: tagFilter.isBoolean ? booleanCounts : counts, none, more };
}
