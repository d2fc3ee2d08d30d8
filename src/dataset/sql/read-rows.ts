import { sanitizeLine } from '../../present/safe-text.ts';
import type { Cell } from '../columns.ts';
import { cellText } from './cell-text.ts';
import type { Interruption, PreparedSql } from './engine.ts';
import { resultLimits } from './limits.ts';
import { SqlFailure } from './problem.ts';

export interface QueryOptions {
  /** Rows to give, not to count. */
  limit: number;
  /** Characters of a cell. */
  cell: number;
}

export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** Of the whole result; null where that is not known, or past 100,000. */
  rowCount: number | null;
  truncated: boolean;
}

/** Runs a statement to its end, or as far as rows are counted. */
export function readResult(prepared: PreparedSql, options: QueryOptions, interruption: Interruption): SqlResult {
  const reader = new RowReader(prepared, interruption);
  const rows: Cell[][] = [];
  let left = resultLimits.chars;
  let count = 0;
  for (; count <= resultLimits.countedRows; count++) {
    if (!reader.step()) return { columns: reader.columns(), rows, rowCount: count, truncated: count > rows.length };
    if (rows.length < options.limit && rows.length === count && left > 0) {
      const row = reader.row((text) => cellText(text, options.cell));
      for (const cell of row) left -= typeof cell === 'string' ? cell.length : 8;
      rows.push(row);
    }
  }
  return { columns: reader.columns(), rows, rowCount: null, truncated: true };
}

/** Steps through the rows of a statement. */
export class RowReader {
  readonly #prepared: PreparedSql;
  readonly #interruption: Interruption;
  readonly #count: number;

  constructor(prepared: PreparedSql, interruption: Interruption) {
    this.#prepared = prepared;
    this.#interruption = interruption;
    this.#count = prepared.capi.sqlite3_column_count(prepared.statement);
  }

  /** Names as a reader can tell them apart and trust them. */
  columns(): string[] {
    const { capi, statement } = this.#prepared;
    const names = Array.from({ length: this.#count }, (_, index) => {
      const name = sanitizeLine(capi.sqlite3_column_name(statement, index) ?? '');
      return cellText(name, MAX_NAME) || `column ${index + 1}`;
    });
    return names.map((name, index) => (names.indexOf(name) === index ? name : `${name} (${index + 1})`));
  }

  /** Whether there is another row. */
  step(): boolean {
    const { capi, statement, failure } = this.#prepared;
    const code = capi.sqlite3_step(statement);
    if (code === capi.SQLITE_ROW) return true;
    if (code === capi.SQLITE_DONE) return false;
    throw failure();
  }

  row(asText: (text: string) => string): Cell[] {
    return Array.from({ length: this.#count }, (_, index) => {
      // Long cells take time that the engine does not count.
      const reason = this.#interruption();
      if (reason) throw new SqlFailure({ reason });
      return this.#cell(index, asText);
    });
  }

  #cell(index: number, asText: (text: string) => string): Cell {
    const { capi, statement } = this.#prepared;
    const type = capi.sqlite3_column_type(statement, index);
    if (type === capi.SQLITE_NULL) return null;
    if (type === capi.SQLITE_INTEGER) return exact(capi.sqlite3_column_int64(statement, index));
    if (type === capi.SQLITE_FLOAT) return finite(capi.sqlite3_column_double(statement, index));
    const bytes = this.#bytes(index);
    return asText(type === capi.SQLITE_TEXT ? utf8.decode(bytes) : blobText(bytes));
  }

  #bytes(index: number): Uint8Array {
    const { capi, wasm, statement } = this.#prepared;
    const start = capi.sqlite3_column_blob(statement, index) as number;
    return wasm.heap8u().slice(start, start + capi.sqlite3_column_bytes(statement, index));
  }
}

const MAX_NAME = 80;
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** A whole number too large for JSON keeps its digits as a text. */
function exact(value: bigint | number): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

const finite = (value: number): number | string =>
  Number.isFinite(value) ? value : value > 0 ? 'Infinity' : '-Infinity';

const MAX_BLOB = 10_000;

function blobText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.subarray(0, MAX_BLOB)).toString('hex');
  return `x'${hex}${bytes.length > MAX_BLOB ? `… (+${bytes.length - MAX_BLOB} bytes)` : "'"}`;
}
