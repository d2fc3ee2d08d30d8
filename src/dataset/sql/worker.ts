import { parentPort, workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../../workers/low-priority.ts';
import { type Cell, countCellChars, type TableName } from '../tables.ts';
import { type RowReader, readSqlResult, SqlEngine } from './engine.ts';
import type { StatementLimits } from './limits.ts';
import { type ExportBatch, type QueryOptions, SqlFailure, type SqlProblem, type SqlResult } from './statement.ts';

/**
 * The data that the pool passes to this worker thread. `stop` contains a flag that the pool sets to interrupt the
 * current statement. A worker contains the tables of one tenant (API key). When these tables are outdated, the pool
 * empties the worker or terminates it.
 */
const { compiledSqlite, limits, stop } = workerData as {
  compiledSqlite: WebAssembly.Module;
  limits: StatementLimits;
  stop: SharedArrayBuffer;
};
const stopFlag = new Int32Array(stop);
const rowsPerBatch = 500;
const charsPerBatch = 500_000;

let deadline = Number.POSITIVE_INFINITY;
let currentExport: { reader: RowReader; spentMs: number } | undefined;

const findInterruption = () => {
  if (Atomics.load(stopFlag, 0) !== 0) return 'aborted';
  return performance.now() > deadline ? 'timeout' : undefined;
};

lowerThreadPriority();
let engine = await SqlEngine.createEngine(compiledSqlite, limits);

const workerMethods = {
  /** Replaces all tables by empty tables, which is ten times as fast as starting a new worker. */
  async emptyTables(): Promise<void> {
    engine = await SqlEngine.createEngine(compiledSqlite, limits);
  },
  loadRows(batch: LoadedRows): void {
    for (const [table, rows] of batch) engine.insertRows(table, rows);
  },
  /**
   * Makes the tables read-only. If `hasJson` is false, statements that read the `json` column fail with the reason
   * `jsonNotLoaded`.
   */
  lockDown: (hasJson: boolean) => engine.lockDown(findInterruption, hasJson),
  query(sql: string, options: QueryOptions): SqlResult {
    const reader = engine.prepare(sql);
    let result: ReturnType<typeof readSqlResult>;
    try {
      result = readSqlResult(reader, options);
    } finally {
      reader.close();
    }
    return { ...result, ...engine.analyzeStatement(sql) };
  },
  export(sql: string): ExportBatch {
    const reader = engine.prepare(sql);
    currentExport = { reader, spentMs: 0 };
    const statementDescription = engine.analyzeStatement(sql);
    return { ...readNextBatch(), ...statementDescription };
  },
  next: readNextBatch,
  close: closeExport,
};

/** Table rows that the pool sends to a worker, grouped by table. */
export type LoadedRows = [TableName, Cell[][]][];

type WorkerMethods = typeof workerMethods;
/**
 * A call that the pool sends to a worker: the name of a method and its arguments. The worker finishes each call before
 * it starts the next call.
 */
export type SqlCall = [name: keyof WorkerMethods, ...methodArguments: unknown[]];
/** A call of the worker method `Name`, e.g. `['emptyTables']`. */
export type CallOf<Name extends keyof WorkerMethods> = [
  name: Name,
  ...methodArguments: Parameters<WorkerMethods[Name]>,
];
/** The result of the worker method `Name`. */
export type ResultOf<Name extends keyof WorkerMethods> = Awaited<ReturnType<WorkerMethods[Name]>>;
/** The worker's reply to a call. If the call failed, the reply has a `problem` instead of a `result`. */
export interface WorkerReply {
  result?: unknown;
  problem?: SqlProblem;
}

/** Reads the next batch of rows of the current export. If there is no export, returns an empty last batch. */
function readNextBatch(): ExportBatch {
  if (!currentExport) return { columns: [], rows: [], isLastBatch: true };
  if (currentExport.spentMs > limits.maxExportMs) throw new SqlFailure({ reason: 'exportTimeout' });
  const startedAt = performance.now();
  const batch = readBatch(currentExport.reader);
  currentExport.spentMs += performance.now() - startedAt;
  return batch;
}

function readBatch(reader: RowReader): ExportBatch {
  const rows: Cell[][] = [];
  let batchChars = 0;
  while (rows.length < rowsPerBatch && batchChars < charsPerBatch) {
    if (!reader.advance()) return { columns: reader.readColumnNames(), rows, isLastBatch: true };
    const row = reader.readRow((text) => text);
    batchChars += countCellChars(row);
    rows.push(row);
  }
  return { columns: reader.readColumnNames(), rows, isLastBatch: false };
}

function closeExport(): void {
  currentExport?.reader.close();
  currentExport = undefined;
}

/**
 * Converts an error of an SQL statement to a problem that can be sent to the pool. Rethrows any other error, which ends
 * the worker, because such an error is a bug.
 */
function convertErrorToProblem(error: unknown): SqlProblem {
  if (error instanceof SqlFailure) return error.problem;
  if (error instanceof Error && error.name === 'WasmAllocError') return { reason: 'outOfMemory' };
  throw error;
}

parentPort?.on('message', async ([name, ...methodArguments]: SqlCall) => {
  deadline = performance.now() + limits.maxStatementMs;
  let reply: WorkerReply;
  try {
    const method = workerMethods[name] as (...methodArguments: unknown[]) => unknown;
    reply = { result: await method(...methodArguments) };
  } catch (error) {
    closeExport();
    reply = { problem: convertErrorToProblem(error) };
  }
  parentPort?.postMessage(reply);
});
parentPort?.postMessage({} satisfies WorkerReply);
