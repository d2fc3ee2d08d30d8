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
  /** The side of the square that the thumbnail has to fit, in pixels. */
  side: number;
  signal: AbortSignal;
  /** Aborts together with `signal` or sooner. A picture that has not arrived by then is not shown. */
  timeUpSignal?: AbortSignal;
}

/**
 * A thumbnail with the hash that `computePerceptualHash` returns, or the reason why there is none. `isLate` is set if the
 * picture may arrive when it is requested again.
 */
type Thumbnail = { jpeg: Uint8Array; perceptualHash: string } | { reason: string; isLate?: true };

/** A tile to draw on a sheet. */
export type SheetTile = TileCaption & ({ address: string } | { reason: string });

/** The texts of a tile. */
interface TileCaption {
  number: number;
  label?: string | undefined;
  /** The headline of the ad. A tile without a picture shows it with the reason. */
  headline?: string | undefined;
}

interface DrawingOptions {
  signal: AbortSignal;
  /** Returns how long drawing may still take, in milliseconds. This includes the time that it waits for a worker. */
  drawingMs(): number;
}

interface SheetOptions extends DrawingOptions {
  /** How long to wait for pictures, in milliseconds. Pictures that have not arrived by then are not shown. */
  waitMs: number;
  /** Whether the pictures have the size of `preview`, so that they are not fetched again. */
  isOverview?: boolean;
}

/** The default limits. All times are in milliseconds. */
const defaultLimits = {
  maxBytes: 10_000_000,
  fetchMs: 8000,
  nonPublicAnswerMs: 2000,
  maxWorkers: 2,
  /** The time limit for decoding one picture. Drawing a sheet or a chart may take three times as long. */
  drawMs: 5000,
  /** How long a worker without work stays alive. */
  idleMs: 120_000,
  /** The most pictures of all tenants that are in memory at once, while they are fetched and wait to be decoded. */
  maxFetches: 24,
  /** The same limit for one tenant. */
  maxFetchesPerTenant: 6,
  maxCachedBytes: 32 * 1024 * 1024,
  cacheTtlMs: 15 * 60_000,
};

/** The most pictures that wait for a free place. One call may wait for all pictures of its result, a report for 240. */
const maxWaitingPictures = 4096;

/** The options of `openPictures`. */
export interface PictureOptions {
  hosts: MediaHosts;
  servedPictures?: ServedPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
  limits?: Partial<typeof defaultLimits>;
}

/** The pictures of all callers. */
export type OpenPictures = ReturnType<typeof openPictures>;
/** The pictures of one caller. */
export type Pictures = ReturnType<OpenPictures['forTenant']>;

/** The reasons why a picture could not be decoded. */
const decodeProblems = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

/** The reasons why a sheet or a chart could not be drawn. */
const drawProblems = {
  damaged: 'drawing it failed',
  slow: 'the server is busy, and drawing it took too long; the same call may draw it later',
  ended: 'drawing it failed; the same call may draw it later',
  busy: 'the server draws too many pictures now; the same call may draw it later',
} as const;

/** Opens the pictures of all callers. They are fetched only from the hosts that `AD_LIBRARY_MEDIA_HOSTS` allows. */
export function openPictures({ resolve = resolveInDns, ...options }: PictureOptions) {
  const { hosts, servedPictures, userAgent, now, random } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const { maxWorkers, idleMs, drawMs, maxFetches: maxRunning, maxFetchesPerTenant: maxRunningPerKey } = limits;
  let agentPromise: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A host name that is not resolved in time counts as missing.
    agentPromise ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.nonPublicAnswerMs * 0.9 });
    return agentPromise;
  };
  // Each tenant uses one worker at a time.
  const workers = new WorkerPool<DrawRequest, DrawReply>({ worker, maxWorkers, idleMs, workName: 'pictures' });
  /** A fetch keeps its slot until the picture is decoded. This limits how many pictures wait in memory for a worker. */
  const fetches = new Semaphore({
    maxRunning,
    maxRunningPerKey,
    maxWaiting: maxWaitingPictures,
    workName: 'pictures',
  });
  const thumbnails = new TenantCache<Thumbnail>({ maxBytes: limits.maxCachedBytes, ttlMs: limits.cacheTtlMs, now });
  /** Thumbnails that are being created. Callers that request the same thumbnail share the work. */
  const inFlight = new Map<string, { result: Promise<Thumbnail>; abort: AbortController; callers: number }>();

  function drawInWorker(tenantId: string, request: DrawRequest, signal: AbortSignal) {
    const ms = request.type === 'thumbnail' ? drawMs : 3 * drawMs;
    // An abort does not stop the worker. Its slot is released when the worker has finished.
    const drawing = workers.runInSlot(tenantId, signal, async () => {
      const worker = workers.takeIdleWorker() ?? workers.startWorker(undefined);
      try {
        const drawing = await worker.sendRequest(request, { ms });
        // A picture that cannot be decoded may leave any data in the memory of the worker, so the worker ends.
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
   * Draws a sheet or a chart. Returns a reason if drawing fails or takes longer than `drawingMs`, because the caller can
   * return a result without the drawing. Rejects only if the signal aborts.
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

  /**
   * Fetches and decodes a picture. Returns its bytes and its thumbnail, or a reason. `undecodable` is set if another try
   * would fail, too.
   */
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

  /** Creates a thumbnail and caches it. A reason is cached only if another try would fail, too. */
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
     * Returns the picture at an address as a JPEG that fits a square of `side` pixels, or the reason why it is not shown.
     * Rejects only if the signal aborts or too many pictures are waiting. Failures of a host are reasons.
     *
     * Callers that request the same picture at the same time share the work. It is aborted when all of them have left.
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
      /** Returns the picture in the size that a full sheet shows. */
      preview: (address: string, thumbnailOptions: Omit<ThumbnailOptions, 'side'>) =>
        thumbnail(address, { ...thumbnailOptions, side: previewSide }),
      /** Returns the bytes that the host sent, or a reason if they cannot be decoded within the limits. */
      original: (address: string, signal: AbortSignal) => decode(tenantId, address, previewSide, signal),
      /**
       * Draws a sheet of numbered pictures as JPEG. If no picture can be shown, no sheet is drawn, because an empty sheet
       * would only cost tokens. If drawing fails, the result has a reason.
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
      /** Draws a chart as a JPEG of at most 200,000 bytes. Returns a reason if drawing fails. */
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

/** A request to the worker. The worker answers each request before it reads the next one. */
export type DrawRequest =
  /** Shrinks a picture to fit a square with this side. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; side: number }
  | { type: 'sheet'; word: string; grid: Grid; tiles: readonly FetchedTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a sheet with its thumbnail, or with the reason why there is none. */
export type FetchedTile = TileCaption & ({ jpeg: Uint8Array; perceptualHash?: string } | { reason: string });

/** The answer of the worker. Undefined if the picture cannot be decoded. */
export type DrawReply = Drawing | undefined;

/** A picture that the worker drew. */
export interface Drawing {
  jpeg: Uint8Array;
  /** For a thumbnail: the hash that `computePerceptualHash` returns. */
  perceptualHash?: string;
  /** For a chart: whether names with letters that the font lacks are replaced by their row or column. */
  isNumbered?: boolean;
}

/** The layout of a sheet. */
export type Grid = ReturnType<typeof computeGrid>;

/** The number of tiles of a full sheet. */
const maxTiles = 12;

/** The number of columns for each number of tiles. The sheet is about square and has few empty places. */
const columnCounts = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

/** Computes the layout of a sheet in pixels. `side` is the longest side of a picture. */
export function computeGrid(tiles: number) {
  const columns = columnCounts[tiles] ?? 4;
  const [width, gap] = [1100, 14];
  const side = Math.floor((width - gap * (columns + 1)) / columns);
  return { columns, side, width, gap, headHeight: 58, labelHeight: 34 };
}

/** The side of previews in pixels. Pictures are compared in this size, because the hash depends on the size. */
const previewSide = computeGrid(maxTiles).side;

/**
 * Generates a word of six letters that no ad contains. A model that repeats the word has seen the sheet.
 * @param random a random number from 0 to less than 1
 */
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
