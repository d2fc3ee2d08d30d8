import type { CsvError } from 'csv-parse';
import { formatOfTable, type TableFormat } from '../formats/formats.ts';
import { maxRecordLength, type Piece, UnreadableSource } from './piece.ts';
import { hasInvalidBytes, notUtf8 } from './text.ts';

/** A table with the line of its column names. */
export interface Table extends TableFormat {
  columns: string[];
  delimiter: string;
  lineEnds: string[];
  /** How many rows stand above the column names, and how many of them say something. */
  rowsAbove: number;
  titlesAbove: number;
}

/** More columns than any export of ads has, flattened lists included. */
const maxColumns = 5000;

/** The column names are looked for in so many rows and characters. */
const maxRowsAbove = 30;
const maxHead = 256 * 1024;

const delimiters = [',', ';', '\t', '|'];

/**
 * The table that a text begins with: the row among its first ones whose cells are most of the columns of a format.
 * Undefined where no row names the columns of any format.
 * @throws UnreadableSource for a table with too many columns
 */
export async function findTable(text: string): Promise<Table | undefined> {
  const { parse } = await import('csv-parse/sync');
  const head = text.slice(0, maxHead);
  const lineEnds = lineEndsOf(head);
  let best: (Table & { known: number }) | undefined;
  for (const delimiter of delimiters) {
    const rows: string[][] = [];
    const onRow = (cells: string[]) => {
      rows.push(cells);
      return null;
    };
    try {
      parse(head, { ...csvOptions(delimiter, lineEnds), to: maxRowsAbove, max_record_size: maxHead, on_record: onRow });
    } catch {
      // The text may end within a row. The rows before it are there.
    }
    for (const [rowsAbove, cells] of rows.entries()) {
      const columns = cells.map((cell) => cell.trim());
      const found = formatOfTable(columns.slice(0, maxColumns));
      const known = found?.fields.filter((field) => field !== undefined).length ?? 0;
      if (!found || known <= (best?.known ?? 0)) continue;
      // Excel writes the delimiter into a line of its own.
      const titlesAbove = rowsAbove - Number(/^sep=/i.test(rows[0]?.[0] ?? ''));
      best = { ...found, columns, delimiter, lineEnds, rowsAbove, titlesAbove, known };
    }
  }
  if (best && best.columns.length > maxColumns)
    throw new UnreadableSource(`a table of ${best.columns.length} columns; an import reads ${maxColumns} at most`);
  return best;
}

const csvOptions = (delimiter: string, lineEnds: readonly string[]) => ({
  delimiter,
  record_delimiter: [...lineEnds],
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
});

/** Old spreadsheets for Mac end lines with a carriage return alone. Python on Windows may write two of them. */
function lineEndsOf(head: string): string[] {
  const [first] = /[\r\n]/.exec(head) ?? [];
  const isOldMac = first === '\r' && !/^[^\r\n]*\r+\n/.test(head);
  return isOldMac ? ['\r'] : ['\r\r\n', '\r\n', '\n'];
}

export async function* tablePieces(text: AsyncIterable<string>, table: Table): AsyncGenerator<Piece[]> {
  const { parse } = await import('csv-parse');
  const { columns, delimiter, lineEnds, rowsAbove } = table;
  const rows: { cells: string[]; line: number }[] = [];
  let line = 1;
  const parser = parse({
    ...csvOptions(delimiter, lineEnds),
    max_record_size: maxRecordLength,
    on_record(cells: string[], { lines }) {
      rows.push({ cells, line });
      line = lines + 1;
      return null;
    },
  });
  parser.on('error', () => {}).resume();
  let above = rowsAbove + 1;
  const pieces = (): Piece[] => {
    const skipped = Math.min(above, rows.length);
    above -= skipped;
    return rows
      .splice(0)
      .slice(skipped)
      .map(({ cells, line }) => pieceOf(cells, line, columns.length));
  };
  const ended = (error: unknown): Piece[] => [{ line, path: '', problem: explain(error) }];
  for await (const part of text) {
    const error = await new Promise<unknown>((resolve) => parser.write(escapeInvalidBytes(part), resolve));
    yield pieces();
    if (error) return yield ended(error);
  }
  const error = await new Promise<unknown>((resolve) => parser.on('error', resolve).end(resolve));
  yield pieces();
  if (error) yield ended(error);
}

function pieceOf(written: string[], line: number, wanted: number): Piece {
  const cells = written.map(unescapeCell);
  // Spreadsheets write empty cells behind the last column.
  while (cells.length > wanted && cells.at(-1)?.trim() === '') cells.pop();
  if (cells.some(hasInvalidBytes)) return { line, path: '', problem: notUtf8 };
  if (cells.length === wanted) return { line, path: '', cells };
  const problem = `${cells.length} cells where the first line has ${wanted}; is a quotation mark missing?`;
  return { line, path: '', problem };
}

/** The parser reads bytes, in which an invalid byte cannot be marked as it is in text. */
const escapeInvalidBytes = (text: string): string =>
  /[\ufdd0\udc80-\udcff]/.test(text)
    ? text.replaceAll('\ufdd0', '\ufdd0\ufdd1').replace(/[\udc80-\udcff]/gu, '\ufdd0\ufdd2')
    : text;

const unescapeCell = (cell: string): string =>
  cell.includes('\ufdd0') ? cell.replaceAll('\ufdd0\ufdd2', '\udc80').replaceAll('\ufdd0\ufdd1', '\ufdd0') : cell;

function explain(error: unknown): string {
  const { code, message } = error as CsvError;
  if (code === 'CSV_MAX_RECORD_SIZE' || code === 'CSV_QUOTE_NOT_CLOSED')
    return 'a row without an end; is a quotation mark not closed? Nothing after it was read';
  return `not CSV: ${message}. Nothing after it was read`;
}
