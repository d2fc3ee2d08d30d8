import type { Answer, AnswerName, Call } from '../api/call.ts';
import type { CreditLedger, FullWindows } from '../credits/ledger.ts';

/** What is known of calls, for all tenants: in this process, in a folder, or shared by all replicas. */
export interface CallState {
  ledger: CreditLedger;
  answers: AnswerCache;
  windows: FullWindows;
  cursorsOf(tenantId: string): CursorMemory;
}

export interface StateOptions {
  /** How long answers are cached, in milliseconds. */
  ttlMs: number;
  /** In milliseconds since the epoch. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  monotonicNow: () => number;
}

export interface CachedAnswer {
  answer: Answer;
  /** When the service sent the answer, in milliseconds since the epoch. */
  at: number;
}

/**
 * Caches paid answers, separately for each tenant, for a limited time and in limited memory, and lets one process at a
 * time send a call. Never rejects, except where the signal of a call aborts.
 */
export interface AnswerCache {
  /**
   * The name of an answer, which differs before and after its group was forgotten. Undefined if that is not known now:
   * then the answer is neither found nor put.
   */
  resolveName(tenantId: string, answer: AnswerName): Promise<string | undefined>;
  get(tenantId: string, name: string): Promise<CachedAnswer | undefined>;
  /** Resolves when no other process sends the same call. */
  claim(call: Call, name: string | undefined, request: ClaimRequest): Promise<Claim>;
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

export interface ClaimRequest {
  /** Only an answer that came later serves in place of the call, in milliseconds since the epoch; by default any. */
  after?: number | undefined;
  /** Receives the id of a claim whose process has died. */
  onLost(id: string): Promise<void>;
}

export type Claim =
  /** This process sends the call. Each of the three ends the claim; `end` after another one does nothing. */
  | { kind: 'granted'; put(answer: CachedAnswer): Promise<void>; forget(): Promise<void>; end(): Promise<void> }
  | { kind: 'found'; found: CachedAnswer }
  | { kind: 'lost' };

/** Keys that the service accepted lately. What is stored for a key is served only while it is one of them. */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** What is remembered about a cursor, for callers who leave the filters out. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, if it is too long to be part of this server's cursor. */
  serviceCursor?: string | undefined;
}
