import { AdLibraryError } from '../api/errors.ts';

/** The reasons why a tool stops making API calls, e.g. `end` after the last page of a search. */
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

/** The reason why a tool call stopped reading ads from the service, with details. */
export interface StopInfo {
  reason: (typeof stopReasons)[number];
  error?: AdLibraryError;
  /**
   * Why a later call cannot resume the search: the service repeats its pages, or it rejects the request for the next
   * page. Undefined if a later call can resume the search.
   */
  resumptionBlocker?: 'repeatedPages' | 'rejectedRequest';
  /**
   * The limit on the number of ads that stopped the call. `maxAds` counts each ad once. `maxListedAds` counts an ad
   * once for each part (smaller search) that lists it.
   */
  maxAds?: number;
  maxListedAds?: number;
}

/** Signals that can end a tool call early. `isDraining` returns true while the server is shutting down. */
export interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

/** Returns true if a signal has aborted because its tool call has reached its deadline. */
export const isPastDeadline = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError';

/**
 * Returns true if the caller of a tool call has disconnected. Returns false for a call that was aborted at its
 * deadline, because such a call still returns a result.
 */
export const isCallAbandoned = (signal: AbortSignal): boolean => signal.aborted && !isPastDeadline(signal);

/**
 * Converts the error of a failed API call to the reason why the tool call stops.
 * @throws the error itself if the tool call cannot return a result, because the caller has disconnected or the service
 * has rejected the API key
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

/**
 * Returns true if the service refused a request because of its arguments, e.g. because the requested page size is too
 * large.
 */
export const isRequestRejection = ({ failure: { kind } }: AdLibraryError): boolean =>
  kind === 'invalid_request' || kind === 'not_found';

/** Creates the error for a search whose further pages only repeat ads of earlier pages. */
export const createRepeatedPagesError = () =>
  new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The service announces more pages, but they repeat ads of this gathering.',
    status: 200,
    wasSent: true,
    charged: 0,
  });
