import { copyFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createKey, listKeys, serveLibrary } from '../../src/library/commands.ts';
import { startChild } from './support/child.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { onLoopback } from './support/on-loopback.ts';

const target = (database: string) => ({ database, now: Date.now });

const moves: [name: string, move: (database: string) => Promise<unknown>][] = [
  ['deleted', (database) => rm(database)],
  ['moved away', (database) => rename(database, `${database}.old`)],
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

test('the command ends with a message, and the file can be used again at once', async ({ folder, database, undo }) => {
  const child = await startChild('./serving-child.ts', { database });
  undo.push(child.kill);
  await rm(database);
  const { code, errors } = await child.ended;
  expect(code).toBe(1);
  expect(errors).toMatch(/ad-library\.db was deleted or replaced .* This process writes nothing more\.\n$/);
  expect(await readdir(folder)).not.toContain('ad-library.db.owner');
  expect(await listKeys(target(join(folder, 'ad-library.db')))).toEqual([]);
});
