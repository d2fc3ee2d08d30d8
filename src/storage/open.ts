import type { CallState, StateOptions } from './call-state.ts';
import { openCursors } from './cursors.ts';
import type { Datasets } from './dataset.ts';
import { type ExportStore, type ExportTarget, openFolderExports, openMemoryExports } from './exports.ts';
import { type FolderOptions, openFolderState } from './folder.ts';
import { createMemoryLedger, openMemorySlots, openMemoryStore } from './in-memory.ts';
import { createMemoryAnswers } from './memory-answers.ts';
import { MemoryDatasets } from './memory-datasets.ts';
import type { Slots } from './slots.ts';
import { openWindows } from './store/ledger.ts';
import type { ReplicaState } from './store/open-store.ts';

/** All that outlives a call. */
export interface State extends CallState {
  datasets: Datasets;
  exports: ExportStore;
  slots: Slots;
}

interface OpenStateOptions extends Omit<FolderOptions, 'folder' | 'baseUrl' | 'apiKey'> {
  /** The service whose answers are cached; undefined if there is none. */
  baseUrl: string | undefined;
  /** The folder for the datasets of one person; undefined for memory. */
  folder: string | undefined;
  /** Where files are written; undefined for memory. */
  exportTarget: ExportTarget | undefined;
  /** The key whose answers the folder keeps. */
  apiKey: string | undefined;
  /** Whether the folder counts spending by day, for all processes that use it. */
  countsDays: boolean | undefined;
  shared: ReplicaState | undefined;
}

/** Opens the state that all replicas share, or that of this process, in memory or in a person's folder. */
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
/** Bytes of answers, and of cursors and full windows, for all tenants together. */
const maxAnswerBytes = 128 * MB;
const maxSmallStoreBytes = 16 * MB;

export function openMemoryState({ ttlMs, now, monotonicNow }: StateOptions): State {
  const smallStore = openMemoryStore(now, { maxBytes: maxSmallStoreBytes });
  return {
    ledger: createMemoryLedger({ now: monotonicNow }),
    answers: createMemoryAnswers({ maxBytes: maxAnswerBytes, ttlMs, now }),
    windows: openWindows(smallStore, monotonicNow),
    cursorsOf: openCursors(smallStore),
    datasets: new MemoryDatasets(),
    exports: openMemoryExports(now),
    slots: openMemorySlots(),
  };
}
