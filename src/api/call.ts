import { canonical } from './json.ts';
import type { Operation } from './operations.ts';

export interface Call {
  operation: Operation;
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  body?: Readonly<Record<string, unknown>>;
  /** Equal for equal calls of any key; see `fingerprint`. */
  fingerprint: string;
  /** Goes into one header and nowhere else. */
  apiKey: string;
  /** Partitions cache, ledger and cursors per API key; over HTTP a keyed hash of the key. */
  tenantId: string;
  /** Aborts when the caller leaves or at the deadline. */
  signal: AbortSignal;
  /** Asks the service even if the answer is cached. */
  fresh?: boolean | undefined;
  /** The answer is not cached, because its content is stored elsewhere. */
  uncached?: boolean | undefined;
  /** Accepts a copy of the ad from a list. */
  seen?: boolean | undefined;
  /** Continues a list that was begun without a limit: its pages have the service's own size. */
  usualSize?: boolean | undefined;
  /** Costs credits: its operation is gated, or has charged although the document does not say so. */
  paid?: boolean;
  transit?: Transit;
  /** What the tool call that makes it may spend. */
  callBudget?: CreditLimit | undefined;
  /** How its caller signed in, if not with the key itself. */
  connection?: Connection | undefined;
  /** Wraps the sending of the call, which continues after the caller has left. */
  wrapSend?: ((send: () => Promise<Answer>) => Promise<Answer>) | undefined;
}

/** A limit of credits for all calls of one tool call. The meter opens it, and knows what is left. */
export interface CreditLimit {
  readonly maxCredits: number;
}

/** What a person let one host do with their key. Connections of one key share what is remembered of it. */
export interface Connection {
  id: string;
  /** Credits that it may spend in all; undefined if only the budget of the server bounds it. */
  budget?: number | undefined;
}

/** How far a request has come. */
export interface Transit {
  /** Whether the request has left this process: then the service may carry it out. */
  sent: boolean;
  /** Whether an earlier attempt may have been carried out. */
  mayBeDone?: boolean;
  /** Whether a caller still waits for the answer. */
  isWanted?(): boolean;
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
  /** How many items of the page lack an id and were left out. */
  unusable?: number;
  /** The age of a cached answer in milliseconds. */
  age?: number;
}

export interface Answer {
  /** The body, read with the operation's schema. */
  value: unknown;
  /** The body as it was received, for views that show every field. */
  raw: unknown;
  /** The text that `value` was read from, until the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /** The sequence number of the answer: later answers have higher ones, even where clocks differ. */
  order?: number;
  /** The rest of its page can be read without another call. */
  isCached?: true;
  /** For an ad copied from a list: the operation of that list. */
  seenIn?: string;
  /** True if the service could not confirm that the dataset of this answer belongs to the caller. */
  isUnconfirmed?: true;
  /** True if an earlier attempt may have been carried out, too. */
  repeated?: true;
}

/** The same answer again, for which nothing was sent. */
export const replay = (answer: Answer, age?: number): Answer => {
  const receipt = { ...answer.receipt, charged: 0, cached: true, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/** Sends a call, or answers it otherwise: the signature of all that stands between a tool and the network. */
export type Send = (call: Call) => Promise<Answer>;

/** Equal for equal calls, whatever the order of their arguments and whatever their API key. */
export const fingerprint = ({ operation, path, query, body }: Pick<Call, 'operation' | 'path' | 'query' | 'body'>) =>
  canonical([operation.name, path, query, body ?? null]);

export interface AnswerName {
  fingerprint: string;
  /** Answers of a group become stale together. */
  group?: string | undefined;
}

export const itemsGroup = ({ path }: Call): string => `items of ${(path.collectionId ?? '').toLowerCase()}`;

export const answerNameOf = (call: Call): AnswerName => ({
  fingerprint: call.fingerprint,
  group: call.operation.name === 'listCollectionItems' ? itemsGroup(call) : undefined,
});
