import type { AdLibraryError } from './errors.ts';
import { toCanonicalJson } from './json.ts';
import type { Operation } from './operations.ts';

/** A request to the API: an operation and its arguments, without the API key. */
export interface ServiceRequest {
  operation: Operation;
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  body?: Readonly<Record<string, unknown>>;
  /**
   * True if a page of results was requested without `limit`, so that the service chose the page size. The price depends
   * on this size, and the cursor of the next page does not contain the size.
   */
  usesDefaultPageSize?: boolean | undefined;
  /** A text that is the same for identical requests, even if their callers have different API keys. */
  fingerprint: string;
}

/** The API key that pays for a call, and the ids under which the cost is recorded. */
export interface CallOwner {
  /** The caller's API key. It is sent in the `Authorization` header and must not appear anywhere else, e.g. in logs. */
  apiKey: string;
  /**
   * The id that separates the cached responses, spending and cursors of different API keys. Over HTTP, it is a keyed
   * hash of the API key.
   */
  tenantId: string;
  /**
   * The sign-in connection through which the caller uses the API key. Undefined if the caller provides the key
   * directly.
   */
  connection?: SignInConnection | undefined;
}

/** The options that control how the response cache handles a call. */
export interface CacheOptions {
  /** True to send the request even if its response is in the cache. */
  ignoresCache?: boolean | undefined;
  /** True if the response must not be added to the cache, because the caller stores its content elsewhere. */
  preventsCaching?: boolean | undefined;
  /** For `getAd`: true to accept an ad that an earlier search or list returned, instead of requesting the ad again. */
  acceptsListedAd?: boolean | undefined;
  /**
   * True if the call must neither send a paid request nor change data. If no stored response answers the call, the call
   * throws `PaymentNeededError`.
   */
  forbidsPaidRequests?: boolean | undefined;
  /**
   * Called with the pending response when the request is sent. The call counts as finished only when the returned
   * promise has resolved, even if the caller disconnects earlier.
   */
  onSending?: ((pendingResponse: Promise<ServiceResponse>) => Promise<unknown>) | undefined;
}

/**
 * The credit limit for all API calls of one tool call. The credit meter, which records the spending of API keys,
 * enforces this limit.
 */
export interface CreditLimit {
  readonly maxCredits: number;
}

/** How far a call has progressed. The credit meter and the HTTP client update these fields during the call. */
export interface CallProgress {
  /**
   * True once the request has left this process. From then on, the service may perform the request and charge for it.
   * Stays true after a failure. Becomes false again before the delay of a retry.
   */
  isSent: boolean;
  /** True if an earlier attempt of this call seemed to fail, but the service may have performed it. */
  mayHaveBeenPerformed?: boolean;
  /**
   * True if the call costs credits, because the API document says so or the service has charged for this operation
   * before.
   */
  isPaid?: boolean;
  /** Returns true while a caller waits for the response. If no caller waits, a failed call is not retried. */
  hasWaitingCaller?(): boolean;
}

/** An API call, as it passes from a tool through the cache, the credit meter and the HTTP client. */
export interface ApiCall {
  /** The operation and its arguments, which the HTTP client sends to the service. */
  request: ServiceRequest;
  owner: CallOwner;
  /** Aborts this call when the caller cancels it, and when its time limit is reached. */
  signal: AbortSignal;
  cacheOptions: CacheOptions;
  /** The credit limit of the tool call that makes this API call. */
  creditLimit?: CreditLimit | undefined;
  progress: CallProgress;
}

/**
 * A sign-in connection: the permission of an MCP host to use a user's API key. All connections of one key share the
 * cached responses and the dataset (stored ads).
 */
export interface SignInConnection {
  id: string;
  /** The maximum number of credits that this connection may spend. Undefined if only the server's budget applies. */
  creditBudget?: number | undefined;
}

/**
 * The cost of a call in credits and the remaining balance, from the response headers (API document, *Endpoints*).
 * `charged` and `remaining` are null if the header is missing.
 */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True if the response came from the cache, so that nothing was sent or charged. */
  cached: boolean;
  requestId: string | null;
  /** True if the header with the charge cannot be parsed. The charge of the call is then unknown. */
  isChargeUnreadable?: true;
  /** The number of items that were removed from the page, because they have no id and cannot be displayed or stored. */
  unusableCount?: number;
  /** The time since the response arrived, in milliseconds. Set only for cached responses. */
  ageMs?: number;
}

/** A response of the API, both parsed and as received. The response may come from the cache. */
export interface ServiceResponse {
  /** The response body after validation with the schema of the operation. */
  validatedBody: unknown;
  /** The response body as received, with all fields, for views that show every field. */
  rawBody: unknown;
  /** The response body as JSON text. The cache removes this field after it has stored the text. */
  bodyText?: string | undefined;
  receipt: Receipt;
  /**
   * The sequence number of the response. Later responses have higher numbers, even if the clocks of two replicas
   * (processes of this server) differ.
   */
  sequenceNumber?: number;
  /**
   * How long the response will remain in the cache, in milliseconds. During this time, all items of its page can be
   * shown without another call. Undefined if the response is not cached.
   */
  remainingCacheMs?: number;
  /**
   * The error of the dataset (the stored ads) if it could not store the ads or pages in this response, e.g. because the
   * disk is full.
   */
  storageError?: AdLibraryError;
  /**
   * The operation that returned this ad earlier, e.g. `searchAds`. Set only for an ad from the dataset (the stored
   * ads).
   */
  listedBy?: string;
  /**
   * True if the response comes from a dataset (stored ads), and the service could not confirm that this dataset belongs
   * to the caller.
   */
  isOwnerUnconfirmed?: true;
  /** True if the call was sent again although the service may have performed the first attempt. */
  wasRepeated?: true;
}

/** The error of a call with the `forbidsPaidRequests` option that would need a paid request. */
export class PaymentNeededError extends Error {
  override readonly name = 'PaymentNeededError';
  readonly request: ServiceRequest;

  constructor(request: ServiceRequest) {
    super('The call needs a paid request.');
    this.request = request;
  }
}

/**
 * Returns a copy of a response whose receipt (the recorded cost) says that the response came from the cache and nothing
 * was charged.
 */
export const markAsCached = (response: ServiceResponse, ageMs?: number): ServiceResponse => {
  const receipt = { ...response.receipt, charged: 0, cached: true, ...(ageMs !== undefined && { ageMs }) };
  return { ...response, receipt };
};

/**
 * Sends an API call and returns the response. The cache, the credit meter and the HTTP client all have this type, so
 * that each of them can call the next one.
 */
export type SendCall = (call: ApiCall) => Promise<ServiceResponse>;

/** Returns a text that identifies a request. The order of the request's arguments does not matter. */
export const createFingerprint = ({ operation, path, query, body }: Omit<ServiceRequest, 'fingerprint'>) =>
  toCanonicalJson([operation.name, path, query, body ?? null]);

/** Creates the request for an operation without arguments, e.g. `whoami`. */
export function createRequestWithoutArguments(operation: Operation): ServiceRequest {
  const request = { operation, path: {}, query: {} };
  return { fingerprint: createFingerprint(request), ...request };
}

/** The name under which a response is stored in the cache of an API key. */
export interface CachedResponseName {
  fingerprint: string;
  /**
   * The name of a group of responses. The cache removes all responses of a group together. For example, the lists of a
   * collection form a group, which is removed when the collection changes.
   */
  group?: string | undefined;
}

/** Returns the name of the cache group for the lists of a collection's items, e.g. `items of 7f3a`. */
export const getCollectionCacheGroup = ({ path }: Pick<ServiceRequest, 'path'>): string =>
  `items of ${(path.collectionId ?? '').toLowerCase()}`;

/**
 * Returns the name under which the response to a request is cached. Lists of a collection's items belong to a group, so
 * that the cache can remove all of these lists together.
 */
export const getCachedResponseName = (request: ServiceRequest): CachedResponseName => ({
  fingerprint: request.fingerprint,
  group: request.operation.name === 'listCollectionItems' ? getCollectionCacheGroup(request) : undefined,
});
