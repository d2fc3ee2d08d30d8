import type { Answer, AnswerName, Call } from '../api/call.ts';
import type { CreditLedger, FullWindows } from '../credits/ledger.ts';

/** Everything that outlives a call, for all tenants: in this process, or shared by all replicas. */
export interface State {
  ledger: CreditLedger;
  answers: AnswerCache;
  windows: FullWindows;
  /** Gated calls in progress in all replicas; undefined where there is only this process. */
  claims?: CallClaims;
  cursorsOf(tenantId: string): CursorMemory;
  rejectedKeys: RejectedKeys;
}

export interface CachedAnswer {
  answer: Answer;
  /** When the service sent the answer, by a clock that only goes on. */
  at: number;
}

/** Caches paid answers, separately for each tenant, for a limited time and in limited memory. Never rejects. */
export interface AnswerCache {
  get(tenantId: string, name: AnswerName): Promise<CachedAnswer | undefined>;
  /**
   * Begins a request for an answer, unless an answer was cached just now. The new answer is stored unless its group is
   * invalidated meanwhile.
   */
  begin(
    tenantId: string,
    name: AnswerName,
  ): Promise<{
    cached: CachedAnswer | undefined;
    store(answer: CachedAnswer): Promise<void>;
  }>;
  /** Removes an answer, unless it is newer than this one. */
  remove(tenantId: string, name: AnswerName, upTo: Answer): Promise<void>;
  /** Removes a tenant's answers of a group. */
  invalidate(tenantId: string, group: string): Promise<void>;
}

/** How a call ended, for those who waited for it: the answer, or why there is none. */
export type CallOutcome = { answer: Answer } | { error: unknown };

export type Claim =
  /** This process sends the call, and states how it ended. Without an outcome, the others send their calls. */
  | { kind: 'granted'; end(outcome: CallOutcome | undefined): Promise<void> }
  | { kind: 'ended'; outcome: CallOutcome }
  /** The process that sent the call has died. */
  | { kind: 'lost' };

/** Gated calls in progress in all processes that share the state. */
export interface CallClaims {
  /**
   * Resolves when no other process sends the same call; rejects if its signal aborts first.
   * @param onLost receives the id of each claim of such a call whose process has died, if need be after the call
   */
  claim(call: Call, onLost: OnLost): Promise<Claim>;
}

export type OnLost = (id: string) => Promise<void>;

/** Keys that the service has rejected, and not accepted since. Nothing that is stored for such a key is served. */
export interface RejectedKeys {
  has(tenantId: string): Promise<boolean>;
  /**
   * Only keys that were accepted before are remembered: nothing is stored for other keys, and anybody can invent them.
   */
  add(tenantId: string): Promise<void>;
  /** The service has answered. @param isNamed whether the answer has a request id, which only the service gives */
  answered(tenantId: string, isNamed: boolean): void;
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
