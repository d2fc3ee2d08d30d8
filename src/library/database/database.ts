import { hash } from 'node:crypto';
import * as fs from 'node:fs';
import { LRUCache } from 'lru-cache';
import { acquireLock } from '../../lock.ts';
import { postponeWebAssemblyOptimization } from '../../webassembly-start.ts';
import { listMeasureColumns, recordTypes, textColumns } from '../search/searchable-records.ts';
import { ApiError } from '../service/request.ts';

type SqliteModule = typeof import('node-sqlite3-wasm');
type Connection = InstanceType<SqliteModule['Database']>;
type Statement = ReturnType<Connection['prepare']>;

/**
 * The value of a placeholder (`?`) in an SQL statement. Pass a long text as UTF-8 bytes, because SQLite accepts bytes
 * several times faster than strings.
 */
type SqlParameter = string | number | null | Uint8Array;

/** An open database file, with synchronous methods that run SQL statements. */
export type Database = Awaited<ReturnType<typeof openDatabase>>;

/**
 * The error code for a lock file that another program deleted. After that, a second process may be using the same
 * database file and its write-ahead log.
 */
const databaseTakenOverCode = 'database_taken_over';

/**
 * Locks a database file for this process. Creates the file if it does not exist. The lock is a separate file, because
 * this WebAssembly build of SQLite does not support locks between processes.
 *
 * @throws LockHeldError if another process uses the file
 * @throws Error if the file cannot be written, or if it is the database of another program
 */
export async function lockDatabase(path: string) {
  if (path === ':memory:') return { databasePath: path, checkLock() {}, setEndpoint() {}, release() {} };
  try {
    fs.closeSync(fs.openSync(path, 'a', 0o600));
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${(error as Error).message}.`);
  }
  // Resolve symbolic links, so that all paths to the same database lead to the same lock.
  const databasePath = fs.realpathSync(path);
  if (hasHeaderOfOtherProgram(databasePath)) throw createOtherProgramError(databasePath);
  const lockPath = `${databasePath}.owner`;
  const { isHeld, ...lock } = await acquireLock(lockPath);
  // SQLite locks the database with a folder next to it, which remains after a process is killed. Remove the folder,
  // because only the process with the lock file uses the database.
  fs.rmSync(`${databasePath}.lock`, { recursive: true, force: true });
  const lockedFileIdentity = readFileIdentity(databasePath);
  const createLockLostError = (code: string, event: string) =>
    new ApiError(
      503,
      code,
      `${event} while this process was using the database. The process writes nothing more. Next time, stop it first.`,
    );
  return {
    databasePath,
    ...lock,
    /**
     * Checks that this process still has the lock of the database.
     * @throws ApiError 503 if the lock file was deleted, or if the database file was deleted or replaced
     */
    checkLock() {
      if (!isHeld())
        throw createLockLostError(databaseTakenOverCode, `The lock of ${databasePath}, ${lockPath}, was deleted`);
      if (readFileIdentity(databasePath) !== lockedFileIdentity)
        throw createLockLostError('database_replaced', `${databasePath} was deleted or replaced`);
    },
  };
}

/**
 * Returns the device number and inode number of a file. If these numbers change, the file was replaced, because the
 * operating system does not reuse the inode number of an open file.
 */
function readFileIdentity(path: string): string | undefined {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}

/**
 * Returns true if a file is an SQLite database of another program. Reads only the header of the file,
 * because opening the database with SQLite would delete the write-ahead log of a program that uses the database.
 *
 * @see https://www.sqlite.org/fileformat.html#the_database_header
 */
function hasHeaderOfOtherProgram(path: string): boolean {
  const header = Buffer.alloc(100);
  const file = fs.openSync(path, 'r');
  try {
    fs.readSync(file, header, 0, header.length, 0);
  } finally {
    fs.closeSync(file);
  }
  const isSqliteFile = header.toString('latin1', 0, 16) === 'SQLite format 3\0';
  return isSqliteFile && header.readUInt32BE(68) !== applicationId;
}

const createOtherProgramError = (path: string) => new Error(`${path} is a database of another program.`);

/**
 * Replaces NUL characters in a text. For SQLite, a text ends at a NUL character. A query would therefore compare only
 * the characters before it and find too many rows.
 */
const replaceNulCharacters = (parameter: SqlParameter) =>
  typeof parameter === 'string' ? parameter.replaceAll('\0', '\uFFFD') : parameter;

interface DatabaseOptions {
  /**
   * Throws an error if this process has lost its lock on the database file, because another process may then be using
   * the file.
   */
  checkLock?: () => void;
  /**
   * True for a temporary copy of a library, whose file is deleted while it is open. For such a copy, SQLite writes no
   * other files next to it, and the data need not survive a crash.
   */
  isTemporary?: boolean;
  /**
   * The time from which dates in table columns are counted, in Unix milliseconds. For demo data, it is the start of the
   * current day, so that the demo ads are always recent. For other libraries, it is 0.
   */
  dateOriginMs?: number;
}

/**
 * Opens a database file, or a database in memory (`:memory:`). Creates the tables in a new file.
 *
 * No other process may have the file open. Write-ahead logging is the only mode that survives a crash, and this build
 * of SQLite supports it only with exclusive access.
 *
 * @throws Error if the file is not a library, or if another version of this program created it
 */
export async function openDatabase(
  path: string,
  { checkLock = () => {}, isTemporary = false, dateOriginMs = 0 }: DatabaseOptions = {},
) {
  postponeWebAssemblyOptimization();
  // Load SQLite only now, because most processes never open a library.
  const { default: sqlite } = (await import('node-sqlite3-wasm')) as unknown as { default: SqliteModule };
  const connection = new sqlite.Database(path);
  try {
    const journalPragmas = isTemporary ? 'journal_mode = MEMORY; PRAGMA synchronous = OFF' : 'journal_mode = WAL';
    connection.exec('PRAGMA locking_mode = EXCLUSIVE');
    // Write the application id before SQLite starts the write-ahead log. The header of the file then always contains the
    // id, and `hasHeaderOfOtherProgram` recognizes the library even if this process is killed.
    if (readPragma(connection, 'page_count') === 0) connection.exec(`PRAGMA application_id = ${applicationId}`);
    connection.exec(`PRAGMA ${journalPragmas}; PRAGMA cache_size = -65536`);
    // A temporary file already has its tables, because it is a copy of a library that this version created.
    if (!isTemporary) createTables(connection, path);
  } catch (error) {
    // If the disk is full, closing the file fails too. Ignore this second error, because the first error describes the
    // cause.
    catchError(() => connection.close());
    if (String(error).includes('not a database')) throw new Error(`${path} is not a database of the ad library.`);
    throw error;
  }
  // Ignore the error, because finalizing a failed statement only repeats the error of the statement.
  const finalizeStatement = (statement: Statement) => void catchError(() => statement.finalize());
  const statements = new LRUCache<string, Statement>({ max: 200, dispose: finalizeStatement });

  function prepare(sql: string): Statement {
    const statement = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  const all = <Row>(sql: string, parameters: SqlParameter[] = []) =>
    prepare(sql).all(parameters.map(replaceNulCharacters)) as Row[];

  const rollbackListeners: (() => void)[] = [];

  /**
   * Runs `makeChanges` in a transaction and writes the changes to disk. If `makeChanges` throws an error, the database
   * stays unchanged. A call within another transaction becomes part of that transaction.
   *
   * @throws Error that names the file if it cannot be written, e.g. because its disk is full
   */
  function transaction<Result>(makeChanges: () => Result): Result {
    if (connection.inTransaction) return makeChanges();
    checkLock();
    connection.exec('BEGIN IMMEDIATE');
    try {
      const result = makeChanges();
      connection.exec('COMMIT');
      return result;
    } catch (error) {
      if (connection.inTransaction) connection.exec('ROLLBACK');
      for (const onRollback of rollbackListeners) onRollback();
      throw describeWriteError(error, path);
    }
  }

  return {
    all,
    /**
     * Returns the first row of a query. Still reads all rows, because an unfinished statement would keep its
     * transaction open.
     */
    get: <Row>(sql: string, parameters?: SqlParameter[]) => all<Row>(sql, parameters)[0],
    /**
     * Runs an SQL statement that changes data. Returns the number of changed rows (`changes`) and the row number of the
     * last inserted row (`rowid`).
     */
    run: (sql: string, parameters: SqlParameter[] = []) =>
      transaction(() => {
        const { changes, lastInsertRowid } = prepare(sql).run(parameters.map(replaceNulCharacters));
        return { changes, rowid: Number(lastInsertRowid) };
      }),
    transaction,
    /** Registers a function to call after each rollback, e.g. to clear a cache. */
    afterRollback: (listener: () => void) => void rollbackListeners.push(listener),
    checkLock,
    dateOriginMs,
    /** Runs several SQL statements that have neither parameters nor results. */
    runScript: (sql: string) => connection.exec(sql),
    /** Closes the database. Leaves it open if another process may have taken over the file. */
    close() {
      const lockError = catchError(checkLock);
      // Another process may be using the file. Closing the connection would delete the write-ahead log of that process,
      // so leave the connection open until this process ends.
      if (lockError instanceof ApiError && lockError.code === databaseTakenOverCode) return;
      statements.clear();
      // If the database file was moved, closing writes the write-ahead log to the moved file. If the file was deleted,
      // closing fails, so ignore the error.
      if (lockError) catchError(() => connection.close());
      else connection.close();
    },
  };
}

/** Calls a function. Returns the error that the function throws, or undefined if it succeeds. */
function catchError(callback: () => void): unknown {
  try {
    callback();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Matches SQLite's error messages for a file that cannot be written, e.g. because the disk is full. */
const writeErrorPattern = /disk is full|disk I\/O|read-?only|unable to open/i;

/**
 * Returns true if SQLite could not write to the database file. Such an error ends the current transaction, so no further
 * change may be made in it.
 */
export const isWriteError = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'SQLite3Error' && writeErrorPattern.test(error.message);

/** Replaces an error of SQLite about writing to the database file with an error that names the file. */
const describeWriteError = (error: unknown, path: string): unknown =>
  isWriteError(error)
    ? new Error(`${path} cannot be written (${error.message}). Is its disk full?`, { cause: error })
    : error;

/**
 * The text "AdLi" as a number. It is stored in the file as SQLite's application id, which distinguishes a library from
 * SQLite files of other programs.
 */
const applicationId = 0x41644c69;

const recordTablesSql = Object.values(recordTypes).map(({ itemType, measures }) => {
  const columns = listMeasureColumns(measures).map((key) => `"${key}"`);
  const indexes = measures.map(({ key }) => `CREATE INDEX "${itemType}_${key}" ON ${itemType} ("${key}");`);
  return `
    CREATE TABLE ${itemType} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run INTEGER, ${columns.join(', ')});
    CREATE TABLE ${itemType}_json (number INTEGER PRIMARY KEY, json BLOB NOT NULL, tags TEXT NOT NULL);
    CREATE VIRTUAL TABLE ${itemType}_text USING fts5 (
      ${textColumns.join(', ')}, content = '', contentless_delete = 1, tokenize = ascii
    );
    CREATE TABLE ${itemType}_tag_values (
      number INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, spelling TEXT NOT NULL, UNIQUE (key, value)
    );
    CREATE TABLE ${itemType}_tags (
      tag INTEGER NOT NULL, record INTEGER NOT NULL, isCounted INTEGER NOT NULL, PRIMARY KEY (tag, record)
    ) WITHOUT ROWID;
    ${indexes.join('\n')}`;
});

/**
 * The tables of a library. Each record type has five tables. For ads, these are:
 *
 * - `ads` has the columns for filtering and sorting. The table is narrow, so that queries read few database pages.
 * - `ads_json` has the JSON of each ad and the list of its tags.
 * - `ads_text` is the full-text index over the ad, its advertiser and its payer. It does not store the text. Its
 * tokenizer only splits at spaces, because `search/tokens.ts` creates the tokens.
 * - `ads_tag_values` has the values of tags, e.g. countries and domains (see `search/tags.ts`).
 * - `ads_tags` links ads to their tag values.
 */
const tablesSql = `
  ${recordTablesSql.join('')}
  CREATE TABLE import_runs (number INTEGER PRIMARY KEY AUTOINCREMENT, startedAt INTEGER NOT NULL);
  CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE pictures (address TEXT PRIMARY KEY, file TEXT, bytes INTEGER NOT NULL);
  CREATE TABLE accounts (
    userId TEXT PRIMARY KEY, billingUserId TEXT NOT NULL REFERENCES accounts, name TEXT, emailAddress TEXT,
    isTeamMember INTEGER NOT NULL,
    -- Of the account that pays.
    planId TEXT, subscriptionStatus TEXT, creditsMax INTEGER, hourlyLimit INTEGER, dailyLimit INTEGER
  );
  CREATE TABLE spending (
    billingUserId TEXT NOT NULL REFERENCES accounts, hour INTEGER NOT NULL, credits INTEGER NOT NULL,
    PRIMARY KEY (billingUserId, hour)
  );
  CREATE TABLE keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, keyPrefix TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
    userId TEXT NOT NULL REFERENCES accounts, createdAt INTEGER NOT NULL, revokedAt INTEGER, unmetered INTEGER NOT NULL
  );
  CREATE TABLE collections (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, userId TEXT NOT NULL REFERENCES accounts,
    billingUserId TEXT NOT NULL REFERENCES accounts, name TEXT NOT NULL, type TEXT NOT NULL, defaultType TEXT
  );
  CREATE INDEX collections_billingUserId ON collections (billingUserId);
  CREATE TABLE collection_items (
    number INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL REFERENCES collections,
    itemType TEXT NOT NULL, item INTEGER NOT NULL, UNIQUE (collection, itemType, item)
  );
  CREATE INDEX collection_items_order ON collection_items (collection, itemType, number);`;

const tagKeys = Object.values(recordTypes).map(({ tagFilters }) => tagFilters.map(({ key }) => key));
/**
 * The version of the search index. Increase it when you change how the columns, tags or search words of a record are
 * computed. Existing files then contain outdated values and need a new import.
 */
const indexVersion = 10;
/**
 * The version of the database file, which SQLite stores in `PRAGMA user_version`. It is a hash of the table
 * definitions, the tag keys and `indexVersion`, so it changes with each of them.
 */
const fileVersion = Number.parseInt(hash('sha256', JSON.stringify([indexVersion, tablesSql, tagKeys])).slice(0, 7), 16);

const readPragma = (connection: Connection, name: string): number =>
  Number(Object.values(connection.get(`PRAGMA ${name}`) ?? {})[0]);

/**
 * Creates the tables in a new file, or checks the version of an existing file.
 *
 * @throws Error if another version or another program created the file, or if the file cannot be written
 */
function createTables(connection: Connection, path: string): void {
  const isNewFile = connection.all("SELECT 1 FROM sqlite_schema WHERE type = 'table' LIMIT 1").length === 0;
  if (!isNewFile && readPragma(connection, 'application_id') !== applicationId) throw createOtherProgramError(path);
  if (!isNewFile && readPragma(connection, 'user_version') !== fileVersion)
    throw new Error(`${path} was made by another version of ad-library-mcp. Name another file, and import again.`);
  try {
    // Write to the file even if nothing has changed, so that a read-only file causes an error now and not at the first
    // API call.
    connection.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${fileVersion}`);
    if (isNewFile) connection.exec(tablesSql);
    connection.exec('COMMIT');
  } catch (error) {
    throw describeWriteError(error, path);
  }
}
