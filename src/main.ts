#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Job } from './cli/parse.ts';
import type { Config } from './config/settings.ts';
import { createLog, type Log, logCalls, masked } from './log/log.ts';
import { version } from './version.ts';

/** How long to wait for answers in flight at shutdown, in milliseconds. */
const drainDeadline = 10_000;
/** The same over stdio, where hosts kill a process that does not end soon after its input. */
const stdioDrain = 2000;

/** Bytes of unread log; beyond them, lines are dropped. */
const maxUnreadLog = 1024 * 1024;

// The server continues even if the reader of its log has gone.
process.stderr.on('error', () => {});
// The same for its output, as in `--help | head`; over stdio, that ends the session.
process.stdout.on('error', () => {});
const say = (line: string): void => {
  if (process.stderr.writableLength < maxUnreadLog) process.stderr.write(line);
};

keepCompiledCode();
// Imported after that, because code loaded before it is compiled again at every start.
const [{ openApp, toolNames }, { readConfig, SettingsError }] = await Promise.all([
  import('./app.ts'),
  import('./config/read-config.ts'),
]);

const job = await readJob(process.argv.slice(2));
process.exitCode = await ('exit' in job ? job.exit : run(job).catch(explain));

/**
 * Keeps compiled code for the next start if Node can (22.1 and later): beside the program, because other users could
 * write to a temporary folder. If it cannot be written, nothing is kept.
 */
function keepCompiledCode(): void {
  const { enableCompileCache } = module as { enableCompileCache?(folder: string): unknown };
  enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/ad-library-mcp', import.meta.url)));
}

/** Hosts mostly start the command without arguments, and should not wait for the parser. */
async function readJob(argv: string[]): Promise<Job | { exit: number }> {
  if (argv.length === 0) return { name: 'stdio', flags: {} };
  const { readCommand } = await import('./cli/parse.ts');
  return readCommand(argv, version);
}

async function run(job: Job): Promise<number> {
  const listens = job.name === 'http' || job.name === 'library serve';
  const config = readConfig(process.env, job.flags, { tools: toolNames, listens });
  const log = createLog(config.logLevel, say);
  if (job.name === 'stdio') return stdio(config, log);
  if (job.name === 'http') return http(config);
  const print = (text: string) => process.stdout.write(text);
  if (job.name === 'files clear') return (await import('./cli/files.ts')).clearFiles(config, print);
  const { runLibrary } = await import('./cli/library.ts');
  const isTerminal = process.stderr.isTTY === true;
  return runLibrary(job, {
    config,
    log,
    now: Date.now,
    stdin: process.stdin,
    print,
    say,
    isTerminal,
    stopRequested,
    drainDeadline,
  });
}

async function stdio(config: Config, log: Log): Promise<number> {
  const app = await openApp({ config, log, now: Date.now, random: Math.random });
  const { serveStdio } = await import('./serve/stdio/serve-stdio.ts');
  const { stdin, stdout } = process;
  if (stdin.isTTY)
    say(
      'ad-library-mcp: serving MCP over stdio. It is meant to be started by a host such as Claude Desktop; see --help.\n',
    );
  const { catalog, credentials } = app;
  const streams = { stdin, stdout, stopRequested: stopRequested(), drainMs: stdioDrain, onEnd: app.drain };
  await serveStdio({ catalog, credentials, log, now: Date.now, onCall: logCalls(log), ...streams });
  await app.close(stdioDrain);
  // Whatever is still open has no reader any more.
  process.exit(0);
}

async function http(config: Config): Promise<number> {
  const { serveHttp } = await import('./cli/serve.ts');
  const server = await serveHttp(config, say);
  say(`ad-library-mcp: listening on ${server.address}/mcp\n`);
  await stopRequested();
  await server.close(drainDeadline);
  return 0;
}

/** Resolves on SIGINT or SIGTERM. */
function stopRequested(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}

/** Reports to the user why nothing could be served: no stack, no secret. */
function explain(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems) say(masked(`ad-library-mcp: ${problem}\n`));
    return 2;
  }
  const { code, message } = error as NodeJS.ErrnoException;
  const inUse = code === 'EADDRINUSE' ? ' Another program uses this port: choose another one with --port.' : '';
  say(masked(`ad-library-mcp: ${message}${inUse}\n`));
  return 1;
}
