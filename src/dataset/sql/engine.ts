import type { Sqlite3Static } from '@sqlite.org/sqlite-wasm';
import openSqlite from '@sqlite.org/sqlite-wasm';
import { RE2JS } from 're2js';
import { sanitizeLine } from '../../views/safe-text.ts';
import {
  type Cell,
  countCellChars,
  getColumnNames,
  sqlViews,
  type TableName,
  tableNames,
  tables,
  type ViewName,
  viewNames,
} from '../tables.ts';
import { FieldCounter, StatementColumns } from './field-counts.ts';
import { regexpLimits, resultLimits, type StatementLimits, sqliteLimits } from './limits.ts';
import { readStatementLiterals } from './literals.ts';
import { cleanCell, type QueryOptions, SqlFailure, type SqlResult } from './statement.ts';

/** Returns the reason why the running SQL statement must stop, or undefined if the statement may continue. */
type FindInterruption = () => 'timeout' | 'aborted' | undefined;

/** The SQLite module, including functions that the type definitions of its package omit. */
type Sqlite = Pick<Sqlite3Static, 'oo1'> & {
  capi: Sqlite3Static['capi'] & Record<string, number>;
  wasm: Sqlite3Static['wasm'];
};

/** The options of the SQLite module, which the type definitions of its package omit. */
interface SqliteOptions {
  /**
   * SQLite calls this function instead of loading its WebAssembly file. The function must pass a new instance to
   * `onInstantiated`.
   */
  instantiateWasm(imports: object, onInstantiated: (instance: WebAssembly.Instance) => void): void;
}

/** Creates an instance of SQLite with empty memory. */
const instantiateSqlite = (compiledSqlite: WebAssembly.Module): Promise<Sqlite> =>
  (openSqlite as unknown as (options: SqliteOptions) => Promise<Sqlite>)({
    instantiateWasm: (imports, onInstantiated) => onInstantiated(new WebAssembly.Instance(compiledSqlite, imports)),
  });

/**
 * The number of steps of the SQLite virtual machine after which SQLite checks whether the statement must stop. More
 * frequent checks would slow statements down.
 */
const stepsBetweenChecks = 1000;

/**
 * An SQLite database in memory, without access to a file system. After `lockDown`, SQL statements can only read data.
 */
export class SqlEngine {
  readonly #sqlite: Sqlite;
  readonly #database: Database;
  readonly #databasePointer: number;
  readonly #limits: StatementLimits;
  readonly #rowWriters = new Map<TableName, ReturnType<typeof createRowWriter>>();
  #findInterruption: FindInterruption = () => undefined;
  #interruptionReason: ReturnType<FindInterruption>;
  #denialReason: 'forbidden' | 'jsonNotLoaded' | undefined;
  #statementColumns = new StatementColumns();
  readonly #fieldCounts = new FieldCounter();
  /**
   * The names of tables by root page. The root page is the number of the database page at which a table or an index
   * starts.
   */
  #tablesByRootPage: ReadonlyMap<number, string> = new Map();
  /** The ids of the ads in the `current_ads` SQL view. They are read on first use. */
  #currentAdIds: ReadonlySet<string> | undefined;

  private constructor(sqlite: Sqlite, limits: StatementLimits) {
    this.#sqlite = sqlite;
    this.#database = new sqlite.oo1.DB(':memory:');
    this.#databasePointer = this.#database.pointer as unknown as number;
    this.#limits = limits;
  }

  /**
   * Creates a database with empty tables and limited memory.
   * @param compiledSqlite the compiled code of SQLite; each database has its own memory
   */
  static async createEngine(compiledSqlite: WebAssembly.Module, limits: StatementLimits): Promise<SqlEngine> {
    const engine = new SqlEngine(await instantiateSqlite(compiledSqlite), limits);
    engine.#runSql(`PRAGMA hard_heap_limit = ${limits.maxTableBytes}`);
    engine.#runSql('PRAGMA journal_mode = OFF');
    for (const name of tableNames) engine.#runSql(buildCreateTableSql(name));
    engine.#addRegexpOperator();
    engine.#runSql('BEGIN');
    return engine;
  }

  /**
   * Adds the `text REGEXP pattern` operator, which SQLite runs as `regexp(pattern, text)`. The last compiled pattern is
   * cached, because a statement usually applies one pattern to many rows.
   */
  #addRegexpOperator(): void {
    let [lastPattern, lastRegexp]: [string?, RE2JS?] = [];
    const matchesPattern = (_: number, pattern: unknown, text: unknown): number | null => {
      // Matching a pattern may take long without a step of the SQLite virtual machine, so check here too whether the
      // statement must stop.
      this.#interruptionReason = this.#findInterruption();
      if (this.#interruptionReason) throw new Error('interrupted');
      if (pattern === null || text === null) return null;
      if (lastRegexp === undefined || lastPattern !== pattern)
        [lastPattern, lastRegexp] = [String(pattern), compilePattern(String(pattern))];
      return Number(lastRegexp.matcher(String(text)).find());
    };
    this.#database.createFunction({
      name: 'regexp',
      xFunc: matchesPattern,
      arity: 2,
      deterministic: true,
      directOnly: true,
    });
  }

  /** Inserts rows into a table. Must be called before `lockDown`, which makes the database read-only. */
  insertRows(table: TableName, rows: readonly (readonly Cell[])[]): void {
    const { capi } = this.#sqlite;
    const writer =
      this.#rowWriters.get(table) ?? createRowWriter(this.#sqlite, this.#database.prepare(buildInsertSql(table)));
    this.#rowWriters.set(table, writer);
    for (const row of rows) {
      const resultCode = writer.insertRow(row);
      if (resultCode === capi.SQLITE_NOMEM) throw new SqlFailure({ reason: 'tablesTooLarge' });
      if (resultCode !== capi.SQLITE_DONE) throw this.#createFailure();
    }
    this.#fieldCounts.addRows(table, rows);
  }

  /**
   * Makes the database read-only after all tables were loaded, and enforces the limits on SQL statements.
   * @param findInterruption returns why a running statement must stop, or undefined if the statement may continue
   * @param hasJson true if the `json` column was loaded; otherwise statements that read this column fail with the
   * reason `jsonNotLoaded`
   */
  lockDown(findInterruption: FindInterruption, hasJson: boolean): void {
    const { capi } = this.#sqlite;
    this.#findInterruption = findInterruption;
    for (const writer of this.#rowWriters.values()) writer.close();
    this.#runSql('COMMIT');
    for (const sql of indexSqlStatements) this.#runSql(sql);
    for (const name of viewNames) this.#runSql(buildCreateViewSql(name, hasJson));
    const pages = this.#database.selectArrays('SELECT rootpage, tbl_name FROM sqlite_schema WHERE rootpage > 0');
    this.#tablesByRootPage = new Map(pages.map(([page, table]) => [Number(page), String(table)]));
    this.#runSql('PRAGMA query_only = ON');
    this.#runSql(`PRAGMA hard_heap_limit = ${this.readUsedMemoryBytes() + this.#limits.maxWorkingBytes}`);
    capi.sqlite3_drop_modules(this.#databasePointer, 0);
    for (const [option, flag] of lockDownSettings)
      capi.sqlite3_db_config(this.#databasePointer, capi[option] as never, flag, 0 as never);
    for (const [name, value] of Object.entries(sqliteLimits))
      capi.sqlite3_limit(this.#databasePointer, capi[name] as never, value);
    capi.sqlite3_set_authorizer(
      this.#databasePointer,
      (_, code, firstArgument, secondArgument, _database, readerName) => {
        const isReadAllowed = isAllowedAction(
          { code, firstArgument: firstArgument || '', secondArgument: secondArgument || '' },
          capi,
        );
        if (code === capi.SQLITE_READ && isDatasetTable(firstArgument))
          this.#statementColumns.addColumn(String(firstArgument), secondArgument || '', String(readerName || ''));
        const isJsonMissing =
          !hasJson && code === capi.SQLITE_READ && secondArgument === 'json' && isDatasetTable(firstArgument);
        if (isReadAllowed && !isJsonMissing) return capi.SQLITE_OK;
        this.#denialReason ??= isReadAllowed ? 'jsonNotLoaded' : 'forbidden';
        return capi.SQLITE_DENY;
      },
      0,
    );
    const interrupt = () => {
      this.#interruptionReason = findInterruption();
      return Number(this.#interruptionReason !== undefined);
    };
    capi.sqlite3_progress_handler(this.#databasePointer, stepsBetweenChecks, interrupt, 0);
  }

  /**
   * Compiles an SQL statement and returns a reader for its rows.
   * @throws SqlFailure unless the text contains exactly one statement; in this case, no statement has run
   */
  prepare(sql: string): RowReader {
    this.#statementColumns = new StatementColumns();
    return this.#compileStatements(sql, (statements) => this.#createReader(statements));
  }

  /**
   * Compiles up to two SQL statements from a text and passes them to `createReader`, which rejects a second statement.
   * Releases the statements if an error occurs.
   */
  #compileStatements(sql: string, createReader: (statements: readonly number[]) => RowReader): RowReader {
    const { capi, wasm } = this.#sqlite;
    this.#denialReason = undefined;
    this.#interruptionReason = undefined;
    const bytes = encoder.encode(sql);
    const textPointer = wasm.alloc(bytes.length + 1);
    const outputPointer = wasm.alloc(16);
    const statements: number[] = [];
    try {
      wasm.heap8u().set(bytes, textPointer);
      wasm.heap8u()[textPointer + bytes.length] = 0;
      const end = textPointer + bytes.length;
      for (let position = textPointer; position < end && statements.length < 2; ) {
        const resultCode = capi.sqlite3_prepare_v3(
          this.#databasePointer,
          position,
          end - position + 1,
          0,
          outputPointer,
          outputPointer + 8,
        );
        if (resultCode !== capi.SQLITE_OK) throw this.#createFailure();
        const statementPointer = wasm.peekPtr(outputPointer) as number;
        const nextPosition = wasm.peekPtr(outputPointer + 8) as number;
        if (statementPointer !== 0) statements.push(statementPointer);
        // SQLite ignores all text after a NUL character, so reject a text that contains one.
        else if (nextPosition <= position || (nextPosition < end && wasm.heap8u()[nextPosition] === 0))
          throw new SqlFailure({ reason: 'multipleStatements' });
        position = nextPosition;
      }
      return createReader(statements);
    } catch (error) {
      for (const statementPointer of statements) capi.sqlite3_finalize(statementPointer);
      throw error;
    } finally {
      wasm.dealloc(outputPointer);
      wasm.dealloc(textPointer);
    }
  }

  /**
   * Creates a reader for the rows of a compiled SQL statement.
   * @throws SqlFailure unless there is exactly one statement and this statement only reads data
   */
  #createReader([statementPointer, secondStatementPointer]: readonly number[]): RowReader {
    const { capi } = this.#sqlite;
    if (statementPointer === undefined) throw new SqlFailure({ reason: 'noStatement' });
    if (secondStatementPointer !== undefined) throw new SqlFailure({ reason: 'multipleStatements' });
    const isReadOnlyQuery =
      capi.sqlite3_stmt_readonly(statementPointer) !== 0 && capi.sqlite3_column_count(statementPointer) > 0;
    if (!isReadOnlyQuery || capi.sqlite3_stmt_isexplain(statementPointer) !== 0)
      throw new SqlFailure({ reason: 'forbidden' });
    const createFailure = () => this.#createFailure();
    return createRowReader({
      ...this.#sqlite,
      statementPointer,
      createFailure,
      findInterruption: this.#findInterruption,
    });
  }

  /**
   * Returns the ad fields that the last prepared SQL statement reads, with the number of ads that have a value for each
   * field.
   * @param sql the text of this statement
   */
  analyzeStatement(sql: string): Pick<SqlResult, 'statementFields' | 'isAboutAds' | 'readsPages'> {
    const statementColumns = this.#statementColumns;
    const openedTables = this.#listOpenedTables(sql);
    for (const table of openedTables) statementColumns.addJoinedTable(table);
    const readCurrentAdIds = () => {
      this.#currentAdIds ??= new Set(this.#readFirstColumn('SELECT id FROM current_ads'));
      return this.#currentAdIds;
    };
    return {
      statementFields: this.#fieldCounts.countFields(statementColumns, readStatementLiterals(sql), readCurrentAdIds),
      isAboutAds: statementColumns.isAboutAds(),
      // Use the opened tables, because a common table expression can also be called `pages`.
      readsPages: openedTables.includes('pages'),
    };
  }

  /**
   * Returns the tables that an SQL statement opens, according to `EXPLAIN`, which lists the steps of the compiled
   * statement. The list includes tables that are only joined with `USING`, for which SQLite does not report any column
   * as read.
   */
  #listOpenedTables(sql: string): string[] {
    const createFailure = () => this.#createFailure();
    const tableNames = new Set<string>();
    let reader: RowReader | undefined;
    try {
      reader = this.#compileStatements(`EXPLAIN ${sql}`, ([statementPointer = 0]) =>
        createRowReader({
          ...this.#sqlite,
          statementPointer,
          createFailure,
          findInterruption: () => undefined,
        }),
      );
      while (reader.advance()) {
        const [, opcode, , rootPage] = reader.readRow((text) => text);
        const table = opcode === 'OpenRead' ? this.#tablesByRootPage.get(Number(rootPage)) : undefined;
        if (table !== undefined) tableNames.add(table);
      }
    } catch (error) {
      // `EXPLAIN` fails for a statement that begins with a semicolon. The tables that such a statement joins remain
      // unknown.
      if (!(error instanceof SqlFailure)) throw error;
    } finally {
      reader?.close();
    }
    return [...tableNames];
  }

  #readFirstColumn(sql: string): string[] {
    const reader = this.prepare(sql);
    const cells: string[] = [];
    try {
      while (reader.advance()) cells.push(String(reader.readRow((text) => text)[0]));
    } finally {
      reader.close();
    }
    return cells;
  }

  /** Returns the memory that SQLite uses, in bytes. */
  readUsedMemoryBytes(): number {
    const { capi, wasm } = this.#sqlite;
    const pointer = wasm.alloc(16);
    capi.sqlite3_status64(capi.SQLITE_STATUS_MEMORY_USED, pointer, pointer + 8, 0);
    const usedBytes = Number(wasm.peek64(pointer));
    wasm.dealloc(pointer);
    return usedBytes;
  }

  /** Creates an error that describes the last failure of the database. */
  #createFailure(): SqlFailure {
    const { capi } = this.#sqlite;
    const code = capi.sqlite3_errcode(this.#databasePointer);
    const detail = capi.sqlite3_errmsg(this.#databasePointer);
    if (this.#denialReason) return new SqlFailure({ reason: this.#denialReason });
    if (code === capi.SQLITE_INTERRUPT || this.#interruptionReason)
      return new SqlFailure({ reason: this.#interruptionReason ?? 'timeout' });
    if (code === capi.SQLITE_NOMEM) return new SqlFailure({ reason: 'outOfMemory' });
    if (code === capi.SQLITE_TOOBIG) return new SqlFailure({ reason: 'textTooLarge' });
    return new SqlFailure({ reason: 'invalid', detail });
  }

  #runSql(sql: string): void {
    try {
      this.#database.exec(sql);
    } catch {
      throw this.#createFailure();
    }
  }
}

/**
 * Compiles a regular expression.
 * @throws Error that explains what is wrong with the pattern; SQLite copies the text of this error to the error of the
 * statement
 */
function compilePattern(pattern: string): RE2JS {
  const { maxPatternChars, maxSteps } = regexpLimits;
  if (pattern.length > maxPatternChars)
    throw createUnnamedError(`the pattern has more than ${maxPatternChars} characters`);
  let regexp: RE2JS;
  try {
    regexp = RE2JS.compile(pattern);
  } catch (error) {
    const [feature] = unsupportedPatternFeatures.find(([, featurePattern]) => featurePattern.test(pattern)) ?? [];
    throw createUnnamedError(feature ?? (error instanceof Error ? error.message : String(error)));
  }
  if (regexp.programSize() > maxSteps)
    throw createUnnamedError(`the pattern repeats too much: it has more than ${maxSteps} steps`);
  return regexp;
}

/**
 * Creates an error with an empty name. SQLite copies the whole error as text, which would otherwise begin with `Error:
 * `.
 */
const createUnnamedError = (message: string) => Object.assign(new Error(message), { name: '' });

/**
 * Features of regular expressions that RE2 does not support, because RE2 guarantees linear time. Each feature has a
 * pattern that detects it.
 */
const unsupportedPatternFeatures = [
  ['look-around such as (?= or (?! is not supported: patterns are those of RE2', /\(\?<?[=!]/],
  ['a back-reference such as \\1 is not supported: patterns are those of RE2', /\\[1-9]/],
] as const;

type Database = InstanceType<Sqlite3Static['oo1']['DB']>;
type Statement = ReturnType<Database['prepare']>;

const isDatasetTable = (table: string | 0): boolean => datasetTables.has(String(table).toLowerCase());
const datasetTables = new Set<string>([...tableNames, ...viewNames]);

const lockDownSettings = [
  ['SQLITE_DBCONFIG_DEFENSIVE', 1],
  ['SQLITE_DBCONFIG_TRUSTED_SCHEMA', 0],
  ['SQLITE_DBCONFIG_WRITABLE_SCHEMA', 0],
  ['SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE', 0],
  ['SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE', 0],
] as const;

const primaryKeys: Partial<Record<TableName, string>> = { ads: 'id', pages: 'pageId' };

/**
 * The columns in which SQL ignores case. Summaries and the filters of a local library (a server of imported ads) ignore
 * case too.
 */
const caseInsensitiveColumns = new Set(['pageName', 'displayFormat', 'ctaType', 'country', 'platform']);

function buildCreateTableSql(name: TableName): string {
  const columns = Object.entries(tables[name]).map(([column, type]) =>
    [
      `"${column}" ${type}`,
      column === primaryKeys[name] && 'PRIMARY KEY',
      caseInsensitiveColumns.has(column) && 'COLLATE NOCASE',
    ]
      .filter(Boolean)
      .join(' '),
  );
  return `CREATE TABLE "${name}" (${columns.join(', ')})`;
}

/**
 * Builds the SQL that creates a view. If the `json` column was not loaded, the view contains NULL instead, so that the
 * view never reads `json`. Every read of `json` that SQLite reports then comes from the statement. This matters because
 * a view and a common table expression of the same name cannot be told apart in these reports.
 */
function buildCreateViewSql(name: ViewName, hasJson: boolean): string {
  const columns = getColumnNames('ads').map((column) =>
    column === 'json' && !hasJson ? 'NULL AS json' : `ads."${column}"`,
  );
  return `CREATE VIEW "${name}" AS SELECT ${columns.join(', ')} FROM ads WHERE ${sqlViews[name]}`;
}

const buildInsertSql = (name: TableName): string =>
  `INSERT OR REPLACE INTO "${name}" VALUES (${getColumnNames(name)
    .map(() => '?')
    .join(', ')})`;

/**
 * The SQL statements that create the indexes. They run after the tables were loaded, because inserting into an indexed
 * table is slower.
 */
const indexSqlStatements = [
  'CREATE INDEX ad_countries_id ON ad_countries (id)',
  'CREATE INDEX ad_platforms_id ON ad_platforms (id)',
  'CREATE INDEX ad_cards_id ON ad_cards (id)',
  'CREATE INDEX ad_versions_id ON ad_versions (id)',
  'CREATE INDEX gathered_ad ON gathered (adId)',
];

/**
 * An action of an SQL statement that SQLite reports to its authorizer callback. For the code `SQLITE_READ`,
 * `firstArgument` is the table and `secondArgument` the column. For `SQLITE_FUNCTION`, `secondArgument` is the name of
 * the function.
 */
type SqliteAction = { code: number; firstArgument: string; secondArgument: string };

type ActionCodes = Record<'SQLITE_SELECT' | 'SQLITE_READ' | 'SQLITE_FUNCTION' | 'SQLITE_RECURSIVE', number>;

const jsonTables = ['json_each', 'json_tree', 'jsonb_each', 'jsonb_tree'];
const readableTables = new Set<string>([...datasetTables, ...jsonTables]);

/**
 * Matches the names of SQLite's internal tables: schema, statistics, database pages, compiled statements and pragmas.
 */
const internalTablePattern = /^(?:sqlite_|pragma_|dbstat|bytecode|tables_used|fts\d|rtree)/i;
/**
 * Matches the names of functions that access the system, reveal details of SQLite, or belong to modules that `lockDown`
 * removes, such as full-text search.
 */
const refusedFunctionPattern =
  /^(?:load_extension|readfile|writefile|edit|eval|sqlite_.*|fts\d.*|rtree.*|bm25|highlight|snippet|match|unknown|last_insert_rowid|changes|total_changes)$/i;

/**
 * Returns true if an SQL statement may perform an action. Only actions that read data are allowed. SQLite reports each
 * action, so this check does not depend on the text of the statement.
 */
export function isAllowedAction({ code, firstArgument, secondArgument }: SqliteAction, codes: ActionCodes): boolean {
  if (code === codes.SQLITE_SELECT || code === codes.SQLITE_RECURSIVE) return true;
  if (code === codes.SQLITE_FUNCTION) return !refusedFunctionPattern.test(secondArgument);
  if (code !== codes.SQLITE_READ) return false;
  // An empty column name means that SQLite only counts rows. The table name may then belong to a common table
  // expression, so only internal tables are rejected.
  return secondArgument === ''
    ? !internalTablePattern.test(firstArgument)
    : readableTables.has(firstArgument.toLowerCase());
}

type WasmExports = Record<
  'sqlite3_bind_text' | 'sqlite3_bind_double' | 'sqlite3_bind_null',
  (...values: number[]) => number
>;

/** The value of the `SQLITE_STATIC` constant, which tells SQLite not to copy a bound text. */
const sqliteStaticFlag = 0;
/**
 * The maximum number of UTF-8 bytes per UTF-16 code unit of a string. Buffers for texts are allocated for this maximum.
 */
const maxBytesPerChar = 3;

const encoder = new TextEncoder();

/**
 * Creates a writer that inserts rows with a prepared INSERT statement. To save time, all texts of a row are written to
 * one buffer, which is reused for the next row.
 */
function createRowWriter({ capi, wasm }: Pick<Sqlite3Static, 'capi' | 'wasm'>, insertStatement: Statement) {
  const { sqlite3_bind_text, sqlite3_bind_double, sqlite3_bind_null } = wasm.exports as unknown as WasmExports;
  const statementPointer = insertStatement.pointer as unknown as number;
  let [bufferPointer, bufferBytes] = [0, 0];
  const reserveBuffer = (row: readonly Cell[]): Uint8Array | undefined => {
    let neededBytes = 8;
    for (const cell of row) if (typeof cell === 'string') neededBytes += maxBytesPerChar * cell.length;
    if (neededBytes > bufferBytes) {
      wasm.dealloc(bufferPointer);
      bufferPointer = wasm.alloc.impl(neededBytes);
      bufferBytes = bufferPointer === 0 ? 0 : neededBytes;
      if (bufferPointer === 0) return;
    }
    return wasm.heap8u();
  };
  return {
    /** Inserts a row and returns the result code of SQLite. */
    insertRow(row: readonly Cell[]): number {
      const heap = reserveBuffer(row);
      if (!heap) return capi.SQLITE_NOMEM;
      let offset = bufferPointer;
      for (const [index, cell] of row.entries()) {
        if (typeof cell === 'string') {
          const { written } = encoder.encodeInto(cell, heap.subarray(offset));
          sqlite3_bind_text(statementPointer, index + 1, offset, written, sqliteStaticFlag);
          offset += written;
        } else if (cell === null) sqlite3_bind_null(statementPointer, index + 1);
        else sqlite3_bind_double(statementPointer, index + 1, cell);
      }
      const resultCode = capi.sqlite3_step(statementPointer);
      capi.sqlite3_reset(statementPointer);
      return resultCode;
    },
    close(): void {
      insertStatement.finalize();
      wasm.dealloc(bufferPointer);
    },
  };
}

/**
 * Runs an SQL statement and returns its first rows and its number of rows. If there are more than `maxCountedRows`
 * rows, stops counting and returns null as their number.
 */
export function readSqlResult(
  reader: RowReader,
  options: QueryOptions,
): Omit<SqlResult, 'statementFields' | 'isAboutAds' | 'readsPages'> {
  const rows: Cell[][] = [];
  let remainingChars = resultLimits.maxTotalChars;
  let countedRows = 0;
  for (; countedRows <= resultLimits.maxCountedRows; countedRows++) {
    if (!reader.advance())
      return { columns: reader.readColumnNames(), rows, rowCount: countedRows, truncated: countedRows > rows.length };
    if (rows.length < options.limit && rows.length === countedRows && remainingChars > 0) {
      const row = reader.readRow((text) => cleanCell(text, options.maxCellChars));
      remainingChars -= countCellChars(row);
      rows.push(row);
    }
  }
  return { columns: reader.readColumnNames(), rows, rowCount: null, truncated: true };
}

/** A compiled SQL statement, with the objects and functions that are needed to read its rows. */
interface CompiledStatement extends Pick<Sqlite, 'capi' | 'wasm'> {
  statementPointer: number;
  createFailure(): SqlFailure;
  findInterruption: FindInterruption;
}

/** Reads the rows of a compiled SQL statement one by one. */
export type RowReader = ReturnType<typeof createRowReader>;

function createRowReader({ capi, wasm, statementPointer, createFailure, findInterruption }: CompiledStatement) {
  const columnCount = capi.sqlite3_column_count(statementPointer);
  const readCell = (index: number, formatText: (text: string) => string): Cell => {
    const type = capi.sqlite3_column_type(statementPointer, index);
    if (type === capi.SQLITE_NULL) return null;
    if (type === capi.SQLITE_INTEGER) return convertInteger(capi.sqlite3_column_int64(statementPointer, index));
    if (type === capi.SQLITE_FLOAT) return convertInfiniteNumber(capi.sqlite3_column_double(statementPointer, index));
    const start = capi.sqlite3_column_blob(statementPointer, index) as number;
    const bytes = wasm.heap8u().slice(start, start + capi.sqlite3_column_bytes(statementPointer, index));
    return formatText(type === capi.SQLITE_TEXT ? utf8Decoder.decode(bytes) : formatBlob(bytes));
  };
  return {
    close: () => capi.sqlite3_finalize(statementPointer),
    /** Returns the column names of the result, sanitized, shortened and made unique. */
    readColumnNames(): string[] {
      const names = new Set<string>();
      for (let index = 0; index < columnCount; index++) {
        const originalName = sanitizeLine(capi.sqlite3_column_name(statementPointer, index) ?? '');
        let name = cleanCell(originalName, maxColumnNameChars) || `column ${index + 1}`;
        while (names.has(name)) name += ` (${index + 1})`;
        names.add(name);
      }
      return [...names];
    },
    advance(): boolean {
      const resultCode = capi.sqlite3_step(statementPointer);
      if (resultCode === capi.SQLITE_ROW) return true;
      if (resultCode === capi.SQLITE_DONE) return false;
      throw createFailure();
    },
    readRow: (formatText: (text: string) => string): Cell[] =>
      Array.from({ length: columnCount }, (_, index) => {
        // Reading long cells takes no steps of the SQLite virtual machine, so check here too whether the statement must
        // stop.
        const reason = findInterruption();
        if (reason) throw new SqlFailure({ reason });
        return readCell(index, formatText);
      }),
  };
}

const maxColumnNameChars = 80;
const utf8Decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Converts an integer to a number, or to text if a number cannot represent it exactly. */
function convertInteger(integer: bigint | number): number | string {
  const number = Number(integer);
  return Number.isSafeInteger(number) ? number : String(integer);
}

/** Converts an infinite number to text, because JSON cannot represent infinity. Returns a finite number unchanged. */
const convertInfiniteNumber = (number: number): number | string =>
  Number.isFinite(number) ? number : number > 0 ? 'Infinity' : '-Infinity';

const maxBlobBytes = 10_000;

/** Formats binary data as an SQL literal, e.g. `x'00ff'`. Data with more than `maxBlobBytes` bytes is cut. */
function formatBlob(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.subarray(0, maxBlobBytes)).toString('hex');
  return `x'${hex}${bytes.length > maxBlobBytes ? `… (+${bytes.length - maxBlobBytes} bytes)` : "'"}`;
}
