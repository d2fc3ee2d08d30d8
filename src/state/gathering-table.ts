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

/** The gatherings of a dataset. Those that were read longest ago are removed when there are too many. */
export class GatheringTable {
  /** The one that was read longest ago first. */
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

  /** The one that began first is first. */
  all(): Gathering[] {
    return [...this.#entries.values()]
      .sort(({ state: left }, { state: right }) => left.order - right.order || left.startedAt - right.startedAt)
      .map(({ state, adIds }) => {
        let missing = 0;
        for (const id of adIds) if (this.#ads.get(id) === undefined) missing++;
        const isBelievable = state.found !== null && state.found >= Math.max(adIds.size, state.listed);
        return {
          ...state,
          found: isBelievable ? state.found : null,
          gatheredAt: this.#timeOf(state),
          adIds,
          missing,
          complete: state.ended && missing === 0 && adIds.size >= state.listed,
        };
      });
  }

  #timeOf({ parts, gatheredAt }: GatheringState): number {
    const times = parts.flatMap((id) => this.#entries.get(id)?.state.gatheredAt ?? []);
    return times.length === 0 ? gatheredAt : Math.min(...times);
  }

  /** What brings it back as it is, in any order. */
  steps(): GatheringStep[] {
    return [...this.#entries.values()].map(({ state, adIds }) => ({ ...state, adIds: [...adIds] }));
  }

  /** Takes a step in, in whatever order steps come; the same one twice changes nothing. Returns whether it did. */
  save({ adIds, ...record }: GatheringStep): boolean {
    const state = stateOf(record);
    const known = this.#entries.get(state.id);
    const ids = new Set(known?.adIds);
    for (const id of adIds) ids.add(idKey(id));
    const newest = known === undefined || isLater(state, known.state) ? state : known.state;
    if (newest === known?.state && ids.size === known.adIds.size) return false;
    const bytes = GATHERING_BYTES + 2 * JSON.stringify(newest).length + ID_BYTES * ids.size;
    this.bytes += bytes - (known?.bytes ?? 0);
    this.#entries.set(state.id, { state: newest, adIds: ids, bytes });
    this.#keepLongest(newest);
    while (this.#entries.size > MAX_GATHERINGS || this.bytes > MAX_BYTES) this.removeOldest();
    return true;
  }

  /** What is being read is the last to be removed, with what it is a part of, and all parts of that. */
  #keepLongest({ id, parts }: GatheringState): void {
    const wholes = [...this.#entries.values()].filter(({ state }) => !state.ended && state.parts.includes(id));
    const read = [...wholes.flatMap(({ state }) => [state.id, ...state.parts]), ...parts, id];
    for (const name of new Set(read)) {
      const entry = this.#entries.get(name);
      if (entry === undefined) continue;
      this.#entries.delete(name);
      this.#entries.set(name, entry);
    }
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

/** Without what else a record holds, and with what one of an earlier version lacks. */
function stateOf(record: Omit<GatheringStep, 'adIds'>): GatheringState {
  const { id, question, filters, collectionId, parts, found, ended, cursor, startedAt, gatheredAt } = record;
  const { fresh = false, listed = 0, charged = null, order = startedAt, step = 0, answerOrder = gatheredAt } = record;
  const about = { id, question, filters, collectionId, fresh, parts };
  return { ...about, found, listed, charged, ended, cursor, order, step, answerOrder, startedAt, gatheredAt };
}

/** One that ended is not opened again by a step that another process made at the same time. */
function isLater(state: GatheringState, known: GatheringState): boolean {
  if (state.step !== known.step) return state.step > known.step;
  if (state.gatheredAt !== known.gatheredAt) return state.gatheredAt > known.gatheredAt;
  return !known.ended && !isDeepStrictEqual(state, known);
}
