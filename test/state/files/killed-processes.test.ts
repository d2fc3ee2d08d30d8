import { appendFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileDatasets } from '../../../src/state/files/file-datasets.ts';
import { startChild } from '../../library/support/child.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { add } from '../add-items.ts';

const folder = temporaryFolder();
const child = new URL('adding-child.ts', import.meta.url).pathname;

function openHere(now = Date.now) {
  const warnings: string[] = [];
  const datasets = new FileDatasets({
    folder,
    baseUrl: 'https://api.example.com',
    now,
    elapsed: now,
    userIdOf: async () => 'u',
    warn: (message) => warnings.push(message),
  });
  return { warnings, open: () => datasets.of({ tenantId: 't', apiKey: 'k' }) };
}

test('processes that are killed while they write and merge lose nothing that they had answered', async () => {
  const here = openHere();
  for (let at = 0; at < 60; at++) await add(await here.open(), at, { id: `here-${at}` });
  const answered = await Promise.all(
    ['first', 'second', 'third'].map(async (name, index) => {
      const { ready, next, kill } = await startChild(child, { folder, name });
      const ids = [ready.id];
      for (let count = 0; count < 10 + 7 * index; count++) ids.push((await next()).id);
      await kill();
      return ids;
    }),
  );
  for (const { warnings, open } of [here, openHere()]) {
    const { ads } = await (await open()).contents();
    const ids = ads.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(answered.flat()));
    expect(ids.filter((id) => id.startsWith('here'))).toHaveLength(60);
    expect(warnings).toEqual([]);
  }
});

test('what they had begun to write is removed after a while', async () => {
  const [name = ''] = await readdir(join(folder, 'datasets'));
  const path = join(folder, 'datasets', name);
  const begun = `${'1'.padStart(15, '0')}-00000000-0000-4000-8000-000000000000.jsonl.tmp`;
  await appendFile(join(path, begun), '{"kind":"ads"');
  const { open } = openHere(() => Date.now() + 7_200_000);
  for (let at = 0; (await readdir(path)).includes(begun) && at < 100; at++)
    await add(await open(), at, { id: `more-${at}` });
  expect(await readdir(path)).not.toContain(begun);
});
