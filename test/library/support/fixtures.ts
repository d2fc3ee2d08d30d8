import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { serveLibrary } from './served-library.ts';

/** Tests with a new library over HTTP for each. */
// biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
export const libraryTest = test.extend('served', async ({}, { onCleanup }) => {
  const served = await serveLibrary();
  onCleanup(served.close);
  return served;
});

/** What a test has to undo: run after it, last first, before its folder is deleted. */
export type Undo = (() => unknown)[];

/** Tests with the path of a database in a new folder. */
export const databaseTest = test
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
  .extend('folder', async ({}, { onCleanup }) => {
    const folder = await mkdtemp(join(tmpdir(), 'ad-library-'));
    onCleanup(() => rm(folder, { recursive: true }));
    return folder;
  })
  .extend('database', ({ folder }) => join(folder, 'ad-library.db'))
  .extend('undo', ({ folder: _ }, { onCleanup }) => {
    const undo: Undo = [];
    onCleanup(async () => {
      for (const step of undo.splice(0).reverse()) await step();
    });
    return undo;
  });
