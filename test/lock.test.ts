import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { acquireLock, hasProcessEnded, identifyThisProcess } from '../src/lock.ts';
import { createTemporaryFolder } from './support/temporary-folder.ts';

const root = createTemporaryFolder();
const isLinux = process.platform === 'linux';
const { pid: endedPid } = spawnSync(process.execPath, ['--version']);
/** Returns this process's identity (pid, start time, namespace, boot id, machine) with some parts replaced. */
const identityWith = (change: Record<number, string | number>) =>
  identifyThisProcess()
    .split(' ')
    .map((part, index) => change[index] ?? part)
    .join(' ');
const createNote = (id: string, name: string) => JSON.stringify({ id, process: name, host: 'here' });

test('the process that holds a lock counts as ended if its process id is unused or belongs to a different process', () => {
  expect(hasProcessEnded(identityWith({}))).toBe(false);
  expect(hasProcessEnded(identityWith({ 0: endedPid }))).toBe(true);
  expect(hasProcessEnded(identityWith({ 4: 'another' }))).toBe(false);
  expect(hasProcessEnded('cut')).toBe(false);
  if (!isLinux) return;
  expect(hasProcessEnded(identityWith({ 1: 1 }))).toBe(true);
  expect(hasProcessEnded(identityWith({ 3: 'before' }))).toBe(true);
  expect(hasProcessEnded(identityWith({ 2: 'a container' }))).toBe(false);
});

test('only one of many threads at a time can take over the lock of a process that has ended', async () => {
  const folder = join(root, 'lost');
  const program = join(root, 'lock-contender.mjs');
  const { pathname } = new URL('support/lock-contender.ts', import.meta.url);
  buildSync({ entryPoints: [pathname], outfile: program, bundle: true, platform: 'node', format: 'esm' });
  await mkdir(folder);
  const paths = Array.from({ length: 10 }, (_, index) => join(folder, `${index}.lock`));
  for (const path of paths) await writeFile(path, createNote('first', identityWith({ 0: endedPid })));
  const [shared, threads] = [new SharedArrayBuffer(12), 6];
  const workers = Array.from(
    { length: threads },
    () => new Worker(program, { workerData: { paths, shared, threads } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  const [arrived, inside, met] = new Int32Array(shared);
  expect({ arrived, inside, met }).toEqual({ arrived: threads * paths.length, inside: 0, met: 0 });
  expect(await readdir(folder)).toEqual([]);
});

test("acquiring a lock that is in use fails with an error that names the lock's process and file", async () => {
  const path = join(root, 'one.lock');
  const soon = () => AbortSignal.timeout(30);
  await writeFile(path, '');
  await expect(acquireLock(path, soon())).rejects.toThrow(`${path} is held by another program.`);
  await writeFile(path, createNote('first', identityWith({ 0: endedPid })));
  await writeFile(`${path}.removal`, '');
  await expect(acquireLock(path, soon())).rejects.toThrow(`${path}.removal is held by another program.`);
  await rm(`${path}.removal`);
  const first = await acquireLock(path);
  await expect(acquireLock(path, soon())).rejects.toMatchObject({
    failure: {
      kind: 'busy',
      storage: 'lock',
      problem: expect.stringMatching(/one\.lock.* is held by process \d+ of .*delete/s),
    },
  });
  await writeFile(path, createNote('second', identityWith({ 4: 'another' })));
  expect(first.isHeld()).toBe(false);
  first.release();
  expect(await readdir(root)).toContain('one.lock');
});
