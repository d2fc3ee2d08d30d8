import type { CallState, StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { Datasets } from './dataset.ts';
import { type ExportStore, type ExportTarget, openFolderExports, openMemoryExports } from './exports.ts';
import { type FolderOptions, openFolderState } from './folder.ts';
import { createMemoryLedger, openMemorySlots, openMemoryStore } from './in-memory.ts';
import { createMemoryAnswers } from './memory-answers.ts';
import { MemoryDatasets } from './memory-datasets.ts';
import { openSingleUse } from './single-use.ts';
import type { Slots } from './slots.ts';
import { openWindows } from './store/ledger.ts';
import type { ReplicaState } from './store/open-store.ts';

/** All state that outlives a call. */
export interface State extends CallState {
  datasets: Datasets;
  exports: ExportStore;
  slots: Slots;
}

interface OpenStateOptions extends Omit<FolderOptions, 'folder' | 'baseUrl' | 'apiKey'> {
  /** The URL of the service whose answers are stored; undefined if there is no service. */
  baseUrl: string | undefined;
  /** The folder that stores the dataset of one person; undefined to store it in memory. */
  folder: string | undefined;
  /** Where exported files are written; undefined to store them in memory. */
  exportTarget: ExportTarget | undefined;
  /** The key whose answers the folder stores. */
  apiKey: string | undefined;
  /** Whether the budget is daily. The folder then counts the spending of all processes that use it. */
  countsDays: boolean | undefined;
  /** The state that replicas share; undefined if this process shares none. */
  shared: ReplicaState | undefined;
}

/** Opens the state: in a store that replicas share, in the folder of a person, or in the memory of this process. */
export function openState(options: OpenStateOptions): State {
  const { baseUrl, apiKey, shared, now, folder, exportTarget, countsDays } = options;
  if (shared) return shared.state(options);
  const state = openMemoryState(options);
  if (exportTarget) state.exports = openFolderExports(exportTarget, now);
  if (folder === undefined || baseUrl === undefined || apiKey === undefined) return state;
  const { dailyLedger, ...folderParts } = openFolderState({ ...options, folder, baseUrl, apiKey });
  return { ...state, ...folderParts, ...(countsDays && { ledger: dailyLedger() }) };
}

const MB = 1024 * 1024;
/** The largest memory of cached answers, and of cursors and full usage windows, for all tenants together. */
const maxAnswerBytes = 128 * MB;
const maxSmallStoreBytes = 16 * MB;

/** Opens the state in the memory of this process. */
export function openMemoryState({ ttlMs, now, monotonicNow }: StateOptions): State {
  const smallStore = openMemoryStore(now, { maxBytes: maxSmallStoreBytes });
  return {
    ledger: createMemoryLedger({ now: monotonicNow }),
    answers: createMemoryAnswers({ maxBytes: maxAnswerBytes, ttlMs, now }),
    windows: openWindows(smallStore, monotonicNow),
    cursorsOf: openCursors(smallStore),
    useOnce: openSingleUse(smallStore),
    datasets: new MemoryDatasets(),
    exports: openMemoryExports(now),
    slots: openMemorySlots(),
  };
}
