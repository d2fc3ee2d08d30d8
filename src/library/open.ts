import { randomBytes, randomUUID } from 'node:crypto';
import { type Database, openDatabase } from './database/database.ts';
import { type IndexProgress, indexMissingRecords, recordsIn } from './database/records.ts';
import { type ImportReport, importRecords } from './import/import.ts';
import { collectionsIn, type Keys, keysIn, type Random } from './service/accounts.ts';
import { defaultConfig, type LibraryConfig } from './service/config.ts';
import { meterIn } from './service/meter.ts';
import { cursorsWith } from './service/request.ts';
import { type ServiceContext, serviceOf } from './service/service.ts';

export type LibraryOptions = {
  /** A file, or `:memory:`. */
  database: string;
  /** Unix milliseconds. */
  now: () => number;
  config?: Partial<LibraryConfig>;
  random?: Random;
  /** Throws when another process has taken over the file. */
  checkLock?: () => void;
  /** Hears how far the records of a file of an older version are indexed again. */
  onIndex?: ((progress: IndexProgress) => void) | undefined;
  /** Receives errors that callers only see as a 500. */
  onError?: (error: unknown) => void;
};

export type Library = {
  /** The HTTP API. */
  fetch(request: Request): Promise<Response>;
  keys: Keys;
  /** Loads ads and pages; see import.ts. */
  import(source: AsyncIterable<string | Uint8Array>): Promise<ImportReport>;
  /** How many records it has. */
  size(): LibrarySize;
  close(): void;
};

export type LibrarySize = { ads: number; pages: number };

const systemRandom: Random = { bytes: randomBytes, uuid: randomUUID };

/**
 * Opens a local library. No other process may use the file: commands.ts locks it first (lock.ts).
 * @throws Error when the file is no library, or one of a newer version, or cannot be written
 */
export async function openLibrary(options: LibraryOptions): Promise<Library & { context: ServiceContext }> {
  const { database: path, now, random = systemRandom, onError = () => {} } = options;
  const config = { ...defaultConfig, ...options.config };
  const database = await openDatabase(path, options.checkLock);
  const collections = collectionsIn(database, random.uuid);
  const keys = keysIn({ database, config, collections, now, random });
  const context: ServiceContext = {
    config,
    database,
    records: recordsIn(database),
    collections,
    cursors: cursorsWith(cursorSecret(database, random)),
    meter: meterIn(database, now),
    now,
  };
  await indexMissingRecords(context, options.onIndex);
  const service = serviceOf({ context, keys, requestId: random.uuid, onError });
  return {
    fetch: async (request) => service.fetch(request),
    keys,
    import: (source) => importRecords(context, source),
    size: () => sizeOf(database),
    close: database.close,
    context,
  };
}

const sizeOf = (database: Database): LibrarySize =>
  database.get('SELECT (SELECT count(*) FROM ads) AS ads, (SELECT count(*) FROM pages) AS pages') ?? {
    ads: 0,
    pages: 0,
  };

/** Stored in the database, so that cursors outlive the process. */
function cursorSecret(database: Database, random: Random): string {
  const fresh = Buffer.from(random.bytes(32)).toString('hex');
  database.run("INSERT OR IGNORE INTO secrets VALUES ('cursor', ?)", [fresh]);
  return database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'cursor'")?.value ?? fresh;
}
