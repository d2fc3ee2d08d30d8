import type { ApiCall, ResponseName, ServiceResponse } from '../api/call.ts';
import type { CreditLedger, FullUsageWindows } from '../credits/ledger.ts';
import type { UseOnce } from './single-use.ts';

/**
 * The stored state of all API calls: spending, cached responses, reached usage limits, accepted keys and cursors. A
 * tenant is the owner of an API key, and each method works on the data of one tenant. The state is kept in this
 * process, in a folder, or in a store that several replicas share.
 */
export interface CallState {
  ledger: CreditLedger;
  responseCache: ResponseCache;
  usageWindows: FullUsageWindows;
  openCursors(tenantId: string): CursorMemory;
  /** Marks a token as used, e.g. a confirmation to spend credits, so that nobody can use it a second time. */
  useOnce: UseOnce;
}

/** Options for opening the stored state of API calls, wherever it is stored. */
export interface StateOptions {
  /** How long API responses stay cached, in milliseconds. */
  ttlMs: number;
  /** Returns the time by the wall clock of this process, in milliseconds since 1970. */
  now: () => number;
  /** Returns milliseconds from a clock that is never set back. Durations are measured with it. */
  monotonicNow: () => number;
}

/** A cached API response, and the time at which the service sent it. */
export interface CachedResponse {
  response: ServiceResponse;
  /** The time at which the service sent the response, in milliseconds since 1970. */
  arrivedAt: number;
}

/**
 * Caches paid API responses per tenant, with a time limit and a memory limit. It also ensures that only one process at
 * a time sends a given call, so that identical calls are charged once. No method rejects, except `claim` when the call
 * is aborted.
 */
export interface ResponseCache {
  /**
   * Returns the name under which the cache stores a response. Each call of `forgetGroup` changes the names in that
   * group, so that older responses are no longer found. Returns undefined while the cache cannot tell whether the group
   * was forgotten. The call must then bypass the cache.
   */
  resolveName(tenantId: string, response: ResponseName): Promise<string | undefined>;
  /** Returns the cached response, or undefined if there is none or it has expired. */
  get(tenantId: string, name: string): Promise<CachedResponse | undefined>;
  /**
   * Waits while another process sends the same call. Resolves to that process's response if there is one, and otherwise
   * to the right to send the call.
   */
  claim(call: ClaimedCall, name: string | undefined, request: ClaimRequest): Promise<Claim>;
  /**
   * Removes all responses of a group from the cache, e.g. the lists of a collection after an item was added. Responses
   * to calls that are still in progress are not cached either, because they may be outdated.
   */
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

/** The properties of a call that `ResponseCache.claim` needs to decide whether this process may send the call. */
export type ClaimedCall = Pick<ApiCall, 'request' | 'owner' | 'signal'>;

/** Options for `ResponseCache.claim`, with which a process obtains the right to send a call. */
export interface ClaimRequest {
  /**
   * If set, only cached responses that arrived after this time are accepted, in milliseconds since 1970. By default,
   * every cached response is accepted.
   */
  after?: number | undefined;
  /**
   * Called if the process that was sending the same call has died. `id` identifies the claim (the right to send the
   * call) of that process.
   */
  onLost(id: string): Promise<void>;
}

/**
 * The right of this process to send a call. After sending it, the process ends the claim with one of three methods:
 *
 * - `put` caches the response.
 * - `forget` removes the cached response.
 * - `end` leaves the cache unchanged. It does nothing if the claim has already ended.
 */
export interface GrantedClaim {
  kind: 'granted';
  put(answer: CachedResponse): Promise<void>;
  forget(): Promise<void>;
  end(): Promise<void>;
}

/**
 * The result of `ResponseCache.claim`: the right to send the call, a cached response, or the notice that the process
 * that sent the call has died.
 */
export type Claim =
  | GrantedClaim
  /** The response was already in the cache, so the call must not be sent. */
  | { kind: 'cached'; cachedResponse: CachedResponse }
  /** The process that sent the call died, so the service may have charged for a response that was never received. */
  | { kind: 'lost' };

/**
 * The API keys that the service accepted recently. Stored data is returned only to a key that counts as accepted, so
 * that a revoked key loses access to it.
 */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

/**
 * Remembers the searches of a tenant (API key) by page cursor. A page cursor is the text with which a tool call
 * requests the next page of results.
 */
export interface CursorMemory {
  remember(cursor: string, state: CursorState): Promise<void>;
  recall(cursor: string): Promise<CursorState | undefined>;
}

/**
 * The search that a page cursor belongs to. Because it is stored, a tool call can pass the cursor without repeating the
 * filters.
 */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /** The service's cursor. Present only if it is too long to be part of this server's cursor. */
  serviceCursor?: string | undefined;
}
