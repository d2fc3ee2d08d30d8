import type { Cell, TableName } from '../columns.ts';
import type { StatementLimits } from './limits.ts';
import type { SqlProblem } from './problem.ts';
import type { QueryOptions, SqlResult } from './read-rows.ts';

/** What a worker is started with. */
export interface WorkerSetup {
  limits: StatementLimits;
  /** One whole number, shared: not 0 once the statement is to stop. */
  stop: SharedArrayBuffer;
}

/** To the worker; it answers each before it takes the next. */
export type WorkerRequest =
  | { type: 'load'; table: TableName; rows: Cell[][] }
  /** Ends the loading. Without JSON a statement that reads it fails with the reason `json`. */
  | { type: 'seal'; json: boolean }
  | ({ type: 'query'; sql: string } & QueryOptions)
  | { type: 'export'; sql: string }
  | { type: 'next' }
  | { type: 'close' };

export interface Batch {
  columns: string[];
  rows: Cell[][];
  done: boolean;
}

export type Reply =
  | { type: 'ready' }
  | { type: 'done' }
  | { type: 'result'; result: SqlResult }
  | { type: 'batch'; batch: Batch }
  | { type: 'failed'; problem: SqlProblem };
