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

/** Options that control how the response cache handles a call. */
export interface CacheOptions {
  /** If true, the request is sent even if its response is in the cache. */
  fresh?: boolean | undefined;
  /** Does not cache the response. Used if the calling code stores the content of the response elsewhere. */
  skipsCaching?: boolean | undefined;
  /**
   * For `getAd`: if true, an ad that an earlier search or list returned is accepted, instead of requesting the ad
   * again.
   */
  acceptsListedAd?: boolean | undefined;
  /** If true, a paid request is never sent. The call throws `PaymentNeeded` if its response is not stored. */
  storedOnly?: boolean | undefined;
  /**
   * Called with the pending response when the request is sent. The request continues even if the caller disconnects.
   * The call counts as finished when the promise that this function returns has resolved.
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
  /** True if an earlier attempt of this call failed, although the service may have performed it. */
  mayBePerformed?: boolean;
  /**
   * True if the call costs credits, according to the API document or because the service has charged for this operation
   * before.
   */
  isPaid?: boolean;
  /** Returns true while a caller is waiting for the response. A failed call is not retried once nobody waits for it. */
  isWanted?(): boolean;
}

/**
 * An API call. It passes from a tool through the cache, the credit meter and the HTTP client. Each of them uses only
 * some of the fields.
 */
export interface ApiCall {
  /** The operation to perform and its arguments. The HTTP client sends them to the service. */
  request: ServiceRequest;
  owner: CallOwner;
  /** The signal that aborts this API call: when the caller cancels it, and at its deadline. */
  signal: AbortSignal;
  /** Options that tell the cache how to handle the response. */
  cache: CacheOptions;
  /** The credit limit of the tool call that makes this API call. The credit meter enforces it. */
  creditLimit?: CreditLimit | undefined;
  progress: CallProgress;
}

/**
 * The permission of one MCP host to use a user's API key, granted by signing in. All connections of one key share the
 * cached responses and the dataset.
 */
export interface Connection {
  id: string;
  /**
   * The maximum number of credits that this sign-in connection may spend in total. Undefined if only the server's
   * budget applies.
   */
  budget?: number | undefined;
}

/**
 * The cost of a call in credits and the remaining credit balance, read from the response headers (API document,
 * *Endpoints*). `charged` and `remaining` are null if the header is missing.
 */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True if the response came from the cache, so that no request was sent and nothing was charged. */
  cached: boolean;
  requestId: string | null;
  /** True if the response states a charge that cannot be parsed. The charge of the call is then unknown. */
  chargeUnreadable?: true;
  /**
   * The number of items that were removed from the page, because an item without an id cannot be displayed or stored.
   */
  unusable?: number;
  /** The time since the response arrived, in milliseconds. Only set for cached responses. */
  age?: number;
}

/** A response of the API, parsed and as received. It may come from the cache instead of the network. */
export interface ServiceResponse {
  /** The response body after validation with the operation's schema. */
  value: unknown;
  /**
   * The response body as received, including fields that the schema does not know. Views that show every field need it.
   */
  raw: unknown;
  /** The response body as JSON text. The cache removes this field once the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /**
   * The sequence number of the response. A later response has a higher number, even if the clocks of two replicas
   * differ.
   */
  order?: number;
  /** True if the response is now in the cache, so that other items of its page can be shown without another call. */
  isCached?: true;
  /** If an earlier search or list returned this ad: the name of that operation, e.g. `searchAds`. */
  seenIn?: string;
  /**
   * True if the response comes from a dataset (stored ads) and the service could not confirm that this dataset belongs
   * to the caller.
   */
  isUnconfirmed?: true;
  /** True if the call was retried although the service may have performed the first attempt. */
  repeated?: true;
}

/** The error that a call with `storedOnly` throws instead of sending a paid request. */
export class PaymentNeeded extends Error {
  override readonly name = 'PaymentNeeded';
  readonly request: ServiceRequest;

  constructor(request: ServiceRequest) {
    super('The call needs a paid request.');
    this.request = request;
  }
}

/**
 * Returns a copy of a response from the cache. Its receipt (the recorded cost) states that no request was sent and
 * nothing was charged.
 */
export const markAsCached = (response: ServiceResponse, ageMs?: number): ServiceResponse => {
  const receipt = { ...response.receipt, charged: 0, cached: true, ...(ageMs !== undefined && { age: ageMs }) };
  return { ...response, receipt };
};

/**
 * Sends an API call and returns its response. The cache, the credit meter and the HTTP client all implement this type,
 * so each one can call the next.
 */
export type SendCall = (call: ApiCall) => Promise<ServiceResponse>;

/**
 * Returns a text that identifies a request. Requests with the same arguments in a different order have the same text.
 */
export const createFingerprint = ({ operation, path, query, body }: Omit<ServiceRequest, 'fingerprint'>) =>
  toCanonicalJson([operation.name, path, query, body ?? null]);

/** Creates the request for an operation that takes no arguments, e.g. `whoami`. */
export function requestWithoutArguments(operation: Operation): ServiceRequest {
  const request = { operation, path: {}, query: {} };
  return { fingerprint: createFingerprint(request), ...request };
}

/** The name of a response in the cache. Each API key has a separate cache. */
export interface ResponseName {
  fingerprint: string;
  /**
   * The name of a group of responses that are deleted from the cache together. For example, all pages of a collection
   * form a group, which is deleted when the collection changes.
   */
  group?: string | undefined;
}

/** Returns the cache group of all responses that list the items of a collection. */
export const getCollectionCacheGroup = ({ path }: Pick<ServiceRequest, 'path'>): string =>
  `items of ${(path.collectionId ?? '').toLowerCase()}`;

/**
 * Returns the name under which the response to a request is cached. The cached lists of a collection's items belong to a
 * group, so that they can be removed together. All other responses belong to no group.
 */
export const getResponseName = (request: ServiceRequest): ResponseName => ({
  fingerprint: request.fingerprint,
  group: request.operation.name === 'listCollectionItems' ? getCollectionCacheGroup(request) : undefined,
});
