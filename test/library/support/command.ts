import { Readable } from 'node:stream';
import { type ParsedLibraryCommand, runLibrary } from '../../../src/cli/library.ts';
import { parseCommandLine } from '../../../src/cli/parse.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { createLogger } from '../../../src/logging/log.ts';
import { waitUntil } from '../../support/deadline.ts';
import { createGate } from '../../support/gate.ts';

/**
 * Starts a `library` command in this process.
 * @param args the arguments after `library`
 * @returns `end` stops the command like SIGTERM, and `exitCode` resolves when it has ended
 */
function startLibraryCommand(args: string[], { input = '' } = {}) {
  const output = { out: '', err: '' };
  const stopRequest = createGate();
  const writeTo = (stream: 'out' | 'err') => (text: string) => {
    output[stream] += text;
  };
  const writeStderr = writeTo('err');
  const job = parseCommandLine(['library', ...args], '1.2.3', writeStderr) as ParsedLibraryCommand;
  const config = readConfig({}, job.flags, { commandName: job.name });
  const exitCode = runLibrary(job, {
    config,
    log: createLogger(config.logLevel, writeStderr),
    now: () => Date.UTC(2026, 2, 15),
    stdin: Readable.from([Buffer.from(input)]),
    writeToStdout: writeTo('out'),
    writeToStderr: writeStderr,
    printStatus: (_level, message) => writeStderr(`ad-library-mcp: ${message}\n`),
    printReport: (_level, text) => writeStderr(`${text}\n`),
    canShowProgress: false,
    waitForStopSignal: () => stopRequest.opened,
    drainMs: 200,
  });
  return { output, exitCode, end: stopRequest.open };
}

/** Runs a `library` command to its end. Returns its exit code, standard output and standard error. */
export async function runLibraryCommand(args: string[], options?: { input: string }) {
  const { output, exitCode } = startLibraryCommand(args, options);
  return { code: await exitCode, ...output };
}

/** Serves a database on a free port. `close` stops the command and resolves with its exit code. */
export const serveDatabase = (database: string, args: string[] = []) =>
  startServeCommand(['--database', database, ...args]);

/** Starts `library serve` on a free port. `close` stops the command and resolves with its exit code. */
export async function startServeCommand(args: string[]) {
  const { output, exitCode, end } = startLibraryCommand(['serve', '--port', '0', ...args]);
  await Promise.race([waitUntil(() => output.err.includes('library on')), exitCode]);
  const [origin = ''] = /http:\S+/.exec(output.err) ?? [];
  const close = () => {
    end();
    return exitCode;
  };
  return { origin, close, readStderr: () => output.err };
}
