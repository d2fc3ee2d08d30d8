import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { openPictureFetch } from '../app.ts';
import { SettingsError } from '../config/read-config.ts';
import { isLoopback } from '../config/setting-values.ts';
import type { Config } from '../config/settings.ts';
import {
  createKey,
  type DatabaseOptions,
  type FetchPicturesOptions,
  fetchPictures,
  findKeyOptionProblem,
  type ImportedFile,
  importFiles,
  type KeyInfo,
  type KeyOptions,
  listKeys,
  type PicturesReport,
  revokeKey,
  serveDemoLibrary,
  serveLibrary,
} from '../library/commands/commands.ts';
import { type Library, libraryFilters } from '../library/open.ts';
import type { Log } from '../logging/log.ts';
import { createPrivateFolder } from '../storage/drivers/file.ts';
import { restrictToHosts } from '../transports/http/hosts-and-origins.ts';
import { listen as listenOn } from '../transports/http/server.ts';
import { formatCount } from '../views/numbers.ts';
import type { Job } from './parse.ts';

export interface LibraryCommandOptions {
  config: Config;
  log: Log;
  now: () => number;
  stdin: AsyncIterable<Uint8Array>;
  print(text: string): void;
  say(text: string): void;
  isTerminal: boolean;
  /** Resolves on SIGINT or SIGTERM. */
  stopRequested(): Promise<void>;
  /** How long to wait for answers in flight after a stop request, in milliseconds. */
  drainDeadline: number;
}

export type LibraryJob = Extract<Job, { name: `library ${string}` }>;

const defaultDatabase = 'ad-library.db';

export async function runLibrary(job: LibraryJob, options: LibraryCommandOptions): Promise<number> {
  const { config, now, print } = options;
  const name = config.database ?? defaultDatabase;
  const target: DatabaseOptions = { database: name, now };
  switch (job.name) {
    case 'library serve':
      return serve(options, target, job.options.open === true);
    case 'library import':
      return importAll(job, target, options);
    case 'library pictures':
      return pictures({ ...job.options, isAgain: true }, target, options);
    case 'library filters':
      print(`${JSON.stringify(libraryFilters, null, 2)}\n`);
      return 0;
    case 'library key create':
      print(`${(await createKey(target, checkKeyOptions(job.options as KeyOptions))).key}\n`);
      return 0;
    case 'library key list':
      print(`${keysText(await listKeys(target))}\n`);
      return 0;
    case 'library key revoke':
      print(`revoked ${(await revokeKey(target, job.words[0] ?? '')).keyPrefix}…\n`);
      return 0;
  }
}

async function importAll(
  { words: files, options: { pictures: withPictures, folder, maxMb } }: Extract<LibraryJob, { name: 'library import' }>,
  target: DatabaseOptions,
  options: LibraryCommandOptions,
) {
  const { stdin, say } = options;
  if (files.length === 0) throw new SettingsError(['name the files to load; - stands for standard input']);
  const reports = await importFiles(target, files, stdin).catch((error) => {
    throw readable(error);
  });
  for (const report of reports) say(`${importText(report)}\n`);
  // A file of which nothing was read is no success either.
  const exitCode = reports.some(({ ads, pages, skipped }) => skipped > 0 || ads + pages === 0) ? 1 : 0;
  if (!withPictures) return exitCode;
  return Math.max(exitCode, await pictures({ folder, maxMb, isAgain: false }, target, options));
}

async function pictures(
  { folder: chosen, maxMb = 2000, isAgain }: { folder?: string; maxMb?: number; isAgain: boolean },
  target: DatabaseOptions,
  options: LibraryCommandOptions,
) {
  const { config, say, isTerminal, now } = options;
  if (!(maxMb > 0)) throw new SettingsError(['--max-mb takes a number above 0']);
  const folder = resolve(chosen ?? `${target.database}.pictures`);
  const limits = { folder, maxBytes: maxMb * 1e6 };
  let shown: string | undefined;
  const opened = await openPictureFetch({ hosts: config.mediaHosts, now });
  try {
    const report = await fetchPictures(target, {
      ...limits,
      shouldRetryFailed: isAgain,
      fetch: opened.fetch,
      makeFolder: createPrivateFolder,
      onProgress(progress) {
        // The plan, then lines that a terminal shows in place of each other.
        const line = shown === undefined ? `${picturesPlan(progress, limits)}\n` : `\r${picturesProgress(progress)}`;
        if (shown === undefined || (isTerminal && line !== shown)) say(line);
        shown = line;
      },
    });
    say(`${isTerminal ? '\n' : ''}${picturesText(report)}\n`);
    return report.isFolderFull ? 1 : 0;
  } finally {
    await opened.close();
  }
}

function readable(error: NodeJS.ErrnoException): Error {
  const { code, path = 'the file' } = error;
  if (code === 'ENOENT') return new SettingsError([`${path} does not exist`]);
  return code === 'EISDIR' ? new SettingsError([`${path} is a folder; name the files in it`]) : error;
}

async function serve(
  { config, log, say, now, stopRequested, drainDeadline }: LibraryCommandOptions,
  target: DatabaseOptions,
  isOpened: boolean,
): Promise<number> {
  const { host, port, allowedHosts } = config;
  const stopped = stopRequested();
  let bound = '';
  // Requests have no time limit: an import through this server can take long.
  const listen = async (fetch: Library['fetch']) => {
    const listener = await listenOn(restrictToHosts(allowedHosts ?? [host], fetch), {
      host,
      port,
      requestTimeoutMs: 0,
    });
    const { url: address, close } = listener;
    bound = listener.boundUrl;
    return { address, close: () => close(drainDeadline) };
  };
  // No path leads there but the one that the terminal prints: a proxy that says nothing of itself may stand before it.
  const pagesPath = isLoopback(host) ? `/p/${randomBytes(12).toString('base64url')}` : undefined;
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const served = await (config.demo
    ? serveDemoLibrary({ listen, now, pagesPath, onError })
    : serveLibrary({ ...target, listen, pagesPath, onError }));
  say(`ad-library-mcp: ${'apiKey' in served ? `demo key ${served.apiKey}` : storedText(served.stored)}\n`);
  const pages = pagesPath && `${served.url}${pagesPath}/`;
  say(`ad-library-mcp: library on ${bound}\n${pages ? `ad-library-mcp: pages at ${pages}\n` : ''}`);
  if (pages && isOpened) openInBrowser(pages);
  await stopped;
  await served.close();
  return 0;
}

/** Where there is no browser, the address stands in the terminal. */
function openInBrowser(address: string): void {
  const command = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  spawn(command, [address], { detached: true, stdio: 'ignore' })
    .on('error', () => {})
    .unref();
}

function checkKeyOptions(options: KeyOptions): KeyOptions {
  const wrong = findKeyOptionProblem(options)?.replace(/^(credits|hourlyLimit|dailyLimit)\b/, flagOf);
  if (wrong) throw new SettingsError([wrong]);
  return options;
}

/** `hourlyLimit` becomes `--hourly-limit`. */
const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Names the file that is served and what it holds: a file in a wrong folder shows as new and empty. */
function storedText({ database, ads, pages }: Record<'ads' | 'pages', number> & { database: string }): string {
  if (ads + pages === 0) return `${database} is empty; "library import" loads ads and pages into it`;
  return `${database} holds ${formatCount(ads, 'ad')} and ${formatCount(pages, 'page')}`;
}

export function importText({ name, columns, ...report }: ImportedFile): string {
  const { ads, pages, updated, repeated, fromPublicArchive, skipped, notes, problems, reasons } = report;
  const mapped = fromPublicArchive ? ` (${fromPublicArchive} from the public ad library’s format)` : '';
  const counts = [
    ...(updated > 0 ? [`${updated.toLocaleString('en-US')} of them updated an earlier record`] : []),
    ...(repeated > 0 ? [`${formatCount(repeated, 'record')} with the id of another one in the file`] : []),
    ...(skipped > 0 ? [`${skipped.toLocaleString('en-US')} skipped`] : []),
  ];
  const read = `${formatCount(ads, 'ad')}${mapped} and ${formatCount(pages, 'page')}`;
  const head = [ads + pages === 0 ? `nothing was read, ${read}` : read, ...counts].join(', ');
  const unlisted = skipped - problems.length;
  return [
    `${name}: ${head}${problems.length > 0 ? ':' : ''}`,
    ...(columns ? [`  columns: ${columns}`] : []),
    ...notes.map((note) => `  ${note}`),
    ...problems.map((problem) => `  ${problemText(problem)}`),
    ...(unlisted > 0 ? [`  and ${unlisted.toLocaleString('en-US')} more:`] : []),
    ...Object.entries(reasons).map(([reason, amount]) => `    ${amount} × ${reason}`),
  ].join('\n');
}

/** `line 12: id: …`, or `data[3].id: …` in a document. */
function problemText({ line, path, problem }: ImportedFile['problems'][number]): string {
  const where = [line > 0 ? `line ${line}` : '', path].filter((part) => part !== '').join(', ');
  const separator = where === '' ? '' : path !== '' && /^[\w.]+: /.test(problem) ? '.' : ': ';
  return `${where}${separator}${problem}`;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

function picturesPlan(
  { expectedCount, expired }: PicturesReport,
  { folder, maxBytes }: Pick<FetchPicturesOptions, 'folder' | 'maxBytes'>,
): string {
  const addresses = expired === 1 ? '1 address has' : `${expired.toLocaleString('en-US')} addresses have`;
  const gone = expired > 0 ? `${addresses} expired and cannot be fetched any more; ` : '';
  if (expectedCount === 0) return `pictures: ${gone}${expired > 0 ? 'no other' : 'none'} is missing`;
  return `pictures: ${gone}at most ${expectedCount.toLocaleString('en-US')} to fetch into ${folder}, which may hold ${megabytes(maxBytes)}`;
}

const picturesProgress = ({ fetched, failed, bytes, expectedCount }: PicturesReport) =>
  `pictures  ${fetched + failed} of ${expectedCount}, ${megabytes(bytes)}`;

function picturesText({ fetched, failed, bytes, reasons, isFolderFull }: PicturesReport): string {
  return [
    `pictures: ${formatCount(fetched, 'picture')} kept, ${megabytes(bytes)}${failed > 0 ? `; ${failed} could not be:` : ''}`,
    ...Object.entries(reasons).map(([reason, amount]) => `    ${amount} × ${reason}`),
    ...(isFolderFull ? ['  the folder is full; --max-mb allows it more, and the same command goes on'] : []),
  ].join('\n');
}

function keysText(keys: KeyInfo[]): string {
  if (keys.length === 0) return 'No keys yet. "library key create" makes one.';
  return keys
    .map(({ id, keyPrefix, name, scopes, unmetered, createdAt, revokedAt }) => {
      const active = unmetered ? 'active, unmetered' : 'active';
      const state = revokedAt === null ? active : `revoked ${isoDay(revokedAt)}`;
      return `${keyPrefix}…  ${id}  made ${isoDay(createdAt)}  ${state}  ${name}  ${scopes.join(',')}`;
    })
    .join('\n');
}

const isoDay = (time: number) => new Date(time).toISOString().slice(0, 10);
