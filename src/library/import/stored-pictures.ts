import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pictures } from '../../pictures/pictures.ts';
import { listCardMedia, selectPicture } from '../../views/ad-media.ts';
import type { Fields } from '../../views/view.ts';
import type { Database } from '../database/database.ts';

/** A picture that was fetched: the file that holds it, if there is one, and its size in bytes. */
export type FetchedPicture = { address: string; file: string | null; bytes: number };

export type StoredPictures = ReturnType<typeof openStoredPictures>;
export type Picture = { bytes: Uint8Array; type: string };

const adsAtATime = 25;
/** Named by the hashes of its content and of what it shows, so that servers know the second without fetching it. */
const fileName = /^[\da-f]{64}\.[\da-f]{16}-?\.(jpeg|png|webp)$/;

/** The pictures that a library keeps in a folder of its own, so that they stay when their addresses have expired. */
export function openStoredPictures(database: Database, now: () => number) {
  const folderOf = () => database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'pictures'")?.value;
  const ofAddresses = (addresses: Iterable<string>) =>
    database.all<{ address: string; file: string | null }>(
      'SELECT address, file FROM pictures WHERE address IN (SELECT value FROM json_each(?))',
      [JSON.stringify([...addresses])],
    );
  return {
    /**
     * The pictures to fetch of the next ads, and how many cannot be fetched any more, because their addresses have
     * expired. `last` is the number of the last of these ads; null at the end.
     * @param shouldRetryFailed pictures that could not be fetched before, and files that are gone, count as missing again
     */
    findMissing(after: number, shouldRetryFailed: boolean) {
      const ads = database.all<{ number: number; json: Uint8Array }>(
        'SELECT number, json FROM ads_json WHERE number > ? ORDER BY number LIMIT ?',
        [after, adsAtATime],
      );
      const found = ads.flatMap(({ json }) => picturesOf(JSON.parse(Buffer.from(json).toString()), now()));
      const wanted = new Set(found.flatMap((picture) => ('address' in picture ? picture.address : [])));
      const expired = new Set(found.flatMap((picture) => ('reason' in picture ? (picture.expired ?? []) : [])));
      for (const { address, file } of ofAddresses(expired)) if (file !== null) expired.delete(address);
      const folder = folderOf() ?? '';
      for (const { address, file } of ofAddresses(wanted))
        if (!shouldRetryFailed || (file !== null && existsSync(join(folder, file)))) wanted.delete(address);
      const { bytes = 0 } =
        database.get<{ bytes: number }>(
          'SELECT coalesce(sum(bytes), 0) AS bytes FROM (SELECT DISTINCT file, bytes FROM pictures)',
        ) ?? {};
      return { addresses: [...wanted], expired: expired.size, last: ads.at(-1)?.number ?? null, storedBytes: bytes };
    },
    savePictures(folder: string, fetched: readonly FetchedPicture[]) {
      database.transaction(() => {
        database.run("INSERT OR REPLACE INTO secrets VALUES ('pictures', ?)", [folder]);
        for (const { address, file, bytes } of fetched)
          database.run('INSERT OR REPLACE INTO pictures VALUES (?, ?, ?)', [address, file, bytes]);
      });
    },
    /** Returns the file of each address whose picture is stored. */
    findFiles(addresses: ReadonlySet<string>): Map<string, string> {
      if (addresses.size === 0 || folderOf() === undefined) return new Map();
      return new Map(
        ofAddresses(addresses).flatMap(({ address, file }) => (file === null ? [] : [[address, file] as const])),
      );
    },
    async readPicture(name: string): Promise<Picture | undefined> {
      const [, format] = fileName.exec(name) ?? [];
      const folder = folderOf();
      if (format === undefined || folder === undefined) return undefined;
      const bytes = await readFile(join(folder, name)).catch(() => undefined);
      return bytes && { bytes, type: `image/${format}` };
    },
  };
}

const maxCards = 20;

/** The pictures that sheets and boards show of an ad: its own and those of its cards. */
function picturesOf(ad: Fields, now: number) {
  const cards = Array.from({ length: Math.min(listCardMedia(ad).length, maxCards) }, (_, index) => index + 1);
  return [undefined, ...cards].map((card) => selectPicture(ad, { card, now }));
}

export type PicturesReport = {
  fetched: number;
  failed: number;
  bytes: number;
  /** The most pictures that there are to fetch. */
  expectedCount: number;
  expired: number;
  reasons: Record<string, number>;
  /** Not all were fetched: the folder holds as much as it may. */
  isFolderFull: boolean;
};

export type FetchPicturesOptions = {
  folder: string;
  /** Bytes of all pictures in the folder. */
  maxBytes: number;
  shouldRetryFailed: boolean;
  fetch: Pictures['original'];
  makeFolder(path: string): Promise<void>;
  /** Called before anything is fetched, and after each picture. */
  onProgress(report: PicturesReport): void;
};

/** The pictures of a library, maybe one of another process. */
type PictureTarget = {
  findMissing(...given: Parameters<StoredPictures['findMissing']>): Promise<ReturnType<StoredPictures['findMissing']>>;
  savePictures(...given: Parameters<StoredPictures['savePictures']>): Promise<unknown>;
};

const atOnce = 6;

/**
 * Fetches the pictures that a library does not have yet, and writes each to a file. Pictures that were written before
 * an interruption stay; the next call continues there.
 */
export async function fetchMissingPictures(
  pictures: PictureTarget,
  options: FetchPicturesOptions,
): Promise<PicturesReport> {
  const { folder, maxBytes, shouldRetryFailed: isAgain, fetch, makeFolder, onProgress } = options;
  const report: PicturesReport = {
    fetched: 0,
    failed: 0,
    bytes: 0,
    expectedCount: 0,
    expired: 0,
    reasons: {},
    isFolderFull: false,
  };
  async function* missing() {
    for (let after = 0; ; ) {
      const { last, ...part } = await pictures.findMissing(after, isAgain);
      if (last === null) return;
      yield part;
      after = last;
    }
  }
  for await (const { addresses, expired } of missing()) {
    report.expectedCount += addresses.length;
    report.expired += expired;
  }
  onProgress(report);
  if (report.expectedCount > 0) await makeFolder(folder);

  async function fetchOne(address: string): Promise<FetchedPicture> {
    const got = await fetch(address, new AbortController().signal);
    if ('reason' in got) {
      report.failed++;
      countReason(report.reasons, got.reason);
      return { address, file: null, bytes: 0 };
    }
    const file = `${createHash('sha256').update(got.bytes).digest('hex')}.${got.print}.${got.format}`;
    // The file gets its name only when it is complete.
    const part = join(folder, `${randomUUID()}.part`);
    await writeFile(part, got.bytes);
    await rename(part, join(folder, file));
    report.fetched++;
    report.bytes += got.bytes.length;
    return { address, file, bytes: got.bytes.length };
  }

  for await (const { addresses, storedBytes } of missing()) {
    const done: FetchedPicture[] = [];
    const waiting = addresses.values();
    let bytes = storedBytes;
    const fetchNext = async () => {
      for (const address of waiting) {
        report.isFolderFull ||= bytes >= maxBytes;
        if (report.isFolderFull) return;
        const picture = await fetchOne(address);
        done.push(picture);
        bytes += picture.bytes;
        onProgress(report);
      }
    };
    const ended = await Promise.allSettled(Array.from({ length: atOnce }, fetchNext));
    await pictures.savePictures(folder, done);
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    if (report.isFolderFull) break;
  }
  return report;
}

const maxReasons = 20;

/** Counts a reason. Reasons after the first few are counted together. */
export function countReason(reasons: Record<string, number>, reason: string): void {
  const isFull = !Object.hasOwn(reasons, reason) && Object.keys(reasons).length >= maxReasons;
  const counted = isFull ? 'other reasons' : reason;
  reasons[counted] = (reasons[counted] ?? 0) + 1;
}
