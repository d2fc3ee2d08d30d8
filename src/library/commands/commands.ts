import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type Address, LockHeld } from '../../lock.ts';
import { lockDatabase } from '../database/database.ts';
import type { ImportReport } from '../import/import.ts';
import { type KeepOptions, keepPictures, type PicturesReport } from '../import/pictures.ts';
import { demoLibrary, openLibrary } from '../open.ts';
import type { KeyInfo, KeyOptions } from '../service/accounts.ts';
import { isSame } from '../service/request.ts';
import type { Library, LibraryOptions } from '../service/service.ts';

export type { KeepOptions, PicturesReport } from '../import/pictures.ts';
export { type KeyInfo, type KeyOptions, wrongOption } from '../service/accounts.ts';

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

/** `library serve`. @throws LockHeld, or Error when the address cannot be taken */
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
    stored: { database: lock.database, ...library.size() },
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
  const { apiKey, fetch, close } = demoLibrary(options);
  const { address, close: stop } = await listen(fetch);
  return { url: address, apiKey, close: () => stop().then(close) };
}

export type ImportedFile = ImportReport & { name: string };

/**
 * `library import FILE…`; `-` is `stdin`. Writes to the database, or through the process that serves it.
 * @throws LockHeld; Error when a file cannot be read (earlier files are already stored)
 */
export async function importFiles(target: DatabaseOptions, files: readonly string[], stdin: AsyncIterable<Uint8Array>) {
  for (const file of files)
    if (file !== '-' && (await stat(file)).isDirectory())
      throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR', path: file });
  return withLibrary(target, async (ask) => {
    const reports: ImportedFile[] = [];
    for (const file of files) {
      const [name, source] = file === '-' ? ['standard input', stdin] : [file, bytesOf(file)];
      reports.push({ name, ...(await ask<ImportReport>('import', source)) });
    }
    return reports;
  });
}

/**
 * `library pictures`, and `library import --pictures`: fetches the pictures of ads into a folder, for the library of this
 * process or of another. @throws LockHeld, or Error when a file cannot be written
 */
export const keepPicturesOf = (target: DatabaseOptions, options: KeepOptions): Promise<PicturesReport> =>
  withLibrary(target, (ask) =>
    keepPictures({ missing: (...given) => ask('missing', given), keep: (...given) => ask('keep', given) }, options),
  );

/** Opens the file only when it is read. */
async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(file);
}

/** `library key create`: `key` is never shown again. */
export const createKey = (target: DatabaseOptions, options: KeyOptions): Promise<KeyInfo & { key: string }> =>
  withLibrary(target, (ask) => ask('create', [options]));

export const listKeys = (target: DatabaseOptions): Promise<KeyInfo[]> => withLibrary(target, (ask) => ask('list', []));

export const revokeKey = (target: DatabaseOptions, keyIdOrPrefix: string): Promise<KeyInfo> =>
  withLibrary(target, (ask) => ask('revoke', [keyIdOrPrefix]));

/** Asks a library under `/-/`, with a list of arguments or the bytes of an import. */
type Ask = <Answer>(path: string, given: unknown[] | AsyncIterable<Uint8Array>) => Promise<Answer>;

/** Works with the library of this process, or with that of the process that serves the file: both are asked alike. */
async function withLibrary<Result>(target: DatabaseOptions, work: (ask: Ask) => Promise<Result>): Promise<Result> {
  const opened = await openOwned(target).catch(async (error) => {
    if (error instanceof LockHeld && error.address && (await isReachable(error.address))) return error.address;
    throw error;
  });
  if ('url' in opened) {
    const send = (request: Request) =>
      fetch(request).catch((error) => {
        throw new Error(`The process that serves the database at ${opened.url} broke off: ${error.cause ?? error}.`);
      });
    return work(askOver(send, opened));
  }
  try {
    const address = { url: 'http://library', token: newToken() };
    return await work(askOver(withAdmin(opened.library, address.token), address));
  } finally {
    opened.close();
  }
}

async function openOwned(options: OpenOptions) {
  const lock = await lockDatabase(options.database);
  const { database, check: checkLock, release } = lock;
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
 * Serves the library and, under `/-/`, what commands ask of it, to those who can read the token in the owner's note:
 * the user who runs the server. Arguments and answers are JSON, the source of an import is as it is.
 */
function withAdmin(library: Library, token: string): Library['fetch'] {
  const { create, list, revoke } = library.keys;
  const { missing, keep } = library.pictures;
  const methods: Record<string, unknown> = { create, list, revoke, missing, keep };
  async function answer(request: Request, path: string): Promise<unknown> {
    if (path === 'owner') return {};
    if (path === 'import') return library.import(request.body ?? ReadableStream.from([]));
    const method = Object.hasOwn(methods, path) ? methods[path] : undefined;
    if (typeof method !== 'function') throw new Error(`This version of the library does not know ${path}.`);
    return method(...((await request.json()) as unknown[])) ?? {};
  }
  return async (request) => {
    const [, path] = /^\/-\/(.*)/.exec(new URL(request.url).pathname) ?? [];
    if (path === undefined) return library.fetch(request);
    if (!isSame(request.headers.get('authorization') ?? '', `Bearer ${token}`))
      return new Response(null, { status: 404 });
    try {
      return Response.json(await answer(request, path));
    } catch (error) {
      return Response.json({ message: (error as Error).message }, { status: 400 });
    }
  };
}

const requestTo = ({ url, token }: Address, path: string, options: RequestInit) =>
  new Request(`${url}/-/${path}`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, ...options });

const isReachable = (owner: Address): Promise<boolean> =>
  fetch(requestTo(owner, 'owner', { signal: AbortSignal.timeout(2_000) })).then(
    ({ ok }) => ok,
    () => false,
  );

const askOver =
  (send: (request: Request) => Promise<Response>, owner: Address): Ask =>
  async <Answer>(path: string, given: unknown[] | AsyncIterable<Uint8Array>) => {
    const body = Array.isArray(given) ? JSON.stringify(given) : ReadableStream.from(given);
    const response = await send(requestTo(owner, path, { body, duplex: 'half' }));
    const answer = (await response.json()) as Answer & { message?: string };
    if (!response.ok) throw new Error(answer.message ?? `HTTP ${response.status}`);
    return answer;
  };
