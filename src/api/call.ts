import { toCanonicalJson } from './json.ts';
import type { Operation } from './operations.ts';

/** A request to the API: an operation and its arguments. It does not contain the caller's credentials. */
export interface ServiceRequest {
  operation: Operation;
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  body?: Readonly<Record<string, unknown>>;
  /**
   * True if a page of results was requested without `limit`, so that the service chose the page size. The meter needs
   * to know this, because the price depends on the size, and the cursor of the next page does not contain it.
   */
  hasDefaultSize?: boolean | undefined;
  /**
   * Identifies the request. Identical requests have identical fingerprints, even if the callers have different API
   * keys.
   */
  fingerprint: string;
}

/** The API key that pays for a call, and the ids for which the cost is recorded. */
export interface CallOwner {
  /** The caller's API key. It is sent in the `Authorization` header and must not appear anywhere else, e.g. in logs. */
  apiKey: string;
  /**
   * Keeps the data of different API keys apart in the cache, the credit ledger and the cursors. Over HTTP, it is a
   * keyed hash of the API key.
   */
  tenantId: string;
  /** The sign-in through which the caller uses the API key. Undefined if the caller sends the key itself. */
  connection?: Connection | undefined;
}

/** Options that control how the cache handles a call. */
export interface CacheOptions {
  /** Sends the request even if its response is cached. */
  fresh?: boolean | undefined;
  /** Does not cache the response, because the calling code stores the content elsewhere. */
  skipsCaching?: boolean | undefined;
  /** For `getAd`: accepts an ad that an earlier search or list returned, instead of requesting it again. */
  acceptsListedAd?: boolean | undefined;
  /** Never sends a paid request. Throws `PaymentNeeded` if the response is not stored. */
  storedOnly?: boolean | undefined;
  /**
   * Called when the request is sent. The request continues even if the caller disconnects. It counts as finished when
   * the returned promise has resolved.
   */
  onSending?: ((sending: Promise<ServiceResponse>) => Promise<unknown>) | undefined;
}

/** A credit limit for all API calls of one tool call. The credit meter creates it and tracks the remaining credits. */
export interface CreditLimit {
  readonly maxCredits: number;
}

/** The state of a call in progress. The credit meter and the HTTP client update it, and the cache reads it. */
export interface CallProgress {
  /** True once the request has left this process. From then on, the service may perform and charge it. */
  isSent: boolean;
  /** True if the service may have performed an earlier attempt of this call. */
  mayBePerformed?: boolean;
  /**
   * True if the call costs credits, according to the API document or because the service has charged for this operation
   * before.
   */
  isPaid?: boolean;
  /** Returns true while a caller is waiting for the response. */
  isWanted?(): boolean;
}

/**
 * An API call. It passes from a tool through the cache, the credit meter and the HTTP client. Each of them uses only
 * some of the fields.
 */
export interface ApiCall {
  /** Used by the HTTP client: the request to send. */
  request: ServiceRequest;
  owner: CallOwner;
  /** Aborts when the caller cancels the call, and at the deadline. */
  signal: AbortSignal;
  /** Used by the cache: how to handle the response. */
  cache: CacheOptions;
  /** Used by the credit meter: the credit limit of the tool call that makes this API call. */
  creditLimit?: CreditLimit | undefined;
  progress: CallProgress;
}

/**
 * The permission of one MCP host to use a user's API key, granted by signing in. All connections of one key share the
 * cached responses and the dataset.
 */
export interface Connection {
  id: string;
  /** Total number of credits that the connection may spend. Undefined if only the server's budget applies. */
  budget?: number | undefined;
}

/**
 * The cost of a call, read from the response headers (API document, *Endpoints*). `charged` and `remaining` are null if
 * the header is missing.
 */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True if the response came from the cache and no request was sent. */
  cached: boolean;
  requestId: string | null;
  /** True if the header with the charge cannot be parsed. */
  chargeUnreadable?: true;
  /** Number of items that were removed from the page because they have no id. */
  unusable?: number;
  /** Age of a cached response, in milliseconds. */
  age?: number;
}

/** A response of the API. It may come from the cache. */
export interface ServiceResponse {
  /** The response body after validation with the operation's schema. */
  value: unknown;
  /** The response body as received. Needed for views that show every field. */
  raw: unknown;
  /** The response body as JSON text. The cache removes this field once the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /**
   * Sequence number of the response. A later response has a higher number, even if the clocks of two replicas differ.
   */
  order?: number;
  /** True if the response is cached. The other items of its page can then be shown without another call. */
  isCached?: true;
  /** For an ad that an earlier search or list returned: the name of that operation. */
  seenIn?: string;
  /** True if the service could not confirm that the dataset with this response belongs to the caller. */
  isUnconfirmed?: true;
  /** True if the call was retried although the service may have performed the first attempt. */
  repeated?: true;
}

/** Thrown by a call with `storedOnly` instead of sending a paid request. */
export class PaymentNeeded extends Error {
  override readonly name = 'PaymentNeeded';
  readonly request: ServiceRequest;

  constructor(request: ServiceRequest) {
    super('The call needs a paid request.');
    this.request = request;
  }
}

/** Returns a copy of the response whose receipt shows that no request was sent and nothing was charged. */
export const markAsCached = (response: ServiceResponse, ageMs?: number): ServiceResponse => {
  const receipt = { ...response.receipt, charged: 0, cached: true, ...(ageMs !== undefined && { age: ageMs }) };
  return { ...response, receipt };
};

/**
 * Sends an API call and returns its response. The cache, the credit meter and the HTTP client all implement this type,
 * so each one can call the next.
 */
export type SendCall = (call: ApiCall) => Promise<ServiceResponse>;

/** Returns a text that identifies a request. The order of the arguments does not matter. */
export const createFingerprint = ({ operation, path, query, body }: Omit<ServiceRequest, 'fingerprint'>) =>
  toCanonicalJson([operation.name, path, query, body ?? null]);

/** Creates the request for an operation that takes no arguments. */
export function requestWithoutArguments(operation: Operation): ServiceRequest {
  const request = { operation, path: {}, query: {} };
  return { fingerprint: createFingerprint(request), ...request };
}

/** Identifies a response in the cache of one API key. */
export interface ResponseName {
  fingerprint: string;
  /**
   * All cached responses of a group are deleted together, e.g. all pages of a collection after the collection has
   * changed.
   */
  group?: string | undefined;
}

/** Returns the cache group of all responses that list the items of a collection. */
export const getCollectionCacheGroup = ({ path }: Pick<ServiceRequest, 'path'>): string =>
  `items of ${(path.collectionId ?? '').toLowerCase()}`;

/** Returns the name under which the response to a request is cached. */
export const getResponseName = (request: ServiceRequest): ResponseName => ({
  fingerprint: request.fingerprint,
  group: request.operation.name === 'listCollectionItems' ? getCollectionCacheGroup(request) : undefined,
});
