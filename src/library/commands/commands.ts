import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type HolderEndpoint, LockHeldError } from '../../lock.ts';
import { lockDatabase } from '../database/database.ts';
import type { ImportReport } from '../import/import.ts';
import { type FetchPicturesOptions, fetchMissingPictures, type PicturesReport } from '../import/stored-pictures.ts';
import { createDemoLibrary, openLibrary } from '../open.ts';
import type { KeyInfo, KeyOptions } from '../service/accounts.ts';
import { isSameSecret } from '../service/request.ts';
import type { Library, LibraryOptions } from '../service/service.ts';

export type { FetchPicturesOptions, PicturesReport } from '../import/stored-pictures.ts';
export { findKeyOptionProblem, type KeyInfo, type KeyOptions } from '../service/accounts.ts';

/** `library serve`, `library import` and `library key`. Nothing here prints; cli/library.ts does. */
export type DatabaseOptions = Pick<LibraryOptions, 'database' | 'now'>;
type OpenOptions = DatabaseOptions & Pick<LibraryOptions, 'onError' | 'pagesPath'>;

type ServeOptions = OpenOptions & {
  /**
   * Serves the library's HTTP API at `http://HOST:PORT`, as this machine reaches it, until `close`, which waits for
   * answers in flight. @throws Error when the address cannot be taken
   */
  listen(fetch: Library['fetch']): Promise<{ address: string; close(): Promise<void> }>;
};

/** `library serve`. @throws LockHeldError, or Error when the address cannot be taken */
export async function serveLibrary({ listen, ...options }: ServeOptions) {
  const { library, lock, close } = await openOwned(options);
  const token = newToken();
  const { address, close: stop } = await listen(withAdmin(library, token)).catch((error) => {
    close();
    throw error;
  });
  lock.announce({ url: address, token });
  return {
    url: address,
    /** What was in the file at the start. */
    stored: { database: lock.databasePath, ...library.countRecords() },
    /** Finishes answers in flight, then closes the database. */
    async close() {
      // First, so that other commands wait for the file instead of calling a server that is closing.
      lock.announce(undefined);
      await stop();
      close();
    },
  };
}

/** `library serve --demo`: generated data in memory, with a key for it. */
export async function serveDemoLibrary({ listen, ...options }: Omit<ServeOptions, 'database'>) {
  const { apiKey, fetch, close } = createDemoLibrary(options);
  const { address, close: stop } = await listen(fetch);
  return { url: address, apiKey, close: () => stop().then(close) };
}

export type ImportedFile = ImportReport & { name: string };

/**
 * `library import FILE…`; `-` is `stdin`. Writes to the database, or through the process that serves it.
 * @throws LockHeldError; Error when a file cannot be read (earlier files are already stored)
 */
export async function importFiles(target: DatabaseOptions, files: readonly string[], stdin: AsyncIterable<Uint8Array>) {
  for (const file of files)
    if (file !== '-' && (await stat(file)).isDirectory())
      throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR', path: file });
  return withLibrary(target, async (library) => {
    const reports: ImportedFile[] = [];
    for (const file of files) {
      const [name, source] = file === '-' ? ['standard input', stdin] : [file, bytesOf(file)];
      reports.push({ name, ...(await library.import(source)) });
    }
    return reports;
  });
}

/**
 * `library pictures`, and `library import --pictures`: fetches the pictures of ads into a folder, for the library of this
 * process or of another. @throws LockHeldError, or Error when a file cannot be written
 */
export const fetchPictures = (target: DatabaseOptions, options: FetchPicturesOptions): Promise<PicturesReport> =>
  withLibrary(target, (library) => fetchMissingPictures(library, options));

/** Opens the file only when it is read. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(file);
}

/** `library key create`: `key` is never shown again. */
export const createKey = (target: DatabaseOptions, options: KeyOptions): Promise<KeyInfo & { key: string }> =>
  withLibrary(target, ({ create }) => create(options));

export const listKeys = (target: DatabaseOptions): Promise<KeyInfo[]> => withLibrary(target, ({ list }) => list());

export const revokeKey = (target: DatabaseOptions, keyIdOrPrefix: string): Promise<KeyInfo> =>
  withLibrary(target, ({ revoke }) => revoke(keyIdOrPrefix));

/** What commands do with a library, whichever process has opened it. */
const libraryCommands = ({
  import: importSource,
  keys: { create, list, revoke },
  pictures: { findMissing, savePictures },
}: Library) => ({
  import: async (source: AsyncIterable<Uint8Array>) => importSource(source),
  create: async (options: KeyOptions) => create(options),
  list: async () => list(),
  revoke: async (keyIdOrPrefix: string) => revoke(keyIdOrPrefix),
  findMissing: async (...args: Parameters<typeof findMissing>) => findMissing(...args),
  savePictures: async (...args: Parameters<typeof savePictures>) => savePictures(...args),
});

type LibraryCommands = ReturnType<typeof libraryCommands>;

/** Works with the library of this process, or over HTTP with the library of the process that serves the file. */
async function withLibrary<Result>(
  target: DatabaseOptions,
  work: (library: LibraryCommands) => Promise<Result>,
): Promise<Result> {
  const opened = await openOwned(target).catch(async (error) => {
    if (error instanceof LockHeldError && error.endpoint && (await isReachable(error.endpoint))) return error.endpoint;
    throw error;
  });
  if ('url' in opened) return work(servedLibrary(opened));
  try {
    return await work(libraryCommands(opened.library));
  } finally {
    opened.close();
  }
}

async function openOwned(options: OpenOptions) {
  const lock = await lockDatabase(options.database);
  const { databasePath: database, check: checkLock, release } = lock;
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

const newToken = () => randomBytes(24).toString('hex');

/**
 * Serves the library and, under `/-/`, the commands of it, to callers who can read the token in the owner's note: the
 * user who runs the server. Arguments and answers are JSON; the source of an import is the body as it is.
 */
function withAdmin(library: Library, token: string): Library['fetch'] {
  const { import: importSource, ...others } = libraryCommands(library);
  const commands: Record<string, unknown> = others;
  async function answer(request: Request, path: string): Promise<unknown> {
    if (path === 'owner') return {};
    if (path === 'import') return importSource(request.body ?? ReadableStream.from([]));
    const command = Object.hasOwn(commands, path) ? commands[path] : undefined;
    if (typeof command !== 'function') throw new Error(`This version of the library does not know ${path}.`);
    return (await command(...((await request.json()) as unknown[]))) ?? {};
  }
  return async (request) => {
    const [, path] = /^\/-\/(.*)/.exec(new URL(request.url).pathname) ?? [];
    if (path === undefined) return library.fetch(request);
    if (!isSameSecret(request.headers.get('authorization') ?? '', `Bearer ${token}`))
      return new Response(null, { status: 404 });
    try {
      return Response.json(await answer(request, path));
    } catch (error) {
      return Response.json({ message: (error as Error).message }, { status: 400 });
    }
  };
}

const requestTo = ({ url, token }: HolderEndpoint, path: string, options: RequestInit) =>
  new Request(`${url}/-/${path}`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, ...options });

const isReachable = (owner: HolderEndpoint): Promise<boolean> =>
  fetch(requestTo(owner, 'owner', { signal: AbortSignal.timeout(2_000) })).then(
    ({ ok }) => ok,
    () => false,
  );

/** The commands of a library that another process serves. */
function servedLibrary(owner: HolderEndpoint): LibraryCommands {
  async function send<Answer>(path: string, body: string | ReadableStream): Promise<Answer> {
    const response = await fetch(requestTo(owner, path, { body, duplex: 'half' })).catch((error) => {
      throw new Error(`The process that serves the database at ${owner.url} broke off: ${error.cause ?? error}.`);
    });
    const answer = (await response.json()) as Answer & { message?: string };
    if (!response.ok) throw new Error(answer.message ?? `HTTP ${response.status}`);
    return answer;
  }
  const command =
    <Name extends Exclude<keyof LibraryCommands, 'import'>>(name: Name) =>
    (...given: Parameters<LibraryCommands[Name]>) =>
      send<Awaited<ReturnType<LibraryCommands[Name]>>>(name, JSON.stringify(given));
  return {
    import: (source) => send('import', ReadableStream.from(source)),
    create: command('create'),
    list: command('list'),
    revoke: command('revoke'),
    findMissing: command('findMissing'),
    savePictures: command('savePictures'),
  };
}
