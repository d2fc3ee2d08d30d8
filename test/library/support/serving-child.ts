import { Readable } from 'node:stream';
import { type LibraryJob, runLibrary } from '../../../src/cli/library.ts';
import { readCommand } from '../../../src/cli/parse.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { createLog } from '../../../src/log/log.ts';

/** Runs `library serve` with the lock's timing of the test. */
const { database, timing } = JSON.parse(process.env.CHILD_ARGS ?? '{}');
const job = readCommand(['library', 'serve', '--port', '0', '--database', database], '1.2.3') as LibraryJob;
const say = (text: string) => {
  process.stderr.write(text);
  const [url] = /http:\S+/.exec(text) ?? [];
  if (text.includes('library on')) process.stdout.write(`${JSON.stringify({ url })}\n`);
};
process.exitCode = await runLibrary(job, {
  config: readConfig({}, job.flags, { tools: [], listens: true }),
  log: createLog('error', say),
  now: Date.now,
  stdin: Readable.from([]),
  print: say,
  say,
  isTerminal: false,
  stopRequested: () => new Promise((resolve) => process.once('SIGTERM', () => resolve())),
  drainDeadline: 1000,
  timing,
}).catch((error: Error) => {
  say(error.message);
  return 1;
});
