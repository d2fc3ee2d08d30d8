import type { UsageLimitAnswer } from './schemas.ts';

/** All kinds of failed calls. Results show the kind in `_meta["ad-library/error"].kind`. */
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
/** The kind of a failed call, e.g. `timeout`. */
export type ErrorKind = (typeof errorKinds)[number];

/**
 * Fields that a failed call of any kind may have. Texts from the service are not trusted, so they must be sanitized
 * before they are shown.
 */
export interface FailureFacts {
  /** Describes the problem in this server's own words. Absent if `kind` already says everything. */
  problem?: string | undefined;
  status?: number | undefined;
  // The next four fields come from the error body: `error.code`, `error.message`, `error.requestId` and
  // `error.details`.
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** The number of credits that the service charged for the failed call. */
  charged?: number | undefined;
  /** True if the service sent a charge that cannot be parsed. */
  chargeUnreadable?: boolean | undefined;
  /** False if no request reached the service. Undefined if this is unknown. */
  sent?: boolean | undefined;
  /** True if the service may have carried out an earlier attempt of the call. */
  repeated?: true;
  /** True if the operation costs credits. */
  paid?: boolean | undefined;
  /** True if the operation changes data on the service. */
  writes?: boolean | undefined;
  /**
   * Set if this server's own storage failed, and names the part that failed. The requests of the call may already have
   * been sent and charged. For `slot` and `lock`, another call or process holds the slot or the lock.
   */
  storage?: 'data' | 'full' | 'lock' | 'slot' | undefined;
}

/** Describes a failed call. Some fields are required or allowed only for one kind of failure. */
export type Failure = FailureFacts & (KindSpecificFailure | { kind: Exclude<ErrorKind, KindSpecificFailure['kind']> });

type KindSpecificFailure =
  | {
      kind: 'no_api_key';
      /** True if the settings are invalid rather than missing. */
      wrongSettings?: boolean;
    }
  | {
      kind: 'usage_limit';
      /** The usage windows from `GET /v1/credits`, requested after the failure. */
      usageLimit?: UsageLimitAnswer | undefined;
    }
  | {
      kind: 'payment_required';
      /** The remaining credits from `GET /v1/credits`, requested after the failure. */
      creditsLeft?: number | undefined;
    }
  | ({ kind: 'credit_budget' } & ExceededLimit)
  | {
      kind: 'unexpected_response';
      /** True if the response is larger than the size limit. */
      tooLarge?: boolean;
      wrongAddress?: WrongAddress;
    };

/** The limit that a call would exceed. The error text gives different advice for each kind of limit. */
export type ExceededLimit =
  | { limit: 'tool call'; maxCredits: number }
  /**
   * The user declined to confirm the spending (`isAnswered`), or did not reply. `cost` states the price of the call, as a
   * sentence.
   */
  | { limit: 'confirmation'; isAnswered: boolean; cost: string }
  | {
      limit: 'connection' | 'server';
      /**
       * True if the limit is exceeded only because credits are reserved for calls in progress. The call may succeed
       * after they end.
       */
      transient: boolean;
    };

/**
 * Why the configured base URL must be wrong: it ends in `/v1`, the server at this URL does not know a path of the API,
 * or the service redirects. `target` is undefined if the redirect target cannot be parsed.
 */
export type WrongAddress =
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
 * Returns undefined for an error that says that the server's own storage cannot be reached. Use it as a `catch` handler
 * where a call can continue without stored data.
 * @throws every other error unchanged
 */
export function ignoreLostStorage(error: unknown): undefined {
  if (error instanceof AdLibraryError && error.failure.kind === 'unavailable' && error.failure.storage)
    return undefined;
  throw error;
}

/** Creates the error for a call that this server rejects without sending a request. */
export const invalidRequest = (problem: string) =>
  new AdLibraryError({ kind: 'invalid_request', problem, sent: false });

/**
 * Returns true if the service may have charged for a failed call without stating a readable amount. This can happen
 * without a response, or if a gateway responded (502, 504 …) after the service had carried out the call. Rejected calls
 * cost nothing, and neither does a 503 without a stated charge.
 */
export function mayBeCharged({ kind, status, sent, charged, chargeUnreadable, storage }: Failure): boolean {
  if (sent === false || storage || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The kind of failure for each error status in the API document. */
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
 * Returns the kind of failure for an HTTP status. For a status that is not in the API document, returns `unavailable`
 * from 500 on, and `unexpected_response` below.
 */
export function getFailureKind(status: number): DocumentedKind | 'unavailable' | 'unexpected_response' {
  return (
    (documentedKinds as Partial<Record<number, DocumentedKind>>)[status] ??
    (status >= 500 ? 'unavailable' : 'unexpected_response')
  );
}
