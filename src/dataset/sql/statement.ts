import { type AdLibraryError, invalidRequest } from '../../api/errors.ts';
import { quote, sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { type Cell, clip } from '../tables.ts';
import { explainMessage, listTables } from './error-advice.ts';

/** Limits of a statement. The engine enforces all of them; the text of a statement is never checked. */
export interface StatementLimits {
  /** How long a statement may run, in milliseconds. */
  statementMs: number;
  /**
   * How long an export may compute in total, in milliseconds. In addition, `statementMs` applies to each batch of rows.
   */
  exportMs: number;
  /** Memory for sorting, grouping and joining texts, in addition to the tables, in bytes. */
  workingBytes: number;
  /** Memory for the tables, in bytes. */
  tableBytes: number;
}

/** The default limits. */
export const statementLimits: StatementLimits = {
  statementMs: 2000,
  exportMs: 30_000,
  workingBytes: 128 * 2 ** 20,
  tableBytes: 768 * 2 ** 20,
};

/** Limits that SQLite itself enforces (`sqlite3_limit`). */
export const engineLimits = {
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
 * Limits of `REGEXP`: the length of a pattern, the length of the searched text, and the number of steps in the compiled
 * pattern.
 */
export const regexpLimits = { patternChars: 500, textChars: 20_000, steps: 1000 } as const;

/** Limits of query results. */
export const resultLimits = {
  /** The maximum length of a statement, in characters. */
  sqlChars: 20_000,
  rows: 50,
  cell: 160,
  /** The maximum number of rows that are counted. */
  countedRows: 100_000,
  /** The maximum number of characters in all cells of a result. Further rows are counted but not returned. */
  chars: 2_000_000,
} as const;

/** Limits that a tool call sets for its result. */
export interface QueryOptions {
  /** The maximum number of rows to return. All rows are counted. */
  limit: number;
  maxCellChars: number;
}

/** The ad fields that a statement reads, and how many ads have a value for each. */
export interface ReadFields {
  /** The number of ads that the statement reads: all ads, or only those in `current_ads`. */
  ads: number;
  /** The number of these ads of each advertiser, by the keys of `createAdvertiserKeyFinder`. */
  adsByAdvertiser: ReadonlyMap<string, number>;
  /** The fields. A field of another table has its ads counted once. */
  fields: readonly ReadField[];
  /** The advertisers whose names or ids the statement compares with something. */
  namedAdvertisers: ReadonlySet<string>;
}

/** A column of the table `ads` that a SQL statement reads, with the number of ads that have a value in it. */
export interface ReadField {
  name: string;
  /** The number of ads that have a value. */
  ads: number;
  /** The number of ads without a value, for each advertiser that has such ads. */
  missingByAdvertiser: ReadonlyMap<string, number>;
}

/** The result of a statement. */
export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** The number of rows in the whole result. Null if unknown or above 100,000. */
  rowCount: number | null;
  truncated: boolean;
  /** Undefined if the statement reads no table with ads. */
  read: ReadFields | undefined;
  /** False if the statement reads nothing but the list of gatherings or months. Ads say nothing about such a result. */
  isAboutAds: boolean;
}

/** Returns true if a result has no rows, or a single row that contains only zeros and nulls. */
export const isEmptyResult = (rows: readonly (readonly Cell[])[], rowCount: number | null): boolean =>
  rowCount === 0 ||
  (rowCount === 1 && rows.length === 1 && (rows[0] ?? []).every((cell) => cell === null || cell === 0));

/** The reason why a statement failed. */
export interface SqlProblem {
  reason: keyof typeof problemTexts;
  /** SQLite's error message. It may quote parts of the statement and of the data. */
  detail?: string;
}

/** Thrown when a statement fails. */
export class SqlFailure extends Error {
  override readonly name = 'SqlFailure';
  readonly problem: SqlProblem;

  constructor(problem: SqlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}

/** A batch of an export. `done` is true for the last one. The first one has `read` and `isAboutAds`. */
export type Batch = Pick<SqlResult, 'columns' | 'rows'> &
  Partial<Pick<SqlResult, 'read' | 'isAboutAds'>> & { done: boolean };

/**
 * Removes invisible characters from a text and cuts it to `max` characters, stating how many characters are missing.
 */
export function cleanCell(text: string, max: number): string {
  // Read more than `max` characters, because some of them may be invisible and will be removed.
  const readText = text.slice(0, 2 * max + 200);
  return clip(sanitize(readText), max, text.length - readText.length);
}

/** Creates the error that tells a model why its statement failed and what to do. */
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
  'Filter rows first (WHERE), take the distinct rows first (SELECT DISTINCT in a subquery), and compute a subquery once (WITH name AS MATERIALIZED (SELECT …)).';

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

/** How many characters of an SQLite message are read, and how many are shown if there is no better explanation. */
const maxReadDetailChars = 1000;
const maxDetailChars = 300;
/**
 * Explains SQLite's message. If there is no explanation, quotes the message, because it may contain text from an
 * advertiser.
 */
const formatDetail = (detail: string): string =>
  explainMessage(detail) ??
  `SQLite says: ${quote(cleanCell(sanitizeLine(detail), maxDetailChars))}. Correct the SQL and call again.`;
