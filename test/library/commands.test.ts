import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { importText, keysText } from '../../src/cli/library.ts';
import {
  createKey,
  type ImportProgress,
  importFiles,
  listKeys,
  revokeKey,
  serveDemoLibrary,
  serveLibrary,
} from '../../src/library/commands/commands.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { onLoopback, startOfTests, uuid } from './support/served-library.ts';

const now = () => startOfTests;
const target = (database: string) => ({ database, now });

test('what files and standard input hold and keys that are made outlive the process', async ({ folder, database }) => {
  const made = await createKey(target(database), { name: 'Kept', credits: 5 });
  const file = join(folder, 'ads.jsonl');
  await writeFile(file, `{"id":"${uuid(1)}","headline":"Kept"}\n{"id":"x"}\n{"pageId":"p","pageName":"P"}\n`);
  const stdin = Readable.from([Buffer.from(`{"id":"${uuid(2)}"}\n`)]);
  const seen: ImportProgress[] = [];
  const onProgress = (progress: ImportProgress) => seen.push(progress);
  const reports = await importFiles(target(database), [file, '-'], { stdin, onProgress });
  expect(reports.map(importText)).toEqual([
    `${file}: 1 ad and 1 page, 1 skipped:\n  line 2: id: an ad's id is a UUID; got "x"`,
    'standard input: 1 ad and 0 pages',
  ]);
  expect(seen).toMatchObject([
    { name: file, bytes: 105, of: 105 },
    { name: 'standard input', of: undefined },
  ]);

  const served = await serveLibrary({ ...target(database), listen: onLoopback });
  const response = await fetch(`${served.url}/v1/ads/${uuid(1)}`, { headers: { Authorization: `Bearer ${made.key}` } });
  expect(await response.json()).toEqual({ id: uuid(1), headline: 'Kept' });
  expect(response.headers.get('x-service-credits-remaining')).toBe('4');
  await served.close();
  const { id } = await revokeKey(target(database), made.keyPrefix);
  expect(keysText(await listKeys(target(database)))).toBe(
    `${made.keyPrefix}…  ${id}  made 2026-03-15  revoked 2026-03-15  Kept  ${made.scopes.join(',')}`,
  );
});

test('a port that is taken is an error, and the database is free again', async ({ database }) => {
  const first = await serveDemoLibrary({ listen: onLoopback, now });
  const port = Number(new URL(first.url).port);
  await expect(serveLibrary({ ...target(database), listen: (fetch) => onLoopback(fetch, { port }) })).rejects.toThrow(
    /EADDRINUSE/,
  );
  expect(await listKeys(target(database))).toEqual([]);
  await first.close();
});

test.for([
  ['0.0.0.0', /^http:\/\/127\.0\.0\.1:\d+$/],
  ['::1', /^http:\/\/\[::1\]:\d+$/],
] as const)('served on %s, it names an address that this machine can reach', async ([host, address], { database }) => {
  const served = await serveLibrary({ ...target(database), listen: (fetch) => onLoopback(fetch, { host }) });
  expect(served.url).toMatch(address);
  expect((await fetch(`${served.url}/v1/whoami`)).status).toBe(401);
  await served.close();
});
