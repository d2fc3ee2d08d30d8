#!/usr/bin/env node
import module from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Job } from './cli/parse.ts';
import type { Config } from './config/settings.ts';
import { logCalls } from './log/call-event.ts';
import { createLog, type Log, masked } from './log/log.ts';
import { version } from './version.ts';

/** How long answers in flight may take when the process is asked to end, in milliseconds. */
const drainDeadline = 10_000;
/** The same over stdio: hosts kill a process that does not end soon after its input did. */
const stdioDrain = 2000;

/** Bytes of the log that nobody has read; past that, lines are dropped. */
const maxUnreadLog = 1024 * 1024;

// Whoever reads the log may leave, and the server goes on.
process.stderr.on('error', () => {});
const say = (line: string): void => {
  if (process.stderr.writableLength < maxUnreadLog) process.stderr.write(line);
};

keepCompiledCode();
// Only now: what is loaded before is compiled anew at every start.
const [{ openApp, toolNames }, { readConfig, SettingsError }] = await Promise.all([
  import('./app.ts'),
  import('./config/read-config.ts'),
]);

const job = await readJob(process.argv.slice(2));
process.exitCode = await ('exit' in job ? job.exit : run(job).catch(explain));

/**
 * Keeps compiled code for the next start where Node can (22.1 and later), beside the program and not in a folder that
 * other users of the machine can write to. Where it cannot be written, nothing is kept.
 */
function keepCompiledCode(): void {
  const { enableCompileCache } = module as { enableCompileCache?(folder: string): unknown };
  enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/ad-library-mcp', import.meta.url)));
}

/** A host starts the command without arguments most of the time, and need not wait for what reads them. */
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
  const { runLibrary } = await import('./cli/library.ts');
  const print = (text: string) => process.stdout.write(text);
  const watched = process.stderr.isTTY === true;
  return runLibrary(job, {
    config,
    log,
    now: Date.now,
    stdin: process.stdin,
    print,
    say,
    watched,
    asked,
    drainDeadline,
  });
}

async function stdio(config: Config, log: Log): Promise<number> {
  const app = await openApp({ config, log, now: Date.now, random: Math.random });
  const { serveStdio } = await import('./serve/stdio/serve-stdio.ts');
  const { stdin, stdout } = process;
  if (stdin.isTTY)
    say('ad-library-mcp: speaking MCP over stdio; a host such as Claude Desktop starts this. --help says more.\n');
  const { catalog, credentials } = app;
  const streams = { stdin, stdout, asked: asked(), drainMs: stdioDrain };
  await serveStdio({ catalog, credentials, log, now: Date.now, onCall: logCalls(log), ...streams });
  await app.close(stdioDrain);
  // Whatever is still open has nobody left to answer.
  process.exit(0);
}

async function http(config: Config): Promise<number> {
  const { serveHttp } = await import('./cli/serve.ts');
  const server = await serveHttp(config, say);
  say(`ad-library-mcp: listening on ${server.address}/mcp\n`);
  await asked();
  await server.close(drainDeadline);
  return 0;
}

/** Resolves when the process is asked to end. */
function asked(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
}

/** What went wrong before anything was served, for a person: no stack, no secret. */
function explain(error: unknown): number {
  if (error instanceof SettingsError) {
    for (const problem of error.problems) say(masked(`ad-library-mcp: ${problem}\n`));
    return 2;
  }
  const { code, message } = error as NodeJS.ErrnoException;
  const inUse = code === 'EADDRINUSE' ? ' Another program listens there: choose another with --port.' : '';
  say(masked(`ad-library-mcp: ${message}${inUse}\n`));
  return 1;
}
