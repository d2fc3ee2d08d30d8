import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

/** The time limit of each process, in milliseconds. Even a busy machine needs less, so a slower process hangs. */
const timeout = 300_000;

/** Each subject runs in a separate process, because endless backtracking cannot be stopped from the same thread. */
test.concurrent.for(['patterns', 'functions', 'tools'])(
  'all %s in the source code process hostile texts in linear time',
  { timeout: timeout + 10_000 },
  async (subject, { expect }) => {
    const path = fileURLToPath(new URL('timed.ts', import.meta.url));
    const { problems, hung } = await new Promise<{ problems: string; hung?: string }>((resolve, reject) =>
      execFile(
        'node',
        ['--import', 'tsx', path, subject],
        { timeout, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => {
          if (error && !error.killed) reject(error);
          // The last line on standard error names the code that was running at the time limit.
          else resolve({ problems: stdout, ...(error && { hung: stderr.trim().split('\n').at(-1) ?? '' }) });
        },
      ),
    );
    expect({ problems, hung }).toEqual({ problems: '', hung: undefined });
  },
);
