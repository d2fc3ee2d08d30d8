import { quote, word } from '../present/fence.ts';

export interface ResultRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** Rows of the whole result; null where they are too many to count. */
  rowCount: number | null;
  /** Rows that were asked for. */
  limit: number;
}

/** The rows of a statement, one on each line, with what third parties wrote in quotes. */
export function rowsText({ columns, rows, rowCount, limit }: ResultRows): string {
  const head = columns.map(word).join(' | ');
  const lines = rows.map((row) => row.map(cellText).join(' | '));
  return [countText(rows.length, rowCount, limit), head, ...lines].join('\n');
}

function countText(shown: number, rowCount: number | null, limit: number): string {
  if (rowCount === shown) return `${shown} ${shown === 1 ? 'row' : 'rows'}:`;
  const of = rowCount === null ? 'more than 100,000' : rowCount;
  if (shown < limit)
    return `The first ${shown} of ${of} rows, cut to fit the result (fewer columns or a smaller cell give more, OFFSET ${shown} the next):`;
  const next = rowCount === null ? '' : ' (limit gives more, GROUP BY and WHERE fewer)';
  return `The first ${shown} of ${of} rows${next}:`;
}

function cellText(cell: unknown): string {
  if (typeof cell === 'number') return String(Number(cell.toPrecision(12)));
  if (typeof cell !== 'string') return String(cell);
  // Quoted, so that it is told from what is missing.
  return cell === 'null' || cell === '' ? quote(cell) : word(cell);
}
