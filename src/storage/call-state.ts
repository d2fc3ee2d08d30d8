import type { Answer, AnswerName, Call } from '../api/call.ts';
import type { CreditLedger, FullWindows } from '../credits/ledger.ts';
import type { UseOnce } from './single-use.ts';

/** The stored state of calls, for all tenants. It is in this process, in a folder, or in a store that replicas share. */
export interface CallState {
  ledger: CreditLedger;
  answers: AnswerCache;
  windows: FullWindows;
  cursorsOf(tenantId: string): CursorMemory;
  /** Makes a token usable once. */
  useOnce: UseOnce;
}

/** Options of the state, whichever driver stores it. */
export interface StateOptions {
  /** The lifetime of cached answers, in milliseconds. */
  ttlMs: number;
  /** The time of this process, in milliseconds since 1970. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  monotonicNow: () => number;
}

/** A cached answer of the service. */
export interface CachedAnswer {
  answer: Answer;
  /** When the service sent the answer, in milliseconds since 1970. */
  at: number;
}

/**
 * Caches paid answers, separately for each tenant, for a limited time and in limited memory. Lets only one process at a
 * time send the same call. No method rejects, except `claim` when the signal of its call aborts.
 */
export interface AnswerCache {
  /**
   * Returns the name under which an answer is cached. The name changes when the group of the answer is forgotten.
   * Returns undefined if the cache cannot tell now whether the group was forgotten. The caller must then neither read
   * nor write the answer.
   */
  resolveName(tenantId: string, answer: AnswerName): Promise<string | undefined>;
  /** Returns the cached answer; undefined if there is none, or if it is too old. */
  get(tenantId: string, name: string): Promise<CachedAnswer | undefined>;
  /** Waits while another process sends the same call. Resolves to the answer, or to the right to send the call. */
  claim(call: ClaimedCall, name: string | undefined, request: ClaimRequest): Promise<Claim>;
  /** Removes all answers of a group from the cache, also answers to calls in progress. */
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

/** The parts of a call that its claim needs. */
export type ClaimedCall = Pick<Call, 'request' | 'owner' | 'signal'>;

/** Options of a claim. */
export interface ClaimRequest {
  /** Accept only answers that arrived after this time, in milliseconds since 1970. By default, any cached answer is accepted. */
  after?: number | undefined;
  /** Receives the id of a claim whose process has died while it sent the call. */
  onLost(id: string): Promise<void>;
}

/**
 * The right of this process to send a call. Afterwards the process calls `put` with the answer to cache, `forget` to remove
 * the cached answer, or `end` to leave the cache as it is. Each of them ends the claim; `end` after another one does
 * nothing.
 */
export interface GrantedClaim {
  kind: 'granted';
  put(answer: CachedAnswer): Promise<void>;
  forget(): Promise<void>;
  end(): Promise<void>;
}

/** The result of a claim. */
export type Claim =
  | GrantedClaim
  /** The cache has an answer. */
  | { kind: 'cached'; cachedAnswer: CachedAnswer }
  /** The process that sent the call has died, so the service may have charged for an answer that nobody has. */
  | { kind: 'lost' };

/** The keys that the service accepted recently. The stored data of a key is served only while the key is among them. */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

/** Remembers the search of each cursor of one tenant. */
export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** The search behind a cursor, for callers that pass the cursor without the filters. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor, if it is too long to be part of this server's cursor. */
  serviceCursor?: string | undefined;
}
