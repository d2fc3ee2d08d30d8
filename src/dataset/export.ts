import { invalidRequest } from '../api/errors.ts';
import { count } from '../present/lists.ts';
import type { DatasetContents } from '../state/dataset.ts';
import { type CoverageView, uncoveredText } from './coverage.ts';
import { countOutside, questionJson, type WholeGathering, wholeOf } from './gatherings.ts';
import type { SqlExport } from './sql/pool.ts';
import { type Cell, columnsOf, describedColumns, isoTime } from './tables.ts';

export type ExportFormat = 'csv' | 'jsonl' | TypedFormat;

/** Runs the statement from its beginning and hands over its rows. */
export type RunStatement = <Result>(read: (exported: SqlExport) => Promise<Result>) => Promise<Result>;

export interface ExportCounts {
  rows: number;
  /** Cells of a sheet that were cut. */
  cut: number;
  /** The values of the column `id` or `adId`, if there is one. */
  ids: Set<Cell> | undefined;
}

interface ExportTarget {
  format: ExportFormat;
  /** Takes the next bytes; the next rows are read when it is done with them. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** An export that would be larger fails. */
  maxBytes: number;
}

/** Every ad of the dataset, all columns but `json`. */
export const everyAdSql = `SELECT ${columnsOf('ads')
  .filter((name) => name !== 'json')
  .join(', ')} FROM ads ORDER BY rowid`;

/** Writes the rows of a statement as they come, never all of them at once in memory. */
export async function writeExport(run: RunStatement, { format, ...target }: ExportTarget): Promise<ExportCounts> {
  let bytes = 0;
  const write = async (part: Uint8Array) => {
    bytes += part.length;
    if (bytes > target.maxBytes) {
      throw invalidRequest(`The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`);
    }
    await target.write(part);
  };
  const counts: ExportCounts = { rows: 0, cut: 0, ids: undefined };
  const counted: RunStatement = (read) => run((exported) => read({ ...exported, rows: countRows(exported, counts) }));
  if (format === 'csv' || format === 'jsonl') {
    await counted(({ columns, rows }) => writeText(format, { columns, rows }, (text) => write(Buffer.from(text))));
  } else {
    counts.cut = await writeTyped(format, counted, write);
  }
  return counts;
}

/** Starts counting again at the first row. */
async function* countRows({ columns, rows }: SqlExport, counts: ExportCounts): SqlExport['rows'] {
  const [column] = columns.flatMap((name, index) => (name === 'id' || name === 'adId' ? [index] : []));
  counts.rows = 0;
  counts.ids = column === undefined ? undefined : new Set();
  for await (const batch of rows) {
    counts.rows += batch.length;
    if (column !== undefined) for (const row of batch) counts.ids?.add(row[column] ?? null);
    yield batch;
  }
}

async function writeText(
  format: 'csv' | 'jsonl',
  { columns, rows }: SqlExport,
  write: (text: string) => Promise<void>,
): Promise<void> {
  if (format === 'csv') await write(`${byteOrderMark}${csvOf([columns])}`);
  for await (const batch of rows) {
    if (batch.length > 0) await write(format === 'csv' ? csvOf(batch) : jsonLinesOf(batch, columns));
  }
}

/** So that spreadsheets read UTF-8. */
const byteOrderMark = '\ufeff';

/** RFC 4180, and in quotes whatever one of the separators of spreadsheets would cut. */
const csvOf = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${withoutFormulas(row).map(csvCell).join()}\r\n`).join('');

function csvCell(cell: Cell): string {
  const text = String(cell ?? '');
  return /[",;|\t\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/**
 * An apostrophe before what a spreadsheet would run as a formula. With another list separator than ours it sees no
 * quotes, and begins cells inside of a text, which go on into our next cells. In a row that calls nothing, a line
 * `- of a list` is harmless, and stays as it is.
 */
function withoutFormulas(row: readonly Cell[]): Cell[] {
  const inside = row.some((cell) => typeof cell === 'string' && call.test(cell)) ? anySign : anySignButOfLists;
  return row.map((cell) => (typeof cell === 'string' ? cell.replace(formula, "'").replace(inside, "$&'") : cell));
}

const call = /[|(]/;
const formula = /^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
const anySign = /[;|\t\r\n]"*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const anySignButOfLists = /[;|\t\r\n]"*(?=[=@\uff1d\uff0b\uff0d\uff20]|[+-](?! ))/g;

const jsonLinesOf = (rows: readonly (readonly Cell[])[], columns: readonly string[]): string =>
  rows
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`)
    .join('');

/**
 * Files whose columns have types: Excel's sheets and Parquet. What a column holds is known only after its last row, so
 * the statement runs twice: once to learn the types, once to write. Only a few rows are in memory at a time.
 */
type TypedFormat = 'xlsx' | 'parquet';

type Write = (bytes: Uint8Array) => Promise<void>;

/** @returns how many cells of a sheet were cut. */
async function writeTyped(format: TypedFormat, run: RunStatement, write: Write): Promise<number> {
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

interface MethodsNote {
  contents: DatasetContents;
  coverage: CoverageView;
  sql: string;
  rows: number;
  /** Ids of the ads in the rows, as `idKey` writes them, where these are known. */
  adIds?: ReadonlySet<string> | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  version: string;
}

/** The note beside an export, as Markdown: questions, dates, totals, coverage. */
export function methodsNote({ contents, coverage, sql, rows, adIds, now, version }: MethodsNote): string {
  const { ads, pages, evicted } = contents;
  const gatherings = contents.gatherings
    .map((gathering) => wholeOf(gathering, contents))
    .filter((gathering) => !adIds || [...gathering.adIds].some((id) => adIds.has(id)));
  const others = contents.gatherings.length - gatherings.length;
  const outside = countOutside(contents);
  return `# How these ads were gathered

Exported ${isoTime(now)} by ad-library-mcp ${version}: ${rows} rows from ${ads.length} ads and ${pages.length} pages.

## Statement

${indented(sql)}

## Gatherings

${gatherings.length === 0 && others === 0 ? 'None: the ads are those that searches happened to show. Shares and totals say nothing about all ads there are.' : [tableHead, ...gatherings.map(tableRow)].join('\n')}
${others > 0 ? `\n${count(others, 'other gathering')} of the dataset read none of these ads.\n` : ''}${outside > 0 ? `\n${outside} of the ads came only from searches or earlier gatherings. The newest gathering of each question does not have them.${uncoveredText(coverage)}\n` : ''}${evicted.ads > 0 ? `\n${evicted.ads} ads were removed to make room.\n` : ''}
## What to keep in mind

- "Found" is the total that the service gave, "read" the number of different ads that were read. A gathering that is not complete is a part of what there is, in the service's order, and no random sample.
- Each ad is in its newest version. A field that a later answer left out keeps its earlier value.
${describedColumns()
  .flatMap(({ name, meaning }) => (meaning === undefined ? [] : `- \`${name}\`: ${meaning}.\n`))
  .join(
    '',
  )}- \`duplicates\`: copies of the ad, itself included. Dates are in UTC; one that came without an offset counts as UTC.
- Reach, spend, revenue, trend and performance are the service's own estimates; its document does not define them.
- An ad that is no longer found has not necessarily ended.
`;
}

const indented = (sql: string) => sql.trim().replace(/^/gm, '    ');

const tableHead = '| gathering | question | gathered | found | read | complete |\n|---|---|---|---|---|---|';

function tableRow(gathering: WholeGathering): string {
  const { id, gatheredAt, found, foundInParts, adIds, complete } = gathering;
  const cells = [
    id,
    `\`${questionJson(gathering).replace(/[`|\n\r]/g, ' ')}\``,
    isoTime(gatheredAt),
    found ?? foundInParts ?? 'not stated',
    adIds.size,
    complete ? 'yes' : 'no',
  ];
  return `| ${cells.join(' | ')} |`;
}
