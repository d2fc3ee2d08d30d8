import type { ParsedUsageLimit } from './schemas.ts';

/** The kinds of failures that a call can have. Results show the kind in `_meta["ad-library/error"].kind`. */
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
 * Fields that any failed call may have. Text from the service is not trusted and must be sanitized before it is shown.
 */
export interface FailureFacts {
  /** Describes the problem in this server's own words. Undefined if `kind` already says everything. */
  problem?: string | undefined;
  status?: number | undefined;
  // The next four fields are copied from the body of the service's error response: `error.code`, `error.message`,
  // `error.requestId` and `error.details`.
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** The number of credits that the service charged for the failed call. */
  charged?: number | undefined;
  /** True if the response states a charge that cannot be parsed. The charge is then unknown. */
  chargeUnreadable?: boolean | undefined;
  /** False if it is certain that no request reached the service. Undefined if this is unknown. */
  wasSent?: boolean | undefined;
  /** True if an earlier attempt of the call failed, although the service may have performed it. */
  mayBeRepeated?: true;
  /** True if the operation costs credits. The failed call may then have been charged. */
  isPaid?: boolean | undefined;
  /** True if the operation changes data on the service. The change may have happened despite the error. */
  changesData?: boolean | undefined;
  /**
   * Names the part of this server's own storage that failed. Undefined for other failures. Requests of the call may
   * already have been sent and charged. `slot` and `lock` mean that another call or process holds a lock that this call
   * needs.
   */
  storage?: 'data' | 'full' | 'lock' | 'slot' | undefined;
}

/** Describes a failed call. The fields that exist depend on the kind of failure. */
export type Failure = FailureFacts & (KindSpecificFailure | { kind: Exclude<ErrorKind, KindSpecificFailure['kind']> });

type KindSpecificFailure =
  | {
      kind: 'no_api_key';
      /** True if a setting has an invalid value. False or missing if a required setting is missing. */
      hasInvalidSettings?: boolean;
    }
  | {
      kind: 'usage_limit';
      /** The hourly and daily limits on credits, requested from `GET /v1/credits` after the failure. */
      usageLimit?: ParsedUsageLimit | undefined;
    }
  | {
      kind: 'payment_required';
      /** The remaining credits, requested from `GET /v1/credits` after the failure. */
      remainingCredits?: number | undefined;
    }
  | ({ kind: 'credit_budget' } & ExceededLimit)
  | {
      kind: 'unexpected_response';
      /** True if the response was rejected because it is larger than the size limit. */
      isTooLarge?: boolean;
      baseUrlProblem?: BaseUrlProblem;
    };

/** The credit limit that a call would exceed. The advice in the error message depends on the kind of limit. */
export type ExceededLimit =
  | { limit: 'tool call'; maxCredits: number }
  /**
   * The user did not confirm the spending: `isAnswered` is true if the user declined, and false if nobody responded.
   * `cost` is a sentence with the price of the call.
   */
  | { limit: 'confirmation'; isAnswered: boolean; cost: string }
  | {
      limit: 'connection' | 'server';
      /**
       * True if the limit is exceeded only because credits are reserved for calls in progress. The call may succeed
       * once those calls have finished.
       */
      isTransient: boolean;
    };

/**
 * The reason why the configured base URL must be wrong: it ends in `/v1`, the server at this URL does not know a path
 * of the API, or the server redirects to another URL. `target` is undefined if the redirect target cannot be parsed.
 */
export type BaseUrlProblem =
  | { reason: 'endsInVersion' }
  | { reason: 'unknownPath' }
  | { reason: 'redirects'; target: string | undefined };

/** The error of a failed call. `mcp/explain-error.ts` converts it to the text of a tool result. */
export class AdLibraryError extends Error {
  override readonly name = 'AdLibraryError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.problem ?? failure.kind, options);
    this.failure = failure;
  }
}

/**
 * A `catch` handler for code that can continue without stored data. Returns undefined if this server's own storage is
 * unavailable.
 * @throws every other error unchanged
 */
export function ignoreUnavailableStorage(error: unknown): undefined {
  if (error instanceof AdLibraryError && error.failure.kind === 'unavailable' && error.failure.storage)
    return undefined;
  throw error;
}

/**
 * Creates the error for a call with invalid arguments, which this server rejects without sending a request to the
 * service.
 */
export const invalidRequest = (problem: string) =>
  new AdLibraryError({ kind: 'invalid_request', problem, wasSent: false });

/**
 * Returns true if the service may have charged for a failed call without reporting a readable amount. This can happen
 * if no response arrived, or if a gateway responded (502, 504 …) after the service had performed the call. Rejected
 * calls cost nothing, and neither does a 503 without a charge.
 */
export function mayBeCharged({ kind, status, wasSent, charged, chargeUnreadable, storage }: Failure): boolean {
  if (wasSent === false || storage || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The kind of failure for each HTTP error status that the API document lists. */
const documentedKinds = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
} as const;
type DocumentedKind = (typeof documentedKinds)[keyof typeof documentedKinds];

/**
 * Returns the kind of failure for an HTTP status. If the API document does not list the status, returns `unavailable`
 * for 500 and above, and `unexpected_response` otherwise.
 */
export function getFailureKind(status: number): DocumentedKind | 'unavailable' | 'unexpected_response' {
  return (
    (documentedKinds as Partial<Record<number, DocumentedKind>>)[status] ??
    (status >= 500 ? 'unavailable' : 'unexpected_response')
  );
}
