import type { OptionValues } from 'commander';
import type { Job } from './command.ts';
import type { Config } from './config.ts';
import type { ImportedFile, Place, Progress } from './library/commands.ts';
import type { Log } from './log.ts';

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
}

export type LibraryJob = Extract<Job, { name: `library ${string}` }>;

/** Where keys and data live when nothing else is said. */
const defaultDatabase = 'ad-library.db';

/** Runs one of the `library` commands; returns the exit code. */
export async function runLibrary(job: LibraryJob, options: LibraryCommandOptions): Promise<number> {
  const { config, now, print } = options;
  const library = await import('./library/commands.ts');
  const place: Place = { database: config.database ?? defaultDatabase, now };
  switch (job.name) {
    case 'library serve':
      return serve(options, place);
    case 'library import': {
      const reports = await library.importFiles(place, job.files, { stdin: options.stdin, onProgress: bar(options) });
      return report(reports, options);
    }
    case 'library key create':
      print(`${(await library.createKey(place, keyOptions(job.options))).key}\n`);
      return 0;
    case 'library key list':
      for (const { keyPrefix, name, scopes, id, revokedAt } of await library.listKeys(place)) {
        print(`${keyPrefix}…\t${id}\t${revokedAt === null ? 'active' : 'revoked'}\t${scopes.join(',')}\t${name}\n`);
      }
      return 0;
    case 'library key revoke':
      print(`revoked ${(await library.revokeKey(place, job.key)).keyPrefix}…\n`);
      return 0;
  }
}

async function serve({ config, log, say, now, asked }: LibraryCommandOptions, place: Place): Promise<number> {
  const { serveLibrary, serveDemoLibrary } = await import('./library/commands.ts');
  const { host, port } = config;
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const served = await (config.demo
    ? serveDemoLibrary({ host, port, now, onError })
    : serveLibrary({ ...place, host, port, onError }));
  if (served.apiKey) say(`ad-library-mcp: demo key ${served.apiKey}\n`);
  say(`ad-library-mcp: library on ${served.url}\n`);
  await asked();
  await served.close();
  return 0;
}

/** A line that fills while a file is read; nothing where nobody watches. */
function bar({ say, watched }: LibraryCommandOptions): (progress: Progress) => void {
  let shown = '';
  return ({ name, bytes, of }) => {
    const done = of ? `${Math.floor((bytes / of) * 100)} %` : `${Math.floor(bytes / 1_000_000)} MB`;
    const line = `\r${name}: ${done}`;
    if (watched && line !== shown) say(line);
    shown = line;
  };
}

function report(reports: readonly ImportedFile[], { say, watched }: LibraryCommandOptions): number {
  if (watched) say('\n');
  for (const { name, ads, pages, skipped, problems, fromPublicArchive } of reports) {
    const mapped = fromPublicArchive > 0 ? ` (${fromPublicArchive} from the public ad library's JSON)` : '';
    say(`${name}: ${ads} ads${mapped}, ${pages} pages, ${skipped} lines skipped\n`);
    for (const { line, problem } of problems) say(`  line ${line}: ${problem}\n`);
    if (skipped > problems.length) say(`  … and ${skipped - problems.length} more\n`);
  }
  return reports.some(({ skipped }) => skipped > 0) ? 1 : 0;
}

/** Texts of flags as the library takes them; it says itself what is wrong with a value. */
function keyOptions({ name, scopes, credits, hourlyLimit, dailyLimit, subscription }: OptionValues) {
  return {
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
}
