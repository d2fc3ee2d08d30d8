import { parentPort, workerData } from 'node:worker_threads';
import { lowerThreadPriority } from '../../workers/low-priority.ts';
import { type Cell, measureCells, type TableName } from '../tables.ts';
import { type RowReader, readResult, SqlEngine } from './engine.ts';
import {
  type Batch,
  type QueryOptions,
  SqlFailure,
  type SqlProblem,
  type SqlResult,
  type StatementLimits,
} from './statement.ts';

/** Holds the tables of one tenant, and is thrown away with them. */
const { limits, stop } = workerData as { limits: StatementLimits; stop: SharedArrayBuffer };
const stopped = new Int32Array(stop);
const batchRows = 500;
const batchChars = 500_000;

let deadline = Number.POSITIVE_INFINITY;
let exported: { reader: RowReader; spentMs: number } | undefined;

const interruption = () => {
  if (Atomics.load(stopped, 0) !== 0) return 'stopped';
  return performance.now() > deadline ? 'slow' : undefined;
};

lowerThreadPriority();
let engine = await SqlEngine.open(limits);

const methods = {
  /** Begins anew with empty tables, ten times as fast as in a new thread. */
  async empty(): Promise<void> {
    engine = await SqlEngine.open(limits);
  },
  load(batch: LoadedRows): void {
    for (const [table, rows] of batch) engine.load(table, rows);
  },
  /** Ends the loading. Without JSON a statement that reads it fails with the reason `json`. */
  lockDown: (json: boolean) => engine.lockDown(interruption, json),
  query(sql: string, options: QueryOptions): SqlResult {
    const reader = engine.prepare(sql);
    try {
      return readResult(reader, options);
    } finally {
      reader.close();
    }
  },
  export(sql: string): Batch {
    exported = { reader: engine.prepare(sql), spentMs: 0 };
    return nextBatch();
  },
  next: nextBatch,
  close: closeExport,
};

export type LoadedRows = [TableName, Cell[][]][];

type Methods = typeof methods;
/** The name of a method and its arguments. The worker answers each call before it takes the next. */
export type SqlCall = [name: keyof Methods, ...given: unknown[]];
export type CallOf<Name extends keyof Methods> = [name: Name, ...given: Parameters<Methods[Name]>];
export type ResultOf<Name extends keyof Methods> = Awaited<ReturnType<Methods[Name]>>;
export interface Reply {
  result?: unknown;
  problem?: SqlProblem;
}

function nextBatch(): Batch {
  if (!exported) return { columns: [], rows: [], done: true };
  if (exported.spentMs > limits.exportMs) throw new SqlFailure({ reason: 'endless' });
  const started = performance.now();
  const batch = readBatch(exported.reader);
  exported.spentMs += performance.now() - started;
  return batch;
}

function readBatch(reader: RowReader): Batch {
  const rows: Cell[][] = [];
  let chars = 0;
  while (rows.length < batchRows && chars < batchChars) {
    if (!reader.step()) return { columns: reader.columns(), rows, done: true };
    const row = reader.row((text) => text);
    chars += measureCells(row);
    rows.push(row);
  }
  return { columns: reader.columns(), rows, done: false };
}

function closeExport(): void {
  exported?.reader.close();
  exported = undefined;
}

/** Any other error is a defect, and ends the worker. */
function problemOf(error: unknown): SqlProblem {
  if (error instanceof SqlFailure) return error.problem;
  if (error instanceof Error && error.name === 'WasmAllocError') return { reason: 'memory' };
  throw error;
}

parentPort?.on('message', async ([name, ...given]: SqlCall) => {
  deadline = performance.now() + limits.statementMs;
  let reply: Reply;
  try {
    const method = methods[name] as (...given: unknown[]) => unknown;
    reply = { result: await method(...given) };
  } catch (error) {
    closeExport();
    reply = { problem: problemOf(error) };
  }
  parentPort?.postMessage(reply);
});
parentPort?.postMessage({} satisfies Reply);
