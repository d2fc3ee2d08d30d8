/** The limits of an SQL statement. The SQL engine enforces them while the statement runs. */
export interface StatementLimits {
  maxStatementMs: number;
  /**
   * The maximum computing time of a whole export, in milliseconds. `maxStatementMs` limits the time of each batch of
   * rows.
   */
  maxExportMs: number;
  /** The maximum memory for sorting, grouping and joining texts, in bytes. The memory of the tables is not included. */
  maxWorkingBytes: number;
  maxTableBytes: number;
}

/** The default limits of an SQL statement. */
export const statementLimits: StatementLimits = {
  maxStatementMs: 2000,
  maxExportMs: 30_000,
  maxWorkingBytes: 128 * 2 ** 20,
  maxTableBytes: 768 * 2 ** 20,
};

/** The limits that SQLite itself enforces. Each name and value are the arguments of a call of `sqlite3_limit`. */
export const sqliteLimits = {
  /** The maximum size of a text, a blob or a row, in bytes. */
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

/**
 * The limits of the patterns of the `REGEXP` SQL operator. `maxSteps` limits the number of steps in the compiled pattern.
 * The searched text needs no limit of its own: `SQLITE_LIMIT_LENGTH` limits it, and the search takes linear time.
 */
export const regexpLimits = { maxPatternChars: 500, maxSteps: 1000 } as const;

/** The limits of an SQL statement and its result, which keep the result small enough for a model. */
export const resultLimits = {
  maxSqlChars: 20_000,
  defaultRows: 50,
  defaultCellChars: 160,
  /** The maximum number of rows that are counted. The number of rows in a larger result is unknown. */
  maxCountedRows: 100_000,
  /** The maximum number of characters in all cells of a result together. Further rows are counted but not returned. */
  maxTotalChars: 2_000_000,
} as const;
