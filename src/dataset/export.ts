import { invalidRequest } from '../api/errors.ts';
import { formatColumnTitle } from '../views/column-title.ts';
import { dayMs } from '../views/durations.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import type { SqlExport } from './sql/pool.ts';
import { type Cell, getColumnNames, measureCells } from './tables.ts';
import type { Sheet, SheetCell } from './workbook.ts';

/** The formats of exported files. */
export type ExportFormat = 'csv' | 'jsonl' | 'xlsx' | 'parquet';

/** Runs the statement from its beginning and passes its rows to `read`. Returns what `read` returns. */
export type RunStatement = <Result>(read: (exported: SqlExport) => Promise<Result>) => Promise<Result>;

/** One statement of an export. In a workbook, `name` is the name of its sheet. */
export interface Statement {
  name: string;
  sql: string;
  run: RunStatement;
}

/** The columns, counts and first rows of one exported statement. */
export interface ExportCounts extends Omit<Statement, 'run'> {
  columns: readonly string[];
  rowCount: number;
  /** The first rows, so that a model can check the result without reading the file. */
  firstRows: Cell[][];
  /** The number of cells that were cut because Excel allows no longer text. */
  truncatedCells: number;
  /** The fields of ads that the statement reads. */
  read: SqlExport['read'];
  /** The distinct values of the column `id` or `adId`; undefined without such a column. They need not be ids of ads. */
  ids: Set<Cell> | undefined;
}

interface ExportTarget {
  format: ExportFormat;
  /** Writes the next bytes. The next rows are read only after the returned promise resolves. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** The largest size of the whole file. */
  maxBytes: number;
  /** Returns the rows of the last sheet of a workbook. Called after the other sheets are written. */
  method(counts: readonly ExportCounts[]): SheetCell[][];
}

/** The default statement of an export: every ad with all columns except `json`, in the order of arrival. */
export const allAdsSql = `SELECT ${getColumnNames('ads')
  .filter((name) => name !== 'json')
  .join(', ')} FROM ads ORDER BY rowid`;

/**
 * Writes the rows of statements to a file as they arrive, so that they are never all in memory. A workbook has one
 * sheet for each statement.
 * @throws AdLibraryError `invalid_request` if the file would exceed `maxBytes` or a limit of its format
 */
export async function writeExport(statements: readonly Statement[], { format, method, ...target }: ExportTarget) {
  let bytes = 0;
  const write = async (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes > target.maxBytes) {
      throw invalidRequest(`The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`);
    }
    await target.write(chunk);
  };
  const countedStatements = statements.map(({ run, ...description }): { counts: ExportCounts; run: RunStatement } => {
    const counts: ExportCounts = {
      ...description,
      columns: [],
      rowCount: 0,
      firstRows: [],
      truncatedCells: 0,
      read: undefined,
      ids: undefined,
    };
    return { counts, run: (read) => run((exported) => read({ ...exported, rows: countRows(exported, counts) })) };
  });
  const counts = countedStatements.map(({ counts }) => counts);
  if (format === 'xlsx') {
    await writeWorkbook(countedStatements, () => method(counts), write);
    return counts;
  }
  for (const { run } of countedStatements) {
    if (format === 'parquet')
      await run(readTypes).then(({ columns }) => run(({ rows }) => writeParquet(columns, rows, write)));
    else await run((exported) => writeText(format, exported, write));
  }
  return counts;
}

const maxFirstRows = 3;

/** Passes rows on and counts them. A statement may run twice, so the counts start again at the first row. */
async function* countRows({ columns, rows, read }: SqlExport, counts: ExportCounts): SqlExport['rows'] {
  const column = columns.findIndex((name) => name === 'id' || name === 'adId');
  const ids: ExportCounts['ids'] = column < 0 ? undefined : new Set();
  Object.assign(counts, { columns, read, rowCount: 0, firstRows: [], ids } satisfies Partial<ExportCounts>);
  for await (const batch of rows) {
    counts.firstRows.push(...batch.slice(0, maxFirstRows - counts.firstRows.length));
    counts.rowCount += batch.length;
    for (const row of batch) counts.ids?.add(row[column] ?? null);
    yield batch;
  }
}

async function writeText(format: 'csv' | 'jsonl', { columns, rows }: SqlExport, write: Write): Promise<void> {
  const pause = createEventLoopYielder();
  const formatLine =
    format === 'csv' ? (row: readonly Cell[]) => formatCsvLine(row, pause) : createJsonLineFormatter(columns);
  if (format === 'csv')
    await write(Buffer.from(`${byteOrderMark}${await formatCsvLine(columns.map(formatColumnTitle), pause)}`));
  for await (const batch of rows) {
    const lines: string[] = [];
    for (const row of batch) {
      lines.push(await formatLine(row));
      await pause();
    }
    if (lines.length > 0) await write(Buffer.from(lines.join('')));
  }
}

/** The byte order mark, which tells spreadsheets that the text is UTF-8. */
const byteOrderMark = '\ufeff';

/**
 * Returns a row as a line of CSV (RFC 4180). A text is also quoted if it contains a character that some spreadsheet
 * uses as its list separator.
 */
async function formatCsvLine(row: readonly Cell[], pause: Pause): Promise<string> {
  const signsToEscape = row.some((cell) => typeof cell === 'string' && functionCall.test(cell))
    ? formulaSign
    : formulaSignExceptListItem;
  const cells: string[] = [];
  for (const cell of row)
    cells.push(typeof cell === 'string' ? await formatCsvText(cell, signsToEscape, pause) : String(cell ?? ''));
  return `${cells.join()}\r\n`;
}

/**
 * Returns a text as a cell of CSV, with an apostrophe before each place that a spreadsheet would run as a formula. A
 * spreadsheet with another list separator does not recognize our quotes: it starts new cells inside a text and
 * continues them in the next cell of the row. If no cell of the row calls a function, lines such as `- item of a list`
 * are harmless and stay as they are.
 */
async function formatCsvText(cell: string, signs: RegExp, pause: Pause): Promise<string> {
  if (isDate(cell)) return formatDate(cell);
  const pieces: string[] = [];
  for (const piece of splitAtSeparators(cell)) {
    pieces.push(piece.replace(signs, "$&'").replaceAll('"', '""'));
    if (piece.length > shortChars) await pause();
  }
  const text = `${formula.test(cell) ? "'" : ''}${pieces.join('')}`;
  return needsQuotes.test(cell) ? `"${text}"` : text;
}

/**
 * The number of characters that are escaped at once. Escaping this many takes a few milliseconds. Below `shortChars`,
 * the time is negligible, so the event loop gets no pause.
 */
const pieceChars = 32_768;
const shortChars = 1000;

/**
 * Splits a long text before list separators. No match of the `signs` pattern spans two pieces, because a match begins
 * with a list separator and contains no other.
 */
function* splitAtSeparators(text: string): Generator<string> {
  const separator = /[;|\t\r\n]/g;
  let start = 0;
  while (text.length - start > pieceChars) {
    separator.lastIndex = start + pieceChars;
    const end = separator.exec(text)?.index ?? text.length;
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}

/** Formats a date in UTC as people and spreadsheets write it, for example `2026-06-14 12:30:05`. */
const formatDate = (date: string) => date.replace(/(?:T00:00:00)?(?:\.000)?Z$/, '').replace('T', ' ');

/** Matches a text that must be quoted in CSV. */
const needsQuotes = /[",;|\t\r\n]/;
/** Matches a text that may call a function or start a program (DDE). */
const functionCall = /[|(]/;
/** Matches the start of a text that a spreadsheet would run as a formula. Full-width signs count, too. */
const formula = /^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
/** Matches a list separator before a sign that starts a formula. */
const formulaSign = /[;|\t\r\n]"*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** Like `formulaSign`, but `+` and `-` before a space do not match, because they mark items of lists. */
const formulaSignExceptListItem = /[;|\t\r\n]"*(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! ))/g;

const createJsonLineFormatter = (columns: readonly string[]) => (row: readonly Cell[]) =>
  `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`;

type Write = (bytes: Uint8Array) => Promise<void>;
type Pause = ReturnType<typeof createEventLoopYielder>;

/**
 * The most rows of a sheet below its header, and the most characters of a cell. Source: Excel's specifications and
 * limits.
 */
const maxSheetRows = 1_048_575;
const maxSheetCellChars = 32_767;
/** The largest whole number that Excel stores exactly. Excel keeps 15 digits. */
const maxSheetInteger = 999_999_999_999_999;
/** The first date that Excel counts correctly. Before it, Excel counts 29 February 1900, which never existed. */
const firstSheetDate = '1900-03-01';
/** The number that Excel uses for 1 January 1970: it counts days from the start of 1900. */
const excelDayOf1970 = 25_569;

/**
 * A column of the result with its type. The type is known only after the last row, so the statement runs twice: once
 * for the types, once to write the rows.
 */
interface TypedColumn {
  name: string;
  type: ColumnType;
  /** True if all dates of the column are at midnight, so that they are written without a time. */
  isDaysOnly: boolean;
  /** The characters of the longest cell, up to `maxWidth`. */
  width: number;
}

type ColumnType = 'nothing' | 'date' | 'integer' | 'number' | 'text';

const maxWidth = 60;

/** Reads all rows of a statement and returns the type of each column and the number of rows. */
async function readTypes({ columns, rows }: SqlExport): Promise<{ columns: TypedColumn[]; rows: number }> {
  const typed = columns.map(
    (name): TypedColumn => ({ name, type: 'nothing', isDaysOnly: true, width: Math.min(name.length + 3, maxWidth) }),
  );
  let count = 0;
  for await (const batch of rows) {
    count += batch.length;
    for (const row of batch) for (const [index, column] of typed.entries()) addCellToColumn(column, row[index] ?? null);
  }
  return { columns: typed, rows: count };
}

function addCellToColumn(column: TypedColumn, cell: Cell): void {
  if (cell === null) return;
  const type = getCellType(cell);
  if (column.type === 'nothing') column.type = type;
  else if (column.type !== type) column.type = isNumeric(column.type) && isNumeric(type) ? 'number' : 'text';
  if (type === 'date') column.isDaysOnly &&= String(cell).endsWith('T00:00:00.000Z');
  if (column.width < maxWidth) column.width = Math.max(column.width, Math.min(String(cell).length, maxWidth));
}

const isNumeric = (type: ColumnType) => type === 'integer' || type === 'number';

function getCellType(cell: string | number): ColumnType {
  if (typeof cell === 'number') return Number.isSafeInteger(cell) ? 'integer' : 'number';
  return isDate(cell) ? 'date' : 'text';
}

const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const isDate = (cell: Cell): cell is string =>
  typeof cell === 'string' && datePattern.test(cell) && cell >= firstSheetDate && !Number.isNaN(Date.parse(cell));

/** Writes an Excel workbook with one sheet for each statement and a last sheet about the method. */
async function writeWorkbook(
  statements: readonly { counts: ExportCounts; run: RunStatement }[],
  method: () => SheetCell[][],
  write: Write,
): Promise<void> {
  const { openWorkbook } = await import('./workbook.ts');
  const workbook = openWorkbook(write);
  for (const { counts, run } of statements) {
    const { columns, rows } = await run(readTypes);
    if (rows > maxSheetRows)
      throw invalidRequest(
        `A sheet of Excel holds ${maxSheetRows} rows below its header, and the statement gives ${rows}. Select fewer rows, or export them as csv or parquet.`,
      );
    await run(({ rows }) => workbook.addSheet(buildSheet(columns, rows, counts)));
  }
  await workbook.addSheet({ name: methodSheetName, columns: methodColumns, rows: [method()], isTable: false });
  await workbook.end();
}

/** The name of the last sheet of a workbook. Other sheets may not use it. */
export const methodSheetName = 'Method';
const methodColumns = [24, 48, 24, 12, 12, 12].map((width) => ({ title: '', width, style: 'plain' }) as const);

function buildSheet(columns: TypedColumn[], batches: SqlExport['rows'], counts: ExportCounts): Sheet {
  counts.truncatedCells = 0;
  const toSheetCell = (cell: Cell, { type }: TypedColumn) => {
    if (cell === null || (typeof cell === 'number' && isExactInExcel(cell))) return cell;
    if (type === 'date' && isDate(cell)) return Date.parse(cell) / dayMs + excelDayOf1970;
    const text = String(cell);
    if (text.length > maxSheetCellChars) counts.truncatedCells++;
    return text.slice(0, maxSheetCellChars);
  };
  async function* rows() {
    for await (const batch of batches)
      yield batch.map((row) => columns.map((column, index) => toSheetCell(row[index] ?? null, column)));
  }
  return {
    name: counts.name,
    rows: rows(),
    isTable: true,
    columns: columns.map(({ name, type, isDaysOnly, width }) => ({
      title: formatColumnTitle(name).slice(0, maxSheetCellChars),
      ...(type === 'date' ? { width: isDaysOnly ? 13 : 20 } : { width: width + 2 }),
      style: type !== 'date' ? 'plain' : isDaysOnly ? 'day' : 'time',
    })),
  };
}

const isExactInExcel = (number: number) =>
  Number.isFinite(number) && (!Number.isInteger(number) || Math.abs(number) <= maxSheetInteger);

/** The most cells and characters of a Parquet row group. Writing a group blocks the event loop, so groups are small. */
const groupCells = 40_000;
const groupChars = 2_000_000;

/** Writes a Parquet file, one row group at a time. */
async function writeParquet(columns: TypedColumn[], batches: SqlExport['rows'], write: Write): Promise<void> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer');
  const types = columns.map(({ type }) => parquetTypes[type]);
  const buildColumnData = (rows: readonly Cell[][]) =>
    columns.map(({ name, type }, index) => ({
      name,
      type: types[index] as (typeof parquetTypes)[ColumnType],
      data: rows.map((row) => toParquetCell(row[index] ?? null, type)),
      nullable: true,
    }));
  const writer = new ByteWriter();
  const file = new ParquetWriter({ writer, schema: schemaFromColumnData({ columnData: buildColumnData([]) }) });
  const flush = async () => {
    const bytes = writer.getBytes().slice();
    writer.index = 0;
    await write(bytes);
  };
  let group: Cell[][] = [];
  let size = 0;
  const writeGroup = async () => {
    if (group.length > 0) file.write({ columnData: buildColumnData(group), rowGroupSize: group.length });
    group = [];
    size = 0;
    await flush();
  };
  for await (const batch of batches) {
    for (const row of batch) {
      group.push(row);
      size += measureCells(row);
      if (group.length * columns.length >= groupCells || size >= groupChars) await writeGroup();
    }
  }
  await writeGroup();
  file.finish();
  await flush();
}

const parquetTypes = {
  nothing: 'STRING',
  text: 'STRING',
  date: 'TIMESTAMP',
  integer: 'INT64',
  number: 'DOUBLE',
} as const satisfies Record<ColumnType, string>;

function toParquetCell(cell: Cell, type: ColumnType): string | number | bigint | Date | null {
  if (cell === null) return null;
  if (type === 'text') return String(cell);
  if (type === 'date' && isDate(cell)) return new Date(cell);
  if (type === 'integer' && Number.isSafeInteger(cell)) return BigInt(cell);
  if (type === 'number' && typeof cell === 'number') return cell;
  throw invalidRequest('The statement gives different rows each time it runs. Leave out random().');
}
