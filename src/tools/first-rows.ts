import * as z from 'zod';
import { cleanCell } from '../dataset/sql/statement.ts';
import type { Cell } from '../dataset/tables.ts';
import { quoteUnlessWord } from '../views/safe-text.ts';
import { countFittingItems } from '../views/tokens.ts';

/** The schema of one row of an SQL result. The cells are in the order of the columns. */
export const RowView = z.array(z.union([z.string(), z.number(), z.null()]));

/**
 * The schema of the first rows of an exported file. With these rows, a model can check numbers and names without
 * opening the file.
 */
export const FirstRows = z.looseObject({
  columns: z.array(z.string()).optional().describe('Names of the columns.'),
  first: z.array(RowView).optional().describe('The first rows, with shortened texts.'),
});

const maxColumns = 12;
const maxCellChars = 60;

interface FirstTableRows {
  columns: readonly string[];
  firstRows: readonly (readonly Cell[])[];
}

/**
 * Returns the first rows, or fewer if they do not fit in the token budget. Returns an empty object for a table
 * with more than 12 columns.
 */
export function selectFirstRows(
  { columns, firstRows }: FirstTableRows,
  maxTokens: number,
): Partial<z.output<typeof FirstRows>> {
  if (columns.length > maxColumns) return {};
  const columnNames = columns.map((name) => cleanCell(name, maxCellChars));
  const rows = firstRows.map((row) =>
    row.map((cell) => (typeof cell === 'string' ? cleanCell(cell, maxCellChars) : cell)),
  );
  return {
    columns: columnNames,
    first: rows.slice(0, countFittingItems({ items: rows, maxTokens, renderItems: JSON.stringify })),
  };
}

/** Formats the first rows of a table as text, with an optional heading. */
export function formatFirstRows(
  { columns, first = [] }: Partial<z.output<typeof FirstRows>>,
  heading?: string,
): string {
  const lines = first.map((row) =>
    row.map((cell) => (typeof cell === 'string' ? quoteUnlessWord(cell) : String(cell))).join(' | '),
  );
  const columnsText =
    columns && first.length > 0
      ? `first rows of ${columns.map((name) => quoteUnlessWord(name)).join(' | ')}:`
      : undefined;
  return [[heading, columnsText].filter(Boolean).join('; '), ...lines].filter(Boolean).join('\n');
}
