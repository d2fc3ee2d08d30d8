import { AdLibraryError, invalidRequest } from '../../api/errors.ts';
import { type PooledWorker, WorkerDiedError, WorkerPool, WorkerTimeoutError } from '../../workers/pool.ts';
import { Semaphore } from '../../workers/semaphore.ts';
import { type Cell, getColumnNames, measureCells, type Row, type TableName } from '../tables.ts';
import {
  type Batch,
  explainProblem,
  resultLimits,
  SqlFailure,
  type StatementLimits,
  statementLimits,
} from './statement.ts';
import type { CallOf, LoadedRows, Reply, ResultOf, SqlCall } from './worker.ts';

/** A tenant's dataset at one moment. Two snapshots of the same tenant and version hold the same rows. */
export interface Snapshot {
  tenantId: string;
  version: string;
  /** In batches, so that nothing is held twice. `json`, most of an ad's weight, is loaded when a statement reads it. */
  tables(wanted: { json: boolean }): Iterable<TableRows> | AsyncIterable<TableRows>;
}

/** Rows of one table; a table may come in several parts. */
export type TableRows = { [Table in TableName]: { table: Table; rows: Iterable<Row<Table>> } }[TableName];

export interface SqlQuery {
  sql: string;
  limit?: number | undefined;
  maxCellChars?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface SqlExport {
  columns: string[];
  rows: AsyncIterable<Cell[][]>;
}

export interface SqlPoolOptions {
  /** Workers for statements, each with the tables of one tenant, and half as many for exports; this many compute at once. */
  maxWorkers?: number;
  limits?: Partial<StatementLimits>;
  /** How long after its time a statement that cannot be interrupted is left before its worker is ended. */
  graceMs?: number;
  /** How long a worker without a statement keeps its tables. */
  idleMs?: number;
}

type Tables = Pick<Snapshot, 'tenantId' | 'version'> & { json: boolean };

type DatabaseWorker = PooledWorker<SqlCall, Reply, Tables>;

const worker = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './sql-worker.js' };

/** How long loading a batch of rows may take, in milliseconds. */
const loadMs = 20_000;

/** A worker serves one version of one tenant's dataset: tenants share no memory, nothing outlives a version. */
export class SqlPool {
  readonly #limits: StatementLimits;
  readonly #graceMs: number;
  readonly #workers: WorkerPool<SqlCall, Reply, Tables>;
  readonly #exports: Semaphore;

  constructor({ maxWorkers = 4, limits, graceMs = 400, idleMs = 120_000 }: SqlPoolOptions = {}) {
    this.#limits = { ...statementLimits, ...limits };
    this.#graceMs = graceMs;
    const workerData = { limits: this.#limits };
    this.#workers = new WorkerPool({ worker, workerData, maxWorkers, workName: 'statements', idleMs });
    this.#exports = new Semaphore({ maxRunning: Math.ceil(maxWorkers / 2), maxRunningPerKey: 1, workName: 'exports' });
  }

  /** @throws AdLibraryError that says what was wrong and what to do; the signal's reason when that aborts. */
  async query(
    snapshot: Snapshot,
    { sql, limit = resultLimits.rows, maxCellChars = resultLimits.cell, signal }: SqlQuery,
  ) {
    checkLength(sql);
    return await this.#withTables(snapshot, signal, (worker) =>
      this.#ask(worker, ['query', sql, { limit, maxCellChars }], signal),
    );
  }

  /** Each batch has a turn of its own, so that others' statements run in between; nobody else uses the worker. */
  async export<Result>(
    snapshot: Snapshot,
    { sql, signal }: Pick<SqlQuery, 'sql' | 'signal'>,
    read: (exported: SqlExport) => Promise<Result>,
  ): Promise<Result> {
    checkLength(sql);
    const { tenantId } = snapshot;
    const end = await this.#exports.acquire(tenantId, signal);
    let lent: DatabaseWorker | undefined;
    try {
      const first = await this.#withTables(snapshot, signal, async (worker) => {
        const batch = await this.#ask(worker, ['export', sql], signal);
        this.#workers.checkOut(worker);
        lent = worker;
        return batch;
      });
      return await read({ columns: first.columns, rows: this.#batches(tenantId, lent, first, signal) });
    } finally {
      if (lent?.isAlive) await this.#ask(lent, ['close']).catch(() => lent?.terminate());
      if (lent) this.#workers.checkIn(lent);
      end();
    }
  }

  async *#batches(tenantId: string, worker: DatabaseWorker | undefined, first: Batch, signal?: AbortSignal) {
    let batch = first;
    yield batch.rows;
    while (worker && !batch.done) {
      batch = await this.#inTurn(tenantId, signal, () => this.#ask(worker, ['next'], signal));
      yield batch.rows;
    }
  }

  close(): Promise<void> {
    return this.#workers.close();
  }

  async #inTurn<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>) {
    return this.#workers.runInSlot(tenantId, signal, work).catch((error) => {
      if (error instanceof SqlFailure) throw explainProblem(error.problem, this.#limits);
      if (error instanceof WorkerTimeoutError) throw explainProblem({ reason: 'slow' }, this.#limits);
      if (!(error instanceof WorkerDiedError)) throw error;
      const problem = 'The SQL engine ended without an answer; a new one is started for the next statement.';
      throw new AdLibraryError({ kind: 'internal', problem, sent: false }, { cause: error });
    });
  }

  #withTables<Result>(
    snapshot: Snapshot,
    signal: AbortSignal | undefined,
    work: (worker: DatabaseWorker) => Promise<Result>,
  ): Promise<Result> {
    const attempt = async (json: boolean) => {
      const worker = await this.#workerFor(snapshot, json, signal);
      try {
        return await work(worker);
      } finally {
        this.#workers.returnToIdle(worker);
      }
    };
    return this.#inTurn(snapshot.tenantId, signal, () =>
      attempt(false).catch((error) => {
        if (error instanceof SqlFailure && error.problem.reason === 'json') return attempt(true);
        throw error;
      }),
    );
  }

  async #workerFor(snapshot: Snapshot, json: boolean, signal: AbortSignal | undefined): Promise<DatabaseWorker> {
    const { tenantId, version } = snapshot;
    const idle = this.#workers.takeIdleWorker(
      (tables) => tables.tenantId === tenantId && tables.version === version && (tables.json || !json),
    );
    if (idle) return idle;
    const older = this.#workers.takeIdleWorker((tables) => tables.tenantId === tenantId);
    const worker = older ?? this.#workers.startWorker({ tenantId, version, json });
    worker.data = { tenantId, version, json };
    try {
      const begin = (call: CallOf<'empty' | 'load'>) => {
        const begun = this.#ask(worker, call, signal, loadMs);
        // Avoids an unhandled rejection; the next await throws it.
        begun.catch(() => {});
        return begun;
      };
      // The worker loads one batch while the next is made.
      let loaded = older ? begin(['empty']) : Promise.resolve();
      for await (const batch of batchesOf(snapshot, json)) {
        await loaded;
        loaded = begin(['load', batch]);
      }
      await loaded;
      await this.#ask(worker, ['lockDown', json], signal, loadMs);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
    return worker;
  }

  async #ask<Name extends SqlCall[0]>(
    worker: DatabaseWorker,
    call: CallOf<Name>,
    signal?: AbortSignal,
    ms = this.#limits.statementMs,
  ): Promise<ResultOf<Name>> {
    const { result, problem } = await worker.sendRequest(call, { ms, signal, graceMs: this.#graceMs });
    if (problem) throw new SqlFailure(problem);
    return result as ResultOf<Name>;
  }
}

function checkLength({ length }: string): void {
  if (length > resultLimits.sqlChars)
    throw invalidRequest(`The SQL has ${length} characters, and at most ${resultLimits.sqlChars} are allowed.`);
}

/** The size after which rows are loaded, in characters. */
const batchSize = 500_000;

async function* batchesOf(snapshot: Snapshot, json: boolean): AsyncGenerator<LoadedRows> {
  let [batch, size]: [Map<TableName, Cell[][]>, number] = [new Map(), 0];
  for await (const { table, rows } of snapshot.tables({ json })) {
    // The parameter for an unwanted column gets a name that no row has.
    const columns = getColumnNames(table).map((name) => (name === 'json' && !json ? '' : name));
    for (const row of rows as Iterable<Record<string, Cell>>) {
      const cells = columns.map((name) => row[name] ?? null);
      const others = batch.get(table);
      if (others) others.push(cells);
      else batch.set(table, [cells]);
      size += measureCells(cells);
      if (size < batchSize) continue;
      yield [...batch];
      [batch, size] = [new Map(), 0];
    }
  }
  yield [...batch];
}
