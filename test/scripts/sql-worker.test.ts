import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adRows } from '../../src/dataset/ad-row.ts';
import { cellsOf } from '../../src/dataset/columns.ts';
import { statementLimits } from '../../src/dataset/sql/limits.ts';
import type { Reply, Request, WorkerSetup } from '../../src/dataset/sql/messages.ts';

/** The file that the build puts beside the command, with the engine's WebAssembly next to it. */
const built = new URL('../../dist/sql-worker.js', import.meta.url);
const workerData: WorkerSetup = { limits: statementLimits, stop: new SharedArrayBuffer(4) };
let worker: Worker;

async function ask(request: Request): Promise<Reply> {
  worker.postMessage(request);
  const [reply] = await once(worker, 'message');
  return reply;
}

beforeAll(async () => {
  worker = new Worker(built, { workerData, execArgv: [], env: {} });
  expect(await once(worker, 'message')).toEqual([{ type: 'ready' }]);
});
afterAll(() => worker.terminate());

test('the built worker holds the tables, answers, and refuses what is not reading', async () => {
  const { ad } = adRows({ id: 'a', body: 'Boots' }, { gatheredAt: 0 });
  expect(await ask({ type: 'load', table: 'ads', rows: [cellsOf('ads', ad)] })).toEqual({ type: 'done' });
  expect(await ask({ type: 'seal' })).toEqual({ type: 'done' });
  const query = (sql: string) => ask({ type: 'query', sql, limit: 5, cell: 20 });
  expect(await query('select id, body, headline from ads')).toMatchObject({ result: { rows: [['a', 'Boots', null]] } });
  expect(await query("attach ':memory:' as x")).toMatchObject({ problem: { reason: 'refused' } });
  expect(await query('select median(daysRunning) from ads')).toMatchObject({ result: { rows: [[null]] } });
});
