import type { Api } from '../api/client.ts';
import type { Spending } from '../credits/spending.ts';
import type { AdRowReader } from '../dataset/ad-row-reader.ts';
import type { DatasetSql } from '../dataset/dataset-sql.ts';
import type { Dataset } from '../state/dataset.ts';
import type { Exports } from '../state/exports.ts';
import type { Cursors } from './cursor.ts';
import type { PriceOf } from './page-prices.ts';
import type { ViewMemo } from './view-memo.ts';

/** What a tool may use: the API on its caller's account, the time, and the space for its text. */
export interface ToolContext {
  api: Api;
  /** Aborts at the deadline, or when the caller leaves. */
  signal: AbortSignal;
  /** Milliseconds since the epoch. */
  now: number;
  /** Maximum tokens of the tool's own text in a result. */
  resultTokens: number;
  /** What this process has spent for the caller. */
  spending(): Promise<Spending>;
  /** What the caller has gathered, with what other processes brought. */
  dataset(): Promise<Dataset>;
  /** Makes rows of its ads. */
  adRows: AdRowReader;
  priceOf: PriceOf;
  sql: DatasetSql;
  /** This server's, for notes on how data came about. */
  version: string;
  /** The files that the caller exported. */
  exports: Exports;
  viewMemo: ViewMemo;
  cursors: Cursors;
  /** The name of the tool that calls an operation. Models know operations by tool names only. */
  toolName(operation: string): string;
}

/** The part that belongs to one caller, for one call. */
export type CallerContext = Omit<ToolContext, 'signal' | 'now' | 'resultTokens' | 'toolName'>;
