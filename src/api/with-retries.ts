import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from './errors.ts';
import type { Call, Send } from './send.ts';

export interface RetryOptions {
  /** A number from 0 to 1; injected so that tests are not left to chance. */
  random: () => number;
}

const attempts = 3;
/** Maximum wait before the second attempt, in milliseconds; it doubles with each further one. */
const base = 300;

/**
 * Repeats failed calls within their deadline, if that is safe: calls that never left, calls that a gateway rejected
 * (502, 503, 504), and calls that cost nothing to repeat. A paid call is only repeated if nothing was sent, or after a
 * 503 without a stated charge; otherwise it may have been charged. 402 and 429 do not pass soon: 429 is a credit window
 * of an hour or a day.
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
        // Full jitter: calls that failed together are not repeated together.
        const pause = random() * base * 2 ** (attempt - 1);
        await wait(pause, undefined, { signal: call.signal }).catch(() => {
          throw error;
        });
      }
    }
  };
}

/** Whether to repeat a call; `unsafe` if the failed attempt may have been carried out. */
function retryOf(error: unknown, call: Call, unsafe: number): 'no' | 'safe' | 'unsafe' {
  const { operation, signal, paid = operation.gated } = call;
  if (signal.aborted || !(error instanceof AdLibraryError)) return 'no';
  const { kind, status, sent, charged, chargeUnreadable } = error.failure;
  if (kind === 'network' && sent === false) return 'safe';
  if (charged || chargeUnreadable) return 'no';
  if (paid) return status === 503 && charged === undefined ? 'safe' : 'no';
  const isRejected = status === 502 || status === 503 || status === 504;
  if (isRejected && !operation.writes) return 'safe';
  return (isRejected || kind === 'network') && unsafe < operation.maxUnsafeRetries ? 'unsafe' : 'no';
}
