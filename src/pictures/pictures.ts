import { raceAbort, withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Chart } from '../charts/chart.ts';
import { TenantCache } from '../storage/tenant-cache.ts';
import { WorkerPool, WorkerTimeoutError } from '../workers/pool.ts';
import { Semaphore } from '../workers/semaphore.ts';
import {
  fetchPicture,
  type GuardedAgent,
  type MediaHosts,
  openGuardedAgent,
  type PictureFormat,
  type Resolve,
  readPictureHeader,
  resolveInDns,
  type ServedPictures,
} from './fetch-picture.ts';

interface ThumbnailOptions {
  side: number;
  signal: AbortSignal;
  /** Aborts with `signal`, or sooner: a picture that has not come by then is not shown. */
  timeUpSignal?: AbortSignal;
}

/** `print`: as `picturePrint` writes it. `isLate`: the picture may come if it is asked for again. */
type Thumbnail = { jpeg: Uint8Array; perceptualHash: string } | { reason: string; isLate?: true };

export type SheetTile = TileCaption & ({ address: string } | { reason: string });

interface TileCaption {
  number: number;
  label?: string | undefined;
  /** What stands in place of a picture that is not shown, beside the reason. */
  headline?: string | undefined;
}

interface DrawingOptions {
  signal: AbortSignal;
  /** Returns how long drawing may still take, in milliseconds, with the time that it waits for a worker. */
  drawingMs(): number;
}

interface SheetOptions extends DrawingOptions {
  /** How long to wait for pictures, in milliseconds: those that have not come by then are not shown. */
  waitMs: number;
  /** The pictures are as large as `preview` makes them, and not fetched again. */
  isOverview?: boolean;
}

/** Times in milliseconds. */
const defaultLimits = {
  maxBytes: 10_000_000,
  fetchMs: 8000,
  nonPublicAnswerMs: 2000,
  maxWorkers: 2,
  /** For decoding one picture. Drawing a sheet or a chart may take three times as long. */
  drawMs: 5000,
  /** How long a worker without work stays. */
  idleMs: 120_000,
  /** Pictures that are fetched or held until they are decoded, for all tenants together and for one. */
  maxFetches: 24,
  maxFetchesPerTenant: 6,
  maxCachedBytes: 32 * 1024 * 1024,
  cacheTtlMs: 15 * 60_000,
};

/** Each call waits with as many pictures as it shows, a report with 240. */
const maxWaitingPictures = 4096;

export interface PictureOptions {
  hosts: MediaHosts;
  servedPictures?: ServedPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
  limits?: Partial<typeof defaultLimits>;
}

export type OpenPictures = ReturnType<typeof openPictures>;
/** Pictures of ads for one caller. */
export type Pictures = ReturnType<OpenPictures['forTenant']>;

const decodeProblems = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

const drawProblems = {
  damaged: 'drawing it failed',
  slow: 'the server is busy, and drawing it took too long; the same call may draw it later',
  ended: 'drawing it failed; the same call may draw it later',
  busy: 'the server draws too many pictures now; the same call may draw it later',
} as const;

/** Pictures for all callers until it is closed, fetched under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export function openPictures({ resolve = resolveInDns, ...options }: PictureOptions) {
  const { hosts, servedPictures, userAgent, now, random } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const { maxWorkers, idleMs, drawMs, maxFetches: maxRunning, maxFetchesPerTenant: maxRunningPerKey } = limits;
  let agentPromise: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A name that is not found in time counts as one that does not exist.
    agentPromise ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.nonPublicAnswerMs * 0.9 });
    return agentPromise;
  };
  // One job at a time for each tenant.
  const workers = new WorkerPool<DrawRequest, DrawReply>({ worker, maxWorkers, idleMs, workName: 'pictures' });
  /** A turn lasts until the bytes of the picture are released, so that few wait in memory for a decoder. */
  const fetches = new Semaphore({
    maxRunning,
    maxRunningPerKey,
    maxWaiting: maxWaitingPictures,
    workName: 'pictures',
  });
  const thumbnails = new TenantCache<Thumbnail>({ maxBytes: limits.maxCachedBytes, ttlMs: limits.cacheTtlMs, now });
  /** Thumbnails that are being made, each for everyone who has asked for it since. */
  const inFlight = new Map<string, { result: Promise<Thumbnail>; abort: AbortController; callers: number }>();

  function drawInWorker(tenantId: string, request: DrawRequest, signal: AbortSignal) {
    const ms = request.type === 'thumbnail' ? drawMs : 3 * drawMs;
    // An abort does not stop the thread; its turn ends when it does.
    const drawing = workers.runInSlot(tenantId, signal, async () => {
      const worker = workers.takeIdleWorker() ?? workers.startWorker(undefined);
      try {
        const drawing = await worker.sendRequest(request, { ms });
        // What a picture that cannot be decoded leaves in memory is unknown.
        if (drawing === undefined) void worker.terminate();
        return drawing ?? { failed: 'damaged' as const };
      } catch (error) {
        return { failed: error instanceof WorkerTimeoutError ? ('slow' as const) : ('ended' as const) };
      } finally {
        workers.returnToIdle(worker);
      }
    });
    return raceAbort(drawing, signal);
  }

  /**
   * Draws a sheet or a chart. Returns a reason where that fails or takes longer than `drawingMs`, because the caller has
   * a result without the drawing. Rejects only if the signal aborts.
   */
  async function drawOrExplain(
    tenantId: string,
    request: DrawRequest,
    { signal, drawingMs }: DrawingOptions,
  ): Promise<Drawing | { reason: string }> {
    try {
      const drawing = await withDeadline({ signals: [signal], ms: drawingMs() }, (timeUpSignal) =>
        drawInWorker(tenantId, request, timeUpSignal),
      );
      return 'failed' in drawing ? { reason: drawProblems[drawing.failed] } : drawing;
    } catch (error) {
      signal.throwIfAborted();
      const isBusy = error instanceof AdLibraryError && error.failure.kind === 'busy';
      const isLate = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isBusy && !isLate) throw error;
      return { reason: drawProblems[isBusy ? 'busy' : 'slow'] };
    }
  }

  /** A picture with its thumbnail. One that is `undecodable` need not be tried again at once. */
  const decode = (tenantId: string, address: string, side: number, signal: AbortSignal) =>
    fetches.run(tenantId, signal, async () => {
      const fetched = await fetchPicture(address, { hosts, agent, servedPictures, userAgent, limits }, signal);
      if ('reason' in fetched) return fetched;
      const { bytes } = fetched;
      const header = readPictureHeader(bytes);
      if ('reason' in header) return header;
      const { format } = header;
      const drawing = await drawInWorker(tenantId, { type: 'thumbnail', format, bytes, side }, signal);
      if ('failed' in drawing) return { reason: decodeProblems[drawing.failed], undecodable: true };
      return { bytes, format, jpeg: drawing.jpeg, perceptualHash: drawing.perceptualHash ?? '' };
    });

  async function loadThumbnail(
    tenantId: string,
    address: string,
    side: number,
    signal: AbortSignal,
  ): Promise<Thumbnail> {
    const decoded = await decode(tenantId, address, side, signal);
    if ('reason' in decoded && !('undecodable' in decoded)) return decoded;
    const value =
      'reason' in decoded ? { reason: decoded.reason } : { jpeg: decoded.jpeg, perceptualHash: decoded.perceptualHash };
    const bytes = 'jpeg' in value ? value.jpeg.length : 0;
    thumbnails.set(tenantId, `${side} ${address}`, { value, bytes });
    return value;
  }

  function forTenant(tenantId: string) {
    /**
     * The picture at the address, shrunk to fit a square of `side` pixels, as JPEG; or why it is not shown. Rejects only
     * if the signal aborts or too many pictures are waiting, never for what a host does.
     *
     * Callers that ask for the same picture at the same time share one promise. The work ends early when the last of
     * them has left.
     */
    async function thumbnail(
      address: string,
      { side, signal, timeUpSignal = signal }: ThumbnailOptions,
    ): Promise<Thumbnail> {
      const cachedThumbnail = thumbnails.get(tenantId, `${side} ${address}`);
      if (cachedThumbnail) return cachedThumbnail;
      const key = `${tenantId} ${side} ${address}`;
      try {
        timeUpSignal.throwIfAborted();
        let sharedWork = inFlight.get(key);
        if (sharedWork === undefined) {
          const abort = new AbortController();
          sharedWork = { result: loadThumbnail(tenantId, address, side, abort.signal), abort, callers: 0 };
          inFlight.set(key, sharedWork);
        }
        sharedWork.callers++;
        try {
          return await raceAbort(sharedWork.result, timeUpSignal);
        } finally {
          sharedWork.callers--;
          if (sharedWork.callers === 0) {
            inFlight.delete(key);
            sharedWork.abort.abort(timeUpSignal.reason);
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        if (timeUpSignal.aborted) return { reason: 'there was no time left for it', isLate: true };
        throw error;
      }
    }

    return {
      thumbnail,
      /** The picture as a full sheet shows it. */
      preview: (address: string, thumbnailOptions: Omit<ThumbnailOptions, 'side'>) =>
        thumbnail(address, { ...thumbnailOptions, side: previewSide }),
      /** The bytes as the host sent them, if they could be decoded within the limits; otherwise the reason why not. */
      original: (address: string, signal: AbortSignal) => decode(tenantId, address, previewSide, signal),
      /**
       * Draws one sheet of numbered pictures as JPEG. Without any picture there is no sheet, because it would only cost
       * its reader. Where the sheet could not be drawn, there is a reason instead.
       */
      async sheet(
        tiles: readonly SheetTile[],
        { signal, waitMs, drawingMs, isOverview = false }: SheetOptions,
      ): Promise<{ tiles: FetchedTile[]; jpeg?: Uint8Array; reason?: string }> {
        const grid = computeGrid(isOverview ? maxTiles : tiles.length);
        const fetchedTiles = await withDeadline({ signals: [signal], ms: waitMs }, (timeUpSignal) =>
          Promise.all(
            tiles.map(async (tile): Promise<FetchedTile> => {
              if ('reason' in tile) return tile;
              const { address, ...texts } = tile;
              return { ...texts, ...(await thumbnail(address, { side: grid.side, signal, timeUpSignal })) };
            }),
          ),
        );
        if (fetchedTiles.every((tile) => 'reason' in tile)) return { tiles: fetchedTiles };
        const request = { type: 'sheet', word: generateWord(random()), grid, tiles: fetchedTiles } as const;
        const drawing = await drawOrExplain(tenantId, request, { signal, drawingMs });
        return { ...('jpeg' in drawing ? { jpeg: drawing.jpeg } : drawing), tiles: fetchedTiles };
      },
      /** Draws a chart as JPEG of at most 200,000 bytes, or returns the reason why it was not drawn. */
      chart: (chart: Chart, options: DrawingOptions) => drawOrExplain(tenantId, { type: 'chart', chart }, options),
    };
  }

  return {
    forTenant,
    async close() {
      await workers.close();
      await (await agentPromise)?.destroy();
    },
  };
}

const worker = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './picture-worker.js' };

/** A call of the worker, which answers each call before it takes the next. */
export type DrawRequest =
  /** Shrinks a picture to fit a square. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; side: number }
  | { type: 'sheet'; word: string; grid: Grid; tiles: readonly FetchedTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a sheet, with the picture as `thumbnail` made it or the reason why there is none. */
export type FetchedTile = TileCaption & ({ jpeg: Uint8Array; perceptualHash?: string } | { reason: string });

/** Undefined where the picture cannot be decoded. */
export type DrawReply = Drawing | undefined;

export interface Drawing {
  jpeg: Uint8Array;
  /** For a thumbnail: as `picturePrint` writes it. */
  perceptualHash?: string;
  /** For a chart: whether names with letters that the font lacks are replaced by their row or column. */
  isNumbered?: boolean;
}

export type Grid = ReturnType<typeof computeGrid>;

/** Of a full sheet. */
const maxTiles = 12;

/** The number of columns for a number of tiles: the pictures fill the sheet, and the sheet is about as high as wide. */
const columnCounts = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

/** How a sheet is divided, in pixels; `side` is the longest side of a picture. */
export function computeGrid(tiles: number) {
  const columns = columnCounts[tiles] ?? 4;
  const [width, gap] = [1100, 14];
  const side = Math.floor((width - gap * (columns + 1)) / columns);
  return { columns, side, width, gap, headHeight: 58, labelHeight: 34 };
}

/** Pictures of one size have one hash: so large are those that are compared. */
const previewSide = computeGrid(maxTiles).side;

/** A word of six letters that stands in no ad. @param random from 0 to less than 1 */
function generateWord(random: number): string {
  let fraction = random;
  return Array.from({ length: 6 }, (_, at) => {
    const letters = at % 2 === 0 ? 'BDFGKLMNPRSTVZ' : 'AEIOU';
    fraction *= letters.length;
    const index = Math.floor(fraction);
    fraction -= index;
    return letters[index];
  }).join('');
}
