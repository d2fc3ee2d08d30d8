import type { Job } from './command.ts';
import type { Config } from './config.ts';
import type { Log } from './log.ts';
import { type Listener, listen } from './serve/listen.ts';

export interface LibraryCommandOptions {
  config: Config;
  log: Log;
  /** Writes a line for a person to standard error. */
  say(line: string): void;
  /** Resolves when the process was asked to end and the listener is closed. */
  untilAsked(listener: Listener): Promise<void>;
}

type LibraryJob = Extract<Job, { name: `library ${string}` }>;

/** Runs one of the `library` commands; returns the exit code. */
export async function runLibrary(job: LibraryJob, options: LibraryCommandOptions): Promise<number> {
  if (job.name !== 'library serve') throw new Error(`${job.name} is not there yet.`);
  return serve(options);
}

async function serve({ config, log, say, untilAsked }: LibraryCommandOptions): Promise<number> {
  const { openDemoLibrary } = await import('./library/demo.ts');
  const { openLibrary } = await import('./library/open.ts');
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const now = Date.now;
  const library = config.demo
    ? (await openDemoLibrary({ now })).library
    : await openLibrary({ database: config.database ?? 'ad-library.db', now, onError });
  const listener = await listen(library.fetch, config);
  say(`ad-library-mcp: library on ${listener.address}\n`);
  await untilAsked(listener);
  library.close();
  return 0;
}
