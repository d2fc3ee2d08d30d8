import { setMaxListeners } from 'node:events';
import type { UsageLimitAnswer } from './schemas.ts';

export type OperationName =
  | 'whoami'
  | 'getAccount'
  | 'getCredits'
  | 'listCollections'
  | 'listCollectionItems'
  | 'addCollectionItem'
  | 'searchAds'
  | 'getAd'
  | 'searchPages'
  | 'getPage';

/** One row of the document's endpoint table. `responseSchemas` describes its answer. */
export interface Operation {
  name: OperationName;
  method: 'GET' | 'POST';
  /** Path parameters in braces. */
  path: string;
  /** Gated by credits, a subscription and usage limits (document, *Limits* 3 and 4). */
  gated: boolean;
  /**
   * How often it may be repeated if it is unknown whether it was carried out. Never for a gated read, which may have
   * been charged. Once for adding an item, because adding it twice is harmless (*Endpoints*, rule 1).
   */
  maxUnsafeRetries: number;
  /** Changes data of the service. */
  writes?: true;
  /** Returns a page of a list, with as many items as the call asks for. */
  list?: true;
  /** Items of such a page if the call asks for no number, where the document says it. */
  defaultLimit?: number;
}

type Row = [method: Operation['method'], path: string, rest: Omit<Operation, 'name' | 'method' | 'path'>];

const free = { gated: false, maxUnsafeRetries: 2 };
const gated = { gated: true, maxUnsafeRetries: 0 };
const gatedList = { ...gated, list: true } as const;

const rows: Record<OperationName, Row> = {
  whoami: ['GET', '/v1/whoami', free],
  getAccount: ['GET', '/v1/account', free],
  getCredits: ['GET', '/v1/credits', free],
  listCollections: ['GET', '/v1/collections', free],
  listCollectionItems: ['GET', '/v1/collections/{collectionId}/items', { ...gatedList, defaultLimit: 50 }],
  addCollectionItem: ['POST', '/v1/collections/{collectionId}/items', { ...free, maxUnsafeRetries: 1, writes: true }],
  searchAds: ['POST', '/v1/ads/search', gatedList],
  getAd: ['GET', '/v1/ads/{adId}', gated],
  searchPages: ['POST', '/v1/pages/search', gatedList],
  getPage: ['GET', '/v1/pages/{pageId}', gated],
};

export const operations = Object.fromEntries(
  Object.entries(rows).map(([name, [method, path, rest]]) => [name, { name, method, path, ...rest }]),
) as Readonly<Record<OperationName, Operation>>;

/** Whether what makes these calls may be charged. */
export const isGated = ({ operations: made }: { operations: readonly OperationName[] }): boolean =>
  made.some((name) => operations[name].gated);

export interface Call {
  operation: Operation;
  /** Path parameters by name. */
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
  /** How far its request has come. */
  transit?: Transit;
  /** What the tool call that makes it may spend. */
  callBudget?: CreditLimit | undefined;
  /** How its caller signed in, if not with the key itself. */
  connection?: Connection | undefined;
  /** Wraps the sending of the call, which continues after the caller has left. */
  around?: ((send: () => Promise<Answer>) => Promise<Answer>) | undefined;
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
  /** For a cached answer: its age in milliseconds, and what it cost. */
  age?: number;
  saved?: number | null;
}

export interface Answer {
  /** The body, read with the operation's schema. */
  value: unknown;
  /** The body as it was received, for views that show every field. */
  raw: unknown;
  /** The text that `value` was read from, until the text is stored. */
  text?: string | undefined;
  receipt: Receipt;
  /** The number of the answer. Later answers have higher numbers, whatever the clocks say. */
  order?: number;
  /** Identifies an answer in the cache. */
  cacheId?: string;
  /** For an ad copied from a list: the operation of that list. */
  seenIn?: string;
  /** True if an earlier attempt may have been carried out, too. */
  repeated?: true;
}

/** The same answer again, for which nothing was sent. */
export const replayed = (answer: Answer, age?: number): Answer => {
  const { charged, saved = charged } = answer.receipt;
  const receipt = { saved, ...answer.receipt, charged: 0, cached: true, ...(age !== undefined && { age }) };
  return { ...answer, receipt };
};

/** Sends a call, or answers it otherwise: the signature of all that stands between a tool and the network. */
export type Send = (call: Call) => Promise<Answer>;

/** Equal for equal calls, whatever the order of their arguments and whatever their API key. */
export const fingerprint = ({ operation, path, query, body }: Pick<Call, 'operation' | 'path' | 'query' | 'body'>) =>
  canonical([operation.name, path, query, body ?? null]);

/** The common start of the fingerprints of an operation's calls, or of those with these path parameters. */
const fingerprintStart = (name: OperationName, path?: Call['path']): string =>
  `${canonical(path ? [name, path] : [name]).slice(0, -1)},`;

export interface AnswerName {
  fingerprint: string;
  /** Answers of a group become stale together. */
  group?: string | undefined;
}

/** The group of the answers that hold items of the call's collection. */
export const itemsGroup = ({ path }: Call): string =>
  fingerprintStart('listCollectionItems', { collectionId: (path.collectionId ?? '').toLowerCase() });

export const answerNameOf = (call: Call): AnswerName => ({
  fingerprint: call.fingerprint,
  group: call.operation.name === 'listCollectionItems' ? itemsGroup(call) : undefined,
});

/** JSON with the keys of every object sorted. */
export const canonical = (value: unknown): string => JSON.stringify(value, sorted);

function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The value of a JSON text; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The index behind the closing quote of the JSON string that begins at `start`. */
export function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === '\\') at++;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}

/** Characters of an id, in a path and wherever ids are stored. Those of the document are UUIDs and short strings. */
export const maxIdLength = 300;

/**
 * Builds all addresses. `encodeURIComponent` does not encode `.`, and URL parsers resolve a segment of one or two dots
 * (percent-encoded or not): such an id would reach another endpoint. So would an id that contains such a segment,
 * behind a proxy that decodes slashes.
 */
export function urlOf(call: Pick<Call, 'operation' | 'path' | 'query'>, baseUrl: string): string {
  const path = call.operation.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, call.path[name] ?? ''));
  const query = new URLSearchParams(
    Object.entries(call.query).map(([key, value]): [string, string] => [key, String(value)]),
  ).toString();
  return `${baseUrl.replace(/(?<!\/)\/+$/, '')}${path}${query && `?${query}`}`;
}

const dotSegment = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)/;

export const isPathId = (id: string): boolean =>
  id !== '' && id.length <= maxIdLength && !dotSegment.test(id) && id.isWellFormed();

function segment(name: string, id: string): string {
  if (!isPathId(id)) {
    throw invalidRequest(
      `${name} is not an id: it must be 1 to ${maxIdLength} characters, copied from an earlier result.`,
    );
  }
  return encodeURIComponent(id);
}

/** Settles like the promise, or rejects with the signal's reason if that aborts first. */
export function raceAbort<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    const stay = () => signal.removeEventListener('abort', leave);
    promise.then(resolve, reject).then(stay);
  });
}

/**
 * Aborts the controller when any of the signals aborts; returns a function that stops this. Unlike `AbortSignal.any`,
 * it then leaves nothing behind on signals that outlive it.
 */
export function follow(controller: AbortController, signals: readonly AbortSignal[]): () => void {
  const ends = signals.map((signal) => {
    const abort = () => controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    return () => signal.removeEventListener('abort', abort);
  });
  return () => {
    for (const end of ends) end();
  };
}

export const timeIsUp = (): DOMException => new DOMException('Time is up', 'TimeoutError');

/** The error of a call whose signal aborted: at the deadline, or because its caller left. */
export function abortedError({ reason }: AbortSignal, sent: boolean): AdLibraryError {
  const late = reason instanceof DOMException && reason.name === 'TimeoutError';
  const problem = late ? undefined : 'The call was cancelled.';
  return new AdLibraryError({ kind: late ? 'timeout' : 'network', problem, ...(!sent && { sent }) });
}

/** The error, if it is one of ours, or else the reason why the signal aborted, if it did. */
export const knownError = (error: unknown, signal: AbortSignal): AdLibraryError | undefined =>
  error instanceof AdLibraryError ? error : signal.aborted ? abortedError(signal, true) : undefined;

/** Runs work with a signal that aborts when any of the given ones does, or with a `TimeoutError` when time is up. */
export async function withDeadline<Value>(
  { signals, ms }: { signals: readonly AbortSignal[]; ms: number },
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController();
  // The work may do many things at once; Node warns of a leak from ten listeners on.
  setMaxListeners(0, controller.signal);
  const end = follow(controller, signals);
  const timer = setTimeout(() => controller.abort(timeIsUp()), ms);
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    end();
  }
}

/** Every way a call can fail, as `_meta["ad-library/error"].kind` names it. */
export const errorKinds = [
  'no_api_key',
  'unauthorized',
  'payment_required',
  'forbidden',
  'not_found',
  'invalid_request',
  'usage_limit',
  'credit_budget',
  'unavailable',
  'unexpected_response',
  'network',
  'timeout',
  'busy',
  'internal',
] as const;
export type ErrorKind = (typeof errorKinds)[number];

/** What is known about a failed call. Service texts are data: make them safe before showing them. */
export interface Failure {
  kind: ErrorKind;
  /** What went wrong, in our words, if the kind alone does not say it. */
  problem?: string | undefined;
  status?: number | undefined;
  /** `error.code`, `error.message`, `error.requestId` and `error.details` of the service's error body. */
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** Credits that the service stated it charged although the call failed. */
  charged?: number | undefined;
  /** The service stated a charge that cannot be read. */
  chargeUnreadable?: boolean | undefined;
  /** False if nothing reached the service; undefined if that is unknown. */
  sent?: boolean | undefined;
  /** An earlier attempt may have been carried out. */
  repeated?: true;
  /** Whether the operation costs credits, and whether it writes. */
  paid?: boolean | undefined;
  writes?: boolean | undefined;
  /** For 429: the windows that `GET /v1/credits` returned afterwards. */
  usageLimit?: UsageLimitAnswer | undefined;
  /** For 402: the balance that `GET /v1/credits` returned afterwards. */
  creditsLeft?: number | undefined;
  /** The settings are not missing but wrong. */
  wrongSettings?: boolean | undefined;
  /** The answer is larger than an answer may be. */
  tooLarge?: boolean | undefined;
  /** For a refusal by the `maxCredits` of the tool call, and not by the budget of this server. */
  maxCredits?: number | undefined;
  /** For a refusal by the budget of the caller's connection, which says nothing about other callers of the key. */
  ofConnection?: boolean | undefined;
  /** For a refusal by this server that may soon be over. */
  transient?: boolean | undefined;
}

export class AdLibraryError extends Error {
  override readonly name = 'AdLibraryError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.problem ?? failure.kind, options);
    this.failure = failure;
  }
}

/** The error of a call that this server refuses: nothing was sent. */
export const invalidRequest = (problem: string) =>
  new AdLibraryError({ kind: 'invalid_request', problem, sent: false });

/**
 * Whether the service may have charged for a call without a readable amount: its answer is missing, or comes from a
 * gateway (502, 504 …) behind which the call may have been carried out. A refusal charges nothing, and neither does a
 * 503 without a stated charge.
 */
export function mayBeCharged({ kind, status, sent, charged, chargeUnreadable }: Failure): boolean {
  if (sent === false || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The statuses of the document. Others are `unavailable` from 500 on, and unexpected below. */
const kindByStatus: Partial<Record<number, ErrorKind>> = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
};

export function kindOfStatus(status: number): ErrorKind {
  return kindByStatus[status] ?? (status >= 500 ? 'unavailable' : 'unexpected_response');
}
