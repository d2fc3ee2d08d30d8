/** What a statement may use. All of it is enforced by the engine, none of it by looking at the statement's text. */
export interface StatementLimits {
  /** How long a statement may compute. */
  statementMs: number;
  /** How long an export may compute in all; each batch of its rows is a statement's work. */
  exportMs: number;
  /** Memory for sorting, grouping and putting texts together, beside what the tables themselves take. */
  workingBytes: number;
  /** Memory for the tables. */
  tableBytes: number;
}

export const statementLimits: StatementLimits = {
  statementMs: 2000,
  exportMs: 30_000,
  workingBytes: 128 * 2 ** 20,
  tableBytes: 768 * 2 ** 20,
};

/** SQLite's run-time limits, by the name it gives them. */
export const engineLimits = {
  /** Of a text or a blob, and of a row. */
  SQLITE_LIMIT_LENGTH: 2_000_000,
  SQLITE_LIMIT_SQL_LENGTH: 100_000,
  SQLITE_LIMIT_COLUMN: 200,
  SQLITE_LIMIT_EXPR_DEPTH: 100,
  SQLITE_LIMIT_PARSER_DEPTH: 200,
  SQLITE_LIMIT_COMPOUND_SELECT: 50,
  SQLITE_LIMIT_VDBE_OP: 50_000,
  SQLITE_LIMIT_FUNCTION_ARG: 100,
  SQLITE_LIMIT_ATTACHED: 0,
  SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
  SQLITE_LIMIT_VARIABLE_NUMBER: 0,
  SQLITE_LIMIT_TRIGGER_DEPTH: 1,
  SQLITE_LIMIT_WORKER_THREADS: 0,
} as const;

export const resultLimits = {
  /** Characters of the statement, as the contract gives them. */
  sqlChars: 20_000,
  rows: 50,
  maxRows: 1000,
  cell: 160,
  maxCell: 20_000,
  /** Rows past these are not counted. */
  countedRows: 100_000,
  /** Characters of all cells of a result together: rows past these are counted, not given. */
  chars: 2_000_000,
} as const;
