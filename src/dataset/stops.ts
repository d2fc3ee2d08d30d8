import { AdLibraryError } from '../api/errors.ts';

/** The reasons why a tool that makes several API calls made no more of them. */
export const stopReasons = [
  'end',
  'maxAds',
  'maxCredits',
  'budget',
  'usage_limit',
  'deadline',
  'estimate',
  'error',
  'shutdown',
] as const;

/** Why reading stopped. */
export interface Stop {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /**
   * Set if continuing is useless because the cause will not go away: the pages repeat, or the service rejects the
   * request.
   */
  deadEnd?: 'repeats' | 'rejected';
  /**
   * The most ads that the gathering may have, if this limit ended it: `maxAds` in all, `maxInParts` counted in each
   * part.
   */
  maxAds?: number;
  maxInParts?: number;
}

/** The signals that end a tool call early. */
export interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

const isPastDeadline = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError';

/** Returns whether the caller can no longer receive a result. A call past its deadline still sends one. */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isPastDeadline(signal);

/**
 * Returns why a failed API call ends the tool call.
 * @throws the error itself if the tool call has no result: the caller has left, or the key is not accepted
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
