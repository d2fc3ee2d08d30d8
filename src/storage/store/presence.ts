import { randomUUID } from 'node:crypto';
import { AdLibraryError } from '../../api/errors.ts';
import type { Documents } from './documents.ts';
import type { StateLog } from './guarded-store.ts';

/** How often a process writes a heartbeat, and after how long without one it counts as dead, in milliseconds. */
export const beatMs = 2000;
const deadMs = 7500;
/**
 * How long budgets stay closed in a store that was found empty. By then, every living process that knew another store
 * has noticed.
 */
export const newMs = 3000;
/** Longer than the lifetime of any other document. */
const historyTtlMs = 500 * 86_400_000;
/** How long a silent process is remembered, in milliseconds, and how many epochs are remembered. */
const rememberedMs = 600_000;
const maxReplaced = 20;

/** The heartbeats of all processes, and what shows them that the store lost something. */
export interface History {
  /** Differs if another store took the place of this one. */
  epoch: string;
  /** Counts up with each heartbeat. */
  beats: number;
  /** When the epoch began, by the clock of the store. */
  since: number;
  /** The epochs that this one replaced: a process that knew one of them continues with this one. */
  replaced: string[];
  /** The time and the number of the last heartbeat of each process. */
  processes: Record<string, { at: number; beat: number }>;
  /** A suspected loss, until somebody accepts it. */
  doubt?: { at: number; found: 'empty' | 'earlier' };
}

export const newHistory = (now: number): History => ({
  epoch: randomUUID(),
  beats: 0,
  since: now,
  replaced: [],
  processes: {},
});

/**
 * Records in the store that it does not continue the epoch that was seen at a time. The new epoch is another one,
 * because the same copy may be put back twice.
 */
const withDoubt = (history: History, last: { epoch: string; at: number }, now: number): History => ({
  ...history,
  epoch: randomUUID(),
  replaced: [...history.replaced, last.epoch, history.epoch].slice(-maxReplaced),
  doubt: history.doubt ?? { at: now, found: history.since > last.at ? 'empty' : 'earlier' },
});

/**
 * Which processes are alive: the leases of a dead process are free, and what it may have spent counts. Also whether the
 * store has lost what processes wrote. The doubt is written into the store, so that later processes know of it, until a
 * person accepts it.
 */
export class Presence {
  readonly id: string = randomUUID();
  readonly #documents: Documents;
  readonly #key: string;
  readonly #log: StateLog;
  #lastHistory: History | undefined;
  /** The last heartbeat: its number, and its time by the clock of the store. */
  #beat = { beat: 0, at: Number.NEGATIVE_INFINITY };
  #beating: Promise<void> | undefined;
  /** Since when this process has written its own heartbeats without a gap. */
  #regularSince = 0;

  constructor(documents: Documents, key: string, log: StateLog) {
    this.#documents = documents;
    this.#key = key;
    this.#log = log;
  }

  beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    const { now, history } = await this.#documents.update<History, { now: number; history: History }>(
      this.#key,
      (doc, now) => {
        const found = doc ?? newHistory(now);
        const isContinued = !this.#lastHistory || this.#follows(found, this.#lastHistory, now);
        const current = isContinued ? found : withDoubt(found, { epoch: this.epoch, at: this.#beat.at }, now);
        const heard = Object.entries(current.processes).filter(([, { at }]) => now - at < rememberedMs);
        const beats = current.beats + 1;
        const processes = { ...Object.fromEntries(heard), [this.id]: { at: now, beat: beats } };
        const history = { ...current, beats, processes, since: Math.min(current.since, now) };
        return { next: history, ttlMs: historyTtlMs, result: { now, history } };
      },
    );
    // Also where the clock of the store was set.
    if (Math.abs(now - this.#beat.at) > 2.5 * beatMs) this.#regularSince = now;
    this.#see(history, now);
    this.#beat = { beat: history.beats, at: now };
  }

  /** Whether a store may continue the one that was seen, with what this process wrote. */
  #follows({ epoch, beats, replaced, processes }: History, before: History, now: number): boolean {
    if (epoch !== before.epoch) return replaced.includes(before.epoch);
    const [written, last] = [processes[this.id], this.#beat];
    return beats >= before.beats && (written ? written.beat >= last.beat : now - last.at >= rememberedMs);
  }

  /** Answers can overtake each other. */
  #see(history: History, now: number): void {
    const before = this.#lastHistory;
    if (before && !this.#follows(history, before, now)) return;
    this.#lastHistory = history;
    const { doubt, epoch, processes } = history;
    if (epoch !== before?.epoch) {
      this.#beat = processes[this.id] ?? { beat: 0, at: Number.NEGATIVE_INFINITY };
      // A store that was lost does not say who else is alive.
      this.#regularSince = now;
    }
    if (doubt && !before?.doubt) {
      const fields = { found: doubt.found, at: new Date(doubt.at).toISOString() };
      this.#log.error(`the shared state went back in time: ${consequence}`, fields);
    }
    if (!doubt && before?.doubt) this.#log.info('the shared state was accepted as it is');
  }

  /**
   * Rejects if the store has lost what was spent. A caller that asks after a reservation knows that the store was not
   * emptied before the reservation.
   */
  async confirm(): Promise<void> {
    const { doc, now } = await this.#documents.read<History>(this.#key);
    if (doc && (!this.#lastHistory || this.#follows(doc, this.#lastHistory, now))) this.#see(doc, now);
    else {
      // Only a write shows the present state, because a read may be old.
      await this.#beating?.catch(() => {});
      await this.beat();
    }
    const problem = this.problem(now);
    if (problem) throw new AdLibraryError({ kind: 'unavailable', problem: problems[problem], sent: false });
  }

  get epoch(): string {
    return this.#lastHistory?.epoch ?? '';
  }

  /** Why no budget is open, as far as is known. */
  problem(now: number): keyof typeof problems | undefined {
    if (this.#lastHistory?.doubt) return 'state went back in time';
    return this.#lastHistory && now - this.#lastHistory.since >= newMs ? undefined : 'state is new';
  }

  /** Accepts the store as it is. Returns its history; undefined if the store was never used. */
  accept(): Promise<History | undefined> {
    return this.#documents.update(this.#key, (doc: History | undefined) => {
      if (doc === undefined) return { result: undefined };
      const { doubt, beats, since, ...rest } = doc;
      const next = { ...rest, beats: beats + 1, since: since - newMs };
      return { ...(doubt && { next, ttlMs: historyTtlMs }), result: doc };
    });
  }

  /**
   * Whether a process has died that was alive at that time, by the clock of the store. While this process could not
   * write its own heartbeats, others may not have been able to either.
   */
  isDead(owner: string, aliveAt: number): boolean {
    const { at } = this.#beat;
    const isJudged = at - Math.max(aliveAt, this.#regularSince) > deadMs;
    return isJudged && owner !== this.id && at - (this.#lastHistory?.processes[owner]?.at ?? 0) >= deadMs;
  }
}

const consequence = 'paid calls under a budget are refused until ad-library-mcp state accept';

const problems = {
  'state went back in time':
    'The state that all replicas of this server share is empty or an earlier copy, so that it is not known what was spent. Calls that cost credits are refused until the operator of this server has looked and run ad-library-mcp state accept.',
  'state is new':
    'The state that all replicas of this server share is new. In a few seconds it will be sure that no earlier one was lost.',
};

/** The presence of a single process: no process dies, and nothing is lost. */
export const singleProcess = { id: '', epoch: '', isDead: () => false, confirm: async () => {} };
