import { expect } from 'vitest';
import { listKeys, serveDemoLibrary, serveLibrary } from '../../src/library/commands/commands.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { onLoopback, startOfTests } from './support/served-library.ts';

const now = () => startOfTests;
const target = (database: string) => ({ database, now });

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
