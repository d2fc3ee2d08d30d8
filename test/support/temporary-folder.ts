import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * Creates a folder that is removed after the last test of the file.
 * @param inMemory uses a folder in memory if the machine has one, for tests that write and sync often
 */
export function createTemporaryFolder({ inMemory = false } = {}): string {
  const folder = mkdtempSync(join(inMemory && existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ad-library-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns a function whose calls return paths of folders that do not exist yet. */
export function createFolderSequence(): () => string {
  const root = createTemporaryFolder();
  let count = 0;
  return () => join(root, `${++count}`);
}
