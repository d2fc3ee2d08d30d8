import type { CallState, StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { DatasetStore } from './dataset.ts';
import { type ExportStore, type ExportTarget, openFolderExports, openMemoryExports } from './exports.ts';
import { type FolderOptions, openFolderState } from './folder.ts';
import { createMemoryLedger, openMemoryLocks, openMemoryStore } from './in-memory.ts';
import { MemoryDatasetStore } from './memory-datasets.ts';
import { createMemoryResponseCache } from './memory-response-cache.ts';
import type { NamedLocks } from './named-locks.ts';
import { createUseOnce } from './single-use.ts';
import { openReachedUsageLimitStore } from './store/ledger.ts';
import type { ReplicaState } from './store/open-store.ts';

/** All data that the server keeps between tool calls: cached responses, spending, datasets and exported files. */
export interface ServerState extends CallState {
  datasets: DatasetStore;
  exports: ExportStore;
  locks: NamedLocks;
}

interface OpenStateOptions extends Omit<FolderOptions, 'folder' | 'baseUrl' | 'apiKey'> {
  /** The base URL of the service. Undefined if no service is configured. */
  baseUrl: string | undefined;
  /** The folder for the data of a single user. If undefined, the data is kept in memory. */
  folder: string | undefined;
  /** The place to which exported files are written. If undefined, exported files are kept in memory. */
  exportTarget: ExportTarget | undefined;
  /** The API key of the user. Required if `folder` is set. */
  apiKey: string | undefined;
  /**
   * True if the credit budget applies per day. The spending of all processes that use the folder then counts toward one
   * budget.
   */
  hasDailyBudget: boolean | undefined;
  /** The state that this process shares with other replicas of the server. Undefined if the process shares no state. */
  replicaState: ReplicaState | undefined;
}

/**
 * Opens the state of the server in one of three places: in the store that replicas share, in the user's folder, or in
 * the memory of this process.
 */
export function openState(options: OpenStateOptions): ServerState {
  const { baseUrl, apiKey, replicaState, now, folder, exportTarget, hasDailyBudget } = options;
  if (replicaState) return replicaState.state(options);
  const state = openMemoryState(options);
  if (exportTarget) state.exports = openFolderExports(exportTarget, now);
  if (folder === undefined || baseUrl === undefined || apiKey === undefined) return state;
  const { dailyLedger, ...folderState } = openFolderState({ ...options, folder, baseUrl, apiKey });
  return { ...state, ...folderState, ...(hasDailyBudget && { ledger: dailyLedger() }) };
}

const MB = 1024 * 1024;
/**
 * The memory limits for all tenants (API keys) together, in bytes. `maxCachedBytes` applies to cached API responses,
 * and `maxSmallStoreBytes` to small data such as page cursors and used tokens.
 */
const maxCachedBytes = 128 * MB;
const maxSmallStoreBytes = 16 * MB;

/** Opens the state of the server in the memory of this process. The state is lost when the process ends. */
export function openMemoryState({ ttlMs, now, monotonicNow }: StateOptions): ServerState {
  const smallStore = openMemoryStore(now, { maxBytes: maxSmallStoreBytes });
  return {
    ledger: createMemoryLedger({ monotonicNow }),
    responseCache: createMemoryResponseCache({ maxBytes: maxCachedBytes, ttlMs, now }),
    reachedUsageLimits: openReachedUsageLimitStore(smallStore, monotonicNow),
    openCursors: openCursors(smallStore),
    useOnce: createUseOnce(smallStore),
    datasets: new MemoryDatasetStore(),
    exports: openMemoryExports(now),
    locks: openMemoryLocks(),
  };
}
