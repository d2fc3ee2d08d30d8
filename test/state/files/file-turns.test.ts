import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileTurns } from '../../../src/state/files/folder.ts';
import type { Turns } from '../../../src/state/turns.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
const never = () => new AbortController().signal;

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
  expect(await readdir(join(folder, 'turns'))).toEqual([]);
});

test('a call that waits until its end is busy; where nothing can be written, no call waits', async () => {
  const folder = join(root, 'busy');
  const end = await fileTurns(folder).take('a question', never());
  const late = fileTurns(folder).take('a question', AbortSignal.timeout(300));
  await expect(late).rejects.toMatchObject({ failure: { kind: 'busy' } });
  end();
  await mkdir(join(root, 'odd'));
  await writeFile(join(root, 'odd', 'turns'), 'a file');
  (await fileTurns(join(root, 'odd')).take('a question', never()))();
});
