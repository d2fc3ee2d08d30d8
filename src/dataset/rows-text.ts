import { quote, word } from '../present/fence.ts';

export interface ResultRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** Rows of the whole result; null where they are too many to count. */
  rowCount: number | null;
}

/** The rows of a statement, one on each line, with what third parties wrote in quotes. */
export function rowsText({ columns, rows, rowCount }: ResultRows): string {
  const head = columns.map(word).join(' | ');
  const lines = rows.map((row) => row.map(cellText).join(' | '));
  return [countText(rows.length, rowCount), head, ...lines].join('\n');
}

function countText(shown: number, rowCount: number | null): string {
  if (rowCount === null) return `The first ${shown} of more than 100,000 rows:`;
  if (rowCount === shown) return `${shown} ${shown === 1 ? 'row' : 'rows'}:`;
  return `The first ${shown} of ${rowCount} rows (limit gives more, GROUP BY and WHERE fewer):`;
}

function cellText(cell: unknown): string {
  if (typeof cell === 'number') return String(Number(cell.toPrecision(12)));
  if (typeof cell !== 'string') return String(cell);
  // Quoted, so that it is told from what is missing.
  return cell === 'null' || cell === '' ? quote(cell) : word(cell);
}
