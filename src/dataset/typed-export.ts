import { invalidRequest } from '../api/call.ts';
import type { SqlExport } from './sql/pool.ts';
import type { Cell } from './tables.ts';

/**
 * Files whose columns have types: Excel's sheets and Parquet. What a column holds is known only after its last row, so
 * the statement runs twice: once to learn the types, once to write. Only a few rows are in memory at a time.
 */
export type TypedFormat = 'xlsx' | 'parquet';

/** Runs the statement from its beginning and hands over its rows. */
export type RunStatement = <Result>(read: (exported: SqlExport) => Promise<Result>) => Promise<Result>;

type Write = (bytes: Uint8Array) => Promise<void>;

/** @returns how many cells of a sheet were cut. */
export async function writeTyped(format: TypedFormat, run: RunStatement, write: Write): Promise<number> {
  const { columns, rows } = await run(readTypes);
  if (format === 'xlsx' && rows > maxSheetRows) {
    throw invalidRequest(
      `A sheet of Excel holds ${maxSheetRows} rows below its header, and the statement gives ${rows}. Select fewer rows, or export them as csv or parquet.`,
    );
  }
  return await run(({ rows }) => (format === 'xlsx' ? writeSheet : writeParquet)(columns, rows, write));
}

/** Excel's specifications and limits. */
const maxSheetRows = 1_048_575;
const maxSheetCell = 32_767;
/** A number with more digits would be rounded by Excel. */
const maxSheetInteger = 999_999_999_999_999;
/** Excel counts a day of 1900 that never existed; later dates are right. */
const firstSheetDate = '1900-03-01';
/** A date is the number of days since its first. */
const daysTo1970 = 25_569;
const dayMs = 86_400_000;

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
    (name): TypedColumn => ({ name, type: 'nothing', days: true, width: Math.min(name.length, maxWidth) }),
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
  column.type = column.type === 'nothing' || column.type === type ? type : commonType(column.type, type);
  if (type === 'date') column.days &&= String(cell).endsWith('T00:00:00.000Z');
  else if (column.width < maxWidth) column.width = Math.max(column.width, Math.min(String(cell).length, maxWidth));
}

const isNumeric = (type: ColumnType) => type === 'integer' || type === 'number';

const commonType = (one: ColumnType, other: ColumnType): ColumnType =>
  isNumeric(one) && isNumeric(other) ? 'number' : 'text';

function typeOf(cell: string | number): ColumnType {
  if (typeof cell === 'number') return Number.isSafeInteger(cell) ? 'integer' : 'number';
  return isDate(cell) ? 'date' : 'text';
}

/** As the dataset writes dates. */
const datePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const isDate = (text: string) => datePattern.test(text) && text >= firstSheetDate && !Number.isNaN(Date.parse(text));

/** Dates as dates, numbers as numbers, texts as texts and never as formulas; a header that stays. */
async function writeSheet(columns: TypedColumn[], batches: SqlExport['rows'], write: Write): Promise<number> {
  const { writeXlsxStream } = await import('hucre/xlsx');
  let cut = 0;
  async function* rows() {
    for await (const batch of batches) {
      for (const row of batch) yield columns.map((column, index) => sheetCell(row[index] ?? null, column.type));
    }
  }
  function sheetCell(cell: Cell, type: ColumnType) {
    if (cell === null || (typeof cell === 'number' && isSheetNumber(cell))) return cell;
    const text = String(cell);
    if (type === 'date' && isDate(text)) return Date.parse(text) / dayMs + daysTo1970;
    if (text.length > maxSheetCell) cut++;
    return sheetText(text);
  }
  const sheet = writeXlsxStream(rows(), {
    name: 'ads',
    freezePane: { rows: 1 },
    columns: columns.map(({ name, type, days, width }) => ({
      header: sheetText(name),
      ...(type === 'date'
        ? { width: days ? 12 : 20, numFmt: days ? 'yyyy-mm-dd' : 'yyyy-mm-dd hh:mm:ss' }
        : { width: width + 2 }),
    })),
  });
  for await (const part of sheet) await write(part);
  return cut;
}

const isSheetNumber = (number: number) =>
  Number.isFinite(number) && (!Number.isInteger(number) || Math.abs(number) <= maxSheetInteger);

/** Removes what XML cannot hold, and escapes `_x0041_`, which a sheet would read as the letter A. */
const sheetText = (text: string): string =>
  text.slice(0, maxSheetCell).replace(unwritable, '').replace(escapeLike, '_x005F_');

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out.
const unwritable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const escapeLike = /_(?=x[0-9a-f]{4}_)/gi;

/** Rows that are written at once, and characters after which they are written, however few they are. */
const groupRows = 20_000;
const groupSize = 8_000_000;

async function writeParquet(columns: TypedColumn[], batches: SqlExport['rows'], write: Write): Promise<number> {
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
      size += row.reduce<number>((sum, cell) => sum + (typeof cell === 'string' ? cell.length : 8), 0);
      if (group.length >= groupRows || size >= groupSize) await writeGroup();
    }
  }
  await writeGroup();
  file.finish();
  await flush();
  return 0;
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
  if (type === 'date' && typeof cell === 'string' && isDate(cell)) return new Date(cell);
  if (type === 'integer' && Number.isSafeInteger(cell)) return BigInt(cell);
  if (type === 'number' && typeof cell === 'number') return cell;
  throw invalidRequest('The statement gives different rows each time it runs. Leave out random().');
}
