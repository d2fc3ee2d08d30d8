import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { openPictureFetcher } from '../app.ts';
import { SettingsError } from '../config/read-config.ts';
import { isLoopbackHost } from '../config/setting-values.ts';
import type { Config } from '../config/settings.ts';
import {
  type ApiKeyMetadata,
  createKey,
  type DatabaseOptions,
  type FetchPicturesOptions,
  fetchPictures,
  findKeyOptionProblem,
  findPicturesFolder,
  type ImportedFile,
  type ImportFilesResult,
  type ImportProgress,
  importFiles,
  type KeyOptions,
  listFormats,
  listKeys,
  type PicturesReport,
  revokeKey,
  serveDemoLibrary,
  serveLibrary,
} from '../library/commands/commands.ts';
import { type Library, libraryFilters } from '../library/open.ts';
import type { Logger, PrintStatus } from '../logging/log.ts';
import { createPrivateFolder } from '../storage/drivers/file.ts';
import { restrictToHosts } from '../transports/http/hosts-and-origins.ts';
import { listen as listenOn } from '../transports/http/server.ts';
import { formatCount } from '../views/numbers.ts';
import type { ParsedCommand } from './parse.ts';

/** The settings, log, clock and streams with which a `library` command runs. */
export interface LibraryCommandOptions {
  config: Config;
  log: Logger;
  now: () => number;
  stdin: AsyncIterable<Uint8Array>;
  writeToStdout(text: string): void;
  writeToStderr(text: string): void;
  printStatus: PrintStatus;
  /** Prints a part of the command's report to standard error. With JSON logs, the part becomes one line of JSON. */
  printReport: PrintStatus;
  /** True if standard error is a terminal on which progress can be shown. */
  canShowProgress: boolean;
  /** Resolves when the process receives SIGINT or SIGTERM. */
  waitForStopSignal(): Promise<void>;
  /** How long a stopped server waits for running requests, in milliseconds. */
  drainMs: number;
}

/** A parsed command line such as `library import ads.jsonl`. */
export type ParsedLibraryCommand = Extract<ParsedCommand, { name: `library ${string}` }>;

const defaultDatabasePath = 'ad-library.db';

/** Runs a `library` command. Returns the exit code. */
export async function runLibrary(parsedCommand: ParsedLibraryCommand, options: LibraryCommandOptions): Promise<number> {
  const { config, now, writeToStdout } = options;
  const databaseOptions: DatabaseOptions = { database: config.database ?? defaultDatabasePath, now };
  switch (parsedCommand.name) {
    case 'library serve':
      return serveUntilStopped(options, databaseOptions, parsedCommand.options.open === true);
    case 'library import':
      return importAndReport(parsedCommand, databaseOptions, options);
    case 'library pictures':
      return fetchPicturesAndReport(
        { ...(await parsePictureOptions(parsedCommand.options, databaseOptions)), shouldRetryFailed: true },
        databaseOptions,
        options,
      );
    case 'library formats':
      writeToStdout(`${formatSupportedFormats()}\n`);
      return 0;
    case 'library filters':
      writeToStdout(`${JSON.stringify(libraryFilters, null, 2)}\n`);
      return 0;
    case 'library key create':
      writeToStdout(
        `${(await createKey(databaseOptions, validateKeyOptions(parsedCommand.options as KeyOptions))).key}\n`,
      );
      return 0;
    case 'library key list':
      writeToStdout(`${formatKeys(await listKeys(databaseOptions))}\n`);
      return 0;
    case 'library key revoke': {
      // `library key list` shows a prefix with an ellipsis, and users copy both.
      const keyIdOrPrefix = (parsedCommand.positionals[0] ?? '').replace(/…$/, '');
      writeToStdout(`revoked ${(await revokeKey(databaseOptions, keyIdOrPrefix)).keyPrefix}…\n`);
      return 0;
    }
  }
}

async function importAndReport(
  { positionals: files, options: flags }: Extract<ParsedLibraryCommand, { name: 'library import' }>,
  databaseOptions: DatabaseOptions,
  options: LibraryCommandOptions,
) {
  const { pictures: shouldFetchPictures, format, complete: isComplete } = flags;
  const { stdin, writeToStderr, printReport, canShowProgress } = options;
  if (files.length === 0) throw new SettingsError(['name the files to import; - stands for standard input']);
  checkFormatName(format);
  const question = parseQuestionName(flags);
  const pictureLimits = shouldFetchPictures ? await parsePictureOptions(flags, databaseOptions) : undefined;
  const progressLine = canShowProgress ? createProgressLine(writeToStderr) : undefined;
  const importResult = await importFiles(databaseOptions, files, {
    ...{ stdin, format, question, isComplete, onProgress: progressLine?.showProgress },
  })
    .catch((error) => {
      throw toReadableError(error);
    })
    .finally(() => progressLine?.clearLine());
  for (const importedFile of importResult.files)
    printReport(hasImportProblem(importedFile) ? 'error' : 'info', formatImportReport(importedFile));
  if (importResult.otherFileNames.length > 0) printReport('info', formatSkippedFiles(importResult.otherFileNames));
  if (importResult.files.length === 0)
    printReport('error', 'nothing was read: the folder contains no file that an import reads');
  const { incompleteReason, unreadResultNotes } = importResult;
  // Skip the sentence that equals `incompleteReason`, because the last line of the report contains this sentence.
  for (const sentence of unreadResultNotes) if (sentence !== incompleteReason) printReport('warn', sentence);
  if (isComplete)
    printReport(incompleteReason === undefined ? 'info' : 'error', formatQuestionResult(question ?? '', importResult));
  // The command fails if a file has a problem, e.g. a skipped record, or if there was no file to import. It also fails
  // if the ads of a question (a saved search) could not be compared with earlier ads of this question.
  const hasProblem = importResult.files.some(hasImportProblem);
  const hasFailed = hasProblem || importResult.files.length === 0 || incompleteReason !== undefined;
  const exitCode = hasFailed ? 1 : 0;
  if (pictureLimits === undefined) return exitCode;
  return Math.max(
    exitCode,
    await fetchPicturesAndReport({ ...pictureLimits, shouldRetryFailed: false }, databaseOptions, options),
  );
}

/** Returns true if a record of the file was skipped, or if the file contained no ad and no page. */
const hasImportProblem = ({ skipped, problems }: ImportedFile): boolean => skipped > 0 || problems.length > 0;

/**
 * Returns the name passed with `--question`: the name of a saved search whose results are in the imported files.
 * @throws SettingsError if the name is invalid, or missing with `--complete`
 */
function parseQuestionName({ question, complete }: { question?: string; complete?: boolean }): string | undefined {
  const questionName = question?.trim();
  if (complete && questionName === undefined)
    throw new SettingsError(['--complete needs --question with the name of the question']);
  if (questionName !== undefined && (questionName === '' || questionName.length > 100 || /\p{C}/u.test(questionName)))
    throw new SettingsError(['--question takes a name of 1 to 100 characters']);
  return questionName;
}

const maxListedFiles = 10;

/**
 * Formats the report line about files without records, e.g. `skipped, because they contain no records: a.txt, b.txt`.
 */
function formatSkippedFiles(fileNames: readonly string[]): string {
  const unlistedCount = fileNames.length - maxListedFiles;
  const unlistedText = unlistedCount > 0 ? ` and ${unlistedCount.toLocaleString('en-US')} more` : '';
  return `skipped, because they contain no records: ${fileNames.slice(0, maxListedFiles).join(', ')}${unlistedText}`;
}

/**
 * Formats the report line of an import with `--complete` about a question (a saved search), e.g. `question socks: 12
 * ads listed, 3 gone`. An ad is gone if an earlier import of the question contains the ad, but this import does not.
 */
function formatQuestionResult(questionName: string, { questionResult, incompleteReason }: ImportFilesResult): string {
  if (!questionResult)
    return `question ${questionName}: no ad was marked as gone, because ${incompleteReason}; import all files of the download again`;
  return `question ${questionName}: ${formatCount(questionResult.listedCount, 'ad')} listed, ${questionResult.goneCount.toLocaleString('en-US')} gone`;
}

/** The minimum time between two updates of the progress line, in milliseconds. */
const progressIntervalMs = 200;
/**
 * The estimated time for storing the records of a file, as a multiple of the time for reading the file. The estimate of
 * the remaining time uses this factor.
 */
const storingTimeFactor = 2;

/** Creates a progress line, i.e. a line of the terminal that shows the progress of an import. */
function createProgressLine(writeToStderr: (text: string) => void) {
  const startedAt = performance.now();
  let storingStartedAt: number | undefined;
  let lastShownAt = -Infinity;
  let lastLineLength = 0;
  return {
    showProgress(progress: ImportProgress): void {
      const currentTime = performance.now();
      storingStartedAt = progress.isStoring ? (storingStartedAt ?? currentTime) : undefined;
      if (currentTime - lastShownAt < progressIntervalMs) return;
      lastShownAt = currentTime;
      const line = formatProgress(progress, currentTime - (storingStartedAt ?? startedAt));
      writeToStderr(`\r${line.padEnd(lastLineLength)}`);
      lastLineLength = line.length;
    },
    /** Removes the progress line, so that the report of the import starts on an empty line. */
    clearLine(): void {
      if (lastLineLength > 0) writeToStderr(`\r${' '.repeat(lastLineLength)}\r`);
    },
  };
}

/**
 * Formats the progress line, e.g. `import 12 of 48 MB read, 1,200 records, about 40 s left`.
 * @param elapsedMs milliseconds since the current step (reading or storing) began
 */
export function formatProgress(progress: ImportProgress, elapsedMs: number): string {
  const { readBytes, totalBytes, readRecords, storedRecords, isStoring } = progress;
  const completedFraction = isStoring
    ? storedRecords / readRecords
    : readBytes / (totalBytes ?? Number.POSITIVE_INFINITY);
  const totalStepMs = elapsedMs / completedFraction;
  const remainingMs = totalStepMs - elapsedMs + (isStoring ? 0 : totalStepMs * storingTimeFactor);
  const remainingText =
    Number.isFinite(remainingMs) && elapsedMs > 1000 ? `, about ${formatDuration(remainingMs)} left` : '';
  if (isStoring)
    return `import  ${storedRecords.toLocaleString('en-US')} of ${formatCount(readRecords, 'record')} stored${remainingText}`;
  const totalText = totalBytes === undefined ? '' : ` of ${formatMegabytes(totalBytes)}`;
  return `import  ${formatMegabytes(readBytes)}${totalText} read, ${formatCount(readRecords, 'record')}${remainingText}`;
}

const formatDuration = (durationMs: number) =>
  durationMs < 90_000 ? `${Math.ceil(durationMs / 1000)} s` : `${Math.round(durationMs / 60_000)} min`;

/**
 * Checks the value of `--format`.
 * @throws SettingsError that lists all formats if the format does not exist
 */
function checkFormatName(formatName: string | undefined): void {
  const formatNames = listFormats().map(({ name }) => name);
  if (formatName === undefined || formatNames.includes(formatName)) return;
  throw new SettingsError([`--format takes one of ${formatNames.join(', ')}; "library formats" describes them`]);
}

/** The folder in which pictures are stored, and the largest total size of its pictures. */
type PictureFolder = Pick<FetchPicturesOptions, 'folder' | 'maxBytes'>;

/**
 * Parses the options `--folder` and `--max-mb`, and selects the folder of pictures.
 * @throws SettingsError if an option is invalid, or if the library could not find its stored pictures any more
 */
async function parsePictureOptions(
  { folder: requestedFolder, maxMb = 2000 }: { folder?: string; maxMb?: number },
  databaseOptions: DatabaseOptions,
): Promise<PictureFolder> {
  if (!(maxMb > 0)) throw new SettingsError(['--max-mb takes a number above 0']);
  // An empty path would mean the current folder, and the library would remember it.
  if (requestedFolder?.trim() === '') throw new SettingsError(['--folder takes the path of a folder']);
  const { folder, storedFolder, unreachableCount } = await findPicturesFolder(databaseOptions, {
    ...(requestedFolder !== undefined && { requestedFolder: resolve(requestedFolder) }),
    defaultFolder: resolve(`${databaseOptions.database}.pictures`),
  });
  if (unreachableCount > 0)
    throw new SettingsError([
      `the library has ${formatCount(unreachableCount, 'picture')} in ${storedFolder} that ${folder} does not contain, and it reads pictures from one folder. Leave out --folder, or move the files to ${folder} first`,
    ]);
  return { folder, maxBytes: maxMb * 1e6 };
}

/**
 * Fetches the pictures of stored ads and prints the progress. Returns the exit code, which is 1 if the folder has
 * reached its maximum size.
 */
async function fetchPicturesAndReport(
  { shouldRetryFailed, ...limits }: PictureFolder & { shouldRetryFailed: boolean },
  databaseOptions: DatabaseOptions,
  options: LibraryCommandOptions,
) {
  const { config, writeToStderr, printReport, canShowProgress, now } = options;
  let lastProgressLine: string | undefined;
  const pictureFetcher = await openPictureFetcher({ hosts: config.mediaHosts, getTime: now });
  try {
    const report = await fetchPictures(databaseOptions, {
      ...limits,
      shouldRetryFailed,
      fetchOriginal: pictureFetcher.fetch,
      makeFolder: createPrivateFolder,
      onProgress(progress) {
        // The first line says which pictures will be fetched. After that, a terminal shows the progress in a single
        // line, which each update overwrites.
        const progressLine = `\r${formatPicturesProgress(progress)}`;
        if (lastProgressLine === undefined) printReport('info', formatPicturesPlan(progress, limits));
        else if (canShowProgress && progressLine !== lastProgressLine) writeToStderr(progressLine);
        lastProgressLine = progressLine;
      },
    });
    if (canShowProgress) writeToStderr('\n');
    printReport(report.isFolderFull ? 'error' : 'info', formatPicturesReport(report));
    return report.isFolderFull ? 1 : 0;
  } finally {
    await pictureFetcher.close();
  }
}

/** Replaces the error for a missing file with an error that names the file. Returns all other errors unchanged. */
function toReadableError(error: NodeJS.ErrnoException): Error {
  const { code, path = 'the file' } = error;
  if (code === 'ENOENT') return new SettingsError([`${path} does not exist`]);
  return error;
}

/** Serves the local library (a database of imported ads) until a stop signal arrives. Returns the exit code. */
async function serveUntilStopped(
  { config, log, writeToStderr, printStatus, now, waitForStopSignal, drainMs }: LibraryCommandOptions,
  databaseOptions: DatabaseOptions,
  shouldOpenBrowser: boolean,
): Promise<number> {
  const { host, port, allowedHosts } = config;
  const stopRequested = waitForStopSignal();
  let boundUrl = '';
  // Starts the HTTP server. Requests have no time limit, because another command may send a long import to the server.
  const listen = async (fetch: Library['fetch']) => {
    const httpServer = await listenOn(restrictToHosts(allowedHosts ?? [host], fetch), {
      host,
      port,
      requestTimeoutMs: 0,
    });
    const { url, close } = httpServer;
    boundUrl = httpServer.boundUrl;
    return { url, close: () => close(drainMs) };
  };
  // The HTML pages require no API key. Instead, their path contains random characters that only the terminal shows.
  // Allowing all requests from local IP addresses would not be safe, because a local proxy may forward requests of
  // other machines.
  const htmlPagesPath = isLoopbackHost(host) ? `/p/${randomBytes(12).toString('base64url')}` : undefined;
  const onError = (error: unknown) => log.error('the library failed', { error: String(error) });
  const servedLibrary = await (config.demo
    ? serveDemoLibrary({ listen, now, htmlPagesPath, onError })
    : serveLibrary({ ...databaseOptions, listen, htmlPagesPath, onError }));
  // Write the demo key directly to standard error, because `printStatus` masks API keys.
  if ('apiKey' in servedLibrary) writeToStderr(`ad-library-mcp: demo key ${servedLibrary.apiKey}\n`);
  else printStatus('info', formatDatabaseContents(servedLibrary.databaseContents));
  const pagesUrl = htmlPagesPath && `${servedLibrary.url}${htmlPagesPath}/`;
  writeToStderr(`ad-library-mcp: library on ${boundUrl}\n`);
  if (pagesUrl) printStatus('info', `pages at ${pagesUrl}`);
  if (pagesUrl && shouldOpenBrowser) openInBrowser(pagesUrl);
  await stopRequested;
  await servedLibrary.close();
  return 0;
}

/** Opens a URL in the default browser. Ignores errors, because the terminal also shows the URL. */
function openInBrowser(url: string): void {
  const command = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  spawn(command, [url], { detached: true, stdio: 'ignore' })
    .on('error', () => {})
    .unref();
}

/**
 * Validates the options of a new API key, and returns them unchanged.
 * @throws SettingsError that names the flag of an invalid option
 */
function validateKeyOptions(options: KeyOptions): KeyOptions {
  const problem = findKeyOptionProblem(options)?.replace(/^(credits|hourlyLimit|dailyLimit)\b/, formatFlag);
  if (problem) throw new SettingsError([problem]);
  return options;
}

/** Converts an option name to its flag, e.g. `hourlyLimit` to `--hourly-limit`. */
const formatFlag = (optionName: string): string =>
  `--${optionName.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/**
 * Formats the path of the served database and the number of its records. If users have started the server in the wrong
 * folder, this text shows them that the database is empty.
 */
function formatDatabaseContents({
  database,
  ads,
  pages,
}: Record<'ads' | 'pages', number> & { database: string }): string {
  if (ads + pages === 0) return `${database} is empty; "library import" loads ads and pages into it`;
  return `${database} holds ${formatCount(ads, 'ad')} and ${formatCount(pages, 'page')}`;
}

/** Formats the report about one imported file: its counts, notes and problems. */
export function formatImportReport({ name, columns, keys, formats, ...report }: ImportedFile): string {
  const { ads, pages, updated, older, repeated, skipped, notes, problems, reasons: failureCountByReason } = report;
  const counts = [
    ...(updated > 0 ? [`${updated.toLocaleString('en-US')} of them updated an earlier record`] : []),
    ...(older > 0 ? [`${older.toLocaleString('en-US')} of them older than the stored reading`] : []),
    ...(repeated > 0 ? [`${formatCount(repeated, 'record')} with the id of another record of this import`] : []),
    ...(skipped > 0 ? [`${skipped.toLocaleString('en-US')} skipped`] : []),
  ];
  const storedCounts = `${formatCount(ads, 'ad')} and ${formatCount(pages, 'page')}`;
  const summary = [ads + pages + repeated === 0 ? `nothing was read, ${storedCounts}` : storedCounts, ...counts].join(
    ', ',
  );
  const unlistedCount = Object.values(failureCountByReason).reduce((sum, count) => sum + count, 0);
  return [
    `${name}: ${summary}${problems.length > 0 ? ':' : ''}`,
    ...formatRecognizedFormats(formats),
    ...(columns ? [`  columns: ${columns}`] : []),
    ...(keys ? [`  keys: ${keys}`] : []),
    ...notes.map((note) => `  ${note}`),
    ...problems.map((problem) => `  ${formatProblem(problem)}`),
    ...(unlistedCount > 0 ? [`  and ${unlistedCount.toLocaleString('en-US')} more:`] : []),
    ...Object.entries(failureCountByReason).map(([reason, count]) => `    ${count} × ${reason}`),
  ].join('\n');
}

/** Formats the line of an import report that names the recognized formats, e.g. `format: own-ads (12 ads)`. */
function formatRecognizedFormats(formats: ImportedFile['formats']): string[] {
  const formatTexts = Object.entries(formats).map(([name, { ads, pages }]) => {
    const countTexts = [ads > 0 ? formatCount(ads, 'ad') : '', pages > 0 ? formatCount(pages, 'page') : ''].filter(
      Boolean,
    );
    return countTexts.length > 0 ? `${name} (${countTexts.join(', ')})` : name;
  });
  return formatTexts.length > 0
    ? [`  ${formatTexts.length > 1 ? 'formats' : 'format'}: ${formatTexts.join(', ')}`]
    : [];
}

/** Formats a problem with its position in the file, e.g. `line 12: id: …`, or `data[3].id: …` in a JSON document. */
function formatProblem({ line, path, problem }: ImportedFile['problems'][number]): string {
  const position = [line > 0 ? `line ${line}` : '', path].filter((text) => text !== '').join(', ');
  const separator = position === '' ? '' : path !== '' && /^[\w.]+: /.test(problem) ? '.' : ': ';
  return `${position}${separator}${problem}`;
}

/**
 * Formats the list of import formats. Each format has a name, a title, and the page or URL that describes the format.
 */
const formatSupportedFormats = (): string =>
  listFormats()
    .map(({ name, title, documentation }) => `${name}\n  ${title}\n  described in: ${documentation}`)
    .join('\n');

const formatMegabytes = (fetchedBytes: number) => `${(fetchedBytes / 1e6).toFixed(fetchedBytes < 1e7 ? 1 : 0)} MB`;

function formatPicturesPlan(
  { expectedCount, expiredCount }: PicturesReport,
  { folder, maxBytes }: PictureFolder,
): string {
  const addresses = expiredCount === 1 ? '1 address has' : `${expiredCount.toLocaleString('en-US')} addresses have`;
  const expiredNote = expiredCount > 0 ? `${addresses} expired and cannot be fetched any more; ` : '';
  if (expectedCount === 0) return `pictures: ${expiredNote}${expiredCount > 0 ? 'no other' : 'none'} is missing`;
  return `pictures: ${expiredNote}at most ${expectedCount.toLocaleString('en-US')} to fetch into ${folder}, which may hold ${formatMegabytes(maxBytes)}`;
}

const formatPicturesProgress = ({ fetchedCount, failedCount, fetchedBytes, expectedCount }: PicturesReport) =>
  `pictures  ${fetchedCount + failedCount} of ${expectedCount}, ${formatMegabytes(fetchedBytes)}`;

function formatPicturesReport({
  fetchedCount,
  failedCount,
  fetchedBytes,
  failureCountByReason,
  isFolderFull,
}: PicturesReport): string {
  return [
    `pictures: ${formatCount(fetchedCount, 'picture')} stored, ${formatMegabytes(fetchedBytes)}${failedCount > 0 ? `; ${failedCount} could not be fetched:` : ''}`,
    ...Object.entries(failureCountByReason).map(([reason, count]) => `    ${count} × ${reason}`),
    ...(isFolderFull ? ['  the folder is full; run the same command with a larger --max-mb to continue'] : []),
  ].join('\n');
}

function formatKeys(keys: ApiKeyMetadata[]): string {
  if (keys.length === 0) return 'No keys yet. "library key create" creates one.';
  return keys
    .map(({ id, keyPrefix, name, scopes, unmetered, createdAt, revokedAt }) => {
      const activeText = unmetered ? 'active, unmetered' : 'active';
      const statusText = revokedAt === null ? activeText : `revoked ${formatDay(revokedAt)}`;
      return `${keyPrefix}…  ${id}  created ${formatDay(createdAt)}  ${statusText}  ${name}  ${scopes.join(',')}`;
    })
    .join('\n');
}

const formatDay = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10);
