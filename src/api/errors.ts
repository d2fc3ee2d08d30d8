import type { ParsedUsageLimit } from './schemas.ts';

/** The kinds of failures of a call. A tool result shows the kind in `_meta["ad-library/error"].kind`. */
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
/** The kind of failure of a call, e.g. `timeout` or `payment_required`. */
export type ErrorKind = (typeof errorKinds)[number];

/**
 * The fields that any failed call may have. Texts from the service are not trusted, so sanitize them before showing
 * them.
 */
export interface CommonFailureFields {
  /**
   * A description of the problem, written by this server and not by the service. Undefined if `kind` describes the
   * problem completely.
   */
  problem?: string | undefined;
  status?: number | undefined;
  // The next four fields are copied from the error response of the service. They are called `error.code`,
  // `error.message`, `error.requestId` and `error.details` there.
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /**
   * True if the response lacks the error body that the API document defines. The response may then come from another
   * server, e.g. from a proxy.
   */
  isUndocumented?: true;
  /** The number of seconds after which the service accepts another call, according to its header `Retry-After`. */
  retryAfterSeconds?: number | undefined;
  /** The number of credits that the service charged although the call failed. */
  charged?: number | undefined;
  /**
   * True if this call shared its request with an identical call. The receipt of the other call counts the charge
   * (`charged`), so the receipt of this call does not.
   */
  isChargeShared?: true;
  /** True if the header with the charge cannot be parsed. The charge is then unknown. */
  isChargeUnreadable?: boolean | undefined;
  /** False if it is certain that no request reached the service. Undefined if this is unknown. */
  wasSent?: boolean | undefined;
  /** True if an earlier attempt of the call seemed to fail, but the service may have performed it. */
  mayHaveBeenPerformed?: true;
  /** True if the operation costs credits, so that the service may have charged for the failed call. */
  isPaid?: boolean | undefined;
  /** True if the operation changes data on the service. The change may have happened despite the error. */
  changesData?: boolean | undefined;
  /**
   * The part of this server's storage that failed, if any. Requests of the call may already have been sent and charged.
   * `data`: stored data cannot be read or written. `full`: the storage has no space left. `slot` and `lock`: another
   * call or process holds a lock that this call needs. `folder`: no file can be written to the folder for exports.
   */
  storage?: 'data' | 'folder' | 'full' | 'lock' | 'slot' | undefined;
}

/** A failed call. The value of `kind` determines which other fields exist. */
export type Failure = CommonFailureFields &
  (KindSpecificFailure | { kind: Exclude<ErrorKind, KindSpecificFailure['kind']> });

type KindSpecificFailure =
  | {
      kind: 'no_api_key';
      /** True if a setting has an invalid value. Missing or false if a required setting is missing. */
      hasInvalidSettings?: boolean;
    }
  | {
      kind: 'usage_limit';
      /** The hourly and daily limits on credits, from a request to `GET /v1/credits` after the failure. */
      usageLimit?: ParsedUsageLimit | undefined;
    }
  | {
      kind: 'payment_required';
      /** The remaining credits, from a request to `GET /v1/credits` after the failure. */
      remainingCredits?: number | undefined;
    }
  | ({ kind: 'credit_budget' } & ExceededLimit)
  | {
      kind: 'unexpected_response';
      /** True if the response is larger than the size limit. */
      isTooLarge?: boolean;
      baseUrlProblem?: BaseUrlProblem;
    };

/** The credit limit that a call would exceed. The advice in the error message depends on this limit. */
export type ExceededLimit =
  | { limit: 'tool call'; maxCredits: number }
  /**
   * The user did not confirm the spending. `isAnswered` is true if the user declined, and false if nobody responded.
   * `costSentence` is a sentence with the price of the call.
   */
  | { limit: 'confirmation'; isAnswered: boolean; costSentence: string }
  | {
      limit: 'connection' | 'server';
      /**
       * True if the limit is exceeded only by credits that are reserved for calls in progress. The call may succeed
       * after these calls.
       */
      isTransient: boolean;
    };

/**
 * The reason why the configured base URL must be wrong: it ends in `/v1`, the server does not know a path of the API,
 * or the server redirects to `target`. `target` is undefined if it is not a valid URL.
 */
export type BaseUrlProblem =
  | { reason: 'endsInVersion' }
  | { reason: 'unknownPath' }
  | { reason: 'redirects'; target: string | undefined };

/** The error of a failed call. `mcp/explain-error.ts` writes the text that the user sees. */
export class AdLibraryError extends Error {
  override readonly name = 'AdLibraryError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.problem ?? failure.kind, options);
    this.failure = failure;
  }
}

/**
 * A `catch` handler for code that can continue without stored data. Returns undefined if this server's storage is
 * unavailable.
 * @throws every other error unchanged
 */
export function ignoreUnavailableStorage(error: unknown): undefined {
  if (error instanceof AdLibraryError && error.failure.kind === 'unavailable' && error.failure.storage)
    return undefined;
  throw error;
}

/** Creates the error for a call with invalid arguments. Such a call is not sent to the service. */
export const createInvalidRequestError = (problem: string) =>
  new AdLibraryError({ kind: 'invalid_request', problem, wasSent: false });

/**
 * Returns true if the service may have charged for a failed call without reporting a readable amount, e.g. if no
 * response arrived, or if a gateway responded (502, 504 …) after the service had performed the call. Rejected calls
 * cost nothing, and neither does a 503 without a charge.
 */
export function mayBeCharged({ kind, status, wasSent, charged, isChargeUnreadable, storage }: Failure): boolean {
  if (wasSent === false || storage || charged !== undefined) return false;
  if (isChargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The kind of failure for each HTTP error status in the API document. */
const kindsByStatus = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
} as const;
type DocumentedErrorKind = (typeof kindsByStatus)[keyof typeof kindsByStatus];

/**
 * Returns the kind of failure for an HTTP status, e.g. `not_found` for 404. If the API document does not list the
 * status, returns `unavailable` for 500 and above, and otherwise `unexpected_response`.
 */
export function getFailureKind(status: number): DocumentedErrorKind | 'unavailable' | 'unexpected_response' {
  return (
    (kindsByStatus as Partial<Record<number, DocumentedErrorKind>>)[status] ??
    (status >= 500 ? 'unavailable' : 'unexpected_response')
  );
}
