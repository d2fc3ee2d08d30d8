import { maxDaysSinceSeen } from '../../views/days-running.ts';
import { dayMs } from '../../views/durations.ts';
import type { Database } from '../database/database.ts';
import { createInvalidRequestError } from '../service/request.ts';
import type { Measure, RecordType } from './searchable-records.ts';
import { normalizeTagValue } from './tags.ts';
import { parseQuery } from './tokens.ts';

/**
 * The position of the last row on a result page. The next page starts after this row. The sort value is null if the row
 * has no value to sort by.
 */
export type ResultPosition = [sortValue: number | null, rowNumber: number];

/** Counts all records that match a search, across all result pages. */
export function countHits(database: Database, search: Search): number {
  const { fromClause, whereClause, parameters } = buildSearchSql(database, search);
  return (
    database.get<{ hitCount: number }>(
      `SELECT count(*) AS hitCount FROM ${fromClause} WHERE ${whereClause}`,
      parameters,
    )?.hitCount ?? 0
  );
}

/**
 * Finds the next page of a search. Returns the row numbers of its records, and whether more records follow.
 *
 * Rows are sorted by sort value, then by row number. Rows without a sort value come last. The next page starts after
 * the last row of the previous page (keyset pagination), not at an offset. New records therefore do not shift the
 * results between pages.
 *
 * @param previousPosition the `position` of the previous page; without it, the first page is returned
 */
export function findResultPage(database: Database, search: Search, limit: number, previousPosition?: ResultPosition) {
  const { column, order, comparisonOperator } = selectSortOrder(toRelativeSearch(database, search));
  const { fromClause, whereClause, parameters } = buildSearchSql(database, search);
  const readRows = (condition: string, conditionValues: number[], maxRows: number) =>
    database.all<{ number: number; value: number | null }>(
      `SELECT ${search.recordType.itemType}.number, ${column} AS value FROM ${fromClause} WHERE ${whereClause} AND ${condition} LIMIT ?`,
      [...parameters, ...conditionValues, maxRows],
    );
  const rows: ReturnType<typeof readRows> = [];
  const numberColumn = `${search.recordType.itemType}.number`;
  const [previousSortValue, previousRowNumber] = previousPosition ?? [];
  if (previousSortValue !== null) {
    const seekCondition = previousPosition
      ? `(${column}, ${numberColumn}) ${comparisonOperator} (?, ?)`
      : `${column} IS NOT NULL`;
    const condition = `${seekCondition} ORDER BY ${column} ${order}, ${numberColumn} ${order}`;
    rows.push(...readRows(condition, (previousPosition ?? []) as number[], limit + 1));
  }
  if (rows.length <= limit) {
    const seekCondition = previousSortValue === null ? ` AND ${numberColumn} ${comparisonOperator} ?` : '';
    const condition = `${column} IS NULL${seekCondition} ORDER BY ${numberColumn} ${order}`;
    const conditionValues = previousSortValue === null && previousRowNumber !== undefined ? [previousRowNumber] : [];
    rows.push(...readRows(condition, conditionValues, limit + 1 - rows.length));
  }
  const pageRows = rows.slice(0, limit);
  const lastRow = pageRows.at(-1);
  const position: ResultPosition | undefined = lastRow && [lastRow.value, lastRow.number];
  return { rowNumbers: pageRows.map((row) => row.number), hasMore: rows.length > limit, position };
}

/**
 * Returns the column and the direction by which a search is sorted, and the comparison operator with which the next page
 * selects the rows after the last row of this page. Without the `sort` filter, the search is sorted by the first measure
 * (a number or date) of the record type.
 */
function selectSortOrder({ recordType, filters, searchTimeMs }: RelativeSearch) {
  const [defaultMeasure] = recordType.measures;
  const measure = recordType.measures.find(({ key }) => key === filters.sort) ?? defaultMeasure;
  const column = measure ? getMeasureSql(recordType, measure, searchTimeMs) : `${recordType.itemType}.number`;
  return filters.order === 'asc'
    ? { column, order: 'ASC', comparisonOperator: '>' }
    : { column, order: 'DESC', comparisonOperator: '<' };
}

/** The validated value of a search filter. Only the value of the `not` filter contains further filters. */
export type FilterValue = string | number | boolean | string[] | FilterValues;

/** The validated filters of a search, i.e. the value of each filter by its key, e.g. `countries: ['DE']`. */
export type FilterValues = { [key: string]: FilterValue };

/** A search for ads or advertiser pages. */
export type Search = {
  recordType: RecordType;
  filters: FilterValues;
  /**
   * The time of the search in Unix milliseconds, e.g. to decide which ads are active. All result pages of a search use
   * the same time.
   */
  searchTimeMs: number;
};

/** A condition in the WHERE clause of an SQL query, and the values for its placeholders (`?`). */
type SqlCondition = { sql: string; parameters: (string | number)[] };

/**
 * A search whose `searchTimeMs` is relative to `dateOriginMs`, as are the dates in the database. Both times can
 * therefore be compared. For demo data, `dateOriginMs` is the start of the current day, so that the ads are always
 * recent. For other libraries, it is 0.
 */
type RelativeSearch = Search & Pick<Database, 'dateOriginMs'>;

const toRelativeSearch = ({ dateOriginMs }: Database, search: Search): RelativeSearch => ({
  ...search,
  searchTimeMs: search.searchTimeMs - dateOriginMs,
  dateOriginMs,
});

/** Builds the FROM and WHERE clauses of a search, and the values for their placeholders. */
export function buildSearchSql(database: Database, search: Search) {
  const relativeSearch = toRelativeSearch(database, search);
  const { itemType } = search.recordType;
  const { not, ...filters } = search.filters;
  const { fullTextQuery, conditions: textConditions } = buildTextConditions(search.recordType, filters);
  const conditions = [
    ...textConditions,
    ...buildColumnConditions({ ...relativeSearch, filters }),
    ...buildTagConditions(search.recordType, filters, fullTextQuery !== undefined),
    ...buildNotConditions(relativeSearch, not),
  ];
  if (fullTextQuery !== undefined) conditions.push({ sql: `${itemType}_text MATCH ?`, parameters: [fullTextQuery] });
  return {
    fromClause:
      fullTextQuery === undefined
        ? itemType
        : `${itemType}_text JOIN ${itemType} ON ${itemType}.number = ${itemType}_text.rowid`,
    whereClause: conditions.map(({ sql }) => sql).join(' AND ') || '1',
    parameters: conditions.flatMap((condition) => condition.parameters),
  };
}

/**
 * Builds the conditions for the `not` filter, which excludes records that match at least one of its filters. A record
 * without a value does not match a filter, so the record stays in the results. Each key in the `missing` list counts as
 * a separate filter.
 */
function buildNotConditions(search: RelativeSearch, notFilter: FilterValues[string] | undefined): SqlCondition[] {
  const { recordType } = search;
  const { missing = [], ...filters } = (notFilter ?? {}) as FilterValues;
  const filterEntries = [...Object.entries(filters), ...[missing].flat().map((key) => ['missing', [key]] as const)];
  return filterEntries.flatMap(([key, value]) => {
    const singleFilter = { [key]: value } as FilterValues;
    const { fullTextQuery, conditions: textConditions } = buildTextConditions(recordType, singleFilter);
    const conditions = [
      ...textConditions,
      ...(fullTextQuery === undefined ? [] : [buildFullTextCondition(recordType, fullTextQuery)]),
      ...buildColumnConditions({ ...search, filters: singleFilter }),
      ...buildTagConditions(recordType, singleFilter, true),
    ];
    return conditions.map(({ sql, parameters }) => ({ sql: `NOT coalesce(${sql}, 0)`, parameters }));
  });
}

/**
 * Builds the conditions on columns of the record table: bounds of numbers and dates, missing numbers and dates, and
 * whether an ad is active.
 */
function buildColumnConditions(search: RelativeSearch): SqlCondition[] {
  const { recordType, filters, searchTimeMs } = search;
  const boundConditions = recordType.measures.flatMap((measure) => buildBoundConditions(measure, search));
  const missingConditions = recordType.measures
    .filter(({ key }) => [filters.missing].flat().includes(key))
    .map((measure) => ({ sql: `(${getMeasureSql(recordType, measure, searchTimeMs)} IS NULL)`, parameters: [] }));
  return [...boundConditions, ...missingConditions, ...buildActiveConditions(search)];
}

/**
 * Builds the conditions for all tag filters, e.g. for the `countries` filter.
 *
 * @param shouldLookUpTags true if another condition, such as a text search, finds the records first. SQLite then looks
 * up the tags of each record. Otherwise, SQLite starts with all records that have the tag value.
 */
function buildTagConditions(
  { itemType, tagFilters }: RecordType,
  filters: FilterValues,
  shouldLookUpTags: boolean,
): SqlCondition[] {
  return tagFilters.flatMap((tagFilter) => {
    const filterValues = [filters[tagFilter.key] ?? []].flat().map(String);
    const tagValues = filterValues
      .filter((value) => !tagFilter.valuesFromColumns?.includes(value))
      .map((value) => normalizeTagValue(tagFilter, value));
    const alternatives = tagValues.length > 0 ? [tagValues] : [];
    const valueGroups = tagFilter.mustMatchAll ? tagValues.map((value) => [value]) : alternatives;
    return valueGroups.map((values) => {
      const hasTag = `tag IN (SELECT number FROM ${itemType}_tag_values WHERE key = ? AND value IN (${values.map(() => '?')}))`;
      const sql = shouldLookUpTags
        ? `EXISTS (SELECT 1 FROM ${itemType}_tags WHERE record = ${itemType}.number AND ${hasTag})`
        : `${itemType}.number IN (SELECT record FROM ${itemType}_tags WHERE ${hasTag})`;
      return { sql, parameters: [tagFilter.key, ...values] };
    });
  });
}

/**
 * Returns the SQL expression for a measure, i.e. for a number or date of a record. Some measures depend on the time of
 * the search, e.g. the number of days that an ad has run.
 */
const getMeasureSql = ({ itemType }: RecordType, { key, getValueSql }: Measure, searchTimeMs: number): string =>
  getValueSql?.(searchTimeMs) ?? `${itemType}."${key}"`;

/**
 * Returns the value of a filter for the lower or upper bound of a measure, e.g. of `startedAtTo`. Dates are returned in
 * milliseconds since the Unix epoch. Returns undefined if the filter is not set.
 */
export function parseBound(filters: FilterValues, key: string, boundSuffix: 'From' | 'To'): number | undefined {
  const value = filters[key + boundSuffix];
  if (typeof value !== 'string') return value === undefined ? undefined : Number(value);
  // An upper bound that is a date without a time includes the whole day.
  const restOfDayMs = boundSuffix === 'To' && !/t/i.test(value) ? dayMs - 1 : 0;
  return Date.parse(value) + restOfDayMs;
}

function buildBoundConditions(
  measure: Measure,
  { recordType, filters, searchTimeMs, dateOriginMs }: RelativeSearch,
): SqlCondition[] {
  const { key, getLowerBound, isDate } = measure;
  const buildCondition = (boundSuffix: 'From' | 'To', sql: string): SqlCondition[] => {
    const bound = parseBound(filters, key, boundSuffix);
    if (bound === undefined) return [];
    return [{ sql, parameters: [isDate ? bound - dateOriginMs : bound] }];
  };
  const upperBoundSql = getMeasureSql(recordType, measure, searchTimeMs);
  const lowerBoundSql = getLowerBound ? `${recordType.itemType}."${key}Low"` : upperBoundSql;
  return [...buildCondition('From', `${upperBoundSql} >= ?`), ...buildCondition('To', `${lowerBoundSql} <= ?`)];
}

/**
 * Builds the conditions for the filters `active` and `missing: ['active']`. They find ads that are active, not active,
 * or in an unknown state. `computeRunningTime` applies the same rules.
 */
function buildActiveConditions({ filters: { active, missing = [] }, searchTimeMs }: RelativeSearch): SqlCondition[] {
  const minLastSeenAtMs = (Math.floor(searchTimeMs / dayMs) - maxDaysSinceSeen) * dayMs;
  const isActiveSql = '(ads."endDate" > ? OR (ads."endDate" IS NULL AND ads."lastSeenAt" >= ?))';
  const isUnknownSql = '(ads."endDate" IS NULL AND coalesce(ads."lastSeenAt" < ?, 1))';
  return [
    ...(active === true ? [{ sql: isActiveSql, parameters: [searchTimeMs, minLastSeenAtMs] }] : []),
    ...(active === false ? [{ sql: '(ads."endDate" <= ?)', parameters: [searchTimeMs] }] : []),
    ...([missing].flat().includes('active') ? [{ sql: isUnknownSql, parameters: [minLastSeenAtMs] }] : []),
  ];
}

const buildFullTextCondition = ({ itemType }: RecordType, fullTextQuery: string): SqlCondition => ({
  sql: `${itemType}.number IN (SELECT rowid FROM ${itemType}_text WHERE ${itemType}_text MATCH ?)`,
  parameters: [fullTextQuery],
});

/**
 * Builds the full-text query of a search. `fullTextQuery` is undefined if the search requires no words. The full-text
 * index cannot search for excluded words alone. Without required words, the excluded words therefore become a separate
 * condition.
 */
function buildTextConditions(recordType: RecordType, filters: FilterValues) {
  const requiredPhrases: string[] = [];
  const excludedPhrases: string[] = [];
  for (const { key, columns } of recordType.textFilters) {
    const text = filters[key];
    if (typeof text !== 'string') continue;
    const phrases = parseQuery(text);
    if (phrases.required.length + phrases.excluded.length === 0)
      throw createInvalidRequestError(`"${key}" holds no letter or digit to search for.`, { key });
    const searchInColumns = (phrase: string) => `{${columns.join(' ')}} : ${phrase}`;
    requiredPhrases.push(...phrases.required.map(searchInColumns));
    excludedPhrases.push(...phrases.excluded.map(searchInColumns));
  }
  const [requiredQuery, excludedQuery] = [requiredPhrases.join(' AND '), excludedPhrases.join(' OR ')];
  if (excludedQuery === '') return { fullTextQuery: requiredQuery === '' ? undefined : requiredQuery, conditions: [] };
  if (requiredQuery !== '') return { fullTextQuery: `(${requiredQuery}) NOT (${excludedQuery})`, conditions: [] };
  const { sql, parameters } = buildFullTextCondition(recordType, excludedQuery);
  return { fullTextQuery: undefined, conditions: [{ sql: `NOT ${sql}`, parameters }] };
}
