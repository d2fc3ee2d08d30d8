import { maxDaysSinceSeen } from '../../views/dates.ts';
import { dayMs } from '../../views/durations.ts';
import type { Database } from '../database/database.ts';
import { invalid } from '../service/request.ts';
import type { Measure, RecordType } from './ads-and-pages.ts';
import { comparableValue } from './tags.ts';
import { parseQuery } from './tokens.ts';

/** Where a page of results ended: the last row's sort value (null if it had none) and its number. */
export type Position = [value: number | null, number: number];

export function countHits(database: Database, search: Search): number {
  const { from, where, values } = conditionsOf(database, search);
  return database.get<{ hits: number }>(`SELECT count(*) AS hits FROM ${from} WHERE ${where}`, values)?.hits ?? 0;
}

/**
 * The next `limit` rows after `after`, and whether more follow.
 *
 * Ordered by sort value, then by row number; rows without a value come last. Keyset pagination: a page starts at a
 * position and not at an offset, so that no result appears twice or is lost when rows are added meanwhile.
 */
export function findPage(database: Database, search: Search, limit: number, after?: Position) {
  const { column, order, compare } = direction(asStored(database, search));
  const { from, where, values } = conditionsOf(database, search);
  const read = (condition: string, extra: number[], max: number) =>
    database.all<{ number: number; value: number | null }>(
      `SELECT ${search.recordType.name}.number, ${column} AS value FROM ${from} WHERE ${where} AND ${condition} LIMIT ?`,
      [...values, ...extra, max],
    );
  const rows: ReturnType<typeof read> = [];
  const number = `${search.recordType.name}.number`;
  const [value, last] = after ?? [];
  if (value !== null) {
    const seek = after ? `(${column}, ${number}) ${compare} (?, ?)` : `${column} IS NOT NULL`;
    rows.push(...read(`${seek} ORDER BY ${column} ${order}, ${number} ${order}`, (after ?? []) as number[], limit + 1));
  }
  if (rows.length <= limit) {
    const seek = value === null ? ` AND ${number} ${compare} ?` : '';
    const sql = `${column} IS NULL${seek} ORDER BY ${number} ${order}`;
    rows.push(...read(sql, value === null && last !== undefined ? [last] : [], limit + 1 - rows.length));
  }
  const page = rows.slice(0, limit);
  const [end] = page.slice(-1);
  const position: Position | undefined = end && [end.value, end.number];
  return { numbers: page.map((row) => row.number), hasMore: rows.length > limit, position };
}

function direction({ recordType, filters, asOf }: StoredSearch) {
  const [newest] = recordType.measures;
  const measure = recordType.measures.find(({ key }) => key === filters.sort) ?? newest;
  const column = measure ? columnOf(recordType, measure, asOf) : `${recordType.name}.number`;
  return filters.order === 'asc' ? { column, order: 'ASC', compare: '>' } : { column, order: 'DESC', compare: '<' };
}

export type FilterValue = string | number | boolean | string[] | FilterValues;
export type FilterValues = { [key: string]: FilterValue };

export type Search = {
  recordType: RecordType;
  filters: FilterValues;
  /** Unix milliseconds: the time for which "active" is decided, the same for all pages of a search. */
  asOf: number;
};

type Condition = { sql: string; values: (string | number)[] };

/** A search whose times are counted like the dates in the columns. */
type StoredSearch = Search & Pick<Database, 'dateOrigin'>;

const asStored = ({ dateOrigin }: Database, search: Search): StoredSearch => ({
  ...search,
  asOf: search.asOf - dateOrigin,
  dateOrigin,
});

export function conditionsOf(database: Database, given: Search) {
  const search = asStored(database, given);
  const { name } = search.recordType;
  const { not, ...filters } = search.filters;
  const { match, conditions } = textConditions(search.recordType, filters);
  const found = [
    ...conditions,
    ...columnConditions({ ...search, filters }),
    ...tagConditions(search.recordType, filters, match !== undefined),
    ...invertedConditions(search, not),
  ];
  if (match !== undefined) found.push({ sql: `${name}_text MATCH ?`, values: [match] });
  return {
    from: match === undefined ? name : `${name}_text JOIN ${name} ON ${name}.number = ${name}_text.rowid`,
    where: found.map(({ sql }) => sql).join(' AND ') || '1',
    values: found.flatMap(({ values }) => values),
  };
}

/**
 * Returns the conditions of `not`: none of its filters may match. A record without the value does not match its filter,
 * so it is found. Each key of `missing` counts as a filter of its own.
 */
function invertedConditions(search: StoredSearch, not: FilterValues[string] | undefined): Condition[] {
  const { recordType } = search;
  const { missing = [], ...filters } = (not ?? {}) as FilterValues;
  const each = [...Object.entries(filters), ...[missing].flat().map((key) => ['missing', [key]] as const)];
  return each.flatMap(([key, value]) => {
    const single = { [key]: value } as FilterValues;
    const { match, conditions } = textConditions(recordType, single);
    const found = [
      ...conditions,
      ...(match === undefined ? [] : [matchCondition(recordType, match)]),
      ...columnConditions({ ...search, filters: single }),
      ...tagConditions(recordType, single, true),
    ];
    return found.map(({ sql, values }) => ({ sql: `NOT coalesce(${sql}, 0)`, values }));
  });
}

function columnConditions(search: StoredSearch): Condition[] {
  const { recordType, filters, asOf } = search;
  const ranges = recordType.measures.flatMap((measure) => rangeConditions(measure, search));
  const lacking = recordType.measures
    .filter(({ key }) => [filters.missing].flat().includes(key))
    .map((measure) => ({ sql: `(${columnOf(recordType, measure, asOf)} IS NULL)`, values: [] }));
  return [...ranges, ...lacking, ...activeConditions(search)];
}

/**
 * Returns a condition for each tag among the filters. For records that something else finds first, such as words, each
 * record is looked up. Otherwise the records with the value are read, which SQLite then does first.
 */
function tagConditions({ name, tags }: RecordType, filters: FilterValues, isLookup: boolean): Condition[] {
  return tags.flatMap((tag) => {
    const given = [filters[tag.key] ?? []].flat().map(String);
    const stored = given.filter((one) => !tag.columnKeys?.includes(one)).map((one) => comparableValue(tag, one));
    const groups = tag.all ? stored.map((one) => [one]) : stored.length > 0 ? [stored] : [];
    return groups.map((values) => {
      const ofTag = `tag IN (SELECT number FROM ${name}_tag_values WHERE key = ? AND value IN (${values.map(() => '?')}))`;
      const sql = isLookup
        ? `EXISTS (SELECT 1 FROM ${name}_tags WHERE record = ${name}.number AND ${ofTag})`
        : `${name}.number IN (SELECT record FROM ${name}_tags WHERE ${ofTag})`;
      return { sql, values: [tag.key, ...values] };
    });
  });
}

/** The SQL expression of a measure at the time of a search. */
const columnOf = ({ name }: RecordType, { key, sql }: Measure, asOf: number): string =>
  sql?.(asOf) ?? `${name}."${key}"`;

function rangeConditions(measure: Measure, { recordType, filters, asOf, dateOrigin }: StoredSearch): Condition[] {
  const { key, low } = measure;
  const bound = (end: 'From' | 'To', sql: string): Condition[] => {
    const value = filters[key + end];
    if (value === undefined) return [];
    // As an upper bound, a date without a time includes its whole day.
    const rest = end === 'To' && !/t/i.test(String(value)) ? dayMs - 1 : 0;
    return [{ sql, values: [typeof value === 'string' ? Date.parse(value) + rest - dateOrigin : Number(value)] }];
  };
  const highest = columnOf(recordType, measure, asOf);
  const lowest = low ? `${recordType.name}."${key}Low"` : highest;
  return [...bound('From', `${highest} >= ?`), ...bound('To', `${lowest} <= ?`)];
}

/** Whether an ad runs, as `runOf` tells it. */
function activeConditions({ filters: { active, missing = [] }, asOf }: StoredSearch): Condition[] {
  const since = (Math.floor(asOf / dayMs) - maxDaysSinceSeen) * dayMs;
  const running = '(ads."endDate" > ? OR (ads."endDate" IS NULL AND ads."lastSeenAt" >= ?))';
  const unknown = '(ads."endDate" IS NULL AND coalesce(ads."lastSeenAt" < ?, 1))';
  return [
    ...(active === true ? [{ sql: running, values: [asOf, since] }] : []),
    ...(active === false ? [{ sql: '(ads."endDate" <= ?)', values: [asOf] }] : []),
    ...([missing].flat().includes('active') ? [{ sql: unknown, values: [since] }] : []),
  ];
}

const matchCondition = ({ name }: RecordType, match: string): Condition => ({
  sql: `${name}.number IN (SELECT rowid FROM ${name}_text WHERE ${name}_text MATCH ?)`,
  values: [match],
});

/**
 * Returns the query of the full-text index for the words that must occur, if there are any. Words that must not occur
 * are part of it, or conditions: the index cannot search for what does not occur alone.
 */
function textConditions(recordType: RecordType, filters: FilterValues) {
  const required: string[] = [];
  const excluded: string[] = [];
  for (const { key, columns } of recordType.textFilters) {
    const text = filters[key];
    if (typeof text !== 'string') continue;
    const { all, none } = parseQuery(text);
    if (all.length + none.length === 0) throw invalid(`"${key}" holds no letter or digit to search for.`, { key });
    const within = (word: string) => `{${columns.join(' ')}} : ${word}`;
    required.push(...all.map(within));
    excluded.push(...none.map(within));
  }
  const [all, none] = [required.join(' AND '), excluded.join(' OR ')];
  if (none === '') return { match: all === '' ? undefined : all, conditions: [] };
  if (all !== '') return { match: `(${all}) NOT (${none})`, conditions: [] };
  const { sql, values } = matchCondition(recordType, none);
  return { match: undefined, conditions: [{ sql: `NOT ${sql}`, values }] };
}
