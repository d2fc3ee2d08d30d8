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
const drainDeadline = 10_000;
/** The same over stdio, where hosts kill a process that does not end soon after a stop request. */
const stdioDrain = 2000;

/** Bytes of unread log; beyond them, lines are dropped. */
const maxUnreadLog = 1024 * 1024;

/** Two SIGINTs within this time, in milliseconds, are one: npm passes on what the terminal has sent already. */
const sameInterrupt = 500;

// A reader who has gone, as in `--help | head`, is no failure; over stdio, that ends the session.
process.stdout.on('error', () => {});
const say = (line: string): void => {
  const { stderr } = process;
  // The server continues even if the reader of its log has gone.
  if (stderr.listenerCount('error') === 0) stderr.on('error', () => {});
  if (stderr.writableLength < maxUnreadLog) stderr.write(escapeControlCharacters(line));
};

process.exitCode = await readJob(process.argv.slice(2))
  .then((job) => ('exit' in job ? job.exit : run(job)))
  .catch(explain);

/** Hosts mostly start the command without arguments, and should not wait for the parser. */
async function readJob(argv: string[]): Promise<Job | { exit: number }> {
  if (argv.length === 0) return { name: 'stdio', flags: {}, words: [], options: {} };
  const { readCommand } = await import('./parse.ts');
  return readCommand(argv, version);
}

async function run(job: Job): Promise<number> {
  for (const problem of findUnknownVariables(process.env)) say(`ad-library-mcp: ${problem}\n`);
  const read = () => readConfig(process.env, job.flags, { tools: toolNames, command: job.name });
  if (job.name === 'stdio') return stdio(read);
  const config = read();
  if (job.name === 'call') return call(job, config);
  if (job.name === 'http') return serveCallers(config);
  const print = (text: string) => process.stdout.write(escapeControlCharacters(text));
  if (job.name === 'files clear') return (await import('./files.ts')).clearFiles(config, print);
  const { runLibrary } = await import('./library.ts');
  return runLibrary(job, {
    config,
    log: createLog(config.logLevel, say),
    now: Date.now,
    stdin: process.stdin,
    print,
    say,
    isTerminal: process.stderr.isTTY === true,
    stopRequested,
    drainDeadline,
  });
}

/** A desktop host hardly shows why a process ended: wrong variables still start a server, whose results name them. */
function readForHost(read: () => Config): { config: Config; problems: readonly string[] } {
  try {
    return { config: read(), problems: [] };
  } catch (error) {
    if (!(error instanceof SettingsError) || !error.config || process.stdin.isTTY) throw error;
    explain(error);
    return { config: { ...error.config, demo: false }, problems: error.problems };
  }
}

async function stdio(read: () => Config): Promise<number> {
  const { config, problems } = readForHost(read);
  const log = createLog(config.logLevel, say);
  const exportTarget = { home: homeFolder(), temporary: tmpdir() };
  const app = await openApp({ config, problems, log, now: Date.now, elapsed, random: Math.random, exportTarget });
  const { stdin, stdout } = process;
  const missing = problems.length > 0 ? [] : findMissingSettings(config);
  if (missing.length > 0)
    say(`ad-library-mcp: calls will fail until you set ${missing.join(' and ')}; to try it without, use --demo\n`);
  if (stdin.isTTY)
    say(
      'ad-library-mcp: serving MCP over stdio. It is meant to be started by a host such as Claude Desktop; see --help.\n',
    );
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
    drainMs: stdioDrain,
    onEnd: app.drain,
  });
  await app.close(stdioDrain);
  // Nobody reads what is still open.
  process.exit(problems.length > 0 ? 2 : 0);
}

/** A user without an entry has none. */
function homeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

async function call(job: CallJob, config: Config): Promise<number> {
  const { callOnce } = await import('./call.ts');
  const { stdin, stdout, stderr } = process;
  let progress = '';
  const code = await callOnce(job, {
    config,
    log: createLog(config.logLevel, say),
    stdin,
    folder: process.cwd(),
    print: (text) => {
      if (progress !== '') say('\n');
      return new Promise((resolve) => stdout.write(text, () => resolve()));
    },
    say,
    stopRequested: stopRequested(),
    drainMs: drainDeadline,
    ...(stderr.isTTY && {
      onProgress: (message) => {
        // The text is one line, and clears the rest of the line before it.
        say(`\r${message.padEnd(progress.length)}`);
        progress = message;
      },
    }),
  }).catch(explain);
  await new Promise<void>((resolve) => stderr.write('', () => resolve()));
  // Standard input may still be open, and nothing else waits for it.
  process.exit(code);
}

async function serveCallers(config: Config): Promise<number> {
  const { serveHttp } = await import('./serve.ts');
  // Signals are handled before the line that it listens is written: a reader of that line may stop it at once.
  const stopped = stopRequested();
  const server = await serveHttp(config, say);
  say(`ad-library-mcp: listening on ${server.boundUrl}/mcp\n`);
  await stopped;
  await server.close(drainDeadline);
  return 0;
}

/** Reports to the user why nothing could be served: no stack, no secret. */
function explain(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems)
      say(maskPrefixedKeys(`ad-library-mcp: ${problem.replaceAll('\n', '\n  ')}\n`));
    return 2;
  }
  say(maskPrefixedKeys(`ad-library-mcp: ${reasonOf(error as ListenError)}\n`));
  return 1;
}

type ListenError = NodeJS.ErrnoException & { address?: string; port?: number };

function reasonOf({ code, message, address, port }: ListenError): string {
  return code === 'EADDRINUSE' ? `port ${port} of ${address} is in use: choose another one with --port` : message;
}

/**
 * Resolves on SIGINT or SIGTERM. After that a SIGTERM changes nothing, because supervisors repeat it and have SIGKILL
 * to insist. A SIGINT ends the process at once: a person who presses Ctrl-C again has decided not to wait.
 */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    let since: number | undefined;
    process.on('SIGTERM', () => {
      since ??= performance.now();
      resolve();
    });
    process.on('SIGINT', () => {
      since ??= performance.now();
      if (performance.now() - since > sameInterrupt) process.exit(130);
      resolve();
    });
  });
}
