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
