import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';
import { FileDatasets } from '../../../src/state/files/file-datasets.ts';
import { startChild } from '../../library/support/child.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { add } from '../add-items.ts';

const folder = temporaryFolder();
const child = new URL('adding-child.ts', import.meta.url).pathname;
const baseUrl = 'https://api.example.com';

function openHere(limits = {}) {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const common = { folder, baseUrl, now: Date.now, elapsed: Date.now, userIdOf: async () => 'u', ...limits };
  const datasets = new FileDatasets({ ...common, warn });
  return { warnings, open: () => datasets.of({ tenantId: 't', apiKey: 'k' }) };
}

const idsIn = async ({ open }: ReturnType<typeof openHere>) =>
  (await (await open()).contents()).ads.map(({ id }) => id);

test('processes that are killed while they append and write the file anew lose nothing that they had answered', async () => {
  const here = openHere();
  for (let at = 0; at < 60; at++) await add(await here.open(), at, { id: `here-${at}` });
  const answered = await Promise.all(
    ['first', 'second', 'third'].map(async (name, index) => {
      const { ready, next, kill } = await startChild(child, { folder, name, baseUrl });
      const ids = [ready.id];
      for (let count = 0; count < 40 + 17 * index; count++) ids.push((await next()).id);
      await kill();
      return ids;
    }),
  );
  for (const one of [here, openHere()]) {
    const ids = await idsIn(one);
    expect(ids).toEqual(expect.arrayContaining(answered.flat()));
    expect(ids.filter((id) => id.startsWith('here'))).toHaveLength(60);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...(await (await one.open()).own.read('label')).keys()]).toEqual(expect.arrayContaining(answered.flat()));
    expect(one.warnings).toEqual([]);
  }
});

test('a process that finds the disk full loses nothing that it wrote before, and others go on', async () => {
  const run =
    "const { runnerImport } = await import('vite'); await runnerImport(process.env.CHILD_FILE, { logLevel: 'error' });";
  const limited = spawn('sh', ['-c', 'ulimit -f 1000; exec "$0" --input-type=module -e "$1"', process.execPath, run], {
    env: { ...process.env, CHILD_FILE: child, CHILD_ARGS: JSON.stringify({ folder, name: 'full', baseUrl }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const written: string[] = [];
  let isFull = false;
  for await (const line of createInterface({ input: limited.stdout })) {
    const { id, warnings } = JSON.parse(line);
    if (warnings.length > 0) isFull = true;
    if (isFull) break;
    written.push(id);
  }
  limited.kill('SIGKILL');
  expect(isFull).toBe(true);
  const here = openHere();
  await add(await here.open(), 1, { id: 'after' });
  for (const one of [here, openHere()]) {
    expect(await idsIn(one)).toEqual(expect.arrayContaining([...written, 'after']));
    expect(one.warnings).toEqual([]);
  }
});
