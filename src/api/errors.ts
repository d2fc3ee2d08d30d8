import type { UsageLimitAnswer } from './schemas.ts';

/** All kinds of failed calls, as in `_meta["ad-library/error"].kind`. */
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
/** The kind of a failed call. */
export type ErrorKind = (typeof errorKinds)[number];

/**
 * The facts that may be known about a failed call of any kind. Texts from the service are not trusted, so they must be made
 * safe before they are shown.
 */
export interface FailureFacts {
  /** What went wrong, in the words of this server. Absent if the kind of the failure already says it. */
  problem?: string | undefined;
  status?: number | undefined;
  // The next four fields are `error.code`, `error.message`, `error.requestId` and `error.details` of the error body.
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** The credits that the service stated it charged although the call failed. */
  charged?: number | undefined;
  /** The service stated a charge that cannot be read. */
  chargeUnreadable?: boolean | undefined;
  /** False if nothing reached the service. Undefined if it is unknown whether something did. */
  sent?: boolean | undefined;
  /** The service may have carried out an earlier attempt of the call. */
  repeated?: true;
  /** Whether the operation costs credits. */
  paid?: boolean | undefined;
  /** Whether the operation changes data of the service. */
  writes?: boolean | undefined;
  /**
   * The part of this server's own storage that failed. Such a failure says nothing about the requests of the call, which may
   * have been sent and charged before. With `slot` and `lock`, another call or process holds the slot or the lock.
   */
  storage?: 'data' | 'full' | 'lock' | 'slot' | undefined;
}

/** All that is known about a failed call. Facts that belong to only one kind are required or allowed only with this kind. */
export type Failure = FailureFacts & (FailureWithFacts | { kind: Exclude<ErrorKind, FailureWithFacts['kind']> });

type FailureWithFacts =
  | {
      kind: 'no_api_key';
      /** True if the settings are wrong, not missing. */
      wrongSettings?: boolean;
    }
  | {
      kind: 'usage_limit';
      /** The usage windows that `GET /v1/credits` returned after the failure. */
      usageLimit?: UsageLimitAnswer | undefined;
    }
  | {
      kind: 'payment_required';
      /** The balance that `GET /v1/credits` returned after the failure. */
      creditsLeft?: number | undefined;
    }
  | ({ kind: 'credit_budget' } & ExceededLimit)
  | {
      kind: 'unexpected_response';
      /** The answer is larger than an answer may be. */
      tooLarge?: boolean;
      wrongAddress?: WrongAddress;
    };

/** The limit that a call would exceed. The advice to the caller depends on the kind of limit. */
export type ExceededLimit =
  | { limit: 'tool call'; maxCredits: number }
  /** The person did not confirm the spending, or did not answer. */
  | { limit: 'confirmation'; isAnswered: boolean }
  | {
      limit: 'connection' | 'server';
      /** True if only the reservations of calls in progress exceed the limit. The call may fit after they have ended. */
      transient: boolean;
    };

/** Why the base address must be wrong: it ends in `/v1`, or it redirects. The target is undefined if it is not readable. */
export type WrongAddress = { reason: 'endsInVersion' } | { reason: 'redirects'; target: string | undefined };

/** The error of a failed call. `mcp/explain-error.ts` turns it into the text of a result. */
export class AdLibraryError extends Error {
  override readonly name = 'AdLibraryError';
  readonly failure: Failure;

  constructor(failure: Failure, options?: ErrorOptions) {
    super(failure.problem ?? failure.kind, options);
    this.failure = failure;
  }
}

/**
 * Returns undefined if an error says that the server's own storage cannot be reached now. Use it where a call can go on
 * without stored data.
 * @throws every other error
 */
export function ignoreLostStorage(error: unknown): undefined {
  if (error instanceof AdLibraryError && error.failure.kind === 'unavailable' && error.failure.storage)
    return undefined;
  throw error;
}

/** Returns the error of a call that this server refuses without sending anything. */
export const invalidRequest = (problem: string) =>
  new AdLibraryError({ kind: 'invalid_request', problem, sent: false });

/**
 * Returns whether the service may have charged for a failed call without stating a readable amount. This is possible if
 * there is no answer, or if a gateway answered (502, 504 …), because the service behind it may have carried out the call.
 * A refused call costs nothing, and neither does a 503 without a stated charge.
 */
export function mayBeCharged({ kind, status, sent, charged, chargeUnreadable, storage }: Failure): boolean {
  if (sent === false || storage || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The kinds of the statuses that the document lists. */
const documentedKinds = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
} as const;
type DocumentedKind = (typeof documentedKinds)[keyof typeof documentedKinds];

/** Returns the kind of failure for an HTTP status. Statuses that the document does not list are `unavailable` from 500 on. */
export function kindOfStatus(status: number): DocumentedKind | 'unavailable' | 'unexpected_response' {
  return (
    (documentedKinds as Partial<Record<number, DocumentedKind>>)[status] ??
    (status >= 500 ? 'unavailable' : 'unexpected_response')
  );
}
