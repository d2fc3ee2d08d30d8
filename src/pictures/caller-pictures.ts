import { createHash } from 'node:crypto';
import type { LRUCache } from 'lru-cache';
import { withDeadline } from '../api/abort.ts';
import type { FairStore } from '../state/fair-store.ts';
import type { Turns } from '../workers/turns.ts';
import type { CoalescedWork } from './coalesced-work.ts';
import type { Fetched } from './fetch-picture.ts';
import type { DrawnTile } from './messages.ts';
import { readHeader } from './picture-header.ts';
import type { Drawn, PictureWorkers } from './picture-workers.ts';
import type { Pictures, Sheet, SheetOptions, SheetTile, Thumbnail, ThumbnailOptions } from './pictures.ts';
import { gridOf } from './sheet-layout.ts';
import { wordAt } from './words.ts';

/** What the pictures of all callers share. */
export interface PictureParts {
  fetch(address: string, signal: AbortSignal): Promise<Fetched>;
  /** A turn lasts until the bytes of the picture are let go, so that few wait in memory for a decoder. */
  fetches: Turns;
  underWay: CoalescedWork<Thumbnail>;
  workers: PictureWorkers;
  kept: FairStore<Uint8Array>;
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

export class CallerPictures implements Pictures {
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
