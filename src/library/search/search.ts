import { maxDaysSinceSeen } from '../../views/dates.ts';
import type { Database } from '../database/database.ts';
import { invalid } from '../service/request.ts';
import type { Measure, RecordType } from './ads-and-pages.ts';
import { everyRow, parseQuery, tagToken } from './tokens.ts';

/** Where a page of results ended: the last row's sort value (null if it had none) and its number. */
export type Position = [value: number | null, number: number];

export function countHits(database: Database, search: Search): number {
  const { from, where, values } = conditionsOf(search);
  return database.get<{ hits: number }>(`SELECT count(*) AS hits FROM ${from} WHERE ${where}`, values)?.hits ?? 0;
}

/**
 * The next `limit` rows after `after`, and whether more follow.
 *
 * Ordered by sort value, then by row number; rows without a value come last. Keyset pagination: a page starts at a
 * position and not at an offset, so that no result appears twice or is lost when rows are added meanwhile.
 */
export function findPage(database: Database, search: Search, limit: number, after?: Position) {
  const { column, order, compare } = direction(search);
  const { from, where, values } = conditionsOf(search);
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

function direction({ recordType, filters, asOf }: Search) {
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

export function conditionsOf(search: Search) {
  const { name } = search.recordType;
  const { not, ...filters } = search.filters;
  const found = [...columnConditions({ ...search, filters }), ...invertedConditions(search, not)];
  const match = matchOf(search.recordType, filters);
  if (match) found.push({ sql: `${name}_text MATCH ?`, values: [match] });
  return {
    from: match ? `${name}_text JOIN ${name} ON ${name}.number = ${name}_text.rowid` : name,
    where: found.map(({ sql }) => sql).join(' AND ') || '1',
    values: found.flatMap(({ values }) => values),
  };
}

/**
 * `not`: none of its filters may match. A record without the value does not match its filter, so it is found. Each key
 * of `missing` counts as a filter of its own.
 */
function invertedConditions(search: Search, not: FilterValues[string] | undefined): Condition[] {
  const { recordType, asOf } = search;
  const { missing = [], ...filters } = (not ?? {}) as FilterValues;
  const each = [...Object.entries(filters), ...[missing].flat().map((key) => ['missing', [key]] as const)];
  return each.flatMap(([key, value]) => {
    const single = { [key]: value } as FilterValues;
    const match = matchOf(recordType, single);
    const inText = `${recordType.name}.number IN (SELECT rowid FROM ${recordType.name}_text WHERE ${recordType.name}_text MATCH ?)`;
    const found = match ? [{ sql: inText, values: [match] }] : columnConditions({ recordType, filters: single, asOf });
    return found.map(({ sql, values }) => ({ sql: `NOT coalesce(${sql}, 0)`, values }));
  });
}

function columnConditions(search: Search): Condition[] {
  const { recordType, filters, asOf } = search;
  const ranges = recordType.measures.flatMap((measure) => rangeConditions(measure, search));
  const lacking = recordType.measures
    .filter(({ key, sql }) => sql && [filters.missing].flat().includes(key))
    .map((measure) => ({ sql: `(${columnOf(recordType, measure, asOf)} IS NULL)`, values: [] }));
  return [...ranges, ...lacking, ...activeConditions(search)];
}

const day = 86_400_000;

/** The SQL expression of a measure at the time of a search. */
const columnOf = ({ name }: RecordType, { key, sql }: Measure, asOf: number): string =>
  sql?.(asOf) ?? `${name}."${key}"`;

function rangeConditions(measure: Measure, { recordType, filters, asOf }: Search): Condition[] {
  const { key, low } = measure;
  const bound = (end: 'From' | 'To', sql: string): Condition[] => {
    const value = filters[key + end];
    if (value === undefined) return [];
    // As an upper bound, a date without a time includes its whole day.
    const rest = end === 'To' && !/t/i.test(String(value)) ? day - 1 : 0;
    return [{ sql, values: [typeof value === 'string' ? Date.parse(value) + rest : Number(value)] }];
  };
  const column = columnOf(recordType, measure, asOf);
  const lowColumn = `${recordType.name}."${key}Low"`;
  const lowest = low ? `coalesce(${lowColumn}, ${column})` : column;
  const highest = low ? `coalesce(${column}, ${lowColumn})` : column;
  return [...bound('From', `${highest} >= ?`), ...bound('To', `${lowest} <= ?`)];
}

/** Whether an ad runs, as `runOf` tells it. */
function activeConditions({ filters: { active, missing = [] }, asOf }: Search): Condition[] {
  const since = (Math.floor(asOf / day) - maxDaysSinceSeen) * day;
  const running = '(ads."endDate" > ? OR (ads."endDate" IS NULL AND ads."lastSeenAt" >= ?))';
  const unknown = '(ads."endDate" IS NULL AND coalesce(ads."lastSeenAt" < ?, 1))';
  return [
    ...(active === true ? [{ sql: running, values: [asOf, since] }] : []),
    ...(active === false ? [{ sql: '(ads."endDate" <= ?)', values: [asOf] }] : []),
    ...([missing].flat().includes('active') ? [{ sql: unknown, values: [since] }] : []),
  ];
}

/** The full-text query of the filters, in the index's query language; undefined without any term. */
function matchOf({ textFilters, tags }: RecordType, filters: FilterValues): string | undefined {
  const required: string[] = [];
  const excluded: string[] = [];
  for (const { key, columns } of textFilters) {
    const text = filters[key];
    if (typeof text !== 'string') continue;
    const { all, none } = parseQuery(text);
    if (all.length + none.length === 0) throw invalid(`"${key}" holds no letter or digit to search for.`, { key });
    const within = (word: string) => `{${columns.join(' ')}} : ${word}`;
    required.push(...all.map(within));
    excluded.push(...none.map(within));
  }
  for (const tag of tags) {
    const stored = [filters[tag.key] ?? []].flat().map(String);
    const tokens = stored.filter((one) => !tag.timed?.includes(one)).map((one) => `"${tagToken(tag, one)}"`);
    if (tokens.length > 0) required.push(`{tags} : (${tokens.join(tag.all ? ' AND ' : ' OR ')})`);
  }
  if (required.length + excluded.length === 0) return undefined;
  const positive = required.length ? required.join(' AND ') : `{tags} : "${everyRow}"`;
  return excluded.length ? `(${positive}) NOT (${excluded.join(' OR ')})` : positive;
}
