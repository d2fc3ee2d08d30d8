import { invalid } from './api-error.ts';
import type { Database } from './database.ts';
import type { FilterValues } from './read-filters.ts';
import type { RecordType } from './record-type.ts';
import { parseQuery, type TextQuery } from './tokenize.ts';

/** Where a page of results ended: the last row's sort value (null if it had none) and its number. */
export type Position = [value: number | null, number: number];

export type Search = {
  recordType: RecordType;
  filters: FilterValues;
  /** Unix milliseconds: the time for which "active" is decided, the same for all pages of a search. */
  asOf: number;
};

type Condition = { sql: string; values: (string | number)[] };
type HitRow = { number: number; value: number | null };

/** Text with a lone surrogate cannot be encoded. */
const loneSurrogate = /\p{Cs}/gu;
/** Begins with a character that no word contains, so that tags and copy are never confused. */
const tagToken = (key: string, value: string) =>
  `\uE000${key}_${encodeURIComponent(value.toLowerCase().replace(loneSurrogate, ''))}`;
/** A token of every row: a full-text query needs something to exclude from. */
const everyRow = '\uE000';

/** The tokens under which the full-text index finds a record by its tags. */
export function tagTokens({ tags }: Pick<RecordType, 'tags'>, item: unknown): string {
  const tokens = tags.flatMap(({ key, of }) => of(item).flatMap((value) => (value ? [tagToken(key, value)] : [])));
  return [everyRow, ...new Set(tokens)].join(' ');
}

/** How many records a search finds. */
export function countHits(database: Database, search: Search): number {
  const { from, where, values } = conditions(search);
  return database.get<{ hits: number }>(`SELECT count(*) AS hits FROM ${from} WHERE ${where}`, values)?.hits ?? 0;
}

/**
 * The next `limit` rows after `after`, and whether more follow.
 *
 * Ordered by sort value, then by row number; rows without a value come last. Pages start from a position, not from an
 * offset, so rows added meanwhile make no result appear twice or get lost.
 */
export function findPage(database: Database, search: Search, limit: number, after?: Position) {
  const { column, order, compare } = direction(search);
  const { from, where, values } = conditions(search);
  const read = (condition: string, extra: number[], max: number) =>
    database.all<HitRow>(
      `SELECT ${search.recordType.name}.number, ${column} AS value FROM ${from} WHERE ${where} AND ${condition} LIMIT ?`,
      [...values, ...extra, max],
    );
  const rows: HitRow[] = [];
  const number = `${search.recordType.name}.number`;
  if (after === undefined || after[0] !== null) {
    const seek = after ? `(${column}, ${number}) ${compare} (?, ?)` : `${column} IS NOT NULL`;
    rows.push(...read(`${seek} ORDER BY ${column} ${order}, ${number} ${order}`, (after ?? []) as number[], limit + 1));
  }
  if (rows.length <= limit) {
    const seek = after && after[0] === null ? ` AND ${number} ${compare} ?` : '';
    const from = seek ? [after?.[1] ?? 0] : [];
    rows.push(...read(`${column} IS NULL${seek} ORDER BY ${number} ${order}`, from, limit + 1 - rows.length));
  }
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const position: Position | undefined = last && [last.value, last.number];
  return { numbers: page.map((row) => row.number), hasMore: rows.length > limit, position };
}

function direction({ recordType, filters }: Search) {
  const column = `${recordType.name}."${filters.sort ?? recordType.measures[0]?.key}"`;
  return filters.order === 'asc' ? { column, order: 'ASC', compare: '>' } : { column, order: 'DESC', compare: '<' };
}

function conditions(search: Search) {
  const { name } = search.recordType;
  const found = [...rangeConditions(search), ...activeCondition(search)];
  const match = matchExpression(search);
  if (match) found.push({ sql: `${name}_text MATCH ?`, values: [match] });
  return {
    from: match ? `${name}_text JOIN ${name} ON ${name}.number = ${name}_text.rowid` : name,
    where: found.map(({ sql }) => sql).join(' AND ') || '1',
    values: found.flatMap(({ values }) => values),
  };
}

const day = 86_400_000;

/** Unix milliseconds of a bound. A date without a time includes its whole day as an upper bound. */
function instant(text: string, upper: boolean): number {
  const wholeDay = upper && !text.includes('T') && !text.includes('t');
  return Date.parse(text) + (wholeDay ? day - 1 : 0);
}

function rangeConditions({ recordType, filters }: Search): Condition[] {
  return recordType.measures.flatMap(({ key, low }) => {
    const bound = (end: 'From' | 'To', sql: string): Condition[] => {
      const value = filters[key + end];
      if (value === undefined) return [];
      return [{ sql, values: [typeof value === 'string' ? instant(value, end === 'To') : Number(value)] }];
    };
    const lowest = low
      ? `coalesce(${recordType.name}."${key}Low", ${recordType.name}."${key}")`
      : `${recordType.name}."${key}"`;
    const highest = low ? `coalesce(${recordType.name}."${key}", ${recordType.name}."${key}Low")` : lowest;
    return [...bound('From', `${highest} >= ?`), ...bound('To', `${lowest} <= ?`)];
  });
}

function activeCondition({ filters, asOf }: Search): Condition[] {
  if (filters.active === undefined) return [];
  const ended = '(ads."endDate" IS NOT NULL AND ads."endDate" <= ?)';
  return [{ sql: filters.active ? `NOT ${ended}` : ended, values: [asOf] }];
}

/** The full-text expression for words and tags, or undefined without either. */
function matchExpression({ recordType, filters }: Search): string | undefined {
  const required: string[] = [];
  const excluded: string[] = [];
  const addTerms = (key: string, columns: string) => {
    const text = filters[key];
    if (typeof text !== 'string') return;
    const { all, none } = requireTerms(key, parseQuery(text));
    required.push(...all.map((word) => `{${columns}} : ${word}`));
    excluded.push(...none.map((word) => `{${columns}} : ${word}`));
  };
  addTerms('query', 'copy advertiser');
  addTerms('advertiser', 'advertiser');
  for (const { key } of recordType.tags) {
    const value = filters[key];
    if (value === undefined) continue;
    const tokens = [value].flat().map((one) => `"${tagToken(key, String(one).trim())}"`);
    required.push(`{tags} : (${tokens.join(' OR ')})`);
  }
  if (required.length === 0 && excluded.length === 0) return undefined;
  const positive = required.length ? required.join(' AND ') : `{tags} : "${everyRow}"`;
  return excluded.length ? `(${positive}) NOT (${excluded.join(' OR ')})` : positive;
}

function requireTerms(key: string, query: TextQuery): TextQuery {
  if (query.all.length + query.none.length > 0) return query;
  throw invalid(`"${key}" holds no letter or digit to search for.`, { key });
}
