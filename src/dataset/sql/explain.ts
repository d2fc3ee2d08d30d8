import { type AdLibraryError, invalidRequest } from '../../api/errors.ts';
import { quote, sanitizeLine } from '../../present/safe-text.ts';
import { columnsOf, tableNames } from '../columns.ts';
import { cellText } from './cell-text.ts';
import { engineLimits, resultLimits, type StatementLimits } from './limits.ts';
import type { SqlProblem } from './problem.ts';

/** What was wrong with a statement, what there is, and what to do. */
export function explainProblem({ reason, detail }: SqlProblem, limits: StatementLimits): AdLibraryError {
  return invalidRequest([...textsOf[reason](limits), ...(detail ? detailTexts(detail) : [])].join(' '));
}

const seconds = (ms: number) => `${Math.round(ms / 100) / 10} seconds`;
const megabytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MB`;
const SELECT_ONLY =
  'Only a SELECT (also WITH … SELECT) over the tables of the dataset is allowed: no writing, PRAGMA, ATTACH, EXPLAIN, and no tables or functions of the engine itself.';
const LESS = 'Filter with WHERE, aggregate in fewer steps, or join on ids.';

const textsOf: Record<SqlProblem['reason'], (limits: StatementLimits) => string[]> = {
  refused: () => [SELECT_ONLY, tablesText()],
  wrong: () => ['SQLite could not run the statement.'],
  tail: () => [
    'The SQL holds more than one statement, and none of them was run. Send one SELECT without anything after it.',
  ],
  empty: () => ['The SQL holds no statement. Send one SELECT.', tablesText()],
  slow: ({ statementMs }) => [`The statement was stopped after ${seconds(statementMs)}.`, LESS],
  endless: ({ exportMs }) => [`The export was stopped after ${seconds(exportMs)} of work.`, LESS],
  memory: ({ workingBytes }) => [
    `The statement needed more than ${megabytes(workingBytes)} of memory.`,
    `${LESS} Select only the columns you need.`,
  ],
  long: () => [`The statement put together a text of more than ${engineLimits.SQLITE_LIMIT_LENGTH} characters.`, LESS],
  stopped: () => ['The statement was stopped.'],
  json: () => ['The column json could not be loaded.'],
  tables: ({ tableBytes }) => [
    `The dataset takes more than ${megabytes(tableBytes)}, too much for SQL. Gather fewer ads.`,
  ],
};

const MAX_DETAIL = 300;
const UNKNOWN_NAME = /no such (?:table|column): (\S{1,100})/;

/** The engine's words may quote what an advertiser wrote. */
function detailTexts(detail: string): string[] {
  const message = `SQLite says: ${quote(cellText(sanitizeLine(detail), MAX_DETAIL))}.`;
  const [, name] = UNKNOWN_NAME.exec(detail) ?? [];
  if (name === undefined) return [message, 'Correct the SQL and call again.'];
  return [message, ...suggestion(name), tablesText()];
}

export const tablesText = (): string =>
  `Tables and columns: ${tableNames.map((table) => `${table}(${columnsOf(table).join(', ')})`).join('; ')}.`;

/** `page_name` for pageName, `ad_country` for ad_countries is too far. A name that there is stands in the wrong place. */
function suggestion(name: string): string[] {
  const inLower = name.toLowerCase().replace(/^.*\.|["`[\]]/g, '');
  const plain = (text: string) => text.toLowerCase().replace(/[^a-z]/g, '');
  const near = [...tableNames, ...tableNames.flatMap(columnsOf)].find((known) => plain(known) === plain(inLower));
  if (near === undefined) return [];
  if (near.toLowerCase() !== inLower) return [`Did you mean ${near}?`];
  const holders = tableNames.filter((table) => columnsOf(table).includes(near));
  const isTable = holders.length === 0;
  return [
    isTable ? `${near} is a table: name it after FROM.` : `${near} is a column: read it FROM ${holders.join(' or ')}.`,
  ];
}

export function checkOptions({ sql, limit, cell }: { sql: string; limit: number; cell: number }): void {
  if (sql.length > resultLimits.sqlChars)
    throw invalidRequest(`The SQL has ${sql.length} characters, and at most ${resultLimits.sqlChars} are allowed.`);
  if (!Number.isInteger(limit) || limit < 1 || limit > resultLimits.maxRows)
    throw invalidRequest(`limit must be a whole number from 1 to ${resultLimits.maxRows}.`);
  if (!Number.isInteger(cell) || cell < 1 || cell > resultLimits.maxCell)
    throw invalidRequest(`cell must be a whole number from 1 to ${resultLimits.maxCell}.`);
}
