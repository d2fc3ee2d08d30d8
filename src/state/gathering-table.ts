import { isDeepStrictEqual } from 'node:util';
import { type Gathering, type GatheringState, type GatheringStep, idKey } from './dataset.ts';

interface Entry {
  state: GatheringState;
  adIds: ReadonlySet<string>;
  bytes: number;
}

/** The ads that are kept. */
interface KeptAds {
  get(id: string): unknown;
}

const MAX_GATHERINGS = 500;
const MAX_BYTES = 16 * 1024 * 1024;
const GATHERING_BYTES = 1024;
/** An id in a set. */
const ID_BYTES = 128;

/** The gatherings of a dataset. The oldest are removed when there are too many. */
export class GatheringTable {
  readonly #entries = new Map<string, Entry>();
  readonly #ads: KeptAds;
  bytes = 0;
  letGo = 0;

  constructor(ads: KeptAds) {
    this.#ads = ads;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The oldest first. */
  all(): Gathering[] {
    return [...this.#entries.values()]
      .sort((left, right) => left.state.startedAt - right.state.startedAt)
      .map(({ state, adIds }) => {
        let missing = 0;
        for (const id of adIds) if (this.#ads.get(id) === undefined) missing++;
        return { ...state, adIds, missing, complete: state.ended && missing === 0 };
      });
  }

  /** Takes a step in, in whatever order steps come; the same one twice changes nothing. Returns whether it did. */
  save({ adIds, ...step }: GatheringStep): boolean {
    const state = stateOf(step);
    const known = this.#entries.get(state.id);
    const ids = new Set(known?.adIds);
    for (const id of adIds) ids.add(idKey(id));
    const newest = known === undefined || isLater(state, known.state) ? state : known.state;
    if (newest === known?.state && ids.size === known.adIds.size) return false;
    const bytes = GATHERING_BYTES + 2 * JSON.stringify(newest).length + ID_BYTES * ids.size;
    this.bytes += bytes - (known?.bytes ?? 0);
    this.#entries.set(state.id, { state: newest, adIds: ids, bytes });
    while (this.#entries.size > MAX_GATHERINGS || this.bytes > MAX_BYTES) this.removeOldest();
    return true;
  }

  /** False if there is nothing to remove. */
  removeOldest(): boolean {
    for (const [id, { bytes }] of this.#entries) {
      this.#entries.delete(id);
      this.bytes -= bytes;
      this.letGo++;
      return true;
    }
    return false;
  }
}

/** Without what else a record holds. */
function stateOf(step: GatheringState): GatheringState {
  const { id, question, filters, collectionId, parts, found, ended, cursor, startedAt, gatheredAt } = step;
  return { id, question, filters, collectionId, parts, found, ended, cursor, startedAt, gatheredAt };
}

/** One that ended is not opened again by a step that another process made at the same time. */
function isLater(state: GatheringState, known: GatheringState): boolean {
  if (state.gatheredAt !== known.gatheredAt) return state.gatheredAt > known.gatheredAt;
  return !known.ended && !isDeepStrictEqual(state, known);
}
