import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

/** Long enough for a machine with much else to do. What takes so long hangs. */
const timeout = 300_000;

interface Ended {
  problems: string[];
  /** What was in progress when the time was up. */
  hung: string | undefined;
}

/** Runs a file of this folder in a process of its own: one that backtracks without end cannot be stopped from inside. */
const run = (file: string) =>
  new Promise<Ended>((resolve, reject) => {
    const path = fileURLToPath(new URL(file, import.meta.url));
    const args = ['--import', 'tsx', path];
    execFile(process.execPath, args, { timeout, killSignal: 'SIGKILL' }, (error, stdout, stderr) => {
      if (error && !error.killed) reject(error);
      else
        resolve({
          problems: stdout.trim().split('\n').filter(Boolean),
          hung: error ? stderr.trim().split('\n').at(-1) : undefined,
        });
    });
  });

test.concurrent('no pattern takes more than linear time, whatever the text', { timeout: timeout + 10_000 }, async ({
  expect,
}) => {
  expect(await run('patterns.ts')).toEqual({ problems: [], hung: undefined });
});

test.concurrent('no function that takes a text takes more than linear time', { timeout: timeout + 10_000 }, async ({
  expect,
}) => {
  expect(await run('functions.ts')).toEqual({ problems: [], hung: undefined });
});
