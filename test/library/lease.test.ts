import { existsSync, utimesSync } from 'node:fs';
import { link, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { createKey, listKeys, serveLibrary } from '../../src/library/commands.ts';
import { takeLease } from '../../src/library/lease.ts';
import { canUnshare, startChild } from './support/child.ts';
import { databaseTest as test, type Undo } from './support/fixtures.ts';
import { onLoopback } from './support/on-loopback.ts';
import { startOfTests } from './support/served-library.ts';

const timing = { renew: 20, expire: 500, poll: 5, patience: 20_000 };
/** For owners that must never be taken for dead, however loaded the machine is. */
const slow = { ...timing, expire: 60_000 };
const impatient = { ...timing, expire: 60_000, patience: 200 };
const target = (database: string, own = timing) => ({ database, now: () => startOfTests, timing: own });
const foreign = { pid: 2 ** 30, host: 'another kernel', token: 'theirs', url: null as string | null };
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
  test('keeps its file as long as it renews its lease', async ({ folder, database, undo }) => {
    await beForeignOwner({ database, undo }, { ...foreign, url: 'http://127.0.0.1:9' });
    await writeFile(`${database}.lock`, '');
    const message = /in use by process 1073741824, which serves it at http.* does not answer from here\. Run this/;
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
    const { host } = (await import('../../src/library/owner-note.ts')).thisOwner('');
    await writeNote(
      database,
      typeof note === 'object' && 'host' in note && note.host === 'this' ? { ...note, host } : note,
    );
    await writeFile(`${database}.copy`, 'left over');
    await writeFile(`${database}.lock`, 'left over');
    expect(await listKeys(target(database))).toMatchObject([{ name: 'Before', keyPrefix: key.slice(0, 17) }]);
    await rm(`${database}.copy`, { force: true });
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test.for([
    ['that has ended', 'this'],
    ['that fell silent', 'another kernel'],
  ] as const)('of many processes that find an owner %s, one takes over', async ([_, host], { database, undo }) => {
    await writeFile(database, '');
    const { host: here } = (await import('../../src/library/owner-note.ts')).thisOwner('');
    await writeNote(database, { ...foreign, host: host === 'this' ? here : host });
    const patient = { ...timing, patience: 1500 };
    const leases = await Promise.allSettled(
      Array.from({ length: 8 }, (_, at) => takeLease(database, { token: `token-${at}`, timing: patient })),
    );
    const taken = leases.flatMap((lease) => (lease.status === 'fulfilled' ? [lease.value] : []));
    for (const lease of taken) undo.push(lease.release);
    expect(taken).toHaveLength(1);
    taken[0]?.check();
  });
});

test('of servers that start at the same moment, one serves', async ({ database, undo }) => {
  const servers = await Promise.allSettled(
    Array.from({ length: 4 }, () => startChild('./serving-child.ts', { database })),
  );
  const serving = servers.flatMap((server) => (server.status === 'fulfilled' ? [server.value] : []));
  for (const { kill } of serving) undo.push(kill);
  expect(serving).toHaveLength(1);
  for (const server of servers) {
    if (server.status === 'rejected') expect(String(server.reason)).toMatch(/in use by process \d+, which serves it/);
  }
});

test('a process that uses the file without serving it is named', async ({ database, undo }) => {
  const holder = await startChild('./holding-child.ts', { database });
  undo.push(holder.kill);
  await expect(listKeys(target(database, impatient))).rejects.toThrow(
    `in use by process ${holder.pid}, which has not finished`,
  );
});

describe('another name for the file', () => {
  test('a symbolic link has the same owner, even before the file exists', async ({ folder, database, undo }) => {
    const link = join(folder, 'link.db');
    await symlink(database, link);
    const served = await serveLibrary({ ...target(database), database: link, listen: onLoopback });
    undo.push(served.close);
    await expect(serveLibrary({ ...target(database), listen: onLoopback })).rejects.toThrow(
      `in use by process ${process.pid}`,
    );
  });

  test('a hard link is refused', async ({ folder, database, undo }) => {
    await createKey(target(database), {});
    const served = await serveLibrary({ ...target(database), listen: onLoopback });
    undo.push(served.close);
    const other = join(folder, 'other.db');
    await link(database, other);
    await expect(listKeys({ ...target(database), database: other })).rejects.toThrow(/has 2 names \(hard links\)/);
  });
});
