import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { workerData } from 'node:worker_threads';
import { withLock } from '../../src/lock.ts';

/** A worker thread that competes with other threads for locks and counts how often two threads held the same lock. */
const { paths, shared, threads } = workerData as { paths: string[]; shared: SharedArrayBuffer; threads: number };
/** Delay every file operation by up to 20 ms, to simulate a busy machine that delays threads at any step. */
const { openSync, readFileSync, rmSync } = fs;
const waitRandomly = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20 * Math.random());
Object.assign(fs, {
  openSync: (...args: Parameters<typeof openSync>) => waitRandomly() && openSync(...args),
  readFileSync: (...args: Parameters<typeof readFileSync>) => waitRandomly() && readFileSync(...args),
  rmSync: (...args: Parameters<typeof rmSync>) => waitRandomly() && rmSync(...args),
});
syncBuiltinESMExports();

/** Indexes of the shared counters: arrived threads, threads that hold the lock, and times when two threads held it. */
const [arrivedIndex, holderIndex, violationIndex] = [0, 1, 2];
const counts = new Int32Array(shared);
for (const [index, path] of paths.entries()) {
  Atomics.add(counts, arrivedIndex, 1);
  while (Atomics.load(counts, arrivedIndex) < threads * (index + 1)) await new Promise(setImmediate);
  await withLock(path, async () => {
    if (Atomics.add(counts, holderIndex, 1) > 0) Atomics.add(counts, violationIndex, 1);
    await new Promise((resolve) => setTimeout(resolve, 3));
    Atomics.sub(counts, holderIndex, 1);
  });
}
