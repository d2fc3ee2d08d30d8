import { existsSync, utimesSync } from 'node:fs';
import { link, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKey, listKeys, serveLibrary } from '../../src/library/commands.ts';
import { takeLease } from '../../src/library/lease.ts';
import { canUnshare, startChild } from './support/child.ts';
import { onLoopback } from './support/on-loopback.ts';
import { startOfTests } from './support/served-library.ts';

let folder: string;
let database: string;
const undo: (() => unknown)[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ad-library-'));
  database = join(folder, 'ad-library.db');
});
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
  await rm(folder, { recursive: true });
});

const timing = { renew: 20, expire: 500, poll: 5, patience: 20_000 };
/** For owners that must never be taken for dead, however loaded the machine is. */
const slow = { ...timing, expire: 60_000 };
const impatient = { ...timing, expire: 60_000, patience: 200 };
const target = (own = timing) => ({ database, now: () => startOfTests, timing: own });
const foreign = { pid: 2 ** 30, host: 'another kernel', token: 'theirs', url: null as string | null };
const writeNote = (note: unknown) =>
  writeFile(`${database}.owner`, typeof note === 'string' ? note : JSON.stringify(note));

/** An owner that is visible only by its note, like one in another container. */
async function beForeignOwner(note: object) {
  await writeNote(note);
  let seconds = 0;
  const renewing = setInterval(() => {
    if (existsSync(`${database}.owner`)) utimesSync(`${database}.owner`, ++seconds, seconds);
  }, timing.renew);
  const stop = () => clearInterval(renewing);
  undo.push(stop);
  return stop;
}

describe('an owner in another process namespace', () => {
  test('keeps its file as long as it renews its lease', async () => {
    await beForeignOwner({ ...foreign, url: 'http://127.0.0.1:9' });
    await writeFile(`${database}.lock`, '');
    const message = /in use by process 1073741824, which serves it at http.* does not answer from here\. Run this/;
    await expect(serveLibrary({ ...target(), listen: onLoopback })).rejects.toThrow(message);
    await expect(listKeys(target())).rejects.toThrow(message);
    expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.lock', 'ad-library.db.owner']);
  });

  test('is waited for, for a limited time, if it does not serve', async () => {
    await beForeignOwner(foreign);
    await expect(listKeys(target({ ...timing, patience: 1000 }))).rejects.toThrow(/which has not finished yet/);
  });

  test('loses its file when it stops renewing', async () => {
    const stop = await beForeignOwner(foreign);
    const keys = listKeys(target());
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

test.skipIf(!canUnshare)('two servers in process namespaces of their own never serve the same file', async () => {
  const first = await startChild('./serving-child.ts', { database, timing: slow }, { isolated: true });
  undo.push(first.kill);
  const second = startChild('./serving-child.ts', { database, timing: slow }, { isolated: true });
  await expect(second).rejects.toThrow(/in use by process 1, which serves it at http/);
  const { key } = await createKey(target(slow), {});
  const whoami = await fetch(`${first.ready.url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } });
  expect(whoami.status).toBe(200);
  await first.kill();
  expect(await listKeys(target())).toHaveLength(1);
});

describe('a note whose owner is gone', () => {
  test.each([
    ['of a process that has ended', { ...foreign, host: 'this' }],
    ['of another machine', { ...foreign, url: 'http://127.0.0.1:9' }],
    ['of a process number that another program has by now', { ...foreign, host: 'this', pid: process.ppid }],
    ['of this very process number, from before a restart', { ...foreign, host: 'this', pid: process.pid }],
    ['cut short', '{"pid":'],
    ['of something else', { pid: 'none' }],
  ])('%s is cleared away, with everything it left behind', async (_, note) => {
    const { key } = await createKey(target(), { name: 'Before' });
    const { host } = (await import('../../src/library/owner-note.ts')).thisOwner('');
    await writeNote(typeof note === 'object' && 'host' in note && note.host === 'this' ? { ...note, host } : note);
    await writeFile(`${database}.copy`, 'left over');
    await writeFile(`${database}.lock`, 'left over');
    expect(await listKeys(target())).toMatchObject([{ name: 'Before', keyPrefix: key.slice(0, 17) }]);
    await rm(`${database}.copy`, { force: true });
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test.each([
    ['that has ended', 'this'],
    ['that fell silent', 'another kernel'],
  ])('of many processes that find an owner %s, one takes over', async (_, host) => {
    await writeFile(database, '');
    const { host: here } = (await import('../../src/library/owner-note.ts')).thisOwner('');
    await writeNote({ ...foreign, host: host === 'this' ? here : host });
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

test('of servers that start at the same moment, one serves', async () => {
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

test('a process that uses the file without serving it is named', async () => {
  const holder = await startChild('./holding-child.ts', { database });
  undo.push(holder.kill);
  await expect(listKeys(target(impatient))).rejects.toThrow(`in use by process ${holder.pid}, which has not finished`);
});

describe('another name for the file', () => {
  test('a symbolic link has the same owner, even before the file exists', async () => {
    const link = join(folder, 'link.db');
    await symlink(database, link);
    const served = await serveLibrary({ ...target(), database: link, listen: onLoopback });
    undo.push(served.close);
    await expect(serveLibrary({ ...target(), listen: onLoopback })).rejects.toThrow(`in use by process ${process.pid}`);
  });

  test('a hard link is refused', async () => {
    await createKey(target(), {});
    const served = await serveLibrary({ ...target(), listen: onLoopback });
    undo.push(served.close);
    const other = join(folder, 'other.db');
    await link(database, other);
    await expect(listKeys({ ...target(), database: other })).rejects.toThrow(/has 2 names \(hard links\)/);
  });
});
