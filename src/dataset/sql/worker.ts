import { parentPort, workerData } from 'node:worker_threads';
import type { Cell } from '../tables.ts';
import { RowReader, readResult, SqlEngine } from './engine.ts';
import {
  type Batch,
  type Reply,
  SqlFailure,
  type SqlProblem,
  type WorkerRequest,
  type WorkerSetup,
} from './statement.ts';

/**
 * The thread that a database lives in: it holds the tables of one tenant, has no file system, no environment and no
 * standard output, and is thrown away with them.
 */
const { limits, stop } = workerData as WorkerSetup;
const stopped = new Int32Array(stop);
const batchRows = 500;
const batchChars = 500_000;

let deadline = Number.POSITIVE_INFINITY;
let exported: { reader: RowReader; spentMs: number; close(): void } | undefined;

const interruption = () => {
  if (Atomics.load(stopped, 0) !== 0) return 'stopped';
  return performance.now() > deadline ? 'slow' : undefined;
};

const engine = await SqlEngine.open(limits);

function answer(request: WorkerRequest): Reply {
  deadline = performance.now() + limits.statementMs;
  switch (request.type) {
    case 'load':
      engine.load(request.table, request.rows);
      return { type: 'done' };
    case 'seal':
      engine.seal(interruption, request.json);
      return { type: 'done' };
    case 'relabel':
      engine.relabel(request.rows);
      return { type: 'done' };
    case 'query':
      return { type: 'result', result: query(request) };
    case 'export':
      return { type: 'batch', batch: startExport(request.sql) };
    case 'next':
      return { type: 'batch', batch: nextBatch() };
    case 'close':
      closeExport();
      return { type: 'done' };
  }
}

function query({ sql, ...options }: Extract<WorkerRequest, { type: 'query' }>) {
  const prepared = engine.prepare(sql);
  try {
    return readResult(prepared, options, interruption);
  } finally {
    prepared.capi.sqlite3_finalize(prepared.statement);
  }
}

function startExport(sql: string): Batch {
  const prepared = engine.prepare(sql);
  exported = {
    reader: new RowReader(prepared, interruption),
    spentMs: 0,
    close: () => prepared.capi.sqlite3_finalize(prepared.statement),
  };
  return nextBatch();
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
    for (const cell of row) chars += typeof cell === 'string' ? cell.length : 8;
    rows.push(row);
  }
  return { columns: reader.columns(), rows, done: false };
}

function closeExport(): void {
  exported?.close();
  exported = undefined;
}

/** What is thrown besides is a defect, and ends the worker. */
function problemOf(error: unknown): SqlProblem {
  if (error instanceof SqlFailure) return error.problem;
  if (error instanceof Error && error.name === 'WasmAllocError') return { reason: 'memory' };
  throw error;
}

parentPort?.on('message', (request: WorkerRequest) => {
  let reply: Reply;
  try {
    reply = answer(request);
  } catch (error) {
    closeExport();
    reply = { type: 'failed', problem: problemOf(error) };
  }
  parentPort?.postMessage(reply);
});
parentPort?.postMessage({ type: 'ready' } satisfies Reply);
