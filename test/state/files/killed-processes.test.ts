import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { FileDatasets } from '../../../src/state/files/file-datasets.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { add } from '../add-items.ts';

const folder = temporaryFolder();
const baseUrl = 'https://api.example.com';

/** What runs in processes of its own: from TypeScript, each would begin with a second of a processor. */
const adding = join(temporaryFolder(), 'adding-child.mjs');
const { pathname } = new URL('adding-child.ts', import.meta.url);
buildSync({ entryPoints: [pathname], outfile: adding, bundle: true, platform: 'node', format: 'esm' });

/** Runs it under a limit of the shell: what it says of each ad, one after the other. */
function startAdding(name: string, limit = ':') {
  const child = spawn('sh', ['-c', `${limit}; exec "$0" "$1"`, process.execPath, adding], {
    env: { ...process.env, CHILD_ARGS: JSON.stringify({ folder, name, baseUrl }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  /** SIGKILL, so that nothing can be cleaned up. */
  const kill = async () => {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  };
  return { lines, kill };
}

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
      const { lines, kill } = startAdding(name);
      const ids: string[] = [];
      for await (const line of lines) {
        ids.push(JSON.parse(line).id);
        if (ids.length > 40 + 17 * index) break;
      }
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
  const { lines, kill } = startAdding('full', 'ulimit -f 1000');
  const written: string[] = [];
  let isFull = false;
  for await (const line of lines) {
    const { id, warnings } = JSON.parse(line);
    if (warnings.length > 0) isFull = true;
    if (isFull) break;
    written.push(id);
  }
  await kill();
  expect(isFull).toBe(true);
  const here = openHere();
  await add(await here.open(), 1, { id: 'after' });
  for (const one of [here, openHere()]) {
    expect(await idsIn(one)).toEqual(expect.arrayContaining([...written, 'after']));
    expect(one.warnings).toEqual([]);
  }
});
