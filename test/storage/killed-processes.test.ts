import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { openFolderState } from '../../src/storage/folder.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { addAds } from './add-items.ts';

const folder = createTemporaryFolder();
const baseUrl = 'https://api.example.com';

/** The bundled child program. Compiling TypeScript would cost each child a second of processor time. */
const childProgram = join(createTemporaryFolder(), 'adding-child.mjs');
const { pathname } = new URL('adding-child.ts', import.meta.url);
buildSync({ entryPoints: [pathname], outfile: childProgram, bundle: true, platform: 'node', format: 'esm' });

/**
 * Starts a child process.
 * @param limit a shell command that limits resources, such as `ulimit`
 */
function startChild(name: string, limit = ':') {
  const child = spawn('sh', ['-c', `${limit}; exec "$0" "$1"`, process.execPath, childProgram], {
    env: { ...process.env, CHILD_ARGS: JSON.stringify({ folder, name, baseUrl }) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  /** Kills the process with SIGKILL, which prevents any cleanup. */
  const kill = async () => {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  };
  return { child, lines, kill };
}

function openInThisProcess() {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const common = { folder, baseUrl, apiKey: 'k', ttlMs: 0, now: Date.now, monotonicNow: Date.now };
  const { datasets, locks } = openFolderState({ ...common, fetchUserId: async () => 'u', warn });
  return { warnings, locks, open: () => datasets.open({ tenantId: 't', apiKey: 'k' }) };
}

const readIds = async ({ open }: ReturnType<typeof openInThisProcess>) =>
  (await (await open()).readContents()).ads.map(({ id }) => id);

test('no ad whose storage was confirmed is lost if the process is killed during a later write', async () => {
  const ownProcess = openInThisProcess();
  for (let at = 0; at < 30; at++) await addAds(await ownProcess.open(), at, { id: `here-${at}` });
  const answered = await Promise.all(
    ['first', 'second', 'third'].map(async (name, index) => {
      const { lines, kill } = startChild(name);
      const ids: string[] = [];
      for await (const line of lines) {
        ids.push(JSON.parse(line).id);
        if (ids.length > 20 + 9 * index) break;
      }
      await kill();
      return ids;
    }),
  );
  (await ownProcess.locks.acquire('first', new AbortController().signal))();
  for (const openProcess of [ownProcess, openInThisProcess()]) {
    const ids = await readIds(openProcess);
    expect(ids).toEqual(expect.arrayContaining(answered.flat()));
    expect(ids.filter((id) => id.startsWith('here'))).toHaveLength(30);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...(await (await openProcess.open()).userRecords.read('label')).keys()]).toEqual(
      expect.arrayContaining(answered.flat()),
    );
    expect(openProcess.warnings).toEqual([]);
  }
});

test('a full disk causes no loss of stored ads and does not stop other processes', async () => {
  const { lines, kill } = startChild('full', 'ulimit -f 2000');
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
  const ownProcess = openInThisProcess();
  await addAds(await ownProcess.open(), 1, { id: 'after' });
  for (const openProcess of [ownProcess, openInThisProcess()]) {
    expect(await readIds(openProcess)).toEqual(expect.arrayContaining([...written, 'after']));
    expect(openProcess.warnings).toEqual([]);
  }
});

test('calls of other processes fail as busy while a process is suspended in the middle of a write', async () => {
  const { child, lines, kill } = startChild('suspended');
  const written: string[] = [];
  lines.on('line', (line) => written.push(JSON.parse(line).id));
  await once(lines, 'line');
  const [file = ''] = (await readdir(join(folder, 'accounts'))).filter((name) => name.endsWith('.log'));
  const lock = join(folder, 'accounts', `${file}.lock`);
  for (;;) {
    child.kill('SIGSTOP');
    await delay(50);
    if (existsSync(lock)) break;
    child.kill('SIGCONT');
    await delay(Math.random() * 20);
  }
  const ownProcess = openInThisProcess();
  const problem = expect.stringContaining(`${lock} is held by process ${child.pid} of`);
  const add1 = addAds(await ownProcess.open(), 1, { id: 'beside' });
  await expect(add1).rejects.toMatchObject({ failure: { kind: 'busy', problem } });
  const last = written.length;
  child.kill('SIGCONT');
  await expect.poll(() => written.length).toBeGreaterThan(last);
  await kill();
  for (const openProcess of [ownProcess, openInThisProcess()])
    expect(await readIds(openProcess)).toEqual(expect.arrayContaining([...written, 'beside']));
});
