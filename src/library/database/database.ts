import { hash } from 'node:crypto';
import * as fs from 'node:fs';
import { LRUCache } from 'lru-cache';
import { acquireLock } from '../../lock.ts';
import { listMeasureColumns, recordTypes, textColumns } from '../search/searchable-records.ts';
import { ApiError } from '../service/request.ts';

type Engine = typeof import('node-sqlite3-wasm');
type Connection = InstanceType<Engine['Database']>;
type Statement = ReturnType<Connection['prepare']>;

/** Pass long texts as UTF-8 bytes: the engine binds them several times faster than strings. */
type Value = string | number | null | Uint8Array;

/** Opened by `openDatabase`; all of its calls are synchronous. */
export type Database = Awaited<ReturnType<typeof openDatabase>>;

/** The code of the error where another process may have the file, and its log. */
const takenOver = 'database_taken_over';

/**
 * Takes a database file for this process, because the engine has no locks that hold between processes; makes the file
 * if there is none.
 * @throws LockHeldError, or Error when the file cannot be written
 */
export async function lockDatabase(path: string) {
  if (path === ':memory:') return { database: path, check() {}, announce() {}, release() {} };
  try {
    fs.closeSync(fs.openSync(path, 'a', 0o600));
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${(error as Error).message}.`);
  }
  // With all links resolved.
  const database = fs.realpathSync(path);
  const lockPath = `${database}.owner`;
  const { isHeld, ...lock } = await acquireLock(lockPath);
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  fs.rmSync(`${database}.lock`, { recursive: true, force: true });
  const file = identityAt(database);
  const lost = (code: string, what: string) =>
    new ApiError(503, code, `${what} while this process used it, so it writes nothing more; stop it before that.`);
  return {
    database,
    ...lock,
    /** @throws ApiError when the file is gone, or may have another owner */
    check() {
      if (!isHeld()) throw lost(takenOver, `The lock of ${database}, ${lockPath}, was deleted`);
      if (identityAt(database) !== file) throw lost('database_replaced', `${database} was deleted or replaced`);
    },
  };
}

/** Which file it is. Inode numbers are not used again while a file is open. */
function identityAt(path: string): string | undefined {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}

/** The engine cuts bound text at a NUL character, so a search for the rest would match too much. */
const bindable = (value: Value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value);

interface DatabaseOptions {
  /** Throws when another process may have taken over the file. */
  checkLock?: () => void;
  /** The file is deleted while it is open: nothing is written beside it, and nothing has to survive a crash. */
  isTemporary?: boolean;
  /** The time from which the dates in the columns are counted, in Unix milliseconds. 0 unless it is demo data. */
  dateOrigin?: number;
}

/**
 * Opens a database file (made when absent) or `:memory:`, with the tables of this version.
 *
 * No other process may have the file open: the engine has no shared memory, so write-ahead logging, its only crash-safe
 * mode, needs an exclusive lock.
 * @throws Error when the file is no library, or was made by another version.
 */
export async function openDatabase(
  path: string,
  { checkLock = () => {}, isTemporary = false, dateOrigin = 0 }: DatabaseOptions = {},
) {
  // Loaded on demand: most processes never open a library.
  const { default: engine } = (await import('node-sqlite3-wasm')) as unknown as { default: Engine };
  const connection = new engine.Database(path);
  try {
    const journal = isTemporary ? 'journal_mode = MEMORY; PRAGMA synchronous = OFF' : 'journal_mode = WAL';
    connection.exec(`PRAGMA locking_mode = EXCLUSIVE; PRAGMA ${journal}; PRAGMA cache_size = -65536`);
    makeTables(connection, path);
  } catch (error) {
    // On a full disk, closing fails too.
    thrownBy(() => connection.close());
    if (String(error).includes('not a database')) throw new Error(`${path} is not a database of the ad library.`);
    throw error;
  }
  // Finalizing a statement that failed throws the same error again.
  const dispose = (statement: Statement) => void thrownBy(() => statement.finalize());
  const statements = new LRUCache<string, Statement>({ max: 200, dispose });

  function prepared(sql: string): Statement {
    const statement = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  const all = <Row>(sql: string, values: Value[] = []) => prepared(sql).all(values.map(bindable)) as Row[];

  const rollbackListeners: (() => void)[] = [];

  /** Runs `work` whole or not at all, and returns when it is on disk. Nested calls join the outer transaction. */
  function transaction<Result>(work: () => Result): Result {
    if (connection.inTransaction) return work();
    checkLock();
    connection.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      connection.exec('COMMIT');
      return result;
    } catch (error) {
      if (connection.inTransaction) connection.exec('ROLLBACK');
      for (const forget of rollbackListeners) forget();
      throw error;
    }
  }

  return {
    all,
    // Reads all rows: a half-read statement keeps its read transaction open.
    get: <Row>(sql: string, values?: Value[]) => all<Row>(sql, values)[0],
    run: (sql: string, values: Value[] = []) =>
      transaction(() => {
        const { changes, lastInsertRowid } = prepared(sql).run(values.map(bindable));
        return { changes, rowid: Number(lastInsertRowid) };
      }),
    transaction,
    /** Calls a function after each transaction that failed, to forget what it read or wrote. */
    afterRollback: (forget: () => void) => void rollbackListeners.push(forget),
    checkLock,
    dateOrigin,
    /** Runs SQL statements without parameters and results. */
    runScript: (sql: string) => connection.exec(sql),
    close() {
      const lost = thrownBy(checkLock);
      // Closing would delete the write-ahead log of the new owner.
      if (lost instanceof ApiError && lost.code === takenOver) return;
      statements.clear();
      // If the file was moved away, closing writes the log to the moved file, and not to a file that took its place.
      if (lost) thrownBy(() => connection.close());
      else connection.close();
    },
  };
}

function thrownBy(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

const cannotWrite = /disk is full|disk I\/O|read-?only|unable to open/i;

/** "AdLi", which tells a library from the SQLite files of other programs. */
const applicationId = 0x41644c69;

const recordTables = Object.values(recordTypes).map(({ name, measures }) => {
  const columns = listMeasureColumns(measures).map((key) => `"${key}"`);
  const indexes = measures.map(({ key }) => `CREATE INDEX "${name}_${key}" ON ${name} ("${key}");`);
  return `
    CREATE TABLE ${name} (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, ${columns.join(', ')});
    CREATE TABLE ${name}_json (number INTEGER PRIMARY KEY, json BLOB NOT NULL, tags TEXT NOT NULL);
    CREATE VIRTUAL TABLE ${name}_text USING fts5 (
      ${textColumns.join(', ')}, content = '', contentless_delete = 1, tokenize = ascii
    );
    CREATE TABLE ${name}_tag_values (
      number INTEGER PRIMARY KEY, key TEXT NOT NULL, value TEXT NOT NULL, spelling TEXT NOT NULL, UNIQUE (key, value)
    );
    CREATE TABLE ${name}_tags (
      tag INTEGER NOT NULL, record INTEGER NOT NULL, isCounted INTEGER NOT NULL, PRIMARY KEY (tag, record)
    ) WITHOUT ROWID;
    ${indexes.join('\n')}`;
});

/**
 * Each record type has five tables. `ads` is narrow, so that filtering and sorting read few pages. `ads_json` holds the
 * records, and the list of the tags of each. `ads_text` finds rows by copy, advertiser and payer without storing the text again; its tokenizer only splits
 * at spaces, because search/tokens.ts makes the tokens. `ads_tags` says which records have which of the values in
 * `ads_tag_values`: countries, domains and the like (search/tags.ts).
 */
const tables = `
  ${recordTables.join('')}
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

const tagKeys = Object.values(recordTypes).map(({ tags }) => tags.map(({ key }) => key));
/** Raise this number when texts, tags, measures or tokens are read from records in another way. */
const indexVersion = 6;
/** The number of the format, in `PRAGMA user_version`. It changes with the tables, the tags and `indexVersion`. */
const format = Number.parseInt(hash('sha256', JSON.stringify([indexVersion, tables, tagKeys])).slice(0, 7), 16);

/** Makes the tables of a new file. @throws Error where another version or another program made the file */
function makeTables(connection: Connection, path: string): void {
  const pragma = (name: string) => Number(Object.values(connection.get(`PRAGMA ${name}`) ?? {})[0]);
  const isNew = connection.all("SELECT 1 FROM sqlite_schema WHERE type = 'table' LIMIT 1").length === 0;
  if (!isNew && pragma('application_id') !== applicationId)
    throw new Error(`${path} is a database of another program.`);
  if (!isNew && pragma('user_version') !== format)
    throw new Error(`${path} was made by another version of ad-library-mcp. Name another file, and import again.`);
  try {
    // Always writes, so that a database that cannot be written fails now and not at the first call.
    connection.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${format}`);
    if (isNew) connection.exec(tables);
    connection.exec('COMMIT');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw cannotWrite.test(message)
      ? new Error(`${path} cannot be written (${message}). Is its disk full?`, { cause: error })
      : error;
  }
}
