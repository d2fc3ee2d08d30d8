import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from './errors.ts';
import type { Call, Send } from './send.ts';

export interface RetryOptions {
  /** A number from 0 to 1; injected so that tests are not left to chance. */
  random: () => number;
}

const attempts = 3;
/** Longest wait before the second attempt, in milliseconds; it doubles with each further one. */
const base = 300;

/**
 * Sends again what may be sent again, inside the call's deadline: what never left, what a gateway turned down (502,
 * 503, 504), and what costs nothing to repeat. A paid call is repeated only where nothing was sent, or where a 503 says
 * nothing of a charge: whatever else became of it, it may have been charged. 402 and 429 are no passing faults: 429 is a
 * credit window of an hour or a day.
 */
export function withRetries(send: Send, { random }: RetryOptions): Send {
  return async (call) => {
    let unsafe = 0;
    for (let attempt = 1; ; attempt++) {
      try {
        const answer = await send(call);
        return unsafe > 0 ? { ...answer, repeated: true } : answer;
      } catch (error) {
        const retry = attempt < attempts ? retryOf(error, call, unsafe) : 'no';
        if (retry === 'no' || call.transit?.isWanted?.() === false) throw error;
        if (retry === 'unsafe') unsafe++;
        // Full jitter: callers that failed together do not come back together.
        const pause = random() * base * 2 ** (attempt - 1);
        await wait(pause, undefined, { signal: call.signal }).catch(() => {
          throw error;
        });
      }
    }
  };
}

/** Whether to send again, and whether that is done without knowing what became of the attempt before. */
function retryOf(error: unknown, call: Call, unsafe: number): 'no' | 'safe' | 'unsafe' {
  const { operation, signal, paid = operation.gated } = call;
  if (signal.aborted || !(error instanceof AdLibraryError)) return 'no';
  const { kind, status, sent, charged, chargeUnreadable } = error.failure;
  if (kind === 'network' && sent === false) return 'safe';
  if (charged || chargeUnreadable) return 'no';
  if (paid) return status === 503 && charged === undefined ? 'safe' : 'no';
  const turnedDown = status === 502 || status === 503 || status === 504;
  if (turnedDown && !operation.writes) return 'safe';
  return (turnedDown || kind === 'network') && unsafe < operation.maxUnsafeRetries ? 'unsafe' : 'no';
}
