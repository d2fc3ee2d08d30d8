import { spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileTurns, hasEnded } from '../../../src/state/files/file-lock.ts';
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
  for (const owner of [own.replace(/^\d+/, String(pid)), contained]) {
    await writeFile(join(folder, 'turns', name), owner);
    (await fileTurns(folder).take('a question', never()))();
    expect(await turnsIn(folder)).toEqual([]);
  }
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
