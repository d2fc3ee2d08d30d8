import { invalidRequest } from '../api/errors.ts';
import { formatColumnTitle } from '../views/column-title.ts';
import { dayMs } from '../views/durations.ts';
import { createEventLoopYielder } from '../workers/event-loop-yielder.ts';
import type { SqlExport } from './sql/pool.ts';
import { type Cell, getColumnNames, measureCells } from './tables.ts';
import type { Sheet, SheetCell } from './workbook.ts';

export type ExportFormat = 'csv' | 'jsonl' | 'xlsx' | 'parquet';

/** Runs the statement from its beginning and hands over its rows. */
export type RunStatement = <Result>(read: (exported: SqlExport) => Promise<Result>) => Promise<Result>;

export interface Statement {
  name: string;
  sql: string;
  run: RunStatement;
}

export interface ExportCounts extends Omit<Statement, 'run'> {
  columns: readonly string[];
  rowCount: number;
  firstRows: Cell[][];
  truncatedCells: number;
  /** The values of the column `id` or `adId`, if there is one. They need not be ids of ads. */
  ids: Set<Cell> | undefined;
}

interface ExportTarget {
  format: ExportFormat;
  /** Takes the next bytes; the next rows are read when it is done with them. */
  write(bytes: Uint8Array): void | Promise<void>;
  maxBytes: number;
  /** The rows of the last sheet of a workbook, when the others are written. */
  method(counts: readonly ExportCounts[]): SheetCell[][];
}

export const allAdsSql = `SELECT ${getColumnNames('ads')
  .filter((name) => name !== 'json')
  .join(', ')} FROM ads ORDER BY rowid`;

/** Writes the rows of statements as they come, never all of them at once in memory: several as sheets of a workbook. */
export async function writeExport(statements: readonly Statement[], { format, method, ...target }: ExportTarget) {
  let bytes = 0;
  const write = async (part: Uint8Array) => {
    bytes += part.length;
    if (bytes > target.maxBytes) {
      throw invalidRequest(`The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`);
    }
    await target.write(part);
  };
  const all = statements.map(({ run, ...about }): { counts: ExportCounts; run: RunStatement } => {
    const counts: ExportCounts = {
      ...about,
      columns: [],
      rowCount: 0,
      firstRows: [],
      truncatedCells: 0,
      ids: undefined,
    };
    return { counts, run: (read) => run((exported) => read({ ...exported, rows: countRows(exported, counts) })) };
  });
  const counts = all.map(({ counts }) => counts);
  if (format === 'xlsx') {
    await writeWorkbook(all, () => method(counts), write);
    return counts;
  }
  for (const { run } of all) {
    if (format === 'parquet')
      await run(readTypes).then(({ columns }) => run(({ rows }) => writeParquet(columns, rows, write)));
    else await run((exported) => writeText(format, exported, write));
  }
  return counts;
}

const maxFirst = 3;

/** Starts counting again at the first row. */
async function* countRows({ columns, rows }: SqlExport, counts: ExportCounts): SqlExport['rows'] {
  const column = columns.findIndex((name) => name === 'id' || name === 'adId');
  const ids: ExportCounts['ids'] = column < 0 ? undefined : new Set();
  Object.assign(counts, { columns, rowCount: 0, firstRows: [], ids } satisfies Partial<ExportCounts>);
  for await (const batch of rows) {
    counts.firstRows.push(...batch.slice(0, maxFirst - counts.firstRows.length));
    counts.rowCount += batch.length;
    for (const row of batch) counts.ids?.add(row[column] ?? null);
    yield batch;
  }
}

async function writeText(format: 'csv' | 'jsonl', { columns, rows }: SqlExport, write: Write): Promise<void> {
  const pause = createEventLoopYielder();
  const lineOf = format === 'csv' ? (row: readonly Cell[]) => csvLine(row, pause) : jsonLine(columns);
  if (format === 'csv')
    await write(Buffer.from(`${byteOrderMark}${await csvLine(columns.map(formatColumnTitle), pause)}`));
  for await (const batch of rows) {
    const lines: string[] = [];
    for (const row of batch) {
      lines.push(await lineOf(row));
      await pause();
    }
    if (lines.length > 0) await write(Buffer.from(lines.join('')));
  }
}

/** So that spreadsheets read UTF-8. */
const byteOrderMark = '\ufeff';

/** Returns a line by RFC 4180. Quotes are also around texts that any list separator of a spreadsheet would cut. */
async function csvLine(row: readonly Cell[], pause: Pause): Promise<string> {
  const signs = row.some((cell) => typeof cell === 'string' && call.test(cell)) ? anySign : anySignButOfLists;
  const cells: string[] = [];
  for (const cell of row) cells.push(typeof cell === 'string' ? await csvText(cell, signs, pause) : String(cell ?? ''));
  return `${cells.join()}\r\n`;
}

/**
 * Returns a text as a cell of CSV, with an apostrophe before each place that a spreadsheet would run as a formula. A
 * spreadsheet with another list separator does not see our quotes: it begins cells inside of a text, which go on into
 * our next cells. If no cell of the row calls a function, lines such as `- of a list` are harmless and stay as they are.
 */
async function csvText(cell: string, signs: RegExp, pause: Pause): Promise<string> {
  if (isDate(cell)) return writtenDate(cell);
  const pieces: string[] = [];
  for (const piece of piecesOf(cell)) {
    pieces.push(piece.replace(signs, "$&'").replaceAll('"', '""'));
    if (piece.length > shortChars) await pause();
  }
  const text = `${formula.test(cell) ? "'" : ''}${pieces.join('')}`;
  return needsQuotes.test(cell) ? `"${text}"` : text;
}

/** Escaping a text of so many signs takes a few milliseconds, and one of fewer than `shortChars` next to nothing. */
const pieceChars = 32_768;
const shortChars = 1000;

/** Cuts a long text before list separators, because what `signs` match begins with one and holds no other. */
function* piecesOf(text: string): Generator<string> {
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

/** As a person and a spreadsheet write it, in UTC. */
const writtenDate = (date: string) => date.replace(/(?:T00:00:00)?(?:\.000)?Z$/, '').replace('T', ' ');

const needsQuotes = /[",;|\t\r\n]/;
const call = /[|(]/;
const formula = /^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
const anySign = /[;|\t\r\n]"*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const anySignButOfLists = /[;|\t\r\n]"*(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! ))/g;

const jsonLine = (columns: readonly string[]) => (row: readonly Cell[]) =>
  `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`;

type Write = (bytes: Uint8Array) => Promise<void>;
type Pause = ReturnType<typeof createEventLoopYielder>;

/** Excel's specifications and limits. */
const maxSheetRows = 1_048_575;
const maxSheetCell = 32_767;
/** A number with more digits would be rounded by Excel. */
const maxSheetInteger = 999_999_999_999_999;
/** Excel counts a day of 1900 that never existed; later dates are right. */
const firstSheetDate = '1900-03-01';
/** A date is the number of days since its first. */
const daysTo1970 = 25_569;

/** What a column holds is known only after its last row, so the statement runs twice: for types, then to write. */
interface TypedColumn {
  name: string;
  type: ColumnType;
  /** All its dates are at midnight. */
  days: boolean;
  /** Characters of the longest cell, up to the width that a column may have. */
  width: number;
}

type ColumnType = 'nothing' | 'date' | 'integer' | 'number' | 'text';

const maxWidth = 60;

async function readTypes({ columns, rows }: SqlExport): Promise<{ columns: TypedColumn[]; rows: number }> {
  const typed = columns.map(
    (name): TypedColumn => ({ name, type: 'nothing', days: true, width: Math.min(name.length + 3, maxWidth) }),
  );
  let count = 0;
  for await (const batch of rows) {
    count += batch.length;
    for (const row of batch) for (const [index, column] of typed.entries()) addCell(column, row[index] ?? null);
  }
  return { columns: typed, rows: count };
}

function addCell(column: TypedColumn, cell: Cell): void {
  if (cell === null) return;
  const type = typeOf(cell);
  if (column.type === 'nothing') column.type = type;
  else if (column.type !== type) column.type = isNumeric(column.type) && isNumeric(type) ? 'number' : 'text';
  if (type === 'date') column.days &&= String(cell).endsWith('T00:00:00.000Z');
  if (column.width < maxWidth) column.width = Math.max(column.width, Math.min(String(cell).length, maxWidth));
}

const isNumeric = (type: ColumnType) => type === 'integer' || type === 'number';

function typeOf(cell: string | number): ColumnType {
  if (typeof cell === 'number') return Number.isSafeInteger(cell) ? 'integer' : 'number';
  return isDate(cell) ? 'date' : 'text';
}

const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const isDate = (cell: Cell): cell is string =>
  typeof cell === 'string' && datePattern.test(cell) && cell >= firstSheetDate && !Number.isNaN(Date.parse(cell));

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
    await run(({ rows }) => workbook.addSheet(sheetOf(columns, rows, counts)));
  }
  await workbook.addSheet({ name: methodSheetName, columns: methodColumns, rows: [method()], isTable: false });
  await workbook.end();
}

export const methodSheetName = 'Method';
const methodColumns = [24, 48, 24, 12, 12, 12].map((width) => ({ title: '', width, style: 'plain' }) as const);

function sheetOf(columns: TypedColumn[], batches: SqlExport['rows'], counts: ExportCounts): Sheet {
  counts.truncatedCells = 0;
  const cellOf = (cell: Cell, { type }: TypedColumn) => {
    if (cell === null || (typeof cell === 'number' && isSheetNumber(cell))) return cell;
    if (type === 'date' && isDate(cell)) return Date.parse(cell) / dayMs + daysTo1970;
    const text = String(cell);
    if (text.length > maxSheetCell) counts.truncatedCells++;
    return text.slice(0, maxSheetCell);
  };
  async function* rows() {
    for await (const batch of batches)
      yield batch.map((row) => columns.map((column, index) => cellOf(row[index] ?? null, column)));
  }
  return {
    name: counts.name,
    rows: rows(),
    isTable: true,
    columns: columns.map(({ name, type, days, width }) => ({
      title: formatColumnTitle(name).slice(0, maxSheetCell),
      ...(type === 'date' ? { width: days ? 13 : 20 } : { width: width + 2 }),
      style: type !== 'date' ? 'plain' : days ? 'day' : 'time',
    })),
  };
}

const isSheetNumber = (number: number) =>
  Number.isFinite(number) && (!Number.isInteger(number) || Math.abs(number) <= maxSheetInteger);

/** The most cells and characters of a row group. Other callers wait while a group is written, so groups are small. */
const groupCells = 40_000;
const groupChars = 2_000_000;

async function writeParquet(columns: TypedColumn[], batches: SqlExport['rows'], write: Write): Promise<void> {
  const { ByteWriter, ParquetWriter, schemaFromColumnData } = await import('hyparquet-writer');
  const types = columns.map(({ type }) => parquetTypes[type]);
  const columnData = (rows: readonly Cell[][]) =>
    columns.map(({ name, type }, index) => ({
      name,
      type: types[index] as (typeof parquetTypes)[ColumnType],
      data: rows.map((row) => parquetCell(row[index] ?? null, type)),
      nullable: true,
    }));
  const writer = new ByteWriter();
  const file = new ParquetWriter({ writer, schema: schemaFromColumnData({ columnData: columnData([]) }) });
  const flush = async () => {
    const bytes = writer.getBytes().slice();
    writer.index = 0;
    await write(bytes);
  };
  let group: Cell[][] = [];
  let size = 0;
  const writeGroup = async () => {
    if (group.length > 0) file.write({ columnData: columnData(group), rowGroupSize: group.length });
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

function parquetCell(cell: Cell, type: ColumnType): string | number | bigint | Date | null {
  if (cell === null) return null;
  if (type === 'text') return String(cell);
  if (type === 'date' && isDate(cell)) return new Date(cell);
  if (type === 'integer' && Number.isSafeInteger(cell)) return BigInt(cell);
  if (type === 'number' && typeof cell === 'number') return cell;
  throw invalidRequest('The statement gives different rows each time it runs. Leave out random().');
}
