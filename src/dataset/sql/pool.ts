import type { Worker } from 'node:worker_threads';
import { AdLibraryError } from '../../api/call.ts';
import { startWorker } from '../../workers/start-worker.ts';
import { Turns } from '../../workers/turns.ts';
import { type Cell, columnsOf, partsOf, type Row, type TableName } from '../tables.ts';
import {
  type Batch,
  checkOptions,
  explainProblem,
  type Reply,
  resultLimits,
  SqlFailure,
  type SqlResult,
  type StatementLimits,
  statementLimits,
  type WorkerRequest,
  type WorkerSetup,
} from './statement.ts';

/** What a tenant has at one moment. Two of the same tenant and version hold the same rows. */
export interface Snapshot {
  tenantId: string;
  version: string;
  /**
   * Read when the tables are made; in parts, so that nothing has to be held twice. The column `json`, most of an ad's
   * weight, is asked for only once a statement reads it; before, whatever it holds is not looked at.
   */
  tables(wanted: { json: boolean }): Iterable<TableRows> | AsyncIterable<TableRows>;
}

/** Rows of one table; a table may come in several parts. */
export type TableRows = { [Table in TableName]: { table: Table; rows: readonly Row<Table>[] } }[TableName];

export interface SqlQuery {
  sql: string;
  /** Rows to give: 50 by default, at most 1,000. */
  limit?: number | undefined;
  /** Characters of a cell: 160 by default. */
  cell?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface SqlExport {
  columns: string[];
  rows: AsyncIterable<Cell[][]>;
}

export interface SqlPoolOptions {
  /** Workers for statements, each with the tables of one tenant, and as many again for exports; this many compute at once. */
  maxWorkers?: number;
  /** Statements that may wait for one. */
  maxWaiting?: number;
  limits?: Partial<StatementLimits>;
  /** How long after its time a statement that cannot be interrupted is left before its worker is ended. */
  graceMs?: number;
  /** How long a worker without a statement keeps its tables. */
  idleMs?: number;
}

interface OpenDatabase {
  version: string;
  json: boolean;
  worker: DatabaseWorker;
  idle?: NodeJS.Timeout;
}

/**
 * Answers SQL over the datasets of tenants. A worker serves one version of one tenant's dataset for as long as it lives,
 * so tenants share no memory and nothing outlives a version; it is reused while the version stays.
 */
export class SqlPool {
  readonly #limits: StatementLimits;
  readonly #maxWorkers: number;
  readonly #graceMs: number;
  readonly #idleMs: number;
  readonly #turns: Turns;
  /** Exports under way, each with a worker of its own. */
  readonly #exports: Turns;
  readonly #exporting = new Set<DatabaseWorker>();
  /** By tenant, the one unused longest first. */
  readonly #databases = new Map<string, OpenDatabase>();

  constructor({ maxWorkers = 2, maxWaiting = 16, limits, graceMs = 400, idleMs = 120_000 }: SqlPoolOptions = {}) {
    this.#limits = { ...statementLimits, ...limits };
    this.#maxWorkers = maxWorkers;
    this.#graceMs = graceMs;
    this.#idleMs = idleMs;
    this.#turns = new Turns({ maxRunning: maxWorkers, perTenant: 1, maxWaiting, of: 'statements' });
    this.#exports = new Turns({ maxRunning: maxWorkers, perTenant: 1, maxWaiting, of: 'exports' });
  }

  /** @throws AdLibraryError that says what was wrong and what to do; the signal's reason when that aborts. */
  async query(snapshot: Snapshot, { sql, limit = resultLimits.rows, cell = resultLimits.cell, signal }: SqlQuery) {
    checkOptions({ sql, limit, cell });
    return await this.#withTables(snapshot, signal, async (worker): Promise<SqlResult> => {
      const reply = await worker.ask({ type: 'query', sql, limit, cell }, signal);
      if (reply.type !== 'result') throw new Error('The worker answered something else.');
      return reply.result;
    });
  }

  /**
   * Hands the rows of a statement to `read`, uncut and in batches, and returns what that returns. Each batch has a turn of
   * its own, so that others' statements run in between; the worker is nobody else's meanwhile.
   */
  async export<Result>(
    snapshot: Snapshot,
    { sql, signal }: Pick<SqlQuery, 'sql' | 'signal'>,
    read: (exported: SqlExport) => Promise<Result>,
  ): Promise<Result> {
    checkOptions({ sql, limit: resultLimits.rows, cell: resultLimits.cell });
    const { tenantId } = snapshot;
    const end = await this.#exports.take(tenantId, signal);
    let taken: OpenDatabase | undefined;
    try {
      const first = await this.#withTables(snapshot, signal, async (worker) => {
        const batch = await askBatch(worker, { type: 'export', sql }, signal);
        taken = this.#takeOut(tenantId);
        return batch;
      });
      return await read({ columns: first.columns, rows: this.#batches(tenantId, taken, first, signal) });
    } finally {
      if (taken) await this.#giveBack(tenantId, taken);
      end();
    }
  }

  async *#batches(tenantId: string, database: OpenDatabase | undefined, first: Batch, signal?: AbortSignal) {
    let batch = first;
    yield batch.rows;
    while (database && !batch.done) {
      batch = await this.#inTurn(tenantId, signal, () => askBatch(database.worker, { type: 'next' }, signal));
      yield batch.rows;
    }
  }

  #takeOut(tenantId: string): OpenDatabase | undefined {
    const database = this.#databases.get(tenantId);
    this.#databases.delete(tenantId);
    if (database) this.#exporting.add(database.worker);
    return database;
  }

  async #giveBack(tenantId: string, database: OpenDatabase): Promise<void> {
    const { worker } = database;
    this.#exporting.delete(worker);
    if (worker.alive) await worker.ask({ type: 'close' });
    if (this.#databases.has(tenantId) || this.#databases.size >= this.#maxWorkers) return worker.terminate();
    this.#databases.set(tenantId, database);
    this.#rest(tenantId);
  }

  /** Forgets the tables of a tenant. */
  async forget(tenantId: string): Promise<void> {
    const database = this.#databases.get(tenantId);
    this.#databases.delete(tenantId);
    clearTimeout(database?.idle);
    await database?.worker.terminate();
  }

  async close(): Promise<void> {
    const exporting = [...this.#exporting].map((worker) => worker.terminate());
    await Promise.all([...exporting, ...[...this.#databases.keys()].map((tenantId) => this.forget(tenantId))]);
  }

  async #inTurn<Result>(tenantId: string, signal: AbortSignal | undefined, work: () => Promise<Result>) {
    const end = await this.#turns.take(tenantId, signal);
    try {
      return await work();
    } catch (error) {
      if (error instanceof SqlFailure) throw explainProblem(error.problem, this.#limits);
      throw error instanceof WorkerDied ? withoutAnswer(error) : error;
    } finally {
      end();
    }
  }

  #withTables<Result>(
    snapshot: Snapshot,
    signal: AbortSignal | undefined,
    work: (worker: DatabaseWorker) => Promise<Result>,
  ): Promise<Result> {
    return this.#inTurn(snapshot.tenantId, signal, async () => {
      try {
        return await work(await this.#workerFor(snapshot, { json: false, signal })).catch(async (error) => {
          if (!(error instanceof SqlFailure && error.problem.reason === 'json')) throw error;
          return await work(await this.#workerFor(snapshot, { json: true, signal }));
        });
      } finally {
        this.#rest(snapshot.tenantId);
      }
    });
  }

  async #workerFor(
    snapshot: Snapshot,
    { json, signal }: { json: boolean; signal: AbortSignal | undefined },
  ): Promise<DatabaseWorker> {
    const { tenantId, version } = snapshot;
    const database = this.#databases.get(tenantId);
    clearTimeout(database?.idle);
    if (database?.worker.alive && database.version === version && (database.json || !json)) {
      this.#databases.delete(tenantId);
      this.#databases.set(tenantId, database);
      return database.worker;
    }
    await this.forget(tenantId);
    for (const other of this.#databases.keys()) {
      if (this.#databases.size < this.#maxWorkers) break;
      if (!this.#turns.isRunning(other)) await this.forget(other);
    }
    const worker = new DatabaseWorker({ limits: this.#limits, graceMs: this.#graceMs });
    this.#databases.set(tenantId, { version, json, worker });
    try {
      await worker.ready();
      await loadAll(worker, snapshot.tables({ json }), { json, signal });
      await worker.ask({ type: 'seal', json }, signal);
    } catch (error) {
      await this.forget(tenantId);
      throw error;
    }
    return worker;
  }

  #rest(tenantId: string): void {
    const database = this.#databases.get(tenantId);
    if (!database) return;
    if (!database.worker.alive) this.#databases.delete(tenantId);
    else database.idle = setTimeout(() => void this.forget(tenantId), this.#idleMs).unref();
  }
}

function withoutAnswer(cause: WorkerDied): AdLibraryError {
  const problem = 'The SQL engine ended without an answer; a new one is started for the next statement.';
  return new AdLibraryError({ kind: 'internal', problem, sent: false }, { cause });
}

interface Loading {
  json: boolean;
  signal: AbortSignal | undefined;
}

/** The worker loads one part while the next is made. */
async function loadAll(worker: DatabaseWorker, tables: ReturnType<Snapshot['tables']>, how: Loading): Promise<void> {
  let loaded = Promise.resolve();
  for await (const part of tables) {
    await loaded;
    loaded = load(worker, part, how);
    // Avoids an unhandled rejection; the next await throws it.
    loaded.catch(() => {});
  }
  await loaded;
}

async function load(worker: DatabaseWorker, { table, rows }: TableRows, { json, signal }: Loading): Promise<void> {
  // A name that no row has stands for the column that is not wanted.
  const columns = columnsOf(table).map((name) => (name === 'json' && !json ? '' : name));
  for (const part of partsOf(cellsOf(rows, columns), sizeOf))
    await worker.ask({ type: 'load', table, rows: part }, signal);
}

function* cellsOf(rows: readonly object[], columns: readonly string[]): Generator<Cell[]> {
  for (const row of rows as readonly Record<string, Cell>[]) yield columns.map((name) => row[name] ?? null);
}

const sizeOf = (cells: readonly Cell[]): number =>
  cells.reduce<number>((sum, cell) => sum + (typeof cell === 'string' ? cell.length : 8), 0);

async function askBatch(
  worker: DatabaseWorker,
  request: { type: 'export'; sql: string } | { type: 'next' },
  signal: AbortSignal | undefined,
): Promise<Batch> {
  const reply = await worker.ask(request, signal);
  if (reply.type !== 'batch') throw new Error('The worker answered something else.');
  return reply.batch;
}

interface WorkerOptions {
  limits: StatementLimits;
  /** How long after a statement's time the worker may still take to answer; then it is ended. */
  graceMs: number;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** The worker ended before it answered. */
class WorkerDied extends Error {
  override readonly name = 'WorkerDied';
}

/** One worker with the tables of one tenant: a request is answered before the next is sent. */
class DatabaseWorker {
  readonly #worker: Worker;
  readonly #stop = new SharedArrayBuffer(4);
  readonly #options: WorkerOptions;
  #waiting: Waiting | undefined;
  #ended: Error | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#worker = startWorker<Reply>(source, {
      workerData: { limits: options.limits, stop: this.#stop } satisfies WorkerSetup,
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      onMessage: (reply) => this.#settle(({ resolve }) => resolve(reply)),
      onEnd: (cause) => this.#end(new WorkerDied('The worker ended.', { cause })),
    });
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves once the engine is loaded. */
  async ready(): Promise<void> {
    if (this.#ended) throw this.#ended;
    await this.#reply(OPENING_MS);
  }

  /** A signal stops the statement; the worker lives on where the statement stops in time. */
  async ask(request: WorkerRequest, signal?: AbortSignal): Promise<Reply> {
    signal?.throwIfAborted();
    if (this.#ended) throw this.#ended;
    const { limits, graceMs } = this.#options;
    const flag = new Int32Array(this.#stop);
    Atomics.store(flag, 0, 0);
    let endSoon: NodeJS.Timeout | undefined;
    const abort = () => {
      Atomics.store(flag, 0, 1);
      endSoon = setTimeout(() => this.terminate(), graceMs);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      this.#worker.postMessage(request);
      const filling = request.type === 'load' || request.type === 'seal';
      const reply = await this.#reply(filling ? OPENING_MS : limits.statementMs + graceMs);
      if (reply.type === 'failed') throw new SqlFailure(reply.problem);
      return reply;
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(endSoon);
      signal?.removeEventListener('abort', abort);
    }
  }

  async terminate(): Promise<void> {
    this.#end(new WorkerDied('The worker was ended.'));
    await this.#worker.terminate();
  }

  #reply(withinMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#settle(({ reject: refuse }) => refuse(new SqlFailure({ reason: 'slow' })));
        void this.terminate();
      }, withinMs);
      this.#waiting = {
        resolve(reply) {
          clearTimeout(late);
          resolve(reply);
        },
        reject(error) {
          clearTimeout(late);
          reject(error);
        },
      };
    });
  }

  #settle(how: (waiting: Waiting) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting) how(waiting);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#settle(({ reject }) => reject(error));
  }
}

const source = { from: import.meta.url, source: './worker.ts', built: './sql-worker.js' };

/** Loading the engine, or a part of the tables. */
const OPENING_MS = 20_000;
