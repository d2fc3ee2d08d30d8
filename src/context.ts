import type { Api } from './api/client.ts';
import type { Spending } from './credits/spending.ts';

/** What a tool may reach: the API on its caller's account, the time, and the room its text may take. */
export interface ToolContext {
  api: Api;
  /** Milliseconds since the epoch. */
  now: number;
  /** Most tokens of text the tool's part of a result may hold. */
  resultTokens: number;
  /** What this process spent for the caller so far. */
  spending(): Spending;
  /** Questions that cut results of the caller came from, by the mark in their cursors. */
  asked: Asked;
}

export interface Asked {
  get(mark: string): Readonly<Record<string, unknown>> | undefined;
  set(mark: string, question: Readonly<Record<string, unknown>>): unknown;
}
