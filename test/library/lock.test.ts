import { existsSync, utimesSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect } from 'vitest';
import { createKey, importFiles, listKeys, revokeKey, serveLibrary } from '../../src/library/commands/commands.ts';
import { lockDatabase, thisOwner } from '../../src/library/database/lock.ts';
import { canUnshare, startChild } from './support/child.ts';
import { databaseTest as test, type Undo } from './support/fixtures.ts';
import { onLoopback } from './support/on-loopback.ts';
import { startOfTests, uuid } from './support/served-library.ts';

const timing = { renew: 20, expire: 500, poll: 5, patience: 20_000 };
/** For owners that must never be taken for dead, however loaded the machine is. */
const slow = { ...timing, expire: 60_000 };
const impatient = { ...timing, expire: 60_000, patience: 200 };
const target = (database: string, own = timing) => ({ database, now: () => startOfTests, timing: own });
const startServer = async ({ database, undo }: { database: string; undo: Undo }, given = {}) => {
  const child = await startChild('./serving-child.ts', { database, ...given });
  undo.push(child.kill);
  return child;
};
const works = async (url: string, key: string) => {
  const response = await fetch(`${url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } });
  return response.status === 200;
};
const foreign = {
  ...{ pid: 2 ** 30, started: '1', host: 'another kernel' },
  ...{ token: 'theirs', url: null as string | null },
};
const writeNote = (database: string, note: unknown) =>
  writeFile(`${database}.owner`, typeof note === 'string' ? note : JSON.stringify(note));

/** An owner that is visible only by its note, like one in another container. */
async function beForeignOwner({ database, undo }: { database: string; undo: Undo }, note: object) {
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
    await expect(serveLibrary({ ...target(database), listen: onLoopback })).rejects.toThrow(message);
    await expect(listKeys(target(database))).rejects.toThrow(message);
    expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.lock', 'ad-library.db.owner']);
  });

  test('is waited for, for a limited time, if it does not serve', async ({ database, undo }) => {
    await beForeignOwner({ database, undo }, foreign);
    await expect(listKeys(target(database, { ...timing, patience: 1000 }))).rejects.toThrow(
      /which has not finished yet/,
    );
  });

  test('loses its file when it stops renewing', async ({ folder, database, undo }) => {
    const stop = await beForeignOwner({ database, undo }, foreign);
    const keys = listKeys(target(database));
    let arrived = false;
    void keys.then(() => {
      arrived = true;
    });
    await new Promise((resolve) => setTimeout(resolve, timing.expire));
    expect(arrived).toBe(false);
    stop();
    expect(await keys).toEqual([]);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });
});

test.skipIf(!canUnshare)(
  'two servers in process namespaces of their own never serve the same file',
  async ({ database, undo }) => {
    const first = await startChild('./serving-child.ts', { database, timing: slow }, { isolated: true });
    undo.push(first.kill);
    const second = startChild('./serving-child.ts', { database, timing: slow }, { isolated: true });
    await expect(second).rejects.toThrow(/in use by process 1, which serves it at http/);
    const { key } = await createKey(target(database, slow), {});
    const whoami = await fetch(`${first.ready.url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } });
    expect(whoami.status).toBe(200);
    await first.kill();
    expect(await listKeys(target(database))).toHaveLength(1);
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
    const { host } = thisOwner('');
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
    const { host: here } = thisOwner('');
    await writeNote(database, { ...foreign, host: host === 'this' ? here : host });
    const patient = { ...timing, patience: 1500 };
    const locks = await Promise.allSettled(
      Array.from({ length: 8 }, () => lockDatabase(database, { timing: patient })),
    );
    const taken = locks.flatMap((lock) => (lock.status === 'fulfilled' ? [lock.value] : []));
    for (const { release } of taken) undo.push(release);
    expect(taken).toHaveLength(1);
    taken[0]?.check();
  });
});

test('a process that uses the file without serving it is named', async ({ database, undo }) => {
  const holder = await startChild('./holding-child.ts', { database });
  undo.push(holder.kill);
  await expect(listKeys(target(database, impatient))).rejects.toThrow(
    `in use by process ${holder.pid}, which has not finished`,
  );
});

test('a symbolic link has the same owner, even before the file exists', async ({ folder, database, undo }) => {
  const link = join(folder, 'link.db');
  await symlink(database, link);
  const served = await serveLibrary({ ...target(database), database: link, listen: onLoopback });
  undo.push(served.close);
  await expect(serveLibrary({ ...target(database), listen: onLoopback })).rejects.toThrow(
    `in use by process ${process.pid}`,
  );
});

describe('a killed server', () => {
  test('keeps every key whose creation was reported, and those that were revoked stay so', async ({
    database,
    undo,
  }) => {
    const server = await startServer({ database, undo });
    const reported: string[] = [];
    const revoked = await createKey(target(database), { name: 'Revoked' });
    await revokeKey(target(database), revoked.id);
    let killed = false;
    const creating = Array.from({ length: 4 }, async () => {
      while (!killed) reported.push((await createKey(target(database), {})).key);
    }).map((loop) => loop.catch(() => {}));
    while (reported.length < 25) await new Promise((resolve) => setTimeout(resolve, 5));
    killed = true;
    await server.kill();
    await Promise.all(creating);

    const next = await startServer({ database, undo });
    for (const key of reported) expect(await works(next.ready.url ?? '', key)).toBe(true);
    expect(await works(next.ready.url ?? '', revoked.key)).toBe(false);
    expect((await listKeys(target(database))).length).toBeGreaterThanOrEqual(reported.length + 1);
  });

  test('loses no acknowledged write and keeps no half transaction', async ({ folder, database }) => {
    const holder = await startChild('./holding-child.ts', { database });
    await holder.kill();
    expect((await readdir(folder)).sort()).toContain('ad-library.db.lock');
    const names = (await listKeys(target(database))).map(({ name }) => name);
    expect(names).toEqual(['Committed']);
    expect((await readdir(folder)).filter((file) => file !== 'ad-library.db')).toEqual([]);
  });
});

describe('the owner’s note', () => {
  test('is readable by the user alone, holds the token of the admin routes, and is removed at the end', async ({
    folder,
    database,
    undo,
  }) => {
    const { url, close } = await serveLibrary({ ...target(database), listen: onLoopback });
    undo.push(close);
    const note = `${database}.owner`;
    expect((await stat(note)).mode & 0o777).toBe(0o600);
    const { token } = JSON.parse(await readFile(note, 'utf8'));
    const ask = (Authorization: string) =>
      fetch(`${url}/-/list`, { method: 'POST', body: '[]', headers: { Authorization } });
    expect((await ask(`Bearer ${token}`)).status).toBe(200);
    expect((await ask('Bearer wrong')).status).toBe(404);
    expect((await fetch(`${url}/-/list`)).status).toBe(404);
    const wrong = await fetch(`${url}/-/create`, {
      ...{ method: 'POST', body: '[{"scopes":["ads:eat"]}]' },
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(await wrong.json()).toEqual({ message: expect.stringMatching(/Unknown scope ads:eat/) });
    const empty = await fetch(`${url}/-/import`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } });
    expect(await empty.json()).toMatchObject({ ads: 0, pages: 0 });
    const stdin = Readable.from([Buffer.from(`{"id":"${uuid(1)}"}\n`)]);
    expect(await importFiles(target(database), ['-'], { stdin })).toMatchObject([{ ads: 1, skipped: 0 }]);
    await undo.pop()?.();
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });
});

test('a note that cannot be read is left alone', async ({ folder, database }) => {
  await mkdir(`${database}.owner`);
  await expect(listKeys(target(database))).rejects.toThrow(/EISDIR/);
  expect((await readdir(folder)).sort()).toEqual(['ad-library.db', 'ad-library.db.owner']);
});

const moves: [name: string, move: (database: string) => Promise<unknown>][] = [
  ['deleted', (database) => rm(database)],
  [
    'replaced by another',
    (database) => writeFile(`${database}.new`, '').then(() => rename(`${database}.new`, database)),
  ],
  [
    'replaced by a copy of itself',
    (database) => copyFile(database, `${database}.new`).then(() => rename(`${database}.new`, database)),
  ],
];

test.for(moves)('a server whose file is %s acknowledges nothing more and says so', async ([_, move], { database }) => {
  const { key } = await createKey(target(database), {});
  const served = await serveLibrary({ ...target(database), listen: onLoopback });
  const headers = { Authorization: `Bearer ${key}` };
  expect((await fetch(`${served.url}/v1/collections`, { headers })).status).toBe(200);
  await move(database);
  const answer = await fetch(`${served.url}/v1/collections`, { headers });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { code: 'database_replaced' } });
  expect((await served.lost).message).toContain(`${database} was deleted or replaced`);
  await served.close();
});

test('what was saved before a file was moved away is all in it, and nothing of it in a file that took its place', async ({
  folder,
  database,
}) => {
  const served = await serveLibrary({ ...target(database), listen: onLoopback });
  const { keyPrefix } = await createKey(target(database), {});
  await rename(database, `${database}.old`);
  await served.lost;
  await writeFile(database, '');
  await served.close();
  expect(await listKeys(target(database))).toEqual([]);
  expect(await listKeys(target(`${database}.old`))).toMatchObject([{ keyPrefix }]);
  expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.old']);
});

test('a process that lost its file answers 503 to every call', async ({ database }) => {
  const first = await serveLibrary({ ...target(database), listen: onLoopback });
  const { key } = await createKey(target(database), {});
  // Without its note, the process must assume that another one has taken over.
  await rm(`${database}.owner`);
  const answer = await fetch(`${first.url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } });
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { code: 'database_taken_over' } });
  expect((await first.lost).message).toContain('Another process has taken over');
  await first.close();
});

describe('a suspended server', () => {
  test('keeps its file from commands that can see it, and goes on as if nothing had been', async ({
    database,
    undo,
  }) => {
    const server = await startServer({ database, undo }, { timing });
    const { key } = await createKey(target(database), { name: 'Before' });
    server.signal('SIGSTOP');
    const short = { ...timing, patience: 4 * timing.expire };
    await expect(listKeys(target(database, short))).rejects.toThrow(
      `in use by process ${server.pid}, which serves it at ${server.ready.url}. If that address does not answer`,
    );
    server.signal('SIGCONT');
    expect(await works(server.ready.url ?? '', key)).toBe(true);
    expect(await listKeys(target(database))).toMatchObject([{ name: 'Before' }]);
  });

  test.skipIf(!canUnshare)(
    'that nobody can see loses its file, answers 503 from then on, and ends with a message',
    async ({ database, undo }) => {
      const first = await startChild('./serving-child.ts', { database, timing }, { isolated: true });
      undo.push(first.kill);
      const { key } = await createKey(target(database), { name: 'Before' });
      const { pid } = JSON.parse(await readFile(`${database}.owner`, 'utf8'));
      expect(pid).toBe(1);
      const server = Number(await readFile(`/proc/${first.pid}/task/${first.pid}/children`, 'utf8'));
      process.kill(server, 'SIGSTOP');
      const second = await serveLibrary({ ...target(database), listen: onLoopback });
      undo.push(second.close);
      await createKey(target(database), { name: 'Meanwhile' });
      process.kill(server, 'SIGCONT');
      const late = await fetch(`${first.ready.url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } }).catch(
        () => undefined,
      );
      expect(late?.status ?? 503).toBe(503);
      const { code, errors } = await first.ended;
      expect(code).toBe(1);
      expect(errors).toMatch(/Another process has taken over .*ad-library\.db.* This process writes nothing more\.\n$/);
      expect((await listKeys(target(database))).map(({ name }) => name)).toEqual(
        expect.arrayContaining(['Before', 'Meanwhile']),
      );
    },
  );
});
