import type { DatasetCaller, Datasets } from './dataset.ts';
import { memoryState, memoryTurns } from './drivers/memory.ts';
import { type ExportStore, type ExportTarget, folderExports, memoryExports } from './exports.ts';
import { folderState } from './folder.ts';
import { MemoryDatasets } from './memory-datasets.ts';
import type { State } from './ports.ts';
import type { ReplicaState } from './store/open-store.ts';
import type { Turns } from './turns.ts';

/** All that outlives a call, with what was read and exported. */
export interface OpenState extends State {
  datasets: Datasets;
  exports: ExportStore;
  turns: Turns;
}

export interface OpenStateOptions {
  /** How long answers are cached, in milliseconds. */
  ttl: number;
  /** The service whose answers are cached; undefined if there is none. */
  baseUrl: string | undefined;
  /** The folder for the datasets of one person; undefined for memory. */
  folder: string | undefined;
  /** Where files are written; undefined for memory. */
  exportTarget: ExportTarget | undefined;
  /** The key whose answers the folder keeps. */
  apiKey?: string | undefined;
  /** Whether the folder counts spending by day, for all processes that use it. */
  countsDays?: boolean | undefined;
  shared: ReplicaState | undefined;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
  /** The id of the key's user, as the service tells it. */
  userIdOf(caller: DatasetCaller): Promise<string | undefined>;
  warn(problem: string, fields?: Record<string, unknown>): void;
}

/** Opens the state that all replicas share, or that of this process, in memory or in a person's folder. */
export function openState(options: OpenStateOptions): OpenState {
  const { ttl, baseUrl, apiKey, shared, now, elapsed } = options;
  const clocks = { now, elapsed };
  if (shared)
    return {
      ...shared.state({ ttl, ...clocks }),
      datasets: shared.datasets(),
      exports: shared.exports(now),
      turns: shared.turns(),
    };
  const state = memoryState({ ttl, ...clocks });
  const { folder, exportTarget } = options;
  const exports = exportTarget === undefined ? memoryExports(now) : folderExports(exportTarget, now);
  if (folder === undefined || baseUrl === undefined || apiKey === undefined)
    return { ...state, datasets: new MemoryDatasets(), exports, turns: memoryTurns() };
  const { dailyLedger, ...inFolder } = folderState({ ...options, folder, baseUrl, apiKey });
  return { ...inFolder, exports, ledger: options.countsDays ? dailyLedger() : state.ledger };
}
