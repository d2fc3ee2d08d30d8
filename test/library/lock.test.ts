import { spawnSync } from 'node:child_process';
import { existsSync, utimesSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect } from 'vitest';
import { createKey, importFiles, listKeys, revokeKey, serveLibrary } from '../../src/library/commands/commands.ts';
import { lockDatabase, thisOwner } from '../../src/library/database/lock.ts';
import { until } from '../support/http.ts';
import { start } from '../support/process.ts';
import { databaseTest as test, type Undo } from './support/fixtures.ts';
import { onLoopback, startOfTests, uuid } from './support/served-library.ts';

interface Place {
  database: string;
  undo: Undo;
}

/** Of notes that this process itself renews, or nobody. */
const timing = { renew: 20, expire: 300, poll: 5, patience: 20_000 };
/** For owners that must never be taken for dead, however loaded the machine is. */
const slow = { ...timing, expire: 60_000 };
/** Longer than an owner that nobody can see may be silent. */
const patient = { ...timing, patience: 4 * timing.expire };
const target = (database: string, own = timing) => ({ database, now: () => startOfTests, timing: own });
const serve = (database: string) => serveLibrary({ ...target(database), listen: onLoopback });
const namesIn = async (database: string) => (await listKeys(target(database))).map(({ name }) => name);
const asOwner = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

/** Runs the next command in a process namespace of its own. */
const unshare = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child=SIGKILL'];
const canUnshare = spawnSync('unshare', [...unshare.slice(1), 'true']).status === 0;

/** The built command, serving. */
async function startServer({ database, undo }: Place, within: string[] = []) {
  const server = start(['library', 'serve', '--port', '0', '--database', database], {}, within);
  const kill = async () => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  undo.push(kill);
  const [, url = ''] = await server.says(/library on (http:\S+)/);
  const { pid = 0 } = server.child;
  const statusFor = async (key: string) => (await fetch(`${url}/v1/whoami`, asOwner(key))).status;
  return { url, pid, kill, statusFor, ended: server.ended };
}

const foreign = {
  ...{ pid: 2 ** 30, started: '1', host: 'another kernel' },
  ...{ token: 'theirs', url: null as string | null },
};
const writeNote = (database: string, note: unknown) =>
  writeFile(`${database}.owner`, typeof note === 'string' ? note : JSON.stringify(note));

/** An owner that is visible only by its note, like one in another container. */
async function beForeignOwner({ database, undo }: Place, note: object) {
  await writeNote(database, note);
  let seconds = 0;
  const renewing = setInterval(() => {
    if (existsSync(`${database}.owner`)) utimesSync(`${database}.owner`, ++seconds, seconds);
  }, timing.renew);
  const stop = () => clearInterval(renewing);
  undo.push(stop);
  return stop;
}

describe('an owner in another process namespace', () => {
  test('keeps its file as long as it renews its note', async ({ folder, database, undo }) => {
    await beForeignOwner({ database, undo }, { ...foreign, url: 'http://127.0.0.1:9' });
    await writeFile(`${database}.lock`, '');
    const message = /in use by process 1073741824, which serves it at http.* does not answer from here, run this/;
    await expect(serve(database)).rejects.toThrow(message);
    await expect(namesIn(database)).rejects.toThrow(message);
    expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.lock', 'ad-library.db.owner']);
  });

  test('is waited for if it does not serve, and loses its file when it stops renewing', async ({
    folder,
    database,
    undo,
  }) => {
    const stop = await beForeignOwner({ database, undo }, foreign);
    const patience = 2 * timing.expire;
    await expect(listKeys(target(database, { ...timing, patience }))).rejects.toThrow(/which has not finished yet/);
    stop();
    expect(await namesIn(database)).toEqual([]);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });
});

test.skipIf(!canUnshare)(
  'two servers in process namespaces of their own never serve the same file',
  async ({ database, undo }) => {
    const first = await startServer({ database, undo }, unshare);
    const second = startServer({ database, undo }, unshare);
    await expect(second).rejects.toThrow(/in use by process 1, which serves it at http/);
    const { key } = await createKey(target(database, slow), {});
    expect(await first.statusFor(key)).toBe(200);
    await first.kill();
    expect(await namesIn(database)).toHaveLength(1);
  },
);

describe('a note whose owner is gone', () => {
  test.for([
    ['of a process that has ended', { ...foreign, host: 'this' }],
    ['of another machine', { ...foreign, url: 'http://127.0.0.1:9' }],
    ['of a process number that another program has by now', { ...foreign, host: 'this', pid: process.ppid }],
    ['of this very process number, from before a restart', { ...foreign, host: 'this', pid: process.pid }],
    ['cut short', '{"pid":'],
    ['of something else', { pid: 'none' }],
  ] as const)('%s is cleared away, with everything it left behind', async ([_, note], { folder, database }) => {
    const { key } = await createKey(target(database), { name: 'Before' });
    const { host } = thisOwner();
    await writeNote(
      database,
      typeof note === 'object' && 'host' in note && note.host === 'this' ? { ...note, host } : note,
    );
    await writeFile(`${database}.lock`, 'left over');
    expect(await listKeys(target(database))).toMatchObject([{ name: 'Before', keyPrefix: key.slice(0, 17) }]);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test.for([
    ['that has ended', 'this'],
    ['that fell silent', 'another kernel'],
  ] as const)('of many processes that find an owner %s, one takes over', async ([_, host], { database, undo }) => {
    await writeFile(database, '');
    const { host: here } = thisOwner();
    await writeNote(database, { ...foreign, host: host === 'this' ? here : host });
    const wanted = { timing: { ...timing, patience: 3 * timing.expire } };
    const locks = await Promise.allSettled(Array.from({ length: 8 }, () => lockDatabase(database, wanted)));
    const taken = locks.flatMap((lock) => (lock.status === 'fulfilled' ? [lock.value] : []));
    for (const { release } of taken) undo.push(release);
    expect(taken).toHaveLength(1);
    taken[0]?.check();
  });
});

test('of four servers that start at the same moment one serves, and the others name it', async ({ database, undo }) => {
  const starts = await Promise.allSettled(Array.from({ length: 4 }, () => startServer({ database, undo })));
  const [served, ...others] = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(others).toEqual([]);
  const owner = `in use by process ${served?.pid}, which serves it at ${served?.url}`;
  for (const one of starts) if (one.status === 'rejected') expect(String(one.reason)).toContain(owner);
});

test('a symbolic link has the same owner, even before the file exists', async ({ folder, database, undo }) => {
  const link = join(folder, 'link.db');
  await symlink(database, link);
  const served = await serve(link);
  undo.push(served.close);
  await expect(serve(database)).rejects.toThrow(`in use by process ${process.pid}`);
});

test('a killed server keeps every key whose creation was reported, and those that were revoked stay so', async ({
  database,
  undo,
}) => {
  const server = await startServer({ database, undo });
  const reported: string[] = [];
  const revoked = await createKey(target(database), { name: 'Revoked' });
  await revokeKey(target(database), revoked.id);
  let isKilled = false;
  const creating = Array.from({ length: 4 }, async () => {
    while (!isKilled) reported.push((await createKey(target(database, slow), {})).key);
  }).map((loop) => loop.catch(() => {}));
  await until(() => reported.length >= 25);
  isKilled = true;
  await server.kill();
  await Promise.all(creating);

  const next = await startServer({ database, undo });
  for (const key of reported) expect(await next.statusFor(key)).toBe(200);
  expect(await next.statusFor(revoked.key)).toBe(401);
  expect((await namesIn(database)).length).toBeGreaterThanOrEqual(reported.length + 1);
});

test('a process that uses the file without serving it is named and keeps it while it is suspended; killed, it takes nothing with it that was saved', async ({
  folder,
  database,
  undo,
}) => {
  await createKey(target(database), { name: 'Saved' });
  const importing = start(['library', 'import', '-', '--database', database]);
  undo.push(() => importing.child.kill('SIGKILL'));
  importing.child.stdin?.on('error', () => {}).write(`{"id":"${uuid(1)}"}\n`.repeat(20_000));
  await until(() => existsSync(`${database}.lock`));
  importing.child.kill('SIGSTOP');
  await expect(listKeys(target(database, patient))).rejects.toThrow(
    `in use by process ${importing.child.pid}, which has not finished`,
  );
  importing.child.kill('SIGKILL');
  await importing.ended;
  expect(await readdir(folder)).toContain('ad-library.db.lock');
  expect(await namesIn(database)).toEqual(['Saved']);
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

test('the owner’s note is readable by the user alone, holds the token of the admin routes, and is removed at the end', async ({
  folder,
  database,
}) => {
  const { url, close } = await serve(database);
  const note = `${database}.owner`;
  expect((await stat(note)).mode & 0o777).toBe(0o600);
  const { token } = JSON.parse(await readFile(note, 'utf8'));
  const ask = (path: string, key: string, body?: string) =>
    fetch(`${url}/-/${path}`, { method: 'POST', ...asOwner(key), ...(body && { body }) });
  expect((await ask('list', token, '[]')).status).toBe(200);
  expect((await ask('list', 'wrong', '[]')).status).toBe(404);
  expect((await fetch(`${url}/-/list`)).status).toBe(404);
  const wrong = await ask('create', token, '[{"scopes":["ads:eat"]}]');
  expect(await wrong.json()).toEqual({ message: expect.stringMatching(/Unknown scope ads:eat/) });
  expect(await (await ask('import', token)).json()).toMatchObject({ ads: 0, pages: 0 });
  const stdin = Readable.from([Buffer.from(`{"id":"${uuid(1)}"}\n`)]);
  expect(await importFiles(target(database), ['-'], { stdin })).toMatchObject([{ ads: 1, skipped: 0 }]);
  await close();
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

test('a note that cannot be read is left alone', async ({ folder, database }) => {
  await mkdir(`${database}.owner`);
  await expect(namesIn(database)).rejects.toThrow(/EISDIR/);
  expect((await readdir(folder)).sort()).toEqual(['ad-library.db', 'ad-library.db.owner']);
});

test.skipIf(process.platform === 'win32')(
  'a note that is no file, or a huge one, keeps nobody waiting for long',
  async ({ database }) => {
    spawnSync('mkfifo', [`${database}.owner`]);
    expect(await namesIn(database)).toEqual([]);
    await writeFile(`${database}.owner`, '');
    await truncate(`${database}.owner`, 2 ** 30);
    const began = performance.now();
    expect(await namesIn(database)).toEqual([]);
    expect(performance.now() - began).toBeLessThan(10_000);
  },
);

const moves: [name: string, code: string, message: string, move: (database: string) => Promise<unknown>][] = [
  ['file is deleted', 'database_replaced', 'was deleted or replaced', (database) => rm(database)],
  [
    'file is replaced by another',
    'database_replaced',
    'was deleted or replaced',
    (database) => writeFile(`${database}.new`, '').then(() => rename(`${database}.new`, database)),
  ],
  [
    'file is replaced by a copy of itself',
    'database_replaced',
    'was deleted or replaced',
    (database) => copyFile(database, `${database}.new`).then(() => rename(`${database}.new`, database)),
  ],
  [
    'note is gone, so that another process must have taken over',
    'database_taken_over',
    'Another process has taken over',
    (database) => rm(`${database}.owner`),
  ],
];

test.for(moves)(
  'a server whose %s acknowledges nothing more and says so',
  async ([_, code, message, move], { database }) => {
    const { key } = await createKey(target(database), {});
    const served = await serve(database);
    const ask = () => fetch(`${served.url}/v1/collections`, asOwner(key));
    expect((await ask()).status).toBe(200);
    await move(database);
    const answer = await ask();
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code } }]);
    expect((await served.lost).message).toContain(message);
    await served.close();
  },
);

test('what was saved before a file was moved away is all in it, and nothing of it in a file that took its place', async ({
  folder,
  database,
}) => {
  const served = await serve(database);
  await createKey(target(database), { name: 'Saved' });
  await rename(database, `${database}.old`);
  await served.lost;
  await writeFile(database, '');
  await served.close();
  expect(await namesIn(database)).toEqual([]);
  expect(await namesIn(`${database}.old`)).toEqual(['Saved']);
  expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.old']);
});

test('a suspended server keeps its file from commands that can see it, and goes on as if nothing had been', async ({
  database,
  undo,
}) => {
  const server = await startServer({ database, undo });
  const { key } = await createKey(target(database), { name: 'Before' });
  process.kill(server.pid, 'SIGSTOP');
  await expect(listKeys(target(database, patient))).rejects.toThrow(
    `in use by process ${server.pid}, which serves it at ${server.url}. If that address does not answer`,
  );
  process.kill(server.pid, 'SIGCONT');
  expect(await server.statusFor(key)).toBe(200);
  expect(await namesIn(database)).toEqual(['Before']);
});

test.skipIf(!canUnshare)(
  'a suspended server that nobody can see loses its file, answers 503 from then on, and ends with a message',
  async ({ database, undo }) => {
    const first = await startServer({ database, undo }, unshare);
    const { key } = await createKey(target(database, slow), { name: 'Before' });
    expect(JSON.parse(await readFile(`${database}.owner`, 'utf8')).pid).toBe(1);
    const inside = Number(await readFile(`/proc/${first.pid}/task/${first.pid}/children`, 'utf8'));
    process.kill(inside, 'SIGSTOP');
    const second = await serve(database);
    undo.push(second.close);
    await createKey(target(database), { name: 'Meanwhile' });
    process.kill(inside, 'SIGCONT');
    // It may have ended before.
    expect(await first.statusFor(key).catch(() => 503)).toBe(503);
    const { code, stderr } = await first.ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/Another process has taken over .*ad-library\.db.* This process writes nothing more\.\n$/);
    expect((await namesIn(database)).toSorted()).toEqual(['Before', 'Meanwhile']);
  },
);
