import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'vitest';

/** Long enough for a machine with much else to do. What takes so long hangs. */
const timeout = 300_000;

/** In a process of its own: what backtracks without end cannot be stopped from inside. */
test.concurrent.for(['patterns', 'functions', 'tools'])(
  'no %s take more than linear time, whatever the text',
  // A busy machine makes a time too long once, and a pattern that is not linear each time.
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
          // What was in progress when the time was up.
          else resolve({ problems: stdout, ...(error && { hung: stderr.trim().split('\n').at(-1) ?? '' }) });
        },
      ),
    );
    expect({ problems, hung }).toEqual({ problems: '', hung: undefined });
  },
);
