import { randomBytes } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { type IncomingMessage, request as sendHttpRequest } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { LockHeldError, type LockHolderEndpoint, withLock } from '../../lock.ts';
import { lockDatabase } from '../database/database.ts';
import { importFormats } from '../import/formats/formats.ts';
import type { ImportCounts, ImportOptions, ImportReport } from '../import/import.ts';
import { ImportReporter } from '../import/report.ts';
import { listFiles, openFile, readFileLazily } from '../import/sources/open-files.ts';
import { UnreadableSourceError } from '../import/sources/source-entry.ts';
import {
  type FetchPicturesOptions,
  fetchMissingPictures,
  type PictureStore,
  type PicturesReport,
} from '../import/stored-pictures.ts';
import { createDemoLibrary, openLibrary } from '../open.ts';
import type { ApiKeyMetadata, KeyOptions } from '../service/accounts.ts';
import type { LibraryOptions } from '../service/context.ts';
import { isSameSecret } from '../service/request.ts';
import type { Library } from '../service/service.ts';
import { findIncompleteReason, type ImportedFile, listUnreadResultNotes } from './find-incomplete-reason.ts';

export type { FetchPicturesOptions, PicturesReport } from '../import/stored-pictures.ts';
export { type ApiKeyMetadata, findKeyOptionProblem, type KeyOptions } from '../service/accounts.ts';
export type { ImportedFile } from './find-incomplete-reason.ts';

/**
 * Implements the commands `library serve`, `library import`, `library pictures` and `library key`. The functions return
 * results, which `cli/library.ts` prints.
 */

/**
 * The options to open a library: the path of its database file (`database`), and a function that returns the current
 * time (`now`).
 */
export type DatabaseOptions = Pick<LibraryOptions, 'database' | 'now'>;
type OpenLibraryOptions = DatabaseOptions & Pick<LibraryOptions, 'onError' | 'htmlPagesPath'>;

type ServeOptions = OpenLibraryOptions & {
  /**
   * Opens a port and answers its HTTP requests with `fetch` until `close` is called. Returns the URL at which other
   * processes on this machine reach the server. `close` waits for responses in progress.
   *
   * @throws Error if the port cannot be opened
   */
  listen(fetch: Library['fetch']): Promise<{ url: string; close(): Promise<void> }>;
};

/**
 * Serves the library in a database file over HTTP. Only one process can open the file. The server therefore writes its
 * URL into the lock file, and other `library` commands send their operations to the server.
 *
 * @throws LockHeldError if another process uses the file
 * @throws Error if the port cannot be opened
 */
export async function serveLibrary({ listen, ...options }: ServeOptions) {
  const { library, lock, close: closeLibrary } = await openLockedLibrary(options);
  const commandToken = createCommandToken();
  const { url, close: stopListening } = await listen(addCommandRoutes(library, commandToken)).catch((error) => {
    closeLibrary();
    throw error;
  });
  lock.setEndpoint({ url, token: commandToken });
  return {
    url,
    /**
     * The path of the database, and the numbers of ads and advertiser pages that it contained when the server started.
     */
    databaseContents: { database: lock.databasePath, ...library.countRecords() },
    /** Stops the server. Waits for responses in progress, then closes the database and releases its lock. */
    async close() {
      // Remove the server's URL from the lock file first. Other commands then wait for the database instead of calling
      // a server that is closing.
      lock.setEndpoint(undefined);
      await stopListening();
      closeLibrary();
    },
  };
}

/** Serves a library with fictional demo data over HTTP. Returns the server's URL and the API key of the demo. */
export async function serveDemoLibrary({ listen, ...options }: Omit<ServeOptions, 'database'>) {
  const { apiKey, fetch, close: closeLibrary } = createDemoLibrary(options);
  const { url, close: stopListening } = await listen(fetch);
  return { url, apiKey, close: () => stopListening().then(closeLibrary) };
}

/** The options of the `library import` command. */
export interface ImportFilesOptions extends Omit<ImportOptions, 'runNumber' | 'onProgress'> {
  stdin: AsyncIterable<Uint8Array>;
  /**
   * True if the files contain all current results of the saved search that `question` names. The import then marks ads
   * as gone if they were in an earlier import of this search and are not in the files. If some results seem to be
   * missing, no ads are marked.
   */
  isComplete?: boolean | undefined;
  onProgress?: ((progress: ImportProgress) => void) | undefined;
}

/**
 * The progress of an import. `readBytes` and `totalBytes` count the bytes of the files on disk, which may be
 * compressed.
 */
export interface ImportProgress extends ImportCounts {
  readBytes: number;
  /** The total size of all files. Undefined if the size of a file is unknown, e.g. for standard input. */
  totalBytes: number | undefined;
}

/** The result of the `library import` command. */
export interface ImportFilesResult {
  files: ImportedFile[];
  /** The names of files in folders and ZIP archives that contain no ads or advertiser pages, e.g. pictures. */
  otherFileNames: string[];
  /**
   * The number of ads that a saved search lists now, and the number of its earlier ads that are gone. Undefined unless
   * the files contain all results of the search.
   */
  questionResult?: { listedCount: number; goneCount: number } | undefined;
  /**
   * The reason why an import with `isComplete` marked no ads as gone. Undefined if the import marked ads or
   * `isComplete` was false.
   */
  incompleteReason?: string | undefined;
  /** One sentence for each search whose response states more results than the imported files contain. */
  unreadResultNotes: string[];
}

/**
 * Imports files, folders, ZIP archives and workbooks into a library. The file name `-` means standard input. If another
 * process serves the database, that process stores the records.
 *
 * @throws LockHeldError if another process uses the database without serving it, or imports files into it
 * @throws Error if a file cannot be read, or if there is no such format; files before an unreadable file stay imported
 */
export async function importFiles(
  databaseOptions: DatabaseOptions,
  paths: readonly string[],
  { stdin, isComplete = false, onProgress, ...options }: ImportFilesOptions,
): Promise<ImportFilesResult> {
  const inputFiles = await listFiles(paths);
  const byteCounts = inputFiles.map(({ byteCount }) => byteCount);
  const progress: ImportProgress = {
    readBytes: 0,
    totalBytes: byteCounts.includes(undefined)
      ? undefined
      : byteCounts.reduce<number>((sum, byteCount) => sum + (byteCount ?? 0), 0),
    ...{ readRecords: 0, storedRecords: 0, isStoring: false },
  };
  async function* countBytes(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      progress.readBytes += chunk.length;
      onProgress?.({ ...progress });
      yield chunk;
    }
  }
  const importInto = async (library: LibraryCommands): Promise<ImportFilesResult> => {
    const runNumber = await library.startImportRun();
    const files: ImportedFile[] = [];
    const otherFileNames: string[] = [];
    for (const { path, contentKind } of inputFiles) {
      const [name, bytes] = path === '-' ? ['standard input', stdin] : [path, readFileLazily(path)];
      for await (const file of openFile({ name, bytes: countBytes(bytes), contentKind })) {
        if (file.contentKind === 'other') {
          otherFileNames.push(file.name);
          continue;
        }
        const updateCounts = onProgress && ((counts: ImportCounts) => onProgress(Object.assign(progress, counts)));
        const importOptions = { ...options, runNumber, onProgress: updateCounts };
        let report: ImportReport;
        try {
          report = await library.import(file.bytes, importOptions);
        } catch (error) {
          if (!(error instanceof UnreadableSourceError)) throw error;
          files.push({ name: file.name, ...createUnreadableSourceReport(error) });
          continue;
        }
        if (file.contentKind === 'text' && hasNoRecords(report)) otherFileNames.push(file.name);
        else files.push(addSheetCountNote({ name: file.name, ...report }, file.countSheets?.() ?? 1));
      }
    }
    const { question: questionName } = options;
    const importedFiles = { files, otherFileNames, unreadResultNotes: listUnreadResultNotes(files) };
    if (!isComplete || questionName === undefined) return importedFiles;
    const incompleteReason = findIncompleteReason(files);
    if (incompleteReason !== undefined) return { ...importedFiles, incompleteReason };
    const questionResult = await library.completeQuestion({ runNumber, questionName });
    return { ...importedFiles, questionResult };
  };
  // Each ad contains the number of the last run that imported it. If two runs stored their ads at the same time, each
  // run would take the ads of the other run for ads that it does not list.
  return withLibrary(databaseOptions, importInto, (library) =>
    withLock(`${realpathSync(databaseOptions.database)}.import`, () => importInto(library)),
  );
}

/** Creates the import report about a source that could not be read, so that the served library stored nothing of it. */
function createUnreadableSourceReport(error: UnreadableSourceError): ImportReport {
  const reporter = new ImportReporter();
  reporter.countSkippedRecord({ line: 0, path: '' }, error);
  return reporter.report;
}

/**
 * If only the first sheet of a workbook was read, adds the number of sheets and a note to the report about the file.
 */
const addSheetCountNote = (importedFile: ImportedFile, sheetCount: number): ImportedFile =>
  sheetCount < 2
    ? importedFile
    : {
        ...importedFile,
        sheetCount,
        notes: [
          ...importedFile.notes,
          `only the first of ${sheetCount} sheets was read; save the other sheets as files of their own`,
        ],
      };

/** Returns true if the import found no records, no result pages and no table columns in a file. */
const hasNoRecords = ({ ads, pages, repeated, columns, resultPages }: ImportReport): boolean =>
  ads + pages + repeated + resultPages.length === 0 && columns === undefined;

/**
 * Returns the name, title and documentation of each file format that can be imported. The `library formats` command
 * prints them.
 */
export const listFormats = () =>
  importFormats.map(({ name, title, documentation }) => ({ name, title, documentation }));

/**
 * Finds the folder in which a library stores new pictures, and counts the stored pictures that the library could not
 * find any more if it used this folder. Changes nothing.
 */
export const findPicturesFolder = (
  databaseOptions: DatabaseOptions,
  folders: Parameters<PictureStore['findFolder']>[0],
): Promise<ReturnType<PictureStore['findFolder']>> =>
  withLibrary(databaseOptions, ({ findFolder }) => findFolder(folders));

/**
 * Downloads the pictures of ads into a folder, and records in the database which pictures are stored. If another
 * process serves the database, that process updates the database.
 *
 * @throws LockHeldError if another process uses the database without serving it
 * @throws Error if a file cannot be written
 */
export const fetchPictures = (
  databaseOptions: DatabaseOptions,
  options: FetchPicturesOptions,
): Promise<PicturesReport> => withLibrary(databaseOptions, (library) => fetchMissingPictures(library, options));

/**
 * Creates an API key. `key` in the result is the secret key. It cannot be read again later, because the database stores
 * only its hash.
 */
export const createKey = (
  databaseOptions: DatabaseOptions,
  options: KeyOptions,
): Promise<ApiKeyMetadata & { key: string }> => withLibrary(databaseOptions, ({ create }) => create(options));

/** Returns the API keys of a library, without their secrets. */
export const listKeys = (databaseOptions: DatabaseOptions): Promise<ApiKeyMetadata[]> =>
  withLibrary(databaseOptions, ({ list }) => list());

/** Revokes the API key with the given id or prefix, e.g. after the key was leaked. */
export const revokeKey = (databaseOptions: DatabaseOptions, keyIdOrPrefix: string): Promise<ApiKeyMetadata> =>
  withLibrary(databaseOptions, ({ revoke }) => revoke(keyIdOrPrefix));

/**
 * Creates the operations of the `library` commands for a library that is open in this process. All operations return
 * promises, because a library in another process is called over HTTP.
 */
const createLocalCommands = ({
  import: importSource,
  startImportRun,
  completeQuestion,
  keys: { create, list, revoke },
  pictures: { findFolder, saveFolderPath, findMissing, savePictures },
}: Library) => ({
  import: async (source: AsyncIterable<Uint8Array>, options: ImportOptions) => importSource(source, options),
  startImportRun: async () => startImportRun(),
  completeQuestion: async (...args: Parameters<typeof completeQuestion>) => completeQuestion(...args),
  create: async (options: KeyOptions) => create(options),
  list: async () => list(),
  revoke: async (keyIdOrPrefix: string) => revoke(keyIdOrPrefix),
  findFolder: async (...args: Parameters<typeof findFolder>) => findFolder(...args),
  saveFolderPath: async (...args: Parameters<typeof saveFolderPath>) => saveFolderPath(...args),
  findMissing: async (...args: Parameters<typeof findMissing>) => findMissing(...args),
  savePictures: async (...args: Parameters<typeof savePictures>) => savePictures(...args),
});

/** The operations of the `library` commands. The library may be open in this process or in another process. */
type LibraryCommands = ReturnType<typeof createLocalCommands>;

/**
 * Opens the library in a database file, passes its operations to `useLibrary`, and closes the library afterwards. If
 * another process serves the file, passes operations that send requests to that process to `useServedLibrary` instead.
 */
async function withLibrary<Result>(
  databaseOptions: DatabaseOptions,
  useLibrary: (library: LibraryCommands) => Promise<Result>,
  useServedLibrary = useLibrary,
): Promise<Result> {
  const libraryOrEndpoint = await openLockedLibrary(databaseOptions).catch(async (error) => {
    if (error instanceof LockHeldError && error.endpoint && (await isReachable(error.endpoint))) return error.endpoint;
    throw error;
  });
  if ('url' in libraryOrEndpoint) return useServedLibrary(createRemoteCommands(libraryOrEndpoint));
  try {
    return await useLibrary(createLocalCommands(libraryOrEndpoint.library));
  } finally {
    libraryOrEndpoint.close();
  }
}

/**
 * Locks a database file for this process and opens the library in the file. The returned `close` closes the library and
 * releases the lock.
 */
async function openLockedLibrary(options: OpenLibraryOptions) {
  const lock = await lockDatabase(options.database);
  const { databasePath: database, checkLock, release } = lock;
  const library = await openLibrary({ ...options, database, checkLock }).catch((error) => {
    release();
    throw error;
  });
  const close = () => {
    try {
      library.close();
    } finally {
      release();
    }
  };
  return { library, lock, close };
}

const createCommandToken = () => randomBytes(24).toString('hex');

/**
 * Adds routes under `/-/` to the HTTP API of a library, through which other processes of the same user run commands. A
 * caller must send the token from the lock file, which only this user can read. Requests and responses are JSON, except
 * that the body of an import request is the imported file.
 */
function addCommandRoutes(library: Library, commandToken: string): Library['fetch'] {
  const { import: importSource, ...otherCommands } = createLocalCommands(library);
  const commands: Record<string, unknown> = otherCommands;
  // Import one source at a time. If a command is killed while its records are stored, the library stores the remaining
  // records, and a new import waits for them.
  let lastImport: Promise<unknown> = Promise.resolve();
  function importNext(...args: Parameters<typeof importSource>): Promise<ImportReport> {
    const nextImport = lastImport.then(() => importSource(...args));
    lastImport = nextImport.catch(() => {});
    return nextImport;
  }
  async function runCommand(request: Request, commandName: string): Promise<unknown> {
    if (commandName === 'owner') return {};
    if (commandName === 'import')
      return importNext(request.body ?? ReadableStream.from([]), parseImportOptions(new URL(request.url).searchParams));
    const command = Object.hasOwn(commands, commandName) ? commands[commandName] : undefined;
    if (typeof command !== 'function') throw new Error(`This version of the library does not know ${commandName}.`);
    return (await command(...((await request.json()) as unknown[]))) ?? {};
  }
  return async (request) => {
    const [, commandName] = /^\/-\/(.*)/.exec(new URL(request.url).pathname) ?? [];
    if (commandName === undefined) return library.fetch(request);
    if (!isSameSecret(request.headers.get('authorization') ?? '', `Bearer ${commandToken}`))
      return new Response(null, { status: 404 });
    try {
      return Response.json(await runCommand(request, commandName));
    } catch (error) {
      return Response.json({ message: (error as Error).message }, { status: 400 });
    }
  };
}

/** Parses the options of an import from the query parameters of an import request. */
const parseImportOptions = (query: URLSearchParams): ImportOptions => ({
  format: query.get('format') ?? undefined,
  question: query.get('question') ?? undefined,
  runNumber: query.has('runNumber') ? Number(query.get('runNumber')) : undefined,
});

/** Formats the options of an import as query parameters of an import request. */
const formatImportQuery = ({ onProgress: _, ...options }: ImportOptions): string =>
  new URLSearchParams(
    Object.entries(options).flatMap(([optionName, optionValue]) =>
      optionValue === undefined ? [] : [[optionName, String(optionValue)] as [string, string]],
    ),
  ).toString();

const isReachable = ({ url, token }: LockHolderEndpoint): Promise<boolean> =>
  fetch(`${url}/-/owner`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(2_000),
  }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * Sends a command to the process that serves a database. Uses `node:http`, because `fetch` fails if the response takes
 * longer than five minutes, as it does for a long import.
 */
async function sendCommandRequest(
  { url, token }: LockHolderEndpoint,
  commandName: string,
  body: Iterable<string> | AsyncIterable<Uint8Array>,
): Promise<{ status: number | undefined; text: string }> {
  const headers = { Authorization: `Bearer ${token}` };
  // Use a new connection for each command, because the server may just be closing an idle one.
  const request = sendHttpRequest(`${url}/-/${commandName}`, { method: 'POST', headers, agent: false });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject);
    pipeline(body, request).catch(reject);
  });
  return { status: response.statusCode, text: await readText(response) };
}

/**
 * Creates the operations of the `library` commands for a library that another process serves. Each operation sends an
 * HTTP request to that process.
 */
function createRemoteCommands(lockHolder: LockHolderEndpoint): LibraryCommands {
  async function sendCommand<CommandResult>(
    commandName: string,
    body: Iterable<string> | AsyncIterable<Uint8Array>,
  ): Promise<CommandResult> {
    const { status, text } = await sendCommandRequest(lockHolder, commandName, body).catch((error) => {
      throw new Error(`The connection to the process that serves the database at ${lockHolder.url} failed: ${error}.`);
    });
    const result = JSON.parse(text) as CommandResult & { message?: string };
    if (status !== 200) throw new Error(result.message ?? `HTTP ${status}`);
    return result;
  }

  /**
   * Imports a source in the other process. If the source cannot be read to its end, aborts the request, so that the
   * other process stores nothing. The end of the request would otherwise look like the end of the source, and the
   * record before it may be cut off.
   * @throws the error of the source
   */
  async function importSource(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportReport> {
    let readError: unknown;
    async function* readSource(): AsyncGenerator<Uint8Array> {
      try {
        yield* source;
      } catch (error) {
        readError = error;
        throw error;
      }
    }
    return sendCommand<ImportReport>(`import?${formatImportQuery(options)}`, readSource()).catch((error) => {
      throw readError ?? error;
    });
  }

  const createCommand =
    <Name extends Exclude<keyof LibraryCommands, 'import'>>(commandName: Name) =>
    (...args: Parameters<LibraryCommands[Name]>) =>
      sendCommand<Awaited<ReturnType<LibraryCommands[Name]>>>(commandName, [JSON.stringify(args)]);
  return {
    import: importSource,
    startImportRun: createCommand('startImportRun'),
    completeQuestion: createCommand('completeQuestion'),
    create: createCommand('create'),
    list: createCommand('list'),
    revoke: createCommand('revoke'),
    findFolder: createCommand('findFolder'),
    saveFolderPath: createCommand('saveFolderPath'),
    findMissing: createCommand('findMissing'),
    savePictures: createCommand('savePictures'),
  };
}
