import type { Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import type { Cell } from '../columns.ts';

type Exports = Record<
  'sqlite3_bind_text' | 'sqlite3_bind_double' | 'sqlite3_bind_null',
  (...values: number[]) => number
>;

const SQLITE_STATIC = 0;
const BYTES_PER_CHAR = 3;

/** Writes rows with an INSERT statement. All texts of a row lie side by side in memory that the next row takes over. */
export class RowWriter {
  readonly #sqlite: Pick<Sqlite3Static, 'capi' | 'wasm'>;
  readonly #statement: number;
  readonly #exports: Exports;
  readonly #encoder = new TextEncoder();
  #buffer = 0;
  #size = 0;

  constructor(sqlite: Pick<Sqlite3Static, 'capi' | 'wasm'>, statement: number) {
    this.#sqlite = sqlite;
    this.#statement = statement;
    this.#exports = sqlite.wasm.exports as unknown as Exports;
  }

  /** The engine's result code. */
  write(row: readonly Cell[]): number {
    const { capi } = this.#sqlite;
    const heap = this.#roomFor(row);
    if (!heap) return capi.SQLITE_NOMEM;
    let at = this.#buffer;
    for (const [index, cell] of row.entries()) {
      if (typeof cell === 'string') {
        const { written } = this.#encoder.encodeInto(cell, heap.subarray(at));
        this.#exports.sqlite3_bind_text(this.#statement, index + 1, at, written, SQLITE_STATIC);
        at += written;
      } else if (cell === null) this.#exports.sqlite3_bind_null(this.#statement, index + 1);
      else this.#exports.sqlite3_bind_double(this.#statement, index + 1, cell);
    }
    const code = capi.sqlite3_step(this.#statement);
    capi.sqlite3_reset(this.#statement);
    return code;
  }

  close(): void {
    this.#sqlite.capi.sqlite3_finalize(this.#statement);
    this.#sqlite.wasm.dealloc(this.#buffer);
  }

  #roomFor(row: readonly Cell[]): Uint8Array | undefined {
    const { wasm } = this.#sqlite;
    let needed = 8;
    for (const cell of row) if (typeof cell === 'string') needed += BYTES_PER_CHAR * cell.length;
    if (needed > this.#size) {
      wasm.dealloc(this.#buffer);
      this.#size = 0;
      this.#buffer = wasm.alloc.impl(needed);
      if (this.#buffer === 0) return;
      this.#size = needed;
    }
    return wasm.heap8u();
  }
}
