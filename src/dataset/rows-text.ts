import { isWord, quote, word } from '../present/safe-text.ts';

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
  // One text of a column in quotes puts all of them in quotes.
  const quoted = columns.map((_, index) => rows.some((row) => needsQuotes(row[index])));
  const lines = rows.map((row) => row.map((cell, index) => cellText(cell, quoted[index] === true)).join(' | '));
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

const cellText = (cell: unknown, quoted: boolean): string =>
  quoted && typeof cell === 'string' ? quote(cell) : String(cell);

/** `null`, too, so that it is told from what is missing. */
const needsQuotes = (cell: unknown): boolean => typeof cell === 'string' && (cell === 'null' || !isWord(cell));
