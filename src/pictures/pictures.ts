import { raceAbort, withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Chart } from '../charts/chart.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import { TenantCache } from '../storage/tenant-cache.ts';
import { WorkerPool, WorkerTimeoutError } from '../workers/pool.ts';
import { Semaphore } from '../workers/semaphore.ts';
import {
  createGuardedAgent,
  fetchPicture,
  type MediaHosts,
  type PictureFormat,
  type ResolveHost,
  readPictureHeader,
  resolveInDns,
  type ServedPictures,
} from './fetch-picture.ts';

interface ThumbnailOptions {
  /** The maximum width and height of the thumbnail, in pixels. */
  maxSide: number;
  signal: AbortSignal;
  /**
   * Aborts when the time for this picture is over, at the latest when `signal` aborts. The call then returns a reason
   * instead of the picture. If `signal` aborts, the call rejects.
   */
  timeUpSignal?: AbortSignal;
}

/**
 * A thumbnail and its perceptual hash, or the reason why there is no thumbnail. `isLate` is set if the picture did not
 * arrive in time. A later request may then succeed.
 */
type Thumbnail = { jpeg: Uint8Array; perceptualHash: string } | { reason: string; isLate?: true };

/**
 * A tile of a picture sheet (one image that shows the pictures of several ads). Contains the URL of an ad's picture, or
 * the reason why the picture is missing.
 */
export type SheetTile = TileCaption & ({ pictureUrl: string } | { reason: string });

/** The texts on a tile of a picture sheet: the number of the tile, a label, and the headline of the ad. */
interface TileCaption {
  number: number;
  label?: string | undefined;
  /** The headline of the ad. If the tile has no picture, the headline is drawn together with the reason. */
  headline?: string | undefined;
}

interface DrawingOptions {
  signal: AbortSignal;
  /** Returns how many milliseconds remain for drawing. The time spent waiting for a worker counts. */
  getRemainingMs(): number;
}

interface SheetOptions extends DrawingOptions {
  /** The maximum time to wait for pictures, in milliseconds. Pictures that arrive later are left out. */
  waitMs: number;
  /** True if every picture is drawn in the size that `loadPreview` uses, so that cached previews can be reused. */
  usesPreviewSize?: boolean;
}

/** The default limits for fetching and drawing pictures. All times are in milliseconds. */
const defaultLimits = {
  maxBytes: 10_000_000,
  fetchTimeoutMs: 8000,
  nonPublicFailureMs: 2000,
  maxWorkers: 2,
  /**
   * The time limit for decoding one picture. The time limit for drawing a picture sheet or a chart is three times as
   * long.
   */
  drawTimeoutMs: 5000,
  /** The time after which an idle worker is stopped. */
  workerIdleMs: 120_000,
  /**
   * The maximum number of pictures in memory at the same time, for all tenants together. A picture counts from the time
   * it is requested until it is decoded.
   */
  maxFetches: 24,
  /** The maximum number of pictures in memory at the same time for one tenant (one API key). */
  maxFetchesPerTenant: 6,
  maxCachedBytes: 32 * 1024 * 1024,
  cacheTtlMs: 15 * 60_000,
};

/**
 * The maximum number of pictures that wait to be fetched. A single call may request many pictures, e.g. the 240
 * pictures of a report.
 */
const maxWaitingPictures = 4096;

/**
 * The options of `openPictures`. `now` returns the current time in milliseconds, and `random` returns a random number
 * from 0 to 1.
 */
export interface PictureOptions {
  hosts: MediaHosts;
  servedPictures?: ServedPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolveHost?: ResolveHost | undefined;
  limits?: Partial<typeof defaultLimits>;
}

/**
 * Fetches and draws pictures for all tenants. `forTenant` returns the functions for one tenant (one API key), and
 * `close` closes the shared resources.
 */
export type PictureService = ReturnType<typeof openPictures>;
/** The functions that fetch and draw pictures for one tenant (one API key). */
export type Pictures = ReturnType<PictureService['forTenant']>;

/** Texts that explain to a model why a picture could not be decoded. */
const decodeProblems = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

/** Texts that explain to a model why a picture sheet or a chart could not be drawn. */
const drawProblems = {
  damaged: 'drawing it failed',
  slow: 'the server is busy, and drawing it took too long; the same call may draw it later',
  ended: 'drawing it failed; the same call may draw it later',
  busy: 'the server draws too many pictures now; the same call may draw it later',
} as const;

/**
 * Opens the resources that all tenants share for pictures: worker threads, a cache and an HTTP agent. Pictures are
 * fetched only from hosts that the setting `AD_LIBRARY_MEDIA_HOSTS` allows.
 */
export function openPictures({ resolveHost = resolveInDns, ...options }: PictureOptions) {
  const { hosts, servedPictures, userAgent, now, random } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const {
    maxWorkers,
    workerIdleMs,
    drawTimeoutMs,
    maxFetches: maxRunningCalls,
    maxFetchesPerTenant: maxRunningCallsPerKey,
  } = limits;
  const getAgent = createLazyGetter(() =>
    createGuardedAgent({
      hosts,
      resolveHost,
      // Make the time limit for DNS slightly shorter than `nonPublicFailureMs`, so that a host with slow DNS fails after
      // the same time as a missing host.
      dnsTimeoutMs: limits.nonPublicFailureMs * 0.9,
    }),
  );
  // This pool lets each tenant use at most one worker at a time, so that a single tenant cannot occupy all workers.
  const workers = new WorkerPool<DrawRequest, DrawReply>({
    worker: workerModule,
    maxWorkers,
    idleMs: workerIdleMs,
    workName: 'pictures',
  });
  /** Limits the number of pictures in memory. Each picture occupies a slot from its request until it is decoded. */
  const fetchSlots = new Semaphore({
    maxRunningCalls,
    maxRunningCallsPerKey,
    maxWaitingCalls: maxWaitingPictures,
    workName: 'pictures',
  });
  const thumbnails = new TenantCache<Thumbnail>({ maxBytes: limits.maxCachedBytes, ttlMs: limits.cacheTtlMs, now });
  /**
   * The thumbnails that are being created. Concurrent calls for the same thumbnail share one promise, so that the
   * picture is fetched only once.
   */
  const pendingThumbnails = new Map<
    string,
    { thumbnailPromise: Promise<Thumbnail>; abortController: AbortController; callerCount: number }
  >();

  function drawInWorker(tenantId: string, request: DrawRequest, signal: AbortSignal) {
    const timeoutMs = request.type === 'thumbnail' ? drawTimeoutMs : 3 * drawTimeoutMs;
    // If `signal` aborts, only the wait for the drawing ends. The worker finishes the drawing first, and only then
    // releases its slot.
    const pendingDrawing = workers.runInSlot(tenantId, signal, async () => {
      const worker = workers.takeIdleWorker() ?? workers.startWorker(undefined);
      try {
        const drawing = await worker.sendRequest(request, { timeoutMs });
        // Stop a worker that could not decode a picture, because the picture may have corrupted the worker's memory.
        if (drawing === undefined) void worker.terminate();
        return drawing ?? { failed: 'damaged' as const };
      } catch (error) {
        return { failed: error instanceof WorkerTimeoutError ? ('slow' as const) : ('ended' as const) };
      } finally {
        workers.returnToIdle(worker);
      }
    });
    return raceAbort(pendingDrawing, signal);
  }

  /**
   * Draws a picture sheet or a chart. If drawing fails or takes too long, resolves to the reason, so that a tool can
   * return its result without the picture. Rejects only if the signal aborts or an unexpected error occurs.
   */
  async function drawOrExplain(
    tenantId: string,
    request: DrawRequest,
    { signal, getRemainingMs }: DrawingOptions,
  ): Promise<Drawing | { reason: string }> {
    try {
      const drawing = await withDeadline({ signals: [signal], timeoutMs: getRemainingMs() }, (timeUpSignal) =>
        drawInWorker(tenantId, request, timeUpSignal),
      );
      return 'failed' in drawing ? { reason: drawProblems[drawing.failed] } : drawing;
    } catch (error) {
      signal.throwIfAborted();
      const isBusy = error instanceof AdLibraryError && error.failure.kind === 'busy';
      const isTimedOut = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isBusy && !isTimedOut) throw error;
      return { reason: drawProblems[isBusy ? 'busy' : 'slow'] };
    }
  }

  /**
   * Fetches and decodes a picture. Resolves to the picture's bytes and thumbnail, or to the reason why the picture
   * cannot be shown. `undecodable` is set if the picture could be fetched but not decoded, so that a retry is useless.
   */
  const fetchAndDecode = (tenantId: string, pictureUrl: string, maxSide: number, signal: AbortSignal) =>
    fetchSlots.runInSlot(tenantId, signal, async () => {
      const fetchResult = await fetchPicture(
        pictureUrl,
        { hosts, getAgent, servedPictures, userAgent, limits },
        signal,
      );
      if ('reason' in fetchResult) return fetchResult;
      const { bytes } = fetchResult;
      const header = readPictureHeader(bytes);
      if ('reason' in header) return header;
      const { format } = header;
      const drawing = await drawInWorker(tenantId, { type: 'thumbnail', format, bytes, maxSide }, signal);
      if ('failed' in drawing) return { reason: decodeProblems[drawing.failed], undecodable: true };
      return { bytes, format, jpeg: drawing.jpeg, perceptualHash: drawing.perceptualHash ?? '' };
    });

  /**
   * Creates a thumbnail and caches it. If no thumbnail can be created, the reason is cached only if a retry would also
   * fail.
   */
  async function loadThumbnail(
    tenantId: string,
    pictureUrl: string,
    maxSide: number,
    signal: AbortSignal,
  ): Promise<Thumbnail> {
    const decodedPicture = await fetchAndDecode(tenantId, pictureUrl, maxSide, signal);
    if ('reason' in decodedPicture && !('undecodable' in decodedPicture)) return decodedPicture;
    const thumbnail =
      'reason' in decodedPicture
        ? { reason: decodedPicture.reason }
        : { jpeg: decodedPicture.jpeg, perceptualHash: decodedPicture.perceptualHash };
    const bytes = 'jpeg' in thumbnail ? thumbnail.jpeg.length : 0;
    thumbnails.set(tenantId, `${maxSide} ${pictureUrl}`, { value: thumbnail, bytes });
    return thumbnail;
  }

  function forTenant(tenantId: string) {
    /**
     * Returns a picture as a JPEG that fits a square of `maxSide` pixels, or the reason why the picture cannot be
     * shown. Rejects only if `signal` aborts or too many pictures are waiting.
     *
     * Concurrent calls for the same picture share one fetch, which is aborted when no call waits for the picture
     * anymore.
     */
    async function getThumbnail(
      pictureUrl: string,
      { maxSide, signal, timeUpSignal = signal }: ThumbnailOptions,
    ): Promise<Thumbnail> {
      const cachedThumbnail = thumbnails.get(tenantId, `${maxSide} ${pictureUrl}`);
      if (cachedThumbnail) return cachedThumbnail;
      const key = `${tenantId} ${maxSide} ${pictureUrl}`;
      try {
        timeUpSignal.throwIfAborted();
        let pendingThumbnail = pendingThumbnails.get(key);
        if (pendingThumbnail === undefined) {
          const abortController = new AbortController();
          pendingThumbnail = {
            thumbnailPromise: loadThumbnail(tenantId, pictureUrl, maxSide, abortController.signal),
            abortController,
            callerCount: 0,
          };
          pendingThumbnails.set(key, pendingThumbnail);
        }
        pendingThumbnail.callerCount++;
        try {
          return await raceAbort(pendingThumbnail.thumbnailPromise, timeUpSignal);
        } finally {
          pendingThumbnail.callerCount--;
          if (pendingThumbnail.callerCount === 0) {
            pendingThumbnails.delete(key);
            pendingThumbnail.abortController.abort(timeUpSignal.reason);
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        if (timeUpSignal.aborted) return { reason: 'there was no time left for it', isLate: true };
        throw error;
      }
    }

    return {
      thumbnail: getThumbnail,
      /** Returns the picture in the size in which a full picture sheet shows it. */
      loadPreview: (pictureUrl: string, thumbnailOptions: Omit<ThumbnailOptions, 'maxSide'>) =>
        getThumbnail(pictureUrl, { ...thumbnailOptions, maxSide: previewSide }),
      /** Returns the original bytes of a picture, or the reason why the picture cannot be fetched or decoded. */
      fetchOriginal: (pictureUrl: string, signal: AbortSignal) =>
        fetchAndDecode(tenantId, pictureUrl, previewSide, signal),
      /**
       * Draws a sheet of numbered pictures as a JPEG. Draws nothing if no picture is available, because an empty sheet
       * would only cost tokens. If drawing fails, the result contains the reason.
       */
      async drawSheet(
        tiles: readonly SheetTile[],
        { signal, waitMs, getRemainingMs, usesPreviewSize = false }: SheetOptions,
      ): Promise<{ tiles: FetchedTile[]; jpeg?: Uint8Array; reason?: string }> {
        const grid = computeGrid(usesPreviewSize ? maxTiles : tiles.length);
        const fetchedTiles = await withDeadline({ signals: [signal], timeoutMs: waitMs }, (timeUpSignal) =>
          Promise.all(
            tiles.map(async (tile): Promise<FetchedTile> => {
              if ('reason' in tile) return tile;
              const { pictureUrl, ...texts } = tile;
              return {
                ...texts,
                ...(await getThumbnail(pictureUrl, { maxSide: grid.maxPictureSide, signal, timeUpSignal })),
              };
            }),
          ),
        );
        if (fetchedTiles.every((tile) => 'reason' in tile)) return { tiles: fetchedTiles };
        const request = { type: 'sheet', proofWord: generateProofWord(random()), grid, tiles: fetchedTiles } as const;
        const drawing = await drawOrExplain(tenantId, request, { signal, getRemainingMs });
        return { ...('jpeg' in drawing ? { jpeg: drawing.jpeg } : drawing), tiles: fetchedTiles };
      },
      /** Draws a chart as a JPEG of at most 200,000 bytes. If drawing fails, resolves to the reason. */
      drawChart: (chart: Chart, options: DrawingOptions) => drawOrExplain(tenantId, { type: 'chart', chart }, options),
    };
  }

  return {
    forTenant,
    async close() {
      await workers.close();
      await (await getAgent.getIfCreated())?.destroy();
    },
  };
}

const workerModule = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './picture-worker.js' };

/** A request to the worker thread, which decodes and draws pictures. */
export type DrawRequest =
  /** A request to shrink a picture, so that it fits into a square with sides of `maxSide` pixels. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; maxSide: number }
  | { type: 'sheet'; proofWord: string; grid: Grid; tiles: readonly FetchedTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a picture sheet with its thumbnail, or with the reason why there is no thumbnail. */
export type FetchedTile = TileCaption & ({ jpeg: Uint8Array; perceptualHash?: string } | { reason: string });

/** The reply of the worker thread to a request. Undefined if a picture cannot be decoded or drawn. */
export type DrawReply = Drawing | undefined;

/** A picture that the worker thread has drawn or reduced in size. */
export interface Drawing {
  jpeg: Uint8Array;
  /** The perceptual hash of a thumbnail. Similar pictures have similar hashes. */
  perceptualHash?: string;
  /**
   * Set only for charts. True if numbers replace some names in the chart, because the font lacks the letters of these
   * names.
   */
  isNumbered?: boolean;
}

/** The layout of a picture sheet, in pixels. */
export type Grid = ReturnType<typeof computeGrid>;

/** The number of tiles on a full picture sheet (an image with the pictures of several ads). */
const maxTiles = 12;

/**
 * The number of columns of a picture sheet, for 0 to 12 tiles. These numbers make the sheet roughly square and leave
 * few places empty.
 */
const columnsByTileCount = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

/**
 * Computes the layout of a picture sheet. In the returned layout, `maxPictureSide` is the maximum width and height of
 * each picture, in pixels.
 */
export function computeGrid(tileCount: number) {
  const columns = columnsByTileCount[tileCount] ?? 4;
  const [width, gap] = [1100, 14];
  const maxSide = Math.floor((width - gap * (columns + 1)) / columns);
  return { columns, maxPictureSide: maxSide, width, gap, headHeight: 58, labelHeight: 34 };
}

/**
 * The maximum width and height of a preview, in pixels. Perceptual hashes are always computed from previews, because a
 * hash depends on the size of the picture.
 */
const previewSide = computeGrid(maxTiles).maxPictureSide;

/**
 * Generates a random word of six letters, which is drawn on a picture sheet. A model that can repeat the word must have
 * seen the sheet.
 * @param random a number from 0 (inclusive) to 1 (exclusive)
 */
function generateProofWord(random: number): string {
  let fraction = random;
  return Array.from({ length: 6 }, (_, letterPosition) => {
    const letters = letterPosition % 2 === 0 ? 'BDFGKLMNPRSTVZ' : 'AEIOU';
    fraction *= letters.length;
    const index = Math.floor(fraction);
    fraction -= index;
    return letters[index];
  }).join('');
}
