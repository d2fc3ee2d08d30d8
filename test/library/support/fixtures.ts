import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, test } from 'vitest';
import { serveLibrary } from './served-library.ts';

/** Tests with a new library over HTTP for each. */
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
export const libraryTest = test.extend('served', async ({}, { onCleanup }) => {
  const served = await serveLibrary();
  onCleanup(served.close);
  return served;
});

/** Tests with the path of a database in a new folder, which is deleted after all that a test has to undo itself. */
export const databaseTest = test
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('folder', async ({}) => {
    const folder = await mkdtemp(join(tmpdir(), 'ad-library-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    return folder;
  })
  .extend('database', ({ folder }) => join(folder, 'ad-library.db'));
