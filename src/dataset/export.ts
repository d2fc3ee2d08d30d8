import { createInvalidRequestError } from '../api/errors.ts';
import { formatColumnTitle } from '../views/column-title.ts';
import { dayMs } from '../views/durations.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import type { SqlExport } from './sql/pool.ts';
import { type Cell, countCellChars, getColumnNames } from './tables.ts';
import type { Sheet, SheetCell } from './workbook.ts';

/** The file formats of an export. */
export type ExportFormat = 'csv' | 'jsonl' | 'xlsx' | 'parquet';

/**
 * Runs an SQL statement and passes its result to `readRows`. Resolves to the return value of `readRows`. Each call runs
 * the statement again.
 */
export type RunStatement = <Result>(readRows: (sqlExport: SqlExport) => Promise<Result>) => Promise<Result>;

/** One SQL statement of an export. In a workbook, the rows of the statement form a sheet called `name`. */
export interface ExportStatement {
  name: string;
  sql: string;
  runStatement: RunStatement;
}

/** What an export reports about one SQL statement: its columns, its number of rows, its first rows, and more. */
export interface StatementSummary extends Omit<ExportStatement, 'runStatement'> {
  columns: readonly string[];
  rowCount: number;
  /** The first rows of the result, with which a model can check the export without opening the file. */
  firstRows: Cell[][];
  /** The number of cells that were shortened, because a cell in Excel has at most 32,767 characters. */
  truncatedCellCount: number;
  /** The ad fields that the SQL statement reads, with the number of ads that have a value for each field. */
  statementFields: SqlExport['statementFields'];
  /** True if the SQL statement reads ads. False if it reads only the tables `gatherings` and `months`. */
  isAboutAds: boolean;
  /** True if the SQL statement reads the table `pages`, which may contain only some of the advertisers. */
  readsPages: SqlExport['readsPages'];
  /**
   * The distinct values of the column `id` or `adId`, which may also contain ids of objects other than ads. Undefined
   * if the result has no such column.
   */
  distinctIds: Set<Cell> | undefined;
}

interface ExportOptions {
  format: ExportFormat;
  /**
   * Writes a chunk of the file. The export reads no further rows until the promise resolves, so that memory use stays
   * low.
   */
  writeBytes(bytes: Uint8Array): void | Promise<void>;
  maxBytes: number;
  /**
   * Returns the rows of the workbook's "Method" sheet. This sheet is written last, because it states how many rows the
   * other sheets have.
   */
  buildMethodRows(summaries: readonly StatementSummary[]): SheetCell[][];
}

/** The default SQL statement of an export. It selects all ads in order of arrival, with all columns except `json`. */
export const allAdsSql = `SELECT ${getColumnNames('ads')
  .filter((name) => name !== 'json')
  .join(', ')} FROM ads ORDER BY rowid`;

/**
 * Runs SQL statements and writes their rows to a file. Writes rows as they arrive, so that memory never holds all of
 * them. A workbook contains one sheet per statement.
 * @throws AdLibraryError `invalid_request` if the file would exceed `maxBytes` or a limit of its format
 */
export async function writeExport(
  statements: readonly ExportStatement[],
  { format, buildMethodRows, ...target }: ExportOptions,
) {
  let writtenBytes = 0;
  const writeBytes = async (bytes: Uint8Array) => {
    writtenBytes += bytes.length;
    if (writtenBytes > target.maxBytes) {
      throw createInvalidRequestError(
        `The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`,
      );
    }
    await target.writeBytes(bytes);
  };
  const trackedStatements = statements.map(
    ({ runStatement, ...description }): { summary: StatementSummary; runStatement: RunStatement } => {
      const summary: StatementSummary = {
        ...description,
        columns: [],
        rowCount: 0,
        firstRows: [],
        truncatedCellCount: 0,
        statementFields: undefined,
        isAboutAds: true,
        readsPages: undefined,
        distinctIds: undefined,
      };
      return {
        summary,
        runStatement: (read) =>
          runStatement((sqlExport) => read({ ...sqlExport, rows: countRows(sqlExport, summary) })),
      };
    },
  );
  const summaries = trackedStatements.map(({ summary }) => summary);
  if (format === 'xlsx') {
    await writeWorkbook(trackedStatements, () => buildMethodRows(summaries), writeBytes);
    return summaries;
  }
  for (const { runStatement } of trackedStatements) {
    if (format === 'parquet')
      await runStatement(readColumnTypes).then(({ columns }) =>
        runStatement(({ rows }) => writeParquet(columns, rows, writeBytes)),
      );
    else await runStatement((sqlExport) => writeText(format, sqlExport, writeBytes));
  }
  return summaries;
}

/** The number of first rows that a result shows of a table. */
export const maxFirstRows = 3;

/**
 * Yields the rows of an SQL statement unchanged and counts them. Resets the summary first, because a statement may run
 * twice.
 */
async function* countRows(
  { columns, rows, statementFields, isAboutAds, readsPages }: SqlExport,
  summary: StatementSummary,
): SqlExport['rows'] {
  const idColumnIndex = columns.findIndex((name) => name === 'id' || name === 'adId');
  const distinctIds: StatementSummary['distinctIds'] = idColumnIndex < 0 ? undefined : new Set();
  Object.assign(summary, {
    columns,
    statementFields,
    isAboutAds,
    readsPages,
    rowCount: 0,
    firstRows: [],
    distinctIds,
  } satisfies Partial<StatementSummary>);
  for await (const batch of rows) {
    summary.firstRows.push(...batch.slice(0, maxFirstRows - summary.firstRows.length));
    summary.rowCount += batch.length;
    for (const row of batch) summary.distinctIds?.add(row[idColumnIndex] ?? null);
    yield batch;
  }
}

async function writeText(format: 'csv' | 'jsonl', { columns, rows }: SqlExport, writeBytes: WriteBytes): Promise<void> {
  const yieldToEventLoop = createEventLoopYielder();
  const formatLine =
    format === 'csv'
      ? (row: readonly Cell[]) => formatCsvLine(row, yieldToEventLoop)
      : createJsonLineFormatter(columns);
  if (format === 'csv')
    await writeBytes(
      Buffer.from(`${byteOrderMark}${await formatCsvLine(columns.map(formatColumnTitle), yieldToEventLoop)}`),
    );
  for await (const batch of rows) {
    const lines: string[] = [];
    for (const row of batch) {
      lines.push(await formatLine(row));
      await yieldToEventLoop();
    }
    if (lines.length > 0) await writeBytes(Buffer.from(lines.join('')));
  }
}

/** A byte order mark, which tells spreadsheet applications that the file is in UTF-8. */
const byteOrderMark = '\ufeff';

/**
 * Formats a row as a line of CSV (RFC 4180). Quotes each text that contains a quotation mark, a line break, or a list
 * separator of some spreadsheet application, e.g. `;`.
 */
async function formatCsvLine(row: readonly Cell[], yieldToEventLoop: YieldToEventLoop): Promise<string> {
  const formulaPattern = row.some((cell) => typeof cell === 'string' && functionCallPattern.test(cell))
    ? embeddedFormulaPattern
    : embeddedFormulaExceptListItemPattern;
  const cells: string[] = [];
  for (const cell of row)
    cells.push(
      typeof cell === 'string' ? await formatCsvText(cell, formulaPattern, yieldToEventLoop) : String(cell ?? ''),
    );
  return `${cells.join()}\r\n`;
}

/**
 * Formats a text as a CSV cell. To prevent CSV injection, inserts an apostrophe wherever a spreadsheet application
 * would start a formula. If the text itself has apostrophes there, also inserts one, so that an import can always
 * remove exactly one.
 *
 * A formula may start in the middle of a text, because an application with another list separator ignores the quotes
 * and splits the text. If no cell of the row can call a function, lines such as `- item of a list` are harmless and
 * remain unchanged.
 */
async function formatCsvText(
  cell: string,
  formulaPattern: RegExp,
  yieldToEventLoop: YieldToEventLoop,
): Promise<string> {
  if (isDate(cell)) return formatIsoDateForSpreadsheet(cell);
  const escapedParts: string[] = [];
  for (const textPart of splitAtSeparators(cell)) {
    escapedParts.push(textPart.replace(formulaPattern, "$&'").replaceAll('"', '""'));
    if (textPart.length > maxCharsWithoutYield) await yieldToEventLoop();
  }
  const text = `${formulaStartPattern.test(cell) ? "'" : ''}${escapedParts.join('')}`;
  return quotedTextPattern.test(cell) ? `"${text}"` : text;
}

/**
 * The approximate number of characters of a long text in which formulas and quotation marks are escaped at a time.
 * Escaping them takes only a few milliseconds, so that other calls do not have to wait.
 */
const charsPerEscapedChunk = 32_768;
/**
 * After escaping a text with more characters than this, the export gives the event loop a turn, so that other calls can
 * run.
 */
const maxCharsWithoutYield = 1000;

/**
 * Splits a long text before list separators such as `;`. Never splits an embedded formula start such as `;=`, because
 * it begins with a list separator and contains no further one.
 */
function* splitAtSeparators(text: string): Generator<string> {
  const separatorPattern = /[;|\t\r\n]/g;
  let start = 0;
  while (text.length - start > charsPerEscapedChunk) {
    separatorPattern.lastIndex = start + charsPerEscapedChunk;
    const end = separatorPattern.exec(text)?.index ?? text.length;
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}

/** Formats an ISO date for people and spreadsheet applications, e.g. `2026-06-14 12:30:05`. */
const formatIsoDateForSpreadsheet = (isoDate: string) =>
  isoDate.replace(/(?:T00:00:00)?(?:\.000)?Z$/, '').replace('T', ' ');

/**
 * Matches texts that must be quoted in CSV, because they contain a quotation mark, a line break, or a list separator of
 * some spreadsheet application.
 */
const quotedTextPattern = /[",;|\t\r\n]/;
/**
 * Matches texts that could call a function, e.g. `SUM(A1)`, or start another program through DDE (Dynamic Data
 * Exchange), e.g. `=cmd|…`.
 */
const functionCallPattern = /[|(]/;
/**
 * Matches the start of a text that a spreadsheet application would run as a formula, e.g. `=` or the full-width sign
 * `＝`. Apostrophes may precede the sign.
 */
const formulaStartPattern = /^(?='*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
/** Matches a list separator before a sign that could start a formula, e.g. the `;` in `;=` or in `;'=`. */
const embeddedFormulaPattern = /[;|\t\r\n]"*(?='*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/**
 * Like `embeddedFormulaPattern`, but does not match `+` and `-` before a space, because these signs usually mark list
 * items. Matches them after an apostrophe, because an import would otherwise remove this apostrophe.
 */
const embeddedFormulaExceptListItemPattern =
  /[;|\t\r\n]"*(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! )|'+[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

const createJsonLineFormatter = (columns: readonly string[]) => (row: readonly Cell[]) =>
  `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`;

type WriteBytes = (bytes: Uint8Array) => Promise<void>;
type YieldToEventLoop = ReturnType<typeof createEventLoopYielder>;

/** The maximum number of rows below the header of an Excel sheet. Source: "Excel specifications and limits". */
const maxSheetRows = 1_048_575;
/** The maximum number of characters in an Excel cell. Source: "Excel specifications and limits". */
const maxSheetCellChars = 32_767;
/** The largest integer that Excel stores exactly, because Excel has a precision of 15 digits. */
const maxExactExcelInteger = 999_999_999_999_999;
/**
 * The first date that Excel numbers correctly. Earlier dates are off by one, because Excel also counts 29 February
 * 1900, a day that never existed.
 */
const firstCorrectExcelDate = '1900-03-01';
/** The day number of 1 January 1970 in Excel, which counts days from the beginning of 1900. */
const excelDayNumberOf1970 = 25_569;

/**
 * A column of the result with its type. The type is known only after the last row, so the statement runs twice: first
 * to determine the types, then to write the rows.
 */
interface TypedColumn {
  name: string;
  type: DataColumnType;
  /** True if all dates in the column are at midnight. Such dates are formatted without a time. */
  hasOnlyDays: boolean;
  /** The length of the longest cell in characters, up to `maxColumnWidth`. */
  widthChars: number;
}

type DataColumnType = 'empty' | 'date' | 'integer' | 'number' | 'text';

const maxColumnWidth = 60;

/** Reads all rows of an SQL statement to determine the type of each column and to count the rows. */
async function readColumnTypes({ columns, rows }: SqlExport): Promise<{ columns: TypedColumn[]; rowCount: number }> {
  const typedColumns = columns.map(
    (name): TypedColumn => ({
      name,
      type: 'empty',
      hasOnlyDays: true,
      widthChars: Math.min(name.length + 3, maxColumnWidth),
    }),
  );
  let rowCount = 0;
  for await (const batch of rows) {
    rowCount += batch.length;
    for (const row of batch)
      for (const [index, column] of typedColumns.entries()) widenColumnForCell(column, row[index] ?? null);
  }
  return { columns: typedColumns, rowCount };
}

function widenColumnForCell(column: TypedColumn, cell: Cell): void {
  if (cell === null) return;
  const type = getCellType(cell);
  if (column.type === 'empty') column.type = type;
  else if (column.type !== type) column.type = isNumeric(column.type) && isNumeric(type) ? 'number' : 'text';
  if (type === 'date') column.hasOnlyDays &&= String(cell).endsWith('T00:00:00.000Z');
  if (column.widthChars < maxColumnWidth)
    column.widthChars = Math.max(column.widthChars, Math.min(String(cell).length, maxColumnWidth));
}

const isNumeric = (type: DataColumnType) => type === 'integer' || type === 'number';

function getCellType(cell: string | number): DataColumnType {
  if (typeof cell === 'number') return Number.isSafeInteger(cell) ? 'integer' : 'number';
  return isDate(cell) ? 'date' : 'text';
}

const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const isDate = (cell: Cell): cell is string =>
  typeof cell === 'string' &&
  datePattern.test(cell) &&
  cell >= firstCorrectExcelDate &&
  !Number.isNaN(Date.parse(cell));

/** Writes an Excel workbook with one sheet per statement, followed by the "Method" sheet. */
async function writeWorkbook(
  trackedStatements: readonly { summary: StatementSummary; runStatement: RunStatement }[],
  buildMethodRows: () => SheetCell[][],
  writeBytes: WriteBytes,
): Promise<void> {
  const { createWorkbookWriter } = await import('./workbook.ts');
  const workbook = createWorkbookWriter(writeBytes);
  for (const { summary, runStatement } of trackedStatements) {
    const { columns, rowCount } = await runStatement(readColumnTypes);
    if (rowCount > maxSheetRows)
      throw createInvalidRequestError(
        `A sheet of Excel holds ${maxSheetRows} rows below its header, and the statement gives ${rowCount}. Select fewer rows, or export them as csv or parquet.`,
      );
    await runStatement(({ rows }) => workbook.addSheet(buildSheet(columns, rows, summary)));
  }
  await workbook.addSheet({
    name: methodSheetName,
    columns: methodColumns,
    rowBatches: [buildMethodRows()],
    isTable: false,
  });
  await workbook.end();
}

/** The name of the last sheet of a workbook. No other sheet may have this name. */
export const methodSheetName = 'Method';
const methodColumns = [24, 48, 24, 12, 12, 12].map((width) => ({ title: '', width, style: 'plain' }) as const);

function buildSheet(columns: TypedColumn[], rowBatches: SqlExport['rows'], summary: StatementSummary): Sheet {
  summary.truncatedCellCount = 0;
  const toSheetCell = (cell: Cell, { type }: TypedColumn) => {
    if (cell === null || (typeof cell === 'number' && isExactInExcel(cell))) return cell;
    if (type === 'date' && isDate(cell)) return Date.parse(cell) / dayMs + excelDayNumberOf1970;
    const text = String(cell);
    if (text.length > maxSheetCellChars) summary.truncatedCellCount++;
    return text.slice(0, maxSheetCellChars);
  };
  async function* generateRows() {
    for await (const batch of rowBatches)
      yield batch.map((row) => columns.map((column, index) => toSheetCell(row[index] ?? null, column)));
  }
  return {
    name: summary.name,
    rowBatches: generateRows(),
    isTable: true,
    columns: columns.map(({ name, type, hasOnlyDays, widthChars }) => ({
      title: formatColumnTitle(name).slice(0, maxSheetCellChars),
      ...(type === 'date' ? { width: hasOnlyDays ? 13 : 20 } : { width: widthChars + 2 }),
      style: type !== 'date' ? 'plain' : hasOnlyDays ? 'day' : 'time',
    })),
  };
}

const isExactInExcel = (number: number) =>
  Number.isFinite(number) && (!Number.isInteger(number) || Math.abs(number) <= maxExactExcelInteger);

/**
 * The maximum number of cells in a Parquet row group. Row groups are small, because writing one blocks the event loop.
 */
const maxRowGroupCells = 40_000;
/** The maximum number of characters in a Parquet row group. */
const maxRowGroupChars = 2_000_000;

/** Writes rows to a Parquet file, one row group at a time. */
async function writeParquet(
  columns: TypedColumn[],
  rowBatches: SqlExport['rows'],
  writeBytes: WriteBytes,
): Promise<void> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer');
  const types = columns.map(({ type }) => parquetTypes[type]);
  const buildColumnData = (rows: readonly Cell[][]) =>
    columns.map(({ name, type }, index) => ({
      name,
      type: types[index] as (typeof parquetTypes)[DataColumnType],
      data: rows.map((row) => toParquetCell(row[index] ?? null, type)),
      nullable: true,
    }));
  const writer = new ByteWriter();
  const file = new ParquetWriter({ writer, schema: schemaFromColumnData({ columnData: buildColumnData([]) }) });
  const flush = async () => {
    const bytes = writer.getBytes().slice();
    writer.index = 0;
    await writeBytes(bytes);
  };
  let rowGroup: Cell[][] = [];
  let groupChars = 0;
  const writeGroup = async () => {
    if (rowGroup.length > 0) file.write({ columnData: buildColumnData(rowGroup), rowGroupSize: rowGroup.length });
    rowGroup = [];
    groupChars = 0;
    await flush();
  };
  for await (const batch of rowBatches) {
    for (const row of batch) {
      rowGroup.push(row);
      groupChars += countCellChars(row);
      if (rowGroup.length * columns.length >= maxRowGroupCells || groupChars >= maxRowGroupChars) await writeGroup();
    }
  }
  await writeGroup();
  file.finish();
  await flush();
}

const parquetTypes = {
  empty: 'STRING',
  text: 'STRING',
  date: 'TIMESTAMP',
  integer: 'INT64',
  number: 'DOUBLE',
} as const satisfies Record<DataColumnType, string>;

function toParquetCell(cell: Cell, type: DataColumnType): string | number | bigint | Date | null {
  if (cell === null) return null;
  if (type === 'text') return String(cell);
  if (type === 'date' && isDate(cell)) return new Date(cell);
  if (type === 'integer' && Number.isSafeInteger(cell)) return BigInt(cell);
  if (type === 'number' && typeof cell === 'number') return cell;
  throw createInvalidRequestError('The statement gives different rows each time it runs. Leave out random().');
}
