import { tableNames } from '../columns.ts';

/** What a statement asks the engine's leave for, by SQLite's action codes. */
export interface Action {
  code: number;
  /** Of READ: table and column. Of FUNCTION: the second is the function. */
  first: string | null;
  second: string | null;
}

export interface ActionCodes {
  SQLITE_SELECT: number;
  SQLITE_READ: number;
  SQLITE_FUNCTION: number;
  SQLITE_RECURSIVE: number;
}

const JSON_TABLES = ['json_each', 'json_tree', 'jsonb_each', 'jsonb_tree'];
const READABLE = new Set<string>([...tableNames, ...JSON_TABLES]);

/** Tables the engine makes of itself: the schema, statistics, pages, compiled statements, pragmas. */
const OF_THE_ENGINE = /^(?:sqlite_|pragma_|dbstat|bytecode|tables_used|fts\d|rtree)/i;
/** Functions that reach outside, tell of the engine, or belong to modules that are gone. */
const REFUSED_FUNCTION =
  /^(?:load_extension|readfile|writefile|edit|eval|sqlite_.*|fts\d.*|rtree.*|bm25|highlight|snippet|match|unknown|last_insert_rowid|changes|total_changes)$/i;

/** Reading is all a statement may do. What it is made of is never looked at, only what the engine is about to do. */
export function mayUse({ code, first, second }: Action, codes: ActionCodes): boolean {
  if (code === codes.SQLITE_SELECT || code === codes.SQLITE_RECURSIVE) return true;
  if (code === codes.SQLITE_FUNCTION) return !REFUSED_FUNCTION.test(second ?? '');
  if (code !== codes.SQLITE_READ) return false;
  // Without a column it may be the name of a common table expression, of which only the number of rows is asked.
  return second === '' ? !OF_THE_ENGINE.test(first ?? '') : READABLE.has((first ?? '').toLowerCase());
}
