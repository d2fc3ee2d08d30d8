import { AdLibraryError } from '../api/errors.ts';

/** The reasons why a tool that makes several API calls stops making them. */
export const stopReasons = [
  'end',
  'maxAds',
  'firstPage',
  'maxCredits',
  'budget',
  'usage_limit',
  'deadline',
  'estimate',
  'error',
  'shutdown',
] as const;

/** Why a tool call stopped reading. */
export interface Stop {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /** Set if continuing is useless: the service repeats its result pages, or rejects the request. */
  deadEnd?: 'repeats' | 'rejected';
  /**
   * The limit on the number of ads, if it ended the call. `maxAds` applies to the whole gathering; `maxInParts` applies
   * to the sum over its parts.
   */
  maxAds?: number;
  maxInParts?: number;
}

/** Signals that end a tool call early. */
export interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

const isPastDeadline = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError';

/** Returns true if the caller can no longer receive a result. A call that reached its deadline still returns one. */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isPastDeadline(signal);

/**
 * Returns the reason to stop for a failed API call.
 * @throws the error itself if the tool call has no result, because the caller has left or the API key is not accepted
 */
export function classifyFailure(thrown: unknown, { signal, isDraining }: StopSignals): Stop {
  if (!(thrown instanceof AdLibraryError)) throw thrown;
  const { failure } = thrown;
  const { kind } = failure;
  if (kind === 'unauthorized' || kind === 'no_api_key') throw thrown;
  if (signal.aborted) {
    if (isDraining()) return { reason: 'shutdown', error: thrown };
    if (isPastDeadline(signal)) return { reason: 'deadline', error: thrown };
    throw thrown;
  }
  if (failure.kind === 'credit_budget')
    return { reason: failure.limit === 'tool call' ? 'maxCredits' : 'budget', error: thrown };
  return { reason: kind === 'usage_limit' ? 'usage_limit' : 'error', error: thrown };
}
