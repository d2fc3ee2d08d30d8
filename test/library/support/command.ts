import { Readable } from 'node:stream';
import { type LibraryJob, runLibrary } from '../../../src/cli/library.ts';
import { readCommand } from '../../../src/cli/parse.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { createLog } from '../../../src/logging/log.ts';
import { waitUntil } from '../../support/deadline.ts';
import { createGate } from '../../support/gate.ts';

/** Begins what follows `library` on a command line, in this process; `end` stands for SIGTERM. */
function beginLibrary(words: string[], { input = '' } = {}) {
  const written = { out: '', err: '' };
  const ending = createGate();
  const job = readCommand(['library', ...words], '1.2.3') as LibraryJob;
  const writeTo = (stream: 'out' | 'err') => (text: string) => {
    written[stream] += text;
  };
  const say = writeTo('err');
  const config = readConfig({}, job.flags, { command: job.name });
  const ended = runLibrary(job, {
    config,
    log: createLog(config.logLevel, say),
    now: () => Date.UTC(2026, 2, 15),
    stdin: Readable.from([Buffer.from(input)]),
    print: writeTo('out'),
    say,
    isTerminal: false,
    stopRequested: () => ending.opened,
    drainDeadline: 200,
  });
  return { written, ended, end: ending.open };
}

/** The same to its end. */
export async function runLibraryCommand(words: string[], surroundings?: { input: string }) {
  const { written, ended } = beginLibrary(words, surroundings);
  return { code: await ended, ...written };
}

/** Serves a database on a free port. Closing it returns the exit code. */
export async function serveDatabase(database: string, words: string[] = []) {
  const { written, ended, end } = beginLibrary(['serve', '--port', '0', '--database', database, ...words]);
  await Promise.race([waitUntil(() => written.err.includes('library on')), ended]);
  const [origin = ''] = /http:\S+/.exec(written.err) ?? [];
  const close = () => {
    end();
    return ended;
  };
  return { origin, close, readStderr: () => written.err };
}
