import { raceAbort, withDeadline } from '../api/abort.ts';
import type { Chart } from '../charts/chart.ts';
import { TenantCache } from '../state/tenant-cache.ts';
import { WorkerLate, WorkerPool } from '../workers/pool.ts';
import { Semaphore } from '../workers/semaphore.ts';
import {
  type Fetched,
  type FetchLimits,
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

/** `print`: as `picturePrint` writes it. */
type Thumbnail = { jpeg: Uint8Array; print: string } | NotShown;
type Original = { bytes: Uint8Array; format: PictureFormat; print: string } | NotShown;

interface NotShown {
  reason: string;
  /** The picture may come if it is asked for again. */
  isLate?: true;
}

/** A picture to fetch, or why there is none. */
export type SheetTile = TileTexts & ({ address: string } | { reason: string });

interface TileTexts {
  number: number;
  /** Stands beside the number. */
  label?: string | undefined;
  /** What stands in place of a picture that is not shown, beside the reason. */
  headline?: string | undefined;
}

interface SheetOptions {
  signal: AbortSignal;
  /** How long to wait for pictures, in milliseconds: those that have not come by then are not shown. */
  waitMs: number;
  /** The pictures are as large as `preview` makes them, and not fetched again. */
  isOverview?: boolean;
}

interface Sheet {
  /** Undefined where no picture could be shown: an image without pictures would only cost its reader. */
  jpeg?: Uint8Array;
  tiles: readonly DrawnTile[];
}

interface PictureLimits extends FetchLimits {
  maxWorkers: number;
  /**
   * How long decoding one picture may take, in milliseconds. Drawing a sheet or a chart may take three times as long.
   */
  drawMs: number;
  /** How long a worker without work stays, in milliseconds. */
  idleMs: number;
  /** Pictures that are fetched or held until they are decoded, for all tenants together and for one. */
  maxFetches: number;
  maxFetchesPerTenant: number;
  /** Thumbnails, and how long they are cached, in milliseconds. */
  maxCachedBytes: number;
  cachedMs: number;
}

const defaults: PictureLimits = {
  maxBytes: 10_000_000,
  fetchMs: 8000,
  notPublicMs: 2000,
  maxWorkers: 2,
  drawMs: 5000,
  idleMs: 120_000,
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
  limits?: Partial<PictureLimits>;
}

/** Pictures for all callers, until it is closed. */
export interface OpenPictures {
  forTenant(tenantId: string): Pictures;
  close(): Promise<void>;
}

export function openPictures(options: PictureOptions): OpenPictures {
  const { hosts, ownPictures, userAgent, now, random, resolve = resolveInDns } = options;
  const limits = { ...defaults, ...options.limits };
  let opened: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A name that is not found in time counts as one that does not exist.
    opened ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.notPublicMs * 0.9 });
    return opened;
  };
  const { maxWorkers, idleMs } = limits;
  const workers: DrawingPool = new WorkerPool({ worker, maxWorkers, idleMs, name: 'pictures' });
  const parts: PictureParts = {
    fetch: (address, signal) => fetchPicture(address, { hosts, agent, ownPictures, userAgent, limits }, signal),
    fetches: new Semaphore({
      maxRunning: limits.maxFetches,
      perKey: limits.maxFetchesPerTenant,
      maxWaiting: maxPicturesWaiting,
      name: 'pictures',
    }),
    inFlight: new Map(),
    draw: (request, tenantId, signal) => {
      // An abort does not stop the thread; its turn ends when it does.
      const ms = request.type === 'thumbnail' ? limits.drawMs : 3 * limits.drawMs;
      const turn = workers.inTurn(tenantId, signal, () => drawWithin(request, workers, ms));
      return raceAbort(turn, signal);
    },
    cached: new TenantCache({ maxBytes: limits.maxCachedBytes, ttl: limits.cachedMs, now }),
    random,
  };
  return {
    forTenant: (tenantId) => new Pictures(tenantId, parts),
    close: async () => {
      await workers.close();
      await (await opened)?.destroy();
    },
  };
}

/** What the pictures of all callers share. */
interface PictureParts {
  fetch(address: string, signal: AbortSignal): Promise<Fetched>;
  /** A turn lasts until the bytes of the picture are released, so that few wait in memory for a decoder. */
  fetches: Semaphore;
  inFlight: Map<string, InFlight>;
  draw(
    request: DrawRequest,
    tenantId: string,
    signal: AbortSignal,
  ): Promise<Drawing | { failed: keyof typeof failures }>;
  /** Thumbnails of each tenant, by side and address. A picture that could not be decoded is not tried again at once. */
  cached: TenantCache<Thumbnail>;
  random(): number;
}

/** A thumbnail that is being made, for everyone who has asked for it since. */
interface InFlight {
  result: Promise<Thumbnail>;
  abort: AbortController;
  callers: number;
}

const failures = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

/** Pictures of ads for one caller, fetched under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export class Pictures {
  readonly #tenantId: string;
  readonly #parts: PictureParts;

  constructor(tenantId: string, parts: PictureParts) {
    this.#tenantId = tenantId;
    this.#parts = parts;
  }

  /**
   * The picture at the address, shrunk to fit a square of `side` pixels, as JPEG; or why it is not shown. Rejects only if
   * the signal aborts or too many pictures are waiting, never for what a host does.
   */
  async thumbnail(address: string, { side, signal, timeUp = signal }: ThumbnailOptions): Promise<Thumbnail> {
    const { cached } = this.#parts;
    const name = `${side} ${address}`;
    try {
      return (
        cached.get(this.#tenantId, name) ??
        (await this.#share(name, timeUp, (abort) => this.#make(address, side, abort)))
      );
    } catch (error) {
      signal.throwIfAborted();
      if (timeUp.aborted) return { reason: 'there was no time left for it', isLate: true };
      throw error;
    }
  }

  /** The picture as a full sheet shows it. */
  preview = (address: string, options: Omit<ThumbnailOptions, 'side'>): Promise<Thumbnail> =>
    this.thumbnail(address, { ...options, side: previewSide });

  /** One sheet of numbered pictures as JPEG. The same picture is fetched once. */
  async sheet(tiles: readonly SheetTile[], { signal, waitMs, isOverview = false }: SheetOptions): Promise<Sheet> {
    const grid = gridOf(isOverview ? maxTiles : tiles.length);
    const drawn = await withDeadline({ signals: [signal], ms: waitMs }, (timeUp) =>
      Promise.all(
        tiles.map(async (tile): Promise<DrawnTile> => {
          if ('reason' in tile) return tile;
          const { address, ...texts } = tile;
          return { ...texts, ...(await this.thumbnail(address, { side: grid.side, signal, timeUp })) };
        }),
      ),
    );
    if (drawn.every((tile) => 'reason' in tile)) return { tiles: drawn };
    const word = wordAt(this.#parts.random());
    const { jpeg } = await this.#draw({ type: 'sheet', word, grid, tiles: drawn }, signal);
    return { jpeg, tiles: drawn };
  }

  /** A chart as JPEG, at most 200,000 bytes. */
  chart = (chart: Chart, signal: AbortSignal): Promise<Drawing> => this.#draw({ type: 'chart', chart }, signal);

  async #draw(request: DrawRequest, signal: AbortSignal): Promise<Drawing> {
    const drawn = await this.#parts.draw(request, this.#tenantId, signal);
    if ('failed' in drawn) throw new Error(`The ${request.type} could not be drawn: ${drawn.failed}.`);
    return drawn;
  }

  /**
   * Callers that ask for the same picture at the same time share one promise. The work ends early when the last of them
   * has left.
   */
  async #share(
    name: string,
    signal: AbortSignal,
    make: (signal: AbortSignal) => Promise<Thumbnail>,
  ): Promise<Thumbnail> {
    signal.throwIfAborted();
    const { inFlight } = this.#parts;
    const key = `${this.#tenantId} ${name}`;
    let shared = inFlight.get(key);
    if (shared === undefined) {
      const abort = new AbortController();
      shared = { result: make(abort.signal), abort, callers: 0 };
      inFlight.set(key, shared);
    }
    shared.callers++;
    try {
      return await raceAbort(shared.result, signal);
    } finally {
      shared.callers--;
      if (shared.callers === 0) {
        inFlight.delete(key);
        shared.abort.abort(signal.reason);
      }
    }
  }

  /** The bytes as the host sent them, if they could be decoded within the limits; otherwise the reason why not. */
  async original(address: string, signal: AbortSignal): Promise<Original> {
    const decoded = await this.#decode(address, previewSide, signal);
    return 'reason' in decoded ? { reason: decoded.reason } : decoded;
  }

  async #make(address: string, side: number, signal: AbortSignal): Promise<Thumbnail> {
    const decoded = await this.#decode(address, side, signal);
    if ('reason' in decoded && decoded.isUnread) return { reason: decoded.reason };
    const made = 'reason' in decoded ? { reason: decoded.reason } : { jpeg: decoded.jpeg, print: decoded.print };
    const bytes = 'jpeg' in made ? made.jpeg.length : 0;
    this.#parts.cached.set(this.#tenantId, `${side} ${address}`, { value: made, bytes });
    return made;
  }

  async #decode(address: string, side: number, signal: AbortSignal): Promise<Decoded> {
    const { fetches, fetch, draw } = this.#parts;
    const tenantId = this.#tenantId;
    return fetches.run(tenantId, signal, async () => {
      const fetched = await fetch(address, signal);
      if ('reason' in fetched) return { ...fetched, isUnread: true };
      const { bytes } = fetched;
      const header = readHeader(bytes);
      if ('reason' in header) return { ...header, isUnread: true };
      const { format } = header;
      const drawn = await draw({ type: 'thumbnail', format, bytes, side }, tenantId, signal);
      if ('failed' in drawn) return { reason: failures[drawn.failed] };
      return { bytes, format, jpeg: drawn.jpeg, print: drawn.print ?? '' };
    });
  }
}

/** A decoded picture and its thumbnail. A picture that was not read may be tried again at once. */
type Decoded =
  | { bytes: Uint8Array; format: PictureFormat; jpeg: Uint8Array; print: string }
  | { reason: string; isUnread?: true };

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

/** How a sheet is divided, in pixels. */
export interface Grid {
  columns: number;
  /** The longest side of a picture. */
  side: number;
  width: number;
  gap: number;
  headHeight: number;
  labelHeight: number;
}

/** Of a full sheet. */
const maxTiles = 12;

/** The number of columns for a number of tiles: the pictures fill the sheet, and the sheet is about as high as wide. */
const columnsFor = [1, 1, 2, 3, 2, 3, 3, 3, 3, 3, 4, 4, 4];

export function gridOf(tiles: number): Grid {
  const columns = columnsFor[tiles] ?? 4;
  const [width, gap] = [1100, 14];
  return {
    columns,
    side: Math.floor((width - gap * (columns + 1)) / columns),
    width,
    gap,
    headHeight: 58,
    labelHeight: 34,
  };
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

const worker = { from: import.meta.url, source: './worker.ts', built: './picture-worker.js' };

/** A few threads that decode pictures and draw sheets for all tenants, one job at a time for each tenant. */
type DrawingPool = WorkerPool<DrawRequest, DrawReply>;

async function drawWithin(request: DrawRequest, workers: DrawingPool, ms: number) {
  const worker = workers.takeIdle() ?? workers.start(undefined);
  try {
    const drawing = await worker.ask(request, { ms });
    // What a picture that cannot be decoded leaves in memory is unknown.
    if (drawing === undefined) void worker.end();
    return drawing ?? { failed: 'damaged' as const };
  } catch (error) {
    return { failed: error instanceof WorkerLate ? ('slow' as const) : ('ended' as const) };
  } finally {
    workers.rest(worker);
  }
}
