import type { BoardAd, BoardContext, BoardGathering } from '../payload.ts';
import type { Chosen } from './facets.ts';
import type { Host } from './host.ts';
import type { Pictures } from './pictures.ts';
import type { Server } from './server.ts';
import type { SortName } from './sorting.ts';
import type { TimeAxis } from './time-axis.ts';

/** All that the board shows. */
export interface State {
  ads: readonly BoardAd[];
  axis: TimeAxis;
  /** Ids that are still to come. */
  coming: number;
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
  /** What is going on, or what went wrong. */
  status: string;
}

/** What every part of the board works with. */
export interface View {
  readonly state: Readonly<State>;
  /** Changes the state, and draws what follows from it. */
  update(change: Partial<State>): void;
  openAd(ad: BoardAd): void;
  /** Adds ads that the server has by their ids. */
  load(ids: readonly string[]): Promise<void>;
  server: Server;
  host: Host;
  pictures: Pictures;
}

export const emptyState: State = {
  ads: [],
  axis: { from: 0, to: 1 },
  coming: 0,
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
