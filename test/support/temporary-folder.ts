import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/**
 * Creates a folder that is removed after the last test of the file.
 * @param inMemory uses `/dev/shm` if available, for tests that write and sync often
 */
export function createTemporaryFolder({ inMemory = false } = {}): string {
  const folder = mkdtempSync(join(inMemory && existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'ad-library-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns a function that returns the path of a new, not yet existing folder on each call. */
export function createFolderSequence(): () => string {
  const root = createTemporaryFolder();
  let count = 0;
  return () => join(root, `${++count}`);
}
