import type { CallState, StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { Datasets } from './dataset.ts';
import { type ExportStore, type ExportTarget, openFolderExports, openMemoryExports } from './exports.ts';
import { type FolderOptions, openFolderState } from './folder.ts';
import { createMemoryLedger, openMemorySlots, openMemoryStore } from './in-memory.ts';
import { MemoryDatasets } from './memory-datasets.ts';
import { createMemoryResponseCache } from './memory-response-cache.ts';
import { openSingleUse } from './single-use.ts';
import type { Slots } from './slots.ts';
import { openWindows } from './store/ledger.ts';
import type { ReplicaState } from './store/open-store.ts';

/** All state that is kept between tool calls: cached responses, spending, datasets and exported files. */
export interface State extends CallState {
  datasets: Datasets;
  exports: ExportStore;
  slots: Slots;
}

interface OpenStateOptions extends Omit<FolderOptions, 'folder' | 'baseUrl' | 'apiKey'> {
  /** The base URL of the service that sends the stored responses. Undefined if no service is configured. */
  baseUrl: string | undefined;
  /** The folder for the data of a single user. If undefined, the data is stored in memory. */
  folder: string | undefined;
  /** The folder to which exported files are written. If undefined, they are stored in memory. */
  exportTarget: ExportTarget | undefined;
  /** The API key of the user. Its responses are stored in the folder. Required if `folder` is set. */
  apiKey: string | undefined;
  /** True if the credit budget is per day. The folder then adds up the spending of all processes that use it. */
  hasDailyBudget: boolean | undefined;
  /** The state that this process shares with other replicas. Undefined for a single process. */
  shared: ReplicaState | undefined;
}

/** Opens the state in a store shared by replicas, in the user's folder, or in the memory of this process. */
export function openState(options: OpenStateOptions): State {
  const { baseUrl, apiKey, shared, now, folder, exportTarget, hasDailyBudget } = options;
  if (shared) return shared.state(options);
  const state = openMemoryState(options);
  if (exportTarget) state.exports = openFolderExports(exportTarget, now);
  if (folder === undefined || baseUrl === undefined || apiKey === undefined) return state;
  const { dailyLedger, ...folderState } = openFolderState({ ...options, folder, baseUrl, apiKey });
  return { ...state, ...folderState, ...(hasDailyBudget && { ledger: dailyLedger() }) };
}

const MB = 1024 * 1024;
/**
 * The memory limits for all tenants (API keys) together, in bytes. The first one is for cached API responses. The
 * second one is for small data: cursors, used tokens and reached usage limits.
 */
const maxAnswerBytes = 128 * MB;
const maxSmallStoreBytes = 16 * MB;

/** Opens the state in the memory of this process. The state is lost when the process ends. */
export function openMemoryState({ ttlMs, now, monotonicNow }: StateOptions): State {
  const smallStore = openMemoryStore(now, { maxBytes: maxSmallStoreBytes });
  return {
    ledger: createMemoryLedger({ now: monotonicNow }),
    responseCache: createMemoryResponseCache({ maxBytes: maxAnswerBytes, ttlMs, now }),
    usageWindows: openWindows(smallStore, monotonicNow),
    openCursors: openCursors(smallStore),
    useOnce: openSingleUse(smallStore),
    datasets: new MemoryDatasets(),
    exports: openMemoryExports(now),
    slots: openMemorySlots(),
  };
}
