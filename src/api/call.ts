import { toCanonicalJson } from './json.ts';
import type { Operation } from './operations.ts';

/** A request to the API: the operation and its arguments, without the caller's credentials. */
export interface ServiceRequest {
  operation: Operation;
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  body?: Readonly<Record<string, unknown>>;
  /**
   * True for a page of results that was requested without a `limit`, so that the service chose the page size. The price
   * of a page depends on its size, and the cursor of the next page does not contain the size.
   */
  hasDefaultSize?: boolean | undefined;
  /** Identifies the request. Equal requests have equal fingerprints, even from callers with different API keys. */
  fingerprint: string;
}

/** The API key that pays for a call, and the ids under which its cost is recorded. */
export interface CallOwner {
  /** The caller's API key. It is sent in the `Authorization` header and must not appear anywhere else. */
  apiKey: string;
  /**
   * Separates the data of different API keys in the cache, the ledger and the cursors. Over HTTP, this is a keyed hash
   * of the API key.
   */
  tenantId: string;
  /** The sign-in through which the caller uses the API key. Undefined if the caller sends the key itself. */
  connection?: Connection | undefined;
}

/** Options that control how the cache handles a call. */
export interface CacheOptions {
  /** Sends the request even if its response is cached. */
  fresh?: boolean | undefined;
  /** Does not cache the response, because the caller stores its content elsewhere. */
  uncached?: boolean | undefined;
  /** For `getAd`: accepts an ad from a cached search or list instead of requesting the ad. */
  seen?: boolean | undefined;
  /** Never sends a paid request. If the response is not stored, the call throws `PaymentNeeded`. */
  storedOnly?: boolean | undefined;
  /**
   * Called when the request is sent. The request keeps running if the caller gives up, and counts as finished when the
   * returned promise has resolved.
   */
  onSending?: ((sending: Promise<Answer>) => Promise<unknown>) | undefined;
}

/** A credit limit for all API calls of one tool call. The meter creates the limit and tracks the remaining credits. */
export interface CreditLimit {
  readonly maxCredits: number;
}

/** The state of a call in progress. The meter and the HTTP client update it, and the cache reads it. */
export interface CallProgress {
  /** True once the request has left this process. The service may then carry out the request. */
  sent: boolean;
  /** True if the service may have carried out an earlier attempt. */
  mayBeDone?: boolean;
  /** True if the call costs credits: the API document says so, or the service has charged for the operation before. */
  isPaid?: boolean;
  /** Returns true while a caller is waiting for the response. */
  isWanted?(): boolean;
}

/**
 * An API call. It passes from a tool through the cache, the meter and the HTTP client, and each of them reads its own
 * members.
 */
export interface Call {
  /** For the HTTP client: the request to send. */
  request: ServiceRequest;
  owner: CallOwner;
  /** Aborts when the caller cancels, or at the deadline. */
  signal: AbortSignal;
  /** For the cache. */
  cache: CacheOptions;
  /** For the meter: the credit limit of the tool call that makes this API call. */
  creditLimit?: CreditLimit | undefined;
  progress: CallProgress;
}

/** A sign-in of one host with a user's API key. All connections of one key share cached responses and the dataset. */
export interface Connection {
  id: string;
  /** The total number of credits that the connection may spend. Undefined if only the server's budget limits it. */
  budget?: number | undefined;
}

/**
 * The cost of a call, from the response headers (API document, *Endpoints*). Credits are null if the service sent no
 * header.
 */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True if no request was sent, because the response came from the cache. */
  cached: boolean;
  requestId: string | null;
  /** True if the service sent a charge that cannot be parsed. */
  chargeUnreadable?: true;
  /** The number of items that were removed from the page because they have no id. */
  unusable?: number;
  /** The age of a cached response, in milliseconds. */
  age?: number;
}
/** A response of the API, or the cached copy of a response. */

export interface Answer {
  /** The response body, parsed with the operation's schema. */
  value: unknown;
  /** The response body as received, for views that show every field. */
  raw: unknown;
  /** The JSON text of the response body. The cache removes it once the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /**
   * The sequence number of the response. A later response has a higher number, even if the clocks of two replicas
   * differ.
   */
  order?: number;
  /** True if the response is cached, so that the other items of its page can be shown without another call. */
  isCached?: true;
  /** For an ad taken from a cached search or list: the name of that operation. */
  seenIn?: string;
  /** True if the service could not confirm that the dataset of this response belongs to the caller. */
  isUnconfirmed?: true;
  /** True if the call was retried although the service may have carried out the first attempt. */
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

/** Returns the response with a receipt that says that nothing was sent or charged. */
export const replay = (answer: Answer, age?: number): Answer => {
  const receipt = { ...answer.receipt, charged: 0, cached: true, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/**
 * Sends an API call and returns its response. The cache, the meter and the HTTP client all have this type, so that they
 * can be chained.
 */
export type Send = (call: Call) => Promise<Answer>;

/** Returns a text that identifies a request. Equal requests have equal texts, whatever the order of their arguments. */
export const createFingerprint = ({ operation, path, query, body }: Omit<ServiceRequest, 'fingerprint'>) =>
  toCanonicalJson([operation.name, path, query, body ?? null]);

/** Creates the request for an operation without arguments. */
export function requestWithoutArguments(operation: Operation): ServiceRequest {
  const request = { operation, path: {}, query: {} };
  return { fingerprint: createFingerprint(request), ...request };
}

/** Identifies a response in the cache. */
export interface AnswerName {
  fingerprint: string;
  /** All cached responses of a group are discarded together, e.g. the item lists of a collection after a change. */
  group?: string | undefined;
}

/** Returns the cache group of the responses that list the items of a collection. */
export const getItemsGroup = ({ path }: Pick<ServiceRequest, 'path'>): string =>
  `items of ${(path.collectionId ?? '').toLowerCase()}`;

/** Returns the name under which the response to a request is cached. */
export const getAnswerName = (request: ServiceRequest): AnswerName => ({
  fingerprint: request.fingerprint,
  group: request.operation.name === 'listCollectionItems' ? getItemsGroup(request) : undefined,
});
