import type { CsvError, InfoRecord, Parser, parse } from 'csv-parse';
import { detectTableFormat, type TableFormat } from '../formats/formats.ts';
import { hasInvalidBytes, notUtf8Problem } from './decode-text.ts';
import { maxRecordLength, type SourceEntry, UnreadableSourceError } from './source-entry.ts';

/** A table with the line of its column names. */
export interface Table extends TableFormat {
  columns: string[];
  delimiter: string;
  lineEndings: string[];
  /** How many rows stand above the column names, and how many of them say something. */
  headerRowIndex: number;
  titleLineCount: number;
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
export async function detectTable(text: string): Promise<Table | undefined> {
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
      const found = detectTableFormat(columns.slice(0, maxColumns));
      const known = found?.fields.filter((field) => field !== undefined).length ?? 0;
      if (!found || known <= (best?.known ?? 0)) continue;
      // Excel writes the delimiter into a line of its own.
      const titlesAbove = rowsAbove - Number(/^sep=/i.test(rows[0]?.[0] ?? ''));
      best = {
        ...found,
        columns,
        delimiter,
        lineEndings: lineEnds,
        headerRowIndex: rowsAbove,
        titleLineCount: titlesAbove,
        known,
      };
    }
  }
  if (best && best.columns.length > maxColumns)
    throw new UnreadableSourceError(`a table of ${best.columns.length} columns; an import reads ${maxColumns} at most`);
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

/** So many characters are read a second time, behind rows without an end, before an import gives up. */
const maxReread = 32 * 1024 * 1024;
/** Characters that the parser reads at once. */
const sliceLength = 64 * 1024;

/** The rows of a table below its column names. A row that never ends costs its first line. */
export async function* readTableRows(text: AsyncIterable<string>, table: Table): AsyncGenerator<SourceEntry[]> {
  const { parse } = await import('csv-parse');
  const newline = newlineOf(table.lineEndings);
  let reader = new RowReader(parse, table, { line: 1, rowsAbove: table.headerRowIndex + 1 });
  /** The text from the row on that is not complete yet, the line where it begins, and how much of it was read. */
  const pending = { text: '', line: 1, readLength: 0 };
  let reread = 0;
  function dropLinesBefore(line: number): void {
    for (; pending.line < line; pending.line++) {
      const end = pending.text.indexOf(newline);
      const length = end < 0 ? pending.text.length : end + 1;
      pending.text = pending.text.slice(length);
      pending.readLength -= length;
    }
  }
  /** Empty lines are no rows, and do not wait for one. */
  function dropEmptyLines(): void {
    const [empty = ''] = /^[\r\n]+/.exec(pending.text.slice(0, pending.readLength)) ?? [];
    dropLinesBefore(pending.line + empty.split(newline).length - 1);
  }
  async function* read(isEnd: boolean): AsyncGenerator<SourceEntry[]> {
    for (;;) {
      let error: unknown;
      while (error === undefined && pending.readLength < pending.text.length) {
        const slice = pending.text.slice(pending.readLength, pending.readLength + sliceLength);
        pending.readLength += slice.length;
        error = await reader.write(slice);
        yield reader.takePieces();
        dropLinesBefore(reader.line);
        dropEmptyLines();
      }
      if (error === undefined && isEnd) error = await reader.end();
      yield reader.takePieces();
      if (error === undefined) return;
      dropLinesBefore(reader.line);
      dropEmptyLines();
      yield [{ line: pending.line, path: '', problem: explain(error) }];
      reread += pending.readLength;
      if (reread > maxReread)
        throw new UnreadableSourceError('too many rows without an end; nothing after this place was read');
      dropLinesBefore(pending.line + 1);
      pending.readLength = 0;
      reader = new RowReader(parse, table, { line: pending.line, rowsAbove: reader.rowsAbove });
    }
  }
  for await (const part of text) {
    pending.text += part;
    yield* read(false);
  }
  yield* read(true);
}

const newlineOf = (lineEnds: readonly string[]) => (lineEnds[0] === '\r' ? '\r' : '\n');

type Parse = typeof parse;

/** A run of the CSV parser. */
class RowReader {
  /** The line where the next row begins. */
  line: number;
  /** How many of the next rows stand above the first row of the table. */
  rowsAbove: number;
  readonly #wanted: number;
  readonly #parser: Parser;
  #rows: { cells: string[]; line: number }[] = [];
  #isBroken = false;

  constructor(
    parse: Parse,
    { delimiter, lineEndings: lineEnds, columns }: Table,
    start: { line: number; rowsAbove: number },
  ) {
    this.line = start.line;
    this.rowsAbove = start.rowsAbove;
    this.#wanted = columns.length;
    const newline = newlineOf(lineEnds);
    this.#parser = parse({
      ...csvOptions(delimiter, lineEnds),
      max_record_size: maxRecordLength,
      raw: true,
      on_record: (row: unknown, { lines }: InfoRecord) => {
        const { raw, record } = row as { raw: string; record: string[] };
        this.#isBroken ||= isTorn(record, raw);
        if (this.#isBroken) return null;
        // Empty lines may stand above the row, and line breaks in its cells.
        const next = start.line + lines;
        const breaks = raw.trim().split(newline).length;
        this.#rows.push({ cells: record, line: next - breaks });
        this.line = next;
        return null;
      },
    });
    this.#parser.on('error', () => {}).resume();
  }

  /** Resolves with an error where a row never ends. The reader then reads no more. */
  async write(text: string): Promise<unknown> {
    const error = await new Promise((resolve) => this.#parser.write(escapeInvalidBytes(text), resolve));
    return error ?? (this.#isBroken ? unclosed : undefined);
  }

  async end(): Promise<unknown> {
    const error = await new Promise((resolve) => this.#parser.on('error', resolve).end(() => resolve(undefined)));
    return error ?? (this.#isBroken ? unclosed : undefined);
  }

  takePieces(): SourceEntry[] {
    const skipped = Math.min(this.rowsAbove, this.#rows.length);
    this.rowsAbove -= skipped;
    const rows = this.#rows.slice(skipped);
    this.#rows = [];
    return rows.map(({ cells, line }) => pieceOf(cells, line, this.#wanted));
  }
}

function pieceOf(written: string[], line: number, wanted: number): SourceEntry {
  const cells = written.map(unescapeCell);
  // Spreadsheets write empty cells behind the last column.
  while (cells.length > wanted && cells.at(-1)?.trim() === '') cells.pop();
  if (cells.some(hasInvalidBytes)) return { line, path: '', problem: notUtf8Problem };
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

/**
 * Whether a quotation mark that was not closed in its line was closed by the opening mark of another cell. Then the text
 * of the cell stands in the row as it is, without doubled marks. Only the first cell that may be such a one is compared
 * with the row, because a row may have many.
 */
function isTorn(cells: readonly string[], row: string): boolean {
  const cell = cells.find((one) => one.startsWith('"') && /[\r\n]/.test(one));
  return cell !== undefined && row.includes(cell);
}

const unclosed = { code: 'CSV_QUOTE_NOT_CLOSED' };

function explain(error: unknown): string {
  const { code, message } = error as CsvError;
  if (code === 'CSV_MAX_RECORD_SIZE' || code === 'CSV_QUOTE_NOT_CLOSED')
    return 'a row without an end; is a quotation mark not closed?';
  return `not CSV: ${message}`;
}
