import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { accessOver, accessTo, type LibraryAccess, withAdmin } from './admin.ts';
import { openDemoLibrary } from './demo.ts';
import type { ImportReport } from './import.ts';
import type { KeyInfo, KeyOptions } from './keys.ts';
import { type Library, openLibrary } from './open.ts';
import { claim, InUse } from './owner.ts';

/** What `library serve`, `library import` and `library key` do. Nothing here prints: `library-command.ts` does. */
export type Place = {
  /** A file, or `:memory:`. */
  database: string;
  /** Unix milliseconds. */
  now: () => number;
};

/** `http://HOST:PORT` as this machine reaches it; closing it lets answers under way be finished. */
export type Listening = { address: string; close(): Promise<void> };

export type ServeOptions = Place & {
  /** Serves the library's HTTP API. @throws Error when the address cannot be taken */
  listen(fetch: Library['fetch']): Promise<Listening>;
  onError?: (error: unknown) => void;
};

export type ServedLibrary = {
  /** `http://HOST:PORT`, as others reach it. */
  url: string;
  /** In demo mode, the key that was made for it. */
  apiKey: string | undefined;
  /** Finishes the answers under way, then closes the database. */
  close(): Promise<void>;
};

/** `library serve`. @throws InUse, or Error when the address cannot be taken */
export async function serveLibrary(options: ServeOptions): Promise<ServedLibrary> {
  const token = randomBytes(24).toString('hex');
  const owned = await openOwned(options, token, options.onError);
  try {
    const listening = await options.listen(withAdmin(owned.library, token));
    await owned.announce(listening.address);
    const close = async () => {
      // First, since a note with an address that refuses connections reads as the note of a dead owner.
      await owned.announce(null);
      await listening.close();
      await owned.close();
    };
    return { url: listening.address, apiKey: undefined, close };
  } catch (error) {
    await owned.close();
    throw error;
  }
}

/** `library serve --demo`: generated data in memory; `apiKey` is good for it. */
export async function serveDemoLibrary(options: Omit<ServeOptions, 'database'>): Promise<ServedLibrary> {
  const { library, apiKey } = await openDemoLibrary({ now: options.now, onError: options.onError });
  const listening = await options.listen(library.fetch);
  const close = async () => {
    await listening.close();
    library.close();
  };
  return { url: listening.address, apiKey, close };
}

export type ImportSource = { name: string; stream: AsyncIterable<string | Uint8Array>; bytes: number | undefined };
export type ImportedFile = ImportReport & { name: string };
/** Bytes read of a file, of how many if that is known. */
export type Progress = { name: string; bytes: number; of: number | undefined };

/**
 * `library import FILE…`; `-` stands for `stdin`. Into the database, or through the process that serves it.
 * @throws InUse; Error when a file cannot be read (those before it are in by then)
 */
export async function importFiles(
  place: Place,
  files: string[],
  { stdin, onProgress = () => {} }: { stdin: AsyncIterable<Uint8Array>; onProgress?: (progress: Progress) => void },
): Promise<ImportedFile[]> {
  const sources = await Promise.all(files.map((file) => sourceOf(file, stdin)));
  return withLibrary(place, async (library) => {
    const reports: ImportedFile[] = [];
    for (const source of sources) {
      reports.push({ name: source.name, ...(await library.import(counted(source, onProgress))) });
    }
    return reports;
  });
}

/** `library key create`: the only time that `key` can be seen. */
export const createKey = (place: Place, options: KeyOptions): Promise<KeyInfo & { key: string }> =>
  withLibrary(place, (library) => library.createKey(options));

/** `library key list` */
export const listKeys = (place: Place): Promise<KeyInfo[]> => withLibrary(place, (library) => library.listKeys());

/** `library key revoke ID|PREFIX` */
export const revokeKey = (place: Place, idOrPrefix: string): Promise<KeyInfo> =>
  withLibrary(place, (library) => library.revokeKey(idOrPrefix));

async function withLibrary<Result>(place: Place, work: (library: LibraryAccess) => Promise<Result>): Promise<Result> {
  let owned: Owned;
  try {
    owned = await openOwned(place, randomBytes(24).toString('hex'));
  } catch (error) {
    if (!(error instanceof InUse) || error.owner.url === null) throw error;
    return work(accessOver(error.owner));
  }
  try {
    return await work(accessTo(owned.library));
  } finally {
    await owned.close();
  }
}

type Owned = { library: Library; announce(url: string | null): Promise<void>; close(): Promise<void> };

async function openOwned(place: Place, token: string, onError?: ServeOptions['onError']): Promise<Owned> {
  // The note stands beside the file itself, whatever link leads to it.
  const database = await realpath(place.database).catch(() => place.database);
  const options = { database, now: place.now, ...(onError && { onError }) };
  if (database === ':memory:') {
    const library = await openLibrary(options);
    return { library, announce: async () => {}, close: async () => library.close() };
  }
  const { announce, release } = await claim(database, token);
  try {
    const library = await openLibrary(options);
    const close = async () => {
      library.close();
      await release();
    };
    return { library, announce, close };
  } catch (error) {
    await release();
    throw error;
  }
}

async function sourceOf(file: string, stdin: AsyncIterable<Uint8Array>): Promise<ImportSource> {
  if (file === '-') return { name: 'standard input', stream: stdin, bytes: undefined };
  const { size } = await stat(file);
  return { name: file, stream: contentOf(file), bytes: size };
}

/** Opened when its turn comes. */
async function* contentOf(file: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(file);
}

async function* counted({ name, stream, bytes: of }: ImportSource, onProgress: (progress: Progress) => void) {
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    onProgress({ name, bytes, of });
    yield chunk;
  }
}
