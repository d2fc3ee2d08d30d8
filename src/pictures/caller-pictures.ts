import { createHash } from 'node:crypto';
import type { LRUCache } from 'lru-cache';
import { withDeadline } from '../api/abort.ts';
import type { FairStore } from '../state/fair-store.ts';
import type { Turns } from '../workers/turns.ts';
import type { Fetched } from './fetch-picture.ts';
import type { DrawnTile } from './messages.ts';
import { readHeader } from './picture-header.ts';
import type { PictureWorkers } from './picture-workers.ts';
import type { Pictures, Sheet, SheetOptions, SheetTile, Thumbnail } from './pictures.ts';
import { gridOf } from './sheet-layout.ts';
import { wordAt } from './words.ts';

/** What the pictures of all callers share. */
export interface PictureParts {
  fetch(address: string, signal: AbortSignal): Promise<Fetched>;
  fetches: Turns;
  workers: PictureWorkers;
  kept: FairStore<Uint8Array>;
  /** By content and size. */
  thumbnails: LRUCache<string, Uint8Array>;
  random(): number;
}

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

  async thumbnail(address: string, { side, signal }: { side: number; signal: AbortSignal }): Promise<Thumbnail> {
    const fetched = await this.#fetch(address, signal);
    return 'reason' in fetched ? fetched : this.#shrink(fetched.bytes, { side, signal });
  }

  async sheet(tiles: readonly SheetTile[], { signal, waitMs }: SheetOptions): Promise<Sheet> {
    const { side } = gridOf(tiles.length);
    const drawn = await withDeadline({ signals: [signal], ms: waitMs }, (deadline) => {
      const pictures = new Map<string, Promise<Thumbnail>>();
      const pictureAt = (address: string) => {
        const picture = pictures.get(address) ?? this.#thumbnailBefore(deadline, { address, side, signal });
        pictures.set(address, picture);
        return picture;
      };
      return Promise.all(
        tiles.map(async (tile): Promise<DrawnTile> => {
          const { number, label } = tile;
          return { number, label, ...('address' in tile ? await pictureAt(tile.address) : { reason: tile.reason }) };
        }),
      );
    });
    const word = wordAt(this.#parts.random());
    const sheet = await this.#parts.workers.draw({ type: 'sheet', word, tiles: drawn }, this.#turn(signal));
    if ('failed' in sheet) throw new Error(`The sheet could not be drawn: ${sheet.failed}.`);
    return { jpeg: sheet.jpeg, tiles: drawn.map(outcomeOf) };
  }

  async #thumbnailBefore(
    deadline: AbortSignal,
    { address, side, signal }: { address: string; side: number; signal: AbortSignal },
  ): Promise<Thumbnail> {
    try {
      return await this.thumbnail(address, { side, signal: deadline });
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.aborted) return { reason: 'there was no time left for it' };
      throw error;
    }
  }

  #turn = (signal: AbortSignal) => ({ tenantId: this.#tenantId, signal });

  async #fetch(address: string, signal: AbortSignal): Promise<Fetched> {
    const { kept, fetches, fetch } = this.#parts;
    const known = kept.get(this.#tenantId, address);
    if (known) return { bytes: known };
    const end = await fetches.take(this.#tenantId, signal);
    try {
      const fetched = await fetch(address, signal);
      if ('bytes' in fetched) kept.set(this.#tenantId, address, { value: fetched.bytes, bytes: fetched.bytes.length });
      return fetched;
    } finally {
      end();
    }
  }

  async #shrink(bytes: Uint8Array, { side, signal }: { side: number; signal: AbortSignal }): Promise<Thumbnail> {
    const { thumbnails, workers } = this.#parts;
    const header = readHeader(bytes);
    if ('reason' in header) return header;
    const { format, width, height } = header;
    const name = `${createHash('sha256').update(bytes).digest('base64')} ${side}`;
    const known = thumbnails.get(name);
    if (known) return { jpeg: known };
    const isHeavy = width * height > heavyPixels;
    const made = await workers.draw({ type: 'thumbnail', format, bytes, side }, { ...this.#turn(signal), isHeavy });
    if ('failed' in made) return { reason: failures[made.failed] };
    thumbnails.set(name, made.jpeg);
    return made;
  }
}

const outcomeOf = (tile: DrawnTile) =>
  'reason' in tile ? { number: tile.number, reason: tile.reason } : { number: tile.number };
