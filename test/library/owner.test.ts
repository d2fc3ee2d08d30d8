import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { createKey, importFiles, listKeys, revokeKey, serveLibrary } from '../../src/library/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { startChild } from './support/child.ts';
import { databaseTest as test, type Undo } from './support/fixtures.ts';
import { onLoopback } from './support/on-loopback.ts';
import { startOfTests, uuid } from './support/served-library.ts';

const now = () => startOfTests;

const target = (database: string) => ({ database, now });
const startServer = async ({ database, undo }: { database: string; undo: Undo }) => {
  const child = await startChild('./serving-child.ts', { database });
  undo.push(child.kill);
  return child;
};
const works = async (url: string, key: string) => {
  const response = await fetch(`${url}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } });
  return response.status === 200;
};

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
  }, 60_000);

  test('loses no acknowledged write and keeps no half transaction', async ({ folder, database }) => {
    const holder = await startChild('./holding-child.ts', { database });
    await holder.kill();
    expect((await readdir(folder)).sort()).toContain('ad-library.db.lock');
    const names = (await listKeys(target(database))).map(({ name }) => name);
    expect(names).toEqual(['Committed']);
    expect((await readdir(folder)).filter((file) => file !== 'ad-library.db')).toEqual([]);
  });
});

describe('two processes on one file', () => {
  test('other commands work through the one that serves', async ({ folder, database, undo }) => {
    const { ready } = await startServer({ database, undo });
    const url = ready.url ?? '';
    const made = await createKey(target(database), { name: 'From outside', scopes: ['ads:read'], credits: 7 });
    expect(await works(url, made.key)).toBe(true);
    expect(await listKeys(target(database))).toMatchObject([
      { id: made.id, name: 'From outside', scopes: ['ads:read'] },
    ]);
    const file = join(folder, 'ads.jsonl');
    await writeFile(file, `${JSON.stringify({ id: uuid(1), headline: 'Hello' })}\n`);
    const [report] = await importFiles(target(database), [file], { stdin: process.stdin });
    expect(report).toMatchObject({ name: file, ads: 1, skipped: 0 });
    await revokeKey(target(database), made.keyPrefix);
    expect(await works(url, made.key)).toBe(false);
    await expect(createKey(target(database), { scopes: ['ads:eat'] })).rejects.toThrow(
      /Unknown scope ads:eat\. Known: account:read/,
    );
  });

  test('a second server fails and names the process of the first', async ({ database, undo }) => {
    const { pid } = await startServer({ database, undo });
    await expect(serveLibrary({ ...target(database), listen: onLoopback })).rejects.toThrow(`in use by process ${pid}`);
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
    const ask = (Authorization: string) => fetch(`${url}/-/keys`, { headers: { Authorization } });
    expect((await ask(`Bearer ${token}`)).status).toBe(200);
    expect((await ask('Bearer wrong')).status).toBe(404);
    expect((await fetch(`${url}/-/keys`)).status).toBe(404);
    const empty = await fetch(`${url}/-/import`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } });
    expect(await empty.json()).toMatchObject({ ads: 0, pages: 0 });
    await undo.pop()?.();
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });
});

test('a note that cannot be read is left alone', async ({ folder, database }) => {
  await mkdir(`${database}.owner`);
  await expect(listKeys(target(database))).rejects.toThrow(/EISDIR/);
  expect((await readdir(folder)).sort()).toEqual(['ad-library.db', 'ad-library.db.owner']);
});

describe('a file that is no library of this version', () => {
  test('that belongs to another program is refused and left unchanged', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    context.database.run('PRAGMA application_id = 7');
    close();
    await expect(listKeys(target(database))).rejects.toThrow(/ad-library\.db is a database of another program/);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('of a newer version is refused', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    context.database.run('PRAGMA user_version = 99');
    close();
    await expect(listKeys(target(database))).rejects.toThrow(/written by a newer version .* 99.*Update ad-library-mcp/);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('that cannot be updated is left as it was, and the message says what failed', async ({ folder, database }) => {
    const { context, close } = await openLibrary({ database, now });
    // Its tables have what the next step would add.
    context.database.run('PRAGMA user_version = 2');
    close();
    const before = await readFile(database);
    await expect(listKeys(target(database))).rejects.toThrow(
      /ad-library\.db could not be updated from version 2 to \d+ \(.*duplicate column.*\)\. It was left as it was\. Please report this\.$/,
    );
    expect(await readFile(database)).toEqual(before);
    expect(await readdir(folder)).toEqual(['ad-library.db']);
  });

  test('that is no database is refused', async ({ database }) => {
    await writeFile(database, 'Dear diary, '.repeat(1000));
    await expect(listKeys(target(database))).rejects.toThrow(/is not a database of the ad library/);
  });

  test('in a missing folder is refused', async ({ folder, database }) => {
    database = join(folder, 'nowhere', 'a.db');
    await expect(listKeys(target(database))).rejects.toThrow(/no such folder/);
    await writeFile(join(folder, 'file'), '');
    database = join(folder, 'file', 'a.db');
    await expect(listKeys(target(database))).rejects.toThrow(/no such folder/);
  });
});
