import openSqlite, { type Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import { type Cell, columnsOf, type TableName, tableNames, tables } from '../columns.ts';
import { engineLimits, type StatementLimits } from './limits.ts';
import { mayUse } from './may-use.ts';
import { SqlFailure } from './problem.ts';
import { RowWriter } from './row-writer.ts';

/** Asked every thousand steps of a statement: whether it has to end. */
export type Interruption = () => 'slow' | 'stopped' | undefined;

/** The types of the package leave out what is not meant for browsers. */
type Sqlite = Pick<Sqlite3Static, 'version'> & {
  capi: Sqlite3Static['capi'] & Record<string, number>;
  wasm: Sqlite3Static['wasm'];
};

const STEPS = 1000;

/**
 * One SQLite database in memory, in a WebAssembly instance that has no file system. Tables are filled once; from
 * `seal` on nothing but reading is possible, whatever a statement says.
 */
export class SqlEngine {
  readonly #sqlite: Sqlite;
  readonly #db: number;
  readonly #limits: StatementLimits;
  readonly #writers = new Map<TableName, RowWriter>();
  #interrupted: ReturnType<Interruption>;
  #denied: 'refused' | 'json' | undefined;

  private constructor(sqlite: Sqlite, db: number, limits: StatementLimits) {
    this.#sqlite = sqlite;
    this.#db = db;
    this.#limits = limits;
  }

  static async open(limits: StatementLimits): Promise<SqlEngine> {
    const sqlite = (await openSqlite()) as unknown as Sqlite;
    const { capi, wasm } = sqlite;
    const pointer = wasm.alloc(8);
    capi.sqlite3_open_v2(':memory:', pointer, capi.SQLITE_OPEN_READWRITE | capi.SQLITE_OPEN_CREATE, 0);
    const db = wasm.peekPtr(pointer) as number;
    wasm.dealloc(pointer);
    const engine = new SqlEngine(sqlite, db, limits);
    engine.#run(`PRAGMA hard_heap_limit = ${limits.tableBytes}`);
    engine.#run('PRAGMA journal_mode = OFF');
    for (const name of tableNames) engine.#run(tableSql(name));
    engine.#run('BEGIN');
    return engine;
  }

  load(table: TableName, rows: readonly (readonly Cell[])[]): void {
    const { capi } = this.#sqlite;
    const writer = this.#writers.get(table) ?? new RowWriter(this.#sqlite, this.#prepareOwn(insertSql(table)));
    this.#writers.set(table, writer);
    for (const row of rows) {
      const code = writer.write(row);
      if (code === capi.SQLITE_NOMEM) throw new SqlFailure({ reason: 'tables' });
      if (code !== capi.SQLITE_DONE) throw this.#error();
    }
  }

  /** Ends the filling of tables: what follows can only read, and only so much; not the JSON where there is none. */
  seal(interruption: Interruption, json: boolean): void {
    const { capi } = this.#sqlite;
    for (const writer of this.#writers.values()) writer.close();
    this.#run('COMMIT');
    for (const sql of indexes) this.#run(sql);
    this.#run('PRAGMA query_only = ON');
    this.#run(`PRAGMA hard_heap_limit = ${this.memoryUsed() + this.#limits.workingBytes}`);
    capi.sqlite3_drop_modules(this.#db, 0);
    for (const [option, on] of configuration) capi.sqlite3_db_config(this.#db, capi[option] as never, on, 0 as never);
    for (const [name, value] of Object.entries(engineLimits)) capi.sqlite3_limit(this.#db, capi[name] as never, value);
    capi.sqlite3_set_authorizer(
      this.#db,
      (_, code, first, second) => {
        const allowed = mayUse({ code, first: first || '', second: second || '' }, capi);
        const missing = !json && code === capi.SQLITE_READ && second === 'json' && isOurs(first);
        if (allowed && !missing) return capi.SQLITE_OK;
        this.#denied ??= allowed ? 'json' : 'refused';
        return capi.SQLITE_DENY;
      },
      0,
    );
    const interrupt = () => {
      this.#interrupted = interruption();
      return Number(this.#interrupted !== undefined);
    };
    capi.sqlite3_progress_handler(this.#db, STEPS, interrupt, 0);
  }

  /** Compiles the one statement of `sql`; a second one, or none, is refused before anything runs. */
  prepare(sql: string): PreparedSql {
    const { capi, wasm } = this.#sqlite;
    this.#denied = undefined;
    this.#interrupted = undefined;
    const bytes = new TextEncoder().encode(sql);
    const start = wasm.alloc(bytes.length + 1);
    const pointer = wasm.alloc(16);
    const statements: number[] = [];
    try {
      wasm.heap8u().set(bytes, start);
      wasm.heap8u()[start + bytes.length] = 0;
      const end = start + bytes.length;
      for (let at = start; at < end && statements.length < 2; ) {
        const code = capi.sqlite3_prepare_v3(this.#db, at, end - at + 1, 0, pointer, pointer + 8);
        if (code !== capi.SQLITE_OK) throw this.#error();
        const statement = wasm.peekPtr(pointer) as number;
        const next = wasm.peekPtr(pointer + 8) as number;
        if (statement !== 0) statements.push(statement);
        // A NUL character ends what the engine reads, but not what it was given.
        else if (next <= at || (next < end && wasm.heap8u()[next] === 0)) throw new SqlFailure({ reason: 'tail' });
        at = next;
      }
      return this.#onlyReading(statements);
    } catch (error) {
      for (const statement of statements) capi.sqlite3_finalize(statement);
      throw error;
    } finally {
      wasm.dealloc(pointer);
      wasm.dealloc(start);
    }
  }

  #onlyReading([statement, second]: readonly number[]): PreparedSql {
    const { capi, wasm } = this.#sqlite;
    if (statement === undefined) throw new SqlFailure({ reason: 'empty' });
    if (second !== undefined) throw new SqlFailure({ reason: 'tail' });
    const reads = capi.sqlite3_stmt_readonly(statement) !== 0 && capi.sqlite3_column_count(statement) > 0;
    if (!reads || capi.sqlite3_stmt_isexplain(statement) !== 0) throw new SqlFailure({ reason: 'refused' });
    return { capi, wasm, statement, failure: () => this.#error() };
  }

  memoryUsed(): number {
    const { capi, wasm } = this.#sqlite;
    const pointer = wasm.alloc(16);
    capi.sqlite3_status64(capi.SQLITE_STATUS_MEMORY_USED, pointer, pointer + 8, 0);
    const used = Number(wasm.peek64(pointer));
    wasm.dealloc(pointer);
    return used;
  }

  #error(): SqlFailure {
    const { capi } = this.#sqlite;
    const code = capi.sqlite3_errcode(this.#db);
    const detail = capi.sqlite3_errmsg(this.#db);
    if (this.#denied) return new SqlFailure({ reason: this.#denied });
    if (code === capi.SQLITE_INTERRUPT) return new SqlFailure({ reason: this.#interrupted ?? 'slow' });
    if (code === capi.SQLITE_NOMEM) return new SqlFailure({ reason: 'memory' });
    if (code === capi.SQLITE_TOOBIG) return new SqlFailure({ reason: 'long' });
    return new SqlFailure({ reason: 'wrong', detail });
  }

  #prepareOwn(sql: string): number {
    const { capi, wasm } = this.#sqlite;
    const pointer = wasm.alloc(8);
    const code = capi.sqlite3_prepare_v3(this.#db, sql, -1, 0, pointer, null);
    const statement = wasm.peekPtr(pointer) as number;
    wasm.dealloc(pointer);
    if (code !== capi.SQLITE_OK) throw this.#error();
    return statement;
  }

  #run(sql: string): void {
    const { capi } = this.#sqlite;
    const statement = this.#prepareOwn(sql);
    while (capi.sqlite3_step(statement) === capi.SQLITE_ROW);
    if (capi.sqlite3_finalize(statement) !== capi.SQLITE_OK) throw this.#error();
  }
}

/** A compiled statement and what reads its rows. */
export interface PreparedSql {
  capi: Sqlite['capi'];
  wasm: Sqlite['wasm'];
  statement: number;
  /** What the engine says went wrong last. */
  failure(): SqlFailure;
}

const isOurs = (table: string | 0): boolean => (tableNames as string[]).includes(String(table).toLowerCase());

const configuration = [
  ['SQLITE_DBCONFIG_DEFENSIVE', 1],
  ['SQLITE_DBCONFIG_TRUSTED_SCHEMA', 0],
  ['SQLITE_DBCONFIG_WRITABLE_SCHEMA', 0],
  ['SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE', 0],
  ['SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE', 0],
] as const;

const keys: Partial<Record<TableName, string>> = { ads: 'id', pages: 'pageId' };

function tableSql(name: TableName): string {
  const columns = Object.entries(tables[name]).map(
    ([column, type]) => `"${column}" ${type}${column === keys[name] ? ' PRIMARY KEY' : ''}`,
  );
  return `CREATE TABLE "${name}" (${columns.join(', ')})`;
}

const insertSql = (name: TableName): string =>
  `INSERT OR REPLACE INTO "${name}" VALUES (${columnsOf(name)
    .map(() => '?')
    .join(', ')})`;

const indexes = [
  'CREATE INDEX ad_countries_id ON ad_countries (id)',
  'CREATE INDEX ad_platforms_id ON ad_platforms (id)',
  'CREATE INDEX ad_cards_id ON ad_cards (id)',
  'CREATE INDEX ad_versions_id ON ad_versions (id)',
  'CREATE INDEX gathered_ad ON gathered (adId)',
];
