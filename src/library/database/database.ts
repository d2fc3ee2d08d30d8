import * as fs from 'node:fs';
import { LRUCache } from 'lru-cache';
import { type HeldLock, holdLock } from '../../lock.ts';
import { columnsOf, type RecordType, recordTypes, textColumns } from '../search/ads-and-pages.ts';
import { ApiError } from '../service/request.ts';

type Engine = typeof import('node-sqlite3-wasm');
type Connection = InstanceType<Engine['Database']>;
type Statement = ReturnType<Connection['prepare']>;

/** Pass long texts as UTF-8 bytes: the engine binds them several times faster than strings. */
type Value = string | number | null | Uint8Array;

/** The part of SQLite that the library uses. All calls are synchronous. */
export type Database = {
  all<Row>(sql: string, values?: Value[]): Row[];
  get<Row>(sql: string, values?: Value[]): Row | undefined;
  run(sql: string, values?: Value[]): { changes: number; rowid: number };
  /** Runs `work` whole or not at all, and returns when it is on disk. Nested calls join the outer transaction. */
  transaction<Result>(work: () => Result): Result;
  /** A transaction that does not wait for the disk: a power cut may undo it until `sync` or the next transaction. */
  unsynced(work: () => void): void;
  /** Returns when everything is on disk. */
  sync(): void;
  /** @throws ApiError when the file belongs to another process by now, or is gone */
  checkLock(): void;
  close(): void;
};

export type DatabaseLock = Pick<HeldLock, 'announce' | 'release'> & {
  /** The real path of the file, with all links resolved. */
  database: string;
  /** @throws ApiError when the file is gone, or may have another owner */
  check(): void;
};

/** The code of the error where another process may have the file, and its log. */
const takenOver = 'database_taken_over';

/**
 * Takes a database file for this process, because the engine has no locks that hold between processes; makes the file
 * if there is none.
 * @throws LockHeld, or Error when the file cannot be written
 */
export async function lockDatabase(path: string): Promise<DatabaseLock> {
  if (path === ':memory:') return { database: path, check() {}, announce() {}, release() {} };
  const database = located(path);
  const lockPath = `${database}.owner`;
  const { isHeld, announce, release } = await holdLock(lockPath);
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  fs.rmSync(`${database}.lock`, { recursive: true, force: true });
  const file = identityAt(database);
  const lost = (code: string, what: string) =>
    new ApiError(503, code, `${what} while this process used it, so it writes nothing more; stop it before that.`);
  return {
    database,
    check() {
      if (!isHeld()) throw lost(takenOver, `The lock of ${database}, ${lockPath}, was deleted`);
      if (identityAt(database) !== file) throw lost('database_replaced', `${database} was deleted or replaced`);
    },
    announce,
    release,
  };
}

function located(path: string): string {
  try {
    fs.closeSync(fs.openSync(path, 'a', 0o600));
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${(error as Error).message}.`);
  }
  return fs.realpathSync(path);
}

/** Which file it is. Inode numbers are not used again while a file is open. */
function identityAt(path: string): string | undefined {
  const stats = fs.statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}

/** The tokens of the full-text indexes, and the records that hold each of them, as tables to read. */
const termTables = ['ads', 'pages']
  .flatMap((name) => [
    `CREATE VIRTUAL TABLE temp.${name}_terms USING fts5vocab('main', '${name}_text', 'row');`,
    `CREATE VIRTUAL TABLE temp.${name}_term_records USING fts5vocab('main', '${name}_text', 'instance');`,
  ])
  .join('');

const maxStatements = 200;

/** The engine cuts bound text at a NUL character, so a search for the rest would match too much. */
const bindable = (value: Value) => (typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value);

/**
 * Opens a database file (made when absent) or `:memory:`, and brings it to this version's tables.
 *
 * No other process may have the file open: the engine has no shared memory, so write-ahead logging, its only crash-safe
 * mode, needs an exclusive lock.
 * @param checkLock throws when the caller is that process no longer
 * @throws Error when the file is no library, or was written by a newer version.
 */
export async function openDatabase(path: string, checkLock = () => {}): Promise<Database> {
  // Loaded on demand: most processes never open a library.
  const { default: engine } = (await import('node-sqlite3-wasm')) as unknown as { default: Engine };
  const connection = new engine.Database(path);
  try {
    connection.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA cache_size = -65536');
    bringUpToDate(connection, path);
    connection.exec(termTables);
  } catch (error) {
    // On a full disk, closing fails too.
    thrownBy(() => connection.close());
    if (String(error).includes('not a database')) throw new Error(`${path} is not a database of the ad library.`);
    throw error;
  }
  return wrap(connection, checkLock);
}

function wrap(connection: Connection, checkLock: () => void): Database {
  // Finalizing a statement that failed throws the same error again.
  const dispose = (statement: Statement) => void thrownBy(() => statement.finalize());
  const statements = new LRUCache<string, Statement>({ max: maxStatements, dispose });

  function prepared(sql: string): Statement {
    const statement = statements.get(sql) ?? connection.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  const all = <Row>(sql: string, values: Value[] = []) => prepared(sql).all(values.map(bindable)) as Row[];

  function transaction<Result>(work: () => Result): Result {
    if (connection.inTransaction) return work();
    checkLock();
    connection.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      connection.exec('COMMIT');
      // Checked again: if this process was suspended meanwhile, it has written to a file that nobody reads any more.
      checkLock();
      return result;
    } catch (error) {
      if (connection.inTransaction) connection.exec('ROLLBACK');
      throw error;
    }
  }

  return {
    all,
    // Reads all rows: a half-read statement keeps its read transaction open.
    get: <Row>(sql: string, values?: Value[]) => all<Row>(sql, values)[0],
    run: (sql, values = []) =>
      transaction(() => {
        const { changes, lastInsertRowid } = prepared(sql).run(values.map(bindable));
        return { changes, rowid: Number(lastInsertRowid) };
      }),
    transaction,
    unsynced(work) {
      connection.exec('PRAGMA synchronous = NORMAL');
      try {
        transaction(work);
      } finally {
        connection.exec('PRAGMA synchronous = FULL');
      }
    },
    sync: () => connection.exec('PRAGMA wal_checkpoint'),
    checkLock,
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

const pragma = (connection: Connection, name: string) =>
  Number(Object.values(connection.get(`PRAGMA ${name}`) ?? {})[0]);

const cannotWrite = /disk is full|disk I\/O|read-?only|unable to open/i;

/** "AdLi", which tells a library from the SQLite files of other programs. */
const applicationId = 0x41644c69;
/**
 * The version in `PRAGMA user_version`. It is raised when earlier versions could not use the file any more: they then
 * refuse the file.
 */
const fileVersion = 5;
/** Raised when texts, tags or measures are read from records in another way: then all records are indexed again. */
const indexVersion = 2;

/**
 * Each record type has three tables. `ads` is narrow, so that filtering and sorting read few pages; `ads_json` holds the
 * records; `ads_text` finds rows by copy, advertiser and tags, without storing the text again. Its tokenizer only splits
 * at spaces: search/tokens.ts makes the tokens.
 */
const tables: [name: string, columns: string[]][] = [
  ...Object.values(recordTypes).flatMap(({ name, measures }): [string, string[]][] => [
    [name, ['number INTEGER PRIMARY KEY', 'id TEXT NOT NULL UNIQUE', ...columnsOf(measures).map((key) => `"${key}"`)]],
    [`${name}_json`, ['number INTEGER PRIMARY KEY', 'json BLOB NOT NULL']],
  ]),
  ...`
    indexed: name TEXT PRIMARY KEY, form TEXT NOT NULL
    secrets: name TEXT PRIMARY KEY, value TEXT NOT NULL
    pictures: address TEXT PRIMARY KEY, file TEXT, bytes INTEGER NOT NULL
    payers: billingUserId TEXT PRIMARY KEY, planId TEXT, subscriptionStatus TEXT, creditsMax INTEGER NOT NULL,
      hourlyLimit INTEGER NOT NULL, dailyLimit INTEGER NOT NULL
    spending: billingUserId TEXT NOT NULL REFERENCES payers, hour INTEGER NOT NULL, credits INTEGER NOT NULL,
      PRIMARY KEY (billingUserId,hour)
    accounts: userId TEXT PRIMARY KEY, billingUserId TEXT NOT NULL REFERENCES payers, name TEXT, emailAddress TEXT,
      isTeamMember INTEGER NOT NULL
    keys: id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, keyPrefix TEXT NOT NULL, name TEXT NOT NULL,
      scopes TEXT NOT NULL, userId TEXT NOT NULL REFERENCES accounts, createdAt INTEGER NOT NULL, revokedAt INTEGER,
      unmetered INTEGER NOT NULL DEFAULT 0
    collections: number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, userId TEXT NOT NULL REFERENCES accounts,
      billingUserId TEXT NOT NULL REFERENCES payers, name TEXT NOT NULL, type TEXT NOT NULL, defaultType TEXT
    collection_items: number INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL REFERENCES collections,
      itemType TEXT NOT NULL, item INTEGER NOT NULL, UNIQUE (collection,itemType,item)`
    .trim()
    .split(/\n {4}(?! )/)
    .map((line): [string, string[]] => {
      const [name = '', columns = ''] = line.split(': ');
      return [name, columns.split(/,\s+/)];
    }),
];

const indexes: Record<string, string> = {
  ...Object.fromEntries(
    Object.values(recordTypes).flatMap(({ name, measures }) =>
      measures.map(({ key }) => [`${name}_${key}`, `${name} ("${key}")`]),
    ),
  ),
  collections_billingUserId: 'collections (billingUserId)',
  collection_items_order: 'collection_items (collection, itemType, number)',
};

const nameOf = (column: string) => column.split(' ', 1)[0]?.replaceAll('"', '') ?? '';
const isConstraint = (column: string) => /^(PRIMARY KEY|UNIQUE) \(/.test(column);

/**
 * Creates the tables and columns that a file lacks, and empties the index of records whose form has changed: records.ts
 * fills it again.
 */
function bringUpToDate(connection: Connection, path: string): void {
  const version = pragma(connection, 'user_version');
  const isEmpty = connection.all("SELECT 1 FROM sqlite_schema WHERE type = 'table' LIMIT 1").length === 0;
  if (pragma(connection, 'application_id') !== applicationId && !isEmpty)
    throw new Error(`${path} is a database of another program.`);
  if (version > fileVersion) {
    throw new Error(
      `${path} was written by a newer version (its tables are at version ${version}, this one knows up to ${fileVersion}). Update ad-library-mcp, or name another file.`,
    );
  }
  try {
    // Always writes, so that a database that cannot be written fails now and not at the first call.
    connection.exec(`BEGIN IMMEDIATE; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${fileVersion}`);
    for (const [name, columns] of tables) addTable(connection, name, columns);
    for (const [name, on] of Object.entries(indexes)) connection.exec(`CREATE INDEX IF NOT EXISTS "${name}" ON ${on}`);
    for (const type of Object.values(recordTypes)) addTextIndex(connection, type);
    connection.exec('COMMIT');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(
      cannotWrite.test(message)
        ? `${path} cannot be written (${message}). Is its disk full?`
        : `${path} could not be brought up to date (${message}). It was left as it was. Please report this.`,
    );
  }
}

function addTable(connection: Connection, name: string, columns: string[]): void {
  const there = connection.all('SELECT name FROM pragma_table_info(?)', [name]).map((column) => column.name);
  const missing = columns.filter((column) => !isConstraint(column) && !there.includes(nameOf(column)));
  if (there.length === 0) connection.exec(`CREATE TABLE ${name} (${columns.join(', ')})`);
  else for (const column of missing) connection.exec(`ALTER TABLE ${name} ADD COLUMN ${column}`);
}

function addTextIndex(connection: Connection, { name, tags, measures }: RecordType): void {
  const wanted = [...textColumns, 'tags'];
  const form = JSON.stringify([indexVersion, wanted, tags.map(({ key }) => key), columnsOf(measures)]);
  if (connection.get('SELECT form FROM indexed WHERE name = ?', [name])?.form === form) return;
  connection.exec(`
    DROP TABLE IF EXISTS ${name}_text;
    CREATE VIRTUAL TABLE ${name}_text USING fts5 (
      ${wanted.join(', ')}, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '-_.!~*()%'"
    )`);
  connection.run('INSERT OR REPLACE INTO indexed VALUES (?, ?)', [name, form]);
}
