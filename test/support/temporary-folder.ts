import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * A new folder, removed after the last test of the file. Where much is written and synced it is better in memory, if the
 * machine has a folder there.
 */
export function createTemporaryFolder({ inMemory = false } = {}): string {
  const folder = mkdtempSync(join(inMemory && existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ad-library-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Names of folders that are not there yet, one after the other. */
export function createFolderSequence(): () => string {
  const root = createTemporaryFolder();
  let count = 0;
  return () => join(root, `${++count}`);
}
