import { type AdLibraryError, createInvalidRequestError } from '../../api/errors.ts';
import { quote, sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { type Cell, truncateToLength } from '../tables.ts';
import { explainSqliteMessage, formatTableList } from './error-advice.ts';
import { type StatementLimits, sqliteLimits } from './limits.ts';

/** The limits that a tool call sets for the result of its SQL statement. */
export interface QueryOptions {
  /** The maximum number of rows to return. Further rows are counted but not returned. */
  limit: number;
  maxCellChars: number;
}

/** The ad fields that an SQL statement reads, with the number of ads that have a value for each field. */
export interface StatementFields {
  /** The number of ads that the statement reads: all ads of the dataset, or only the ads in the `current_ads` view. */
  adCount: number;
  /**
   * The number of ads that the statement reads, by advertiser key, e.g. `page 12345` (see `createAdvertiserKeyFinder`).
   */
  adCountByAdvertiser: ReadonlyMap<string, number>;
  /**
   * The fields that the statement reads. An ad with several values for a field, such as several countries, is counted
   * once.
   */
  fields: readonly StatementField[];
  /**
   * The keys of the advertisers to which the statement limits its rows. Empty if the statement may read ads of any
   * advertiser.
   */
  namedAdvertiserKeys: ReadonlySet<string>;
  /**
   * The currencies of the amounts that the statement reads, e.g. of `adSpendMax`. Empty if the statement also reads the
   * column `currency`, because it can then tell the amounts apart.
   */
  mixedCurrencies: readonly string[];
}

/** An ad field that an SQL statement reads, with the number of ads that have a value for this field. */
export interface StatementField {
  name: string;
  adsWithValue: number;
  /**
   * The number of ads without a value for the field, by the key of their advertiser. Omits advertisers whose ads all
   * have a value.
   */
  missingCountByAdvertiser: ReadonlyMap<string, number>;
}

/** The result of an SQL statement, with as many rows as the limits allow. */
export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** The total number of rows, or null if there are more than 100,000 rows. */
  rowCount: number | null;
  truncated: boolean;
  /** The ad fields that the statement reads. Undefined if the statement reads no table with ads. */
  statementFields: StatementFields | undefined;
  /**
   * True if the statement reads ads, so that missing ads affect its result. False if it reads only the tables
   * `gatherings` and `months`.
   */
  isAboutAds: boolean;
  /** True if the statement reads the table `pages`, which may contain only some of the advertisers. */
  readsPages: boolean;
}

/** Returns true if a result has no rows, or only one row with zeros and nulls, e.g. from `SELECT count(*)`. */
export const isEmptySqlResult = (rows: readonly (readonly Cell[])[], rowCount: number | null): boolean =>
  rowCount === 0 ||
  (rowCount === 1 && rows.length === 1 && (rows[0] ?? []).every((cell) => cell === null || cell === 0));

/** The reason why an SQL statement failed. */
export interface SqlProblem {
  reason: keyof typeof problemTexts;
  /** The error message from SQLite. It must be sanitized, because it may quote text from an advertiser. */
  detail?: string;
}

/** The error that is thrown if an SQL statement fails. */
export class SqlFailure extends Error {
  override readonly name = 'SqlFailure';
  readonly problem: SqlProblem;

  constructor(problem: SqlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}

/**
 * A batch of rows of an exported SQL statement. Only the first batch has `statementFields`, `isAboutAds` and
 * `readsPages`.
 */
export type ExportBatch = Pick<SqlResult, 'columns' | 'rows'> &
  Partial<Pick<SqlResult, 'statementFields' | 'isAboutAds' | 'readsPages'>> & { isLastBatch: boolean };

/**
 * Removes invisible characters from a text and cuts the text to `maxChars` characters. A cut text ends with the number
 * of missing characters, e.g. `… (+20 chars)`.
 */
export function cleanCell(text: string, maxChars: number): string {
  // Read more than `maxChars` characters, because `sanitize` may remove some of them.
  const unsanitizedText = text.slice(0, 2 * maxChars + 200);
  return truncateToLength(sanitize(unsanitizedText), maxChars, text.length - unsanitizedText.length);
}

/** Creates an error that explains to a model why its SQL statement failed and what the model can do. */
export function createSqlProblemError({ reason, detail }: SqlProblem, limits: StatementLimits): AdLibraryError {
  const shortMessage = detail === undefined ? undefined : sanitizeLine(detail.slice(0, maxCharsReadFromMessage));
  return createInvalidRequestError(
    [...problemTexts[reason](limits), ...(shortMessage ? [explainOrQuoteMessage(shortMessage)] : [])].join(' '),
  );
}

const formatSeconds = (durationMs: number) => `${Math.round(durationMs / 100) / 10} seconds`;
const formatMegabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
const selectOnlyText =
  'Only a SELECT (also WITH … SELECT) over the tables of the dataset is allowed: no writing, PRAGMA, ATTACH, EXPLAIN, and no tables or functions of the engine itself.';
const reduceHint =
  'Filter rows first (WHERE), take the distinct rows first (SELECT DISTINCT in a subquery), and compute a subquery once (WITH name AS MATERIALIZED (SELECT …)).';

const problemTexts = {
  forbidden: () => [selectOnlyText, formatTableList()],
  invalid: () => [],
  multipleStatements: () => [
    'The SQL holds more than one statement, and none of them was run. Send one SELECT without anything after it.',
  ],
  noStatement: () => ['The SQL holds no statement. Send one SELECT.', formatTableList()],
  timeout: ({ maxStatementMs }: StatementLimits) => [
    `The statement was stopped after ${formatSeconds(maxStatementMs)}.`,
    reduceHint,
  ],
  exportTimeout: ({ maxExportMs }: StatementLimits) => [
    `The export was stopped after ${formatSeconds(maxExportMs)} of work.`,
    reduceHint,
  ],
  outOfMemory: ({ maxWorkingBytes }: StatementLimits) => [
    `The statement needed more than ${formatMegabytes(maxWorkingBytes)} of memory.`,
    `${reduceHint} Select only the columns you need.`,
  ],
  textTooLarge: () => [
    `The statement put together a text of more than ${sqliteLimits.SQLITE_LIMIT_LENGTH} characters.`,
    reduceHint,
  ],
  aborted: () => ['The statement was stopped.'],
  jsonNotLoaded: () => ['The column json could not be loaded.'],
  tablesTooLarge: ({ maxTableBytes }: StatementLimits) => [
    `The dataset takes more than ${formatMegabytes(maxTableBytes)}, too much for SQL. Gather fewer ads.`,
  ],
};

/** The maximum number of characters that are read from an SQLite message. */
const maxCharsReadFromMessage = 1000;
/** The maximum number of characters that are shown from an SQLite message for which there is no explanation. */
const maxCharsShownFromMessage = 300;
/**
 * Explains an SQLite message, or quotes the message if there is no explanation. The message may contain text from an
 * advertiser.
 */
const explainOrQuoteMessage = (sqliteMessage: string): string =>
  explainSqliteMessage(sqliteMessage) ??
  `SQLite says: ${quote(cleanCell(sanitizeLine(sqliteMessage), maxCharsShownFromMessage))}. Correct the SQL and call again.`;
