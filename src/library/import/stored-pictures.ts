import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TenantPictures } from '../../pictures/pictures.ts';
import { listCardMedia, selectPicture } from '../../views/ad-media.ts';
import { getPictureKey } from '../../views/media-urls.ts';
import type { UntypedFields } from '../../views/view.ts';
import type { Database } from '../database/database.ts';

/**
 * The outcome of fetching one picture. `url` is its URL, and `byteCount` is its size in bytes. `fileName` is its file
 * name in the folder of pictures, or null if the picture could not be fetched.
 */
export type PictureFetchOutcome = { url: string; fileName: string | null; byteCount: number };

/** The store of the pictures of a library, which are files in a folder. */
export type PictureStore = ReturnType<typeof openPictureStore>;

/** The content of a picture and its media type, e.g. `image/webp`. */
export type Picture = { bytes: Uint8Array; mediaType: string };

/**
 * The number of ads per batch. The library records the fetched pictures after each batch, so that an interrupted
 * command can resume after the last batch.
 */
const adsPerBatch = 25;

/**
 * Matches the name of a picture file: the SHA-256 hash and the perceptual hash of its content. Because the name
 * contains the perceptual hash, a server can compare pictures without fetching them.
 */
const pictureFileNamePattern = /^[\da-f]{64}\.[\da-f]{16}-?\.(jpeg|png|webp)$/;

/**
 * Opens the store of the pictures of a library, which are files in a folder. Stored pictures stay available after the
 * picture URLs in the ads have expired.
 * @param now returns the current time in Unix milliseconds
 */
export function openPictureStore(database: Database, now: () => number) {
  const getPicturesFolder = () =>
    database.get<{ value: string }>("SELECT value FROM secrets WHERE name = 'pictures'")?.value;
  /**
   * Returns the file name of the picture of each URL, or null if the picture could not be fetched. Omits URLs that were
   * never fetched. Pictures are stored under their key, so that the library also finds a picture by a URL that the ad
   * network has signed later. A failed attempt is stored under its URL, because another URL may still work.
   */
  function findFileNamesByUrl(urls: ReadonlySet<string>): Map<string, string | null> {
    const keyByUrl = new Map(Array.from(urls, (url) => [url, getPictureKey(url)]));
    const rows = database.all<{ address: string; file: string | null }>(
      'SELECT address, file FROM pictures WHERE address IN (SELECT value FROM json_each(?))',
      [JSON.stringify([...new Set([...urls, ...keyByUrl.values()])])],
    );
    const fileNameByUrlOrKey = new Map(rows.map(({ address, file }) => [address, file]));
    return new Map(
      Array.from(keyByUrl).flatMap(([url, key]) => {
        const fileName = fileNameByUrlOrKey.get(key) ?? fileNameByUrlOrKey.get(url);
        return fileName === undefined ? [] : [[url, fileName] as const];
      }),
    );
  }
  const listStoredFileNames = () =>
    database.all<{ file: string }>('SELECT DISTINCT file FROM pictures WHERE file IS NOT NULL').map(({ file }) => file);
  return {
    /**
     * Returns the folder in which the library stores new pictures: the requested folder, or the folder of the stored
     * pictures. If the library has no such folder, or if the folder was moved together with the database, returns the
     * default folder. `unreachableCount` is the number of stored pictures that only the earlier folder contains. The
     * library could not find these pictures any more if it used the returned folder.
     */
    findFolder({ requestedFolder, defaultFolder }: { requestedFolder?: string; defaultFolder: string }) {
      const storedFolder = getPicturesFolder();
      const lastFolder = storedFolder ?? defaultFolder;
      const hasMoved = !existsSync(lastFolder) && existsSync(defaultFolder);
      const folder = requestedFolder ?? (hasMoved ? defaultFolder : lastFolder);
      const storedFileNames = storedFolder === undefined || folder === storedFolder ? [] : listStoredFileNames();
      const unreachableFileNames = storedFileNames.filter(
        (fileName) => existsSync(join(storedFolder ?? '', fileName)) && !existsSync(join(folder, fileName)),
      );
      return { folder, storedFolder, unreachableCount: unreachableFileNames.length };
    },
    /** Saves the path of the folder in which the library stores its pictures. */
    saveFolderPath(folder: string) {
      database.run("INSERT OR REPLACE INTO secrets VALUES ('pictures', ?)", [folder]);
    },
    /**
     * Finds the pictures to fetch for the next batch of ads, and returns their URLs as `urls`. `expiredCount` is the
     * number of URLs that have expired. `lastAdNumber` is the row number of the last ad in the batch, or null after the
     * last batch. `storedBytes` is the total size of the stored pictures.
     * @param afterAdNumber the row number of the last ad in the previous batch, or 0 for the first batch
     * @param shouldRetryFailed true to include pictures that could not be fetched before, or whose files were deleted
     */
    findMissing(afterAdNumber: number, shouldRetryFailed: boolean) {
      const ads = database.all<{ number: number; json: Uint8Array }>(
        'SELECT number, json FROM ads_json WHERE number > ? ORDER BY number LIMIT ?',
        [afterAdNumber, adsPerBatch],
      );
      const pictures = ads.flatMap(({ json }) => selectAdPictures(JSON.parse(Buffer.from(json).toString()), now()));
      const urls = new Set(pictures.flatMap((picture) => ('url' in picture ? picture.url : [])));
      const expiredUrls = new Set(
        pictures.flatMap((picture) => ('reason' in picture ? (picture.expiredUrl ?? []) : [])),
      );
      for (const [url, fileName] of findFileNamesByUrl(expiredUrls)) if (fileName !== null) expiredUrls.delete(url);
      const folder = getPicturesFolder() ?? '';
      for (const [url, fileName] of findFileNamesByUrl(urls))
        if (!shouldRetryFailed || (fileName !== null && existsSync(join(folder, fileName)))) urls.delete(url);
      const missingUrlByKey = new Map(Array.from(urls, (url) => [getPictureKey(url), url]));
      const { bytes: byteCount = 0 } =
        database.get<{ bytes: number }>(
          'SELECT coalesce(sum(bytes), 0) AS bytes FROM (SELECT DISTINCT file, bytes FROM pictures)',
        ) ?? {};
      return {
        urls: [...missingUrlByKey.values()],
        expiredCount: expiredUrls.size,
        lastAdNumber: ads.at(-1)?.number ?? null,
        storedBytes: byteCount,
      };
    },
    /** Saves the outcomes of fetching pictures. */
    savePictures(fetchedPictures: readonly PictureFetchOutcome[]) {
      database.transaction(() => {
        for (const { url, fileName, byteCount } of fetchedPictures)
          database.run(
            // If a later attempt to fetch a stored picture failed, keep its file name, because the folder may only be
            // unavailable at the moment.
            `INSERT INTO pictures VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET file = excluded.file, bytes = excluded.bytes
              WHERE excluded.file IS NOT NULL`,
            [fileName === null ? url : getPictureKey(url), fileName, byteCount],
          );
      });
    },
    /** Returns the file names of the stored pictures by URL. Omits URLs without a stored picture. */
    findFileNames(urls: ReadonlySet<string>): Map<string, string> {
      if (urls.size === 0 || getPicturesFolder() === undefined) return new Map();
      return new Map(
        Array.from(findFileNamesByUrl(urls)).flatMap(([url, fileName]) =>
          fileName === null ? [] : [[url, fileName] as const],
        ),
      );
    },
    /** Reads the picture with this file name. Returns undefined if there is no such picture. */
    async readPicture(fileName: string): Promise<Picture | undefined> {
      const [, format] = pictureFileNamePattern.exec(fileName) ?? [];
      const folder = getPicturesFolder();
      if (format === undefined || folder === undefined) return undefined;
      const bytes = await readFile(join(folder, fileName)).catch(() => undefined);
      return bytes && { bytes, mediaType: `image/${format}` };
    },
  };
}

/** The maximum number of cards per ad whose pictures are stored. A card is one of the slides of a carousel ad. */
const maxCardsPerAd = 20;

/**
 * Selects the pictures of an ad: the picture of the ad itself, and the picture of each card. For a picture that cannot
 * be fetched, returns the reason instead of a URL.
 */
function selectAdPictures(ad: UntypedFields, nowMs: number) {
  const cardNumbers = Array.from(
    { length: Math.min(listCardMedia(ad).length, maxCardsPerAd) },
    (_, index) => index + 1,
  );
  return [undefined, ...cardNumbers].map((card) => selectPicture(ad, { card, now: nowMs }));
}

/** The progress or the final outcome of fetching pictures. */
export type PicturesReport = {
  fetchedCount: number;
  /** The number of pictures that could not be fetched. */
  failedCount: number;
  /** The total size of the fetched pictures, in bytes. */
  fetchedBytes: number;
  /**
   * The maximum number of pictures to fetch. A picture that appears in two batches counts twice, although it is fetched
   * only once if the first fetch succeeds.
   */
  expectedCount: number;
  /** The number of picture URLs that were skipped because they have expired. */
  expiredCount: number;
  /** The number of failures for each reason, such as a timeout. */
  failureCountByReason: Record<string, number>;
  /** True if some pictures were not fetched because the folder has reached its maximum size. */
  isFolderFull: boolean;
};

/** The options of `fetchMissingPictures`. */
export type FetchPicturesOptions = {
  folder: string;
  /** The maximum total size of the pictures in the folder, in bytes. */
  maxBytes: number;
  /** True to retry pictures that could not be fetched before, or whose files have been deleted. */
  shouldRetryFailed: boolean;
  fetchOriginal: TenantPictures['fetchOriginal'];
  makeFolder(path: string): Promise<void>;
  /** Called before the first picture is fetched, and after each picture. */
  onProgress(report: PicturesReport): void;
};

/**
 * The methods of `PictureStore` that `fetchMissingPictures` calls. They are asynchronous, because another process may
 * have the library open and execute them.
 */
type MissingPictureStore = {
  saveFolderPath(...args: Parameters<PictureStore['saveFolderPath']>): Promise<unknown>;
  findMissing(...args: Parameters<PictureStore['findMissing']>): Promise<ReturnType<PictureStore['findMissing']>>;
  savePictures(...args: Parameters<PictureStore['savePictures']>): Promise<unknown>;
};

const maxConcurrentFetches = 6;

/**
 * Fetches the pictures that a library does not have yet, and writes each picture to a file. If the process is
 * interrupted, the next call resumes after the last batch of pictures that was saved.
 */
export async function fetchMissingPictures(
  pictureStore: MissingPictureStore,
  options: FetchPicturesOptions,
): Promise<PicturesReport> {
  const { folder, maxBytes, shouldRetryFailed, fetchOriginal, makeFolder, onProgress } = options;
  const report: PicturesReport = {
    ...{ fetchedCount: 0, failedCount: 0, fetchedBytes: 0, expectedCount: 0, expiredCount: 0 },
    ...{ failureCountByReason: {}, isFolderFull: false },
  };
  // Save the path first, because `findMissing` looks for stored picture files in this folder.
  await pictureStore.saveFolderPath(folder);
  async function* readBatches() {
    for (let afterAdNumber = 0; ; ) {
      const { lastAdNumber, ...batch } = await pictureStore.findMissing(afterAdNumber, shouldRetryFailed);
      if (lastAdNumber === null) return;
      yield batch;
      afterAdNumber = lastAdNumber;
    }
  }
  for await (const { urls, expiredCount } of readBatches()) {
    report.expectedCount += urls.length;
    report.expiredCount += expiredCount;
  }
  onProgress(report);
  if (report.expectedCount > 0) await makeFolder(folder);

  async function fetchPicture(url: string): Promise<PictureFetchOutcome> {
    const picture = await fetchOriginal(url, new AbortController().signal);
    if ('reason' in picture) {
      report.failedCount++;
      countReason(report.failureCountByReason, picture.reason);
      return { url, fileName: null, byteCount: 0 };
    }
    const contentHash = createHash('sha256').update(picture.bytes).digest('hex');
    const fileName = `${contentHash}.${picture.perceptualHash}.${picture.format}`;
    // Write to a temporary file first, so that a file with the final name is always complete.
    const temporaryPath = join(folder, `${randomUUID()}.part`);
    await writeFile(temporaryPath, picture.bytes);
    await rename(temporaryPath, join(folder, fileName));
    report.fetchedCount++;
    report.fetchedBytes += picture.bytes.length;
    return { url, fileName, byteCount: picture.bytes.length };
  }

  for await (const { urls, storedBytes } of readBatches()) {
    const fetchedPictures: PictureFetchOutcome[] = [];
    // All workers take URLs from this iterator, so that each URL is fetched by exactly one worker.
    const remainingUrls = urls.values();
    let folderBytes = storedBytes;
    const runWorker = async () => {
      for (const url of remainingUrls) {
        report.isFolderFull ||= folderBytes >= maxBytes;
        if (report.isFolderFull) return;
        const picture = await fetchPicture(url);
        fetchedPictures.push(picture);
        folderBytes += picture.byteCount;
        onProgress(report);
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: maxConcurrentFetches }, runWorker));
    await pictureStore.savePictures(fetchedPictures);
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    if (report.isFolderFull) break;
  }
  return report;
}

const maxReasons = 20;

/**
 * Counts an occurrence of a reason. After `maxReasons` different reasons, new reasons are counted as "other reasons".
 */
export function countReason(countByReason: Record<string, number>, reason: string): void {
  const shouldCountAsOther = !Object.hasOwn(countByReason, reason) && Object.keys(countByReason).length >= maxReasons;
  const countedReason = shouldCountAsOther ? 'other reasons' : reason;
  countByReason[countedReason] = (countByReason[countedReason] ?? 0) + 1;
}
