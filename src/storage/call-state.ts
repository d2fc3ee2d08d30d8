import type { ApiCall, CachedResponseName, ServiceResponse } from '../api/call.ts';
import type { CreditLedger, ReachedUsageLimitStore } from '../credits/ledger.ts';
import type { UseOnce } from './single-use.ts';

/**
 * The data that is stored about API calls: spending, cached responses, reached usage limits, page cursors and used
 * tokens. Each method works on the data of one tenant (API key). The data is stored in memory, in a folder, or in a
 * store that several replicas share.
 */
export interface CallState {
  ledger: CreditLedger;
  responseCache: ResponseCache;
  reachedUsageLimits: ReachedUsageLimitStore;
  openCursors(tenantId: string): CursorStore;
  /** Marks a token as used, e.g. a confirmation to spend credits, so that nobody can use it a second time. */
  useOnce: UseOnce;
}

/** The options for opening a `CallState`: the lifetime of cached responses, and two clocks. */
export interface StateOptions {
  /** How long API responses stay cached, in milliseconds. */
  ttlMs: number;
  /** Returns the current time by the wall clock, in milliseconds since 1970. */
  now: () => number;
  /** Returns the time of a clock that is never set back, in milliseconds. Used to measure durations. */
  monotonicNow: () => number;
}

/** A response of the service, as it is stored in the cache. */
export interface CachedResponse {
  response: ServiceResponse;
  /** The time at which the response arrived, in milliseconds since 1970. */
  arrivedAt: number;
}

/**
 * Caches paid API responses for each tenant (API key), with a time limit and a memory limit. Also ensures that only one
 * process at a time sends a given call, so that identical calls are charged only once. No method rejects, except
 * `claim` when the call is aborted.
 */
export interface ResponseCache {
  /**
   * Returns the name under which a response is cached. After `forgetGroup`, all responses of the group (e.g. the lists
   * of a collection) get other names, so that older responses are no longer found. Returns undefined if it is unknown
   * whether the group was forgotten. The call must then bypass the cache.
   */
  resolveName(tenantId: string, response: CachedResponseName): Promise<string | undefined>;
  /** Returns the cached response. Returns undefined if there is no such response or if it has expired. */
  get(tenantId: string, name: string): Promise<CachedResponse | undefined>;
  /**
   * Waits while another process sends the same call. Resolves to the response that the other process received, to the
   * right (the claim) to send the call, or to the notice that the other process died.
   */
  claim(call: ClaimedCall, name: string | undefined, request: ClaimRequest): Promise<ClaimResult>;
  /**
   * Removes all responses of a group from the cache, e.g. the lists of a collection after an item was added. Responses
   * to calls in progress may be outdated, so they are not cached either.
   */
  forgetGroup(tenantId: string, group: string): Promise<void>;
}

/** The properties of an API call that `ResponseCache.claim` needs to decide whether this process may send the call. */
export type ClaimedCall = Pick<ApiCall, 'request' | 'owner' | 'signal'>;

/** The options of `ResponseCache.claim`, which gives a process the right to send a call. */
export interface ClaimRequest {
  /**
   * A cached response is accepted only if it arrived after this time, in milliseconds since 1970. By default, all
   * responses are accepted.
   */
  arrivedAfter?: number | undefined;
  /**
   * Called if the process that was sending the same call has died. `claimId` identifies the claim (the right to send
   * the call) of that process.
   */
  onProcessDied(claimId: string): Promise<void>;
}

/**
 * The right of this process to send a call. After sending the call, the process ends the claim with one of three
 * methods:
 *
 * - `cacheResponse` caches the response. Resolves to false if the cache could not store it, e.g. because it is too
 *   large.
 * - `removeResponse` removes the cached response.
 * - `endClaim` leaves the cache unchanged. Does nothing if the claim has already ended.
 */
export interface GrantedClaim {
  kind: 'granted';
  cacheResponse(cachedResponse: CachedResponse): Promise<boolean>;
  removeResponse(): Promise<void>;
  endClaim(): Promise<void>;
}

/**
 * The result of `ResponseCache.claim`: the right to send the call, a cached response, or the notice that the process
 * that was sending the call has died.
 */
export type ClaimResult =
  | GrantedClaim
  /** The response was already in the cache, so the call must not be sent. */
  | { kind: 'cached'; cachedResponse: CachedResponse }
  /** The process that sent the call has died. The service may have charged for a response that no process received. */
  | { kind: 'lost' };

/**
 * The API keys that the service accepted recently, by tenant id. Only accepted keys may read stored data, so that a
 * revoked key loses access to the data.
 */
export interface AcceptedKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): Promise<void>;
  remove(tenantId: string): Promise<void>;
}

/**
 * Stores the searches of a tenant (API key) by page cursor. A page cursor is the text with which a tool call requests
 * the next page of results.
 */
export interface CursorStore {
  save(cursor: string, cursorState: CursorState): Promise<void>;
  load(cursor: string): Promise<CursorState | undefined>;
}

/**
 * The search that a page cursor belongs to. This search is stored so that a tool call can pass the cursor without
 * repeating the filters.
 */
export interface CursorState {
  searchParams: Readonly<Record<string, unknown>>;
  /**
   * The service's own page cursor. Stored only if it is too long to be embedded in the page cursor that this server
   * returns.
   */
  serviceCursor?: string | undefined;
}
