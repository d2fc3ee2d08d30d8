import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { DatabaseInUse, type DatabaseLock, type LockOptions, lockDatabase, type Owner } from '../database/lock.ts';
import type { ImportReport } from '../import/import.ts';
import { type KeepOptions, type KeptPictures, keepPictures, type PicturesReport } from '../import/pictures.ts';
import { demoLibrary, openLibrary } from '../open.ts';
import type { KeyInfo, KeyOptions, Keys } from '../service/accounts.ts';
import { isSame } from '../service/request.ts';
import type { Library, LibraryOptions, LibrarySize } from '../service/service.ts';

export { type KeyOptions, wrongOption } from '../service/accounts.ts';

/** `library serve`, `library import` and `library key`. Nothing here prints; cli/library.ts does. */
export type DatabaseOptions = Pick<LockOptions, 'timing' | 'onWait'> & {
  /** A file, or `:memory:`. */
  database: string;
  /** Unix milliseconds. */
  now: () => number;
};

/** `address` is `http://HOST:PORT` as this machine reaches it; `close` waits for answers in flight. */
type Listening = { address: string; close(): Promise<void> };

type ServeOptions = DatabaseOptions & {
  /** Serves the library's HTTP API. @throws Error when the address cannot be taken */
  listen(fetch: Library['fetch']): Promise<Listening>;
  hasPages?: boolean;
  onError?: LibraryOptions['onError'];
};

type ServedLibrary = {
  /** `http://HOST:PORT`, as others reach it. */
  url: string;
  /** The key of demo mode. */
  apiKey: string | undefined;
  /** The file that is served, with its whole path, and what was in it at the start; absent in demo mode. */
  stored?: LibrarySize & { database: string };
  /** Resolves when another process has taken over the database, or its file is gone; from then on every call is answered 503. */
  lost: Promise<Error>;
  /** Finishes answers in flight, then closes the database. */
  close(): Promise<void>;
};

/** `library serve`. @throws DatabaseInUse, or Error when the address cannot be taken */
export async function serveLibrary({ listen, ...options }: ServeOptions): Promise<ServedLibrary> {
  let onLost: ((error: Error) => void) | undefined;
  const lost = new Promise<Error>((resolve) => {
    onLost = resolve;
  });
  const { library, lock, close } = await openOwned({ ...options, onLost });
  try {
    const { address, close: stop } = await listen(withAdmin(library, lock.token));
    lock.announce(address);
    return {
      url: address,
      apiKey: undefined,
      stored: { database: lock.database, ...library.size() },
      lost,
      async close() {
        // First, so that other commands wait for the file instead of calling a server that is closing.
        lock.announce(null);
        await stop();
        close();
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** `library serve --demo`: generated data in memory, with a key for it. */
export async function serveDemoLibrary(options: Omit<ServeOptions, 'database'>): Promise<ServedLibrary> {
  const library = demoLibrary(options);
  const listening = await options.listen(library.fetch);
  const close = async () => {
    await listening.close();
    await library.close();
  };
  return { url: listening.address, apiKey: library.apiKey, lost: new Promise(() => {}), close };
}

type ImportedFile = ImportReport & { name: string };
/** Bytes read so far; `of` is the size of the file, if known. */
export type ImportProgress = { name: string; bytes: number; of: number | undefined };

/**
 * `library import FILE…`; `-` is `stdin`. Writes to the database, or through the process that serves it.
 * @throws DatabaseInUse; Error when a file cannot be read (earlier files are already stored)
 */
export async function importFiles(
  target: DatabaseOptions,
  files: string[],
  {
    stdin,
    onProgress = () => {},
  }: { stdin: AsyncIterable<Uint8Array>; onProgress?: (progress: ImportProgress) => void },
): Promise<ImportedFile[]> {
  const sizes = await Promise.all(files.map((file) => (file === '-' ? undefined : sizeOf(file))));
  return withLibrary(target, async (library) => {
    const reports: ImportedFile[] = [];
    for (const [at, file] of files.entries()) {
      const name = file === '-' ? 'standard input' : file;
      const read = counted(file, stdin, (bytes) => onProgress({ name, bytes, of: sizes[at] }));
      reports.push({ name, ...(await library.import(read)) });
    }
    return reports;
  });
}

/**
 * `library pictures`, and `library import --pictures`: fetches the pictures of ads into a folder, for the library of this
 * process or of another. @throws DatabaseInUse, or Error when a file cannot be written
 */
export const keepPicturesOf = (target: DatabaseOptions, options: KeepOptions): Promise<PicturesReport> =>
  withLibrary(target, ({ pictures }) => keepPictures(pictures, options));

async function sizeOf(file: string): Promise<number> {
  const stats = await stat(file);
  if (stats.isDirectory()) throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR', path: file });
  return stats.size;
}

/** Opens the file only when it is read. */
async function* counted(file: string, stdin: AsyncIterable<Uint8Array>, onRead: (bytes: number) => void) {
  let bytes = 0;
  for await (const chunk of file === '-' ? stdin : createReadStream(file)) {
    bytes += chunk.length;
    onRead(bytes);
    yield chunk;
  }
}

/** `library key create`: `key` is never shown again. */
export const createKey = (target: DatabaseOptions, options: KeyOptions): Promise<KeyInfo & { key: string }> =>
  withLibrary(target, ({ keys }) => keys.create(options));

/** `library key list` */
export const listKeys = (target: DatabaseOptions): Promise<KeyInfo[]> => withLibrary(target, ({ keys }) => keys.list());

/** `library key revoke KEY|ID|PREFIX` */
export const revokeKey = (target: DatabaseOptions, keyIdOrPrefix: string): Promise<KeyInfo> =>
  withLibrary(target, ({ keys }) => keys.revoke(keyIdOrPrefix));

/** What commands do with a library: with one of this process, or over a few routes with that of another. */
type LibraryAccess = {
  keys: { [Method in keyof Keys]: (...given: Parameters<Keys[Method]>) => Awaitable<ReturnType<Keys[Method]>> };
  import: Library['import'];
  pictures: Parameters<typeof keepPictures>[0];
};
type Awaitable<Value> = Value | Promise<Value>;

async function withLibrary<Result>(
  target: DatabaseOptions,
  work: (library: LibraryAccess) => Result | Promise<Result>,
): Promise<Result> {
  const owned = await openOwned(target).catch(async (error) => {
    if (error instanceof DatabaseInUse && error.owner && (await isReachable(error.owner))) return error.owner;
    throw error;
  });
  if (!('close' in owned)) return work(accessOver(owned));
  try {
    return await work(owned.library);
  } finally {
    owned.close();
  }
}

type OpenOptions = DatabaseOptions & Pick<LockOptions, 'onLost'> & Pick<LibraryOptions, 'onError' | 'hasPages'>;

async function openOwned(options: OpenOptions): Promise<{ library: Library; lock: DatabaseLock; close(): void }> {
  const lock = await lockDatabase(options.database, options);
  try {
    const library = await openLibrary({ ...options, database: lock.database, checkLock: lock.check });
    const close = () => {
      try {
        library.close();
      } finally {
        lock.release();
      }
    };
    return { library, lock, close };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Serves the library and, under `/-/`, what other commands ask of it: for whoever can read the token in the owner's
 * note, which is the user who runs the server. Arguments and answers are JSON, the source of an import is as it is.
 */
function withAdmin(library: Library, token: string): Library['fetch'] {
  async function answer(request: Request, path: string): Promise<unknown> {
    if (path === 'owner') return {};
    if (path === 'import') return library.import(request.body ?? ReadableStream.from([]));
    if (path === 'pictures/missing' || path === 'pictures/keep') {
      const given = (await request.json()) as never[];
      return (
        (library.pictures[path === 'pictures/keep' ? 'keep' : 'missing'] as (...args: never[]) => unknown)(...given) ??
        {}
      );
    }
    const [, method = ''] = /^keys\/(\w+)$/.exec(path) ?? [];
    if (!Object.hasOwn(library.keys, method)) throw new Error(`This version of the library does not know ${path}.`);
    return library.keys[method as keyof Keys]((await request.json()) as KeyOptions & string);
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

const askOwner = ({ url, token }: Owner, path: string, options: RequestInit = {}) =>
  fetch(`${url}/-/${path}`, { method: 'POST', headers: { Authorization: `Bearer ${token}` }, ...options });

const isReachable = (owner: Owner): Promise<boolean> =>
  askOwner(owner, 'owner', { signal: AbortSignal.timeout(2_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

/** The library of another process, found by its note. @throws Error with the message of that process */
function accessOver(owner: Owner): LibraryAccess {
  async function ask<Answer>(path: string, body: NonNullable<RequestInit['body']>): Promise<Answer> {
    const response = await askOwner(owner, path, { body, duplex: 'half' }).catch((error: Error) => {
      const reason = String(error.cause ?? error);
      throw new Error(`Process ${owner.pid}, which serves the database at ${owner.url}, broke off: ${reason}.`);
    });
    const answer = (await response.json()) as Answer & { message?: string };
    if (!response.ok) throw new Error(answer.message ?? `HTTP ${response.status}`);
    return answer;
  }
  return {
    keys: {
      create: (options = {}) => ask<KeyInfo & { key: string }>('keys/create', JSON.stringify(options)),
      list: () => ask<KeyInfo[]>('keys/list', '{}'),
      revoke: (key) => ask<KeyInfo>('keys/revoke', JSON.stringify(key)),
    },
    pictures: {
      missing: (...given) => ask<ReturnType<KeptPictures['missing']>>('pictures/missing', JSON.stringify(given)),
      keep: (...given) => ask<undefined>('pictures/keep', JSON.stringify(given)),
    },
    import: (source) => ask<ImportReport>('import', ReadableStream.from(bytesOf(source))),
  };
}

/** A request body takes bytes only. */
async function* bytesOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) yield Buffer.from(chunk as Uint8Array);
}

/** The texts that the commands print, without the final line break. */

const barWidth = 24;

/** A progress line, which the terminal overwrites while a file is imported. */
export function progressLine({ name, bytes, of }: ImportProgress): string {
  const read = `${(bytes / 2 ** 20).toFixed(1)} MB`;
  if (!of) return `${name}  ${read}`;
  const share = Math.min(1, bytes / of);
  const bar = '█'.repeat(Math.floor(share * barWidth)).padEnd(barWidth, '·');
  return `${name}  ${bar} ${String(Math.floor(share * 100)).padStart(3)}%  ${read}`;
}

const amountOf = (amount: number, what: string) => `${amount} ${what}${amount === 1 ? '' : 's'}`;

/** Which file is served, and what it holds: one in the wrong folder is new and empty. */
export function storedText({ database, ads, pages }: NonNullable<ServedLibrary['stored']>): string {
  if (ads + pages === 0) return `${database} is empty; "library import" loads ads and pages into it`;
  return `${database} holds ${amountOf(ads, 'ad')} and ${amountOf(pages, 'page')}`;
}

export function importText({ name, notes, ...report }: ImportedFile): string {
  const { ads, pages, updated, fromPublicArchive, skipped, problems, reasons } = report;
  const mapped = fromPublicArchive ? ` (${fromPublicArchive} from the public ad library’s format)` : '';
  const replaced = updated ? `, ${updated} of them updated an earlier record` : '';
  const unlisted = skipped - problems.length;
  return [
    `${name}: ${amountOf(ads, 'ad')}${mapped} and ${amountOf(pages, 'page')}${replaced}${skipped ? `, ${skipped} skipped:` : ''}`,
    ...problems.map((problem) => `  ${problemText(problem)}`),
    ...(unlisted > 0 ? [`  and ${unlisted} more:`] : []),
    ...Object.entries(reasons).map(([reason, amount]) => `    ${amount} × ${reason}`),
    ...notes.map((note) => `  note: ${note}`),
  ].join('\n');
}

/** `line 12: id: …`, or `line 12, data[3].id: …` in a document. */
function problemText({ line, path, problem }: ImportedFile['problems'][number]): string {
  if (path === '') return `line ${line}: ${problem}`;
  return `line ${line}, ${path}${/^[\w.]+: /.test(problem) ? '.' : ': '}${problem}`;
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;

/** What is about to be fetched, and how much room it may take. */
export const picturesPlan = (of: number, { folder, maxBytes }: Pick<KeepOptions, 'folder' | 'maxBytes'>): string =>
  of === 0
    ? 'pictures: none is missing'
    : `pictures: at most ${of} to fetch into ${folder}, which may hold ${megabytes(maxBytes)}`;

export const picturesProgress = ({
  fetched,
  failed,
  bytes,
  of,
}: PicturesReport | Parameters<KeepOptions['onProgress']>[0]) =>
  `pictures  ${fetched + failed} of ${of}, ${megabytes(bytes)}`;

export function picturesText({ fetched, failed, bytes, reasons, isFull }: PicturesReport): string {
  return [
    `pictures: ${amountOf(fetched, 'picture')} kept, ${megabytes(bytes)}${failed > 0 ? `; ${failed} could not be:` : ''}`,
    ...Object.entries(reasons).map(([reason, amount]) => `    ${amount} × ${reason}`),
    ...(isFull ? ['  the folder is full; --max-mb allows it more, and the same command goes on'] : []),
  ].join('\n');
}

/** The exit code of an import; `note` explains a code other than 0. */
export function importOutcome(files: Pick<ImportedFile, 'ads' | 'pages' | 'skipped'>[]): {
  exitCode: number;
  note?: string;
} {
  if (files.every(({ skipped }) => skipped === 0)) return { exitCode: 0 };
  const isStored = files.some(({ ads, pages }) => ads + pages > 0);
  const rest = isStored ? 'some records were skipped; everything else is stored' : 'nothing was stored';
  return { exitCode: 1, note: `exit code 1: ${rest}` };
}

export function keysText(keys: KeyInfo[]): string {
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
