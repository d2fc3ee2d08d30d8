import { AdLibraryError } from '../api/errors.ts';

/** Why a tool that makes several calls of the API made no more of them. */
export type StopReason =
  | 'end'
  | 'maxAds'
  | 'maxCredits'
  | 'budget'
  | 'usage_limit'
  | 'deadline'
  | 'estimate'
  | 'error'
  | 'shutdown';

export interface Stop {
  reason: StopReason;
  /** What was thrown. */
  error?: AdLibraryError;
  /** What it stopped at will not go away: to go on brings nothing. */
  leadsNowhere?: true;
  /** How many ads there was room for, if that stopped it: in all, or counted in each part. */
  maxAds?: number;
  maxInParts?: number;
}

export interface StopSignals {
  signal: AbortSignal;
  isDraining(): boolean;
}

/** Why a failed call ends the tool call. Throws what ends it without a result: nobody reads it, or nobody may. */
export function stopOf(thrown: unknown, { signal, isDraining }: StopSignals): Stop {
  if (!(thrown instanceof AdLibraryError)) throw thrown;
  const { kind, maxCredits } = thrown.failure;
  if (kind === 'unauthorized' || kind === 'no_api_key') throw thrown;
  if (signal.aborted) {
    if (isDraining()) return { reason: 'shutdown', error: thrown };
    if (signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError')
      return { reason: 'deadline', error: thrown };
    throw thrown;
  }
  if (kind === 'credit_budget') return { reason: maxCredits === undefined ? 'budget' : 'maxCredits', error: thrown };
  return { reason: kind === 'usage_limit' ? 'usage_limit' : 'error', error: thrown };
}
