import { columnOf, conditionsOf, type Search } from './conditions.ts';
import type { Database } from './database.ts';

/** Where a page of results ended: the last row's sort value (null if it had none) and its number. */
export type Position = [value: number | null, number: number];

type HitRow = { number: number; value: number | null };

/** How many records a search finds. */
export function countHits(database: Database, search: Search): number {
  const { from, where, values } = conditionsOf(search);
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
  const { from, where, values } = conditionsOf(search);
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

function direction({ recordType, filters, asOf }: Search) {
  const [newest] = recordType.measures;
  const measure = recordType.measures.find(({ key }) => key === filters.sort) ?? newest;
  const column = measure ? columnOf(recordType, measure, asOf) : `${recordType.name}.number`;
  return filters.order === 'asc' ? { column, order: 'ASC', compare: '>' } : { column, order: 'DESC', compare: '<' };
}
