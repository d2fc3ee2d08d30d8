import type { Operation } from './operations.ts';

/** A call of the API. */
export interface Call {
  operation: Operation;
  /** Path parameters by name. */
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  /** JSON body of a POST. */
  body?: Readonly<Record<string, unknown>>;
  /** Equal for equal calls of any key; see `fingerprint.ts`. */
  fingerprint: string;
  /** Goes into one header and nowhere else. */
  apiKey: string;
  /** Partitions cache, ledger and cursors per API key; over HTTP a keyed hash of the key. */
  tenantId: string;
  /** Aborts when the caller leaves or at the deadline. */
  signal: AbortSignal;
  /** Asks the service even if there is a kept answer. */
  fresh?: boolean;
  /** Accepts a kept copy of the ad from a list. */
  seen?: boolean;
  /** Costs credits: its operation is gated, or has charged although the document does not say so. */
  paid?: boolean;
  /** Whether a request of the call may be aborted. */
  transit?: Transit;
  /** What the tool call that makes it may spend. */
  allowance?: Allowance | undefined;
}

/** A limit of credits for all calls of one tool call. */
export interface Allowance {
  /** Sends a call if it fits into what is left. */
  spend(call: Call, send: Send): Promise<Answer>;
}

/** Whether a request that did not fail has left: the service carries it out, or has done so. */
export interface Transit {
  sent: boolean;
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
  /** For a cached answer: its age in milliseconds, and what it cost. */
  age?: number;
  saved?: number | null;
  /** Warns the reader that little is left. */
  warning?: string;
}

export interface Answer {
  /** The body, read with the operation's schema. */
  value: unknown;
  /** The body as it was received, for views that show every field. */
  raw: unknown;
  receipt: Receipt;
  /** Identifies an answer in the cache. */
  cacheId?: string;
  /** For an ad copied from a list: the operation of that list. */
  seenIn?: string;
  /** True if an earlier attempt may have been carried out, too. */
  repeated?: true;
  /** Takes it out of the cache, once what is in it is kept elsewhere. */
  uncache?(): Promise<void>;
}

/** The same answer again, for which nothing was sent. */
export const replayed = (answer: Answer, age?: number): Answer => {
  const { charged, saved = charged } = answer.receipt;
  const receipt = { ...answer.receipt, charged: 0, cached: true, saved, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/** The function that sends a call. Retries, ledger, budget and cache wrap it, each with the same signature. */
export type Send = (call: Call) => Promise<Answer>;

/** Applies a wrapper to gated operations only. */
export const gatedOnly =
  (send: Send, paid: Send): Send =>
  (call) =>
    call.operation.gated ? paid(call) : send(call);
