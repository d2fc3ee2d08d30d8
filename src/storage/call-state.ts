import type { Answer, AnswerName, Call } from '../api/call.ts';
import type { CreditLedger, FullWindows } from '../credits/ledger.ts';
import type { UseOnce } from './single-use.ts';

/**
 * The stored state of API calls, for all tenants. It is stored in this process, in a folder, or in a store that several
 * replicas share.
 */
export interface CallState {
  ledger: CreditLedger;
  answers: AnswerCache;
  windows: FullWindows;
  cursorsOf(tenantId: string): CursorMemory;
  /** Makes a token usable once. */
  useOnce: UseOnce;
}

/** Options that all implementations of the state share. */
export interface StateOptions {
  /** How long API responses stay cached, in milliseconds. */
  ttlMs: number;
  /** The time of this process, in milliseconds since 1970. */
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  monotonicNow: () => number;
}

/** An API response in the cache. */
export interface CachedAnswer {
  answer: Answer;
  /** When the service sent the response, in milliseconds since 1970. */
  at: number;
}

/**
 * Caches paid API responses per tenant, within limits of time and memory. Ensures that only one process at a time sends
 * a given call. No method rejects, except `claim` if the signal of its call aborts.
 */
export interface AnswerCache {
  /**
   * Returns the name under which the cache stores a response. The name changes each time the group of the response is
   * forgotten. Returns undefined if the cache does not know at the moment whether the group was forgotten. The caller
   * must then not use the cache for this call.
   */
  resolveName(tenantId: string, answer: AnswerName): Promise<string | undefined>;
  /** Returns the cached response. Returns undefined if there is none or if it has expired. */
  get(tenantId: string, name: string): Promise<CachedAnswer | undefined>;
  /**
   * Waits while another process sends the same call. Resolves to the cached response, or to the right to send the call.
   */
  claim(call: ClaimedCall, name: string | undefined, request: ClaimRequest): Promise<Claim>;
  /**
   * Removes all responses of a group from the cache. Responses to calls that are still in progress will not be cached
   * either.
   */
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

/** The parts of a call that the cache needs in order to claim the call. */
export type ClaimedCall = Pick<Call, 'request' | 'owner' | 'signal'>;

/** Options for `AnswerCache.claim`. */
export interface ClaimRequest {
  /**
   * Accept a cached response only if it arrived after this time, in milliseconds since 1970. By default, every cached
   * response is accepted.
   */
  after?: number | undefined;
  /** Called with the id of a claim whose process died while sending the call. */
  onLost(id: string): Promise<void>;
}

/**
 * The right of this process to send a call. Afterwards the process calls one of three methods, which ends the claim:
 *
 * - `put` caches the response.
 * - `forget` removes the cached response.
 * - `end` leaves the cache unchanged. It does nothing if the claim has already ended.
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
  /** The response was in the cache. */
  | { kind: 'cached'; cachedAnswer: CachedAnswer }
  /** The process that sent the call died, so the service may have charged for a response that was never received. */
  | { kind: 'lost' };

/**
 * The API keys that the service accepted recently. Data that is stored for a key is served only while the key counts as
 * accepted.
 */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

/** Stores the search that each cursor of a tenant belongs to. */
export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/** The search that a cursor belongs to. It lets callers pass a cursor without repeating the filters. */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor. Present only if it is too long to be part of this server's cursor. */
  serviceCursor?: string | undefined;
}
