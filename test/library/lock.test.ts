import { existsSync } from 'node:fs';
import { copyFile, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, onTestFinished } from 'vitest';
import { createKey, importFiles, listKeys, revokeKey, serveLibrary } from '../../src/library/commands/commands.ts';
import { waitUntil } from '../support/deadline.ts';
import { startCommand } from '../support/process.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { serveOnLoopback, testStartTime, uuid } from './support/served-library.ts';

const target = (database: string) => ({ database, now: () => testStartTime });
const serve = (database: string) => serveLibrary({ ...target(database), listen: serveOnLoopback });
const namesIn = async (database: string) => (await listKeys(target(database))).map(({ name }) => name);
const asOwner = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

/** The built command, serving. */
async function startServer(database: string) {
  const server = startCommand(['library', 'serve', '--port', '0', '--database', database]);
  const kill = async () => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  onTestFinished(kill);
  const [, url = ''] = await server.says(/library on (http:\S+)/);
  const statusFor = async (key: string) => (await fetch(`${url}/v1/whoami`, asOwner(key))).status;
  return { kill, statusFor };
}

test('a symbolic link has the same owner, even before the file exists', async ({ folder, database }) => {
  const link = join(folder, 'link.db');
  await symlink(database, link);
  const served = await serve(link);
  onTestFinished(served.close);
  await expect(serve(database)).rejects.toThrow(`held by process ${process.pid} of`);
});

test('a killed server keeps every key that was reported, and the revoked stay so', async ({ database }) => {
  const server = await startServer(database);
  const reported: string[] = [];
  const revoked = await createKey(target(database), { name: 'Revoked' });
  await revokeKey(target(database), revoked.id);
  let isKilled = false;
  const creating = Array.from({ length: 4 }, async () => {
    while (!isKilled) reported.push((await createKey(target(database), {})).key);
  }).map((loop) => loop.catch(() => {}));
  await waitUntil(() => reported.length >= 25);
  isKilled = true;
  await server.kill();
  await Promise.all(creating);

  const next = await startServer(database);
  for (const key of reported) expect(await next.statusFor(key)).toBe(200);
  expect(await next.statusFor(revoked.key)).toBe(401);
  expect((await namesIn(database)).length).toBeGreaterThanOrEqual(reported.length + 1);
});

test('a process that does not serve is named; killed, it takes nothing saved', async ({ folder, database }) => {
  await createKey(target(database), { name: 'Saved' });
  const importing = startCommand(['library', 'import', '-', '--database', database]);
  onTestFinished(() => void importing.child.kill('SIGKILL'));
  importing.child.stdin?.on('error', () => {}).write(`{"id":"${uuid(1)}"}\n`.repeat(20_000));
  await waitUntil(() => existsSync(`${database}.lock`));
  importing.child.kill('SIGSTOP');
  await expect(listKeys(target(database))).rejects.toMatchObject({
    failure: { kind: 'busy', problem: expect.stringContaining(`held by process ${importing.child.pid} of`) },
  });
  importing.child.kill('SIGKILL');
  await importing.ended;
  expect(await readdir(folder)).toContain('ad-library.db.lock');
  expect(await namesIn(database)).toEqual(['Saved']);
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

test('the owner’s note holds the token of commands, for the user alone', async ({ folder, database }) => {
  const { url, close } = await serve(database);
  const note = `${database}.owner`;
  expect((await stat(note)).mode & 0o777).toBe(0o600);
  const { token } = JSON.parse(await readFile(note, 'utf8')).address;
  const ask = (path: string, key: string, body?: string) =>
    fetch(`${url}/-/${path}`, { method: 'POST', ...asOwner(key), ...(body && { body }) });
  expect((await ask('list', token, '[]')).status).toBe(200);
  expect((await ask('list', 'wrong', '[]')).status).toBe(404);
  expect((await fetch(`${url}/-/list`)).status).toBe(404);
  const wrong = await ask('create', token, '[{"scopes":["ads:eat"]}]');
  expect(await wrong.json()).toEqual({ message: expect.stringMatching(/Unknown scope ads:eat/) });
  expect(await (await ask('import', token)).json()).toMatchObject({ ads: 0, pages: 0 });
  const stdin = Readable.from([Buffer.from(`{"id":"${uuid(1)}"}\n`)]);
  expect(await importFiles(target(database), ['-'], stdin)).toMatchObject([{ ads: 1, skipped: 0 }]);
  await close();
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

const replace = (file: string, write: (other: string) => Promise<void>) =>
  write(`${file}.new`).then(() => rename(`${file}.new`, file));

test.for<[name: string, code: string, move: (database: string) => Promise<unknown>]>([
  ['file is deleted', 'database_replaced', (file) => rm(file)],
  ['file is replaced', 'database_replaced', (file) => replace(file, (other) => writeFile(other, ''))],
  ['file is replaced by its copy', 'database_replaced', (file) => replace(file, (other) => copyFile(file, other))],
  ['lock is deleted', 'database_taken_over', (file) => rm(`${file}.owner`)],
])('a server whose %s acknowledges nothing more and says so', async ([_, code, move], { database }) => {
  const { key } = await createKey(target(database), {});
  const served = await serve(database);
  const ask = () => fetch(`${served.url}/v1/collections`, asOwner(key));
  expect((await ask()).status).toBe(200);
  await move(database);
  const answer = await ask();
  expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code } }]);
  await served.close();
});

test('what was saved stays in a file that was moved away, not in another there', async ({ folder, database }) => {
  const served = await serve(database);
  await createKey(target(database), { name: 'Saved' });
  await rename(database, `${database}.old`);
  await writeFile(database, '');
  await served.close();
  expect(await namesIn(database)).toEqual([]);
  expect(await namesIn(`${database}.old`)).toEqual(['Saved']);
  expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.old']);
});
