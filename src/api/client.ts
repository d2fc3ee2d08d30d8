import { AdLibraryError } from './errors.ts';
import { type Operation, type OperationName, operations } from './operations.ts';
import type { AnswerOf } from './response-schemas.ts';
import type { Answer, Receipt, Send } from './send.ts';

/** What an operation takes: path parameters by name, query parameters, a JSON body. */
export interface Request {
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
export type Api = { [Name in OperationName]: (request?: Request) => Promise<ApiAnswer<Name>> };

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
export function createApi(send: Send): (caller: Caller) => Api {
  // Its methods are made once: over HTTP, thousands of calls a second each have an API of their own.
  class CallerApi {
    readonly caller: Caller;
    constructor(caller: Caller) {
      this.caller = caller;
    }
  }
  for (const operation of Object.values(operations)) {
    const value = function (this: CallerApi, request?: Request) {
      return ask({ send, operation, caller: this.caller }, request);
    };
    Object.defineProperty(CallerApi.prototype, operation.name, { value });
  }
  return (caller) => new CallerApi(caller) as unknown as Api;
}

interface Asking {
  send: Send;
  operation: Operation;
  caller: Caller;
}

async function ask({ send, operation, caller }: Asking, request: Request = {}): Promise<Answer> {
  const { apiKey, tenantId, signal, onReceipt } = caller;
  const { path = {}, query = {}, body, fresh = false, seen = false } = request;
  if (apiKey === undefined)
    throw new AdLibraryError({ kind: 'no_api_key', problem: 'Missing: AD_LIBRARY_API_KEY.', sent: false });
  try {
    const answer = await send({ operation, path, query, ...(body && { body }), apiKey, tenantId, signal, fresh, seen });
    onReceipt?.(answer.receipt);
    return answer;
  } catch (error) {
    throw explained(error, operation, signal);
  }
}

/** What failed, with what its reader must know of the operation. An abort is the deadline, or a caller who left. */
function explained(
  error: unknown,
  { gated, writes }: Pick<Operation, 'gated' | 'writes'>,
  signal: AbortSignal,
): unknown {
  if (error instanceof AdLibraryError) {
    return new AdLibraryError({ ...error.failure, gated, writes }, { cause: error });
  }
  if (!signal.aborted) return error;
  const late = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
  const kind = late ? 'timeout' : 'network';
  return new AdLibraryError({ kind, problem: late ? undefined : 'The call was cancelled.', gated, writes });
}
