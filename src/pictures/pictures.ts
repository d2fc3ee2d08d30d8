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
  type OwnPictures,
  openGuardedAgent,
  type PictureFormat,
  type Resolve,
  readHeader,
  resolveInDns,
} from './fetch-picture.ts';

interface ThumbnailOptions {
  side: number;
  signal: AbortSignal;
  /** Aborts with `signal`, or sooner: a picture that has not come by then is not shown. */
  timeUp?: AbortSignal;
}

/** `print`: as `picturePrint` writes it. `isLate`: the picture may come if it is asked for again. */
type Thumbnail = { jpeg: Uint8Array; print: string } | { reason: string; isLate?: true };

export type SheetTile = TileTexts & ({ address: string } | { reason: string });

interface TileTexts {
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
const defaults = {
  maxBytes: 10_000_000,
  fetchMs: 8000,
  notPublicMs: 2000,
  maxWorkers: 2,
  /** For decoding one picture. Drawing a sheet or a chart may take three times as long. */
  drawMs: 5000,
  /** How long a worker without work stays. */
  idleMs: 120_000,
  /** Pictures that are fetched or held until they are decoded, for all tenants together and for one. */
  maxFetches: 24,
  maxFetchesPerTenant: 6,
  maxCachedBytes: 32 * 1024 * 1024,
  cachedMs: 15 * 60_000,
};

/** Each call waits with as many pictures as it shows, a report with 240. */
const maxPicturesWaiting = 4096;

export interface PictureOptions {
  hosts: MediaHosts;
  ownPictures?: OwnPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
  limits?: Partial<typeof defaults>;
}

export type OpenPictures = ReturnType<typeof openPictures>;
/** Pictures of ads for one caller. */
export type Pictures = ReturnType<OpenPictures['forTenant']>;

const failures = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

const drawingFailures = {
  damaged: 'drawing it failed',
  slow: 'the server is busy, and drawing it took too long; the same call may draw it later',
  ended: 'drawing it failed; the same call may draw it later',
  busy: 'the server draws too many pictures now; the same call may draw it later',
} as const;

/** Pictures for all callers until it is closed, fetched under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export function openPictures({ resolve = resolveInDns, ...options }: PictureOptions) {
  const { hosts, ownPictures, userAgent, now, random } = options;
  const limits = { ...defaults, ...options.limits };
  const { maxWorkers, idleMs, drawMs, maxFetches: maxRunning, maxFetchesPerTenant: perKey } = limits;
  let opened: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A name that is not found in time counts as one that does not exist.
    opened ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.notPublicMs * 0.9 });
    return opened;
  };
  // One job at a time for each tenant.
  const workers = new WorkerPool<DrawRequest, DrawReply>({ worker, maxWorkers, idleMs, workName: 'pictures' });
  /** A turn lasts until the bytes of the picture are released, so that few wait in memory for a decoder. */
  const fetches = new Semaphore({
    maxRunning,
    maxRunningPerKey: perKey,
    maxWaiting: maxPicturesWaiting,
    workName: 'pictures',
  });
  const cached = new TenantCache<Thumbnail>({ maxBytes: limits.maxCachedBytes, ttlMs: limits.cachedMs, now });
  /** Thumbnails that are being made, each for everyone who has asked for it since. */
  const inFlight = new Map<string, { result: Promise<Thumbnail>; abort: AbortController; callers: number }>();

  function draw(tenantId: string, request: DrawRequest, signal: AbortSignal) {
    const ms = request.type === 'thumbnail' ? drawMs : 3 * drawMs;
    // An abort does not stop the thread; its turn ends when it does.
    const turn = workers.runInSlot(tenantId, signal, async () => {
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
    return raceAbort(turn, signal);
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
      const drawing = await withDeadline({ signals: [signal], ms: drawingMs() }, (timeUp) =>
        draw(tenantId, request, timeUp),
      );
      return 'failed' in drawing ? { reason: drawingFailures[drawing.failed] } : drawing;
    } catch (error) {
      signal.throwIfAborted();
      const isBusy = error instanceof AdLibraryError && error.failure.kind === 'busy';
      const isLate = error instanceof DOMException && error.name === 'TimeoutError';
      if (!isBusy && !isLate) throw error;
      return { reason: drawingFailures[isBusy ? 'busy' : 'slow'] };
    }
  }

  /** A picture with its thumbnail. One that is `undecodable` need not be tried again at once. */
  const decode = (tenantId: string, address: string, side: number, signal: AbortSignal) =>
    fetches.run(tenantId, signal, async () => {
      const fetched = await fetchPicture(address, { hosts, agent, ownPictures, userAgent, limits }, signal);
      if ('reason' in fetched) return fetched;
      const { bytes } = fetched;
      const header = readHeader(bytes);
      if ('reason' in header) return header;
      const { format } = header;
      const drawing = await draw(tenantId, { type: 'thumbnail', format, bytes, side }, signal);
      if ('failed' in drawing) return { reason: failures[drawing.failed], undecodable: true };
      return { bytes, format, jpeg: drawing.jpeg, print: drawing.print ?? '' };
    });

  async function make(tenantId: string, address: string, side: number, signal: AbortSignal): Promise<Thumbnail> {
    const decoded = await decode(tenantId, address, side, signal);
    if ('reason' in decoded && !('undecodable' in decoded)) return decoded;
    const value = 'reason' in decoded ? { reason: decoded.reason } : { jpeg: decoded.jpeg, print: decoded.print };
    const bytes = 'jpeg' in value ? value.jpeg.length : 0;
    cached.set(tenantId, `${side} ${address}`, { value, bytes });
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
    async function thumbnail(address: string, { side, signal, timeUp = signal }: ThumbnailOptions): Promise<Thumbnail> {
      const before = cached.get(tenantId, `${side} ${address}`);
      if (before) return before;
      const key = `${tenantId} ${side} ${address}`;
      try {
        timeUp.throwIfAborted();
        let shared = inFlight.get(key);
        if (shared === undefined) {
          const abort = new AbortController();
          shared = { result: make(tenantId, address, side, abort.signal), abort, callers: 0 };
          inFlight.set(key, shared);
        }
        shared.callers++;
        try {
          return await raceAbort(shared.result, timeUp);
        } finally {
          shared.callers--;
          if (shared.callers === 0) {
            inFlight.delete(key);
            shared.abort.abort(timeUp.reason);
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        if (timeUp.aborted) return { reason: 'there was no time left for it', isLate: true };
        throw error;
      }
    }

    return {
      thumbnail,
      /** The picture as a full sheet shows it. */
      preview: (address: string, given: Omit<ThumbnailOptions, 'side'>) =>
        thumbnail(address, { ...given, side: previewSide }),
      /** The bytes as the host sent them, if they could be decoded within the limits; otherwise the reason why not. */
      original: (address: string, signal: AbortSignal) => decode(tenantId, address, previewSide, signal),
      /**
       * Draws one sheet of numbered pictures as JPEG. Without any picture there is no sheet, because it would only cost
       * its reader. Where the sheet could not be drawn, there is a reason instead.
       */
      async sheet(
        tiles: readonly SheetTile[],
        { signal, waitMs, drawingMs, isOverview = false }: SheetOptions,
      ): Promise<{ tiles: DrawnTile[]; jpeg?: Uint8Array; reason?: string }> {
        const grid = gridOf(isOverview ? maxTiles : tiles.length);
        const shown = await withDeadline({ signals: [signal], ms: waitMs }, (timeUp) =>
          Promise.all(
            tiles.map(async (tile): Promise<DrawnTile> => {
              if ('reason' in tile) return tile;
              const { address, ...texts } = tile;
              return { ...texts, ...(await thumbnail(address, { side: grid.side, signal, timeUp })) };
            }),
          ),
        );
        if (shown.every((tile) => 'reason' in tile)) return { tiles: shown };
        const request = { type: 'sheet', word: wordAt(random()), grid, tiles: shown } as const;
        const drawing = await drawOrExplain(tenantId, request, { signal, drawingMs });
        return { ...('jpeg' in drawing ? { jpeg: drawing.jpeg } : drawing), tiles: shown };
      },
      /** Draws a chart as JPEG of at most 200,000 bytes, or returns the reason why it was not drawn. */
      chart: (chart: Chart, options: DrawingOptions) => drawOrExplain(tenantId, { type: 'chart', chart }, options),
    };
  }

  return {
    forTenant,
    async close() {
      await workers.close();
      await (await opened)?.destroy();
    },
  };
}

const worker = { baseUrl: import.meta.url, sourcePath: './worker.ts', builtPath: './picture-worker.js' };

/** A call of the worker, which answers each call before it takes the next. */
export type DrawRequest =
  /** Shrinks a picture to fit a square. */
  | { type: 'thumbnail'; format: PictureFormat; bytes: Uint8Array; side: number }
  | { type: 'sheet'; word: string; grid: Grid; tiles: readonly DrawnTile[] }
  | { type: 'chart'; chart: Chart };

/** A tile of a sheet, with the picture as `thumbnail` made it or the reason why there is none. */
export type DrawnTile = TileTexts & ({ jpeg: Uint8Array; print?: string } | { reason: string });

/** Undefined where the picture cannot be decoded. */
export type DrawReply = Drawing | undefined;

export interface Drawing {
  jpeg: Uint8Array;
  /** For a thumbnail: as `picturePrint` writes it. */
  print?: string;
  /** For a chart: whether names with letters that the font lacks are replaced by their row or column. */
  isNumbered?: boolean;
}

export type Grid = ReturnType<typeof gridOf>;

/** Of a full sheet. */
const maxTiles = 12;

/** The number of columns for a number of tiles: the pictures fill the sheet, and the sheet is about as high as wide. */
const columnsFor = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

/** How a sheet is divided, in pixels; `side` is the longest side of a picture. */
export function gridOf(tiles: number) {
  const columns = columnsFor[tiles] ?? 4;
  const [width, gap] = [1100, 14];
  const side = Math.floor((width - gap * (columns + 1)) / columns);
  return { columns, side, width, gap, headHeight: 58, labelHeight: 34 };
}

/** Pictures of one size have one hash: so large are those that are compared. */
const previewSide = gridOf(maxTiles).side;

/** A word of six letters that stands in no ad. @param random from 0 to less than 1 */
function wordAt(random: number): string {
  let left = random;
  return Array.from({ length: 6 }, (_, at) => {
    const letters = at % 2 === 0 ? 'BDFGKLMNPRSTVZ' : 'AEIOU';
    left *= letters.length;
    const index = Math.floor(left);
    left -= index;
    return letters[index];
  }).join('');
}
