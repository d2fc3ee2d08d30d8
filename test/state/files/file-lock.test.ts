import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { fileTurns, hasEnded, ownName } from '../../../src/state/files/file-lock.ts';
import type { Turns } from '../../../src/state/turns.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
const never = () => new AbortController().signal;
const turnsIn = (folder: string) => readdir(join(folder, 'turns'));

test('turns in a folder are had by one call of one process at a time, and leave nothing', async () => {
  const folder = join(root, 'several');
  const processes = [1, 2, 3].map(() => fileTurns(folder));
  let [running, max] = [0, 0];
  const use = async (index: number) => {
    const end = await (processes[index % 3] as Turns).take('a question', never());
    max = Math.max(max, ++running);
    await new Promise((resolve) => setTimeout(resolve, 1));
    running--;
    end();
  };
  await Promise.all(Array.from({ length: 9 }, (_, index) => use(index)));
  expect(max).toBe(1);
  expect(await turnsIn(folder)).toEqual([]);
});

test('the turn of a process that was killed is free, and one of another machine when it is not renewed', async () => {
  const folder = join(root, 'killed');
  (await fileTurns(folder).take('a question', never()))();
  const end = await fileTurns(folder).take('a question', never());
  const [name = ''] = await turnsIn(folder);
  const own = await readFile(join(folder, 'turns', name), 'utf8');
  end();
  const { pid } = spawnSync(process.execPath, ['--version']);
  // Another container may have the host name of this one, and numbers its processes anew.
  const contained = `${pid} ${hostname()} contained`;
  expect(hasEnded(contained)).toBe(process.platform !== 'linux');
  // What is no file at all is nobody's, and holds nobody up.
  const odd = join(folder, 'turns', hash('sha256', 'odd').slice(0, 32));
  if (process.platform !== 'win32') spawnSync('mkfifo', [odd]);
  const oddTurn = fileTurns(folder).take('odd', never());
  for (const owner of [own.replace(/^\d+/, String(pid)), contained]) {
    await writeFile(join(folder, 'turns', name), owner);
    (await fileTurns(folder).take('a question', never()))();
    expect(await turnsIn(folder)).not.toContain(name);
  }
  (await oddTurn)();
  expect(await turnsIn(folder)).toEqual([]);
});

test('the lock of a process that was killed is taken by one at a time, however many find it', async () => {
  const folder = join(root, 'lost');
  const program = join(root, 'taking-child.mjs');
  const { pathname } = new URL('taking-child.ts', import.meta.url);
  buildSync({ entryPoints: [pathname], outfile: program, bundle: true, platform: 'node', format: 'esm' });
  await mkdir(folder);
  const { pid } = spawnSync(process.execPath, ['--version']);
  const lost = ownName().replace(/^\d+/, String(pid));
  const paths = Array.from({ length: 10 }, (_, index) => join(folder, `${index}`));
  for (const path of paths) await writeFile(`${path}.lock`, lost);
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

test('whoever waits in vain is busy; where nothing can be written, nobody waits', async () => {
  const folder = join(root, 'busy');
  const end = await fileTurns(folder).take('a question', never());
  const late = fileTurns(folder).take('a question', AbortSignal.timeout(300));
  await expect(late).rejects.toMatchObject({ failure: { kind: 'busy' } });
  end();
  await mkdir(join(root, 'odd'));
  await writeFile(join(root, 'odd', 'turns'), 'a file');
  (await fileTurns(join(root, 'odd')).take('a question', never()))();
});
