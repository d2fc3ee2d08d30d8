import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { LineSpool } from '../../src/library/import/spool.ts';

test.skipIf(process.platform === 'win32')(
  'the temporary file of a long import has no name, so it disappears if a signal ends the process',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'spool-test-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    vi.stubEnv('TMPDIR', folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const spool = new LineSpool();
    onTestFinished(() => spool.close());
    const lines = Array.from({ length: 10 }, (_, index) => `${index}${'😀'.repeat(500_000)}`);
    for (const line of lines) await spool.writeLine(line);
    expect(await readdir(folder)).toEqual([]);
    const storedLines: string[] = [];
    for await (const batch of spool.readLines()) storedLines.push(...batch.filter((line) => line !== ''));
    expect(storedLines).toEqual(lines);
  },
);

test.skipIf(process.platform === 'win32')(
  'the error about a temporary file that cannot be written names the temporary folder and the process that writes it',
  async () => {
    vi.stubEnv('TMPDIR', '/missing-folder');
    onTestFinished(() => void vi.unstubAllEnvs());
    const spool = new LineSpool();
    await expect(spool.writeLine('x'.repeat(9_000_000))).rejects.toThrow(
      /^The temporary folder \/missing-folder cannot be written \(ENOENT: .*\)\. .* for the process that stores the records, which is library serve/,
    );
    await spool.close();
  },
);
