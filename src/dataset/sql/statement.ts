import { type AdLibraryError, invalidRequest } from '../../api/errors.ts';
import { quote, sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { type Cell, clip } from '../tables.ts';
import { explainMessage, listTables } from './error-advice.ts';

/** The limits of a statement. The engine enforces all of them; the text of a statement is never checked. */
export interface StatementLimits {
  /** The longest time of a statement, in milliseconds. */
  statementMs: number;
  /**
   * The longest computing time of an export, in milliseconds. Each batch of its rows also has the limit of a statement.
   */
  exportMs: number;
  /** The memory for sorting, grouping and joining texts, in bytes, in addition to the tables. */
  workingBytes: number;
  /** The memory for the tables, in bytes. */
  tableBytes: number;
}

/** The limits of statements in a server. */
export const statementLimits: StatementLimits = {
  statementMs: 2000,
  exportMs: 30_000,
  workingBytes: 128 * 2 ** 20,
  tableBytes: 768 * 2 ** 20,
};

/** The limits that SQLite checks itself (`sqlite3_limit`). */
export const engineLimits = {
  /** The most bytes of a text, of a blob and of a row. */
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
 * The limits of `REGEXP`: characters of a pattern, characters of the text that is searched, and steps of the compiled
 * pattern.
 */
export const regexpLimits = { patternChars: 500, textChars: 20_000, steps: 1000 } as const;

/** The limits of results. */
export const resultLimits = {
  /** The most characters of a statement. */
  sqlChars: 20_000,
  rows: 50,
  cell: 160,
  /** The most rows that are counted. */
  countedRows: 100_000,
  /** The most characters of all cells of a result together. Further rows are counted, but not returned. */
  chars: 2_000_000,
} as const;

/** The limits that a call may set for its result. */
export interface QueryOptions {
  /** The most rows to return. All rows are counted. */
  limit: number;
  maxCellChars: number;
}

/** The fields of ads that a statement reads, and how many ads have each of them. */
export interface ReadFields {
  /** The ads that the statement reads: all ads, or the ads in `current_ads` if it reads only these. */
  ads: number;
  /** The fields, with the number of ads that have a value. A field of another table has its ads counted once. */
  fields: readonly { name: string; ads: number }[];
}

/** The result of a statement. */
export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** The number of rows of the whole result; null if the number is unknown or above 100,000. */
  rowCount: number | null;
  truncated: boolean;
  /** Undefined if the statement reads no table of ads. */
  read: ReadFields | undefined;
}

/** Returns whether a result has no rows, or one row that counts nothing. */
export const isEmptyResult = (rows: readonly (readonly Cell[])[], rowCount: number | null): boolean =>
  rowCount === 0 ||
  (rowCount === 1 && rows.length === 1 && (rows[0] ?? []).every((cell) => cell === null || cell === 0));

/** Why a statement has no result. */
export interface SqlProblem {
  reason: keyof typeof problemTexts;
  /** The message of SQLite, which may quote the statement and the data. */
  detail?: string;
}

/** The error of a statement that has no result. */
export class SqlFailure extends Error {
  override readonly name = 'SqlFailure';
  readonly problem: SqlProblem;

  constructor(problem: SqlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}

/** A batch of an export. `done` is true for the last one. The first one has `read`. */
export type Batch = Pick<SqlResult, 'columns' | 'rows'> & Partial<Pick<SqlResult, 'read'>> & { done: boolean };

/** Returns a text without invisible characters, cut to `max` characters, with the number of missing characters. */
export function cleanCell(text: string, max: number): string {
  // Invisible characters count until they are removed, so more than `max` characters are read.
  const readText = text.slice(0, 2 * max + 200);
  return clip(sanitize(readText), max, text.length - readText.length);
}

/** Returns the error that tells a model why its statement has no result and what to do. */
export function explainProblem({ reason, detail }: SqlProblem, limits: StatementLimits): AdLibraryError {
  const shortDetail = detail === undefined ? undefined : sanitizeLine(detail.slice(0, maxReadDetailChars));
  return invalidRequest(
    [...problemTexts[reason](limits), ...(shortDetail ? [formatDetail(shortDetail)] : [])].join(' '),
  );
}

const formatSeconds = (ms: number) => `${Math.round(ms / 100) / 10} seconds`;
const formatMegabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
const selectOnlyText =
  'Only a SELECT (also WITH … SELECT) over the tables of the dataset is allowed: no writing, PRAGMA, ATTACH, EXPLAIN, and no tables or functions of the engine itself.';
const reduceHint =
  'Take the distinct rows first (SELECT DISTINCT in a subquery), and compute a subquery once (WITH name AS MATERIALIZED (SELECT …)).';

const problemTexts = {
  refused: () => [selectOnlyText, listTables()],
  wrong: () => [],
  tail: () => [
    'The SQL holds more than one statement, and none of them was run. Send one SELECT without anything after it.',
  ],
  empty: () => ['The SQL holds no statement. Send one SELECT.', listTables()],
  slow: ({ statementMs }: StatementLimits) => [
    `The statement was stopped after ${formatSeconds(statementMs)}.`,
    reduceHint,
  ],
  endless: ({ exportMs }: StatementLimits) => [
    `The export was stopped after ${formatSeconds(exportMs)} of work.`,
    reduceHint,
  ],
  memory: ({ workingBytes }: StatementLimits) => [
    `The statement needed more than ${formatMegabytes(workingBytes)} of memory.`,
    `${reduceHint} Select only the columns you need.`,
  ],
  long: () => [
    `The statement put together a text of more than ${engineLimits.SQLITE_LIMIT_LENGTH} characters.`,
    reduceHint,
  ],
  stopped: () => ['The statement was stopped.'],
  json: () => ['The column json could not be loaded.'],
  tables: ({ tableBytes }: StatementLimits) => [
    `The dataset takes more than ${formatMegabytes(tableBytes)}, too much for SQL. Gather fewer ads.`,
  ],
};

/** The most characters of a message that are read, and that are shown if nothing explains it better. */
const maxReadDetailChars = 1000;
const maxDetailChars = 300;
/** Explains a message of SQLite, or quotes it, because it may contain text of an advertiser. */
const formatDetail = (detail: string): string =>
  explainMessage(detail) ??
  `SQLite says: ${quote(cleanCell(sanitizeLine(detail), maxDetailChars))}. Correct the SQL and call again.`;
