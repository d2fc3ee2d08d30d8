import { homedir, tmpdir } from 'node:os';
import { elapsed, openApp, toolNames, version } from '../app.ts';
import { findMissingSettings, findUnknownVariables, readConfig, SettingsError } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import { maskPrefixedKeys } from '../logging/key-masking.ts';
import { createLog, escapeControlCharacters, logCalls } from '../logging/log.ts';
import { serveStdio } from '../transports/stdio.ts';
import type { CallJob } from './call.ts';
import type { Job } from './parse.ts';

/** How long to wait for running calls after a stop request, in milliseconds. */
const drainMs = 10_000;
/** The same over stdio. Hosts kill a process that does not end soon after a stop request. */
const stdioDrainMs = 2000;

/** The most bytes of log lines that wait for a reader. Further lines are dropped. */
const maxUnreadLogBytes = 1024 * 1024;

/** Two SIGINTs within this time count as one, because npm repeats the signal that the terminal has already sent. */
const sameInterruptMs = 500;

// A reader that closes the pipe, as in `--help | head`, is not a failure. Over stdio, it ends the session.
process.stdout.on('error', () => {});
const say = (line: string): void => {
  const { stderr } = process;
  // The server continues even if the reader of its log closes the pipe.
  if (stderr.listenerCount('error') === 0) stderr.on('error', () => {});
  if (stderr.writableLength < maxUnreadLogBytes) stderr.write(escapeControlCharacters(line));
};

/** Whether messages outside the log are JSON, too. Errors of the command line come before the settings are read. */
let isJsonLog = process.env.AD_LIBRARY_LOG_FORMAT === 'json';

/** Writes a message about the start or the end of the process, whatever the log level. */
function announce(level: 'error' | 'warn' | 'info', message: string): void {
  if (isJsonLog) createLog('debug', say, { format: 'json', now: Date.now })[level](message);
  else say(maskPrefixedKeys(`ad-library-mcp: ${message.replaceAll('\n', '\n  ')}\n`));
}

process.exitCode = await readJob(process.argv.slice(2))
  .then((job) => ('exit' in job ? job.exit : run(job)))
  .catch(reportError);

/** Parses the command line. The parser is only loaded if there are arguments, because most hosts pass none. */
async function readJob(argv: string[]): Promise<Job | { exit: number }> {
  if (argv.length === 0) return { name: 'stdio', flags: {}, words: [], options: {} };
  const { readCommand } = await import('./parse.ts');
  return readCommand(argv, version);
}

async function run(job: Job): Promise<number> {
  if (job.flags.logFormat === 'json') isJsonLog = true;
  for (const problem of findUnknownVariables(process.env)) announce('warn', problem);
  const readSettings = () => readConfig(process.env, job.flags, { tools: toolNames, command: job.name });
  if (job.name === 'stdio') return serveOverStdio(readSettings);
  const config = readSettings();
  if (job.name === 'call') return callTool(job, config);
  if (job.name === 'http') return serveOverHttp(config);
  const print = (text: string) => process.stdout.write(escapeControlCharacters(text));
  if (job.name === 'files clear') return (await import('./files.ts')).clearFiles(config, print);
  const { runLibrary } = await import('./library.ts');
  return runLibrary(job, {
    config,
    log: createLog(config.logLevel, say, { format: config.logFormat, now: Date.now }),
    now: Date.now,
    stdin: process.stdin,
    print,
    say,
    isTerminal: process.stderr.isTTY === true,
    stopRequested,
    drainDeadline: drainMs,
  });
}

/**
 * Reads the settings for a server over stdio. Desktop hosts hardly show why a process ended, so invalid variables still
 * start a server, and its results name the problems.
 */
function readForHost(readSettings: () => Config): { config: Config; problems: readonly string[] } {
  try {
    return { config: readSettings(), problems: [] };
  } catch (error) {
    if (!(error instanceof SettingsError) || !error.config || process.stdin.isTTY) throw error;
    reportError(error);
    return { config: { ...error.config, demo: false }, problems: error.problems };
  }
}

async function serveOverStdio(readSettings: () => Config): Promise<number> {
  const { config, problems } = readForHost(readSettings);
  const log = createLog(config.logLevel, say, { format: config.logFormat, now: Date.now });
  const exportTarget = { home: findHomeFolder(), temporary: tmpdir() };
  const app = await openApp({ config, problems, log, now: Date.now, elapsed, random: Math.random, exportTarget });
  const { stdin, stdout } = process;
  const missing = problems.length > 0 ? [] : findMissingSettings(config);
  if (missing.length > 0)
    announce(
      'warn',
      `calls will fail until you set ${missing.join(' and ')}; to try the server without them, use --demo`,
    );
  if (stdin.isTTY)
    announce('info', 'serving MCP over stdio. It is meant to be started by a host such as Claude Desktop; see --help.');
  void import('../storage/exports.ts')
    .then(({ removeOldExports }) => removeOldExports(exportTarget.temporary, Date.now()))
    .catch(() => {});
  const { catalog, credentials } = app;
  await serveStdio({
    catalog,
    credentials,
    log,
    now: elapsed,
    onCall: logCalls(log),
    stdin,
    stdout,
    stopRequested: stopRequested(),
    drainMs: stdioDrainMs,
    onEnd: app.drain,
  });
  await app.close(stdioDrainMs);
  // Open handles would keep the process alive, and nobody needs them any more.
  process.exit(problems.length > 0 ? 2 : 0);
}

/** Returns the home folder of the user, or undefined if the system has no entry for the user. */
function findHomeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

async function callTool(job: CallJob, config: Config): Promise<number> {
  const { callOnce } = await import('./call.ts');
  const { stdin, stdout, stderr } = process;
  let progress = '';
  const code = await callOnce(job, {
    config,
    log: createLog(config.logLevel, say, { format: config.logFormat, now: Date.now }),
    stdin,
    folder: process.cwd(),
    print: (text) => {
      if (progress !== '') say('\n');
      return new Promise((resolve) => stdout.write(text, () => resolve()));
    },
    say,
    stopRequested: stopRequested(),
    drainMs,
    ...(stderr.isTTY && {
      onProgress: (message) => {
        // The message is one line. The padding clears the rest of the previous message.
        say(`\r${message.padEnd(progress.length)}`);
        progress = message;
      },
    }),
  }).catch(reportError);
  await new Promise<void>((resolve) => stderr.write('', () => resolve()));
  // Standard input may still be open, which would keep the process alive.
  process.exit(code);
}

async function serveOverHttp(config: Config): Promise<number> {
  const { serveHttp } = await import('./serve.ts');
  // Signals are handled before the server says that it listens, because a reader of that line may stop it immediately.
  const stopped = stopRequested();
  const server = await serveHttp(config, say);
  say(`ad-library-mcp: listening on ${server.boundUrl}/mcp\n`);
  await stopped;
  await server.close(drainMs);
  return 0;
}

/** Reports an error without stack and secrets. Returns the exit code. */
function reportError(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems) announce('error', problem);
    return 2;
  }
  announce('error', formatReason(error as ListenError));
  return 1;
}

type ListenError = NodeJS.ErrnoException & { address?: string; port?: number };

function formatReason({ code, message, address, port }: ListenError): string {
  return code === 'EADDRINUSE' ? `port ${port} of ${address} is in use: choose another one with --port` : message;
}

/**
 * Resolves on the first SIGINT or SIGTERM. A later SIGTERM changes nothing, because supervisors repeat the signal and can
 * send SIGKILL. A later SIGINT ends the process immediately, because a person who presses Ctrl-C again does not want to
 * wait.
 */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    let firstSignalAt: number | undefined;
    process.on('SIGTERM', () => {
      firstSignalAt ??= performance.now();
      resolve();
    });
    process.on('SIGINT', () => {
      firstSignalAt ??= performance.now();
      if (performance.now() - firstSignalAt > sameInterruptMs) process.exit(130);
      resolve();
    });
  });
}
