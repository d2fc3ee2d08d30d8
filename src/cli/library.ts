import type { OptionValues } from 'commander';
import { SettingsError } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import {
  createKey,
  importFiles,
  listKeys,
  type Place,
  type Progress,
  revokeKey,
  serveDemoLibrary,
  serveLibrary,
} from '../library/commands.ts';
import { type KeyOptions, wrongOption } from '../library/keys.ts';
import type { Library } from '../library/open.ts';
import { importOutcome, importText, keysText, progressLine } from '../library/report.ts';
import type { Log } from '../log/log.ts';
import { listen as listenOn } from '../serve/http/listen.ts';
import { onlyForHosts } from '../serve/http/validate-host-and-origin.ts';
import type { Job } from './parse.ts';

export interface LibraryCommandOptions {
  config: Config;
  log: Log;
  now: () => number;
  stdin: AsyncIterable<Uint8Array>;
  /** Writes what a person or a script asked for to standard output. */
  print(text: string): void;
  /** Writes what a person should know to standard error. */
  say(text: string): void;
  /** Whether a person watches standard error. */
  watched: boolean;
  /** Resolves when the process is asked to end. */
  asked(): Promise<void>;
  /** How long answers under way are waited for then, in milliseconds. */
  drainDeadline: number;
}

export type LibraryJob = Extract<Job, { name: `library ${string}` }>;

/** Where keys and data live when nothing else is said. */
const defaultDatabase = 'ad-library.db';

/** Runs one of the `library` commands; returns the exit code. */
export async function runLibrary(job: LibraryJob, options: LibraryCommandOptions): Promise<number> {
  const { config, now, print } = options;
  const place: Place = { database: config.database ?? defaultDatabase, now };
  switch (job.name) {
    case 'library serve':
      return serve(options, place);
    case 'library import':
      return importAll(job.files, place, options);
    case 'library key create':
      print(`${(await createKey(place, keyOptions(job.options))).key}\n`);
      return 0;
    case 'library key list':
      print(`${keysText(await listKeys(place))}\n`);
      return 0;
    case 'library key revoke':
      print(`revoked ${(await revokeKey(place, job.key)).keyPrefix}…\n`);
      return 0;
  }
}

async function importAll(files: string[], place: Place, { stdin, say, watched }: LibraryCommandOptions) {
  let shown = '';
  const onProgress = (progress: Progress) => {
    const line = progressLine(progress);
    if (watched && line !== shown) say(`\r${line}`);
    shown = line;
  };
  const reports = await importFiles(place, files, { stdin, onProgress }).catch((error) => {
    throw readable(error);
  });
  for (const report of reports) say(`${watched ? '\n' : ''}${importText(report)}\n`);
  const { exitCode, note } = importOutcome(reports);
  if (note) say(`ad-library-mcp: ${note}\n`);
  return exitCode;
}

/** A file that cannot be read is a wrong word on the command line. */
function readable(error: NodeJS.ErrnoException): Error {
  const { code, path = 'the file' } = error;
  if (code === 'ENOENT') return new SettingsError([`${path} does not exist`]);
  return code === 'EISDIR' ? new SettingsError([`${path} is a folder; name the files in it`]) : error;
}

async function serve(
  { config, log, say, now, asked, drainDeadline }: LibraryCommandOptions,
  place: Place,
): Promise<number> {
  const { host, port, allowedHosts } = config;
  // An import through this server may well take longer than other requests.
  const listen = async (fetch: Library['fetch']) => {
    const { address, close } = await listenOn(onlyForHosts(allowedHosts ?? [host], fetch), {
      host,
      port,
      requestMs: 0,
    });
    return { address, close: () => close(drainDeadline) };
  };
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const served = await (config.demo
    ? serveDemoLibrary({ listen, now, onError })
    : serveLibrary({ ...place, listen, onError }));
  if (served.apiKey) say(`ad-library-mcp: demo key ${served.apiKey}\n`);
  say(`ad-library-mcp: library on ${served.url}\n`);
  await asked();
  await served.close();
  return 0;
}

/** Texts of flags as the library takes them. */
function keyOptions({ name, scopes, credits, hourlyLimit, dailyLimit, subscription }: OptionValues): KeyOptions {
  const options = {
    ...(name !== undefined && { name: String(name) }),
    ...(scopes !== undefined && {
      scopes: String(scopes)
        .split(',')
        .map((scope) => scope.trim()),
    }),
    ...(credits !== undefined && { credits: Number(credits) }),
    ...(hourlyLimit !== undefined && { hourlyLimit: Number(hourlyLimit) }),
    ...(dailyLimit !== undefined && { dailyLimit: Number(dailyLimit) }),
    ...(subscription === false && { subscription: false }),
  };
  const wrong = wrongOption(options);
  if (wrong) throw new SettingsError([wrong]);
  return options;
}
