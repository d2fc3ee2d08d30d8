import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { startLibraryServer } from './library-server.ts';

/** A test with a library of its own, which is served over HTTP. */
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of required fixtures from this pattern
export const libraryTest = test.extend('libraryServer', async ({}, { onCleanup }) => {
  const libraryServer = await startLibraryServer();
  onCleanup(libraryServer.close);
  return libraryServer;
});

/**
 * A test with the path of a database in a new folder. The folder is deleted after the cleanup functions of the test
 * have run.
 */
export const databaseTest = test
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of required fixtures from this pattern
  .extend('folder', async ({}) => {
    const folder = await mkdtemp(join(tmpdir(), 'ad-library-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    return folder;
  })
  .extend('database', ({ folder }) => join(folder, 'ad-library.db'));
