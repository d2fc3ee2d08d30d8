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

/** Explains why a tool call stopped reading ads. Contains the reason, and the error or the limit that caused it. */
export interface StopInfo {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /** Set if it is useless to continue, because the service repeats its pages or rejects the request. */
  deadEndReason?: 'repeats' | 'rejected';
  /**
   * The limit on the number of ads, if it stopped the call. `maxAds` limits the ads of the whole search.
   * `maxAdsInParts` limits the sum over its parts (smaller searches).
   */
  maxAds?: number;
  maxAdsInParts?: number;
}

/** Signals that can end a tool call early. `isDraining` returns true while the server shuts down. */
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
 * Converts the error of a failed API call to the reason why the tool call stops.
 * @throws the error itself if the tool call cannot return a result, because the caller has disconnected or the service
 * rejected the API key
 */
export function classifyFailure(error: unknown, { signal, isDraining }: StopSignals): StopInfo {
  if (!(error instanceof AdLibraryError)) throw error;
  const { failure } = error;
  const { kind } = failure;
  if (kind === 'unauthorized' || kind === 'no_api_key') throw error;
  if (signal.aborted) {
    if (isDraining()) return { reason: 'shutdown', error };
    if (isPastDeadline(signal)) return { reason: 'deadline', error };
    throw error;
  }
  if (failure.kind === 'credit_budget')
    return { reason: failure.limit === 'tool call' ? 'maxCredits' : 'budget', error };
  return { reason: kind === 'usage_limit' ? 'usage_limit' : 'error', error };
}

/** Returns true if the service refused a request because of its arguments, e.g. because the page size is too large. */
export const isRejectedRequest = ({ failure: { kind } }: AdLibraryError): boolean =>
  kind === 'invalid_request' || kind === 'not_found';

/** Creates the error for a list that announces more pages but repeats ads that are already known. */
export const createRepeatedPagesError = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they repeat ads of this gathering.',
    status: 200,
    wasSent: true,
    charged: 0,
  });
