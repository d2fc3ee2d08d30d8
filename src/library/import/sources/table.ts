import type { CsvError, InfoRecord, Parser, parse } from 'csv-parse';
import type { FormatDetector, TableFormat } from '../formats/formats.ts';
import { hasInvalidBytes, notUtf8Problem } from './decode-text.ts';
import { cellLineBreak, maxRecordLength, type SourceEntry, UnreadableSourceError } from './source-entry.ts';

/**
 * The layout of a table: its columns, delimiter and line endings. The import detects the layout from the first rows.
 */
export interface TableLayout extends TableFormat {
  columnNames: string[];
  delimiter: string;
  lineEndings: LineEndings;
  /** The index of the row with the column names, starting at 0. */
  headerRowIndex: number;
  /**
   * The number of rows above the column names, e.g. for the title of a report. A line such as `sep=;` does not count.
   */
  titleLineCount: number;
}

/**
 * The maximum number of columns. All known exports of ads have fewer, even if they spread lists over several columns.
 */
const maxColumns = 5000;

/** The number of rows and characters at the start of a text in which the import searches for the column names. */
const maxHeaderSearchRows = 30;
const maxHeaderSearchCharacters = 256 * 1024;

const delimiters = [',', ';', '\t', '|'];

/**
 * Detects whether a text starts with a table. The header is the row with the most column names that the import knows.
 * @returns undefined if no row contains the column names of a known format
 * @throws UnreadableSourceError if the table has too many columns
 */
export async function detectTable(text: string, formatDetector: FormatDetector): Promise<TableLayout | undefined> {
  const { parse } = await import('csv-parse/sync');
  const firstText = text.slice(0, maxHeaderSearchCharacters);
  const lineEndings = detectLineEndings(firstText);
  let bestLayout: (TableLayout & { knownColumnCount: number }) | undefined;
  for (const delimiter of delimiters) {
    const firstRows: string[][] = [];
    const addRow = (cells: string[]) => {
      firstRows.push(cells);
      return null;
    };
    try {
      parse(firstText, {
        ...getCsvOptions(delimiter, lineEndings),
        to: maxHeaderSearchRows,
        max_record_size: maxHeaderSearchCharacters,
        on_record: addRow,
      });
    } catch {
      // Ignore the error. The text is probably cut off within a row, and all rows before that row were already added.
    }
    for (const [headerRowIndex, cells] of firstRows.entries()) {
      const columnNames = makeColumnNamesUnique(cells.map((cell) => unescapeCell(cell).trim()));
      const tableFormat = formatDetector.detectTableFormat(columnNames.slice(0, maxColumns));
      const knownColumnCount = tableFormat?.fields.filter((field) => field !== undefined).length ?? 0;
      if (!tableFormat || knownColumnCount <= (bestLayout?.knownColumnCount ?? 0)) continue;
      // Some programs write a first line such as `sep=;`, which tells Excel the delimiter. It is not a title.
      const hasSeparatorLine = /^sep=/i.test(firstRows[0]?.[0] ?? '');
      const titleLineCount = headerRowIndex - Number(hasSeparatorLine);
      bestLayout = {
        ...tableFormat,
        columnNames,
        delimiter,
        lineEndings,
        headerRowIndex,
        titleLineCount,
        knownColumnCount,
      };
    }
  }
  if (bestLayout && bestLayout.columnNames.length > maxColumns)
    throw new UnreadableSourceError(
      `a table of ${bestLayout.columnNames.length} columns; an import reads at most ${maxColumns} columns`,
    );
  return bestLayout;
}

/**
 * Makes repeated column names unique, e.g. `Note (2)` for the second column `Note`. Without a unique name, the values
 * of the second column would be lost.
 */
function makeColumnNamesUnique(columnNames: readonly string[]): string[] {
  const uniqueNames = new Set(columnNames);
  const countByName = new Map<string, number>();
  return columnNames.map((columnName) => {
    let count = (countByName.get(columnName) ?? 0) + 1;
    while (count > 1 && uniqueNames.has(`${columnName} (${count})`)) count++;
    countByName.set(columnName, count);
    return columnName === '' || count === 1 ? columnName : `${columnName} (${count})`;
  });
}

const getCsvOptions = (delimiter: string, lineEndings: LineEndings) => ({
  delimiter,
  record_delimiter: [...lineEndings.delimiters],
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
});

/** The characters that end the lines of a table. */
interface LineEndings {
  delimiters: readonly string[];
  /** Matches one end of a line. The import counts lines with this pattern. */
  newlinePattern: RegExp;
  /** Matches the empty lines at the start of a text. */
  emptyLinesPattern: RegExp;
}

/** Lines that end with a line feed. Python on Windows may write two carriage returns before the line feed. */
const lineFeedEndings: LineEndings = {
  delimiters: ['\r\r\n', '\r\n', '\n'],
  newlinePattern: /\n/,
  emptyLinesPattern: /^(?:\r{0,2}\n)*/,
};
/** Lines that end with a single carriage return, as old Mac spreadsheets write them. */
const oldMacEndings: LineEndings = { delimiters: ['\r'], newlinePattern: /\r/, emptyLinesPattern: /^\r*/ };
/** Lines of which some end as in old Mac spreadsheets, and others with a line feed. */
const mixedEndings: LineEndings = {
  delimiters: ['\r\n', '\n', '\r'],
  newlinePattern: /\r\n|[\r\n]/,
  emptyLinesPattern: /^[\r\n]*/,
};

/** Detects which line endings a text uses. */
function detectLineEndings(firstText: string): LineEndings {
  const [firstLineBreak] = /[\r\n]/.exec(firstText) ?? [];
  const hasOldMacLineEndings = firstLineBreak === '\r' && !/^[^\r\n]*\r+\n/.test(firstText);
  if (!hasOldMacLineEndings) return lineFeedEndings;
  const hasLineFeedOutsideQuotes = firstText
    .replaceAll(/"[^"]*(?:"|$)/g, '')
    .trimEnd()
    .includes('\n');
  return hasLineFeedOutsideQuotes ? mixedEndings : oldMacEndings;
}

/**
 * The maximum number of characters to parse again, because a missing closing quotation mark spoiled the first attempt.
 * After that, the import stops reading the table, because a damaged table could otherwise take a very long time.
 */
const maxReparsedCharacters = 32 * 1024 * 1024;
/** The number of characters to pass to the CSV parser in each call. */
const parserSliceLength = 64 * 1024;

/**
 * Reads the rows of a table below the column names. If a closing quotation mark is missing, a row never ends. In this
 * case, skips the first line of that row, and continues on the next line.
 * @throws UnreadableSourceError if too many rows never end
 */
export async function* readTableRows(text: AsyncIterable<string>, table: TableLayout): AsyncGenerator<SourceEntry[]> {
  const { parse } = await import('csv-parse');
  const { newlinePattern } = table.lineEndings;
  let rowReader = new TableRowReader(parse, table, { lineNumber: 1, rowsToSkip: table.headerRowIndex + 1 });
  /**
   * The text from the first incomplete row on, the line number of that row, and the number of characters that were
   * already parsed.
   */
  const pendingRows = { text: '', firstLineNumber: 1, parsedCharacters: 0 };
  let reparsedCharacters = 0;
  function dropLinesBefore(lineNumber: number): void {
    for (; pendingRows.firstLineNumber < lineNumber; pendingRows.firstLineNumber++) {
      const newlineMatch = newlinePattern.exec(pendingRows.text);
      const lineLength = newlineMatch ? newlineMatch.index + newlineMatch[0].length : pendingRows.text.length;
      pendingRows.text = pendingRows.text.slice(lineLength);
      pendingRows.parsedCharacters -= lineLength;
    }
  }
  /** Removes empty lines from the start of `pendingRows`, because the parser does not report them as rows. */
  function dropEmptyLines(): void {
    const [emptyLines = ''] = /^[\r\n]+/.exec(pendingRows.text.slice(0, pendingRows.parsedCharacters)) ?? [];
    dropLinesBefore(pendingRows.firstLineNumber + emptyLines.split(newlinePattern).length - 1);
  }
  async function* readPending(isEndOfText: boolean): AsyncGenerator<SourceEntry[]> {
    for (;;) {
      let error: unknown;
      while (error === undefined && pendingRows.parsedCharacters < pendingRows.text.length) {
        const slice = sliceWholeCharacters(pendingRows.text, pendingRows.parsedCharacters, parserSliceLength);
        pendingRows.parsedCharacters += slice.length;
        error = await rowReader.parseChunk(slice);
        yield rowReader.takeEntries();
        dropLinesBefore(rowReader.nextLineNumber);
        dropEmptyLines();
      }
      if (error === undefined && isEndOfText) error = await rowReader.parseLastRow();
      yield rowReader.takeEntries();
      if (error === undefined) return;
      dropLinesBefore(rowReader.nextLineNumber);
      dropEmptyLines();
      yield [{ line: pendingRows.firstLineNumber, path: '', problem: describeCsvError(error) }];
      reparsedCharacters += pendingRows.parsedCharacters;
      if (reparsedCharacters > maxReparsedCharacters)
        throw new UnreadableSourceError('too many rows do not end; nothing after this place was read');
      dropLinesBefore(pendingRows.firstLineNumber + 1);
      pendingRows.parsedCharacters = 0;
      rowReader = new TableRowReader(parse, table, {
        lineNumber: pendingRows.firstLineNumber,
        rowsToSkip: rowReader.remainingRowsToSkip,
      });
    }
  }
  for await (const chunk of text) {
    pendingRows.text += chunk;
    yield* readPending(false);
  }
  yield* readPending(true);
}

/**
 * Returns the part of a text from `start` on with this length, or with one code unit more if the part would otherwise
 * end within a character, such as an emoji. Half of such a character cannot be encoded in UTF-8.
 */
function sliceWholeCharacters(text: string, start: number, length: number): string {
  const isWithinCharacter = /[\ud800-\udbff]/.test(text.charAt(start + length - 1));
  return text.slice(start, start + length + Number(isWithinCharacter));
}

type Parse = typeof parse;

/** Parses rows of CSV. Stops at the first row that never ends because a closing quotation mark is missing. */
class TableRowReader {
  /** The line number at which the next row starts. */
  nextLineNumber: number;
  /** The number of rows to skip at the start: the row of column names, and all rows above it. */
  remainingRowsToSkip: number;
  readonly #columnCount: number;
  readonly #parser: Parser;
  #rows: { cells: string[]; line: number }[] = [];
  /** The bytes that were passed to the parser, from the end of the last row on. */
  #unreadBytes = Buffer.alloc(0);
  /** The number of bytes up to the end of the last row. */
  #readByteCount = 0;
  /** True after the parser has read a row without a closing quotation mark. */
  #hasUnclosedQuote = false;

  constructor(
    parse: Parse,
    { delimiter, lineEndings, columnNames }: TableLayout,
    startPosition: { lineNumber: number; rowsToSkip: number },
  ) {
    this.nextLineNumber = startPosition.lineNumber;
    this.remainingRowsToSkip = startPosition.rowsToSkip;
    this.#columnCount = columnNames.length;
    const { newlinePattern, emptyLinesPattern } = lineEndings;
    this.#parser = parse({
      ...getCsvOptions(delimiter, lineEndings),
      max_record_size: maxRecordLength,
      on_record: (cells: string[], { bytes }: InfoRecord) => {
        // `bytes` counts all bytes up to the end of this row. Ignore the line count of the parser, because the parser
        // also counts characters in cells that do not end a line of this text.
        const rowByteCount = bytes - this.#readByteCount;
        const text = this.#unreadBytes.toString('utf8', 0, rowByteCount);
        this.#hasUnclosedQuote ||= hasUnclosedQuote(cells, text);
        if (this.#hasUnclosedQuote) return null;
        this.#unreadBytes = this.#unreadBytes.subarray(rowByteCount);
        this.#readByteCount = bytes;
        const [emptyLines = ''] = emptyLinesPattern.exec(text) ?? [];
        this.#rows.push({ cells, line: this.nextLineNumber + emptyLines.split(newlinePattern).length - 1 });
        this.nextLineNumber += text.split(newlinePattern).length - 1;
        return null;
      },
    });
    this.#parser.on('error', () => {}).resume();
  }

  /**
   * Parses a further chunk of text. Resolves with an error if a row never ends, and with undefined otherwise. After an
   * error, the reader must not be used again.
   */
  async parseChunk(text: string): Promise<unknown> {
    const bytes = Buffer.from(escapeInvalidBytes(text));
    this.#unreadBytes = Buffer.concat([this.#unreadBytes, bytes]);
    const error = await new Promise((resolve) => this.#parser.write(bytes, resolve));
    return error ?? (this.#hasUnclosedQuote ? quoteNotClosedError : undefined);
  }

  /** Parses the last row. Resolves with an error if this row never ends, and with undefined otherwise. */
  async parseLastRow(): Promise<unknown> {
    const error = await new Promise((resolve) => this.#parser.on('error', resolve).end(() => resolve(undefined)));
    return error ?? (this.#hasUnclosedQuote ? quoteNotClosedError : undefined);
  }

  /** Returns the entries of all rows that were parsed since the previous call. */
  takeEntries(): SourceEntry[] {
    const skippedRowCount = Math.min(this.remainingRowsToSkip, this.#rows.length);
    this.remainingRowsToSkip -= skippedRowCount;
    const rows = this.#rows.slice(skippedRowCount);
    this.#rows = [];
    return rows.map(({ cells, line }) => toSourceEntry(cells, line, this.#columnCount));
  }
}

function toSourceEntry(escapedCells: string[], line: number, columnCount: number): SourceEntry {
  const cells = escapedCells.map(unescapeCell);
  // Remove the empty cells that spreadsheets add after the last column.
  while (cells.length > columnCount && cells.at(-1)?.trim() === '') cells.pop();
  if (cells.some(hasInvalidBytes)) return { line, path: '', problem: notUtf8Problem };
  if (cells.length === columnCount) return { line, path: '', cells };
  const problem = `the row has ${cells.length} cells, and the line of column names has ${columnCount}; is a quotation mark missing?`;
  return { line, path: '', problem };
}

/**
 * Replaces each lone surrogate, which marks an invalid byte, with a pair of other characters. The CSV parser would lose
 * a lone surrogate, because it converts text to UTF-8.
 */
const escapeInvalidBytes = (text: string): string =>
  /[\ufdd0\udc80-\udcff]/.test(text)
    ? text.replaceAll('\ufdd0', '\ufdd0\ufdd1').replace(/[\udc80-\udcff]/gu, '\ufdd0\ufdd2')
    : text;

const unescapeCell = (cell: string): string =>
  /[\ufdd0\ufdd3]/.test(cell)
    ? cell.replaceAll('\ufdd0\ufdd2', '\udc80').replaceAll('\ufdd0\ufdd1', '\ufdd0').replaceAll(cellLineBreak, '\n')
    : cell;

/**
 * Returns true if a cell lacks its closing quotation mark, so that the opening mark of a later row closed it. The raw
 * text then contains the cell unchanged, and with a single quotation mark at its beginning. A correct row doubles the
 * quotation marks inside a cell. For speed, only checks the first suspicious cell.
 */
function hasUnclosedQuote(cells: readonly string[], rawRow: string): boolean {
  const suspiciousCell = cells.find((cell) => cell.startsWith('"') && /[\r\n]/.test(cell));
  if (suspiciousCell === undefined) return false;
  const cellIndex = rawRow.indexOf(suspiciousCell);
  return cellIndex >= 0 && rawRow[cellIndex - 1] !== '"';
}

const quoteNotClosedError = { code: 'CSV_QUOTE_NOT_CLOSED' };

function describeCsvError(error: unknown): string {
  const { code, message } = error as CsvError;
  if (code === 'CSV_MAX_RECORD_SIZE' || code === 'CSV_QUOTE_NOT_CLOSED')
    return 'a row that does not end; is a quotation mark not closed?';
  return `not CSV: ${message}`;
}
