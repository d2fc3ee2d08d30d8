import { AdLibraryError, createInvalidRequestError } from '../../api/errors.ts';
import { type PooledWorker, WorkerDiedError, WorkerPool, WorkerTimeoutError } from '../../workers/pool.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { type Cell, countCellChars, getColumnNames, type Row, type TableName } from '../tables.ts';
import { getCompiledSqlite } from './compiled-sqlite.ts';
import { resultLimits, type StatementLimits, statementLimits } from './limits.ts';
import { createSqlProblemError, type ExportBatch, SqlFailure } from './statement.ts';
import type { CallOf, LoadedRows, ResultOf, SqlCall, WorkerReply } from './worker.ts';

/** A snapshot of the dataset of one tenant (API key). Snapshots with the same version contain the same rows. */
export interface DatasetSnapshot {
  tenantId: string;
  version: string;
  /**
   * Yields the table rows in batches, so that memory does not hold a second copy of all rows. The `json` column makes
   * up most of the size of an ad, so it is loaded only if a statement reads it.
   */
  readTables(options: { includeJson: boolean }): Iterable<TableRows> | AsyncIterable<TableRows>;
}

/** A batch of rows that belong to one table. */
export type TableRows = { [Table in TableName]: { table: Table; rows: Iterable<Row<Table>> } }[TableName];

/** An SQL statement with the limits of its result. */
export interface SqlQuery {
  sql: string;
  /** The maximum number of rows to return. Further rows are counted but not returned. */
  limit?: number | undefined;
  maxCellChars?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** The columns and rows of the result of an exported SQL statement. The rows arrive in batches. */
export interface SqlExport {
  columns: string[];
  rows: AsyncIterable<Cell[][]>;
  /** The ad fields that the statement reads, with the number of ads that have a value for each field. */
  statementFields?: ExportBatch['statementFields'];
  /** True if the statement reads ads. False if it reads only the tables `gatherings` and `months`. */
  isAboutAds: boolean;
  /** True if the statement reads the table `pages`, which may contain only some of the advertisers. */
  readsPages?: boolean | undefined;
}

/** The options of a `SqlPool`. */
export interface SqlPoolOptions {
  /**
   * The maximum number of workers that run SQL statements. Each worker contains the tables of one tenant (API key).
   * Exports can use half as many additional workers, but at most `maxWorkers` workers compute at the same time.
   */
  maxWorkers?: number;
  limits?: Partial<StatementLimits>;
  /** How long a statement may exceed its time limit before its worker is terminated, in milliseconds. */
  graceMs?: number;
  /** How long a worker may be idle before it is terminated, in milliseconds. */
  workerIdleMs?: number;
}

/**
 * Describes the tables that a worker has loaded: the tenant (API key), the version of the dataset, and whether the
 * column `json` is loaded.
 */
type LoadedTables = Pick<DatasetSnapshot, 'tenantId' | 'version'> & { hasJson: boolean };

type DatabaseWorker = PooledWorker<SqlCall, WorkerReply, LoadedTables>;

const workerModule = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './sql-worker.js' };

/** How long a worker may take to load a batch of rows, in milliseconds. */
const loadTimeoutMs = 20_000;

/**
 * Runs SQL statements in worker threads. Each worker contains one version of the dataset of one tenant (API key).
 * Therefore tenants share no memory, and no statement reads outdated tables.
 */
export class SqlPool {
  readonly #limits: StatementLimits;
  readonly #graceMs: number;
  readonly #workerPool: WorkerPool<SqlCall, WorkerReply, LoadedTables>;
  readonly #exportSlots: Semaphore;

  constructor({ maxWorkers = 4, limits, graceMs = 400, workerIdleMs = 120_000 }: SqlPoolOptions = {}) {
    this.#limits = { ...statementLimits, ...limits };
    this.#graceMs = graceMs;
    this.#workerPool = new WorkerPool({
      worker: workerModule,
      createWorkerData: () => ({ limits: this.#limits, compiledSqlite: getCompiledSqlite() }),
      maxWorkers,
      workName: 'statements',
      idleMs: workerIdleMs,
    });
    this.#exportSlots = new Semaphore({
      maxRunningCalls: Math.ceil(maxWorkers / 2),
      maxRunningCallsPerKey: 1,
      workName: 'exports',
    });
  }

  /**
   * Runs an SQL statement and returns its result.
   * @throws AdLibraryError `invalid_request` if the statement fails; the message explains why and what to do
   * @throws the reason of `signal` if it aborts
   */
  async query(
    snapshot: DatasetSnapshot,
    { sql, limit = resultLimits.defaultRows, maxCellChars = resultLimits.defaultCellChars, signal }: SqlQuery,
  ) {
    assertSqlLength(sql);
    return await this.#withTables(snapshot, signal, (worker) =>
      this.#callWorker(worker, ['query', sql, { limit, maxCellChars }], signal),
    );
  }

  /**
   * Runs an SQL statement and passes all its rows to `readRows` in batches. The worker is reserved until the export
   * ends. Each batch waits for a slot of the pool, so that statements of other tenants (API keys) can run between two
   * batches.
   */
  async exportRows<Result>(
    snapshot: DatasetSnapshot,
    { sql, signal }: Pick<SqlQuery, 'sql' | 'signal'>,
    readRows: (sqlExport: SqlExport) => Promise<Result>,
  ): Promise<Result> {
    assertSqlLength(sql);
    const { tenantId } = snapshot;
    const releaseExportSlot = await this.#exportSlots.acquire(tenantId, signal);
    let exportWorker: DatabaseWorker | undefined;
    try {
      const firstBatch = await this.#withTables(snapshot, signal, async (worker) => {
        const batch = await this.#callWorker(worker, ['export', sql], signal);
        this.#workerPool.reserveWorker(worker);
        exportWorker = worker;
        return batch;
      });
      const { columns, statementFields, isAboutAds = true, readsPages } = firstBatch;
      return await readRows({
        columns,
        statementFields,
        isAboutAds,
        readsPages,
        rows: this.#readBatches(tenantId, exportWorker, firstBatch, signal),
      });
    } finally {
      if (exportWorker?.isAlive) await this.#callWorker(exportWorker, ['close']).catch(() => exportWorker?.terminate());
      if (exportWorker) this.#workerPool.returnReservedWorker(exportWorker);
      releaseExportSlot();
    }
  }

  async *#readBatches(
    tenantId: string,
    worker: DatabaseWorker | undefined,
    firstBatch: ExportBatch,
    signal?: AbortSignal,
  ) {
    let batch = firstBatch;
    yield batch.rows;
    while (worker && !batch.isLastBatch) {
      batch = await this.#runWithSlot(tenantId, signal, () => this.#callWorker(worker, ['next'], signal));
      yield batch.rows;
    }
  }

  close(): Promise<void> {
    return this.#workerPool.close();
  }

  async #runWithSlot<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>) {
    return this.#workerPool.runInSlot(tenantId, signal, work).catch((error) => {
      if (error instanceof SqlFailure) throw createSqlProblemError(error.problem, this.#limits);
      if (error instanceof WorkerTimeoutError) throw createSqlProblemError({ reason: 'timeout' }, this.#limits);
      if (!(error instanceof WorkerDiedError)) throw error;
      const problem = 'The SQL engine ended without an answer; a new one is started for the next statement.';
      throw new AdLibraryError({ kind: 'internal', problem, wasSent: false }, { cause: error });
    });
  }

  #withTables<Result>(
    snapshot: DatasetSnapshot,
    signal: AbortSignal | undefined,
    work: (databaseWorker: DatabaseWorker) => Promise<Result>,
  ): Promise<Result> {
    const runWithJson = async (hasJson: boolean) => {
      const databaseWorker = await this.#prepareWorker(snapshot, hasJson, signal);
      try {
        return await work(databaseWorker);
      } finally {
        this.#workerPool.returnToIdle(databaseWorker);
      }
    };
    return this.#runWithSlot(snapshot.tenantId, signal, () =>
      runWithJson(false).catch((error) => {
        if (error instanceof SqlFailure && error.problem.reason === 'jsonNotLoaded') return runWithJson(true);
        throw error;
      }),
    );
  }

  async #prepareWorker(
    snapshot: DatasetSnapshot,
    hasJson: boolean,
    signal: AbortSignal | undefined,
  ): Promise<DatabaseWorker> {
    const { tenantId, version } = snapshot;
    const idleWorker = this.#workerPool.takeIdleWorker(
      (tables) => tables.tenantId === tenantId && tables.version === version && (tables.hasJson || !hasJson),
    );
    if (idleWorker) return idleWorker;
    const reusableWorker = this.#workerPool.takeIdleWorker((tables) => tables.tenantId === tenantId);
    const worker = reusableWorker ?? this.#workerPool.startWorker({ tenantId, version, hasJson });
    worker.loadedData = { tenantId, version, hasJson };
    try {
      const startLoadCall = (call: CallOf<'emptyTables' | 'loadRows'>) => {
        const loadingCall = this.#callWorker(worker, call, signal, loadTimeoutMs);
        // Node treats a rejected promise without a handler as an error. Add an empty handler now, because the `await`
        // that handles the rejection comes later.
        loadingCall.catch(() => {});
        return loadingCall;
      };
      // The worker inserts one batch while this thread builds the next batch.
      let loadingCall = reusableWorker ? startLoadCall(['emptyTables']) : Promise.resolve();
      for await (const batch of buildBatches(snapshot, hasJson)) {
        await loadingCall;
        loadingCall = startLoadCall(['loadRows', batch]);
      }
      await loadingCall;
      await this.#callWorker(worker, ['lockDown', hasJson], signal, loadTimeoutMs);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    return worker;
  }

  /**
   * Calls a method of a worker and waits for its result.
   * @throws SqlFailure if the SQL statement fails
   */
  async #callWorker<Name extends SqlCall[0]>(
    worker: DatabaseWorker,
    call: CallOf<Name>,
    signal?: AbortSignal,
    timeoutMs = this.#limits.maxStatementMs,
  ): Promise<ResultOf<Name>> {
    const { result, problem } = await worker.sendRequest(call, { timeoutMs, signal, graceMs: this.#graceMs });
    if (problem) throw new SqlFailure(problem);
    return result as ResultOf<Name>;
  }
}

function assertSqlLength({ length }: string): void {
  if (length > resultLimits.maxSqlChars)
    throw createInvalidRequestError(
      `The SQL has ${length} characters, and at most ${resultLimits.maxSqlChars} are allowed.`,
    );
}

/** The approximate size of a batch of rows that is sent to a worker, in characters. */
const charsPerBatch = 500_000;

async function* buildBatches(snapshot: DatasetSnapshot, includeJson: boolean): AsyncGenerator<LoadedRows> {
  let [batch, batchChars]: [Map<TableName, Cell[][]>, number] = [new Map(), 0];
  for await (const { table, rows } of snapshot.readTables({ includeJson })) {
    // If the `json` column is not loaded, its cells must be null. No row has a property with an empty name, so this
    // name results in null.
    const columns = getColumnNames(table).map((name) => (name === 'json' && !includeJson ? '' : name));
    for (const row of rows as Iterable<Record<string, Cell>>) {
      const cells = columns.map((name) => row[name] ?? null);
      const tableRows = batch.get(table);
      if (tableRows) tableRows.push(cells);
      else batch.set(table, [cells]);
      batchChars += countCellChars(cells);
      if (batchChars < charsPerBatch) continue;
      yield [...batch];
      [batch, batchChars] = [new Map(), 0];
    }
  }
  yield [...batch];
}
