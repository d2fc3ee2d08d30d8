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
   * instead of the picture. If `signal` itself aborts, the call rejects.
   */
  pictureDeadlineSignal?: AbortSignal;
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
  /** Returns the time that remains for drawing, in milliseconds. The time spent waiting for a worker counts. */
  getRemainingMs(): number;
}

interface SheetOptions extends DrawingOptions {
  /** The maximum time to wait for pictures, in milliseconds. Pictures that arrive later are omitted. */
  maxWaitMs: number;
  /** True if every picture is drawn in the size that `loadPreview` uses, so that cached previews can be reused. */
  usesPreviewSize?: boolean;
}

/** The default limits for fetching and drawing pictures. All times are in milliseconds. */
const defaultLimits = {
  maxPictureBytes: 10_000_000,
  fetchTimeoutMs: 8000,
  nonPublicHostDelayMs: 2000,
  maxWorkers: 2,
  /**
   * The time limit for decoding one picture. The time limit for drawing a picture sheet or a chart is three times as
   * long.
   */
  decodeTimeoutMs: 5000,
  /** The time after which an idle worker is stopped. */
  workerIdleMs: 120_000,
  /**
   * The maximum number of pictures in memory at the same time, for all tenants together. A picture counts from the time
   * it is requested until it is decoded.
   */
  maxPicturesInMemory: 24,
  /** The maximum number of pictures in memory at the same time for one tenant (one API key). */
  maxPicturesInMemoryPerTenant: 6,
  maxCachedBytes: 32 * 1024 * 1024,
  cacheTtlMs: 15 * 60_000,
};

/**
 * The maximum number of pictures that wait to be fetched. A single call may request many pictures, e.g. the 240
 * pictures of a report.
 */
const maxWaitingPictures = 4096;

/**
 * The options of `openPictureService`. `getTime` returns a time in milliseconds, from which the age of cached pictures
 * is computed. `random` returns a random number from 0 to 1.
 */
export interface PictureServiceOptions {
  hosts: MediaHosts;
  servedPictures?: ServedPictures | undefined;
  userAgent: string;
  getTime: () => number;
  random: () => number;
  resolveHost?: ResolveHost | undefined;
  limits?: Partial<typeof defaultLimits>;
}

/**
 * Fetches and draws pictures for all tenants. `forTenant` returns the functions for one tenant (one API key), and
 * `close` closes the shared resources.
 */
export type PictureService = ReturnType<typeof openPictureService>;
/** The functions that fetch and draw pictures for one tenant (one API key). */
export type TenantPictures = ReturnType<PictureService['forTenant']>;

/** Texts that explain to a model why a picture could not be decoded. */
const decodeFailureReasons = {
  damaged: 'the picture is damaged',
  timedOut: 'decoding it takes too long',
  crashed: 'decoding it failed',
} as const;

/** Texts that explain to a model why a picture sheet or a chart could not be drawn. */
const drawFailureReasons = {
  damaged: 'drawing it failed',
  timedOut: 'the server is busy, and drawing it took too long; the same call may draw it later',
  crashed: 'drawing it failed; the same call may draw it later',
  busy: 'the server draws too many pictures now; the same call may draw it later',
} as const;

/**
 * Opens the resources that all tenants share for pictures: worker threads, a cache and an HTTP agent. Pictures are
 * fetched only from hosts that the `AD_LIBRARY_MEDIA_HOSTS` setting allows.
 */
export function openPictureService({ resolveHost = resolveInDns, ...options }: PictureServiceOptions) {
  const { hosts, servedPictures, userAgent, getTime, random } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const {
    maxWorkers,
    workerIdleMs,
    decodeTimeoutMs,
    maxPicturesInMemory: maxRunningCalls,
    maxPicturesInMemoryPerTenant: maxRunningCallsPerKey,
  } = limits;
  const getAgent = createLazyGetter(() =>
    createGuardedAgent({
      hosts,
      resolveHost,
      // The time limit for DNS is slightly shorter than `nonPublicHostDelayMs`. A host with slow DNS therefore fails
      // after the same time as a missing host.
      dnsTimeoutMs: limits.nonPublicHostDelayMs * 0.9,
    }),
  );
  // This pool lets each tenant use at most one worker at a time, so that a single tenant cannot occupy all workers.
  const workerPool = new WorkerPool<WorkerRequest, WorkerReply>({
    worker: workerModule,
    maxWorkers,
    idleMs: workerIdleMs,
    workName: 'pictures',
  });
  /** Limits the number of pictures in memory. Each picture occupies a slot from its request until it is decoded. */
  const pictureSlots = new Semaphore({
    maxRunningCalls,
    maxRunningCallsPerKey,
    maxWaitingCalls: maxWaitingPictures,
    workName: 'pictures',
  });
  const cachedThumbnails = new TenantCache<Thumbnail>({
    maxBytes: limits.maxCachedBytes,
    ttlMs: limits.cacheTtlMs,
    now: getTime,
  });
  /**
   * The thumbnails that are being created. Concurrent calls for the same thumbnail share one promise, so that the
   * picture is fetched only once.
   */
  const pendingThumbnails = new Map<
    string,
    { thumbnailPromise: Promise<Thumbnail>; abortController: AbortController; callerCount: number }
  >();

  function drawInWorker(tenantId: string, request: WorkerRequest, signal: AbortSignal) {
    const timeoutMs = request.type === 'thumbnail' ? decodeTimeoutMs : 3 * decodeTimeoutMs;
    // If `signal` aborts, only the wait for the drawing ends. The worker finishes the drawing first, and only then
    // releases its slot.
    const pendingDrawing = workerPool.runInSlot(tenantId, signal, async () => {
      const worker = workerPool.takeIdleWorker() ?? workerPool.startWorker(undefined);
      try {
        const drawing = await worker.sendRequest(request, { timeoutMs });
        // Stop a worker that could not decode a picture, because the picture may have corrupted the worker's memory.
        if (drawing === undefined) void worker.terminate();
        return drawing ?? { failure: 'damaged' as const };
      } catch (error) {
        return { failure: error instanceof WorkerTimeoutError ? ('timedOut' as const) : ('crashed' as const) };
      } finally {
        workerPool.returnToIdle(worker);
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
    request: WorkerRequest,
    { signal, getRemainingMs }: DrawingOptions,
  ): Promise<DrawnPicture | { reason: string }> {
    try {
      const drawing = await withDeadline({ signals: [signal], timeoutMs: getRemainingMs() }, (deadlineSignal) =>
        drawInWorker(tenantId, request, deadlineSignal),
      );
      return 'failure' in drawing ? { reason: drawFailureReasons[drawing.failure] } : drawing;
    } catch (error) {
      signal.throwIfAborted();
      const isBusy = error instanceof AdLibraryError && error.failure.kind === 'busy';
      const isTimedOut = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isBusy && !isTimedOut) throw error;
      return { reason: drawFailureReasons[isBusy ? 'busy' : 'timedOut'] };
    }
  }

  /**
   * Fetches and decodes a picture. Resolves to the picture's bytes and thumbnail, or to the reason why the picture
   * cannot be shown. `isUndecodable` is set if the picture could be fetched but not decoded. A retry is then useless.
   */
  const fetchAndDecode = (tenantId: string, pictureUrl: string, maxSide: number, signal: AbortSignal) =>
    pictureSlots.runInSlot(tenantId, signal, async () => {
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
      if ('failure' in drawing) return { reason: decodeFailureReasons[drawing.failure], isUndecodable: true };
      return { bytes, format, jpeg: drawing.jpeg, perceptualHash: drawing.perceptualHash ?? '' };
    });

  /**
   * Creates a thumbnail and caches it. If no thumbnail can be created, the reason is cached only if a retry would also
   * fail.
   */
  async function createThumbnail(
    tenantId: string,
    pictureUrl: string,
    maxSide: number,
    signal: AbortSignal,
  ): Promise<Thumbnail> {
    const decodedPicture = await fetchAndDecode(tenantId, pictureUrl, maxSide, signal);
    if ('reason' in decodedPicture && !('isUndecodable' in decodedPicture)) return decodedPicture;
    const thumbnail =
      'reason' in decodedPicture
        ? { reason: decodedPicture.reason }
        : { jpeg: decodedPicture.jpeg, perceptualHash: decodedPicture.perceptualHash };
    const bytes = 'jpeg' in thumbnail ? thumbnail.jpeg.length : 0;
    cachedThumbnails.set(tenantId, `${maxSide} ${pictureUrl}`, { value: thumbnail, bytes });
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
    async function loadThumbnail(
      pictureUrl: string,
      { maxSide, signal, pictureDeadlineSignal = signal }: ThumbnailOptions,
    ): Promise<Thumbnail> {
      const cachedThumbnail = cachedThumbnails.get(tenantId, `${maxSide} ${pictureUrl}`);
      if (cachedThumbnail) return cachedThumbnail;
      const key = `${tenantId} ${maxSide} ${pictureUrl}`;
      try {
        pictureDeadlineSignal.throwIfAborted();
        let pendingThumbnail = pendingThumbnails.get(key);
        if (pendingThumbnail === undefined) {
          const abortController = new AbortController();
          pendingThumbnail = {
            thumbnailPromise: createThumbnail(tenantId, pictureUrl, maxSide, abortController.signal),
            abortController,
            callerCount: 0,
          };
          pendingThumbnails.set(key, pendingThumbnail);
        }
        pendingThumbnail.callerCount++;
        try {
          return await raceAbort(pendingThumbnail.thumbnailPromise, pictureDeadlineSignal);
        } finally {
          pendingThumbnail.callerCount--;
          if (pendingThumbnail.callerCount === 0) {
            pendingThumbnails.delete(key);
            pendingThumbnail.abortController.abort(pictureDeadlineSignal.reason);
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        if (pictureDeadlineSignal.aborted) return { reason: 'there was no time left for it', isLate: true };
        throw error;
      }
    }

    return {
      loadThumbnail,
      /** Returns the picture in the size in which a full picture sheet shows it. */
      loadPreview: (pictureUrl: string, thumbnailOptions: Omit<ThumbnailOptions, 'maxSide'>) =>
        loadThumbnail(pictureUrl, { ...thumbnailOptions, maxSide: maxPreviewSide }),
      /** Returns the original bytes of a picture, or the reason why the picture cannot be fetched or decoded. */
      fetchOriginal: (pictureUrl: string, signal: AbortSignal) =>
        fetchAndDecode(tenantId, pictureUrl, maxPreviewSide, signal),
      /**
       * Draws a sheet of numbered pictures as a JPEG. Draws nothing if no picture is available, because an empty sheet
       * would only cost tokens. If drawing fails, the result contains the reason.
       */
      async drawSheet(
        tiles: readonly SheetTile[],
        { signal, maxWaitMs, getRemainingMs, usesPreviewSize = false }: SheetOptions,
      ): Promise<{ tiles: FetchedTile[]; jpeg?: Uint8Array; reason?: string }> {
        const layout = computeSheetLayout(usesPreviewSize ? maxSheetTiles : tiles.length);
        const fetchedTiles = await withDeadline({ signals: [signal], timeoutMs: maxWaitMs }, (deadlineSignal) =>
          Promise.all(
            tiles.map(async (tile): Promise<FetchedTile> => {
              if ('reason' in tile) return tile;
              const { pictureUrl, ...texts } = tile;
              return {
                ...texts,
                ...(await loadThumbnail(pictureUrl, {
                  maxSide: layout.maxPictureSide,
                  signal,
                  pictureDeadlineSignal: deadlineSignal,
                })),
              };
            }),
          ),
        );
        if (fetchedTiles.every((tile) => 'reason' in tile)) return { tiles: fetchedTiles };
        const request = { type: 'sheet', proofWord: generateProofWord(random()), layout, tiles: fetchedTiles } as const;
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
      await workerPool.close();
      await (await getAgent.getIfCreated())?.destroy();
    },
  };
}

const workerModule = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './picture-worker.js' };

/** A request to the worker thread, which decodes and draws pictures. */
export type WorkerRequest =
  /** A request to shrink a picture, so that it fits into a square with sides of `maxSide` pixels. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; maxSide: number }
  | { type: 'sheet'; proofWord: string; layout: SheetLayout; tiles: readonly FetchedTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a picture sheet with its thumbnail, or with the reason why there is no thumbnail. */
export type FetchedTile = TileCaption & ({ jpeg: Uint8Array; perceptualHash?: string } | { reason: string });

/** The reply of the worker thread to a request. Undefined if a picture cannot be decoded or drawn. */
export type WorkerReply = DrawnPicture | undefined;

/** A picture that the worker thread has drawn or reduced in size. */
export interface DrawnPicture {
  jpeg: Uint8Array;
  /** The perceptual hash of a thumbnail. Similar pictures have similar hashes. */
  perceptualHash?: string;
  /**
   * Set only for charts. True if numbers replace some names in the chart, because the font lacks the letters of these
   * names.
   */
  hasNumberedLabels?: boolean;
}

/** The layout of a picture sheet, in pixels. */
export type SheetLayout = ReturnType<typeof computeSheetLayout>;

/** The number of tiles on a full picture sheet (an image with the pictures of several ads). */
const maxSheetTiles = 12;

/**
 * The number of columns of a picture sheet, for 0 to 12 tiles. These numbers make the sheet roughly square and leave
 * few places empty.
 */
const columnCountByTileCount = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

/**
 * Computes the layout of a picture sheet. In the returned layout, `maxPictureSide` is the maximum width and height of
 * each picture, in pixels.
 */
export function computeSheetLayout(tileCount: number) {
  const columns = columnCountByTileCount[tileCount] ?? 4;
  const [width, gap] = [1100, 14];
  const maxPictureSide = Math.floor((width - gap * (columns + 1)) / columns);
  return { columns, maxPictureSide, width, gap, headerHeight: 58, labelHeight: 34 };
}

/**
 * The maximum width and height of a preview, in pixels. Perceptual hashes are always computed from previews, because a
 * hash depends on the size of the picture.
 */
const maxPreviewSide = computeSheetLayout(maxSheetTiles).maxPictureSide;

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
