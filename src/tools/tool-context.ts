import type { Api } from '../api/client.ts';
import type { Spending } from '../credits/spending.ts';
import type { Cursors } from './cursor.ts';
import type { ViewMemo } from './view-memo.ts';

/** What a tool may reach: the API on its caller's account, the time, and the room its text may take. */
export interface ToolContext {
  api: Api;
  /** Milliseconds since the epoch. */
  now: number;
  /** Most tokens of text the tool's part of a result may hold. */
  resultTokens: number;
  /** What this process spent for the caller so far. */
  spending(): Promise<Spending>;
  viewMemo: ViewMemo;
  cursors: Cursors;
  /** The tool that makes an operation's call: a model knows operations by no other name. */
  toolName(operation: string): string;
}

/** The part of it that a caller brings, for the length of one call. */
export type CallerContext = Pick<ToolContext, 'api' | 'spending' | 'viewMemo' | 'cursors'>;
