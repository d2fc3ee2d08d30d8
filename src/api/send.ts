import type { Operation } from './operations.ts';

/** One call of the API, before anything of it is sent. */
export interface Call {
  operation: Operation;
  /** Values for the braces of the operation's path. */
  path: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string | number>>;
  /** JSON body of a POST. */
  body?: Readonly<Record<string, unknown>>;
  /** The API key of the account the call is made for. It goes into one header and nowhere else. */
  apiKey: string;
  /** Names the key's share of what the process keeps; over HTTP a hash of the key with a secret. */
  tenantId: string;
  /** Aborts the call; also carries its deadline. */
  signal: AbortSignal;
  /** Asks the service even where a kept answer would do. */
  fresh?: boolean;
  /** Takes an ad as a list showed it, where one is kept. */
  seen?: boolean;
  /** Costs credits: its operation is gated, or was seen to charge although the document says otherwise. */
  paid?: boolean;
  /** Where a request of the call is: whoever would abort it asks. */
  transit?: Transit;
}

/** Whether bytes of a request have left that did not fail: the service carries it out, or has done so. */
export interface Transit {
  sent: boolean;
  /** Whether anybody still waits for the answer. */
  isWanted?(): boolean;
}

/** What a call cost, from the headers of the document's *Endpoints*; null where the service sent none. */
export interface Receipt {
  charged: number | null;
  remaining: number | null;
  /** True when nothing was sent. */
  cached: boolean;
  requestId: string | null;
  /** The service sent a charge in a form that cannot be read. */
  chargeUnreadable?: true;
  /** For a cached answer: milliseconds since the service gave it, and what it was charged then. */
  age?: number;
  saved?: number | null;
  /** What its reader should know about what is left. */
  warning?: string;
}

export interface Answer {
  /** The body as the operation reads it. */
  value: unknown;
  /** The body as it came, for views that hold every field. */
  raw: unknown;
  receipt: Receipt;
  /** Length of the body, to bound what is kept. */
  size: number;
  /** Names an answer that is kept: the same whenever it is given again. */
  cacheId?: number;
  /** For an ad as a list showed it: the operation of that list. */
  seenIn?: string;
  /** True when an earlier attempt may have been carried out as well. */
  repeated?: true;
}

/** The same answer given once more: nothing was sent for it. */
export const replayed = (answer: Answer, age?: number): Answer => {
  const { charged, saved = charged } = answer.receipt;
  const receipt = { ...answer.receipt, charged: 0, cached: true, saved, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/** The one function that goes out. Retries, ledger, budget and cache wrap it, each with this same signature. */
export type Send = (call: Call) => Promise<Answer>;

/** What is done about paid calls only; all others pass. */
export const gatedOnly =
  (send: Send, paid: Send): Send =>
  (call) =>
    call.operation.gated ? paid(call) : send(call);
