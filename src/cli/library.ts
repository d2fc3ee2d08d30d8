import { SettingsError } from '../config/read-config.ts';
import { isLoopback } from '../config/setting-values.ts';
import type { Config } from '../config/settings.ts';
import {
  createKey,
  type DatabaseOptions,
  type ImportProgress,
  importFiles,
  importOutcome,
  importText,
  type KeyOptions,
  keysText,
  listKeys,
  progressLine,
  revokeKey,
  serveDemoLibrary,
  serveLibrary,
  storedText,
  wrongOption,
} from '../library/commands/commands.ts';
import { describedFilters, type Library } from '../library/open.ts';
import type { Log } from '../log/log.ts';
import { onlyForHosts } from '../serve/http/access.ts';
import { listen as listenOn } from '../serve/http/server.ts';
import type { Job } from './parse.ts';

export interface LibraryCommandOptions {
  config: Config;
  log: Log;
  now: () => number;
  stdin: AsyncIterable<Uint8Array>;
  /** Writes results to standard output. */
  print(text: string): void;
  /** Writes messages to standard error. */
  say(text: string): void;
  /** Whether standard error is a terminal. */
  isTerminal: boolean;
  /** Resolves on SIGINT or SIGTERM. */
  stopRequested(): Promise<void>;
  /** How long to wait then for answers in flight, in milliseconds. */
  drainDeadline: number;
  /** For tests, which cannot wait as long as the default. */
  timing?: DatabaseOptions['timing'];
}

export type LibraryJob = Extract<Job, { name: `library ${string}` }>;

const defaultDatabase = 'ad-library.db';

/** Runs one of the `library` commands; returns the exit code. */
export async function runLibrary(job: LibraryJob, options: LibraryCommandOptions): Promise<number> {
  const { config, now, print, say, timing } = options;
  const name = config.database ?? defaultDatabase;
  const onWait = (database: string) =>
    say(`ad-library-mcp: waiting for ${database}, which another process has or had open\n`);
  const target: DatabaseOptions = { database: name, now, timing, onWait };
  switch (job.name) {
    case 'library serve':
      return serve(options, target);
    case 'library import':
      return importAll(job.files, target, options);
    case 'library filters':
      print(`${JSON.stringify(describedFilters(), null, 2)}\n`);
      return 0;
    case 'library key create':
      print(`${(await createKey(target, checked(job.options))).key}\n`);
      return 0;
    case 'library key list':
      print(`${keysText(await listKeys(target))}\n`);
      return 0;
    case 'library key revoke':
      print(`revoked ${(await revokeKey(target, job.key)).keyPrefix}…\n`);
      return 0;
  }
}

async function importAll(files: string[], target: DatabaseOptions, { stdin, say, isTerminal }: LibraryCommandOptions) {
  let shown: string | undefined;
  const onProgress = (progress: ImportProgress) => {
    const line = progressLine(progress);
    // In one line of the terminal, which is written over.
    if (isTerminal && line !== shown) say(`\r${line}`);
    shown = line;
  };
  const reports = await importFiles(target, files, { stdin, onProgress }).catch((error) => {
    throw readable(error);
  });
  for (const report of reports) say(`${isTerminal ? '\n' : ''}${importText(report)}\n`);
  const { exitCode, note } = importOutcome(reports);
  if (note) say(`ad-library-mcp: ${note}\n`);
  return exitCode;
}

/** Reports a file that cannot be read as a wrong argument. */
function readable(error: NodeJS.ErrnoException): Error {
  const { code, path = 'the file' } = error;
  if (code === 'ENOENT') return new SettingsError([`${path} does not exist`]);
  return code === 'EISDIR' ? new SettingsError([`${path} is a folder; name the files in it`]) : error;
}

async function serve(
  { config, log, say, now, stopRequested, drainDeadline }: LibraryCommandOptions,
  target: DatabaseOptions,
): Promise<number> {
  const { host, port, allowedHosts } = config;
  const stopped = stopRequested();
  let bound = '';
  // Requests have no time limit: an import through this server can take long.
  const listen = async (fetch: Library['fetch']) => {
    const listener = await listenOn(onlyForHosts(allowedHosts ?? [host], fetch), { host, port, requestMs: 0 });
    const { address, close } = listener;
    bound = listener.bound;
    return { address, close: () => close(drainDeadline) };
  };
  const hasPages = isLoopback(host);
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const served = await (config.demo
    ? serveDemoLibrary({ listen, now, hasPages, onError })
    : serveLibrary({ ...target, listen, hasPages, onError }));
  if (served.apiKey) say(`ad-library-mcp: demo key ${served.apiKey}\n`);
  if (served.stored) say(`ad-library-mcp: ${storedText(served.stored)}\n`);
  say(`ad-library-mcp: library on ${bound}\n`);
  const lost = await Promise.race([stopped, served.lost]);
  if (lost) say(`ad-library-mcp: ${lost.message}\n`);
  await served.close();
  return lost ? 1 : 0;
}

function checked(options: KeyOptions): KeyOptions {
  const wrong = wrongOption(options)?.replace(/^(credits|hourlyLimit|dailyLimit)\b/, flagOf);
  if (wrong) throw new SettingsError([wrong]);
  return options;
}

/** `hourlyLimit` becomes `--hourly-limit`. */
const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
