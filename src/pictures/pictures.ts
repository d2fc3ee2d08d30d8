import { createHash } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { raceAbort, withDeadline } from '../api/call.ts';
import type { Chart } from '../charts/chart.ts';
import { TenantCache } from '../state/memory-state.ts';
import { startWorker } from '../workers/start-worker.ts';
import { Turns } from '../workers/turns.ts';
import {
  type Fetched,
  type FetchLimits,
  fetchPicture,
  type GuardedAgent,
  type MediaHosts,
  type OwnPictures,
  openGuardedAgent,
  type Resolve,
  readHeader,
  resolveInDns,
} from './fetch-picture.ts';
import { type DrawnTile, type DrawReply, type DrawRequest, gridOf } from './sheet.ts';

/** Pictures of ads for one caller, fetched under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export interface Pictures {
  /**
   * The picture at the address, shrunk to fit a square of `side` pixels, as JPEG; or why it is not shown. Rejects only if
   * the signal aborts or too many pictures are waiting, never for what a host does.
   */
  thumbnail(address: string, options: ThumbnailOptions): Promise<Thumbnail>;
  /** One sheet of numbered pictures as JPEG. The same picture is fetched once. */
  sheet(tiles: readonly SheetTile[], options: SheetOptions): Promise<Sheet>;
  /** A chart as JPEG, at most 200,000 bytes. */
  chart(chart: Chart, signal: AbortSignal): Promise<Uint8Array>;
}

interface ThumbnailOptions {
  side: number;
  signal: AbortSignal;
  /** Aborts with `signal`, or sooner: then a picture that has not come is not shown. */
  timeUp?: AbortSignal;
}

type Thumbnail = { jpeg: Uint8Array } | NotShown;

interface NotShown {
  reason: string;
  /** It may come if it is asked for again. */
  isLate?: true;
}

/** A picture to fetch, or why there is none. The label stands beside the number. */
export type SheetTile = { number: number; label?: string | undefined } & ({ address: string } | { reason: string });

interface SheetOptions {
  signal: AbortSignal;
  /** How long to wait for pictures, in milliseconds: those that have not come by then are not shown. */
  waitMs: number;
}

interface Sheet {
  jpeg: Uint8Array;
  tiles: readonly TileOutcome[];
}

interface TileOutcome {
  number: number;
  /** Why it is not shown. */
  reason?: string;
}

interface PictureLimits extends FetchLimits, WorkerLimits {
  /** Pictures that are fetched or held until they are decoded, for all tenants together and for one. */
  maxFetches: number;
  maxFetchesPerTenant: number;
  /** Pictures as they came, and how long they are kept, in milliseconds. */
  maxKeptBytes: number;
  keptMs: number;
  /** Thumbnails, whoever asked for them. */
  maxThumbnailBytes: number;
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
  maxKeptBytes: 32 * 1024 * 1024,
  keptMs: 15 * 60_000,
  maxThumbnailBytes: 32 * 1024 * 1024,
};

/** Pictures that could not be decoded, and how long that is remembered. */
const failedLimits = { max: 1000, ttl: 5 * 60_000, ttlResolution: 0 };

export interface PictureOptions {
  hosts: MediaHosts;
  own?: OwnPictures | undefined;
  userAgent: string;
  now: () => number;
  random: () => number;
  resolve?: Resolve | undefined;
  limits?: Partial<PictureLimits>;
}

/** Pictures for all callers, until it is closed. */
export interface OpenPictures {
  of(tenantId: string): Pictures;
  close(): Promise<void>;
}

export function openPictures(options: PictureOptions): OpenPictures {
  const { hosts, own, userAgent, now, random, resolve = resolveInDns } = options;
  const limits = { ...defaults, ...options.limits };
  let opened: Promise<GuardedAgent> | undefined;
  const agent = () => {
    // A name that is not found in time is one that does not exist.
    opened ??= openGuardedAgent({ hosts, resolve, resolveMs: limits.notPublicMs * 0.9 });
    return opened;
  };
  const workers = new PictureWorkers(limits);
  const parts: PictureParts = {
    fetch: (address, signal) => fetchPicture(address, { hosts, agent, own, userAgent, limits }, signal),
    fetches: new Turns({
      maxRunning: limits.maxFetches,
      perTenant: limits.maxFetchesPerTenant,
      maxWaiting: 1000,
      of: 'pictures',
    }),
    underWay: new CoalescedWork(),
    workers,
    kept: new TenantCache({ maxBytes: limits.maxKeptBytes, ttl: limits.keptMs, now }),
    thumbnails: new LRUCache({
      maxSize: limits.maxThumbnailBytes,
      sizeCalculation: (jpeg) => 500 + jpeg.length,
    }),
    failed: new LRUCache({ ...failedLimits, perf: { now } }),
    random,
  };
  return {
    of: (tenantId) => new CallerPictures(tenantId, parts),
    close: async () => {
      workers.close();
      await (await opened)?.destroy();
    },
  };
}

/** What the pictures of all callers share. */
interface PictureParts {
  fetch(address: string, signal: AbortSignal): Promise<Fetched>;
  /** A turn lasts until the bytes of the picture are let go, so that few wait in memory for a decoder. */
  fetches: Turns;
  underWay: CoalescedWork<Thumbnail>;
  workers: PictureWorkers;
  kept: TenantCache<Uint8Array>;
  /** By content and size. */
  thumbnails: LRUCache<string, Uint8Array>;
  /** By content: what could not be decoded is not tried again at once. */
  failed: LRUCache<string, Failure>;
  random(): number;
}

type Failure = Extract<Drawn, { failed: unknown }>['failed'];

type MakeOptions = Pick<ThumbnailOptions, 'side' | 'signal'>;

/** Decoding more takes so much memory that the thread is not kept. */
const heavyPixels = 8_000_000;

const failures = {
  damaged: 'the picture is damaged',
  slow: 'decoding it takes too long',
  ended: 'decoding it failed',
} as const;

class CallerPictures implements Pictures {
  readonly #tenantId: string;
  readonly #parts: PictureParts;

  constructor(tenantId: string, parts: PictureParts) {
    this.#tenantId = tenantId;
    this.#parts = parts;
  }

  async thumbnail(address: string, { side, signal, timeUp = signal }: ThumbnailOptions): Promise<Thumbnail> {
    const make = (wanted: AbortSignal) => this.#make(address, { side, signal: wanted });
    try {
      return await this.#parts.underWay.do(`${this.#tenantId} ${side} ${address}`, timeUp, make);
    } catch (error) {
      signal.throwIfAborted();
      if (timeUp.aborted) return { reason: 'there was no time left for it', isLate: true };
      throw error;
    }
  }

  async sheet(tiles: readonly SheetTile[], { signal, waitMs }: SheetOptions): Promise<Sheet> {
    const { side } = gridOf(tiles.length);
    const drawn = await withDeadline({ signals: [signal], ms: waitMs }, (timeUp) =>
      Promise.all(
        tiles.map(async (tile): Promise<DrawnTile> => {
          const { number, label } = tile;
          if ('reason' in tile) return { number, label, reason: tile.reason };
          return { number, label, ...(await this.thumbnail(tile.address, { side, signal, timeUp })) };
        }),
      ),
    );
    const word = wordAt(this.#parts.random());
    const sheet = await this.#parts.workers.draw({ type: 'sheet', word, tiles: drawn }, this.#turn(signal));
    if ('failed' in sheet) throw new Error(`The sheet could not be drawn: ${sheet.failed}.`);
    return { jpeg: sheet.jpeg, tiles: drawn.map(outcomeOf) };
  }

  async chart(chart: Chart, signal: AbortSignal): Promise<Uint8Array> {
    const drawn = await this.#parts.workers.draw({ type: 'chart', chart }, this.#turn(signal));
    if ('failed' in drawn) throw new Error(`The chart could not be drawn: ${drawn.failed}.`);
    return drawn.jpeg;
  }

  #turn = (signal: AbortSignal) => ({ tenantId: this.#tenantId, signal });

  async #make(address: string, options: MakeOptions): Promise<Thumbnail> {
    const end = await this.#parts.fetches.take(this.#tenantId, options.signal);
    try {
      const fetched = await this.#fetch(address, options.signal);
      return 'reason' in fetched ? fetched : await this.#shrink(fetched.bytes, options);
    } finally {
      end();
    }
  }

  async #fetch(address: string, signal: AbortSignal): Promise<Fetched> {
    const { kept, fetch } = this.#parts;
    const known = kept.get(this.#tenantId, address);
    if (known) return { bytes: known };
    const fetched = await fetch(address, signal);
    if ('bytes' in fetched) kept.set(this.#tenantId, address, { value: fetched.bytes, bytes: fetched.bytes.length });
    return fetched;
  }

  async #shrink(bytes: Uint8Array, { side, signal }: MakeOptions): Promise<Thumbnail> {
    const { thumbnails, failed, workers } = this.#parts;
    const header = readHeader(bytes);
    if ('reason' in header) return header;
    const { format, width, height } = header;
    const content = createHash('sha256').update(bytes).digest('base64');
    const name = `${content} ${side}`;
    const known = thumbnails.get(name);
    if (known) return { jpeg: known };
    const failedBefore = failed.get(content);
    if (failedBefore) return { reason: failures[failedBefore] };
    const isHeavy = width * height > heavyPixels;
    const made = await workers.draw({ type: 'thumbnail', format, bytes, side }, { ...this.#turn(signal), isHeavy });
    if ('failed' in made) {
      failed.set(content, made.failed);
      return { reason: failures[made.failed] };
    }
    thumbnails.set(name, made.jpeg);
    return made;
  }
}

const outcomeOf = (tile: DrawnTile) =>
  'reason' in tile ? { number: tile.number, reason: tile.reason } : { number: tile.number };

interface Running<Value> {
  result: Promise<Value>;
  abort: AbortController;
  callers: number;
}

/** Whoever asks for the same at the same time shares one promise. The work ends early once the last of them has left. */
class CoalescedWork<Value> {
  readonly #running = new Map<string, Running<Value>>();

  async do(name: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
    signal.throwIfAborted();
    const running = this.#running.get(name) ?? this.#start(name, work);
    running.callers++;
    try {
      return await raceAbort(running.result, signal);
    } finally {
      running.callers--;
      if (running.callers === 0) {
        this.#running.delete(name);
        running.abort.abort(signal.reason);
      }
    }
  }

  #start(name: string, work: (signal: AbortSignal) => Promise<Value>): Running<Value> {
    const abort = new AbortController();
    const running = { result: work(abort.signal), abort, callers: 0 };
    this.#running.set(name, running);
    return running;
  }
}

/** Short nouns that nobody takes for one another, and that hardly stand in an ad. */
const words = `
ACORN ALMOND ANCHOR ANVIL APRON ARCHER AVOCADO BADGER BALCONY BAMBOO BANJO BARLEY BEACON BEAVER BISON BLANKET BOULDER
BRIDGE BUFFALO BUTTON CACTUS CAMEL CANARY CANDLE CANOE CANYON CARROT CASTLE CEDAR CELLO CHERRY CHIMNEY CIRCUS CLARINET
CLOVER COBRA COCONUT COMET COMPASS CORAL COTTAGE CRANE CRATER CRICKET CUSTARD DAGGER DAISY DOLPHIN DONKEY DRAGON DRUM
EAGLE EASEL ELBOW EMBER FALCON FEATHER FERRY FIDDLE FJORD FLAMINGO FLUTE FOSSIL FOUNTAIN GALAXY GARLIC GAZELLE GEYSER
GINGER GIRAFFE GLACIER GOBLIN GONDOLA GOOSE GRANITE GUITAR HAMMER HAMSTER HARBOR HARP HAZEL HEDGEHOG HELMET HERON
HORNET ICEBERG IGLOO ISLAND IVORY JAGUAR JASMINE JIGSAW JUNGLE KAYAK KETTLE KITTEN LADDER LAGOON LANTERN LAVENDER LEMON
LEOPARD LILAC LIZARD LOBSTER LOCKET MAGNET MAGPIE MALLET MANGO MAPLE MARBLE MEADOW MEDAL METEOR MITTEN MONSOON MOOSE
MUFFIN MUSEUM MUSTARD NECTAR NEEDLE NUTMEG OASIS OBELISK OCTOPUS OLIVE ONION ORCHARD ORCHID OSTRICH OTTER OYSTER PADDLE
PANTHER PAPAYA PARROT PEACOCK PEBBLE PELICAN PENGUIN PEPPER PIANO PIGEON PILLOW PIRATE PLANET PLUM POPPY PRETZEL PUDDLE
PUFFIN PUMPKIN PYRAMID QUARRY RABBIT RACCOON RADISH RAVEN RHUBARB RIBBON ROBIN ROOSTER SADDLE SAFFRON SALMON SCARF
SEAGULL SHAMROCK SLEIGH SPARROW SPIDER STATUE SUNDIAL SWALLOW TEAPOT TEMPLE THIMBLE THUNDER TIGER TOUCAN TRACTOR TROMBONE
TROUT TULIP TUNNEL TURNIP TURTLE UMBRELLA VALLEY VIOLET VIOLIN VOLCANO WAGON WALNUT WALRUS WEASEL WHISTLE WILLOW WINDMILL
WIZARD WOMBAT YOGURT ZEBRA ZEPPELIN
`
  .trim()
  .split(/\s+/);

/** @param random from 0 to less than 1 */
const wordAt = (random: number): string => words[Math.floor(random * words.length)] ?? 'LANTERN';

interface WorkerLimits {
  maxWorkers: number;
  /** For one picture or one sheet, in milliseconds. */
  drawMs: number;
  /** How long a worker without work is kept. */
  idleMs: number;
}

interface DrawOptions {
  tenantId: string;
  signal: AbortSignal;
  /** Ends the thread afterwards, because WebAssembly never gives back the memory it took. */
  isHeavy?: boolean;
}

type Drawn = { jpeg: Uint8Array } | { failed: 'damaged' | 'slow' | 'ended' };

const queue = { maxWaiting: 1000, of: 'pictures' };

/** A few threads that decode pictures and draw sheets for all tenants, for each one at a time. */
class PictureWorkers {
  readonly #limits: WorkerLimits;
  readonly #turns: Turns;
  /** One large picture at a time: it takes hundreds of megabytes. */
  readonly #heavyTurns = new Turns({ maxRunning: 1, perTenant: 1, ...queue });
  readonly #idle = new Map<PictureWorker, NodeJS.Timeout>();
  readonly #all = new Set<PictureWorker>();

  constructor(limits: WorkerLimits) {
    this.#limits = limits;
    this.#turns = new Turns({ maxRunning: limits.maxWorkers, perTenant: 1, ...queue });
  }

  async draw(request: DrawRequest, options: DrawOptions): Promise<Drawn> {
    const { tenantId, signal, isHeavy = false } = options;
    const endHeavy = isHeavy ? await this.#heavyTurns.take(tenantId, signal) : () => {};
    const end = await this.#turns.take(tenantId, signal).catch((error) => {
      endHeavy();
      throw error;
    });
    const drawn = this.#draw(request, isHeavy).finally(() => {
      end();
      endHeavy();
    });
    // An abort does not stop the thread; its slot is freed when it ends.
    return raceAbort(drawn, signal);
  }

  close(): void {
    for (const worker of this.#all) worker.end();
  }

  async #draw(request: DrawRequest, isHeavy: boolean): Promise<Drawn> {
    const worker = this.#take();
    const reply = await worker.ask(request, this.#limits.drawMs);
    // What a picture that cannot be decoded leaves behind is not known.
    if (isHeavy || reply === undefined) worker.end();
    if (worker.alive) this.#idle.set(worker, setTimeout(() => this.#drop(worker), this.#limits.idleMs).unref());
    else this.#drop(worker);
    if (reply === undefined) return { failed: 'damaged' };
    return typeof reply === 'string' ? { failed: reply } : { jpeg: reply };
  }

  #take(): PictureWorker {
    for (const [worker, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(worker);
      if (worker.alive) return worker;
      this.#drop(worker);
    }
    const worker = new PictureWorker();
    this.#all.add(worker);
    return worker;
  }

  #drop(worker: PictureWorker): void {
    this.#idle.delete(worker);
    this.#all.delete(worker);
    worker.end();
  }
}

/** Undefined where the picture cannot be decoded; `slow` and `ended` where the thread gave no answer. */
type DrawResult = DrawReply | 'slow' | 'ended';

const source = { from: import.meta.url, source: './worker.ts', built: './picture-worker.js' };

/** Loading the thread. */
const startMs = 20_000;

/** One thread that decodes and draws: a request is answered before the next is sent. */
class PictureWorker {
  readonly #worker: Worker;
  readonly #started: Promise<DrawResult>;
  #settle: ((result: DrawResult) => void) | undefined;
  alive = true;

  constructor() {
    this.#worker = startWorker<DrawReply>(source, {
      resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
      onMessage: (reply) => this.#settle?.(reply),
      onEnd: () => this.end(),
    });
    this.#started = this.#nextResult(startMs);
  }

  /** A thread that takes longer than it may is ended. */
  async ask(request: DrawRequest, maxMs: number): Promise<DrawResult> {
    await this.#started;
    if (!this.alive) return 'ended';
    this.#worker.postMessage(request);
    return this.#nextResult(maxMs);
  }

  end(): void {
    this.alive = false;
    this.#settle?.('ended');
    void this.#worker.terminate();
  }

  #nextResult(maxMs: number): Promise<DrawResult> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve('slow');
        this.end();
      }, maxMs);
      this.#settle = (result) => {
        clearTimeout(timer);
        resolve(result);
      };
    });
  }
}
