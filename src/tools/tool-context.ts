import type { Api } from '../api/client.ts';
import type { Spending } from '../credits/spending.ts';

/** What a tool may reach: the API on its caller's account, the time, and the room its text may take. */
export interface ToolContext {
  api: Api;
  /** Milliseconds since the epoch. */
  now: number;
  /** Most tokens of text the tool's part of a result may hold. */
  resultTokens: number;
  /** What this process spent for the caller so far. */
  spending(): Promise<Spending>;
  /** What was made of answers that are kept, so that an answer given again is not condensed again. */
  condensed: Condensed;
  /** What is behind the cursors the caller was given, by the mark in each. */
  asked: Asked;
}

/** The part of it that a caller brings, for the length of one call. */
export type CallerView = Omit<ToolContext, 'now' | 'resultTokens'>;

/** By the answer as it came: the items shown of it, by how they were shown, and the text of those items. */
export interface Condensed {
  items: WeakMap<object, Map<string, readonly unknown[]>>;
  text: WeakMap<object, string>;
}

export interface Asked {
  get(mark: string): Kept | undefined;
  set(mark: string, kept: Kept): unknown;
}

export interface Kept {
  /** The question the result was an answer to. */
  question: Readonly<Record<string, unknown>>;
  /** The service's cursor, where it is none to be handed out. */
  serviceCursor?: string | undefined;
}
