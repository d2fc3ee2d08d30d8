import { type AdLibraryError, invalidRequest } from '../../api/errors.ts';
import { quote, sanitize, sanitizeLine } from '../../views/safe-text.ts';
import { type Cell, clip, getColumnNames, tableNames } from '../tables.ts';

/** What a statement may use. All of it is enforced by the engine, none of it by looking at the statement's text. */
export interface StatementLimits {
  statementMs: number;
  /** How long an export may compute in all; each batch of its rows is a statement's work. */
  exportMs: number;
  /** Memory for sorting, grouping and putting texts together, beside what the tables themselves take. */
  workingBytes: number;
  tableBytes: number;
}

export const statementLimits: StatementLimits = {
  statementMs: 2000,
  exportMs: 30_000,
  workingBytes: 128 * 2 ** 20,
  tableBytes: 768 * 2 ** 20,
};

export const engineLimits = {
  /** Bytes of a text or a blob, and of a row. */
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

/** Of REGEXP: characters of a pattern and of the text that it is tried on, and steps of the compiled pattern. */
export const regexpLimits = { patternChars: 500, textChars: 20_000, steps: 1000 } as const;

export const resultLimits = {
  /** Characters of the statement, as the contract gives them. */
  sqlChars: 20_000,
  rows: 50,
  cell: 160,
  /** Rows past these are not counted. */
  countedRows: 100_000,
  /** Characters of all cells of a result together: rows past these are counted, not given. */
  chars: 2_000_000,
} as const;

export interface QueryOptions {
  /** Rows to give, not to count. */
  limit: number;
  maxCellChars: number;
}

export interface SqlResult {
  columns: string[];
  rows: Cell[][];
  /** Rows of the whole result; null where their number is not known, or above 100,000. */
  rowCount: number | null;
  truncated: boolean;
}

/** Why a statement gave no result. */
export interface SqlProblem {
  reason: keyof typeof problemTexts;
  /** The engine's own words, which may quote the statement and what it read. */
  detail?: string;
}

export class SqlFailure extends Error {
  override readonly name = 'SqlFailure';
  readonly problem: SqlProblem;

  constructor(problem: SqlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}

export type Batch = Pick<SqlResult, 'columns' | 'rows'> & { done: boolean };

/** The cleaned text, at most `max` characters long, and how many characters are missing. */
export function cleanCell(text: string, max: number): string {
  // Invisible characters take room in a text, too.
  const looked = text.slice(0, 2 * max + 200);
  return clip(sanitize(looked), max, text.length - looked.length);
}

export function explainProblem({ reason, detail }: SqlProblem, limits: StatementLimits): AdLibraryError {
  return invalidRequest([...problemTexts[reason](limits), ...(detail ? detailTexts(detail) : [])].join(' '));
}

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} seconds`;
const megabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
const selectOnly =
  'Only a SELECT (also WITH … SELECT) over the tables of the dataset is allowed: no writing, PRAGMA, ATTACH, EXPLAIN, and no tables or functions of the engine itself.';
const less = 'Filter with WHERE, aggregate in fewer steps, or join on ids.';

const problemTexts = {
  refused: () => [selectOnly, tablesText()],
  wrong: () => ['SQLite could not run the statement.'],
  tail: () => [
    'The SQL holds more than one statement, and none of them was run. Send one SELECT without anything after it.',
  ],
  empty: () => ['The SQL holds no statement. Send one SELECT.', tablesText()],
  slow: ({ statementMs }: StatementLimits) => [`The statement was stopped after ${seconds(statementMs)}.`, less],
  endless: ({ exportMs }: StatementLimits) => [`The export was stopped after ${seconds(exportMs)} of work.`, less],
  memory: ({ workingBytes }: StatementLimits) => [
    `The statement needed more than ${megabytes(workingBytes)} of memory.`,
    `${less} Select only the columns you need.`,
  ],
  long: () => [`The statement put together a text of more than ${engineLimits.SQLITE_LIMIT_LENGTH} characters.`, less],
  stopped: () => ['The statement was stopped.'],
  json: () => ['The column json could not be loaded.'],
  tables: ({ tableBytes }: StatementLimits) => [
    `The dataset takes more than ${megabytes(tableBytes)}, too much for SQL. Gather fewer ads.`,
  ],
};

const maxDetail = 300;
/** The engine's words may quote what an advertiser wrote. */
const detailTexts = (detail: string): string[] => [
  `SQLite says: ${quote(cleanCell(sanitizeLine(detail), maxDetail))}.`,
  adviceOn.find(([message]) => message.test(detail))?.[1]() ?? 'Correct the SQL and call again.',
];

const adviceOn: readonly (readonly [message: RegExp, advice: () => string])[] = [
  [/no such (?:table|column)/, () => tablesText()],
  [
    /no such function/,
    () => 'Functions are those of SQLite, with median, percentile, JSON and dates, and text REGEXP pattern.',
  ],
  [
    /ambiguous column name: json/,
    () => 'json_each and json_tree have a column json of their own: write ads.json, or the name of the table.',
  ],
];

const tablesText = (): string =>
  `Tables and columns: ${tableNames.map((table) => `${table}(${getColumnNames(table).join(', ')})`).join('; ')}; current_ads(the columns of ads).`;
