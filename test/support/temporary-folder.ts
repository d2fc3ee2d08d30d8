import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A new folder, removed after the last test of the file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ad-library-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
