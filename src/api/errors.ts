import type { UsageLimitAnswer } from './schemas.ts';

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

/** What may be known about a failed call of any kind. Texts of the service are data: make them safe before showing them. */
export interface FailureFacts {
  /** What went wrong, in the words of this server, if the kind alone does not say it. */
  problem?: string | undefined;
  status?: number | undefined;
  /** `error.code`, `error.message`, `error.requestId` and `error.details` of the service's error body. */
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** Credits that the service stated it charged although the call failed. */
  charged?: number | undefined;
  chargeUnreadable?: boolean | undefined;
  /** False if nothing reached the service; undefined if that is unknown. */
  sent?: boolean | undefined;
  /** An earlier attempt may have been carried out. */
  repeated?: true;
  /** Whether the operation costs credits, and whether it writes. */
  paid?: boolean | undefined;
  writes?: boolean | undefined;
  /**
   * What of this server's own storage failed. Such a failure says nothing about the requests of the call: they may have
   * been sent and charged before. `slot` and `lock` are held by another call or process.
   */
  storage?: 'data' | 'full' | 'lock' | 'slot' | undefined;
}

/** What is known about a failed call. The facts that only one kind has stand beside the kind. */
export type Failure = FailureFacts & (FailureWithFacts | { kind: Exclude<ErrorKind, FailureWithFacts['kind']> });

type FailureWithFacts =
  | {
      kind: 'no_api_key';
      /** The settings are not missing but wrong. */
      wrongSettings?: boolean;
    }
  | {
      kind: 'usage_limit';
      /** The windows that `GET /v1/credits` returned afterwards. */
      usageLimit?: UsageLimitAnswer | undefined;
    }
  | {
      kind: 'payment_required';
      /** The balance that `GET /v1/credits` returned afterwards. */
      creditsLeft?: number | undefined;
    }
  | ({ kind: 'credit_budget' } & ExceededLimit)
  | {
      kind: 'unexpected_response';
      /** The answer is larger than an answer may be. */
      tooLarge?: boolean;
      wrongAddress?: WrongAddress;
    };

/** The limit that a call would exceed. What the caller can do depends on whose limit it is. */
export type ExceededLimit =
  | { limit: 'tool call'; maxCredits: number }
  | {
      limit: 'connection' | 'server';
      /** The call may fit once calls in progress have ended, because only their reservations refuse it. */
      transient: boolean;
    };

/** What shows that the base address is wrong: it ends in `/v1`, or redirects to an address, if that can be read. */
export type WrongAddress = { reason: 'endsInVersion' } | { reason: 'redirects'; target: string | undefined };

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
 * Returns whether the service may have charged for a failed call without stating a readable amount: the answer is
 * missing, or comes from a gateway (502, 504 …) behind which the call may have been carried out. A refusal charges
 * nothing, and neither does a 503 without a stated charge.
 */
export function mayBeCharged({ kind, status, sent, charged, chargeUnreadable, storage }: Failure): boolean {
  if (sent === false || storage || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** The statuses of the document. Others are `unavailable` from 500 on, and unexpected below. */
const documentedKinds = {
  401: 'unauthorized',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  422: 'invalid_request',
  429: 'usage_limit',
} as const;
type DocumentedKind = (typeof documentedKinds)[keyof typeof documentedKinds];

export function kindOfStatus(status: number): DocumentedKind | 'unavailable' | 'unexpected_response' {
  return (
    (documentedKinds as Partial<Record<number, DocumentedKind>>)[status] ??
    (status >= 500 ? 'unavailable' : 'unexpected_response')
  );
}
