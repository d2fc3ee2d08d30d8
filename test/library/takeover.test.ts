import { rm } from 'node:fs/promises';
import { expect } from 'vitest';
import { createKey, importFiles, listKeys, serveLibrary } from '../../src/library/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { startChild } from './support/child.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { onLoopback } from './support/on-loopback.ts';
import { linesOf, uuid } from './support/served-library.ts';

const timing = { renew: 20, expire: 500, poll: 5, patience: 20_000 };
const target = (database: string) => ({ database, now: Date.now, timing });

const bytes = async function* (records: unknown[]) {
  for await (const line of linesOf(records)) yield Buffer.from(line);
};

/** Saves ads into the key's first collection until a save fails; returns those that were acknowledged. */
async function saveAll(url: string, key: string, ids: readonly string[]): Promise<string[]> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const { items } = (await (await fetch(`${url}/v1/collections`, { headers })).json()) as { items: { id: string }[] };
  const acknowledged: string[] = [];
  for (const itemId of ids) {
    const body = JSON.stringify({ itemType: 'ads', itemId });
    const answer = await fetch(`${url}/v1/collections/${items[0]?.id}/items`, { method: 'POST', headers, body });
    if (!answer.ok) break;
    await answer.text();
    acknowledged.push(itemId);
  }
  return acknowledged;
}

async function saved(url: string, key: string): Promise<string[]> {
  const headers = { Authorization: `Bearer ${key}` };
  const { items } = (await (await fetch(`${url}/v1/collections`, { headers })).json()) as { items: { id: string }[] };
  const path = `${url}/v1/collections/${items[0]?.id}/items?itemType=ads&limit=100`;
  const page = (await (await fetch(path, { headers })).json()) as { items: { id: string }[] };
  return page.items.map(({ id }) => id);
}

test('a server that was suspended until another took over writes nothing more and exits with a message', async ({
  database,
  undo,
}) => {
  const ids = Array.from({ length: 90 }, (_, at) => uuid(at));
  const { key } = await createKey(target(database), {});
  await importFiles(target(database), ['-'], { stdin: bytes(ids.map((id) => ({ id }))) });
  const first = await startChild('./serving-child.ts', { database, timing });
  undo.push(first.kill);

  const before = await saveAll(first.ready.url ?? '', key, ids.slice(0, 30));
  const under = saveAll(first.ready.url ?? '', key, ids.slice(30, 60));
  first.signal('SIGSTOP');
  const second = await serveLibrary({ ...target(database), listen: onLoopback });
  undo.push(second.close);
  const after = await saveAll(second.url, key, ids.slice(60));
  first.signal('SIGCONT');
  const meanwhile = await under.catch(() => []);

  const { code, errors } = await first.ended;
  expect(code).toBe(1);
  expect(errors).toMatch(/Another process has taken over .*ad-library\.db.* This process writes nothing more\.\n$/);
  expect([before.length, after.length]).toEqual([30, 30]);
  expect(await saved(second.url, key)).toEqual(expect.arrayContaining([...before, ...meanwhile, ...after]));
});

test('a transaction interrupted by the suspension is not acknowledged and damages nothing', async ({
  database,
  undo,
}) => {
  const first = await startChild('./holding-child.ts', { database, timing, suspended: true });
  undo.push(first.kill);
  const made = [await createKey(target(database), { name: 'Later' })];
  first.signal('SIGCONT');
  expect(await first.next()).toEqual({ refused: expect.stringContaining('Another process has taken over') });
  await first.ended;
  made.push(await createKey(target(database), { name: 'Last' }));
  expect((await listKeys(target(database))).map(({ name }) => name)).toEqual(['Committed', 'Later', 'Last']);
  const { context, close } = await openLibrary({ database, now: Date.now });
  expect(context.database.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' });
  close();
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
