import { abortedError } from './abort.ts';
import { AdLibraryError } from './errors.ts';
import { type Operation, type OperationName, operations } from './operations.ts';
import type { AnswerOf } from './response-schemas.ts';
import type { Answer, Receipt, Send } from './send.ts';

/** What an operation takes: path parameters by name, query parameters, a JSON body. */
export interface ApiRequest {
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  body?: Record<string, unknown>;
  /** Asks the service even where a kept answer would do. */
  fresh?: boolean | undefined;
  /** Takes an ad as a list showed it, where one is kept. */
  seen?: boolean | undefined;
}

export interface ApiAnswer<Name extends OperationName> {
  value: AnswerOf<Name>;
  /** The body as it came, for views that hold every field. */
  raw: unknown;
  receipt: Receipt;
  cacheId?: number;
  seenIn?: string;
  repeated?: true;
}

/** One method per operation of the document, under its own name. */
export type Api = { [Name in OperationName]: (request?: ApiRequest) => Promise<ApiAnswer<Name>> };

/** Whose credits a call takes. */
export interface Credentials {
  /** Undefined where none is set: every call then says so instead of going out. */
  apiKey: string | undefined;
  /** Names the key's share of what the process keeps. */
  tenantId: string;
}

export interface Caller extends Credentials {
  signal: AbortSignal;
  /** Told of every answer, so that a result can say what it cost. */
  onReceipt?: (receipt: Receipt) => void;
}

/** The API as one caller has it for the length of one tool call. */
export function createApi(send: Send, baseUrl: string | undefined): (caller: Caller) => Api {
  // Its methods are made once: over HTTP, thousands of calls a second each have an API of their own.
  class CallerApi {
    readonly caller: Caller;
    constructor(caller: Caller) {
      this.caller = caller;
    }
  }
  for (const operation of Object.values(operations)) {
    const value = function (this: CallerApi, request?: ApiRequest) {
      return ask({ send, baseUrl, operation, caller: this.caller }, request);
    };
    Object.defineProperty(CallerApi.prototype, operation.name, { value });
  }
  return (caller) => new CallerApi(caller) as unknown as Api;
}

interface ApiCall {
  send: Send;
  baseUrl: string | undefined;
  operation: Operation;
  caller: Caller;
}

async function ask({ send, baseUrl, operation, caller }: ApiCall, request: ApiRequest = {}): Promise<Answer> {
  const { apiKey, tenantId, signal, onReceipt } = caller;
  const { path = {}, query = {}, body, fresh = false, seen = false } = request;
  if (apiKey === undefined || baseUrl === undefined) throw missingSettings(apiKey, baseUrl);
  try {
    const answer = await send({ operation, path, query, ...(body && { body }), apiKey, tenantId, signal, fresh, seen });
    onReceipt?.(answer.receipt);
    return answer;
  } catch (error) {
    throw explained(error, operation, signal);
  }
}

/** Names all that is missing at once. */
function missingSettings(apiKey: string | undefined, baseUrl: string | undefined): AdLibraryError {
  const missing = [
    apiKey === undefined && 'AD_LIBRARY_API_KEY',
    baseUrl === undefined && 'AD_LIBRARY_BASE_URL (the address of the service)',
  ];
  const problem = `Missing: ${missing.filter(Boolean).join(' and ')}.`;
  return new AdLibraryError({ kind: 'no_api_key', problem, sent: false });
}

/** What failed, with what its reader must know of the operation. An abort is the deadline, or a caller who left. */
function explained(error: unknown, { gated, writes }: Operation, signal: AbortSignal): unknown {
  const known = error instanceof AdLibraryError ? error : signal.aborted ? abortedError(signal, true) : undefined;
  return known === undefined ? error : new AdLibraryError({ ...known.failure, gated, writes }, { cause: error });
}
