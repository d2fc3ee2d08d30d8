import { homedir, tmpdir } from 'node:os';
import { monotonicNow, openApp, toolNames, version } from '../app.ts';
import {
  findMissingSettings,
  findUnknownVariables,
  readConfig,
  readLogFormat,
  SettingsError,
} from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import { maskPrefixedKeys } from '../logging/key-masking.ts';
import { createCallLogger, createLogger, escapeControlCharacters, type PrintStatus } from '../logging/log.ts';
import { serveStdio } from '../transports/stdio.ts';
import type { ParsedCallCommand } from './call.ts';
import type { ParsedCommand } from './parse.ts';

/** How long a stopped process waits for running calls, in milliseconds. */
const drainMs = 10_000;
/**
 * How long a stopped server over stdio waits for running calls, in milliseconds. This time is shorter than `drainMs`,
 * because hosts kill a process that does not exit soon after they have asked it to stop.
 */
const stdioDrainMs = 2000;

/**
 * The maximum number of bytes of log output that wait for a slow reader. Further lines are dropped until the reader has
 * caught up.
 */
const maxUnreadLogBytes = 1024 * 1024;

/**
 * The time within which two SIGINT signals count as one, in milliseconds. If npm has started this process, the terminal
 * sends the signal to both, and npm sends the signal to this process a second time.
 */
const duplicateInterruptMs = 500;

/** The error codes of a write to a pipe or a socket whose reader has closed it. Windows reports `EOF`. */
const closedReaderCodes = ['EPIPE', 'ECONNRESET', 'EOF'];

process.stdout.on('error', ({ code = '', message }: NodeJS.ErrnoException) => {
  // A reader such as `head` may close standard output early, so ignore the resulting error. A server over stdio notices
  // the closed pipe and ends the session.
  if (closedReaderCodes.includes(code)) return;
  printStatus('error', `standard output cannot be written: ${message}`);
  // Set the exit code at the end, because the command sets it to 0 if everything but the output has succeeded.
  process.once('exit', () => {
    process.exitCode = 1;
  });
});
function writeToStderr(line: string): void {
  const { stderr } = process;
  // Handle the error of a closed pipe, so that the server keeps running after the reader of the log has ended.
  if (stderr.listenerCount('error') === 0) stderr.on('error', () => {});
  if (stderr.writableLength < maxUnreadLogBytes) stderr.write(escapeControlCharacters(line));
}

/**
 * True if the user has chosen JSON logs. Status messages, which are not part of the log, are then JSON as well. This
 * setting is read first, because status messages may be printed before the other settings are read.
 */
const isJsonLog = readLogFormat(process.env, process.argv.slice(2)) === 'json';
const jsonLog = createLogger('debug', writeToStderr, { format: 'json', now: Date.now });

/** Prints a message about the start or the end of the process, regardless of the log level. */
const printStatus: PrintStatus = (level, message) => {
  if (isJsonLog) jsonLog[level](message);
  else writeToStderr(maskPrefixedKeys(`ad-library-mcp: ${message.replaceAll('\n', '\n  ')}\n`));
};

/**
 * Prints a part of a command's report, e.g. the counts of an import. A report has many lines, so they do not begin with
 * the name of the program.
 */
const printReport: PrintStatus = (level, text) => {
  if (isJsonLog) jsonLog[level](text);
  else writeToStderr(`${text}\n`);
};

/**
 * True if the terminal can show progress in a line that is overwritten. JSON logs rule this out, because such a line
 * would not be valid JSON.
 */
const canShowProgress = process.stderr.isTTY === true && !isJsonLog;

/** Prints a problem with the command line, followed by a hint on where to find help. */
function printUsageProblem(problem: string, help: string): void {
  if (isJsonLog) jsonLog.error(problem, { help });
  else writeToStderr(maskPrefixedKeys(`ad-library-mcp: ${problem}\n${help}\n`));
}

process.exitCode = await loadParserAndParse(process.argv.slice(2))
  .then((command) => ('exitCode' in command ? command.exitCode : runCommand(command)))
  .catch(reportError);

/** Loads the parser and parses the command line. Loads nothing without arguments, because most hosts pass none. */
async function loadParserAndParse(argv: string[]): Promise<ParsedCommand | { exitCode: number }> {
  if (argv.length === 0) return { name: 'stdio', flags: {}, positionals: [], options: {} };
  const { parseCommandLine } = await import('./parse.ts');
  return parseCommandLine(argv, version, printUsageProblem);
}

async function runCommand(parsedCommand: ParsedCommand): Promise<number> {
  for (const problem of findUnknownVariables(process.env)) printStatus('warn', problem);
  const readSettings = () =>
    readConfig(process.env, parsedCommand.flags, { toolNames, commandName: parsedCommand.name });
  if (parsedCommand.name === 'stdio') return serveOverStdio(readSettings);
  const config = readSettings();
  if (parsedCommand.name === 'call') return runCallCommand(parsedCommand, config);
  if (parsedCommand.name === 'http') return serveOverHttp(config);
  const writeToStdout = (text: string) => process.stdout.write(escapeControlCharacters(text));
  if (parsedCommand.name === 'files clear') return (await import('./files.ts')).clearFiles(config, writeToStdout);
  const { runLibrary } = await import('./library.ts');
  return runLibrary(parsedCommand, {
    config,
    log: createLogger(config.logLevel, writeToStderr, { format: config.logFormat, now: Date.now }),
    now: Date.now,
    stdin: process.stdin,
    writeToStdout,
    writeToStderr,
    printStatus,
    printReport,
    canShowProgress,
    waitForStopSignal,
    drainMs,
  });
}

/**
 * Reads the settings for a server over stdio. Most desktop apps do not show why a server process has exited. Therefore
 * a server with invalid environment variables starts anyway, and every tool result lists the problems.
 */
function readStdioSettings(readSettings: () => Config): { config: Config; problems: readonly string[] } {
  try {
    return { config: readSettings(), problems: [] };
  } catch (error) {
    if (!(error instanceof SettingsError) || !error.config || process.stdin.isTTY) throw error;
    reportError(error);
    return { config: { ...error.config, demo: false }, problems: error.problems };
  }
}

async function serveOverStdio(readSettings: () => Config): Promise<number> {
  const { config, problems } = readStdioSettings(readSettings);
  const log = createLogger(config.logLevel, writeToStderr, { format: config.logFormat, now: Date.now });
  const exportTarget = { homeFolder: findHomeFolder(), temporaryFolder: tmpdir() };
  const app = await openApp({ config, problems, log, now: Date.now, monotonicNow, random: Math.random, exportTarget });
  const { stdin, stdout } = process;
  const missingSettings = problems.length > 0 ? [] : findMissingSettings(config);
  if (missingSettings.length > 0)
    printStatus(
      'warn',
      `calls will fail until you set ${missingSettings.join(' and ')}; to try the server without them, use --demo`,
    );
  if (stdin.isTTY)
    printStatus(
      'info',
      'serving MCP over stdio. It is meant to be started by a host such as Claude Desktop; see --help.',
    );
  void import('../storage/exports.ts')
    .then(({ removeOldExports }) => removeOldExports(exportTarget.temporaryFolder, Date.now()))
    .catch(() => {});
  const { catalog, credentials } = app;
  await serveStdio({
    catalog,
    credentials,
    log,
    monotonicNow,
    onCall: createCallLogger(log),
    stdin,
    stdout,
    stopRequested: waitForStopSignal(),
    drainMs: stdioDrainMs,
    onEnd: app.drain,
  });
  await app.close(stdioDrainMs);
  // Exit explicitly, because open handles such as sockets would keep the process alive.
  process.exit(problems.length > 0 ? 2 : 0);
}

/**
 * Returns the user's home folder. Returns undefined if the operating system does not know the user, as in some
 * containers.
 */
function findHomeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

async function runCallCommand(parsedCommand: ParsedCallCommand, config: Config): Promise<number> {
  const { callToolAndPrintResult } = await import('./call.ts');
  const { stdin, stdout, stderr } = process;
  let lastProgressMessage = '';
  const exitCode = await callToolAndPrintResult(parsedCommand, {
    config,
    log: createLogger(config.logLevel, writeToStderr, { format: config.logFormat, now: Date.now }),
    stdin,
    exportFolder: process.cwd(),
    writeToStdout: (text) => {
      if (lastProgressMessage !== '') writeToStderr('\n');
      return new Promise((resolve) => stdout.write(text, () => resolve()));
    },
    printStatus,
    stopRequested: waitForStopSignal(),
    drainMs,
    ...(canShowProgress && {
      onProgress: (message) => {
        // Overwrite the previous message on the same line. The padding overwrites the end of the previous message if
        // that message was longer.
        writeToStderr(`\r${message.padEnd(lastProgressMessage.length)}`);
        lastProgressMessage = message;
      },
    }),
  }).catch(reportError);
  await new Promise<void>((resolve) => stderr.write('', () => resolve()));
  // Exit explicitly, because standard input may still be open and would keep the process alive.
  process.exit(exitCode);
}

async function serveOverHttp(config: Config): Promise<number> {
  const { serveHttp } = await import('./serve.ts');
  // Start handling signals before the line "listening on …" is printed, because a program that waits for this line may
  // stop the server immediately.
  const stopRequested = waitForStopSignal();
  const server = await serveHttp(config, writeToStderr);
  writeToStderr(`ad-library-mcp: listening on ${server.boundUrl}/mcp\n`);
  await stopRequested;
  await server.close(drainMs);
  return 0;
}

/** Prints an error without its stack trace and without secrets. Returns the exit code. */
function reportError(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems) printStatus('error', problem);
    return 2;
  }
  printStatus('error', formatErrorReason(error as ListenError));
  return 1;
}

type ListenError = NodeJS.ErrnoException & { address?: string; hostname?: string; port?: number };

/**
 * Describes an error. If the server cannot listen on its host and port, the text names the setting to change. If a file
 * of the program is missing, the text names the packages that contain all commands.
 */
function formatErrorReason({ code, message, address, hostname, port, syscall }: ListenError): string {
  if (code === 'EADDRINUSE') return `port ${port} of ${address} is in use: choose another one with --port`;
  if (code === 'EACCES' && syscall === 'listen')
    return `port ${port} of ${address} needs more rights: choose a port above 1023 with --port`;
  if (code === 'EADDRNOTAVAIL' && syscall === 'listen')
    return `${address} is not an address of this machine: choose another host with --host or AD_LIBRARY_HOST`;
  if (syscall === 'getaddrinfo' && hostname !== undefined)
    return `the host ${hostname} was not found: choose another one with --host or AD_LIBRARY_HOST`;
  if (code === 'ERR_MODULE_NOT_FOUND')
    return `a file of this command is missing (${message}). A desktop bundle or plugin contains only the server over stdio. For other commands, use a clone or the package file (.tgz)`;
  return message;
}

/**
 * Resolves on the first SIGINT or SIGTERM. A second SIGTERM is ignored, because supervisors repeat the signal and can
 * send SIGKILL. A second SIGINT ends the process immediately, because a user who presses Ctrl-C again does not want to
 * wait.
 */
function waitForStopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let firstSignalAt: number | undefined;
    process.on('SIGTERM', () => {
      firstSignalAt ??= performance.now();
      resolve();
    });
    process.on('SIGINT', () => {
      firstSignalAt ??= performance.now();
      if (performance.now() - firstSignalAt > duplicateInterruptMs) process.exit(130);
      resolve();
    });
  });
}
