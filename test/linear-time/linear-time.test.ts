import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

/** The time limit of a subject, in milliseconds. A subject that needs longer on a busy machine hangs. */
const timeout = 300_000;

/** Each subject runs in its own process, because endless backtracking cannot be stopped from inside. */
test.concurrent.for(['patterns', 'functions', 'tools'])(
  'all %s take at most linear time for hostile texts',
  // On a busy machine, a measurement can fail by chance. A pattern that is not linear fails in every attempt.
  { timeout: timeout + 10_000, retry: 2 },
  async (subject, { expect }) => {
    const path = fileURLToPath(new URL('timed.ts', import.meta.url));
    const { problems, hung } = await new Promise<{ problems: string; hung?: string }>((resolve, reject) =>
      execFile(
        'node',
        ['--import', 'tsx', path, subject],
        { timeout, killSignal: 'SIGKILL' },
        (error, stdout, stderr) => {
          if (error && !error.killed) reject(error);
          // The last line on standard error names what was running at the time limit.
          else resolve({ problems: stdout, ...(error && { hung: stderr.trim().split('\n').at(-1) ?? '' }) });
        },
      ),
    );
    expect({ problems, hung }).toEqual({ problems: '', hung: undefined });
  },
);
