import { AdLibraryError } from './errors.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';

/** How a call ended, for those who waited for it: its answer, or why there is none. */
export type CallOutcome = { answer: Answer } | { error: unknown };

export type Claim =
  /** This process sends the call, and says how it ended; without an outcome, the others send theirs. */
  | { kind: 'granted'; end(outcome: CallOutcome | undefined): Promise<void> }
  | { kind: 'ended'; outcome: CallOutcome }
  /** The process that sent it has died. */
  | { kind: 'lost' };

/** Gated calls in progress in all processes that share the state. */
export interface CallClaims {
  /**
   * Resolves when no other process sends the same call; rejects if its signal aborts first.
   * @param onLost receives the id of each claim of such a call whose process has died, if need be after the call
   */
  claim(call: Call, onLost: OnLost): Promise<Claim>;
}

export type OnLost = (id: string) => Promise<void>;

export interface ClaimOptions {
  claims: CallClaims;
  /** Counts what a call may have cost whose process has died, once for each id. */
  onLost(call: Call, id: string): Promise<void>;
}

/**
 * Has one of several replicas send a call, and the others wait for its answer, at no charge. If that replica dies, they
 * do not send it again: it may have been charged.
 */
export function withClaims(send: Send, { claims, onLost }: ClaimOptions): Send {
  return gatedOnly(send, async (call) => {
    const claim = await claims.claim(call, (id) => onLost(call, id));
    if (claim.kind === 'lost') throw lost();
    if (claim.kind === 'ended') {
      if ('error' in claim.outcome) throw claim.outcome.error;
      return replayed(claim.outcome.answer);
    }
    try {
      const answer = await send(call);
      await claim.end({ answer });
      return answer;
    } catch (error) {
      // What did not reach the service says nothing about the calls of others.
      const isUnsent = error instanceof AdLibraryError && error.failure.sent === false;
      await claim.end(isUnsent ? undefined : { error });
      throw error;
    }
  });
}

const lost = () =>
  new AdLibraryError({
    kind: 'network',
    problem: 'A replica of this server that had sent the same call ended before its answer arrived.',
    paid: true,
  });
