import type { UsageLimitAnswer } from './response-schemas.ts';

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

/** What is known of a failed call. Texts from the service are data: whoever shows them makes them safe first. */
export interface Failure {
  kind: ErrorKind;
  /** What went wrong, in our words, where the kind alone does not say it. */
  problem?: string | undefined;
  status?: number | undefined;
  /** `error.code`, `error.message`, `error.requestId` and `error.details` of the service's error body. */
  code?: string | undefined;
  serviceMessage?: string | undefined;
  requestId?: string | undefined;
  details?: unknown;
  /** Credits the service says it charged although the call failed. */
  charged?: number | undefined;
  /** The service sent a charge in a form that cannot be read. */
  chargeUnreadable?: boolean | undefined;
  /** False when nothing reached the service; undefined when its fate is unknown. */
  sent?: boolean | undefined;
  /** Whether the call is one that is paid for, or one that writes. */
  gated?: boolean | undefined;
  writes?: boolean | undefined;
  /** For 429: what `GET /v1/credits` said afterwards. */
  usageLimit?: UsageLimitAnswer | undefined;
  /** For 402: the balance that it told. */
  creditsLeft?: number | undefined;
  /** For a refusal of our own that may be over in a moment. */
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

/**
 * Whether the service may have charged for a call although nobody can read how much: its answer is missing, or came from
 * a gateway (502, 504 …) behind which the call may have been carried out. A refusal charges nothing, and neither does a
 * 503 that says nothing of a charge.
 */
export function mayBeCharged({ kind, status, sent, charged, chargeUnreadable }: Failure): boolean {
  if (sent === false || charged !== undefined) return false;
  if (chargeUnreadable) return true;
  if (status === undefined) return kind === 'network' || kind === 'timeout' || kind === 'unexpected_response';
  return status < 300 || status === 408 || (status >= 500 && status !== 503);
}

/** Statuses of the document; the rest is `unavailable` from 500 on, and otherwise not an answer it describes. */
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
