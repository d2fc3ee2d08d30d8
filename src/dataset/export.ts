import { stringify } from 'csv-stringify/sync';
import { invalidRequest } from '../api/errors.ts';
import { type Cell, columnsOf } from './columns.ts';
import type { SqlExport } from './sql/sql-pool.ts';

export type ExportFormat = 'csv' | 'jsonl';

export interface ExportCounts {
  rows: number;
  bytes: number;
}

export interface ExportTarget {
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
export async function writeExport(exported: SqlExport, target: ExportTarget): Promise<ExportCounts> {
  const { columns } = exported;
  const counts = { rows: 0, bytes: 0 };
  const write = async (part: string) => {
    const bytes = Buffer.from(part);
    counts.bytes += bytes.length;
    if (counts.bytes > target.maxBytes) {
      throw invalidRequest(`The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`);
    }
    await target.write(bytes);
  };
  if (target.format === 'csv') await write(`${BYTE_ORDER_MARK}${csvOf([columns])}`);
  for await (const batch of exported.rows) {
    if (batch.length > 0) await write(target.format === 'csv' ? csvOf(batch) : jsonLinesOf(batch, columns));
    counts.rows += batch.length;
  }
  return counts;
}

/** So that spreadsheets read UTF-8. */
const BYTE_ORDER_MARK = '\ufeff';

/** RFC 4180, and in quotes whatever one of the separators of spreadsheets would cut. */
const csvOf = (rows: readonly (readonly Cell[])[]): string =>
  stringify(
    rows.map((row) => row.map(withoutFormula)),
    { record_delimiter: 'windows', quoted_match: /[;|\t\r\n]/ },
  );

/**
 * An apostrophe before what a spreadsheet would run as a formula. With another list separator than ours it sees no
 * quotes, and begins cells inside of a text; there a line `- of a list` that calls nothing stays as it is.
 */
const withoutFormula = (cell: Cell): Cell =>
  typeof cell === 'string' ? cell.replace(FORMULA, "'").replace(FORMULA_WITHIN, "$1'") : cell;

const FORMULA = /^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
const FORMULA_WITHIN = /([;|\t\r\n]"*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])(?![+-] [^|(\r\n]*$)/gm;

const jsonLinesOf = (rows: readonly (readonly Cell[])[], columns: readonly string[]): string =>
  rows
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`)
    .join('');
