import type { BoardAd, BoardContext, BoardGathering } from '../payload.ts';
import type { Chosen } from './filters.ts';
import type { Host, Server } from './host.ts';
import type { Pictures, SortName, TimeAxis } from './list.ts';

/** All that the board shows. */
export interface State {
  ads: readonly BoardAd[];
  /** Those that the filters leave. */
  shown: readonly BoardAd[];
  axis: TimeAxis;
  /** Ids that are still to come. */
  coming: readonly string[];
  /** Ids of ads that were listed, and are not kept any more. */
  missing: readonly string[];
  chosen: Chosen;
  sort: SortName;
  mode: 'cards' | 'timeline';
  selected: ReadonlySet<string>;
  /** The tools that may be called. */
  offered: readonly string[];
  asOf: string;
  gathering?: BoardGathering | undefined;
  /** What the tool was called with, and what it said to the board. */
  args: Readonly<Record<string, unknown>>;
  context: BoardContext;
  /** What is going on. */
  status: string;
  problem?: Problem | undefined;
}

/** What went wrong. */
export interface Problem {
  text: string;
  /** Undefined where the board has no way to try it again. */
  again?: (() => void) | undefined;
}

/** What every part of the board works with. */
export interface View {
  readonly state: Readonly<State>;
  /** Changes the state, and draws what follows from it. */
  update(change: Partial<Omit<State, 'shown'>>): void;
  openAd(ad: BoardAd): void;
  /** Adds ads that the server has by their ids. */
  load(ids: readonly string[]): Promise<void>;
  server: Server;
  host: Host;
  pictures: Pictures;
}

export const emptyState: State = {
  ads: [],
  shown: [],
  axis: { from: 0, to: 1 },
  coming: [],
  missing: [],
  chosen: {},
  sort: 'relevance',
  mode: 'cards',
  selected: new Set(),
  offered: [],
  asOf: '',
  args: {},
  context: {},
  status: 'Waiting for ads …',
};

/** What an error says, for a person. */
export const problemOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Of how many ads those on the board are a part; undefined where they are all that was asked for. `Infinity` where there
 * are more, and nobody says how many.
 */
export function wholeOf({ ads, args, context, gathering, coming, missing }: State): number | undefined {
  const here = ads.length + coming.length + missing.length;
  const { totalHits = 0, cursor } = context;
  const whole = gathering ? Math.max(gathering.read, gathering.complete ? 0 : (gathering.found ?? 0)) : totalHits;
  if (whole > ads.length || here > ads.length) return Math.max(whole, here);
  const hasMore = gathering ? !gathering.complete : Boolean(cursor || args.cursor);
  return hasMore ? Number.POSITIVE_INFINITY : undefined;
}
