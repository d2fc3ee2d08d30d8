import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { startLibraryServer } from './library-server.ts';

/** Defines tests that each get a new local library, served over HTTP. */
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of required fixtures from this pattern
export const libraryTest = test.extend('libraryServer', async ({}, { onCleanup }) => {
  const libraryServer = await startLibraryServer();
  onCleanup(libraryServer.close);
  return libraryServer;
});

/** The parent of the databases of tests. Syncing files in memory takes no time, unlike syncing files on a disk. */
const parentFolder = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** Defines tests that each get a database path in a new folder. The folder is deleted after the test's cleanup. */
export const databaseTest = test
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of required fixtures from this pattern
  .extend('folder', async ({}) => {
    const folder = await mkdtemp(join(parentFolder, 'ad-library-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    return folder;
  })
  .extend('database', ({ folder }) => join(folder, 'ad-library.db'));
