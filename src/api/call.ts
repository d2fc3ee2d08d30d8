import { canonical } from './json.ts';
import type { Operation } from './operations.ts';

/** A request to the API without its caller: the operation and its arguments. */
export interface ServiceRequest {
  operation: Operation;
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  body?: Readonly<Record<string, unknown>>;
  /**
   * True for a page of a list that began without a limit. Such a page has the service's default size, which its price
   * depends on. The service's cursor does not tell.
   */
  hasDefaultSize?: boolean | undefined;
  /** Equal for equal requests of any key; see `fingerprint`. */
  fingerprint: string;
}

/** The API key that pays for a call, and the accounts that record its cost. */
export interface CallOwner {
  /** Goes into one header and nowhere else. */
  apiKey: string;
  /** Partitions the cache, the ledger and the cursors by API key. Over HTTP, a keyed hash of the key. */
  tenantId: string;
  /** The sign-in through which the caller uses the key; undefined if the caller sends the key itself. */
  connection?: Connection | undefined;
}

/** How the cache treats a call. */
export interface CacheOptions {
  /** Asks the service even if the answer is cached. */
  fresh?: boolean | undefined;
  /** Does not cache the answer, because its content is stored elsewhere. */
  uncached?: boolean | undefined;
  /** Accepts the copy of an ad that a list showed, instead of the answer of `getAd`. */
  seen?: boolean | undefined;
  /** Sends no paid request: the call throws `PaymentNeeded` if no stored answer replaces the request. */
  storedOnly?: boolean | undefined;
  /**
   * Receives the request when it is sent. The request continues after its caller has left, and ends only after the
   * returned promise has resolved.
   */
  onSending?: ((sending: Promise<Answer>) => Promise<unknown>) | undefined;
}

/** A limit of credits for all calls of one tool call. The meter opens the limit and knows the remaining credits. */
export interface CreditLimit {
  readonly maxCredits: number;
}

/** What has happened to a call so far. The meter and the HTTP client write it; the cache reads it. */
export interface CallProgress {
  /** Whether the request has left this process: from then on the service may carry it out. */
  sent: boolean;
  /** Whether an earlier attempt may have been carried out. */
  mayBeDone?: boolean;
  /** Whether the call costs credits: its operation is gated, or has charged although the document does not say so. */
  isPaid?: boolean;
  /** Returns whether a caller still waits for the answer. */
  isWanted?(): boolean;
}

/** A call of the API on its way from a tool to the network. Each member belongs to one step of that way. */
export interface Call {
  /** Read by the HTTP client, which sends it. */
  request: ServiceRequest;
  owner: CallOwner;
  /** Aborts when the caller leaves, or at the deadline. */
  signal: AbortSignal;
  /** Read by the cache. */
  cache: CacheOptions;
  /** Read by the meter: the limit of the tool call that makes this call. */
  creditLimit?: CreditLimit | undefined;
  progress: CallProgress;
}

/** What a person let one host do with their key. Connections of one key share cached answers and the dataset. */
export interface Connection {
  id: string;
  /** The credits that the connection may spend in all; undefined if only the server's budget limits it. */
  budget?: number | undefined;
}

/** What a call cost, from the headers (document, *Endpoints*); null if the service sent none. */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True if nothing was sent. */
  cached: boolean;
  requestId: string | null;
  /** The service stated a charge that cannot be read. */
  chargeUnreadable?: true;
  /** The number of items of the page that lack an id and were left out. */
  unusable?: number;
  /** The age of a cached answer in milliseconds. */
  age?: number;
}

export interface Answer {
  /** The body, read with the operation's schema. */
  value: unknown;
  /** The body as it was received, for views that show every field. */
  raw: unknown;
  /** The text that `value` was parsed from. The cache removes it once the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /** The sequence number of the answer. Later answers have higher numbers, even where clocks differ. */
  order?: number;
  /** Present if the answer is cached, so that the other items of its page can be shown without another call. */
  isCached?: true;
  /** The operation of the list that an ad was copied from. */
  seenIn?: string;
  /** True if the service could not confirm that the dataset of this answer belongs to the caller. */
  isUnconfirmed?: true;
  /** True if an earlier attempt may have been carried out, too. */
  repeated?: true;
}

/** Thrown instead of sending a paid request by a call that may only use stored answers. */
export class PaymentNeeded extends Error {
  override readonly name = 'PaymentNeeded';
  readonly request: ServiceRequest;

  constructor(request: ServiceRequest) {
    super('The call needs a paid request.');
    this.request = request;
  }
}

/** Returns the same answer with a receipt that says that nothing was sent or charged. */
export const replay = (answer: Answer, age?: number): Answer => {
  const receipt = { ...answer.receipt, charged: 0, cached: true, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/** Sends a call, or answers it otherwise: the signature of each step between a tool and the network. */
export type Send = (call: Call) => Promise<Answer>;

/** Returns a text that is equal for equal requests, whatever the order of their arguments. */
export const fingerprint = ({ operation, path, query, body }: Omit<ServiceRequest, 'fingerprint'>) =>
  canonical([operation.name, path, query, body ?? null]);

/** Returns the request of an operation that takes no arguments. */
export function requestWithoutArguments(operation: Operation): ServiceRequest {
  const request = { operation, path: {}, query: {} };
  return { fingerprint: fingerprint(request), ...request };
}

export interface AnswerName {
  fingerprint: string;
  /** Answers of a group become stale together. */
  group?: string | undefined;
}

/** Returns the group of the answers that list the items of a collection. */
export const itemsGroup = ({ path }: Pick<ServiceRequest, 'path'>): string =>
  `items of ${(path.collectionId ?? '').toLowerCase()}`;

export const answerNameOf = (request: ServiceRequest): AnswerName => ({
  fingerprint: request.fingerprint,
  group: request.operation.name === 'listCollectionItems' ? itemsGroup(request) : undefined,
});
