import { AdLibraryError } from '../api/errors.ts';

/** The reasons for which a tool that makes several API calls may stop before the next call. */
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

/** Explains why a tool call stopped reading ads. */
export interface StopInfo {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /** Set if the search cannot be continued, because the service repeats its pages or rejects the request. */
  deadEndReason?: 'repeats' | 'rejected';
  /**
   * The limit on the number of ads that stopped the call. For `maxAds`, an ad counts once. For `maxAdsInParts`, it
   * counts once for each part (smaller search) that lists it.
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

/** Returns true if the caller has disconnected. A call that was aborted at its deadline still returns a result. */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isPastDeadline(signal);

/**
 * Converts the error of a failed API call to the reason why the tool call stops.
 * @throws the error itself if the caller has disconnected or the service rejected the API key, because the tool call
 * then cannot return a result
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

/** Creates the error for a search whose further pages only repeat ads. */
export const createRepeatedPagesError = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they repeat ads of this gathering.',
    status: 200,
    wasSent: true,
    charged: 0,
  });
