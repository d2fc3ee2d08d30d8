import type { OperationName } from '../api/call.ts';
import type { Api } from '../api/client.ts';
import type { ErrorKind } from '../api/errors.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import type { Spending } from '../credits/credit-text.ts';
import type { CallAllowance } from '../credits/meter.ts';
import type { AdRowReader } from '../dataset/ad-rows.ts';
import type { IsCached } from '../dataset/gather.ts';
import type { DatasetSql } from '../dataset/snapshot.ts';
import type { Pictures } from '../pictures/pictures.ts';
import type { Price } from '../present/list-text.ts';
import type { Dataset } from '../state/dataset.ts';
import type { Exports } from '../state/exports.ts';
import type { Cursors } from './cursor.ts';
import type { ViewMemo } from './view-memo.ts';

/** What belongs to one caller, for one call. */
export interface CallerContext {
  api: Api;
  /** What the caller has gathered, with what other processes brought. */
  dataset(): Promise<Dataset>;
  /** Makes rows of its ads. */
  adRows: AdRowReader;
  sql(): DatasetSql;
  /** The files that the caller exported. */
  exports(): Exports;
  /** This server's, for notes on how data came about. */
  version: string;
  /** What this process has spent for the caller. */
  spending(): Promise<Spending>;
  priceOf: PriceOf;
  isCached: IsCached;
  /** How many ads match, as an answer says that is still kept. */
  keptTotal(filters: object): Promise<CountedAds | undefined>;
  /** A limit of credits for the calls of this tool call that are made with it. */
  allowance(maxCredits: number): Promise<CallAllowance>;
  /** Waits until no other call of the caller has this turn; returns what ends it. */
  takeTurn(name: string): Promise<() => void>;
  /** Pictures of ads, fetched for the caller; loaded with the first use. */
  pictures(): Promise<Pictures>;
  viewMemo: ViewMemo;
  cursors: Cursors;
}

/** What a tool may use: the API on its caller's account, the time, and the space for its text. */
export interface ToolContext extends CallerContext {
  /** Tells the caller's key from others. */
  tenantId: string;
  /** Milliseconds since the epoch. */
  now: number;
  /** The time as it goes on, and when the call has to be back. */
  clock(): number;
  deadline: number;
  /** Aborts when the caller leaves or at the deadline. */
  signal: AbortSignal;
  /** Whether the process is asked to end. */
  isDraining(): boolean;
  /** Present if the client asked for progress. */
  onProgress?: ReportProgress;
  /** What is known of the filter keys of ads. */
  adFilters: readonly SearchFilter[];
  /** What went wrong, in words for a result that holds what was read before. */
  explain(thrown: unknown): { kind: ErrorKind; text: string };
  /** Maximum tokens of the tool's own text in a result. */
  resultTokens: number;
  /** The name of the tool that calls an operation. Models know operations by tool names only. */
  toolName(operation: string): string;
  /** Whether this server offers the tool of that name. */
  offers(tool: string): boolean;
}

/** How many ads there are, when that was counted, in milliseconds since the epoch, and its place among all answers. */
export interface CountedAds {
  ads: number;
  at: number;
  order: number;
}

/** The price of a page of a list that asks for so many items; undefined if no charge was seen. */
export type PriceOf = (list: OperationName, items: number) => Promise<Price | undefined>;

/** How far a long call is. It grows with each report. */
export interface Progress {
  progress: number;
  total?: number;
  message: string;
}

export type ReportProgress = (progress: Progress) => void;
