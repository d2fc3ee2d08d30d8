import type { Database } from './database.ts';
import type { FilterValues } from './read-filters.ts';
import { invalid } from './refusal.ts';
import type { Shelf } from './shelves.ts';
import { readQuery, type WordQuery } from './words.ts';

/** The place after which a page of results begins: the last row's sort value (null: it had none) and its number. */
export type Position = [value: number | null, number: number];

export type Search = {
  shelf: Shelf;
  filters: FilterValues;
  /** Unix milliseconds; what "active" is measured against, pinned for all pages of one search. */
  asOf: number;
};

type Condition = { sql: string; values: (string | number)[] };
type Row = { number: number; value: number | null };

/** Half a character: nothing can be encoded with one in it. */
const loneSurrogate = /\p{Cs}/gu;
/** A token that words never make, so that tags and copy cannot be mistaken for one another. */
const tagToken = (key: string, value: string) =>
  `\uE000${key}_${encodeURIComponent(value.toLowerCase().replace(loneSurrogate, ''))}`;
/** Stands on every row: full text can only say "not" of something. */
const everyRow = '\uE000';

/** The tokens under which the full-text index finds a record by its tags. */
export function tagTokens({ tags }: Pick<Shelf, 'tags'>, item: unknown): string {
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
 * Ordered by the sort value, ties by row number, rows without a value last. Each page starts from a position and not
 * from a count, so rows that are added meanwhile neither push others out of sight nor show them again.
 */
export function findPage(database: Database, search: Search, limit: number, after?: Position) {
  const { column, order, compare } = direction(search);
  const { from, where, values } = conditions(search);
  const read = (condition: string, extra: number[], most: number) =>
    database.all<Row>(
      `SELECT ${search.shelf.name}.number, ${column} AS value FROM ${from} WHERE ${where} AND ${condition} LIMIT ?`,
      [...values, ...extra, most],
    );
  const rows: Row[] = [];
  const number = `${search.shelf.name}.number`;
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

function direction({ shelf, filters }: Search) {
  const column = `${shelf.name}."${filters.sort ?? shelf.measures[0]?.key}"`;
  return filters.order === 'asc' ? { column, order: 'ASC', compare: '>' } : { column, order: 'DESC', compare: '<' };
}

function conditions(search: Search) {
  const { name } = search.shelf;
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

/** Unix milliseconds of a bound. A date alone, as an upper bound, takes in its whole day. */
function instant(text: string, upper: boolean): number {
  const wholeDay = upper && !text.includes('T') && !text.includes('t');
  return Date.parse(text) + (wholeDay ? day - 1 : 0);
}

function rangeConditions({ shelf, filters }: Search): Condition[] {
  return shelf.measures.flatMap(({ key, low }) => {
    const bound = (end: 'From' | 'To', sql: string): Condition[] => {
      const value = filters[key + end];
      if (value === undefined) return [];
      return [{ sql, values: [typeof value === 'string' ? instant(value, end === 'To') : Number(value)] }];
    };
    const lowest = low ? `coalesce(${shelf.name}."${key}Low", ${shelf.name}."${key}")` : `${shelf.name}."${key}"`;
    const highest = low ? `coalesce(${shelf.name}."${key}", ${shelf.name}."${key}Low")` : lowest;
    return [...bound('From', `${highest} >= ?`), ...bound('To', `${lowest} <= ?`)];
  });
}

function activeCondition({ filters, asOf }: Search): Condition[] {
  if (filters.active === undefined) return [];
  const ended = '(ads."endDate" IS NOT NULL AND ads."endDate" <= ?)';
  return [{ sql: filters.active ? `NOT ${ended}` : ended, values: [asOf] }];
}

/** One expression of the full-text query language for words and tags, or undefined when neither is asked for. */
function matchExpression({ shelf, filters }: Search): string | undefined {
  const required: string[] = [];
  const refused: string[] = [];
  const words = (key: string, columns: string) => {
    const text = filters[key];
    if (typeof text !== 'string') return;
    const { all, none } = someWords(key, readQuery(text));
    required.push(...all.map((word) => `{${columns}} : ${word}`));
    refused.push(...none.map((word) => `{${columns}} : ${word}`));
  };
  words('query', 'copy advertiser');
  words('advertiser', 'advertiser');
  for (const { key } of shelf.tags) {
    const value = filters[key];
    if (value === undefined) continue;
    const tokens = [value].flat().map((one) => `"${tagToken(key, String(one).trim())}"`);
    required.push(`{tags} : (${tokens.join(' OR ')})`);
  }
  if (required.length === 0 && refused.length === 0) return undefined;
  const positive = required.length ? required.join(' AND ') : `{tags} : "${everyRow}"`;
  return refused.length ? `(${positive}) NOT (${refused.join(' OR ')})` : positive;
}

function someWords(key: string, words: WordQuery): WordQuery {
  if (words.all.length + words.none.length > 0) return words;
  throw invalid(`"${key}" holds no letter or digit to search for.`, { key });
}
