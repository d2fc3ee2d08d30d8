import type { Api } from '../api/client.ts';
import type { CallAllowance } from '../credits/allowance.ts';
import type { Spending } from '../credits/spending.ts';
import type { AdRowReader } from '../dataset/ad-row-reader.ts';
import type { Dataset } from '../state/dataset.ts';
import type { Cursors } from './cursor.ts';
import type { ViewMemo } from './view-memo.ts';

/** What a tool may use: the API on its caller's account, the time, and the space for its text. */
export interface ToolContext {
  api: Api;
  /** Milliseconds since the epoch. */
  now: number;
  /** Maximum tokens of the tool's own text in a result. */
  resultTokens: number;
  /** What this process has spent for the caller. */
  spending(): Promise<Spending>;
  /** A limit of credits for the calls of this tool call that are made with it. */
  allowance(maxCredits: number): Promise<CallAllowance>;
  /** What the caller has gathered, with what other processes brought. */
  dataset(): Promise<Dataset>;
  /** Makes rows of its ads. */
  adRows: AdRowReader;
  viewMemo: ViewMemo;
  cursors: Cursors;
  /** The name of the tool that calls an operation. Models know operations by tool names only. */
  toolName(operation: string): string;
}

/** The part that belongs to one caller, for one call. */
export type CallerContext = Pick<
  ToolContext,
  'api' | 'dataset' | 'adRows' | 'spending' | 'allowance' | 'viewMemo' | 'cursors'
>;
