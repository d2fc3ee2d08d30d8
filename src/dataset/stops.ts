import { AdLibraryError } from '../api/errors.ts';

/** The possible reasons why a tool that makes several API calls stops before the next one. */
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

/** Describes why a tool call stopped reading ads. */
export interface Stop {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /** Set if it is useless to continue, because the service repeats its pages or rejects the request. */
  deadEnd?: 'repeats' | 'rejected';
  /**
   * The limit on the number of ads, if it stopped the call. `maxAds` limits the ads of the whole search; `maxInParts`
   * limits the sum over its parts.
   */
  maxAds?: number;
  maxInParts?: number;
}

/** Signals that can end a tool call early. */
export interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

const isPastDeadline = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError';

/**
 * Returns true if the caller can no longer receive a result. A call that reached its deadline still returns a result.
 */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isPastDeadline(signal);

/**
 * Converts the error of a failed API call to a reason to stop.
 * @throws the error itself if the tool call cannot return a result, because the caller has disconnected or the service
 * rejected the API key
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
