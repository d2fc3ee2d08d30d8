import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pictures } from '../../pictures/pictures.ts';
import { listCardMedia, selectPicture } from '../../views/ad-media.ts';
import type { Fields } from '../../views/view.ts';
import type { Database } from '../database/database.ts';

/**
 * The result of fetching a picture: the name of its file, or null if the picture could not be fetched, and its size.
 */
export type FetchedPicture = { address: string; file: string | null; bytes: number };

/** The pictures that a library stores in a folder. */
export type StoredPictures = ReturnType<typeof openStoredPictures>;

/** The content of a picture, with its media type. */
export type Picture = { bytes: Uint8Array; type: string };

/** The number of ads whose pictures are fetched and noted in the database together. */
const adsPerBatch = 25;

/**
 * The name of a picture file. It contains the SHA-256 hash of the content and the perceptual hash, so that a server
 * that asks this library knows the perceptual hash without fetching the picture.
 */
const fileNamePattern = /^[\da-f]{64}\.[\da-f]{16}-?\.(jpeg|png|webp)$/;

/**
 * Opens the pictures that a library stores in a folder. Stored pictures stay available when their addresses in the ads
 * have expired.
 * @param now returns the current time in Unix milliseconds
 */
export function openStoredPictures(database: Database, now: () => number) {
  const getFolder = () => database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'pictures'")?.value;
  const findByAddress = (addresses: Iterable<string>) =>
    database.all<{ address: string; file: string | null }>(
      'SELECT address, file FROM pictures WHERE address IN (SELECT value FROM json_each(?))',
      [JSON.stringify([...addresses])],
    );
  return {
    /**
     * Returns the addresses of the pictures to fetch for the next batch of ads. `expired` counts the addresses that
     * have expired and can no longer be fetched. `lastAdNumber` is the number of the last ad of the batch, and null after the
     * last batch. `storedBytes` is the size of all stored pictures.
     * @param afterAdNumber the number of the last ad of the previous batch; 0 for the first batch
     * @param shouldRetryFailed also returns pictures that could not be fetched before, or whose files were deleted
     */
    findMissing(afterAdNumber: number, shouldRetryFailed: boolean) {
      const ads = database.all<{ number: number; json: Uint8Array }>(
        'SELECT number, json FROM ads_json WHERE number > ? ORDER BY number LIMIT ?',
        [afterAdNumber, adsPerBatch],
      );
      const pictures = ads.flatMap(({ json }) => listPictures(JSON.parse(Buffer.from(json).toString()), now()));
      const missing = new Set(pictures.flatMap((picture) => ('address' in picture ? picture.address : [])));
      const expired = new Set(pictures.flatMap((picture) => ('reason' in picture ? (picture.expired ?? []) : [])));
      for (const { address, file } of findByAddress(expired)) if (file !== null) expired.delete(address);
      const folder = getFolder() ?? '';
      for (const { address, file } of findByAddress(missing))
        if (!shouldRetryFailed || (file !== null && existsSync(join(folder, file)))) missing.delete(address);
      const { bytes = 0 } =
        database.get<{ bytes: number }>(
          'SELECT coalesce(sum(bytes), 0) AS bytes FROM (SELECT DISTINCT file, bytes FROM pictures)',
        ) ?? {};
      return {
        addresses: [...missing],
        expired: expired.size,
        lastAdNumber: ads.at(-1)?.number ?? null,
        storedBytes: bytes,
      };
    },
    /** Notes which pictures were fetched, and in which folder their files are. */
    savePictures(folder: string, fetchedPictures: readonly FetchedPicture[]) {
      database.transaction(() => {
        database.run("INSERT OR REPLACE INTO secrets VALUES ('pictures', ?)", [folder]);
        for (const { address, file, bytes } of fetchedPictures)
          database.run('INSERT OR REPLACE INTO pictures VALUES (?, ?, ?)', [address, file, bytes]);
      });
    },
    /** Returns the file name of each address whose picture is stored. */
    findFiles(addresses: ReadonlySet<string>): Map<string, string> {
      if (addresses.size === 0 || getFolder() === undefined) return new Map();
      return new Map(
        findByAddress(addresses).flatMap(({ address, file }) => (file === null ? [] : [[address, file] as const])),
      );
    },
    /** Reads a picture by the name of its file. Returns undefined if there is no such picture. */
    async readPicture(name: string): Promise<Picture | undefined> {
      const [, format] = fileNamePattern.exec(name) ?? [];
      const folder = getFolder();
      if (format === undefined || folder === undefined) return undefined;
      const bytes = await readFile(join(folder, name)).catch(() => undefined);
      return bytes && { bytes, type: `image/${format}` };
    },
  };
}

/** The largest number of cards of an ad whose pictures are stored. */
const maxCards = 20;

/** Returns the pictures of an ad that contact sheets and boards show: the picture of the ad and those of its cards. */
function listPictures(ad: Fields, now: number) {
  const cardNumbers = Array.from({ length: Math.min(listCardMedia(ad).length, maxCards) }, (_, index) => index + 1);
  return [undefined, ...cardNumbers].map((card) => selectPicture(ad, { card, now }));
}

/** The progress or the result of fetching pictures. */
export type PicturesReport = {
  /** How many pictures were fetched. */
  fetched: number;
  /** How many pictures could not be fetched. */
  failed: number;
  /** The size of the fetched pictures. */
  bytes: number;
  /** The largest number of pictures that may be fetched. It counts a picture twice if two batches contain it. */
  expectedCount: number;
  /** How many addresses have expired and cannot be fetched. */
  expired: number;
  /** The number of failed pictures by reason. */
  reasons: Record<string, number>;
  /** True if pictures were left out because the folder has reached its largest size. */
  isFolderFull: boolean;
};

/** How to fetch pictures, and where to store them. */
export type FetchPicturesOptions = {
  folder: string;
  /** The largest size of all pictures in the folder, in bytes. */
  maxBytes: number;
  /** True to try pictures again that could not be fetched before, or whose files were deleted. */
  shouldRetryFailed: boolean;
  fetch: Pictures['original'];
  makeFolder(path: string): Promise<void>;
  /** Called before the first picture is fetched, and after each picture. */
  onProgress(report: PicturesReport): void;
};

/** The part of `StoredPictures` that the fetch needs. The library may be open in another process. */
type PictureTarget = {
  findMissing(...args: Parameters<StoredPictures['findMissing']>): Promise<ReturnType<StoredPictures['findMissing']>>;
  savePictures(...args: Parameters<StoredPictures['savePictures']>): Promise<unknown>;
};

const maxConcurrentFetches = 6;

/**
 * Fetches the pictures that a library does not have yet, and writes each picture to a file. If the process is
 * interrupted, the pictures that were already noted stay, and the next call continues after them.
 */
export async function fetchMissingPictures(
  target: PictureTarget,
  options: FetchPicturesOptions,
): Promise<PicturesReport> {
  const { folder, maxBytes, shouldRetryFailed, fetch, makeFolder, onProgress } = options;
  const report: PicturesReport = {
    ...{ fetched: 0, failed: 0, bytes: 0, expectedCount: 0, expired: 0 },
    ...{ reasons: {}, isFolderFull: false },
  };
  async function* readBatches() {
    for (let lastNumber = 0; ; ) {
      const { lastAdNumber, ...batch } = await target.findMissing(lastNumber, shouldRetryFailed);
      if (lastAdNumber === null) return;
      yield batch;
      lastNumber = lastAdNumber;
    }
  }
  for await (const { addresses, expired } of readBatches()) {
    report.expectedCount += addresses.length;
    report.expired += expired;
  }
  onProgress(report);
  if (report.expectedCount > 0) await makeFolder(folder);

  async function fetchPicture(address: string): Promise<FetchedPicture> {
    const picture = await fetch(address, new AbortController().signal);
    if ('reason' in picture) {
      report.failed++;
      countReason(report.reasons, picture.reason);
      return { address, file: null, bytes: 0 };
    }
    const contentHash = createHash('sha256').update(picture.bytes).digest('hex');
    const file = `${contentHash}.${picture.perceptualHash}.${picture.format}`;
    // The file gets its final name only after it was written completely.
    const temporaryPath = join(folder, `${randomUUID()}.part`);
    await writeFile(temporaryPath, picture.bytes);
    await rename(temporaryPath, join(folder, file));
    report.fetched++;
    report.bytes += picture.bytes.length;
    return { address, file, bytes: picture.bytes.length };
  }

  for await (const { addresses, storedBytes } of readBatches()) {
    const fetchedPictures: FetchedPicture[] = [];
    // All workers take their next address from the same iterator.
    const remainingAddresses = addresses.values();
    let folderBytes = storedBytes;
    const runWorker = async () => {
      for (const address of remainingAddresses) {
        report.isFolderFull ||= folderBytes >= maxBytes;
        if (report.isFolderFull) return;
        const picture = await fetchPicture(address);
        fetchedPictures.push(picture);
        folderBytes += picture.bytes;
        onProgress(report);
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: maxConcurrentFetches }, runWorker));
    await target.savePictures(folder, fetchedPictures);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    if (report.isFolderFull) break;
  }
  return report;
}

const maxReasons = 20;

/**
 * Adds one to the count of a reason. After `maxReasons` different reasons, new reasons are counted as "other reasons".
 */
export function countReason(reasons: Record<string, number>, reason: string): void {
  const isFull = !Object.hasOwn(reasons, reason) && Object.keys(reasons).length >= maxReasons;
  const countedReason = isFull ? 'other reasons' : reason;
  reasons[countedReason] = (reasons[countedReason] ?? 0) + 1;
}
