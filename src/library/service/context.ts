import type { Database } from '../database/database.ts';
import { createRecordStore, type GeneratedRecords } from '../database/records.ts';
import { openPictureStore, type PictureStore } from '../import/stored-pictures.ts';
import { createCollectionStore, createCreditMeter, type RandomSource } from './accounts.ts';
import type { LibraryBaseUrls } from './presenter.ts';
import { createCursorCodec } from './request.ts';

/** The options of `openLibrary`. */
export type LibraryOptions = {
  /** The path of the database file, or `:memory:` for a database in memory. */
  database: string;
  /** Returns the current time in Unix milliseconds. */
  now: () => number;
  /** The base URLs of the HTML pages and pictures. By default, they start with the origin of the request. */
  baseUrls?: LibraryBaseUrls;
  /** The source of random ids and secrets. By default, this is Node's cryptographic random generator. */
  random?: RandomSource;
  /** Throws an error if another process may have started to use the database file. */
  checkLock?: () => void;
  /**
   * The path of the HTML pages, which need no API key. The path consists of `/p/` and a random word that nobody can
   * guess. Without this option, the library serves no HTML pages.
   */
  htmlPagesPath?: string | undefined;
  /**
   * Only for a library with demo data. Its HTML pages say that the data is fictional, and its database is a temporary
   * file.
   */
  demo?: {
    /** Reads the demo picture with this file name. */
    readPicture: PictureStore['readPicture'];
    /**
     * A source that generates the JSON of ads and advertiser pages, because the database does not contain this JSON.
     */
    generatedRecords: GeneratedRecords;
    /** The time to which the dates in the database are relative, in Unix milliseconds. */
    dateOriginMs: number;
  };
  /** Called for unexpected errors, e.g. to log them. The client only receives status 500 without details. */
  onError?: ((error: unknown) => void) | undefined;
};

/** The open database of a library, and the stores of records, keys and collections in it. All requests share them. */
export type ServiceContext = ReturnType<typeof createServiceContext>;

type ContextOptions = Required<Pick<LibraryOptions, 'now' | 'random'>> & { demo: LibraryOptions['demo'] | undefined };

/** Opens the stores of a library on its database. */
export const createServiceContext = (database: Database, { now, random, demo }: ContextOptions) => ({
  database,
  recordStore: createRecordStore(database, demo?.generatedRecords),
  pictures: openPictureStore(database, now),
  collections: createCollectionStore(database, random.generateUuid),
  cursors: createCursorCodec(readCursorSecret(database, random)),
  meter: createCreditMeter(database, now),
  now,
});

/**
 * Returns the secret that signs cursors. The secret is stored in the database, so that cursors stay valid after a
 * restart.
 */
function readCursorSecret(database: Database, random: RandomSource): string {
  const secretRow = database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'cursor'");
  if (secretRow) return secretRow.value;
  const newSecret = Buffer.from(random.generateBytes(32)).toString('hex');
  database.run("INSERT INTO secrets VALUES ('cursor', ?)", [newSecret]);
  return newSecret;
}
